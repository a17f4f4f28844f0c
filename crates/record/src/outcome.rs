//! How one request ended, where, and whose fault it was. One vocabulary for all protocols.

use crate::phase::Phase;

units::named_enum! {
    /// How a scheduled request ended. Every one ends in exactly one of these.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Outcome {
        /// Answered, and every check passed.
        Ok = "ok",
        /// Answered with an error of the application: HTTP status ≥ 400 unless accepted, SQL error, RESP error.
        AppError = "app_error",
        /// Answered, but not with what was expected.
        CheckFailed = "check_failed",
        /// Due while as many requests as allowed were already in progress or queueing.
        QueueFull = "queue_full",
        /// No connection became free within the checkout timeout.
        CheckoutTimeout = "checkout_timeout",
        /// The name could not be looked up.
        ResolveFailed = "resolve_failed",
        /// The port answered that nobody listens.
        ConnectRefused = "connect_refused",
        /// Nothing answered the connect within the connect timeout.
        ConnectTimeout = "connect_timeout",
        /// The connection could not be made for another reason.
        ConnectFailed = "connect_failed",
        /// The TLS handshake failed.
        TlsFailed = "tls_failed",
        /// The login failed.
        AuthFailed = "auth_failed",
        /// Sent, and not answered in full within the request timeout.
        RequestTimeout = "request_timeout",
        /// The peer closed the connection before the first byte of the response.
        ClosedBeforeResponse = "closed_before_response",
        /// The peer closed the connection within the response.
        IncompleteResponse = "incomplete_response",
        /// The connection was reset.
        Reset = "reset",
        /// The response was not in the protocol's form, or over a limit.
        ProtocolError = "protocol_error",
        /// Due, but the run ended before it was sent.
        NotSent = "not_sent",
        /// Sent, but the run ended before it was answered.
        InFlight = "in_flight",
        /// None of the above. A run should have none.
        Unknown = "unknown",
    }
}

impl Outcome {
    /// The caller was left without a complete response, so the time on record is a lower bound of what it would have
    /// waited for one. Percentiles of the response that fall among these print as "> T": a server that drops
    /// what it cannot answer in time does not look fast by it.
    pub const fn is_unanswered(self) -> bool {
        !matches!(self, Outcome::Ok | Outcome::AppError | Outcome::CheckFailed)
    }
}

units::named_enum! {
    /// Whose fault an outcome was. `Undecided` where the caller's side alone cannot tell.
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
    /// A failure whose blame follows from what happened and where. METHODOLOGY.md gives the reasons.
    pub fn new(outcome: Outcome, phase: Phase) -> Failure {
        Failure { outcome, phase, blame: usual_blame(outcome, phase) }
    }

    /// A failure with evidence of its own for the blame.
    pub fn blamed(outcome: Outcome, phase: Phase, blame: Blame) -> Failure {
        Failure { outcome, phase, blame }
    }
}

fn usual_blame(outcome: Outcome, phase: Phase) -> Blame {
    match outcome {
        Outcome::QueueFull | Outcome::CheckoutTimeout => Blame::Pool,
        Outcome::ResolveFailed => Blame::Network,
        // Whoever answers for the server's address is the server's side, a proxy before it included.
        Outcome::AppError
        | Outcome::CheckFailed
        | Outcome::ConnectRefused
        | Outcome::TlsFailed
        | Outcome::AuthFailed
        | Outcome::ClosedBeforeResponse
        | Outcome::IncompleteResponse
        | Outcome::Reset
        | Outcome::ProtocolError => Blame::Server,
        // Due and never sent: what it was waiting for decides.
        Outcome::NotSent => match phase {
            Phase::ScheduleLag => Blame::Client,
            Phase::PoolWait => Blame::Pool,
            _ => Blame::Undecided,
        },
        // Silence: a lost packet and a dead server look alike from here.
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
