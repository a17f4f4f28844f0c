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
use record::Check;
use record::document::{Ceiling, Document, Finding};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use target::{Options, Server};
use units::{Nanos, Rate};

use super::args::Args;
use super::ceiling;
use super::conduct::{conduct, timestamp};
use super::plan::{Prepared, prepare};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{printed, say, signals};

/// Long enough for a second that is not the first.
const CLOSED: Nanos = Nanos::from_secs(3);
const PROBE: Nanos = Nanos::from_secs(2);

/// Halvings: the rate is then known to a 64th of the throughput.
const PROBES: u32 = 6;

/// A probe that failed is made again once: a hiccup of the host is not the client's ceiling.
const TRIES: u32 = 2;

/// Measures, prints and keeps the ceiling of the shape that `args` describe.
///
/// # Errors
///
/// When the target cannot be started, a run not be made, or the result not be kept.
pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let cache = ceiling::cache()?;
    // What would be refused is refused before anything starts.
    let planned = prepare(&of_run(args, "http://127.0.0.1:1/plaintext", None, CLOSED))?;
    let server = start_target(planned.plan.workers)?;
    let url = format!("http://{}/plaintext", server.local_addr());
    let stop = signals::stop_flag()?;
    let folder = cache.join(format!("calibrating-{}", std::process::id()));
    let measured = Bench { args, url: &url, folder: &folder, stop: &stop }.measure();
    let _ = fs::remove_dir_all(&folder);
    let (shape, ceiling) = measured?;
    let path = ceiling::keep(&cache, &shape, &ceiling)?;
    printed(if args.json { print_json(&ceiling, &shape, &path) } else { print(&ceiling, &shape, &path) })?;
    Ok(Exit::Done)
}

fn print_json(ceiling: &Ceiling, shape: &str, path: &Path) -> io::Result<()> {
    let mut text = ceiling::as_json(shape, ceiling);
    text["kept_in"] = record::escape_text(&path.display().to_string()).into();
    writeln!(io::stdout(), "{text:#}")
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
/// would measure the other. It gets a thread for each of the client's: with fewer, it would be the ceiling.
fn start_target(workers: u64) -> anyhow::Result<Server> {
    let options = target_options(workers)?;
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

fn target_options(workers: u64) -> anyhow::Result<Options> {
    let threads = usize::try_from(workers).context("--workers is over what memory can hold")?;
    Ok(Options { threads, ..Options::default() })
}

fn finding(document: &Document, is_wanted: impl Fn(&Check) -> bool) -> Option<&Finding> {
    document.verdict.as_ref()?.findings.iter().find(|finding| is_wanted(&finding.check))
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
        if let Some(finding) = finding(&closed.1, Check::is_standstill) {
            bail!("this host is too busy to measure a ceiling: {}; nothing was kept", finding.measured);
        }
        if let Some(finding) = finding(&closed.1, |check| *check == Check::RunQueue) {
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
            // Checks of anything but the schedule may well not hold at a ceiling.
            if finding(&document, Check::is_schedule_missed).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One run of the client's shape. Its record is not kept.
    fn drive(&self, rate: Option<Rate>, duration: Nanos) -> anyhow::Result<(Prepared, Document)> {
        let args = of_run(self.args, self.url, rate, duration);
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

/// One run of the client's shape: what `args` say beside that was refused with `--calibrate`.
fn of_run(args: &Args, url: &str, rate: Option<Rate>, duration: Nanos) -> Args {
    Args { url: vec![url.to_owned()], rate, duration: Some(duration), ..args.clone() }
}

fn throughput(document: &Document) -> f64 {
    document.results.as_ref().map_or(0.0, |results| results.totals.throughput_per_s)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    /// If this fails, an option is taken without a word and has no effect.
    #[test]
    fn what_a_calibration_has_no_use_for_is_refused() {
        for more in [
            &["http://127.0.0.1:1/"][..],
            &["--rate", "5/s"],
            &["--stage", "pause 1s"],
            &["--replay", "x"],
            &["--think", "1s"],
            &["--arrivals", "poisson"],
            &["--duration", "5s"],
            &["--count", "5"],
            &["--callers", "5"],
            &["--search", "p99 < 1s"],
            &["--targets", "x"],
            &["--set", "rate=1/s"],
            &["--header", "A: b"],
            &["--fail-if", "p99 > 1s"],
            &["--output", "x"],
            &["--requests", "all"],
            &["--csv", "x"],
            &["--http", "2"],
            &["--streams", "2"],
            &["--insecure"],
            &["--dry-run"],
        ] {
            let error = Line::try_parse_from(["drive", "--calibrate"].iter().chain(more)).unwrap_err();
            let said = crate::hints::one_line(&error, &[]);
            assert!(said.contains("'--calibrate' cannot be used with"), "{said}");
        }
    }

    /// If this fails, a client of several workers is measured against a target of one thread, or what is kept of it
    /// is found by runs of another shape.
    #[test]
    fn the_target_has_a_thread_for_each_worker_and_the_shape_says_so() {
        let shape = |more: &[&str]| {
            let line = ["drive", "--calibrate", "-c", "64"].iter().chain(more);
            let args = Line::try_parse_from(line).unwrap().args;
            let plan = prepare(&of_run(&args, "http://127.0.0.1:1/plaintext", None, CLOSED)).unwrap().plan;
            ceiling::shape(&plan, 1, &record::document::Host::default())
        };
        assert!(shape(&["-w", "2"]).contains("64 connections, 1 requests each, 2 workers; "));
        assert!(shape(&["-w", "2"]).contains("; a target of 2 threads; "));
        assert!(shape(&["--pace", "precise"]).contains("; pace precise; "));
        assert_eq!(target_options(2).unwrap().threads, 2);
    }
}
