//! The process around a run, read once: only this crate reads the environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use run::effective::EffectiveOptions;
use run::environment::Environment;
use run::observe::Setting;

use crate::command_line::{CommandLine, long_name};

/// This process.
pub struct Process {
    program: Option<PathBuf>,
}

impl Process {
    /// Looks up this program.
    pub fn new() -> Process {
        Process { program: std::env::current_exe().ok() }
    }

    /// What a run needs to know about this process.
    pub fn environment(&self) -> Environment<'_> {
        Environment {
            command: command(),
            program: self.program.as_deref(),
            cache: cache(),
            variable: &|name| std::env::var(name).ok(),
            notice: &|line| crate::output::report_line(line),
        }
    }

    /// What an observation needs from this process: the options that took effect, the directory of its record, and the
    /// flag that ends it.
    pub fn setting<'a>(
        &'a self,
        options: EffectiveOptions,
        folder: Option<&'a Path>,
        stop: &'a Arc<AtomicBool>,
    ) -> Setting<'a> {
        Setting { environment: self.environment(), options, folder, stop }
    }
}

/// What [`note_command`] noted.
static COMMAND: OnceLock<Vec<String>> = OnceLock::new();

/// Notes the words of the command line for records. `line` is what clap parsed from them.
pub fn note_command(line: &CommandLine<'_>, typed: &[OsString]) {
    COMMAND.get_or_init(|| redacted(line, typed));
}

fn command() -> Vec<String> {
    COMMAND.get().cloned().unwrap_or_default()
}

/// `typed` without the credentials in it, which are found as clap parsed them.
fn redacted(line: &CommandLine<'_>, typed: &[OsString]) -> Vec<String> {
    let verb = line.verb();
    let given = verb.iter().flat_map(|line| {
        let options = line.command.get_arguments().filter(|argument| line.is_typed(argument));
        options.flat_map(|option| {
            let name = long_name(option).to_owned();
            line.texts(option).into_iter().map(move |text| (name.clone(), text))
        })
    });
    let texts = typed.iter().map(|text| text.to_string_lossy().into_owned()).collect();
    run::secrets::without(texts, &given.collect::<Vec<_>>())
}

/// `$XDG_CACHE_HOME/parallax`, or below the home directory.
fn cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("parallax"))
}

#[cfg(test)]
mod tests;
