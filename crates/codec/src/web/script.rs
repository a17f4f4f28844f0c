//! What a run requests, one request after the other, and what follows from the responses.
//!
//! A script knows no connections, HTTP versions or bytes. [`Turns`] is the simple one: independent requests, in turn by
//! weight.

use std::fmt;

use super::cycle::turns;
use super::outgoing::Rendered;
use super::request::{Request, RequestError};
use super::response::{Keep, ReceivedResponse};
use super::url::Url;
use crate::{FailedCheck, Next, Origin, Route};

/// What a run requests. Shared, read-only, by all workers.
pub trait Script: Send + Sync {
    /// What one unit of the load sends next; see [`Protocol::Journey`](crate::Protocol::Journey).
    type Journey: Send;

    /// What a journey takes from a response for its later requests.
    type Taken: Send + fmt::Debug;

    /// The first request of unit `n` of the run's load. Depends on `n` alone.
    fn begin(&self, n: u64) -> Self::Journey;

    /// The journey's current request.
    fn ask<'a>(&'a self, journey: &'a Self::Journey) -> Ask<'a>;

    /// Where that request goes, and in whose figures it is counted.
    fn route(&self, journey: &Self::Journey) -> Route;

    /// How many kinds of requests have separate figures.
    fn kinds(&self) -> usize;

    /// How many journeys have separate figures; see [`Protocol::journeys`](crate::Protocol::journeys).
    fn journeys(&self) -> usize {
        0
    }

    /// Takes what the journey needs from a response that was kept and passed every other check, or returns the check
    /// that it fails. `checks` is the value from its [`Ask`]. Called before the response is counted, so that a failure
    /// determines its outcome.
    fn take(&self, checks: u16, response: ReceivedResponse) -> Result<Self::Taken, FailedCheck>;

    /// What follows the journey's current request, which has ended. `taken` is what was taken from its response, if the
    /// response was good and was to be kept.
    fn advance(&self, journey: Self::Journey, taken: Option<Self::Taken>) -> Next<Self::Journey>;
}

/// One request of a journey, and what is expected of its response.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    pub request: Asked<'a>,
    /// The index of the checks to apply.
    pub checks: u16,
    pub keep: Keep,
}

/// A request, ready to be sent.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// One of the run's prepared requests, by index: its bytes are copied.
    Prepared(u32),
    /// Made for this journey: encoded when it is sent.
    Rendered(&'a Rendered),
}

/// Independent requests, in turn by weight. A journey is the index of its request.
#[derive(Debug)]
pub struct Turns {
    /// The request of each turn; unit `n` of a run takes turn `n` modulo the length of this list.
    turns: Vec<u32>,
    /// Where each request goes.
    routes: Vec<Route>,
    /// How many kinds of requests are distinguished.
    kinds: usize,
}

impl Turns {
    /// The turns of `requests`; each goes to its server in `origins`.
    pub(super) fn new(requests: &[Request], origins: &[Url]) -> Result<Turns, RequestError> {
        let weights: Vec<u32> = requests.iter().map(|request| request.weight).collect();
        let routes = (0..=u16::MAX).zip(requests).map(|(kind, request)| {
            let place = origins.iter().position(|origin| origin.same_origin(&request.url));
            let place = place.and_then(|place| u16::try_from(place).ok());
            let unknown = || RequestError::UnknownOrigin { url: request.url.to_string() };
            Ok(Route { origin: Origin(place.ok_or_else(unknown)?), kind, ..Route::default() })
        });
        let routes: Vec<Route> = routes.collect::<Result<_, RequestError>>()?;
        if routes.len() < requests.len() {
            return Err(RequestError::TooManyRequests { count: requests.len(), limit: routes.len() });
        }
        Ok(Turns { turns: turns(&weights)?, kinds: routes.len(), routes })
    }

    /// `count` requests to one server, sent in the order of `turns`. If figures are not kept per request, there may be
    /// more requests than numbers for kinds.
    pub(super) fn in_order(count: usize, turns: Vec<u32>, are_apart: bool) -> Turns {
        let route = |index: usize| {
            let kind = if are_apart { u16::try_from(index).unwrap_or(u16::MAX) } else { 0 };
            Route { kind, ..Route::default() }
        };
        Turns { turns, routes: (0..count).map(route).collect(), kinds: if are_apart { count } else { 1 } }
    }
}

impl Script for Turns {
    type Journey = u32;
    /// No response is kept.
    type Taken = ();

    #[inline]
    fn begin(&self, n: u64) -> u32 {
        let turn = n % self.turns.len() as u64;
        // Smaller than the length of a vector, so the conversion is lossless.
        self.turns[turn as usize]
    }

    #[inline]
    fn ask<'a>(&'a self, journey: &'a u32) -> Ask<'a> {
        Ask { request: Asked::Prepared(*journey), checks: 0, keep: Keep::Nothing }
    }

    #[inline]
    fn route(&self, journey: &u32) -> Route {
        self.routes[*journey as usize]
    }

    fn kinds(&self) -> usize {
        self.kinds
    }

    fn take(&self, _: u16, _: ReceivedResponse) -> Result<(), FailedCheck> {
        Ok(())
    }

    #[inline]
    fn advance(&self, _: u32, _: Option<()>) -> Next<u32> {
        Next::End
    }
}
