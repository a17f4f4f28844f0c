//! One incoming response, for any version of HTTP: judged, counted, checked, and kept if a script needs it.

use super::checks::{BodyChecks, PreparedChecks};
use super::limits::Limits;
use super::outgoing::ResponseForm;
use crate::used_protocols::UsedProtocols;
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

/// Whether a response is kept for its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    Nothing,
    /// Status, headers, and at most this many bytes of the body.
    ReceivedResponse { body_bytes: usize },
}

/// A response that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceivedResponse {
    pub status: u16,
    /// In the order of arrival, with names as the peer wrote them.
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Whether the body was longer than the limit, so that `body` is only its beginning.
    pub cut: bool,
}

impl ReceivedResponse {
    /// The first header of this name, ignoring case.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        let named = |(own, _): &&(String, Vec<u8>)| own.eq_ignore_ascii_case(name);
        self.headers.iter().find(named).map(|(_, value)| value.as_slice())
    }

    /// Every header of this name, ignoring case, in order.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.headers.iter().filter(move |(own, _)| own.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.as_slice())
    }
}

/// What remains of a response that has ended.
#[derive(Debug)]
pub(crate) enum Kept {
    /// The response, with the index of the checks that its request named.
    Response { checks: u16, response: ReceivedResponse },
    /// The check that it failed.
    Failed(Box<FailedCheck>),
}

/// What a request expects of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expect {
    pub form: ResponseForm,
    pub checks: u16,
    pub keep: Keep,
}

/// A response from its final head on. Reused for each response of a connection or stream.
#[derive(Debug)]
pub(crate) struct Intake {
    code: u16,
    judgement: Judgement,
    body_bytes: u64,
    body_checks: BodyChecks,
    /// Which of the run's checks `body_checks` was made for.
    checks: u16,
    kept: Option<Box<ReceivedResponse>>,
    /// The check that the last response failed.
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

    /// The final head has arrived. `headers` is called only if the response is to be kept.
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

    /// Processes more of the body, after transfer decoding.
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

    /// The response is complete. Returns its status, its judgement, and the length of its body.
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

    /// What remains of the response that has just ended: the check that it failed, or the response if it was to be
    /// kept.
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
