//! Runs whose servers cannot be reached: detecting them, and the line that explains why.

use record::Outcome;
use record::document::Document;
use units::Nanos;

/// Whether the run ended without a connection: every request failed before a server could take it.
pub fn nothing_reached(document: &Document) -> bool {
    let Some(results) = &document.results else { return false };
    let outcomes: Vec<_> = results.outcomes.iter().map(|row| Outcome::from_name(&row.outcome)).collect();
    let is_unconnected = |outcome: &Option<Outcome>| outcome.is_some_and(Outcome::is_unconnected);
    let is_unsent = |outcome: &Option<Outcome>| {
        matches!(outcome, Some(Outcome::QueueFull | Outcome::CheckoutTimeout | Outcome::NotSent))
    };
    outcomes.iter().any(is_unconnected)
        && outcomes.iter().all(|outcome| is_unconnected(outcome) || is_unsent(outcome))
}

/// One line: why no connection to `server` could be opened, and what to do.
pub fn unreachable(document: &Document, server: &str) -> String {
    let results = document.results.as_ref();
    let failures = results.into_iter().flat_map(|results| &results.outcomes);
    let named = failures.filter_map(|row| Some((row.count, Outcome::from_name(&row.outcome)?)));
    let worst = named.filter(|(_, outcome)| outcome.is_unconnected()).max_by_key(|(count, _)| *count);
    let Some((count, outcome)) = worst else { return "no server can be reached".to_owned() };
    let reasons = results.into_iter().flat_map(|results| &results.reasons);
    let reason = reasons.filter(|row| row.outcome == outcome.name()).max_by_key(|row| row.count);
    let reason = reason.map(|row| format!(": {}", row.reason)).unwrap_or_default();
    let what = match outcome {
        Outcome::ResolveFailed => format!("cannot resolve {server}; check the name."),
        Outcome::ConnectRefused => {
            format!("connection refused by {server}; is the server running on that port?")
        }
        Outcome::ConnectTimeout => {
            format!("no reply from {server} within the connect timeout; check the address and the firewalls.")
        }
        Outcome::TlsFailed => format!("TLS handshake with {server} failed{reason}."),
        Outcome::AuthFailed => format!("login at {server} failed{reason}."),
        _ => format!("cannot connect to {server}{reason}; check the address and the route to it."),
    };
    let elapsed = Nanos(document.time.elapsed_ns.unwrap_or(0));
    format!("{what} Stopped after {elapsed} and {count} failed attempts; --keep-trying continues such a run")
}
