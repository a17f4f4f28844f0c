//! Finds the highest rate that meets an objective, from a few noisy probes.
//!
//! Pure: its input is what each probe found, its output which rate to try next. It runs no probes, and knows neither
//! the objective nor percentiles. Its owner calls [`Search::step`], carries out the step, passes the result to
//! [`Search::note`], and repeats that until the step is [`Step::Done`].
//!
//! The method: an estimate; a first rate just below it; from there up or down, with each step three times as long as
//! the last, until one rate holds and one fails; then bisection until the two are as close as requested. Both ends are
//! then probed again, because otherwise one lucky or unlucky probe would decide; if two probes disagree, a third one
//! decides.
//!
//! If other work on the host disturbs the client, the load itself may be the cause. This is tested with half of the
//! load: if the client is disturbed there too, no rate can be measured on this host now, and the search ends.

mod halves;
mod level;
#[cfg(test)]
mod tests;

pub use self::halves::{Fitness, Halves, finding};
use self::level::{Decision, Level};

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// The lowest rate of interest, per second. No lower rate is tried.
    pub from: f64,
    /// The highest rate that may be tried, per second. If it is given, there is no estimate, which would have no such
    /// limit.
    pub to: Option<f64>,
    /// The maximum number of probes, including the estimate.
    pub probes: usize,
    /// How closely to bracket the maximum: the gap between highest passing and lowest failing rate, 0.02 for 2 %.
    pub tolerance: f64,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure the throughput of a closed loop, in requests per second.
    Estimate,
    /// Probe at `rate` per second.
    Probe { rate: f64, length: Length },
    /// Nothing: [`Search::result`] is final.
    Done,
}

/// How long to measure a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The usual length of the search.
    Usual,
    /// Twice as long: the previous probe at this rate had not settled.
    Twice,
}

/// What a probe found about its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The objective held, without a growing backlog.
    Holds,
    /// The objective did not hold.
    Fails,
    /// The two halves of the probe disagree.
    Unsettled,
    /// The load generator was unfit to measure it.
    Doubtful,
    /// The same because of its host: stalled, or busy with other work.
    Disturbed,
}

/// The result of one probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probed {
    /// The requested rate, per second.
    pub rate: f64,
    /// What the probe found.
    pub finding: Finding,
    /// Successful responses per second while it was measured.
    pub served: f64,
}

/// The result of a search, or what is known so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchResult {
    /// The highest rate that held with a fit client.
    pub holds: Option<f64>,
    /// The lowest rate above it that failed.
    pub fails: Option<f64>,
    /// Whether each end was observed at least twice, and by more probes than contradict it.
    pub confirmed: bool,
    /// Why the result is not higher.
    pub above: Above,
    /// The client's host is disturbed whatever the rate, so the search stopped early.
    pub given_up: bool,
}

/// Why the result is not higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Above {
    /// A higher rate failed, and the client was fit.
    Server,
    /// At a higher rate the client was unfit, repeatedly.
    Client,
    /// No higher rate was allowed.
    Range,
    /// The probes were used up.
    Untried,
}

/// A search in progress.
#[derive(Debug, Clone)]
pub struct Search {
    aim: Aim,
    /// How many probes were carried out.
    used: usize,
    /// `Some(None)`: no request was served.
    estimate: Option<Option<f64>>,
    /// In the order of their first probe.
    levels: Vec<Level>,
    /// How many probes used the throughput of a failed probe as a hint.
    hints_taken: usize,
}

impl Search {
    /// A search that has probed nothing yet.
    pub fn new(aim: Aim) -> Search {
        Search { aim, used: 0, estimate: None, levels: Vec::new(), hints_taken: 0 }
    }

    /// Records the estimate, in requests per second; `None` if no request was served.
    pub fn note_estimate(&mut self, per_s: Option<f64>) {
        self.used += 1;
        self.estimate = Some(per_s.filter(|per_s| *per_s > 0.0));
    }

