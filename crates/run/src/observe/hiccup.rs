//! Scheduling stalls of this host, alone or while a command runs.

use std::sync::atomic::{AtomicBool, Ordering};

use findings::summarize_hiccups;
use metering::{Continued, MeterPlan, Meters, Tally};
use record::Durations;
use record::document::State;
use record::observation::ObservationBody;
use record::observation::hiccup::{CommandRun, HiccupLine, HiccupResults, Meter};
use units::Nanos;

use super::command::{MeasuredCommand, Running};
use super::keeper::{Keeper, Observed};
use super::{Closing, Observer, Rhythm, Setting, conduct, state};

/// What to measure.
pub struct HiccupSpec {
    pub meters: MeterPlan,
    /// The CPU of each meter; `None` for a meter that is not pinned.
    pub cpus: Vec<Option<usize>>,
    pub interval: Nanos,
    pub length: HiccupLength,
}

/// How long to measure.
#[derive(Debug, Clone)]
pub enum HiccupLength {
    /// Until a stop is requested.
    Endless,
    For(Nanos),
    /// The idle host for `baseline`, then for as long as the command runs, which is ended after a stop is requested.
    Command {
        command: MeasuredCommand,
        baseline: Nanos,
    },
}

/// Called for each event, on the thread of the observation; an error ends it.
pub type Live<'a> = &'a mut dyn FnMut(HiccupEvent<'_>) -> anyhow::Result<()>;

/// What happens during the measurement. Offsets are from the record's zero.
pub enum HiccupEvent<'a> {
    /// The meters run, and the record has begun.
    Begun,
    Interval {
        end: Nanos,
        line: &'a HiccupLine,
    },
    CommandStarted {
        at: Nanos,
    },
}

/// What was measured.
pub struct HiccupObserved {
    pub observed: Observed,
    pub results: HiccupResults,
    /// Lateness of all ticks; with a command, only of those while it ran.
    pub ticks: Durations,
    /// Exit code of the command; `None` if none has run.
    pub exit_code: Option<u8>,
}

/// An interval is closed this long after its end, because a stall's accounts and SIGCONT are read only after the stall.
const SETTLE: Nanos = Nanos::from_millis(200);

/// How often the command and a request to stop are checked.
const SLICE: Nanos = Nanos::from_millis(20);

/// Measures, and keeps the record.
///
/// # Errors
///
/// A problem of this host, the command, or one of `live`, in one line.
pub fn observe(
    spec: &HiccupSpec,
    continued: Continued,
    setting: Setting<'_>,
    live: Live<'_>,
) -> anyhow::Result<HiccupObserved> {
    setting.claim(|setting| {
        let stop = setting.stop;
        let mut hiccups = Hiccups::begin(spec, continued, setting, live)?;
        (hiccups.live)(HiccupEvent::Begun)?;
        let measured = hiccups.measure(spec, stop);
        let has_end = !matches!(spec.length, HiccupLength::Endless);
        let state = state(&measured, has_end, stop);
        let (observed, results, ticks) = hiccups.finish(state);
        Ok(HiccupObserved { observed, results, ticks, exit_code: measured? })
    })
}

struct Hiccups<'a> {
    meters: Meters,
    keeper: Keeper,
    results: HiccupResults,
    all: Tally,
    each: Vec<Tally>,
    running: Option<Running>,
    /// The end of the last interval.
    closed: Nanos,
    live: Live<'a>,
}

