//! The CPU time of processes between exact instants.

use std::collections::BTreeMap;

use host::process::{CpuMeter, CpuSpan, Detail, Wanted};
use metering::{Splitter, measured};
use record::document::{EffectiveOption, MissingFact, OptionSource, State};
use record::observation::ObservationBody;
use record::observation::cpu::{CpuLine, CpuResults};
use units::Nanos;

use super::keeper::{Keeper, Observed};
use super::{Closing, Observer, Rhythm, Setting, conduct, state};
pub use metering::SplitBy;

/// What to measure.
#[derive(Debug, Clone)]
pub struct CpuSpec {
    pub wanted: Wanted,
    pub interval: Nanos,
    /// The number of intervals; `None` until a stop is requested.
    pub count: Option<u64>,
    /// Measures each thread, too.
    pub threads: bool,
    pub split: SplitBy,
    /// Processes that used no CPU time are only counted.
    pub hide_idle: bool,
}

/// Called for each event, on the thread of the observation; an error ends it.
pub type Live<'a> = &'a mut dyn FnMut(CpuEvent<'_>) -> anyhow::Result<()>;

/// What happens during the measurement.
pub enum CpuEvent<'a> {
    /// The first reading is done, and the record has begun.
    Begun,
    /// An interval has ended; `n` counts from 1.
    Interval { n: u64, length: Nanos, line: &'a CpuLine, host: &'a CpuHost },
}

/// What a reader needs to interpret the figures of an interval.
#[derive(Debug, Default)]
pub struct CpuHost {
    /// The number of CPUs of this host.
    pub cpus: u64,
    /// The time between two ticks of the kernel.
    pub tick: Nanos,
    /// Command lines of all processes seen so far, by process ID and start time.
    pub commands: BTreeMap<(u32, u64), String>,
}

/// What was measured.
pub struct CpuObserved {
    pub observed: Observed,
    /// The number of intervals.
    pub intervals: u64,
    /// From the first reading to the last.
    pub length: Nanos,
    pub line: CpuLine,
    pub host: CpuHost,
    /// Why user and system time come from ticks only, although ticks were not requested.
    pub not_split: Option<String>,
    /// One note per process that has ended.
    pub ended: Vec<String>,
}

/// Shortest gap between two readings; a thread that lives longer than this is seen.
const LEAST_GAP: Nanos = Nanos::from_millis(100);
/// Extra readings within an interval use at most 1/100 of one CPU.
const COST_DIVISOR: u64 = 100;

/// Measures, and keeps the record if `setting` names a directory.
///
/// # Errors
///
/// A problem of this host, or one of `live`, in one line.
pub fn observe(spec: &CpuSpec, setting: Setting<'_>, live: Live<'_>) -> anyhow::Result<CpuObserved> {
    setting.claim(|setting| {
        let stop = setting.stop;
        let mut meters = CpuMeters::begin(spec, setting, live)?;
        let from = meters.meter.begin().middle();
        let until = |count| from.saturating_add(Nanos(spec.interval.0.saturating_mul(count)));
        let until = spec.count.map_or(Nanos::MAX, until);
        let rhythm = Rhythm { from, every: spec.interval, until, closing: Closing::OnGrid };
        (meters.live)(CpuEvent::Begun)?;
        let measured = conduct(&mut meters, &rhythm, stop);
        let observed = meters.finish(state(&measured, true, stop));
        measured.map(|_| observed)
    })
}

struct CpuMeters<'a> {
    meter: CpuMeter,
    splitter: Splitter,
    /// Memory with shared pages divided (PSS), read before anything is measured.
    proportional: Vec<Option<u64>>,
    /// CPU time that this process had used by then.
    own_cpu: Option<Nanos>,
    keeper: Keeper,
    hide_idle: bool,
    /// From the first reading on.
    total: Option<CpuSpan>,
    intervals: u64,
    host: CpuHost,
    live: Live<'a>,
}

