//! A calibration: the maximum that this load generator reaches when the server is no limit.
//!
//! The built-in target responds at once. A closed loop against it finds the throughput; a search finds the highest rate
//! whose schedule is kept. Nothing here judges: the audit does, when a later run comes near the maximum.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail, ensure};
use engine::Controls;
use record::Check;
use record::document::{Ceiling, Document, Finding};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use target::{Options, Server};
use units::Nanos;

use crate::ceiling;
use crate::conduct::{Conduct, Quiet, conduct};
use crate::date::timestamp;
use crate::environment::Environment;
use crate::options::GivenOptions;
use crate::prepare::{PreparedRun, prepare};

/// Longer than 1 s: the first second of a run is not typical.
const CLOSED: Nanos = Nanos::from_secs(3);
const PROBE: Nanos = Nanos::from_secs(2);

/// Halvings: afterwards the rate is known to 1/64 of the throughput.
const PROBES: u32 = 6;

/// A probe that failed is repeated once: a scheduling stall of the host is not the load generator's maximum.
const TRIES: u32 = 2;

/// A measured ceiling, and the file it is stored in.
pub struct Calibration {
    pub shape: String,
    pub ceiling: Ceiling,
    pub path: PathBuf,
}

/// Measures and keeps the ceiling of the client that `given` describes: its connections, workers, pace and stamps.
///
/// # Errors
///
/// When the target cannot be started, a run fails, or the result cannot be stored.
pub fn calibrate(
    given: &GivenOptions,
    environment: &Environment<'_>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Calibration> {
    let cache = ceiling::make_cache(environment.cache.as_deref())?;
    // Refuses invalid options before anything starts.
    let server = start_target(planned(given, environment)?.plan.workers)?;
    let url = format!("http://{}/plaintext", server.local_addr());
    let folder = cache.join(format!("calibrating-{}", std::process::id()));
    let measured = Bench { given, url: &url, folder: &folder, stop, environment }.measure();
    let _ = fs::remove_dir_all(&folder);
    let (shape, ceiling) = measured?;
    let path = ceiling::keep(cache, &shape, &ceiling)?;
    Ok(Calibration { shape, ceiling, path })
}

/// The first run of a calibration, with a placeholder for the address that the target does not have yet.
///
/// # Errors
///
/// As [`prepare`].
pub fn planned(given: &GivenOptions, environment: &Environment<'_>) -> anyhow::Result<PreparedRun> {
    prepare(&probe_options(given, "http://127.0.0.1:1/plaintext", None, CLOSED).spec()?, environment)
}

/// Starts the target on the CPUs outside this process's CPU affinity, if there are any: pinned to the same CPUs, each
/// would measure the other. The target gets one thread per worker: with fewer, it would be the bottleneck.
fn start_target(workers: u64) -> anyhow::Result<Server> {
    let options = target_options(workers)?;
    let ours = sched_getaffinity(None).context("cannot read which CPUs this process can use")?;
    let mut others = CpuSet::new();
    let online =
        (0..CpuSet::MAX_CPU).filter(|cpu| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists());
    online.filter(|&cpu| !ours.is_set(cpu)).for_each(|cpu| others.set(cpu));
    // New threads inherit the affinity of the thread that starts them.
    let moved = others.count() > 0 && sched_setaffinity(None, &others).is_ok();
    let server = Server::start(options);
    if moved {
        sched_setaffinity(None, &ours).context("cannot restore this process's CPUs")?;
    }
    Ok(server?)
}

fn target_options(workers: u64) -> anyhow::Result<Options> {
    let threads = usize::try_from(workers)
        .with_context(|| format!("--workers {workers} needs too much memory; use fewer"))?;
    Ok(Options { threads, ..Options::default() })
}

fn finding(document: &Document, is_wanted: impl Fn(&Check) -> bool) -> Option<&Finding> {
    document.verdict.as_ref()?.findings.iter().find(|finding| is_wanted(&finding.check))
}

