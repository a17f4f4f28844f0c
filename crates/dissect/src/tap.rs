//! One direction of a connection: from pieces to frames.
//!
//! A frame is what its protocol reads at once: a message, a head, a line. A tap passes it on in place if it is whole in
//! the piece, keeps the beginning of one that is cut by the end of a piece, and skips the rest of one with a known
//! length, by the true lengths of pieces, captured or not. It does not depend on the protocol.

use crate::piece::Piece;

#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// Bytes of this direction so far.
    position: u64,
    /// Bytes still to come of the frame that is being skipped.
    skip: u64,
    /// The beginning of a frame whose header is not whole.
    held: Vec<u8>,
    lost: bool,
}

/// The visible part of a frame, from its first byte on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub bytes: &'a [u8],
    /// Where they begin.
    pub at: u64,
    /// What follows them was not captured, so no more will be seen.
    pub cut: bool,
}

/// The result of reading a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A frame of this many bytes, in view or not.
    Taken(u64),
    /// Its header is not whole.
    Need,
    /// Not of this protocol.
    Bad,
}

/// The state of a tap after a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fed {
    InStep,
    /// Just now a header was in bytes that were not captured.
    Cut,
    /// Just now bytes were not of the protocol.
    Bad,
    /// Framing was lost before.
    Lost,
}

impl Tap {
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Where the held beginning of a frame is; the position when none is held.
    pub(crate) fn frame_began(&self) -> u64 {
        self.position.saturating_sub(self.held.len() as u64)
    }

    /// The next piece begins with a frame.
    pub(crate) fn restart(&mut self) {
        self.lost = false;
        self.skip = 0;
        self.release();
    }

    /// Skips a piece without reading it.
    pub(crate) fn pass(&mut self, length: u64) {
        self.position = self.position.saturating_add(length);
    }

    /// Passes each frame that begins in `piece` to `frame`, once all of it that is needed is in view.
    pub(crate) fn feed(&mut self, piece: &Piece<'_>, mut frame: impl FnMut(View<'_>) -> Step) -> Fed {
        let start = self.position;
        self.pass(piece.length);
        if self.lost {
            return Fed::Lost;
        }
        let seen = piece.bytes();
        let unseen = piece.length - seen.len() as u64;
        let mut next = 0;
        loop {
            let rest = &seen[next..];
            let passed = usize::try_from(self.skip).unwrap_or(usize::MAX).min(rest.len());
            self.skip -= passed as u64;
            next += passed;
            if next == seen.len() {
                return self.pass_unseen(unseen);
            }
            let rest = &seen[next..];
            let at = start + next as u64;
            let had = self.held.len();
            let step = if had == 0 {
                frame(View { bytes: rest, at, cut: unseen > 0 })
            } else {
                self.held.extend_from_slice(&rest[..rest.len().min(HELD_BYTES)]);
                frame(View { bytes: &self.held, at: at.saturating_sub(had as u64), cut: unseen > 0 })
            };
            match step {
                Step::Taken(length) if length > had as u64 => {
                    self.skip = length - had as u64;
                    self.release();
                }
                // The frame was held whole: what follows it had to be seen too. The rest is read again.
                Step::Taken(length) if length > 0 => {
                    self.held.truncate(had);
                    self.held.drain(..usize::try_from(length).unwrap_or(had));
                }
                Step::Need if unseen > 0 => return self.lose(Fed::Cut),
                Step::Need if had + rest.len() <= HELD_BYTES => {
                    if had == 0 {
                        self.held.extend_from_slice(rest);
                    }
                    return Fed::InStep;
                }
                Step::Need | Step::Bad | Step::Taken(_) => return self.lose(Fed::Bad),
            }
        }
    }

    fn pass_unseen(&mut self, unseen: u64) -> Fed {
        let passed = self.skip.min(unseen);
        self.skip -= passed;
        if passed == unseen { Fed::InStep } else { self.lose(Fed::Cut) }
    }

    fn lose(&mut self, why: Fed) -> Fed {
        self.lost = true;
        self.skip = 0;
        self.release();
        why
    }

    fn release(&mut self) {
        if self.held.capacity() > KEPT_BYTES {
            self.held = Vec::new();
        } else {
            self.held.clear();
        }
    }
}

/// The longest beginning of a frame that is kept: an HTTP head is at most 8 KiB for most servers, and the text of a
/// statement is read up to 4 KiB.
pub(crate) const HELD_BYTES: usize = 16 << 10;

/// Larger buffers are freed when they are no longer needed: thousands of idle connections would each keep one.
const KEPT_BYTES: usize = 1 << 10;
