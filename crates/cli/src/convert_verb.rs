//! `parallax convert`: a record in another tool's format.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ValueHint;
use export::rows::{self, Form};
use export::{Facts, Snapshot, hlog, k6, otlp, prometheus};
use findings::Rebuilt;
use record::RecordError;
use units::Nanos;

use crate::exit::Exit;
use crate::output::{printed, report_notes};
use crate::records;

/// Convert a record to a format that other tools read.
///
/// hlog: one HdrHistogram log of the whole run, with one tagged line per histogram. csv, jsonl: one row per second.
/// prometheus: Prometheus text format, for a push gateway or a textfile collector. otlp: one OTLP/JSON export request.
/// k6-summary: the format of k6's --summary-export; times are those of `ok` requests, http_req_duration is service
/// time, and percentiles with too few samples are left out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax convert runs/one --to hlog -o one.hlog
  parallax convert runs/one --to k6-summary | jq .metrics.http_req_waiting
  parallax convert runs/one --to prometheus -o /var/lib/node_exporter/load.prom")]
pub struct Args {
    /// Results directory, or its run.json.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,

    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Target,

    /// Output file; an existing file is overwritten [default: standard output].
    #[arg(short = 'o', long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    Hlog,
    Csv,
    Jsonl,
    Prometheus,
    Otlp,
    K6Summary,
}

/// Runs the verb.
///
/// # Errors
///
/// When the directory contains no run, or the file cannot be written.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let folder = records::folder(&args.folder);
    if record::import::is_import(folder)? {
        return Err(RecordError::NotARun { path: folder.to_owned() }.into());
    }
    let recording = record::read(folder)?;
    report_notes(&recording.document);
    let rebuilt = findings::rebuild(recording);
    let text = converted(&rebuilt, args.to)?;
    match &args.output {
        Some(path) => write(path, &text)?,
        None => printed(io::stdout().write_all(&text))?,
    }
    Ok(Exit::Done)
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let shown = path.display();
    // A textfile collector must never find an incomplete file; a pipe or device is written directly.
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(path, bytes).with_context(|| format!("cannot write `{shown}`; name another file"));
    }
    ensure!(path.file_name().is_some(), "`{shown}` is no file; name one");
    let written = record::replace_file(path, |out| out.write_all(bytes));
    written.with_context(|| format!("cannot write `{shown}`; name another file"))
}

fn converted(rebuilt: &Rebuilt, to: Target) -> anyhow::Result<Vec<u8>> {
    let Rebuilt { document, seconds, total, .. } = rebuilt;
    let started = record::import::unix_ns(&document.time.started);
    let facts = Facts::of(document, started.unwrap_or(0));
    let end = seconds.last().map_or(0, |last| last.start_ns + last.length_ns);
    let snapshot = Snapshot { facts: &facts, total, last: None, at: Nanos(end) };
    let mut text = Vec::new();
    match to {
        Target::Hlog => text.extend(hlog::log(document, total)?.into_bytes()),
        Target::Csv | Target::Jsonl => {
            let form = if to == Target::Csv { Form::Csv } else { Form::Jsonl };
            rows::head(form, &mut text)?;
            for second in seconds {
                rows::row(form, second, &mut text)?;
            }
        }
        Target::Prometheus => {
            text.extend(prometheus::render(&snapshot, prometheus::Form::Prometheus).into_bytes());
        }
        Target::Otlp => {
            ensure!(started.is_some(), "the record's time.started is no time, and OTLP needs one");
            text.extend(json(&otlp::request(&snapshot))?);
        }
        Target::K6Summary => {
            text.extend(json(&k6::summary(document).context("the record has no results")?)?);
        }
    }
    Ok(text)
}

fn json(value: &serde_json::Value) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    Ok(text)
}
