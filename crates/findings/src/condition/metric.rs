//! The figures that a condition can name.

use record::{Outcome, Phase};

/// One figure of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    Time(Of, Statistic),
    /// `ok` responses within the window, per second.
    Throughput,
    /// Completed journeys within the window, per second.
    JourneyRate,
    SentRate,
    ScheduledRate,
    /// Requests that did not end `ok`, as a share of the scheduled ones.
    ErrorShare,
    Scheduled,
    Sent,
    Failed,
    ConnectionsOpened,
    /// Requests with this outcome; if the limit is a share, their share of the scheduled ones.
    Outcome(Outcome),
    /// Responses with this application code; if the limit is a share, their share of the scheduled requests.
    Code(u16),
}

/// The duration that a statistic is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Response,
    Service,
    Phase(Phase),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// Between 0 and 1.
    Quantile(f64),
    Mean,
    Max,
}

/// The unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Time,
    Rate,
    Share,
    Count,
    ShareOrCount,
}

/// Names without a dot, except those that a statistic follows.
const PLAIN: [(&str, Metric); 11] = [
    ("throughput", Metric::Throughput),
    ("ok_rate", Metric::Throughput),
    ("journey_rate", Metric::JourneyRate),
    ("sent_rate", Metric::SentRate),
    ("scheduled_rate", Metric::ScheduledRate),
    ("error_share", Metric::ErrorShare),
    ("scheduled", Metric::Scheduled),
    ("sent", Metric::Sent),
    ("failed", Metric::Failed),
    ("ok", Metric::Outcome(Outcome::Ok)),
    ("connections_opened", Metric::ConnectionsOpened),
];

pub(super) fn plain(name: &str) -> Option<Metric> {
    PLAIN.iter().find(|(known, _)| *known == name).map(|&(_, metric)| metric)
}

pub(super) fn timed(name: &str) -> Option<Of> {
    match name {
        "response" => Some(Of::Response),
        "service" => Some(Of::Service),
        _ => Phase::from_name(name).map(Of::Phase),
    }
}

/// All names that are valid before a dot or an operator, for guessing what a typo meant.
pub(super) fn heads() -> impl Iterator<Item = &'static str> {
    let phases = Phase::ALL.into_iter().map(Phase::name);
    let plain = PLAIN.into_iter().map(|(name, _)| name);
    ["response", "service", "outcome", "code", "request", "journey"].into_iter().chain(phases).chain(plain)
}

impl Metric {
    pub(super) fn unit(self) -> Unit {
        match self {
            Metric::Time(..) => Unit::Time,
            Metric::Throughput | Metric::JourneyRate | Metric::SentRate | Metric::ScheduledRate => Unit::Rate,
            Metric::ErrorShare => Unit::Share,
            Metric::Scheduled | Metric::Sent | Metric::ConnectionsOpened => Unit::Count,
            Metric::Failed | Metric::Outcome(_) | Metric::Code(_) => Unit::ShareOrCount,
        }
    }
}
