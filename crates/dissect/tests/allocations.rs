//! The guarantee of the hot path: no allocation for a request that is whole in its piece.

mod transcripts;

use allocation_counter::measure;
use dissect::{Digests, Dissector, Piece};
use transcripts::{hinted, named};

/// The turns of a transcript, repeated: once all digests are known and the buffers have grown, none allocates.
#[test]
fn requests_whose_digests_are_known_cost_no_allocation() {
    for (name, skip) in [
        ("redis-bench-get", 0),
        ("redis-resp2", 0),
        ("nginx-curl", 0),
        ("mariadb-slap", 4),
        ("mariadb-session", 4),
        ("postgres-simple", 3),
        ("postgres-prepared", 3),
    ] {
        let transcript = named(name);
        let mut dissector = Dissector::new(hinted(&transcript));
        let (mut digests, mut events) = (Digests::default(), Vec::new());
        let (login, turns) = transcript.pieces.split_at(skip);
        let mut feed = |pieces: &[transcripts::TranscriptPiece]| {
            for piece in pieces {
                events.clear();
                let piece = Piece::whole(piece.direction, &piece.bytes);
                dissector.handle_piece(&piece, &mut digests, &mut events);
            }
        };
        feed(login);
        // Twice: a text that is kept may replace a longer one the second time.
        feed(turns);
        feed(turns);
        let taken = measure(|| (0..20).for_each(|_| feed(turns)));
        assert_eq!(taken.count_total, 0, "{name}");
    }
}
