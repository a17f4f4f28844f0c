//! The figures that a condition can name.

use record::{Outcome, Phase};

/// One figure of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    Time(Of, Statistic),
    /// `ok` answers within the window, a second of it.
    Throughput,
    SentRate,
    ScheduledRate,
    /// Of what was scheduled, what did not end `ok`.
    ErrorShare,
    Scheduled,
    Sent,
    Failed,
    ConnectionsOpened,
    /// Requests that ended so; their share of what was scheduled where the limit is a share.
    Outcome(Outcome),
    /// Answers with this code of the application; their share of what was scheduled where the limit is a share.
    Code(u16),
}

/// Whose distribution.
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

/// What a limit may be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Time,
    Rate,
    Share,
    Count,
    ShareOrCount,
}

/// Names without a dot, but for those that a statistic follows.
const PLAIN: [(&str, Metric); 10] = [
    ("throughput", Metric::Throughput),
    ("ok_rate", Metric::Throughput),
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

/// Everything that may stand before a dot or an operator, to guess what a slip meant.
pub(super) fn heads() -> impl Iterator<Item = &'static str> {
    let phases = Phase::ALL.into_iter().map(Phase::name);
    let plain = PLAIN.into_iter().map(|(name, _)| name);
    ["response", "service", "outcome", "code"].into_iter().chain(phases).chain(plain)
}

impl Metric {
    pub(super) fn unit(self) -> Unit {
        match self {
            Metric::Time(..) => Unit::Time,
            Metric::Throughput | Metric::SentRate | Metric::ScheduledRate => Unit::Rate,
            Metric::ErrorShare => Unit::Share,
            Metric::Scheduled | Metric::Sent | Metric::ConnectionsOpened => Unit::Count,
            Metric::Failed | Metric::Outcome(_) | Metric::Code(_) => Unit::ShareOrCount,
        }
    }
}
