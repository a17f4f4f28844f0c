//! What a run sends over HTTP: its script, its prepared requests, its servers, and what all connections share. Built
//! once, before anything is sent; invalid input is refused here.

use std::sync::Arc;

use super::checks::{Checks, PreparedChecks};
use super::limits::Limits;
use super::origin::{OriginPlan, origins};
use super::outgoing::Prepared;
use super::request::{Request, RequestError};
use super::response::Facts;
use super::script::{Script, Turns};
use super::session::WebSession;
use crate::used_protocols::UsedProtocols;
use crate::{Ended, Next, Origin, Protocol, Route};

/// The HTTP of one run. Cheap to share: workers hold a reference.
#[derive(Debug)]
pub struct Web<S> {
    run: Arc<Run<S>>,
}

/// How connections are used, and how much of a response is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebSettings {
    /// The maximum number of requests outstanding on one HTTP/1.1 connection.
    pub pipeline: usize,
    /// The maximum number of requests outstanding on one HTTP/2 connection, if its peer allows as many.
    pub streams: usize,
    pub limits: Limits,
}

impl Default for WebSettings {
    fn default() -> WebSettings {
        WebSettings { pipeline: 1, streams: 1, limits: Limits::default() }
    }
}

/// What all workers and connections share.
#[derive(Debug)]
pub(super) struct Run<S> {
    pub script: S,
    pub requests: Vec<Prepared>,
    pub origins: Vec<OriginPlan>,
    pub facts: Arc<Facts>,
}

/// What a run consists of, in addition to its script.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The prepared requests; a script refers to them by index.
    pub requests: &'a [Request],
    /// The run's servers; a script refers to them by index.
    pub origins: &'a [OriginPlan],
    /// The checks of responses; a script refers to them by index. At least one.
    pub checks: &'a [Checks],
    pub settings: WebSettings,
}

impl<S: Script> Web<S> {
    /// Prepares a run of `script`.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for anything that cannot be sent as given; its message states what to do.
    pub fn new(script: S, parts: Parts<'_>) -> Result<Web<S>, RequestError> {
        let settings = parts.settings;
        if settings.pipeline == 0 || settings.streams == 0 {
            return Err(RequestError::NoPipeline);
        }
        let empty = |checks: &Checks| checks.expect_body_contains.as_ref().is_some_and(Vec::is_empty);
        if parts.checks.iter().any(empty) {
            return Err(RequestError::EmptyCheck);
        }
        parts.requests.iter().try_for_each(Request::check)?;
        parts.origins.iter().try_for_each(OriginPlan::check)?;
        let facts = Facts {
            pipeline: settings.pipeline,
            streams: settings.streams,
            limits: settings.limits,
            checks: parts.checks.iter().map(PreparedChecks::new).collect(),
            used_protocols: UsedProtocols::default(),
        };
        let run = Run {
            script,
            requests: parts.requests.iter().map(Prepared::new).collect::<Result<_, _>>()?,
            origins: parts.origins.to_vec(),
            facts: Arc::new(facts),
        };
        Ok(Web { run: Arc::new(run) })
    }

    /// The script that decides what is sent.
    pub fn script(&self) -> &S {
        &self.run.script
    }

    /// The protocols that the connections of the run have used, such as `http/2 over TLS 1.3`. `None` before the first
    /// connection.
    pub fn used_protocols(&self) -> Option<String> {
        self.run.facts.used_protocols.words()
    }
}

impl Web<Turns> {
    /// A run of single requests, in turn by weight, over HTTP/1.1 in plaintext.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for anything that cannot be sent as given; its message states what to do.
    pub fn turns(
        requests: &[Request],
        checks: &Checks,
        settings: WebSettings,
    ) -> Result<Web<Turns>, RequestError> {
        let origins: Vec<OriginPlan> = origins(requests)?.into_iter().map(OriginPlan::plain).collect();
        Web::turns_over(&origins, requests, checks, settings)
    }

    /// Like [`Web::turns`], with the HTTP versions and TLS settings of `origins`.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for anything that cannot be sent as given; its message states what to do.
    pub fn turns_over(
        origins: &[OriginPlan],
        requests: &[Request],
        checks: &Checks,
        settings: WebSettings,
    ) -> Result<Web<Turns>, RequestError> {
        if requests.is_empty() {
            return Err(RequestError::NoRequests);
        }
        let urls: Vec<_> = origins.iter().map(|origin| origin.url.clone()).collect();
        let parts = Parts { requests, origins, checks: std::slice::from_ref(checks), settings };
        Web::new(Turns::new(requests, &urls)?, parts)
    }

    /// A run of requests to one server in a given order: `turns` has the index of each request to send, and starts
    /// again at its end. With `are_apart`, figures are kept per request.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for anything that cannot be sent as given; its message states what to do.
    pub fn in_order(
        (requests, turns, are_apart): (&[Request], Vec<u32>, bool),
        origins: &[OriginPlan],
        checks: &Checks,
        settings: WebSettings,
    ) -> Result<Web<Turns>, RequestError> {
        if turns.is_empty() || turns.iter().any(|&turn| turn as usize >= requests.len()) {
            return Err(RequestError::NoRequests);
        }
        let parts = Parts { requests, origins, checks: std::slice::from_ref(checks), settings };
        Web::new(Turns::in_order(requests.len(), turns, are_apart), parts)
    }
}

impl<S: Script> Protocol for Web<S> {
    type Journey = S::Journey;
    type Session = WebSession<S>;

    fn session(&self, origin: Origin) -> WebSession<S> {
        WebSession::new(Arc::clone(&self.run), origin)
    }

    #[inline]
    fn begin(&self, n: u64) -> S::Journey {
        self.run.script.begin(n)
    }

    #[inline]
    fn route(&self, journey: &S::Journey) -> Route {
        self.run.script.route(journey)
    }

    fn kinds(&self) -> usize {
        self.run.script.kinds()
    }

    fn journeys(&self) -> usize {
        self.run.script.journeys()
    }

    #[inline]
    fn advance(&self, journey: S::Journey, ended: Ended<'_, WebSession<S>>) -> Next<S::Journey> {
        let taken = match ended {
            Ended::Answered { session, .. } => session.hand_over(),
            Ended::Unanswered => None,
        };
        self.run.script.advance(journey, taken)
    }
}
