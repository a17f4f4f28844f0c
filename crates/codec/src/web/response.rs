//! One answer on its way in, whichever version of HTTP frames it: judged, counted, checked, and kept as far as it
//! was asked for.

use super::checks::{BodyChecks, PreparedChecks};
use super::limits::Limits;
use super::outgoing::ResponseForm;
use super::used_protocols::UsedProtocols;
use crate::{DecodeError, FailedCheck, Judgement};

/// What all connections of a run share.
#[derive(Debug)]
pub(crate) struct Facts {
    pub pipeline: usize,
    pub streams: usize,
    pub limits: Limits,
    pub checks: Vec<PreparedChecks>,
    pub used_protocols: UsedProtocols,
}

/// Whether a response is kept for its script to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    Nothing,
    /// Status, headers, and the body up to this many bytes.
    ReceivedResponse { body_bytes: usize },
}

/// A response that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceivedResponse {
    pub status: u16,
    /// In the order in which they came. Names are as the peer wrote them.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// The body was longer than was to be kept: `body` holds its beginning.
    pub cut: bool,
}

impl ReceivedResponse {
    /// The first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let named = |(own, _): &&(String, Vec<u8>)| own.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_slice())
    }

    /// Every header of this name, in order.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.headers.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice())
    }
}

/// What is left of an answer that has ended.
#[derive(Debug)]
pub(crate) enum Kept {
    /// The response, with the checks that its request named.
    Response { checks: u16, response: ReceivedResponse },
    /// It did not pass this check.
    Failed(Box<FailedCheck>),
}

/// What a request expects of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expect {
    pub form: ResponseForm,
    pub checks: u16,
    pub keep: Keep,
}

/// A response from its final head on. Used again for each response of a connection or stream.
#[derive(Debug)]
pub(crate) struct Intake {
    code: u16,
    judgement: Judgement,
    body_bytes: u64,
    body_checks: BodyChecks,
    /// Which of the run's checks `body_checks` was made for.
    checks: u16,
    kept: Option<Box<ReceivedResponse>>,
    /// The check that the response which has just ended did not pass.
    failed: Option<Box<FailedCheck>>,
    /// How much more of the body may be kept.
    room: usize,
}

impl Intake {
    pub(crate) fn new(facts: &Facts) -> Intake {
        Intake {
            code: 0,
            judgement: Judgement::Good,
            body_bytes: 0,
            body_checks: BodyChecks::new(&facts.checks[0]),
            checks: 0,
            kept: None,
            failed: None,
            room: 0,
        }
    }

    /// The final head has come. `headers` is asked for only where the response is to be kept.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        facts: &Facts,
        expect: Expect,
        status: u16,
        headers: impl FnOnce() -> Vec<(String, Vec<u8>)>,
    ) {
        if self.checks != expect.checks {
            self.checks = expect.checks;
            self.body_checks = BodyChecks::new(self.prepared(facts));
        }
        self.code = status;
        self.judgement = self.prepared(facts).judge_status(status);
        self.body_bytes = 0;
        self.body_checks.begin(self.judgement == Judgement::Good && !expect.form.head_only);
        self.kept = None;
        self.failed = None;
        if let Keep::ReceivedResponse { body_bytes } = expect.keep {
            self.room = body_bytes;
            self.kept = Some(Box::new(ReceivedResponse {
                status,
                headers: headers(),
                ..ReceivedResponse::default()
            }));
        }
    }

    /// More of the body, after transfer decoding.
    #[inline]
    pub(crate) fn data(&mut self, facts: &Facts, data: &[u8]) -> Result<(), DecodeError> {
        self.body_bytes += data.len() as u64;
        if self.body_bytes > facts.limits.body_bytes {
            return Err(DecodeError::TooLong { what: "bytes of body", limit: facts.limits.body_bytes });
        }
        if let Some(kept) = &mut self.kept {
            let taken = data.len().min(self.room);
            kept.body.extend_from_slice(&data[..taken]);
            kept.cut |= taken < data.len();
            self.room -= taken;
        }
        self.body_checks.update(&facts.checks[usize::from(self.checks)], data);
        Ok(())
    }

    /// The response is complete: its status, what became of it, and the length of its body.
    #[inline]
    pub(crate) fn end(&mut self, facts: &Facts) -> (u16, Judgement, u64) {
        let checks = &facts.checks[usize::from(self.checks)];
        let failed = match (self.judgement, self.body_checks.finish(checks)) {
            (Judgement::CheckFailed, _) => Some(checks.failed_status(self.code)),
            (_, failed) => failed,
        };
        let judgement = if failed.is_some() { Judgement::CheckFailed } else { self.judgement };
        self.failed = failed.map(Box::new);
        (self.code, judgement, self.body_bytes)
    }

    /// What is left of the response that has just ended: the check that it failed, or the response where it was to be kept.
    #[inline]
    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        if let Some(failed) = self.failed.take() {
            return Some(Kept::Failed(failed));
        }
        self.kept.take().map(|response| Kept::Response { checks: self.checks, response: *response })
    }

    fn prepared<'a>(&self, facts: &'a Facts) -> &'a PreparedChecks {
        &facts.checks[usize::from(self.checks)]
    }
}
