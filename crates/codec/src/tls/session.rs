//! One connection over TLS: the handshake, then HTTP within it.
//!
//! All records of an input are decrypted before any of their content is processed, so that what is reported about a
//! response does not depend on how the peer divided it into records. Driven by the engine through
//! [`WebSession`](crate::web::WebSession).

use std::sync::Arc;

use super::channel::TlsChannel;
use super::config::TlsPlan;
use crate::web::{Expect, Facts, HttpVersion, Kept, Outgoing, Plain};
use crate::{CloseEvent, DecodeError, Encoded, Event, Key, Step};

/// The client's side of one connection over TLS.
#[derive(Debug)]
pub(crate) struct TlsSession {
    facts: Arc<Facts>,
    version: HttpVersion,
    channel: TlsChannel,
    /// The HTTP session within TLS; `None` until the handshake has ended.
    inner: Option<Plain>,
    /// Decrypted bytes; `inner` has taken the first `taken` of them.
    content: Vec<u8>,
    taken: usize,
    /// Whether `inner` may have more events in what it has taken.
    more: bool,
    /// Bytes from `inner` that are still to be encrypted.
    plaintext: Vec<u8>,
    /// Whether any response has begun.
    answered: bool,
    /// Reported once everything that came before it has been.
    failed: Option<DecodeError>,
}

impl TlsSession {
    pub(crate) fn new(plan: &TlsPlan, version: HttpVersion, facts: Arc<Facts>) -> TlsSession {
        TlsSession {
            facts,
            version,
            channel: TlsChannel::new(plan),
            inner: None,
            content: Vec::new(),
            taken: 0,
            more: false,
            plaintext: Vec::new(),
            answered: false,
            failed: None,
        }
    }

    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        self.channel.move_out(out);
    }

    pub(crate) fn capacity(&self) -> usize {
        if self.channel.is_closed_well() {
            return 0;
        }
        self.inner.as_ref().map_or(1, Plain::capacity)
    }

    pub(crate) fn request(
        &mut self,
        request: Outgoing<'_>,
        (key, expect): (Key, Expect),
        out: &mut Vec<u8>,
    ) -> Encoded {
        let Some(inner) = &mut self.inner else { unreachable!("requests follow the end of the handshake") };
        let encoded = inner.request(request, (key, expect), &mut self.plaintext);
        self.encrypt(out);
        encoded
    }

    pub(crate) fn take_kept(&mut self) -> Option<Kept> {
        self.inner.as_mut().and_then(Plain::take_kept)
    }

    pub(crate) fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let shakes_hands = self.inner.is_none();
        if !input.is_empty() && self.failed.is_none() {
            self.failed = self.decrypt(input, out).err();
        }
        if shakes_hands && !self.channel.is_handshaking() && self.failed.is_none() {
            match self.begin(out) {
                Ok(()) => {
                    let more = self.taken < self.content.len();
                    return Ok(Step { more, ..Step::new(input.len(), Some(Event::Opened)) });
                }
                Err(error) => self.failed = Some(error),
            }
        }
        let (event, trailing) = self.advance(out)?;
        self.answered |= matches!(event, Some(Event::Finished(..) | Event::Began(_)));
        if let (None, Some(error)) = (event, self.failed) {
            return Err(match error {
                // It has accepted this client before.
                DecodeError::Handshake { what } if self.answered => DecodeError::Malformed { what },
                error => error,
            });
        }
        let more = self.more || self.taken < self.content.len() || self.failed.is_some();
        Ok(Step { consumed: input.len(), event, more: more && event.is_some(), trailing })
    }

    pub(crate) fn handle_close(&mut self) -> CloseEvent {
        let Some(inner) = &mut self.inner else { return CloseEvent::Idle };
        match inner.handle_close() {
            // Without the TLS alert, the end of the body would be decided by anyone who can cut the connection.
            CloseEvent::Finished(_) if !self.channel.is_closed_well() => CloseEvent::Incomplete,
            event => event,
        }
    }

    pub(crate) fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        let cancelled = self.inner.as_mut().is_some_and(|inner| inner.cancel(key, &mut self.plaintext));
        self.encrypt(out);
        cancelled
    }

    pub(crate) fn survives_early_response(&self) -> bool {
        self.inner.as_ref().is_some_and(Plain::survives_early_response)
    }

    fn decrypt(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if self.taken == self.content.len() {
            self.content.clear();
            self.taken = 0;
        }
        self.channel.decrypt(input, self.inner.is_some(), &mut self.content, out)
    }

    /// The handshake has ended: begins the HTTP session that it agreed on.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let chosen = self.channel.alpn();
        let version = match (self.version, chosen) {
            (HttpVersion::Http2, Some(b"h2")) | (HttpVersion::ByAlpn, Some(b"h2")) => HttpVersion::Http2,
            (HttpVersion::Http2, _) => {
                return Err(DecodeError::Handshake { what: "ALPN: the server did not choose HTTP/2" });
            }
            _ => HttpVersion::Http1,
        };
        let mut inner = Plain::new(version, Arc::clone(&self.facts));
        inner.open(&self.facts, &mut self.plaintext);
        self.facts.used_protocols.note(self.channel.version());
        self.inner = Some(inner);
        self.encrypt(out);
        Ok(())
    }

    /// Passes decrypted bytes to the HTTP session. Returns its event, and whether bytes follow that belong to no
    /// request.
    fn advance(&mut self, out: &mut Vec<u8>) -> Result<(Option<Event>, bool), DecodeError> {
        let Some(inner) = &mut self.inner else { return Ok((None, false)) };
        if !self.more && self.taken == self.content.len() {
            return Ok((None, false));
        }
        let step = inner.handle_input(&self.content[self.taken..], &mut self.plaintext);
        self.encrypt(out);
        let step = step?;
        self.taken += step.consumed;
        self.more = step.more;
        Ok((step.event, step.trailing))
    }

    fn encrypt(&mut self, out: &mut Vec<u8>) {
        self.channel.encrypt(&mut self.plaintext, out);
    }
}
