//! TLS that begins within a protocol, or before its first byte, and what is in it.

use codec::DecodeError;
use codec::UsedProtocol;
use codec::tls::{TlsChannel, TlsPlan};

/// TLS, and what is in it.
#[derive(Debug)]
pub(super) struct Channel {
    tls: TlsChannel,
    /// Decrypted bytes; the first `taken` of them were processed.
    content: Vec<u8>,
    taken: usize,
    /// Bytes that are still to be encrypted.
    pub plaintext: Vec<u8>,
    /// Reported once everything that came before it has been.
    failed: Option<DecodeError>,
}

impl Channel {
    /// Begins the handshake, whose first bytes it appends.
    pub(super) fn begin(plan: &TlsPlan, out: &mut Vec<u8>) -> Channel {
        let (content, plaintext) = (Vec::new(), Vec::new());
        let mut channel = Channel { tls: TlsChannel::new(plan), content, taken: 0, plaintext, failed: None };
        channel.tls.move_out(out);
        channel
    }

    /// Decrypts `input`. `is_open`: the login has ended. A failure is kept until all that came before it was taken.
    pub(super) fn decrypt(&mut self, input: &[u8], is_open: bool, out: &mut Vec<u8>) {
        if self.taken == self.content.len() {
            self.content.clear();
            self.taken = 0;
        }
        if !input.is_empty() && self.failed.is_none() {
            self.failed = self.tls.decrypt(input, is_open, &mut self.content, out).err();
        }
    }

    /// The version that the handshake agreed on, once it has ended.
    pub(super) fn agreed(&self) -> Option<UsedProtocol> {
        (self.failed.is_none() && !self.tls.is_handshaking()).then(|| self.tls.version())
    }

    /// What was decrypted and not yet taken, and where its answers go.
    pub(super) fn content(&mut self) -> (&[u8], &mut Vec<u8>) {
        (&self.content[self.taken..], &mut self.plaintext)
    }

    /// The first `count` bytes of the content were processed.
    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
    }

    /// Encrypts what was written.
    pub(super) fn encrypt(&mut self, out: &mut Vec<u8>) {
        if !self.plaintext.is_empty() {
            self.tls.encrypt(&mut self.plaintext, out);
        }
    }

    /// Whether there is more to process.
    pub(super) fn has_more(&self) -> bool {
        self.taken < self.content.len() || self.failed.is_some()
    }

    /// Why the channel broke, if it did.
    pub(super) fn failure(&self, is_open: bool) -> Option<DecodeError> {
        self.failed.map(|error| match error {
            DecodeError::Handshake { what } if is_open => DecodeError::Malformed { what },
            other => other,
        })
    }
}
