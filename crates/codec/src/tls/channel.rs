//! TLS as bytes to bytes: the handshake, records in, records out. What is spoken within it belongs to its callers.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::{ClientConnection, ProtocolVersion};

use super::config::TlsPlan;
use super::messages;
use crate::DecodeError;
use crate::used_protocols::UsedProtocol;

/// The client's side of the TLS of one connection.
#[derive(Debug)]
pub struct TlsChannel {
    tls: ClientConnection,
    /// Whether any byte has arrived.
    spoken_to: bool,
    /// Whether the peer has closed its side with a TLS alert, so that nothing was cut off.
    closed_well: bool,
}

impl TlsChannel {
    /// The beginning of a handshake with the server of `plan`.
    pub fn new(plan: &TlsPlan) -> TlsChannel {
        let tls = ClientConnection::new(Arc::clone(&plan.config), plan.name.clone());
        let mut tls = tls.expect("a name and settings that were accepted begin a handshake");
        // Everything written is moved to the output at once, so no limit is needed.
        tls.set_buffer_limit(None);
        TlsChannel { tls, spoken_to: false, closed_well: false }
    }

    /// Appends what is to be sent: first of all, the beginning of the handshake.
    pub fn move_out(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            if self.tls.write_tls(out).is_err() {
                return;
            }
        }
    }

    /// Whether the handshake has not ended.
    pub fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether the peer has closed its side with a TLS alert.
    pub(crate) fn is_closed_well(&self) -> bool {
        self.closed_well
    }

    /// The protocol that the handshake agreed on by ALPN.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.alpn_protocol()
    }

    /// The version that the handshake agreed on.
    pub fn version(&self) -> UsedProtocol {
        match self.tls.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => UsedProtocol::Tls12,
            _ => UsedProtocol::Tls13,
        }
    }

    /// Decrypts every record of `input` into `content`, and replies to TLS messages that require it. `has_begun`:
    /// whether the protocol within TLS has begun.
    ///
    /// # Errors
    ///
    /// [`DecodeError::Handshake`] or [`DecodeError::Malformed`]; what came before the bad record is in `content`.
    pub fn decrypt(
        &mut self,
        mut input: &[u8],
        has_begun: bool,
        content: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        if !self.spoken_to && input.first().is_some_and(|kind| !RECORD_KINDS.contains(kind)) {
            return Err(DecodeError::Handshake { what: messages::NOT_TLS });
        }
        self.spoken_to = true;
        while !input.is_empty() && !self.closed_well {
            // Fails only if asked to read more than fits; the buffer is emptied after each read.
            let read = self.tls.read_tls(&mut input);
            let state = self.tls.process_new_packets();
            self.move_out(out);
            // Even if a record is bad: what came before it is valid.
            let _ = self.tls.reader().read_to_end(content);
            let state = state.map_err(|error| refused(&error, has_begun))?;
            self.closed_well = state.peer_has_closed();
            if read.is_err() {
                return Err(DecodeError::Malformed { what: "TLS record" });
            }
        }
        Ok(())
    }

    /// Encrypts `plaintext`, and empties it.
    pub fn encrypt(&mut self, plaintext: &mut Vec<u8>, out: &mut Vec<u8>) {
        // Writes to memory without a limit, so it cannot fail.
        let _ = self.tls.writer().write_all(plaintext);
        plaintext.clear();
        self.move_out(out);
    }
}

/// With TLS 1.3 a server rejects this client only after this client's handshake has ended, before the first response;
/// so an alert counts as a failed handshake.
fn refused(error: &rustls::Error, has_begun: bool) -> DecodeError {
    let what = messages::of(error);
    let alert = matches!(error, rustls::Error::AlertReceived(_));
    if has_begun && !alert { DecodeError::Malformed { what } } else { DecodeError::Handshake { what } }
}

/// The TLS record types (RFC 8446, section 5.1): change of cipher, alert, handshake, data.
const RECORD_KINDS: [u8; 4] = [20, 21, 22, 23];
