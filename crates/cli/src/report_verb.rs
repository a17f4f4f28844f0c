//! `parallax report`: a run again, from its folder alone.

use std::io::{self, Write};
use std::path::PathBuf;

use report::{Rebuilt, Report};

use crate::exit::Exit;
use crate::{printed, terminal};

/// Print the report of a record, finished, interrupted or cut off.
///
/// Everything is worked out anew from the histograms in the folder. Of a run whose process was killed, all but at
/// most the last second is there.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the record.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Print the result as JSON (formats/run.schema.json).
    #[arg(long)]
    json: bool,

    /// No colours, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Runs the verb. The exit code is the run's own.
///
/// # Errors
///
/// When the folder holds no run, or one that cannot be read.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let recording = record::read(&args.folder)?;
    let Rebuilt { document, seconds, differences } = report::rebuild(recording);
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    printed(if args.json {
        report::json(&document, &mut out)
    } else {
        let report = Report { document: &document, seconds: &seconds, folder: Some(&args.folder) };
        report::text(&report, &mut out, style)
    })?;
    if let Some(first) = differences.first() {
        writeln!(
            io::stderr(),
            "parallax: run.json says otherwise than its histograms in {} places, first at {first}; \
             what is printed comes from the histograms",
            differences.len()
        )?;
    }
    Ok(Exit::of(&document))
}
