//! A profile under way, and its record. `parallax profile` drives it, and every verb that profiles beside its own work.

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

use super::{Args, Options, pictures};
use crate::exit::Exit;
use crate::{controlled, observing, say, signals};
use run::record_lock::RecordLock;

/// A process that comes and goes within less leaves no names.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
const INTERVAL: Nanos = Nanos::from_secs(1);

/// Profiles, keeps the record and prints it.
///
/// # Errors
///
/// When the kernel or the folder refuses; nothing was looked at then, or the record is incomplete.
pub fn run(args: &Args, options: Options, folder: &Path) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    let mut capture = Capture::begin(&args.pid, args.rate, options, folder)?;
    if args.controlled {
        controlled::follow(Arc::clone(&stop))?;
        capture.watch(Nanos::MAX, &stop)?;
        capture.end(State::Finished, folder)?;
        controlled::closed();
        return Ok(Exit::Done);
    }
    let state = capture.watch(args.duration, &stop)?;
    let observation = capture.end(state, folder)?;
    let exit = super::print(&observation, args.json, args.no_color)?;
    say(format_args!("record: {}", folder.display()));
    Ok(exit)
}

/// Counts from its begin to its end.
struct Capture {
    profiler: Profiler,
    document: Observation,
    writer: ObservationWriter,
    _under_way: Option<RecordLock>,
    /// Where the last interval ended, from the begin.
    kept: Nanos,
}

impl Capture {
    fn begin(pids: &[u32], rate: u32, options: Options, folder: &Path) -> anyhow::Result<Capture> {
        let profiler = Profiler::start(pids, rate)?;
        let body = ObservationBody::Profile(Box::default());
        let document = observing::opening(body, options, profiler.began());
        let writer = ObservationWriter::create(folder, &document)?;
        let under_way = RecordLock::acquire(folder);
        Ok(Capture { profiler, document, writer, _under_way: under_way, kept: Nanos::ZERO })
    }

    /// Until the time is over, somebody stops it, or the processes end.
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
                say(format_args!("the process ended after {passed}; this is what was seen until then"));
            }
            if is_over {
                return Ok(State::Finished);
            }
            clock::sleep_until(end.min(now + LOOK_EVERY));
        }
    }

    /// Names what was seen, and closes the record.
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
