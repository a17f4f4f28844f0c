//! One connection of HTTP, whatever version and transport it turned out to have.
//!
//! It asks the script for the request, hands it to the version that is spoken, and shows the script the answers
//! that were to be kept. Framing is the versions' own.

use std::sync::Arc;

use super::answer::{Expect, Kept};
use super::outgoing::Outgoing;
use super::protocol::Run;
use super::script::{Asked, Script};
use super::wire::Plain;
use crate::tls::TlsSession;
use crate::{CloseEvent, DecodeError, Encoded, Event, Judgement, Key, Opening, Origin, Reply, Session, Step};

/// The client's side of one connection.
#[derive(Debug)]
pub struct WebSession<S> {
    run: Arc<Run<S>>,
    wire: Wire,
    /// The last answer that was to be kept, until its script has seen it.
    kept: Option<Kept>,
}

/// What carries it.
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
            None => Wire::Plain(Plain::new(plan.speaks, facts)),
            Some(tls) => Wire::Tls(Box::new(TlsSession::new(tls, plan.speaks, facts))),
        };
        WebSession { run, wire, kept: None }
    }

    pub(super) fn take_kept(&mut self) -> Option<Kept> {
        self.kept.take()
    }

    /// An answer has ended: what its script makes of it.
    #[inline]
    fn judge(&mut self, reply: &mut Reply) {
        self.kept = match &mut self.wire {
            Wire::Plain(plain) => plain.take_kept(),
            Wire::Tls(tls) => tls.take_kept(),
        };
        if let Some(kept) = &self.kept
            && reply.judgement == Judgement::Good
            && !self.run.script.holds(kept.checks, &kept.answer)
        {
            reply.judgement = Judgement::CheckFailed;
        }
        if reply.judgement != Judgement::Good {
            // A journey goes on from what was wanted, and from nothing else.
            self.kept = None;
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

    fn survives_early_answer(&self) -> bool {
        match &self.wire {
            Wire::Plain(plain) => plain.survives_early_answer(),
            Wire::Tls(tls) => tls.survives_early_answer(),
        }
    }
}
