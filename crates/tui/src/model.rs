//! The figures of the live view, added up as intervals come. No terminal and no clock.

use std::collections::VecDeque;

use engine::{Change, Order, Tempo};
use findings::IntervalRates;
use record::document::{Load, Stamps};
use record::{Failure, Interval, Phase, Second};
use units::Nanos;

use super::heat::{self, Column};
use super::tally::{RecentPhase, RecentResponse, Response, ResponseValues};

/// Maximum number of seconds in the sparklines.
const SPARKS: usize = 240;

/// Everything about a run that is on the screen.
#[derive(Debug)]
pub struct Model {
    pub url: String,
    pub load: Load,
    pub stamps: Stamps,
    pub drain: Option<Nanos>,
    /// Time since the run's zero, on the clock.
    pub now: Nanos,
    /// How long requests are scheduled for, as of now; `None` if only their number ends the run.
    pub window: Option<Nanos>,
    pub steering: Steering,
    pub beats: VecDeque<IntervalRates>,
    pub heat: VecDeque<Column>,
    pub totals: Totals,
    pub whole: Response,
    pub recent: RecentResponse,
    pub service: RecentPhase,
    pub phases: [RecentPhase; Phase::COUNT],
    /// All failures in the whole run, most frequent first.
    pub failures: Vec<(Failure, u64)>,
}

/// What the user has changed in the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steering {
    pub paused: bool,
    pub tempo: Tempo,
    pub ended: bool,
}

/// Sums over the whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub scheduled: u64,
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    /// `None` without journeys.
    pub journeys: Option<u64>,
    pub unstamped: u64,
    pub stamps_moved: u64,
    pub longest_stall: Nanos,
    /// When the longest stall happened, as an offset from the run's zero.
    pub stalled_at: Nanos,
}

impl Model {
    /// A model without any second. `drain` is how long the last responses are waited for; `None` means until their timeouts.
    pub fn new(url: &str, load: Load, stamps: Stamps, drain: Option<Nanos>) -> Model {
        Model {
            url: record::escape_text(url),
            window: load.duration_ns.map(Nanos),
            load,
            stamps,
            drain,
            now: Nanos::ZERO,
            steering: Steering { paused: false, tempo: Tempo::AS_PLANNED, ended: false },
            beats: VecDeque::new(),
            heat: VecDeque::new(),
            totals: Totals::default(),
            whole: Response::default(),
            recent: RecentResponse::default(),
            service: RecentPhase::default(),
            phases: Default::default(),
            failures: Vec::new(),
        }
    }

    /// Adds an interval that has ended.
    pub fn add(&mut self, interval: &Interval, second: &Second) {
        self.add_counts(second);
        let responses = ResponseValues::of(interval);
        self.whole.add(&responses);
        push(&mut self.heat, heat::KEPT, Column::of(&responses.ok, second.failed > 0));
        self.recent.push(responses);
        self.service.push(interval.service());
        for (recent, phase) in self.phases.iter_mut().zip(Phase::ALL) {
            recent.push(interval.phase(phase));
        }
        for &(failure, count) in interval.failures() {
            match self.failures.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, sum)) => *sum += count,
                None => self.failures.push((failure, count)),
            }
        }
        self.failures.sort_by_key(|&(failure, count)| (std::cmp::Reverse(count), failure));
    }

    fn add_counts(&mut self, second: &Second) {
        let totals = &mut self.totals;
        totals.scheduled += second.scheduled;
        totals.sent += second.sent;
        totals.ok += second.ok;
        totals.failed += second.failed;
        let journeys: u64 = second.journeys.iter().map(|journey| journey.ok).sum();
        if !second.journeys.is_empty() {
            totals.journeys = Some(totals.journeys.unwrap_or(0) + journeys);
        }
        totals.unstamped += second.unstamped;
        totals.stamps_moved += second.stamps_moved;
        let stall = Nanos(second.worker_stall_max_ns);
        if stall > totals.longest_stall {
            (totals.longest_stall, totals.stalled_at) = (stall, Nanos(second.start_ns));
        }
        if !findings::is_whole(second) {
            return;
        }
        push(&mut self.beats, SPARKS, IntervalRates::of(second));
    }

    /// Records a change that the user has made, which takes effect now.
    pub fn steer(&mut self, change: Change) {
        match change.order {
            Order::Pause => self.steering.paused = true,
            Order::Resume => self.steering.paused = false,
            Order::Tempo(tempo) => self.steering.tempo = tempo,
            Order::End => self.steering.ended = true,
        }
    }

    /// The latest interval.
    pub fn latest(&self) -> IntervalRates {
        self.beats.back().copied().unwrap_or_default()
    }

    /// The currently requested rate of an open loop.
    pub fn asked_per_s(&self) -> Option<f64> {
        self.load.rate_per_s.map(|per_s| per_s * self.steering.tempo.factor())
    }

    /// Whether the run only waits for responses: nothing more becomes due.
    pub fn is_draining(&self) -> bool {
        self.window.is_some_and(|window| self.now >= window)
            || self.load.request_limit.is_some_and(|limit| self.totals.scheduled >= limit)
    }
}

fn push<T>(list: &mut VecDeque<T>, most: usize, item: T) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(item);
}
