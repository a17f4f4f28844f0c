//! Finds a text in a stream of bytes that may be cut anywhere. It stores only the bytes around a cut, in memory that is
//! allocated once, when the connection is created.

use memchr::memmem::Finder;

/// Whether the text has occurred since [`Search::restart`].
#[derive(Debug, Clone)]
pub(crate) struct Search {
    found: bool,
    /// The last bytes of the stream, always fewer than the length of the text.
    tail: Vec<u8>,
    /// The tail, followed by the first bytes of the next piece.
    seam: Vec<u8>,
}

impl Search {
    pub(crate) fn new(text_bytes: usize) -> Search {
        Search {
            found: false,
            tail: Vec::with_capacity(text_bytes),
            seam: Vec::with_capacity(text_bytes.saturating_mul(2)),
        }
    }

    pub(crate) fn restart(&mut self) {
        self.found = false;
        self.tail.clear();
    }

    pub(crate) fn found(&self) -> bool {
        self.found
    }

    /// Searches the next piece of the stream.
    ///
    /// # Cost
    ///
    /// One pass over `piece`, plus at most two lengths of the text; no allocation.
    pub(crate) fn update(&mut self, finder: &Finder<'_>, piece: &[u8]) {
        if self.found || piece.is_empty() {
            return;
        }
        self.found = self.spans_seam(finder, piece) || finder.find(piece).is_some();
        self.keep_tail(finder.needle().len().saturating_sub(1), piece);
    }

    fn spans_seam(&mut self, finder: &Finder<'_>, piece: &[u8]) -> bool {
        if self.tail.is_empty() {
            return false;
        }
        let ahead = finder.needle().len().saturating_sub(1).min(piece.len());
        self.seam.clear();
        self.seam.extend_from_slice(&self.tail);
        self.seam.extend_from_slice(&piece[..ahead]);
        finder.find(&self.seam).is_some()
    }

    fn keep_tail(&mut self, tail_bytes: usize, piece: &[u8]) {
        if piece.len() >= tail_bytes {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - tail_bytes..]);
        } else {
            let surplus = (self.tail.len() + piece.len()).saturating_sub(tail_bytes);
            self.tail.drain(..surplus);
            self.tail.extend_from_slice(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found_in_pieces(text: &[u8], pieces: &[&[u8]]) -> bool {
        let finder = Finder::new(text);
        let mut search = Search::new(text.len());
        for piece in pieces {
            search.update(&finder, piece);
            assert!(search.tail.len() < text.len().max(1));
            assert!(search.seam.len() < 2 * text.len().max(1));
        }
        search.found()
    }

    #[test]
    fn a_text_cut_into_many_pieces_is_found() {
        assert!(found_in_pieces(b"needle", &[b"hay nee", b"d", b"", b"le hay"]));
        assert!(found_in_pieces(b"aab", &[b"a", b"a", b"a", b"b"]));
        assert!(!found_in_pieces(b"needle", &[b"nee", b"-", b"dle"]));
        assert!(found_in_pieces(b"x", &[b"", b"x"]));
    }

    proptest! {
        /// Few letters, so that near misses across the cuts are common.
        #[test]
        fn cuts_do_not_change_the_answer(text in "[ab]{1,5}", stream in "[ab]{0,40}", piece_bytes in 1usize..9) {
            let pieces: Vec<&[u8]> = stream.as_bytes().chunks(piece_bytes).collect();
            prop_assert_eq!(found_in_pieces(text.as_bytes(), &pieces), stream.contains(&text));
        }
    }
}
