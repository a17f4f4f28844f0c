//! `parallax explain`: the records of one period, joined.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::ValueHint;
use explain::{Client, Explanation, HostRecord, Server};
use export::requests::{Row, Rows};
use record::observation::ObservationKind;
use record::{Observed, Served, TwoClocks, read_observation};
use units::Nanos;

use crate::exit::Exit;
use crate::{printed, report_verb, say_notes, terminal};

const REQUESTS: &str = "requests.parquet";
const SERVED: &str = "served.parquet";

/// So many take about a gigabyte.
const MOST_REQUESTS: usize = 2_000_000;

/// Say where the time of requests went, and whose fault it was.
///
/// Joins the record of `drive` with those of `watch`, `cpu`, `hiccup`, `disturb` and of JVMs of the same period: each
/// request by the two ends of its connection, its order on it and its time. Its response is divided into the client's
/// own lateness, the pool, the network, the socket queue, and what the server did; the parts sum to it to the
/// nanosecond.
/// Requests one by one are needed on both sides: drive and watch with --requests all.
///
/// Without a record of `watch`, server and network stay undivided.
///
/// blame.place of --json is one word: client, network, socket_queue, handler_cpu, handler_blocked, cpu_contention,
/// throttled, pool, platform, runtime or undecided.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax explain runs/client runs/server
  parallax explain runs/client runs/server runs/hiccup --json | jq .blame")]
pub struct Args {
    /// Folders of records: one of `drive`, any number of others.
    #[arg(value_name = "RECORD", required = true, value_hint = ValueHint::DirPath)]
    records: Vec<PathBuf>,

    /// Print the explanation as JSON (formats/explain.schema.json).
    #[arg(long)]
    json: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,
}

/// Runs the verb.
///
/// # Errors
///
/// When a folder holds no record that can be read, or there is not exactly one of `drive`.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let explanation = explain_records(&args.records)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, args.no_color);
    printed(if args.json {
        json(&explanation, &mut out)
    } else {
        report::text(&explain::view(&explanation), &mut out, style)
    })?;
    Ok(Exit::Done)
}

/// Explains the records of a run that has just ended, as text.
///
/// # Errors
///
/// As [`run`].
pub fn print(folders: &[PathBuf], no_color: bool) -> anyhow::Result<()> {
    let explanation = explain_records(folders)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    printed(writeln!(out).and_then(|()| report::text(&explain::view(&explanation), &mut out, style)))
}

fn explain_records(folders: &[PathBuf]) -> anyhow::Result<Explanation> {
    let (mut client, mut servers, mut hosts) = (None, Vec::new(), Vec::new());
    for folder in folders {
        let folder = report_verb::folder(folder);
        ensure!(
            !record::search::is_search(folder),
            "`{}` holds a search; name the folder of one of its probes",
            folder.display()
        );
        let name = folder.display().to_string();
        let kind = record::kind_of(folder)?;
        match (kind.as_str(), ObservationKind::from_name(&kind)) {
            ("drive", _) => {
                ensure!(client.is_none(), "`{name}` is the second record of `drive`; name one client's");
                client = Some(read_client(folder, name)?);
            }
            (_, Some(ObservationKind::Watch)) => servers.push(read_server(folder, name)?),
            (_, Some(_)) => hosts.push(HostRecord { observed: read_noted(folder)?, name }),
            (other, None) => {
                bail!("`{name}` is a record of `{other}`, which tells nothing of where time went")
            }
        }
    }
    let Some(client) = client else {
        bail!("none of the records is one of `drive`; name the folder of the client's run too")
    };
    Ok(explain::explain(&client, servers, &hosts))
}

fn read_client(folder: &Path, name: String) -> anyhow::Result<Client> {
    let mut recording = record::read(folder)?;
    say_notes(&recording.document);
    recording.settle();
    let path = folder.join(REQUESTS);
    let rows = match open(&path)? {
        None => None,
        Some(file) => {
            let mut kept: Vec<Row> = Vec::new();
            let rows = export::requests::read(file, |row| {
                if kept.len() <= MOST_REQUESTS {
                    kept.push(row);
                }
            });
            let rows: Rows = rows.with_context(|| format!("{}", path.display()))?;
            check_size(&path, kept.len())?;
            Some((rows, kept))
        }
    };
    Ok(Client::new(recording, rows, name))
}

fn read_noted(folder: &Path) -> anyhow::Result<Observed> {
    let observed = read_observation(folder)?;
    say_notes(&observed.document);
    Ok(observed)
}

fn read_server(folder: &Path, name: String) -> anyhow::Result<Server> {
    let observed = read_noted(folder)?;
    let path = folder.join(SERVED);
    let mut served: Vec<Served> = Vec::new();
    if let Some(file) = open(&path)? {
        let zero = Nanos(observed.document.time.started_monotonic_ns);
        let take = |request| {
            if served.len() <= MOST_REQUESTS {
                served.push(request);
            }
        };
        export::served::read(file, zero, take).with_context(|| format!("{}", path.display()))?;
        check_size(&path, served.len())?;
    }
    Ok(Server { observed, served, clocks: TwoClocks::read(folder)?, name })
}

/// `None` where there is none. A folder from somewhere else may have a link or a pipe in its place.
fn open(path: &Path) -> anyhow::Result<Option<File>> {
    let context = || format!("cannot read {}", path.display());
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(context),
        Ok(metadata) if !metadata.is_file() => {
            bail!("{} is not a regular file; copy the folder with its files, not links", path.display())
        }
        Ok(_) => File::open(path).map(Some).with_context(context),
    }
}

fn check_size(path: &Path, rows: usize) -> anyhow::Result<()> {
    ensure!(
        rows <= MOST_REQUESTS,
        "{} holds over {} requests; keep fewer, with --requests sample=1% or slowest=10000",
        path.display(),
        units::count(MOST_REQUESTS as u64)
    );
    Ok(())
}

fn json(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, explanation)?;
    writeln!(out)
}
