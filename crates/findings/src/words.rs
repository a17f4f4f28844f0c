//! The words for quantiles, outcomes and typical values.

use record::Outcome;
use record::Phase;
use record::document::{
    Distribution, Document, EffectiveOption, OptionSource, PhaseResult, QuantileValue, Results, Subject,
};
use units::Nanos;

use crate::view::{Cell, Value};

/// `p50`, `p99.9`.
pub fn quantile_name(q: f64) -> String {
    // At most four decimal places: 0.9999 · 100 is not 99.99 in binary.
    format!("p{}", (q * 1e6).round() / 1e4)
}

/// What a run connects to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Port,
    /// A Unix domain socket.
    Socket,
}

impl Peer {
    /// The peer of a run. A run that reached no server has no address, so the URL and the options count too.
    pub fn of(document: &Document) -> Peer {
        let Subject { url, address, .. } = &document.subject;
        let is_socket =
            [Some(url), address.as_ref()].into_iter().flatten().any(|text| text.starts_with("unix:"));
        // A default has a value, too: `none`.
        let is_named = |unix: &EffectiveOption| {
            matches!(unix.source, OptionSource::Given | OptionSource::Set | OptionSource::File)
        };
        let is_given = document.envelope.options.get("unix").is_some_and(is_named);
        if is_socket || is_given { Peer::Socket } else { Peer::Port }
    }
}

/// The meaning of an outcome of requests to `peer`, in words. At most 33 characters, to fit a column.
pub fn meaning(outcome: &str, peer: Peer) -> &'static str {
    match Outcome::from_name(outcome) {
        Some(Outcome::ConnectRefused) if peer == Peer::Socket => "nothing listens on the socket",
        Some(Outcome::Ok) => "response passed every check",
        Some(Outcome::AppError) => "response was an error",
        Some(Outcome::CheckFailed) => "response not as expected",
        Some(Outcome::QueueFull) => "too many in flight or queued",
        Some(Outcome::CheckoutTimeout) => "no connection free in time",
        Some(Outcome::ResolveFailed) => "the name lookup failed",
        Some(Outcome::ConnectRefused) => "nothing listens on the port",
        Some(Outcome::ConnectTimeout) => "no reply to connect in time",
        Some(Outcome::ConnectFailed) => "the connection failed",
        Some(Outcome::TlsFailed) => "the TLS handshake failed",
        Some(Outcome::AuthFailed) => "the login failed",
        Some(Outcome::RequestTimeout) => "sent, no response in time",
        Some(Outcome::ClosedBeforeResponse) => "closed before the response",
        Some(Outcome::IncompleteResponse) => "closed during the response",
        Some(Outcome::Reset) => "the connection was reset",
        Some(Outcome::ProtocolError) => "response breaks the protocol",
        Some(Outcome::NotSent) => "due, not sent when the run ended",
        Some(Outcome::InFlight) => "sent, but the run ended first",
        Some(Outcome::Unknown) | None => "not one of the known outcomes",
    }
}

/// The typical value for a sentence: the median if there are enough samples, otherwise the mean.
pub fn typical(distribution: &Distribution) -> Option<Nanos> {
    match value_of(distribution, 0.5) {
        Some(QuantileValue::Known { ns, .. }) => Some(Nanos(ns)),
        _ => distribution.mean_ns.map(Nanos),
    }
}

/// The percentile `q`; `None` if it is not one of [`crate::QUANTILES`].
pub fn value_of(distribution: &Distribution, q: f64) -> Option<QuantileValue> {
    distribution.quantiles.iter().find(|quantile| quantile.q == q).map(|quantile| quantile.value)
}

/// A percentile as a cell of a view.
pub(crate) fn quantile_cell(value: QuantileValue) -> Cell {
    match value {
        QuantileValue::Known { ns, low_ns, high_ns } => {
            Cell::Interval { value: Value::Ns(ns), low: Value::Ns(low_ns), high: high_ns.map(Value::Ns) }
        }
        QuantileValue::Above { ns } => Cell::Above(Value::Ns(ns)),
        QuantileValue::TooFew { needed } => Cell::TooFew { needed },
    }
}

/// The percentile `q` of a distribution as a cell; absent if the distribution does not have it.
pub(crate) fn percentile(distribution: &Distribution, q: f64) -> Cell {
    value_of(distribution, q).map_or_else(Cell::absent, quantile_cell)
}

/// The results of one phase.
pub fn phase(results: &Results, phase: Phase) -> Option<&PhaseResult> {
    results.phases.iter().find(|result| result.phase == phase.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_named_as_people_say_them() {
        let names = crate::QUANTILES.map(quantile_name);
        assert_eq!(names, ["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99"]);
    }

    #[test]
    fn every_outcome_has_its_meaning() {
        for outcome in Outcome::ALL {
            let known = meaning(outcome.name(), Peer::Port) != meaning("no such outcome", Peer::Port);
            assert!(known || outcome == Outcome::Unknown, "{outcome:?}");
        }
    }
}
