//! One HTTP connection, for whatever version and transport it uses.
//!
//! It gets requests from the script, passes them to the HTTP version in use, and passes responses that were to be kept
//! to the script. The HTTP versions implement the framing.

use std::sync::Arc;

use super::outgoing::Outgoing;
use super::protocol::Run;
use super::response::{Expect, Kept};
use super::script::{Asked, Script};
use super::wire::Plain;
use crate::tls::TlsSession;
use crate::{
    CloseEvent, DecodeError, Encoded, Event, FailedCheck, Judgement, Key, Opening, Origin, Reply, Session,
    Step,
};

/// The client's side of one connection.
#[derive(Debug)]
pub struct WebSession<S: Script> {
    run: Arc<Run<S>>,
    wire: Wire,
    /// What the script took from the last response, until its journey continues.
    taken: Option<S::Taken>,
    /// The check that the last response failed.
    failed: Option<Box<FailedCheck>>,
}

/// The transport.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the common one, and on the hot path")]
enum Wire {
    Plain(Plain),
    Tls(Box<TlsSession>),
}

impl<S: Script> WebSession<S> {
    pub(super) fn new(run: Arc<Run<S>>, origin: Origin) -> WebSession<S> {
        let plan = &run.origins[usize::from(origin.0)];
        let facts = Arc::clone(&run.facts);
        let wire = match &plan.tls {
            None => Wire::Plain(Plain::new(plan.version, facts)),
            Some(tls) => Wire::Tls(Box::new(TlsSession::new(tls, plan.version, facts))),
        };
        WebSession { run, wire, taken: None, failed: None }
    }

    pub(super) fn hand_over(&mut self) -> Option<S::Taken> {
        self.taken.take()
    }

    /// A response has ended: lets the script check it and take what it needs.
    #[inline]
    fn judge(&mut self, reply: &mut Reply) {
        let kept = match &mut self.wire {
            Wire::Plain(plain) => plain.take_kept(),
            Wire::Tls(tls) => tls.take_kept(),
        };
        // A journey continues from a good response, and from nothing else.
        self.taken = None;
        self.failed = None;
        match kept {
            Some(Kept::Failed(failed)) => self.failed = Some(failed),
            Some(Kept::Response { checks, response }) if reply.judgement == Judgement::Good => {
                match self.run.script.take(checks, response) {
                    Ok(taken) => self.taken = Some(taken),
                    Err(failed) => {
                        reply.judgement = Judgement::CheckFailed;
                        self.failed = Some(Box::new(failed));
                    }
                }
            }
            _ => {}
        }
    }
}

impl<S: Script> Session for WebSession<S> {
    type Journey = S::Journey;

    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        match &mut self.wire {
            Wire::Plain(plain) => {
                plain.open(&self.run.facts, out);
                Opening::Ready
            }
            Wire::Tls(tls) => {
                tls.open(out);
                Opening::Tls
            }
        }
    }

    #[inline]
    fn capacity(&self) -> usize {
        match &self.wire {
            Wire::Plain(plain) => plain.capacity(),
            Wire::Tls(tls) => tls.capacity(),
        }
    }

    #[inline]
    fn request(&mut self, journey: &S::Journey, key: Key, out: &mut Vec<u8>) -> Encoded {
        let ask = self.run.script.ask(journey);
        let request = match ask.request {
            Asked::Prepared(index) => Outgoing::Prepared(&self.run.requests[index as usize]),
            Asked::Rendered(rendered) => Outgoing::Rendered(rendered),
        };
        let expect = Expect { form: request.form(), checks: ask.checks, keep: ask.keep };
        match &mut self.wire {
            Wire::Plain(plain) => plain.request(request, (key, expect), out),
            Wire::Tls(tls) => tls.request(request, (key, expect), out),
        }
    }

    #[inline]
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let mut step = match &mut self.wire {
            Wire::Plain(plain) => plain.handle_input(input, out)?,
            Wire::Tls(tls) => tls.handle_input(input, out)?,
        };
        if let Some(Event::Finished(_, reply)) = &mut step.event {
            self.judge(reply);
        }
        Ok(step)
    }

    fn handle_close(&mut self) -> CloseEvent {
        let mut event = match &mut self.wire {
            Wire::Plain(plain) => plain.handle_close(),
            Wire::Tls(tls) => tls.handle_close(),
        };
        if let CloseEvent::Finished(reply) = &mut event {
            self.judge(reply);
        }
        event
    }

    fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        match &mut self.wire {
            Wire::Plain(plain) => plain.cancel(key, out),
            Wire::Tls(tls) => tls.cancel(key, out),
        }
    }

    fn failed_check(&mut self) -> Option<FailedCheck> {
        self.failed.take().map(|failed| *failed)
    }

    fn survives_early_response(&self) -> bool {
        match &self.wire {
            Wire::Plain(plain) => plain.survives_early_response(),
            Wire::Tls(tls) => tls.survives_early_response(),
        }
    }
}
