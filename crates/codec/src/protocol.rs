//! What a run sends: requests that stand alone, and journeys of requests that follow each other.

use units::Nanos;

use crate::session::{Judgement, Session};

/// What one run sends, and how. Shared, read-only, by all workers.
pub trait Protocol: Send + Sync {
    /// What one unit of demand is about to ask for: an index where each request stands alone, a whole state
    /// where one response decides the next request. It travels with its request.
    type Journey: Send;

    /// The client side of one connection.
    type Session: Session<Journey = Self::Journey>;

    /// The client side of a new connection to `origin`. Whatever a session knows of its server (its login, its
    /// prepared statements) is lost with it: the next connection of the same slot has a new one.
    fn session(&self, origin: Origin) -> Self::Session;

    /// The first request of unit `n` of the run's demand.
    ///
    /// It depends on `n` alone, so the mix is the same whatever the number of workers.
    fn begin(&self, n: u64) -> Self::Journey;

    /// Where the journey's current request goes, among whose figures it counts, and which connection it may use.
    fn route(&self, journey: &Self::Journey) -> Route;

    /// How many kinds of requests the run tells apart: every [`Route::kind`] is below it.
    fn kinds(&self) -> usize;

    /// How many journeys the run tells apart: every [`Route::journey`] is below it. 0 where no request follows
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

/// One of the run's peers, by its place in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Origin(pub u16);

/// Where a request goes, and among whose figures it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    /// The peer.
    pub origin: Origin,
    /// The kind of request, below [`Protocol::kinds`].
    pub kind: u16,
    /// The journey that it is a request of, below [`Protocol::journeys`]; `None` where it stands alone. The same for
    /// all requests of one unit.
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
    /// The one that its journey has leased: from the first request that asks for it until one that does not, or that
    /// goes to another origin, or the journey's end. Nobody else's request is put on it in the meantime, think times
    /// included, and only the first request waits for the pool.
    Leased,
}

/// How a request of a journey ended.
#[derive(Debug)]
pub enum Ended<'a, S> {
    /// With a response that the session has read just now.
    Answered {
        /// The session that read it.
        session: &'a mut S,
        /// Whether the response was the wanted one.
        judgement: Judgement,
    },
    /// Without a response: a timeout, a broken connection, a refused login. A lease, if there was one, is over.
    Unanswered,
}

/// What follows a request of a journey.
#[derive(Debug)]
pub enum Next<J> {
    /// Nothing: its user is free.
    End,
    /// Another request, intended `think` after the end of the last one.
    Then {
        /// The journey, at that request.
        journey: J,
        /// From the end of the last request to the begin of this one.
        think: Nanos,
    },
    /// The same unit again from a place of the protocol's choice (a `ROLLBACK`, the first statement), because what
    /// failed may succeed then. Counted as a retry; the request that failed keeps its outcome, and the response of the
    /// whole journey goes on counting from its first intended start.
    Retry {
        /// The journey, at the request to go on with.
        journey: J,
        /// From the end of the last request to the begin of this one.
        think: Nanos,
    },
}
