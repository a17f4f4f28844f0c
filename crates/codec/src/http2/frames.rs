//! Watches the frames of a peer: their types and lengths, but not their content.
//!
//! `h2` does not report whether the peer's settings have arrived or whether the peer is going away, and it responds to
//! every ping of a peer that sends nothing we requested. So the nine bytes that begin each frame are inspected here.

use crate::DecodeError;

/// The position within the frames of a peer, and what was learnt from them.
#[derive(Debug, Default)]
pub(super) struct FrameWatch {
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// Bytes of the current frame that are left after its header.
    payload_left: usize,
    /// Frames since the last that advanced a response, not counting window updates.
    idle_frames: u64,
    /// Window updates since the last frame that advanced a response or an upload.
    window_updates: u64,
    /// The peer's settings have arrived.
    pub settled: bool,
    /// The peer has announced that it accepts no more requests.
    pub leaving: bool,
}

impl FrameWatch {
    /// Inspects `input`. Returns how much of it may be passed to `h2`, and what is wrong with the rest: the peer keeps
    /// us busy with frames that advance no response, or does not speak HTTP/2 at all.
    pub(super) fn handle_input(&mut self, input: &[u8]) -> (usize, Option<DecodeError>) {
        let mut at = 0;
        while at < input.len() {
            let skipped = self.payload_left.min(input.len() - at);
            self.payload_left -= skipped;
            at += skipped;
            let taken = (HEADER_BYTES - self.header_len).min(input.len() - at);
            self.header[self.header_len..self.header_len + taken].copy_from_slice(&input[at..at + taken]);
            self.header_len += taken;
            if self.header_len == HEADER_BYTES {
                self.header_len = 0;
                if let Err(error) = self.handle_header() {
                    return (at, Some(error));
                }
            }
            at += taken;
        }
        (at, None)
    }

    fn handle_header(&mut self) -> Result<(), DecodeError> {
        let [a, b, c, kind, flags, ..] = self.header;
        self.payload_left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        if !self.settled && (kind != SETTINGS || flags & ACK != 0) {
            // RFC 9113, section 3.4: an HTTP/2 server must begin with its settings.
            return Err(DecodeError::Malformed { what: "beginning: the peer does not speak HTTP/2" });
        }
        match kind {
            HEADERS => self.note_response(),
            DATA if self.payload_left > 0 => self.note_response(),
            // Each concerns one of our requests, so their number is limited.
            RST_STREAM => {}
            // A large upload needs any number of them.
            WINDOW_UPDATE => self.window_updates += 1,
            _ => self.idle_frames += 1,
        }
        self.settled |= kind == SETTINGS;
        self.leaving |= kind == GOAWAY;
        if self.idle_frames.max(self.window_updates) > IDLE_FRAMES_MAX {
            return Err(DecodeError::TooLong { what: "frames without a response", limit: IDLE_FRAMES_MAX });
        }
        Ok(())
    }

    /// Bytes of an upload were sent, so the window updates were useful.
    pub(super) fn note_upload(&mut self) {
        self.window_updates = 0;
    }

    fn note_response(&mut self) {
        (self.idle_frames, self.window_updates) = (0, 0);
    }
}

/// Room for a window update and a ping with every response of a full connection, many times over; a flood exceeds it
/// within a megabyte. One read contains fewer window updates than this, so an upload can progress in between.
const IDLE_FRAMES_MAX: u64 = 10_000;

const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
