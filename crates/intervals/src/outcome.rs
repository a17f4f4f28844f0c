//! How one request ended, in which phase, and who caused it. One vocabulary for all protocols.

use crate::phase::Phase;

units::named_enum! {
    /// How a scheduled request ended. Every one ends in exactly one of these.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Outcome {
        /// Got a response, and every check passed.
        Ok = "ok",
        /// Got an error response of the application: HTTP status ≥ 400 unless accepted, SQL error, RESP error.
        AppError = "app_error",
        /// Got a response, but not the expected one.
        CheckFailed = "check_failed",
        /// Due while the maximum number of requests was already in flight or queued.
        QueueFull = "queue_full",
        /// No connection became free within the checkout timeout.
        CheckoutTimeout = "checkout_timeout",
        /// The name could not be looked up.
        ResolveFailed = "resolve_failed",
        /// Nothing listens on the port.
        ConnectRefused = "connect_refused",
        /// There was no reply to the connect within the connect timeout.
        ConnectTimeout = "connect_timeout",
        /// The connection could not be established for another reason.
        ConnectFailed = "connect_failed",
        /// The TLS handshake failed.
        TlsFailed = "tls_failed",
        /// The login failed.
        AuthFailed = "auth_failed",
        /// Sent, but the response was not complete within the request timeout.
        RequestTimeout = "request_timeout",
        /// The peer closed the connection before the first byte of the response.
        ClosedBeforeResponse = "closed_before_response",
        /// The peer closed the connection within the response.
        IncompleteResponse = "incomplete_response",
        /// The connection was reset.
        Reset = "reset",
        /// The response violates the protocol, or exceeds a limit.
        ProtocolError = "protocol_error",
        /// Due, but the run ended before it was sent.
        NotSent = "not_sent",
        /// Sent, but the run ended before the response was complete.
        InFlight = "in_flight",
        /// None of the above. A run should have none.
        Unknown = "unknown",
    }
}

impl Outcome {
    /// Whether the request got no complete response, so that the recorded time is a lower bound of its response time.
    /// Percentiles of the response time that are among these requests are printed as "> T", so a server that drops what
    /// it cannot handle in time does not look fast.
    pub const fn is_unanswered(self) -> bool {
        !matches!(self, Outcome::Ok | Outcome::AppError | Outcome::CheckFailed)
    }

    /// The outcome that explains why requests of a run did not succeed; `count` returns how many ended in each. `None`
    /// if all succeeded.
    ///
    /// Requests that never got a connection waited for those that had one. If most of the latter failed, that failure
    /// is the cause, however many requests were queued.
    pub fn cause(count: impl Fn(Outcome) -> u64) -> Option<Outcome> {
        let never_sent = |outcome: &Outcome| {
            matches!(outcome, Outcome::QueueFull | Outcome::CheckoutTimeout | Outcome::NotSent)
        };
        let failed =
            || Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Ok && count(outcome) > 0);
        let had_connection = failed().filter(|outcome| !never_sent(outcome));
        let is_cause = had_connection.clone().map(&count).sum::<u64>() > count(Outcome::Ok);
        // Of equal counts, a failure explains more than requests that were still in flight.
        let weight = |outcome: &Outcome| (count(*outcome), *outcome != Outcome::InFlight);
        if is_cause { had_connection.rev().max_by_key(weight) } else { failed().rev().max_by_key(weight) }
    }

    /// Whether no connection could be opened: name lookup, connect, TLS handshake or login failed.
    pub const fn is_unconnected(self) -> bool {
        matches!(
            self,
            Outcome::ResolveFailed
                | Outcome::ConnectRefused
                | Outcome::ConnectTimeout
                | Outcome::ConnectFailed
                | Outcome::TlsFailed
                | Outcome::AuthFailed
        )
    }
}

units::named_enum! {
    /// Who caused an outcome. `Undecided` if the client's side alone cannot decide it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Blame {
        Client = "client",
        Pool = "pool",
        Network = "network",
        Server = "server",
        Undecided = "undecided",
    }
}

/// A failure with the phase it happened in and its blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Failure {
    pub outcome: Outcome,
    pub phase: Phase,
    pub blame: Blame,
}

impl Failure {
    /// A failure whose blame follows from the outcome and the phase. METHODOLOGY.md gives the reasons.
    pub fn new(outcome: Outcome, phase: Phase) -> Failure {
        Failure { outcome, phase, blame: usual_blame(outcome, phase) }
    }

    /// A failure whose blame is known from other evidence.
    pub fn blamed(outcome: Outcome, phase: Phase, blame: Blame) -> Failure {
        Failure { outcome, phase, blame }
    }
}

fn usual_blame(outcome: Outcome, phase: Phase) -> Blame {
    match outcome {
        Outcome::QueueFull | Outcome::CheckoutTimeout => Blame::Pool,
        Outcome::ResolveFailed => Blame::Network,
        // Whatever answers at the server's address counts as the server, including a proxy in front of it.
        Outcome::AppError
        | Outcome::CheckFailed
        | Outcome::ConnectRefused
        | Outcome::TlsFailed
        | Outcome::AuthFailed
        | Outcome::ClosedBeforeResponse
        | Outcome::IncompleteResponse
        | Outcome::Reset
        | Outcome::ProtocolError => Blame::Server,
        // Due and never sent: the blame depends on what it was waiting for.
        Outcome::NotSent => match phase {
            Phase::ScheduleLag => Blame::Client,
            Phase::PoolWait => Blame::Pool,
            _ => Blame::Undecided,
        },
        // Silence: a lost packet and a dead server cannot be distinguished from here.
        Outcome::ConnectTimeout
        | Outcome::ConnectFailed
        | Outcome::RequestTimeout
        | Outcome::InFlight
        | Outcome::Ok
        | Outcome::Unknown => Blame::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the report about a server that hangs advises to use more connections.
    #[test]
    fn what_queued_behind_failures_is_not_their_cause() {
        use Outcome::{InFlight, NotSent, Ok, QueueFull, RequestTimeout, Reset};
        for (counts, cause) in [
            // A server that hangs: ten connections, each with one timeout after another.
            (&[(RequestTimeout, 90), (NotSent, 910)][..], Some(RequestTimeout)),
            (&[(InFlight, 10), (NotSent, 990)], Some(InFlight)),
            (&[(RequestTimeout, 10), (InFlight, 10), (QueueFull, 500)], Some(RequestTimeout)),
            // A server that is too slow for the rate, and resets a few.
            (&[(Ok, 1_000), (Reset, 3), (NotSent, 50)], Some(NotSent)),
            (&[(Ok, 1_000), (Reset, 3)], Some(Reset)),
            (&[(Ok, 7)], None),
        ] {
            let count = |outcome| counts.iter().find(|(of, _)| *of == outcome).map_or(0, |(_, count)| *count);
            assert_eq!(Outcome::cause(count), cause, "{counts:?}");
        }
    }

    #[test]
    fn names_are_unique_and_read_back() {
        for (i, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, i);
            assert_eq!(Outcome::from_name(outcome.name()), Some(outcome));
        }
        for blame in Blame::ALL {
            assert_eq!(Blame::from_name(blame.name()), Some(blame));
        }
    }
}
