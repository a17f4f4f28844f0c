//! A profile in progress, and its record. Used by `parallax profile`, and by the verbs with `--profile`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use export::flame::FlameGraph;
use record::document::State;
use record::observation::profile::Picture;
use record::observation::{Observation, ObservationBody, ObservationWriter};
use units::Nanos;
use watch::profile::Profiler;

use super::args::Args;
use super::pictures;
use crate::output::report_line;
use crate::{controlled, observing, signals};
use run::effective::EffectiveOptions;
use run::record_lock::RecordLock;

/// How often new processes are looked for; names of a process that lives for less are unknown.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Profiles and keeps the record. `None` where another parallax controls it, which needs no report.
///
/// # Errors
///
/// When the kernel refuses, or the record cannot be written; nothing was profiled then, or the record is incomplete.
pub fn run(args: &Args, options: EffectiveOptions, folder: &Path) -> anyhow::Result<Option<Observation>> {
    let stop = signals::stop_flag()?;
    let pids: Vec<u32> = args.pid.iter().map(|pid| pid.0).collect();
    let mut capture = Capture::begin(&pids, args.rate, options, folder)?;
    if args.controlled {
        controlled::follow(Arc::clone(&stop))?;
        capture.watch(Nanos::MAX, &stop)?;
        capture.end(State::Finished, folder)?;
        controlled::closed();
        return Ok(None);
    }
    let state = capture.watch(args.duration, &stop)?;
    capture.end(state, folder).map(Some)
}

/// A profile from its beginning to its end.
struct Capture {
    profiler: Profiler,
    document: Observation,
    writer: ObservationWriter,
    _under_way: Option<RecordLock>,
    /// The end of the last interval, as an offset from the beginning.
    kept: Nanos,
}

impl Capture {
    fn begin(pids: &[u32], rate: u32, options: EffectiveOptions, folder: &Path) -> anyhow::Result<Capture> {
        let profiler = Profiler::start(pids, rate)?;
        let body = ObservationBody::Profile(Box::default());
        let document = observing::opening(body, options, profiler.began());
        let writer = ObservationWriter::create(folder, &document)?;
        let under_way = RecordLock::acquire(folder);
        Ok(Capture { profiler, document, writer, _under_way: under_way, kept: Nanos::ZERO })
    }

    /// Profiles until the time is over, it is stopped, or the processes end.
    fn watch(&mut self, length: Nanos, stop: &AtomicBool) -> anyhow::Result<State> {
        let zero = self.profiler.began();
        let end = zero.saturating_add(length);
        loop {
            let now = clock::now();
            let are_there = self.profiler.look();
            let passed = now - zero;
            let is_over = now >= end || !are_there || stop.load(Ordering::Relaxed);
            if passed >= self.kept + INTERVAL || (is_over && passed > self.kept) {
                let line = self.profiler.line();
                let context = "the record is incomplete";
                self.writer.append(&line, self.kept, passed - self.kept, &[]).context(context)?;
                self.kept = passed;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(State::Interrupted);
            }
            if !are_there {
                report_line(format_args!(
                    "the process ended after {passed}; the profile covers the time until then"
                ));
            }
            if is_over {
                return Ok(State::Finished);
            }
            clock::sleep_until(end.min(now + LOOK_EVERY));
        }
    }

    /// Looks up names, and closes the record.
    fn end(mut self, state: State, folder: &Path) -> anyhow::Result<Observation> {
        let profile = self.profiler.finish()?;
        let mut document = self.document;
        document.state = state;
        document.time.elapsed_ns = Some(self.kept.0);
        document.missing = profile.missing;
        let subtitle = subtitle(&document, &profile.results.processes);
        document.body = ObservationBody::Profile(Box::new(profile.results));
        let context = "the record is incomplete";
        for (picture, stacks) in Picture::ALL.into_iter().zip(&profile.stacks) {
            pictures::write(folder, FlameGraph { picture, subtitle: &subtitle }, stacks).context(context)?;
        }
        self.writer.finish(&document).context(context)?;
        Ok(document)
    }
}

fn subtitle(document: &Observation, processes: &[record::observation::profile::ProfiledProcess]) -> String {
    let first = processes.first();
    let name = first.and_then(|process| process.name.as_deref()).unwrap_or("a process");
    let length = Nanos(document.time.elapsed_ns.unwrap_or(0));
    format!("{name}, {length} from {}", document.time.started)
}
