//! `parallax hiccup`: starts meters as the options say, prints each interval and the totals at the end.

mod args;
mod command;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use record::RecordError;
use record::document::State;
use record::observation::hiccup::{CommandRun, HiccupResults, Hiccups, Meter};
use record::observation::{Observation, ObservationBody, ObservationWriter};
use report::Style;
use units::Nanos;

pub use self::args::Args;
use self::args::written;
use self::command::Running;
use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::printed;
use crate::{observing, signals, terminal};
use run::meters::{Continued, MeterPlan, Meters, Tally};
use run::record_lock::RecordLock;

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing was measured then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let cpus = args.meters()?;
    command::check(&args.command)?;
    let stop = signals::stop_flag()?;
    let folder = args.output.clone().unwrap_or_else(run::folder::new_folder);
    let claim = run::folder::ClaimedFolder::make(&folder)?;
    let mut session = match Session::open(args, &cpus, line, &folder, stop) {
        Ok(session) => session,
        Err(error) => {
            claim.release();
            return Err(error);
        }
    };
    printed(session.announce(&folder))?;
    let command = if args.command.is_empty() {
        session.measure(args.duration, &mut |_| false);
        None
    } else {
        Some(session.measure_beside(&args.command)?)
    };
    let interrupted = session.stop.load(Ordering::Relaxed);
    let ended_early = interrupted && (args.duration.is_some() || command.is_some());
    session.finish(if ended_early { State::Interrupted } else { State::Finished })?;
    match command.flatten() {
        Some(code) => Ok(Exit::Command(code)),
        None if ended_early => Ok(Exit::Interrupted),
        None => Ok(Exit::Done),
    }
}

/// The state of one run.
struct Session<'a> {
    args: &'a Args,
    meters: Meters,
    stop: Arc<AtomicBool>,
    writer: ObservationWriter,
    document: Observation,
    results: HiccupResults,
    all: Tally,
    each: Vec<Tally>,
    /// From the record's zero to the end of the last interval.
    start: Nanos,
    out: Box<dyn Write>,
    style: Style,
    /// The first error when writing the record.
    damage: Option<RecordError>,
    _under_way: Option<RecordLock>,
}

/// A line is printed this long after its interval: the accounts of a stall and SIGCONT are read after its end.
const SETTLE: Nanos = Nanos::from_millis(200);

/// How often the stop flag is checked.
const SLICE: Nanos = Nanos::from_millis(20);

/// Maximum number of stalls printed per interval.
const STALLS_SHOWN: usize = 3;

impl<'a> Session<'a> {
    fn open(
        args: &'a Args,
        cpus: &[Option<usize>],
        line: &CommandLine<'_>,
        folder: &Path,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Session<'a>> {
        let continued: Continued = signals::continuations()?;
        let plan = MeterPlan {
            resolution: args.resolution,
            priority: args.priority,
            urgency: written(args.priority),
            threshold: args.threshold,
        };
        let meters = Meters::start(&plan, cpus, continued)?;
        let results = HiccupResults {
            resolution_ns: args.resolution.0,
            priority: written(args.priority),
            threshold_ns: args.threshold.0,
            ..HiccupResults::default()
        };
        let mut options = line.effective();
        let numbers: Vec<String> =
            cpus.iter().map(|cpu| cpu.map_or("any".to_owned(), |cpu| cpu.to_string())).collect();
        observing::derive(&mut options, "cpus", numbers.join(","));
        observing::derive(&mut options, "duration", "no limit".to_owned());
        let body = ObservationBody::Hiccup(Box::new(results.clone()));
        let mut document = observing::opening(body, options, meters.zero());
        document.missing = meters.missing();
        let writer = ObservationWriter::create(folder, &document)?;
        let under_way = RecordLock::acquire(writer.path());
        // Standard output belongs to the command, so our lines go to standard error.
        let out: Box<dyn Write> = match (args.json, args.command.is_empty()) {
            (true, _) => Box::new(io::sink()),
            (false, true) => Box::new(io::stdout()),
            (false, false) => Box::new(io::stderr()),
        };
        Ok(Session {
            args,
            each: meters.cpus().map(|_| Tally::new()).collect(),
            meters,
            stop,
            writer,
            document,
            results,
            all: Tally::new(),
            start: Nanos::ZERO,
            out,
            style: terminal::style(&io::stdout(), args.no_color),
            damage: None,
            _under_way: under_way,
        })
    }

    fn announce(&mut self, folder: &Path) -> io::Result<()> {
        let meters = self.each.len();
        let plural = if meters == 1 { "meter" } else { "meters" };
        let end = match (self.args.duration, self.args.command.is_empty()) {
            (Some(duration), _) => format!("for {}", duration.written()),
            (None, true) => "until Ctrl-C".to_owned(),
            (None, false) => {
                format!("idle for {}, then as long as the command runs", self.args.baseline.written())
            }
        };
        let (tick, priority) = (self.args.resolution.written(), &self.results.priority);
        writeln!(self.out, "{meters} {plural}, one tick per {tick}, priority {priority}; {end}")?;
        writeln!(self.out, "record {}", record::escape_text(&folder.display().to_string()))?;
        writeln!(self.out, "{}", self.style.faint(findings::hiccup_head()))
    }

