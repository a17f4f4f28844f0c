//! `parallax drive --calibrate`: what this client reaches when the server is no limit.
//!
//! The built-in target answers at once. A closed loop against it finds the throughput, a search the highest rate whose
//! schedule is kept. Nothing here judges: the audit does, when a later run comes near.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use engine::Controls;
use record::document::{Ceiling, Document, Finding};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use target::{Options, Server};
use units::{Nanos, Rate};

use super::args::Args;
use super::ceiling;
use super::conduct::{conduct, timestamp};
use super::connect_args::{ConnectArgs, HttpArg};
use super::plan::{Prepared, prepare};
use crate::exit::Exit;
use crate::live::Progress;
use crate::{printed, say, signals};

/// Long enough for a second that is not the first.
const CLOSED: Nanos = Nanos::from_secs(3);
const PROBE: Nanos = Nanos::from_secs(2);

/// Halvings: the rate is then known to a 64th of the throughput.
const PROBES: u32 = 6;

/// A probe that failed is made again once: a hiccup of the host is not the client's ceiling.
const TRIES: u32 = 2;

/// The checks that say whether a schedule was kept. Others may well not hold at a ceiling.
const KEPT: [&str; 5] = ["schedule_lag", "client_lag", "client_late", "offered_load", "kept_up"];

/// Measures, prints and keeps the ceiling of the shape that `args` describe.
///
/// # Errors
///
/// When the target cannot be started, a run not be made, or the result not be kept.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let cache = ceiling::cache()?;
    let server = start_target(args)?;
    let url = format!("http://{}/plaintext", server.local_addr());
    let stop = signals::stop_flag()?;
    let folder = cache.join(format!("calibrating-{}", std::process::id()));
    let measured = Bench { args, url: &url, folder: &folder, stop: &stop }.measure();
    let _ = fs::remove_dir_all(&folder);
    let (shape, ceiling) = measured?;
    let path = ceiling::keep(&cache, &shape, &ceiling)?;
    printed(print(&ceiling, &shape, &path))?;
    Ok(Exit::Done)
}

fn print(ceiling: &Ceiling, shape: &str, path: &Path) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "this client's own ceiling, against the built-in target")?;
    writeln!(out, "  {:>9}/s  in a closed loop", ceiling.throughput_per_s)?;
    match ceiling.rate_per_s {
        Some(rate) => writeln!(out, "  {rate:>9}/s  the highest rate whose schedule was kept")?,
        None => writeln!(out, "  no rate was found whose schedule was kept: this host is too busy")?,
    }
    writeln!(out, "  of         {}", record::escape_text(shape))?;
    writeln!(out, "  kept in    {}", record::escape_text(&path.display().to_string()))
}

/// Starts the target, on the CPUs that are not this client's where it has been given some: pinned together, each
/// would measure the other.
fn start_target(args: &Args) -> anyhow::Result<Server> {
    let options = Options { threads: args.workers.unwrap_or(1).max(1) as usize, ..Options::default() };
    let ours = sched_getaffinity(None).context("cannot tell this process's CPUs")?;
    let mut others = CpuSet::new();
    let online =
        (0..CpuSet::MAX_CPU).filter(|cpu| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists());
    online.filter(|&cpu| !ours.is_set(cpu)).for_each(|cpu| others.set(cpu));
    // Threads start with the affinity of the one that starts them.
    let moved = others.count() > 0 && sched_setaffinity(None, &others).is_ok();
    let server = Server::start(options);
    if moved {
        sched_setaffinity(None, &ours).context("cannot return to this process's CPUs")?;
    }
    Ok(server?)
}

/// A host that stood still, or was not this client's, says nothing of what the client can do.
const DISTURBED: [&str; 4] = ["steal", "cpu_quota", "host_stall", "client_stall"];

fn finding<'a>(document: &'a Document, checks: &[&str]) -> Option<&'a Finding> {
    document.verdict.as_ref()?.findings.iter().find(|finding| checks.contains(&finding.check.as_str()))
}

struct Bench<'a> {
    args: &'a Args,
    url: &'a str,
    folder: &'a Path,
    stop: &'a Arc<AtomicBool>,
}

impl Bench<'_> {
    fn measure(&self) -> anyhow::Result<(String, Ceiling)> {
        let closed = self.drive(None, CLOSED)?;
        if let Some(finding) = finding(&closed.1, &DISTURBED) {
            bail!("this host is too busy to measure a ceiling: {}; nothing was kept", finding.measured);
        }
        if let Some(finding) = finding(&closed.1, &["run_queue"]) {
            say(format_args!("the ceiling is lower for it: {}", finding.measured));
        }
        let throughput = throughput(&closed.1) as u64;
        ensure!(throughput > 0, "the built-in target answered nothing: see the descriptors and the firewall");
        let rate = self.search(throughput)?;
        let (prepared, document) = closed;
        let shape = ceiling::shape(&prepared.plan, document.load.pipeline, &document.host);
        let measured = timestamp(clock::wall()).to_string();
        Ok((shape, Ceiling { throughput_per_s: throughput, rate_per_s: rate, measured }))
    }

    /// The highest rate whose schedule was kept, by halving.
    fn search(&self, throughput: u64) -> anyhow::Result<Option<u64>> {
        let (mut kept, mut missed) = (0_u64, throughput);
        for _ in 0..PROBES {
            let rate = kept.midpoint(missed).max(1);
            if self.is_kept(rate)? {
                kept = rate;
            } else {
                missed = rate;
            }
        }
        Ok(Some(kept).filter(|&kept| kept > 0))
    }

    fn is_kept(&self, rate: u64) -> anyhow::Result<bool> {
        let parsed: Rate = format!("{rate}/s").parse().context("a rate of whole requests a second")?;
        for _ in 0..TRIES {
            let (_, document) = self.drive(Some(parsed), PROBE)?;
            if finding(&document, &KEPT).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One run of the client's shape. Its record is not kept.
    fn drive(&self, rate: Option<Rate>, duration: Nanos) -> anyhow::Result<(Prepared, Document)> {
        let args = Args {
            url: vec![self.url.to_owned()],
            rate,
            duration: Some(duration),
            count: None,
            callers: None,
            arrivals: None,
            jitter: None,
            stages: Vec::new(),
            replay: None,
            speed: None,
            replay_column: None,
            think: None,
            search: None,
            seed: None,
            method: None,
            headers: Vec::new(),
            body: None,
            targets: None,
            expect_status: None,
            expect_body_contains: None,
            expect_sha256: None,
            fail_if: Vec::new(),
            connect: ConnectArgs {
                http: HttpArg::Auto,
                resolve: Vec::new(),
                unix: None,
                source: Vec::new(),
                ..self.args.connect.clone()
            },
            ..self.args.clone()
        };
        let prepared = prepare(&args)?;
        let controls = Controls::new(Arc::clone(self.stop));
        let conducted = conduct(&prepared, BTreeMap::new(), self.folder, Progress::Quiet, &controls)?;
        ensure!(!self.stop.load(Ordering::Relaxed), "interrupted; the ceiling is not kept");
        fs::remove_dir_all(self.folder)
            .with_context(|| format!("cannot empty `{}`", self.folder.display()))?;
        if let Some(error) = conducted.broken {
            return Err(error.into());
        }
        Ok((prepared, conducted.document))
    }
}

fn throughput(document: &Document) -> f64 {
    document.results.as_ref().map_or(0.0, |results| results.totals.throughput_per_s)
}
