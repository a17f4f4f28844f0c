//! `parallax runs`: the list of records, and removing old ones.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueHint;
use run::records;

use crate::exit::Exit;
use crate::output::{printed, report_line};

/// List records: when, what, rate, p99 and verdict of each, the latest last.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax runs
  parallax runs --prune 20")]
pub struct Args {
    /// Directory that holds the records.
    #[arg(value_name = "DIR", default_value = records::RECORDS, value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// Remove all records in this directory except the N latest; runs in progress stay.
    #[arg(long, value_name = "N")]
    prune: Option<usize>,
}

/// Runs the verb.
///
/// # Errors
///
/// When the directory cannot be read, or a record cannot be removed.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let mut out = io::stdout();
    if let Some(keep) = args.prune {
        let removed = records::prune(&args.folder, keep)?;
        let lines =
            removed.iter().map(|folder| format!("removed {}", units::escape_text(&folder.to_string_lossy())));
        printed(lines.into_iter().try_for_each(|line| writeln!(out, "{line}")))?;
        return Ok(Exit::Done);
    }
    let shown = args.folder.display();
    let (found, others) =
        findings::summaries(&args.folder).with_context(|| format!("cannot read `{shown}`"))?;
    if found.is_empty() {
        report_line(format_args!("no records in {shown}; `parallax drive URL` makes one"));
    } else {
        printed(findings::record_list(&found).iter().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    if others > 0 {
        report_line(format_args!("{others} directories in {shown} hold no record"));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_instead_of_a_directory_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let args = Args { folder: file.path().to_owned(), prune: None };
        let error = format!("{:#}", run(&args).map(|_| ()).unwrap_err());
        assert_eq!(error, format!("cannot read `{}`: Not a directory (os error 20)", file.path().display()));
    }
}
