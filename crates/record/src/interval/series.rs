//! The histograms of an interval by name: what each holds, and what its file is called.

use super::Interval;
use crate::durations::{COARSE_DIGITS, DIGITS};
use crate::outcome::Outcome;
use crate::phase::Phase;

/// What one histogram of an interval holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    Response,
    Service,
    Phase(Phase),
    /// Ages of failed requests.
    Failed(Outcome),
    /// How late this client was for failed requests.
    FailedLag(Lag),
    /// How late a thread of this client was that only sleeps: no part of any request.
    Hiccup,
    /// Of one target alone, in a run of several.
    Target(u16, TargetSeries),
    /// Of one journey as a whole.
    Journey(u16, JourneySeries),
}

/// A lateness of this client's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lag {
    /// Behind the schedule.
    Schedule,
    /// Behind the responses.
    Client,
}

impl Lag {
    pub const ALL: [Lag; 2] = [Lag::Schedule, Lag::Client];

    /// The phase that it is.
    pub fn phase(self) -> Phase {
        match self {
            Lag::Schedule => Phase::ScheduleLag,
            Lag::Client => Phase::ClientLag,
        }
    }
}

units::named_enum! {
    /// What one histogram of a target holds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TargetSeries {
        Response = "response",
        Service = "service",
        /// Ages of all that failed.
        Failed = "failed",
    }
}

units::named_enum! {
    /// What one histogram of a journey holds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum JourneySeries {
        /// First request intended to last response read, of the units that ended `ok`.
        Response = "response",
        /// Ages of the units that failed.
        Failed = "failed",
    }
}

/// Targets below this number have histograms of three significant digits, those from it on of two: an eighth of the
/// memory.
const FINE_TARGETS: usize = 100;

/// How many significant digits the histograms of the target with this number have.
pub(super) fn target_digits(number: usize) -> u8 {
    if number < FINE_TARGETS { DIGITS } else { COARSE_DIGITS }
}

impl Series {
    /// How many significant digits the histogram has.
    pub(crate) fn digits(self) -> u8 {
        match self {
            Series::Target(target, _) => target_digits(usize::from(target)),
            _ => DIGITS,
        }
    }

    /// Every histogram that `interval` can hold, those of its targets and journeys included.
    pub fn of(interval: &Interval) -> impl Iterator<Item = Series> + use<> {
        let target = |target| TargetSeries::ALL.map(|of| Series::Target(target, of));
        let journey = |journey| JourneySeries::ALL.map(|of| Series::Journey(journey, of));
        let targets = (0..=u16::MAX).take(interval.kinds().len()).flat_map(target);
        let journeys = (0..=u16::MAX).take(interval.journeys().len()).flat_map(journey);
        Series::all().chain(targets).chain(journeys)
    }

    /// Every histogram of the run as a whole.
    pub fn all() -> impl Iterator<Item = Series> {
        let failed = Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok);
        [Series::Response, Series::Service]
            .into_iter()
            .chain(Phase::ALL.into_iter().map(Series::Phase))
            .chain(failed.map(Series::Failed))
            .chain(Lag::ALL.into_iter().map(Series::FailedLag))
            .chain([Series::Hiccup])
    }

    /// `response`, `service`, `phase-wait`, `outcome-reset`: the name of its file without `.hlog`.
    pub fn name(self) -> String {
        match self {
            Series::Response => "response".to_owned(),
            Series::Service => "service".to_owned(),
            Series::Phase(phase) => format!("phase-{}", phase.name()),
            Series::Failed(outcome) => format!("outcome-{}", outcome.name()),
            Series::FailedLag(lag) => format!("failed-{}", lag.phase().name()),
            Series::Hiccup => "hiccup".to_owned(),
            Series::Target(target, of) => format!("target-{target}-{}", of.name()),
            Series::Journey(journey, of) => format!("journey-{journey}-{}", of.name()),
        }
    }

    /// The series of a log by its name without `.hlog`; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<Series> {
        match name.split_once('-') {
            None if name == "response" => Some(Series::Response),
            None if name == "service" => Some(Series::Service),
            None if name == "hiccup" => Some(Series::Hiccup),
            Some(("phase", phase)) => Phase::from_name(phase).map(Series::Phase),
            Some(("outcome", outcome)) => {
                Outcome::from_name(outcome).filter(|&outcome| outcome != Outcome::Ok).map(Series::Failed)
            }
            Some(("failed", phase)) => {
                Lag::ALL.into_iter().find(|lag| lag.phase().name() == phase).map(Series::FailedLag)
            }
            Some(("target", rest)) => {
                let (target, of) = rest.split_once('-')?;
                let of = TargetSeries::from_name(of)?;
                let series = Series::Target(target.parse().ok()?, of);
                // One name each: no sign and no zero in front.
                (series.name() == name).then_some(series)
            }
            Some(("journey", rest)) => {
                let (journey, of) = rest.split_once('-')?;
                let of = JourneySeries::from_name(of)?;
                let series = Series::Journey(journey.parse().ok()?, of);
                (series.name() == name).then_some(series)
            }
            _ => None,
        }
    }
}