impl<'a> CpuMeters<'a> {
    fn begin(spec: &CpuSpec, mut setting: Setting<'_>, live: Live<'a>) -> anyhow::Result<CpuMeters<'a>> {
        let detail = if spec.threads { Detail::Threads } else { Detail::Processes };
        // A missing process is detected first, because loading eBPF programs takes a while.
        let proportional = CpuMeter::start(spec.wanted.clone(), detail)?.proportional();
        let mut splitter = Splitter::start(spec.split, &spec.wanted)?;
        let meter = CpuMeter::start(spec.wanted.clone(), detail)?;
        splitter.read();
        splitter.close();
        let own_cpu = host::process_cpu();
        let count = spec.count.map_or("until stopped".to_owned(), |count| count.to_string());
        for (name, value) in [("interval", spec.interval.written()), ("count", count)] {
            let option = EffectiveOption { value, source: OptionSource::Derived };
            setting.options.insert(name.to_owned(), option);
        }
        let host = CpuHost { cpus: meter.cpus(), tick: meter.tick(), commands: BTreeMap::new() };
        let results = CpuResults { cpus: host.cpus, tick_ns: host.tick.0, ..CpuResults::default() };
        let missing = splitter.missing().into_iter().collect();
        let keeper = Keeper::begin(&setting, ObservationBody::Cpu(results), missing, meter.begin().before)?;
        let hide_idle = spec.hide_idle;
        let (total, intervals) = (None, 0);
        Ok(CpuMeters {
            meter,
            splitter,
            proportional,
            own_cpu,
            keeper,
            hide_idle,
            total,
            intervals,
            host,
            live,
        })
    }

    fn line_of(&self, span: &CpuSpan) -> CpuLine {
        let mut line = measured::line(span, self.host.tick);
        if self.hide_idle {
            measured::set_idle_apart(&mut line);
        }
        line
    }

    fn finish(mut self, state: State) -> CpuObserved {
        let used = host::process_cpu().zip(self.own_cpu).map(|(now, before)| now.saturating_sub(before));
        let total = self.total.take().expect("at least one interval is measured");
        let length = measured::length(&total);
        let mut line = self.line_of(&total);
        measured::set_proportional(&mut line.groups, &self.proportional, &self.meter.proportional());
        self.splitter.split_all(&mut line);
        let missing = &mut self.keeper.document.missing;
        missing.extend(self.splitter.lost());
        if !line.processes.iter().any(|process| process.used.voluntary.is_some()) {
            let why = "/proc/PID/task/TID/status has no counts of them".to_owned();
            missing.push(MissingFact { what: "switches".to_owned(), why });
        }
        let body = ObservationBody::Cpu(CpuResults {
            cpus: self.host.cpus,
            tick_ns: self.host.tick.0,
            observer_ns: used.map(|used| used.0),
            readings: line.readings,
            processes: line.processes.clone(),
            groups: line.groups.clone(),
        });
        CpuObserved {
            observed: self.keeper.finish(state, length, body),
            intervals: self.intervals,
            length,
            line,
            host: self.host,
            not_split: self.splitter.missing().map(|fact| fact.why),
            ended: total.processes.iter().filter_map(measured::ended).collect(),
        }
    }
}

impl Observer for CpuMeters<'_> {
    /// The end of the interval, and before that as often as costs next to nothing, so that the record has figures for a
    /// process that ends early.
    fn due(&mut self, now: Nanos, close: Nanos) -> Nanos {
        let cost = self.meter.cost();
        let due = now + LEAST_GAP.max(Nanos(cost.0.saturating_mul(COST_DIVISOR)));
        // No reading so late that it would delay the last one.
        if due + cost + LEAST_GAP >= close { close } else { due }
    }

    fn step(&mut self, stopped: bool) -> bool {
        self.meter.read();
        self.splitter.read();
        stopped || self.meter.is_over()
    }

    fn close(&mut self, _: Nanos, _: Nanos, _: bool) -> anyhow::Result<()> {
        // The interval is exactly the time between the readings.
        let span = self.meter.take();
        let length = measured::length(&span);
        let mut line = self.line_of(&span);
        self.splitter.split_span(&mut line);
        self.splitter.close();
        let start = span.begin.middle().saturating_sub(self.keeper.zero());
        self.keeper.append(&line, start, length, &[]);
        for process in &span.processes {
            if let Some(command) = &process.command {
                self.host.commands.insert((process.pid, process.started), command.clone());
            }
        }
        self.intervals += 1;
        match &mut self.total {
            Some(total) => total.join(span),
            None => self.total = Some(span),
        }
        (self.live)(CpuEvent::Interval { n: self.intervals, length, line: &line, host: &self.host })
    }
}
