//! `parallax completions` and `parallax man`: shell completions and manual pages, generated from the options.

use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Command, ValueHint};
use clap_complete::Shell;

use crate::exit::Exit;
use crate::output::printed;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax completions bash > /etc/bash_completion.d/parallax
  parallax completions zsh > ~/.zfunc/_parallax
  parallax completions fish > ~/.config/fish/completions/parallax.fish")]
pub struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write the manual pages: parallax.1 and one per verb.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  parallax man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Directory to write to.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
}

/// Runs the verb `completions`.
///
/// # Errors
///
/// When the output cannot be written.
pub fn completions(args: &CompletionsArgs, program: &Command) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut program.clone(), "parallax", &mut text);
    printed(io::Write::write_all(&mut io::stdout(), &text))?;
    Ok(Exit::Done)
}

/// Runs the verb `man`.
///
/// # Errors
///
/// When a page cannot be written.
pub fn man(args: &ManArgs, program: &Command) -> anyhow::Result<Exit> {
    let cannot = || format!("cannot write manual pages to `{}`", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(cannot)?;
    clap_mangen::generate_to(program.clone(), &args.folder).with_context(cannot)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_shell_completes_the_options_of_drive() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut crate::Cli::command(), "parallax", &mut text);
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("max-in-flight") && text.contains("hiccup"), "{shell}");
        }
    }

    #[test]
    fn every_verb_has_its_manual_page() {
        let folder = tempfile::tempdir().unwrap();
        man(&ManArgs { folder: folder.path().join("man1") }, &crate::Cli::command()).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join("man1").join(name)).unwrap();
        assert!(page("parallax.1").contains("parallax"));
        for verb in crate::Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(page(&format!("parallax-{}.1", verb.get_name())).contains(".SH"), "{}", verb.get_name());
        }
    }
}
