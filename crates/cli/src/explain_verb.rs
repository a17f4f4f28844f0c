//! `parallax explain`: the records of one period, joined.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::ValueHint;
use explain::{Client, Explanation, HostRecord, Server};
use record::observation::ObservationKind;
use record::observation::watch::SERVED;
use record::{Observed, TwoClocks, read_observation};

use crate::exit::Exit;
use crate::output::{printed, report_notes};
use crate::{records, terminal};

const REQUESTS: &str = "requests.parquet";

/// Explain where the time of requests went, and who is to blame.
///
/// Joins a record of `drive` with records of `watch`, `cpu`, `hiccup`, `disturb` and JVMs from the same period. Each
/// request is found at the server by the two ends of its connection, its order on the connection, and its time. Its
/// response time is divided into the load generator's lateness, the pool, the network, the server's socket queue, and
/// what the server did; these parts add up to the response time, to the nanosecond.
/// Both sides must keep individual requests: run drive and watch with --requests all.
///
/// Without a record of `watch`, server and network cannot be separated.
///
/// In --json, blame.place is one of: client, network, socket_queue, handler_cpu, handler_blocked, cpu_contention,
/// throttled, pool, platform, runtime, undecided.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax explain runs/client runs/server
  parallax explain runs/client runs/server runs/hiccup --json | jq .blame")]
pub struct Args {
    /// Results directories: exactly one of `drive`, and any number of others.
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
/// When a directory has no readable record, or there is not exactly one record of `drive`.
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
        let folder = records::folder(folder);
        ensure!(
            !record::search::is_search(folder),
            "`{}` is a search; give the directory of one of its probes",
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
                bail!("`{name}` is a record of `{other}`, which `explain` cannot use; leave it out")
            }
        }
    }
    let Some(client) = client else {
        bail!("none of these is a record of `drive`; add the directory of the load test")
    };
    Ok(explain::explain(&client, servers, &hosts))
}

fn read_client(folder: &Path, name: String) -> anyhow::Result<Client> {
    let mut recording = record::read(folder)?;
    report_notes(&recording.document);
    recording.settle();
    let path = folder.join(REQUESTS);
    let requests = record::open_file(&path)?;
    Client::read(recording, requests, name).with_context(|| format!("{}", path.display()))
}

fn read_noted(folder: &Path) -> anyhow::Result<Observed> {
    let observed = read_observation(folder)?;
    report_notes(&observed.document);
    Ok(observed)
}

fn read_server(folder: &Path, name: String) -> anyhow::Result<Server> {
    let observed = read_noted(folder)?;
    let path = folder.join(SERVED);
    let served = record::open_file(&path)?;
    let clocks = TwoClocks::read(folder)?;
    Server::read(observed, served, clocks, name).with_context(|| format!("{}", path.display()))
}

fn json(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, explanation)?;
    writeln!(out)
}
