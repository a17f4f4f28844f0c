//! Connections that are not parsed: all that is known is which side sends when.
//!
//! A turn is all that the server reads until it writes; its response ends with the last write before the next read. For
//! TLS the record headers are parsed, so that handshakes do not count as requests.

use crate::digest::DigestId;
use crate::event::{Protocol, RequestKind};
use crate::exchanges::Until;
use crate::protocols::Context;
use crate::tap::{Step, View};

#[derive(Debug)]
pub(crate) struct Turns {
    protocol: Protocol,
    digest: Option<DigestId>,
    /// Handshake records of the client, counted up to two: none, one, or more.
    handshakes: u8,
    /// In TLS 1.3 the first encrypted record of the client ends the handshake.
    finished_due: bool,
    open: bool,
}

impl Turns {
    pub(crate) fn new(protocol: Protocol, fresh: bool) -> Turns {
        let finished_due = protocol == Protocol::Tls && fresh;
        Turns { protocol, digest: None, handshakes: 0, finished_due, open: false }
    }

    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Reads the header of a TLS record.
    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let [kind, major, _, high, low, ..] = *view.bytes else { return Step::Need };
        let length = 5 + u64::from(u16::from_be_bytes([high, low]));
        if !(HANDSHAKE_KINDS.contains(&kind) || kind == APPLICATION_DATA) || major != 3 {
            return Step::Bad;
        }
        if kind == HANDSHAKE {
            self.handshakes = (self.handshakes + 1).min(2);
        }
        if kind == APPLICATION_DATA {
            // TLS 1.2 has sent a second handshake record by now.
            let finished = self.finished_due && self.handshakes == 1;
            self.finished_due = false;
            if !finished {
                self.begin(view.at, context);
            }
        }
        Step::Taken(length)
    }

    /// The client's bytes cannot be parsed: they belong to the turn.
    pub(crate) fn begin(&mut self, at: u64, context: &mut Context<'_>) {
        if !self.open {
            let protocol = self.protocol;
            let digest =
                *self.digest.get_or_insert_with(|| context.digests.named(protocol, text_of(protocol)));
            self.open = context.exchanges.begin(at, RequestKind::Turn, digest, Until::Response);
            context.exchanges.open_end();
        }
    }

    /// The server has begun to write at `at`.
    pub(crate) fn begin_response(&mut self, at: u64, context: &mut Context<'_>) {
        if let Some(oldest) = context.exchanges.oldest() {
            oldest.begin_response(at);
        }
    }

    /// The server reads again: the turn has ended.
    pub(crate) fn end(&mut self) {
        self.open = false;
    }
}

/// The digest text of a turn.
fn text_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tls => "turn, encrypted",
        Protocol::Compressed => "turn, compressed",
        _ => "turn",
    }
}

const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// Change of cipher, alert, handshake.
const HANDSHAKE_KINDS: [u8; 3] = [20, 21, HANDSHAKE];
