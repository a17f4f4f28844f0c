//! Transcripts under the conditions of a passive observer: captures that are too short, a missed beginning, lost
//! pieces.

mod transcripts;

use dissect::{Direction, DissectorSettings, EndBy, Piece, RequestComplete, Sight, Start};
use proptest::prelude::*;
use transcripts::{
    Dissected, Exchange, Harness, Transcript, TranscriptPiece, all, dissect_at, hinted, named,
};

fn whole(transcript: &Transcript) -> Dissected {
    dissect_at(&transcript.pieces, usize::MAX, hinted(transcript))
}

/// Where a request begins and is complete, and where its response begins and ends.
type Positions = (u64, u64, Option<(u64, u64)>);

fn positions(dissected: &Dissected, (client, server): (u64, u64)) -> Vec<Positions> {
    let of = |exchange: &Exchange| {
        let response = exchange.response.map(|response| (response.began + server, response.end + server));
        (exchange.request.began + client, exchange.request.complete + client, response)
    };
    dissected.exchanges.iter().map(of).collect()
}

/// Whether so many requests are in one piece that a short capture does not include their headers.
fn is_pipelined(name: &str) -> bool {
    name.starts_with("redis-bench") || name == "nginx-pipelined"
}

/// If this fails, a server under `watch` has more or fewer requests than it served.
#[test]
fn a_short_capture_invents_no_request_and_loses_none_whose_header_it_has() {
    for transcript in all() {
        let whole = whole(&transcript);
        for capture in [0, 1, 4, 5, 9, 16, 24, 32, 48, 64, 100, 128, 192, 256, 512, 1024, 4096, 16384] {
            let cut = dissect_at(&transcript.pieces, capture, hinted(&transcript));
            let name = format!("{} at {capture}: {}", transcript.name, cut.render());
            // A header has up to 25 bytes, including what identifies its kind: `100 Continue`.
            assert!(capture < 32 || cut.exchanges.len() <= whole.exchanges.len(), "{name}");
            if capture >= 256 && !is_pipelined(&transcript.name) {
                assert_eq!(cut.exchanges.len(), whole.exchanges.len(), "{name}");
            }
            if capture >= 64 && cut.counts.cut == 0 && cut.counts.unparsed == 0 {
                assert_eq!(positions(&cut, (0, 0)), positions(&whole, (0, 0)), "{name}");
            }
        }
    }
}

/// If this fails, the beginning of a response is dropped that later events refer to.
#[test]
fn a_response_that_is_cut_by_a_request_keeps_its_beginning() {
    let transcript = named("redis-bench-get");
    let mut harness = Harness::new(hinted(&transcript));
    let first = &transcript.pieces[0];
    harness.feed(&Piece::whole(first.direction, &first.bytes));
    harness.feed(&Piece::whole(Direction::FromServer, b"#"));
    harness.feed(&Piece { direction: Direction::FromClient, length: 1, captured: b"", missed: None });
    harness.feed(&Piece::whole(Direction::FromServer, b"t"));
    harness.feed(&Piece::whole(Direction::FromServer, b"\r\n"));
    assert_eq!(harness.close().exchanges[0].response.map(|response| response.began), Some(0));
}

/// A pipeline with only the first commands captured: the responses count the others.
#[test]
fn responses_count_the_requests_that_were_not_captured() {
    for name in ["redis-bench-set", "redis-bench-get"] {
        let transcript = named(name);
        let whole = whole(&transcript);
        for capture in [64, 100, 256, 1024] {
            let mut harness = Harness::new(hinted(&transcript));
            for piece in &transcript.pieces {
                let kept = if piece.direction == Direction::FromClient { capture } else { usize::MAX };
                let captured = &piece.bytes[..piece.bytes.len().min(kept)];
                let length = piece.bytes.len() as u64;
                harness.feed(&Piece { direction: piece.direction, length, captured, missed: None });
            }
            let cut = harness.close();
            assert_eq!(cut.exchanges.len(), whole.exchanges.len(), "{name} at {capture}");
            let responses = |dissected: &Dissected| -> Vec<_> {
                dissected
                    .exchanges
                    .iter()
                    .map(|exchange| exchange.response.map(|response| (response.began, response.end)))
                    .collect()
            };
            assert_eq!(responses(&cut), responses(&whole), "{name} at {capture}");
        }
    }
}

