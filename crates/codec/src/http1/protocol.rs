//! What a run says over HTTP/1.1: its requests as bytes, the order they take turns in, and what all its
//! connections share. It is built once, before anything is sent; everything that can be refused is refused here.

use std::sync::Arc;

use super::checks::{Checks, PreparedChecks};
use super::cycle::turns;
use super::limits::Limits;
use super::request::{Request, RequestError};
use super::session::{AnswerForm, Http1Session, RunFacts};
use crate::{Expect, Protocol};

/// HTTP/1.1 requests, prepared. Cheap to share: workers hold it by reference.
#[derive(Debug)]
pub struct Http1 {
    run: Arc<RunFacts>,
    /// The bytes of each request.
    encoded: Vec<Vec<u8>>,
    /// The request of each turn; request `n` of a run takes turn `n` modulo its length.
    turns: Vec<u32>,
}

impl Http1 {
    /// Prepares `requests`, of which up to `pipeline` may be outstanding on one connection.
    ///
    /// # Errors
    ///
    /// [`RequestError`] for whatever of it could not be sent as given, saying what to do.
    pub fn new(
        requests: &[Request],
        pipeline: usize,
        checks: &Checks,
        limits: Limits,
    ) -> Result<Http1, RequestError> {
        let first = requests.first().ok_or(RequestError::NoRequests)?;
        if pipeline == 0 {
            return Err(RequestError::NoPipeline);
        }
        if checks.expect_body_contains.as_ref().is_some_and(Vec::is_empty) {
            return Err(RequestError::EmptyCheck);
        }
        requests.iter().try_for_each(Request::check)?;
        if let Some(other) = requests.iter().find(|request| !request.url.same_origin(&first.url)) {
            let (first, other) = (first.url.to_string(), other.url.to_string());
            return Err(RequestError::TwoOrigins { first, other });
        }
        let weights: Vec<u32> = requests.iter().map(|request| request.weight).collect();
        let form =
            |request: &Request| AnswerForm { head_only: request.is_head(), last: request.asks_close() };
        let run = RunFacts {
            pipeline,
            limits,
            checks: PreparedChecks::new(checks),
            forms: requests.iter().map(form).collect(),
        };
        Ok(Http1 {
            run: Arc::new(run),
            encoded: requests.iter().map(Request::encode).collect(),
            turns: turns(&weights)?,
        })
    }

    /// Which of the requests it was built from is number `n` of the run.
    pub fn request_index(&self, n: u64) -> usize {
        let turn = n % self.turns.len() as u64;
        // Below the length of a vector, so neither conversion loses anything.
        self.turns[turn as usize] as usize
    }
}

impl Protocol for Http1 {
    type Session = Http1Session;

    fn session(&self) -> Http1Session {
        Http1Session::new(Arc::clone(&self.run))
    }

    fn encode(&self, n: u64, out: &mut Vec<u8>) -> Expect {
        let index = self.request_index(n);
        out.extend_from_slice(&self.encoded[index]);
        // The turns hold indexes as u32, so every index fits one.
        Expect(index as u32)
    }
}
