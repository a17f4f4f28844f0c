//! `parallax cpu`: the CPU time of processes between two instants.

mod args;
mod order;
mod split;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use findings::view::Subject;
use findings::{CpuTable, CpuUnit};
use host::process::{CpuMeter, CpuSpan, Detail};
use record::RecordError;
use record::document::{EffectiveOption, MissingFact, OptionSource, State};
use record::observation::cpu::{CpuLine, CpuResults};
use record::observation::{Observation, ObservationBody, ObservationWriter};
use report::Style;
use units::Nanos;

pub use self::args::Args;
use self::args::Unit;
use self::order::Order;
use self::split::Splitter;
use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{observing, signals, terminal};
use run::folder::ClaimedFolder;
use run::measured;
use run::record_lock::RecordLock;

/// Runs the verb.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line; nothing has been measured then.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    args.record_mode.apply();
    let order = Order::of(args)?;
    let stop = signals::stop_flag()?;
    let claim = args.output.as_deref().map(ClaimedFolder::make).transpose()?;
    let meters = match meters(args, &order) {
        Ok(meters) => meters,
        Err(error) => {
            claim.into_iter().for_each(ClaimedFolder::release);
            return Err(error);
        }
    };
    let own = host::process_cpu();
    let options = options(&order, line);
    let mut watch = Watch::begin(args, &order, meters, options)?;
    watch.run(&order, &stop)?;
    let used = host::process_cpu().zip(own).map(|(now, before)| now.saturating_sub(before));
    watch.end(used, stop.load(Ordering::Relaxed))
}

/// What measures, and memory with shared pages divided before anything is measured.
struct Meters {
    meter: CpuMeter,
    splitter: Splitter,
    proportional: Vec<Option<u64>>,
}

fn meters(args: &Args, order: &Order) -> anyhow::Result<Meters> {
    let detail = if args.threads { Detail::Threads } else { Detail::Processes };
    // Who is not there is found out first: to load programs takes a while.
    let proportional = CpuMeter::start(order.wanted.clone(), detail)?.proportional();
    let mut splitter = Splitter::start(args.split, &order.wanted)?;
    let meter = CpuMeter::start(order.wanted.clone(), detail)?;
    splitter.read();
    splitter.close();
    Ok(Meters { meter, splitter, proportional })
}

fn options(order: &Order, line: &CommandLine<'_>) -> BTreeMap<String, EffectiveOption> {
    let mut options = line.effective();
    let count = order.count.map_or("until stopped".to_owned(), |count| count.to_string());
    for (name, value) in [("interval", order.interval.written()), ("count", count)] {
        options.insert(name.to_owned(), EffectiveOption { value, source: OptionSource::Derived });
    }
    options
}

/// A measurement in progress.
struct Watch<'a> {
    args: &'a Args,
    meter: CpuMeter,
    splitter: Splitter,
    proportional: Vec<Option<u64>>,
    document: Observation,
    folder: Option<(ObservationWriter, Option<RecordLock>)>,
    /// From the first reading on.
    total: Option<CpuSpan>,
    spans: u64,
    /// Of all that was seen.
    commands: BTreeMap<(u32, u64), String>,
    style: Style,
    /// The first thing that could not be written.
    damage: Option<RecordError>,
}