struct Bench<'a> {
    given: &'a GivenOptions,
    url: &'a str,
    folder: &'a Path,
    stop: &'a Arc<AtomicBool>,
    environment: &'a Environment<'a>,
}

impl Bench<'_> {
    fn measure(&self) -> anyhow::Result<(String, Ceiling)> {
        let closed = self.drive(None, CLOSED)?;
        if let Some(finding) = finding(&closed.1, Check::is_standstill) {
            bail!("this host is too busy to measure the maximum: {}; nothing was stored", finding.measured);
        }
        if let Some(finding) = finding(&closed.1, |check| *check == Check::RunQueue) {
            (self.environment.notice)(&format!(
                "the measured maximum is too low because of this: {}",
                finding.measured
            ));
        }
        let throughput = throughput(&closed.1) as u64;
        ensure!(
            throughput > 0,
            "the built-in target sent no response: check the limit of open files and the firewall"
        );
        let rate = self.search(throughput)?;
        let (prepared, document) = closed;
        let shape = ceiling::shape(&prepared.plan, document.load.pipeline, &document.host);
        let measured = timestamp(clock::wall()).to_string();
        Ok((shape, Ceiling { throughput_per_s: throughput, rate_per_s: rate, measured }))
    }

    /// The highest rate whose schedule was kept, found by bisection.
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
        for _ in 0..TRIES {
            let (_, document) = self.drive(Some(rate), PROBE)?;
            // Other checks of the audit may fail at the maximum; only the schedule counts.
            if finding(&document, Check::is_schedule_missed).is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One run with the options under test. Its record is not kept.
    fn drive(&self, rate: Option<u64>, duration: Nanos) -> anyhow::Result<(PreparedRun, Document)> {
        let spec = probe_options(self.given, self.url, rate, duration).spec()?;
        let prepared = prepare(&spec, self.environment)?;
        let controls = Controls::new(Arc::clone(self.stop));
        let with = Conduct {
            folder: self.folder,
            options: BTreeMap::new(),
            environment: self.environment,
            progress: &mut Quiet,
            controls: &controls,
        };
        let completed = conduct(&prepared, with)?;
        ensure!(!self.stop.load(Ordering::Relaxed), "interrupted; nothing was stored");
        fs::remove_dir_all(self.folder)
            .with_context(|| format!("cannot delete the contents of `{}`", self.folder.display()))?;
        match completed.aborted {
            Some(error) => Err(error.into()),
            None => Ok((prepared, completed.document)),
        }
    }
}

/// The options of one such run.
fn probe_options(given: &GivenOptions, url: &str, rate: Option<u64>, duration: Nanos) -> GivenOptions {
    let mut options = given.clone();
    options.set("url", [url]);
    options.set("duration", [duration.written()]);
    if let Some(rate) = rate {
        options.set("rate", [format!("{rate}/s")]);
    }
    options
}

fn throughput(document: &Document) -> f64 {
    document.results.as_ref().map_or(0.0, |results| results.totals.throughput_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::given;

    /// If this fails, a client with several workers is measured against a target with one thread, or its stored result
    /// is used for runs of another shape.
    #[test]
    fn the_target_has_a_thread_for_each_worker_and_the_shape_says_so() {
        let shape = |more: &[&str]| {
            let given = given(&[&["-c", "64"][..], more].concat());
            let spec = probe_options(&given, "http://127.0.0.1:1/plaintext", None, CLOSED).spec().unwrap();
            let plan = prepare(&spec, &Environment::none()).unwrap().plan;
            ceiling::shape(&plan, 1, &record::document::Host::default())
        };
        assert!(shape(&["-w", "2"]).contains("64 connections with 1 requests each, 2 workers; "));
        assert!(shape(&["-w", "2"]).contains("; a target of 2 threads; "));
        assert!(shape(&["--pace", "precise"]).contains("; pace precise; "));
        assert_eq!(target_options(2).unwrap().threads, 2);
    }
}
