//! The histograms of an interval by name: what each contains, and the name of its file.

use super::Interval;
use crate::durations::{COARSE_DIGITS, DIGITS};
use crate::outcome::Outcome;
use crate::phase::Phase;

/// What one histogram of an interval contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Series {
    Response,
    Service,
    Phase(Phase),
    /// Ages of failed requests.
    Failed(Outcome),
    /// How late this client was for failed requests.
    FailedLag(Lag),
    /// How late a thread of this client woke up that only sleeps: not part of any request.
    Hiccup,
    /// A histogram of one target, if figures are kept per target.
    Target(u16, TargetSeries),
    /// A histogram of one journey as a whole.
    Journey(u16, JourneySeries),
}

/// A way in which this client can be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lag {
    /// Behind the schedule: `schedule_lag`.
    Schedule,
    /// Behind the responses: `client_lag`.
    Client,
}

impl Lag {
    pub const ALL: [Lag; 2] = [Lag::Schedule, Lag::Client];

    /// The phase that measures it.
    pub fn phase(self) -> Phase {
        match self {
            Lag::Schedule => Phase::ScheduleLag,
            Lag::Client => Phase::ClientLag,
        }
    }
}

units::named_enum! {
    /// What one histogram of a target contains.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum TargetSeries {
        Response = "response",
        Service = "service",
        /// Ages of all requests that failed.
        Failed = "failed",
    }
}

units::named_enum! {
    /// What one histogram of a journey contains.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum JourneySeries {
        /// From the intended start of the first request to the last response read, for the units that ended `ok`.
        Response = "response",
        /// Ages of the units that failed.
        Failed = "failed",
    }
}

/// Targets below this number have histograms with three significant digits, the others with two, which takes an eighth
/// of the memory.
const FINE_TARGETS: usize = 100;

/// The number of significant digits in the histograms of the target with this number.
pub(super) fn target_digits(number: usize) -> u8 {
    if number < FINE_TARGETS { DIGITS } else { COARSE_DIGITS }
}

impl Series {
    /// The number of significant digits in the histogram.
    pub fn digits(self) -> u8 {
        match self {
            Series::Target(target, _) => target_digits(usize::from(target)),
            _ => DIGITS,
        }
    }

    /// Every histogram that `interval` can have, including those of its targets and journeys.
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

    /// The name of its file without `.hlog`: `response`, `service`, `phase-wait`, `outcome-reset`.
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
                // Each series has one name: no sign and no leading zero.
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
