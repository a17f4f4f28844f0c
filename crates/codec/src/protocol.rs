//! What a run sends: single requests, and journeys of requests that follow each other.

use units::Nanos;

use crate::session::{Judgement, Session};

/// What one run sends, and how. Shared, read-only, by all workers.
pub trait Protocol: Send + Sync {
    /// What one unit of the load sends next: an index if requests are independent, a complete state if a response
    /// decides about the next request. It is stored with its request.
    type Journey: Send;

    /// The client side of one connection.
    type Session: Session<Journey = Self::Journey>;

    /// The client's side of a new connection to `origin`. A session's state (its login, its prepared statements) is
    /// lost with it: the next connection of the same slot has a new session.
    fn session(&self, origin: Origin) -> Self::Session;

    /// The first request of unit `n` of the run's load.
    ///
    /// Depends on `n` alone, so the mix is the same for any number of workers.
    fn begin(&self, n: u64) -> Self::Journey;

    /// Where the journey's current request goes, in whose figures it is counted, and which connection it may use.
    fn route(&self, journey: &Self::Journey) -> Route;

    /// How many kinds of requests have separate figures: every [`Route::kind`] is below this.
    fn kinds(&self) -> usize;

    /// How many journeys have separate figures: every [`Route::journey`] is below this. 0 if no request follows
    /// another.
    fn journeys(&self) -> usize {
        0
    }

    /// What follows the journey's current request, which has ended.
    fn advance(&self, journey: Self::Journey, ended: Ended<'_, Self::Session>) -> Next<Self::Journey> {
        let _ = (journey, ended);
        Next::End
    }
}

/// A server of the run, as an index into the plan's list of peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Origin(pub u16);

/// Where a request goes, and in whose figures it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    /// The peer.
    pub origin: Origin,
    /// The kind of request, below [`Protocol::kinds`].
    pub kind: u16,
    /// The journey that it belongs to, below [`Protocol::journeys`]; `None` for a single request. The same for all
    /// requests of one unit.
    pub journey: Option<u16>,
    /// Which connection it may use.
    pub connection: ConnectionUse,
}

/// Which connection a request may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ConnectionUse {
    /// Any connection to its origin that has room.
    #[default]
    Any,
    /// The connection that its journey has leased. A lease lasts from the first request that needs it until a request
    /// that does not, or that goes to another origin, or the end of the journey. No other request is assigned to the
    /// connection in the meantime, think times included, and only the first request waits for the pool.
    Leased,
}

/// How a request of a journey ended.
#[derive(Debug)]
pub enum Ended<'a, S> {
    /// With a response that the session has just read.
    Answered {
        /// The session that read it.
        session: &'a mut S,
        /// Whether the response was the expected one.
        judgement: Judgement,
    },
    /// Without a response: a timeout, a broken connection, a refused login. If there was a lease, it is over.
    Unanswered,
}

/// What follows a request of a journey.
#[derive(Debug)]
pub enum Next<J> {
    /// Nothing: its virtual user is free.
    End,
    /// Another request, intended `think` after the end of the last one.
    Then {
        /// The journey, at that request.
        journey: J,
        /// From the end of the last request to the intended start of this one.
        think: Nanos,
    },
    /// The same unit again, from a point that the protocol chooses (a `ROLLBACK`, the first statement), because what
    /// failed may succeed now. Counted as a retry: the failed request keeps its outcome, and the response time of the
    /// journey still counts from its first intended start.
    Retry {
        /// The journey, at the request to continue with.
        journey: J,
        /// From the end of the last request to the intended start of this one.
        think: Nanos,
    },
}
