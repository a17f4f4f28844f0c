//! Watches the frames of a peer go by: their types and lengths, and nothing within them.
//!
//! `h2` does not say whether the peer's settings have come or that it is going away, and it answers every ping of
//! a peer that asks for no response of ours. It is watched here from the nine bytes that begin each frame.

use crate::DecodeError;

/// Where in the frames of a peer the input stands, and what they have said.
#[derive(Debug, Default)]
pub(super) struct FrameWatch {
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// What is left of the current frame behind its header.
    payload_left: usize,
    /// Frames since the last that brought a response further, but for window updates.
    idle_frames: u64,
    /// Window updates since the last that brought a response or an upload further.
    window_updates: u64,
    /// The peer's settings have come.
    pub settled: bool,
    /// The peer has said that it takes no more requests.
    pub leaving: bool,
}

impl FrameWatch {
    /// Looks at `input`. Gives how much of it may go to `h2`, and what is wrong with the rest: the peer keeps us
    /// busy with frames that bring no response further, or does not speak HTTP/2 at all.
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
            // RFC 9113, section 3.4: whatever this is, it does not begin as a server of HTTP/2 must.
            return Err(DecodeError::Malformed { what: "beginning: the peer does not speak HTTP/2" });
        }
        match kind {
            HEADERS => self.note_response(),
            DATA if self.payload_left > 0 => self.note_response(),
            // Each is about one of our requests, of which there are only so many.
            RST_STREAM => {}
            // A large upload takes any number of them.
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

    /// The room that the peer has made was used.
    pub(super) fn note_upload(&mut self) {
        self.window_updates = 0;
    }

    fn note_response(&mut self) {
        (self.idle_frames, self.window_updates) = (0, 0);
    }
}

/// Room for a window update and a ping with every answer of a full connection, many times over; a flood passes it
/// within a megabyte. One read holds fewer window updates, so that an upload has its say in between.
const IDLE_FRAMES_MAX: u64 = 10_000;

const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