    /// Records the result of a probe.
    pub fn note(&mut self, probed: Probed) {
        self.used += 1;
        if self.hint() == Some(probed.rate) {
            self.hints_taken += 1;
        }
        match self.levels.iter_mut().find(|level| level.rate == probed.rate) {
            Some(level) => level.add(&probed),
            None => self.levels.push(Level::of(&probed)),
        }
    }

    /// What to do next: a pure function of what was recorded.
    pub fn step(&self) -> Step {
        if self.used >= self.aim.probes || self.is_starved() {
            return Step::Done;
        }
        if let Some(level) = self.undecided() {
            return Step::Probe { rate: level.rate, length: level.length() };
        }
        let next = match (self.low(), self.high()) {
            (None, None) => match (self.aim.to, self.estimate) {
                (Some(to), _) => Some(to),
                (None, None) => return Step::Estimate,
                (None, Some(None)) => None,
                // A little below: if the estimate is the capacity, as for a queue, the first probe holds.
                (None, Some(Some(per_s))) => Some(self.allowed(per_s * (1.0 - self.aim.tolerance / 2.0))),
            },
            (Some(low), None) => self.upwards(low).or_else(|| self.unconfirmed()),
            (None, Some(high)) => self.downwards(high).or_else(|| self.unconfirmed()),
            (Some(low), Some(high)) => {
                self.unproven(low, high).or_else(|| self.between(low, high)).or_else(|| self.unconfirmed())
            }
        };
        let length =
            |rate| self.levels.iter().find(|level| level.rate == rate).map_or(Length::Usual, Level::length);
        next.map_or(Step::Done, |rate| Step::Probe { rate, length: length(rate) })
    }

    /// What is known so far.
    pub fn result(&self) -> SearchResult {
        let (low, high) = (self.low(), self.high());
        let ends = [low, high];
        let confirmed =
            ends.iter().any(Option::is_some) && ends.into_iter().flatten().all(Level::is_confirmed);
        let given_up = self.is_starved();
        let above = match high.map(Level::decision) {
            Some(Decision::Limit) => Above::Client,
            Some(_) => Above::Server,
            None if low.is_some_and(|low| self.aim.to.is_some_and(|to| low.rate >= to)) => Above::Range,
            None if given_up => Above::Client,
            None => Above::Untried,
        };
        let [holds, fails] = ends.map(|end| end.map(|level| level.rate));
        SearchResult { holds, fails, confirmed, above, given_up }
    }