impl<'a> Hiccups<'a> {
    fn begin(
        spec: &HiccupSpec,
        continued: Continued,
        mut setting: Setting<'_>,
        live: Live<'a>,
    ) -> anyhow::Result<Hiccups<'a>> {
        let meters = Meters::start(&spec.meters, &spec.cpus, continued)?;
        let results = HiccupResults {
            resolution_ns: spec.meters.resolution.0,
            priority: spec.meters.urgency.clone(),
            threshold_ns: spec.meters.threshold.0,
            ..HiccupResults::default()
        };
        let numbers: Vec<String> =
            meters.cpus().map(|cpu| cpu.map_or("any".to_owned(), |cpu| cpu.to_string())).collect();
        setting.derive("cpus", numbers.join(","));
        setting.derive("duration", "no limit".to_owned());
        let body = ObservationBody::Hiccup(Box::new(results.clone()));
        let keeper = Keeper::begin(&setting, body, meters.missing(), meters.zero())?;
        let each = meters.cpus().map(|_| Tally::new()).collect();
        let closed = meters.zero();
        Ok(Hiccups { meters, keeper, results, all: Tally::new(), each, running: None, closed, live })
    }

    /// Returns the exit code of the command, if one has run.
    fn measure(&mut self, spec: &HiccupSpec, stop: &AtomicBool) -> anyhow::Result<Option<u8>> {
        let zero = self.meters.zero();
        let measure = |hiccups: &mut Self, from: Nanos, until: Nanos| {
            let rhythm = Rhythm { from, every: spec.interval, until, closing: Closing::OnGrid };
            conduct(hiccups, &rhythm, stop)
        };
        let (command, baseline) = match &spec.length {
            HiccupLength::Endless => return measure(self, zero, Nanos::MAX).map(|_| None),
            HiccupLength::For(length) => {
                return measure(self, zero, zero.saturating_add(*length)).map(|_| None);
            }
            HiccupLength::Command { command, baseline } => (command, *baseline),
        };
        if baseline > Nanos::ZERO {
            measure(self, zero, zero.saturating_add(baseline))?;
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let from = self.start(command)?;
        measure(self, from, Nanos::MAX)?;
        let code = self.running.as_ref().and_then(Running::exit_code);
        if let Some(beside) = &mut self.results.beside {
            beside.exit_code = code.map(u64::from);
            beside.cpu_ns = host::children_cpu().map(|time| time.0);
        }
        Ok(code)
    }

    /// Starts the command, and resets the sums. Returns when it was started.
    fn start(&mut self, command: &MeasuredCommand) -> anyhow::Result<Nanos> {
        self.running = Some(Running::start(command)?);
        let now = clock::now();
        let idle = hiccups(&self.all);
        self.all = Tally::new();
        self.each.iter_mut().for_each(|tally| *tally = Tally::new());
        let from = now - self.meters.zero();
        // Nothing is measured while the command is being started.
        self.meters.skip_to(now);
        self.closed = now;
        self.results.beside = Some(CommandRun {
            command: command.line.iter().map(|text| text.to_string_lossy().into_owned()).collect(),
            exit_code: None,
            from_ns: from.0,
            until_ns: None,
            cpu_ns: None,
            idle,
        });
        (self.live)(HiccupEvent::CommandStarted { at: from })?;
        Ok(now)
    }

    fn finish(mut self, state: State) -> (Observed, HiccupResults, Durations) {
        self.results.all = hiccups(&self.all);
        let cpus = self.meters.cpus().map(|cpu| cpu.map(|cpu| cpu as u64));
        let meters = cpus.zip(&self.each).map(|(cpu, tally)| Meter { cpu, saw: hiccups(tally) });
        self.results.meters = meters.collect();
        let body = ObservationBody::Hiccup(Box::new(self.results.clone()));
        let elapsed = self.closed - self.meters.zero();
        (self.keeper.finish(state, elapsed, body), self.results, self.all.ticks)
    }
}

impl Observer for Hiccups<'_> {
    fn due(&mut self, now: Nanos, _: Nanos) -> Nanos {
        now + SLICE
    }

    fn step(&mut self, stopped: bool) -> bool {
        // A command that was asked to end must still be waited for.
        let Some(running) = &mut self.running else { return stopped };
        if stopped {
            running.end();
        }
        let has_ended = running.has_ended();
        if let Some(beside) = self.results.beside.as_mut().filter(|_| has_ended) {
            beside.until_ns = Some(clock::now().saturating_sub(self.meters.zero()).0);
        }
        has_ended
    }

    fn close(&mut self, from: Nanos, to: Nanos, _: bool) -> anyhow::Result<()> {
        clock::sleep_until(to + SETTLE);
        let seen = self.meters.take(from, to);
        self.closed = to;
        let line = seen.line(summarize_hiccups);
        let names: Vec<String> = self.meters.cpus().flatten().map(|cpu| format!("hiccup-cpu{cpu}")).collect();
        let mut logs = vec![("hiccup", &seen.all.ticks)];
        logs.extend(names.iter().map(String::as_str).zip(seen.each.iter().map(|tally| &tally.ticks)));
        let zero = self.meters.zero();
        self.keeper.append(&line, from - zero, to - from, &logs);
        self.all.merge(&seen.all);
        self.each.iter_mut().zip(&seen.each).for_each(|(tally, seen)| tally.merge(seen));
        (self.live)(HiccupEvent::Interval { end: to - zero, line: &line })
    }
}

/// The figures of a tally for the record.
fn hiccups(tally: &Tally) -> record::observation::hiccup::Hiccups {
    tally.hiccups(&summarize_hiccups(&tally.ticks))
}
