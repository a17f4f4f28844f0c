//! One connection over TLS: the handshake, then HTTP within it.
//!
//! All records of an input are decrypted before any of their content is processed, so that what is reported about a
//! response does not depend on how the peer divided it into records. Driven by the engine through
//! [`WebSession`](crate::web::WebSession).

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::{ClientConnection, ProtocolVersion};

use super::config::TlsPlan;
use super::messages;
use crate::web::{Expect, Facts, HttpVersion, Kept, Outgoing, Plain, UsedProtocol};
use crate::{CloseEvent, DecodeError, Encoded, Event, Key, Step};

/// The client's side of one connection over TLS.
#[derive(Debug)]
pub(crate) struct TlsSession {
    facts: Arc<Facts>,
    version: HttpVersion,
    tls: ClientConnection,
    /// The HTTP session within TLS; `None` until the handshake has ended.
    inner: Option<Plain>,
    /// Decrypted bytes; `inner` has taken the first `taken` of them.
    content: Vec<u8>,
    taken: usize,
    /// Whether `inner` may have more events in what it has taken.
    more: bool,
    /// Bytes from `inner` that are still to be encrypted.
    plaintext: Vec<u8>,
    /// Whether any byte has arrived.
    spoken_to: bool,
    /// Whether any response has begun.
    answered: bool,
    /// Whether the peer has closed its side with a TLS alert, so that nothing was cut off.
    closed_well: bool,
    /// Reported once everything that came before it has been.
    failed: Option<DecodeError>,
}

impl TlsSession {
    pub(crate) fn new(plan: &TlsPlan, version: HttpVersion, facts: Arc<Facts>) -> TlsSession {
        let tls = ClientConnection::new(Arc::clone(&plan.config), plan.name.clone());
        let mut tls = tls.expect("a name and settings that were accepted begin a handshake");
        // Everything written is moved to the output at once, so no limit is needed.
        tls.set_buffer_limit(None);
        TlsSession {
            facts,
            version,
            tls,
            inner: None,
            content: Vec::new(),
            taken: 0,
            more: false,
            plaintext: Vec::new(),
            spoken_to: false,
            answered: false,
            closed_well: false,
            failed: None,
        }
    }

    pub(crate) fn open(&mut self, out: &mut Vec<u8>) {
        self.move_out(out);
    }

    pub(crate) fn capacity(&self) -> usize {
        if self.closed_well {
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
        if shakes_hands && !self.tls.is_handshaking() && self.failed.is_none() {
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
            CloseEvent::Finished(_) if !self.closed_well => CloseEvent::Incomplete,
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

    /// Decrypts every record of `input`, and replies to TLS messages that require it.
    fn decrypt(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        if !self.spoken_to && input.first().is_some_and(|kind| !RECORD_KINDS.contains(kind)) {
            return Err(DecodeError::Handshake { what: messages::NOT_TLS });
        }
        self.spoken_to = true;
        if self.taken == self.content.len() {
            self.content.clear();
            self.taken = 0;
        }
        while !input.is_empty() && !self.closed_well {
            // Fails only if asked to read more than fits; the buffer is emptied after each read.
            let read = self.tls.read_tls(&mut input);
            let state = self.tls.process_new_packets();
            self.move_out(out);
            // Even if a record is bad: what came before it is valid.
            let _ = self.tls.reader().read_to_end(&mut self.content);
            let state = state.map_err(|error| self.refused(&error))?;
            self.closed_well = state.peer_has_closed();
            if read.is_err() {
                return Err(DecodeError::Malformed { what: "TLS record" });
            }
        }
        Ok(())
    }

    /// The handshake has ended: begins the HTTP session that it agreed on.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let chosen = self.tls.alpn_protocol();
        let version = match (self.version, chosen) {
            (HttpVersion::Http2, Some(b"h2")) | (HttpVersion::ByAlpn, Some(b"h2")) => HttpVersion::Http2,
            (HttpVersion::Http2, _) => {
                return Err(DecodeError::Handshake { what: "ALPN: the server did not choose HTTP/2" });
            }
            _ => HttpVersion::Http1,
        };
        let mut inner = Plain::new(version, Arc::clone(&self.facts));
        inner.open(&self.facts, &mut self.plaintext);
        match self.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => self.facts.used_protocols.note(UsedProtocol::Tls12),
            _ => self.facts.used_protocols.note(UsedProtocol::Tls13),
        }
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
        // Writes to memory without a limit, so it cannot fail.
        let _ = self.tls.writer().write_all(&self.plaintext);
        self.plaintext.clear();
        self.move_out(out);
    }

    fn move_out(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            if self.tls.write_tls(out).is_err() {
                return;
            }
        }
    }

    /// With TLS 1.3 a server rejects this client only after this client's handshake has ended, before the first
    /// response; so an alert counts as a failed handshake.
    fn refused(&self, error: &rustls::Error) -> DecodeError {
        let what = messages::of(error);
        let alert = matches!(error, rustls::Error::AlertReceived(_));
        match &self.inner {
            Some(_) if !alert => DecodeError::Malformed { what },
            _ => DecodeError::Handshake { what },
        }
    }
}

/// The TLS record types (RFC 8446, section 5.1): change of cipher, alert, handshake, data.
const RECORD_KINDS: [u8; 4] = [20, 21, 22, 23];