    /// The lowest rate that fails.
    fn high(&self) -> Option<&Level> {
        let not = |level: &&Level| matches!(level.decision(), Decision::Fails | Decision::Limit);
        self.levels.iter().filter(not).min_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    /// The highest rate below it that holds.
    fn low(&self) -> Option<&Level> {
        let holds = self.below(self.high()).filter(|level| level.decision() == Decision::Holds);
        holds.max_by(|a, b| a.rate.total_cmp(&b.rate))
    }

    fn below(&self, high: Option<&Level>) -> impl Iterator<Item = &Level> {
        let limit = high.map_or(f64::INFINITY, |high| high.rate);
        self.levels.iter().filter(move |level| level.rate < limit)
    }

    /// A rate between the ends whose probes are not conclusive yet.
    fn undecided(&self) -> Option<&Level> {
        let low = self.low().map_or(0.0, |low| low.rate);
        self.below(self.high()).find(|level| level.rate > low && level.decision() == Decision::Open)
    }

    fn upwards(&self, low: &Level) -> Option<f64> {
        if self.aim.to.is_some_and(|to| low.rate >= to) {
            return None;
        }
        let held = self.levels.len();
        Some(self.allowed(low.rate * (1.0 + self.stride(held).min(1.0))))
    }

    fn downwards(&self, high: &Level) -> Option<f64> {
        if high.rate <= self.aim.from {
            return None;
        }
        if let Some(load) = high.disturbed_at() {
            return Some(self.allowed(load * CLEARLY_LESS));
        }
        let failed = self.levels.len();
        let step = high.rate * (1.0 - self.stride(failed).min(FARTHEST_DOWN));
        let next = self.served_short(high).map_or(step, |served| {
            let hint = served * (1.0 - self.aim.tolerance * HINT_MARGIN);
            hint.min(high.rate * (1.0 - self.stride(1)))
        });
        Some(self.allowed(next))
    }

    /// 1.5 times the tolerance, and three times more with each probe: two strides around a good estimate enclose the
    /// result within 3 tolerances, and four reach from the best case to half or twice of it.
    fn stride(&self, tried: usize) -> f64 {
        let grown = i32::try_from(tried.saturating_sub(1)).unwrap_or(i32::MAX);
        1.5 * self.aim.tolerance * 3f64.powi(grown.min(20))
    }

    fn between(&self, low: &Level, high: &Level) -> Option<f64> {
        if high.rate / low.rate - 1.0 <= self.aim.tolerance {
            return None;
        }
        let middle = rounded((low.rate * high.rate).sqrt());
        let next = self.hint().unwrap_or(middle);
        (next > low.rate && next < high.rate).then_some(next)
    }

    /// If the ends are far apart: a rate between them that the throughput of the failed one suggests, first just below
    /// that throughput, then just above.
    fn hint(&self) -> Option<f64> {
        let (low, high) = (self.low()?, self.high()?);
        let far = 1.0 + 2.0 * self.aim.tolerance;
        let served = self.served_short(high).filter(|_| self.hints_taken < MOST_HINTS)?;
        let margin = self.aim.tolerance * HINT_MARGIN;
        let sides = [served * (1.0 - margin), served * (1.0 + margin)].map(rounded);
        let fits = |hint: &f64| *hint > low.rate * (1.0 + margin) && *hint < high.rate / far;
        sides.into_iter().find(fits)
    }

    /// Whether no further probe can help: the host was disturbed at a rate for which it had been fit, or, if no rate is
    /// known to hold, under clearly less load as well.
    fn is_starved(&self) -> bool {
        if self.levels.iter().any(Level::was_disturbed_later) {
            return true;
        }
        let load = self.levels.iter().filter_map(Level::disturbed_at).reduce(f64::max);
        let Some(load) = load.filter(|_| self.low().is_none()) else { return false };
        let little = rounded(load * CLEARLY_LESS).max(self.aim.from);
        self.levels.iter().any(|level| level.is_only_disturbed() && level.rate <= little)
    }

    /// If there was a disturbance above a rate that was observed to hold only once: that rate, since another probe of
    /// it shows whether the load is the cause.
    fn unproven(&self, low: &Level, high: &Level) -> Option<f64> {
        let proven = |level: &Level| level.rate <= low.rate && level.is_confirmed();
        (high.disturbed_at().is_some() && !self.levels.iter().any(proven)).then_some(low.rate)
    }

    /// The throughput at a rate that was clearly higher.
    fn served_short(&self, high: &Level) -> Option<f64> {
        let is_short = high.served > 0.0 && high.served < high.rate * (1.0 - self.aim.tolerance / 4.0);
        is_short.then_some(high.served)
    }

    /// An end that was observed only once.
    fn unconfirmed(&self) -> Option<f64> {
        let ends = [self.low(), self.high()];
        ends.into_iter().flatten().find(|level| !level.is_confirmed()).map(|level| level.rate)
    }

    fn allowed(&self, rate: f64) -> f64 {
        let rate = rounded(rate).max(self.aim.from);
        self.aim.to.map_or(rate, |to| rate.min(to))
    }
}

/// Rounds to four digits, so that people can read and repeat it: the error is a twentieth of the finest tolerance.
fn rounded(rate: f64) -> f64 {
    let scale = 10f64.powf(3.0 - rate.abs().log10().floor());
    if scale.is_finite() { (rate * scale).round() / scale } else { rate }
}

/// Limits the hints, because a server whose throughput falls with the load makes each of them far too low.
const MOST_HINTS: usize = 4;

/// In tolerances: two probes this far below and above the throughput are as close as the result requires.
const HINT_MARGIN: f64 = 0.45;

/// A host that is starved by the load has time to spare at half of it.
const CLEARLY_LESS: f64 = 0.5;

/// At most down to 30 % at once: without a bracket, three such steps reach a thirtieth of the estimate.
const FARTHEST_DOWN: f64 = 0.7;