    /// Measures until `until`, a stop, or until `over` returns true. Its argument says whether a stop was requested.
    fn measure(&mut self, until: Option<Nanos>, over: &mut dyn FnMut(bool) -> bool) {
        loop {
            let next = self.start + self.args.interval;
            let end = until.map_or(next, |until| next.min(until));
            let over = self.wait(end, over);
            let end = if over { clock::now() - self.meters.zero() } else { end };
            clock::sleep_until(self.meters.zero() + end + SETTLE);
            self.interval(end);
            if over || until.is_some_and(|until| end >= until) {
                return;
            }
        }
    }

    /// Waits until `end`; true if it was over before that.
    fn wait(&self, end: Nanos, over: &mut dyn FnMut(bool) -> bool) -> bool {
        let due = self.meters.zero() + end;
        loop {
            let stop = self.stop.load(Ordering::Relaxed);
            // A command that was asked to end must still be waited for.
            if over(stop) || stop && self.results.beside.is_none() {
                return true;
            }
            let now = clock::now();
            if now >= due {
                return false;
            }
            clock::sleep_until(due.min(now + SLICE));
        }
    }

    fn interval(&mut self, end: Nanos) {
        let (zero, start) = (self.meters.zero(), self.start);
        let seen = self.meters.take(zero + start, zero + end);
        self.start = end;
        let line = seen.line();
        let names: Vec<String> = self.meters.cpus().flatten().map(|cpu| format!("hiccup-cpu{cpu}")).collect();
        let mut logs = vec![("hiccup", &seen.all.ticks)];
        logs.extend(names.iter().map(String::as_str).zip(seen.each.iter().map(|tally| &tally.ticks)));
        if let Err(error) = self.writer.append(&line, start, end.saturating_sub(start), &logs) {
            self.damage.get_or_insert(error);
        }
        self.all.merge(&seen.all);
        self.each.iter_mut().zip(&seen.each).for_each(|(tally, seen)| tally.merge(seen));
        // A closed pipe does not end the measurement.
        let _ = write!(self.out, "{}", findings::hiccup_line(end, &line, STALLS_SHOWN))
            .and_then(|()| self.out.flush());
    }

    /// Measures the idle host, then the host while `command` runs. Returns its exit code, or `None` if it did not run.
    fn measure_beside(&mut self, command: &[std::ffi::OsString]) -> anyhow::Result<Option<u8>> {
        if self.args.baseline > Nanos::ZERO {
            self.measure(Some(self.args.baseline), &mut |_| false);
        }
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let idle = self.begin_anew();
        let mut running = Running::start(command)?;
        let from = clock::now() - self.meters.zero();
        // Nothing is measured while the command is being started.
        self.meters.skip_to(self.meters.zero() + from);
        self.start = from;
        let command = command.iter().map(|text| text.to_string_lossy().into_owned()).collect();
        self.results.beside = Some(CommandRun {
            command,
            exit_code: None,
            from_ns: from.0,
            until_ns: None,
            cpu_ns: None,
            idle,
        });
        let _ = writeln!(self.out, "{:>10} command started", from.to_string());
        let mut until = None;
        self.measure(None, &mut |stop| {
            if stop {
                running.end();
            }
            let ended = running.has_ended();
            if ended {
                until.get_or_insert_with(clock::now);
            }
            ended
        });
        let code = running.exit_code();
        if let Some(beside) = &mut self.results.beside {
            beside.exit_code = code.map(u64::from);
            beside.until_ns = until.map(|until| until.saturating_sub(self.meters.zero()).0);
            beside.cpu_ns = host::children_cpu().map(|time| time.0);
        }
        Ok(code)
    }

    /// What was measured so far; the sums start again from zero.
    fn begin_anew(&mut self) -> Hiccups {
        let idle = self.all.hiccups();
        self.all = Tally::new();
        self.each.iter_mut().for_each(|tally| *tally = Tally::new());
        idle
    }

    fn finish(mut self, state: State) -> anyhow::Result<()> {
        self.results.all = self.all.hiccups();
        let cpus = self.meters.cpus().map(|cpu| cpu.map(|cpu| cpu as u64));
        let meters = cpus.zip(&self.each).map(|(cpu, tally)| Meter { cpu, saw: tally.hiccups() });
        self.results.meters = meters.collect();
        self.document.state = state;
        self.document.time.elapsed_ns = Some(self.start.0);
        self.document.body = ObservationBody::Hiccup(Box::new(self.results.clone()));
        self.writer.finish(&self.document)?;
        if self.args.json {
            let text = serde_json::to_string_pretty(&self.document).context("cannot print the result")?;
            printed(writeln!(io::stdout(), "{text}"))?;
        }
        let view = findings::hiccup_view(&self.results, &self.all.ticks);
        let shown = writeln!(self.out).and_then(|()| report::text(&view, &mut self.out, self.style));
        printed(shown)?;
        match self.damage {
            Some(error) => Err(error).context("the record is incomplete"),
            None => Ok(()),
        }
    }
}