impl<'a> Watch<'a> {
    fn begin(
        args: &'a Args,
        order: &Order,
        Meters { meter, splitter, proportional }: Meters,
        options: BTreeMap<String, EffectiveOption>,
    ) -> anyhow::Result<Watch<'a>> {
        let results = CpuResults { cpus: meter.cpus(), tick_ns: meter.tick().0, ..CpuResults::default() };
        let mut document = observing::opening(ObservationBody::Cpu(results), options, meter.begin().before);
        document.missing.extend(splitter.missing());
        let make = |path: &PathBuf| -> anyhow::Result<_> {
            let writer = ObservationWriter::create(path, &document)?;
            let mark = RecordLock::acquire(path);
            Ok((writer, mark))
        };
        let folder = args.output.as_ref().map(make).transpose()?;
        let out = io::stdout();
        let mut style = terminal::style(&out, args.no_color);
        if !std::io::IsTerminal::is_terminal(&out) {
            // Nobody's lines are cut in a file.
            style.width = usize::MAX;
        }
        if !args.json && order.count != Some(1) {
            let _ = writeln!(io::stderr(), "every {}; Ctrl-C ends it", order.interval);
        }
        let (total, spans, commands) = (None, 0, BTreeMap::new());
        Ok(Watch {
            args,
            meter,
            splitter,
            proportional,
            document,
            folder,
            total,
            spans,
            commands,
            style,
            damage: None,
        })
    }

    fn run(&mut self, order: &Order, stop: &AtomicBool) -> anyhow::Result<()> {
        let begin = self.meter.begin().middle();
        while order.count.is_none_or(|count| self.spans < count) {
            let end = begin + Nanos(order.interval.0.saturating_mul(self.spans + 1));
            self.observe_until(end, stop);
            let span = self.meter.take();
            self.spans += 1;
            self.report_span(&span, order)?;
            self.splitter.close();
            match &mut self.total {
                Some(total) => total.join(span),
                None => self.total = Some(span),
            }
            if self.meter.is_over() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Reads at `end`, and before as often as costs next to nothing, so that something is known of what ends early.
    fn observe_until(&mut self, end: Nanos, stop: &AtomicBool) {
        loop {
            let gap = LEAST_GAP.max(Nanos(self.meter.cost().0.saturating_mul(COST_DIVISOR)));
            let due = clock::now() + gap;
            // No reading so late that the last one would have to wait for it.
            let due = if due + self.meter.cost() + LEAST_GAP >= end { end } else { due };
            let stopped = sleep_until(due, stop);
            self.meter.read();
            self.splitter.read();
            if stopped || due == end || self.meter.is_over() {
                return;
            }
        }
    }

    fn report_span(&mut self, span: &CpuSpan, order: &Order) -> anyhow::Result<()> {
        let mut line = self.line_of(span);
        self.splitter.split_span(&mut line);
        if let Some((writer, _)) = &mut self.folder {
            let zero = Nanos(self.document.time.started_monotonic_ns);
            let start = span.begin.middle().saturating_sub(zero);
            let written = writer.append(&line, start, measured::length(span), &[]);
            self.damage = self.damage.take().or(written.err());
        }
        for process in &span.processes {
            if let Some(command) = &process.command {
                self.commands.insert((process.pid, process.started), command.clone());
            }
        }
        let several = order.count != Some(1);
        let head = several
            .then(|| format!("interval {}: {:.3} s", self.spans, measured::length(span).as_secs_f64()));
        if self.args.json { Ok(()) } else { self.print(head, &line, Notes::Later) }
    }

    fn line_of(&self, span: &CpuSpan) -> CpuLine {
        let mut line = measured::line(span, self.meter.tick());
        if self.args.all {
            measured::set_idle_apart(&mut line);
        }
        line
    }

    fn print(&self, head: Option<String>, line: &CpuLine, notes: Notes) -> anyhow::Result<()> {
        let mut processes = line.processes.clone();
        if self.args.all {
            processes.sort_by_key(|process| std::cmp::Reverse(process.used.run_ns));
        }
        let table = CpuTable {
            processes: &processes,
            groups: &line.groups,
            idle: line.idle,
            cpus: self.meter.cpus(),
            tick: self.meter.tick(),
            unit: if self.args.of_machine { CpuUnit::Machine } else { self.args.figures.into() },
            commands: &self.commands,
        };
        let mut out = io::stdout().lock();
        let write = |out: &mut dyn Write| {
            if let Some(head) = head {
                writeln!(out, "{head}")?;
            }
            if notes != Notes::Alone {
                report::table(&findings::cpu_table(&table), out, self.style)?;
            }
            if notes != Notes::Later {
                report::section(Subject::Cpu, &findings::cpu_notes(&table), out, self.style)?;
            }
            out.flush()
        };
        printed(write(&mut out))
    }

    /// Closes the record, and prints what is of the whole.
    fn end(mut self, observer: Option<Nanos>, stopped: bool) -> anyhow::Result<Exit> {
        let total = self.total.take().expect("at least one interval is measured");
        let mut line = self.line_of(&total);
        measured::set_proportional(&mut line.groups, &self.proportional, &self.meter.proportional());
        self.splitter.split_all(&mut line);
        self.document.missing.extend(self.splitter.lost());
        self.document.state = if stopped { State::Interrupted } else { State::Finished };
        self.document.time.elapsed_ns = Some(measured::length(&total).0);
        if !line.processes.iter().any(|process| process.used.voluntary.is_some()) {
            let why = "/proc/PID/task/TID/status has no counts of them".to_owned();
            self.document.missing.push(MissingFact { what: "switches".to_owned(), why });
        }
        self.document.body = ObservationBody::Cpu(CpuResults {
            cpus: self.meter.cpus(),
            tick_ns: self.meter.tick().0,
            observer_ns: observer.map(|used| used.0),
            readings: line.readings,
            processes: line.processes.clone(),
            groups: line.groups.clone(),
        });
        if self.args.json {
            printed(report::json(&self.document, &mut io::stdout()))?;
        } else if self.spans > 1 {
            let seconds = measured::length(&total).as_secs_f64();
            let head = format!("all {} intervals: {seconds:.3} s", self.spans);
            self.print(Some(head), &line, Notes::Below)?;
        } else {
            self.print(None, &line, Notes::Alone)?;
        }
        if let Some((writer, _)) = &mut self.folder {
            let written = writer.finish(&self.document);
            self.damage = self.damage.take().or(written.err());
        }
        if let Some(fact) = self.splitter.missing() {
            report_line(format!("user and system are by ticks alone; by boundaries, {}", fact.why));
        }
        for process in &total.processes {
            if let Some(reported) = measured::ended(process).filter(|_| !self.args.all) {
                report_line(reported);
            }
        }
        match self.damage {
            Some(error) => Err(error).context("the record is incomplete"),
            None if stopped => Ok(Exit::Interrupted),
            None => Ok(Exit::Done),
        }
    }
}

/// Where the notes of a table stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notes {
    Later,
    Below,
    Alone,
}

impl From<Unit> for CpuUnit {
    fn from(unit: Unit) -> CpuUnit {
        match unit {
            Unit::Machine => CpuUnit::Machine,
            Unit::Core => CpuUnit::Core,
            Unit::Seconds => CpuUnit::Seconds,
        }
    }
}

/// Threads that come and go are seen if they live longer.
const LEAST_GAP: Nanos = Nanos::from_millis(100);
/// Readings within an interval take a hundredth of one CPU at most.
const COST_DIVISOR: u64 = 100;

/// How often the stop flag is looked at.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// True when it was stopped before.
fn sleep_until(due: Nanos, stop: &AtomicBool) -> bool {
    while clock::now() < due {
        if stop.load(Ordering::Relaxed) {
            return true;
        }
        clock::sleep_until(due.min(clock::now() + STOP_EVERY));
    }
    false
}