#[test]
fn joined_at_any_piece_everything_reported_is_true() {
    for transcript in all() {
        let whole = whole(&transcript);
        let (mut client, mut server) = (0, 0);
        for (index, piece) in transcript.pieces.iter().enumerate() {
            for hint in [hinted(&transcript).hint, None] {
                let settings = DissectorSettings { start: Start::Joined, hint };
                let joined = dissect_at(&transcript.pieces[index..], usize::MAX, settings);
                let name = format!("{} from {index}: {}", transcript.name, joined.render());
                let reported = positions(&joined, (client, server));
                assert!(positions(&whole, (0, 0)).ends_with(&reported), "{name}");
                let numbers: Vec<u64> = joined.exchanges.iter().map(|exchange| exchange.request.n).collect();
                assert_eq!(numbers, (0..reported.len() as u64).collect::<Vec<_>>(), "{name}");
                let left = whole.exchanges.iter().filter(|exchange| exchange.request.began >= client).count();
                assert!(reported.len() == left || joined.counts.mid_connection > 0, "{name}");
                // One turn to find the boundary, one to prove it; data of a COPY takes another turn.
                let serial = !is_pipelined(&transcript.name) && !transcript.name.contains("pipeline");
                if serial && hint.is_some() && transcript.pieces.len() > 40 {
                    // A request without a response proves nothing.
                    let responded = |exchange: &&Exchange| {
                        exchange.request.began >= client && exchange.response.is_some()
                    };
                    let left = whole.exchanges.iter().filter(responded).count();
                    assert!(reported.len() + 3 >= left, "{left} left of {name}");
                }
            }
            match piece.direction {
                Direction::FromClient => client += piece.bytes.len() as u64,
                Direction::FromServer => server += piece.bytes.len() as u64,
            }
        }
    }
}

/// The lengths of a request and its response. A statement that was prepared unseen is as good as its text.
fn lengths(exchange: &Exchange) -> Option<(String, u64, u64)> {
    let response = exchange.response?;
    let RequestComplete { began, complete, kind, .. } = exchange.request;
    Some((format!("{kind:?} {:?}", response.status), complete - began, response.end - response.began))
}

fn dissect_with_losses(transcript: &Transcript, lost: impl Fn(usize) -> bool) -> Dissected {
    let mut harness = Harness::new(hinted(transcript));
    let mut missed = false;
    for (index, piece) in transcript.pieces.iter().enumerate() {
        if lost(index) {
            missed = true;
            continue;
        }
        let TranscriptPiece { direction, bytes } = piece;
        harness.feed(&Piece {
            missed: std::mem::take(&mut missed).then_some(0),
            ..Piece::whole(*direction, bytes)
        });
    }
    harness.close()
}

/// If this fails, a lost piece gives a request the response of another one.
#[test]
fn after_a_loss_everything_reported_is_true() {
    for transcript in all() {
        let whole: Vec<_> = whole(&transcript).exchanges.iter().filter_map(lengths).collect();
        for first in 0..transcript.pieces.len() {
            for count in 1..4 {
                let dissected =
                    dissect_with_losses(&transcript, |index| (first..first + count).contains(&index));
                for exchange in
                    dissected.exchanges.iter().filter(|exchange| exchange.request.sight == Sight::Framed)
                {
                    let framed = exchange.response.is_some_and(|response| response.end_by == EndBy::Framing);
                    let Some(lengths) = lengths(exchange).filter(|_| framed) else { continue };
                    assert!(whole.contains(&lengths), "{} without {first}: {exchange:?}", transcript.name);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The harness checks the law: every complete request gets a response, has none by nature, or is dropped.
    #[test]
    fn the_law_holds_whatever_is_captured_missed_or_lost(
        captures in proptest::collection::vec(prop_oneof![Just(usize::MAX), 0usize..80], 1..30),
        losses in proptest::collection::vec(0u8..20, 1..30),
        start in prop_oneof![Just(Start::Fresh), Just(Start::Joined)],
    ) {
        for transcript in all() {
            let mut harness = Harness::new(DissectorSettings { start, ..hinted(&transcript) });
            let mut missed = false;
            for (index, piece) in transcript.pieces.iter().enumerate() {
                if losses[index % losses.len()] == 0 {
                    missed = true;
                    continue;
                }
                let captured = &piece.bytes[..piece.bytes.len().min(captures[index % captures.len()])];
                let (direction, length) = (piece.direction, piece.bytes.len() as u64);
                harness.feed(&Piece { direction, length, captured, missed: std::mem::take(&mut missed).then_some(0) });
            }
            harness.close();
        }
    }

    #[test]
    fn the_law_holds_for_any_bytes(
        pieces in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40), 0u64..60, 0u8..12), 0..40),
        of in 0usize..31,
        at in 0usize..60,
    ) {
        let transcripts = all();
        let transcript = &transcripts[of % transcripts.len()];
        let mut harness = Harness::new(hinted(transcript));
        for piece in transcript.pieces.iter().take(at) {
            harness.feed(&Piece::whole(piece.direction, &piece.bytes));
        }
        for (client, bytes, more, missed) in &pieces {
            let direction = if *client { Direction::FromClient } else { Direction::FromServer };
            let length = bytes.len() as u64 + more.saturating_sub(30);
            harness.feed(&Piece { direction, length, captured: bytes, missed: (*missed == 0).then_some(0) });
        }
        harness.close();
    }
}
