//! What a passive place does to transcripts: captures that are too short, a beginning that was missed, pieces that
//! were lost.

mod transcripts;

use dissect::{Asked, Direction, EndBy, Piece, Settings, Sight, Start};
use proptest::prelude::*;
use transcripts::{Listener, Said, Story, Told, Transcript, all, hinted, named, story};

fn whole(transcript: &Transcript) -> Story {
    story(&transcript.pieces, usize::MAX, hinted(transcript))
}

/// Where a request begins and is complete, and where its answer begins and ends.
type Positions = (u64, u64, Option<(u64, u64)>);

fn positions(story: &Story, (client, server): (u64, u64)) -> Vec<Positions> {
    let of = |told: &Told| {
        let answer = told.answered.map(|answered| (answered.began + server, answered.end + server));
        (told.asked.began + client, told.asked.complete + client, answer)
    };
    story.told.iter().map(of).collect()
}

/// Of so many requests in one piece that a short capture does not hold their headers.
fn is_pipelined(name: &str) -> bool {
    name.starts_with("redis-bench") || name == "nginx-pipelined"
}

/// If this fails, a server under `watch` has more or fewer requests than it served.
#[test]
fn a_short_capture_makes_no_request_up_and_loses_none_whose_header_it_holds() {
    for transcript in all() {
        let whole = whole(&transcript);
        for capture in [0, 1, 4, 5, 9, 16, 24, 32, 48, 64, 100, 128, 192, 256, 512, 1024, 4096, 16384] {
            let cut = story(&transcript.pieces, capture, hinted(&transcript));
            let name = format!("{} at {capture}: {}", transcript.name, cut.render());
            // A header has up to 25 bytes with what tells its kind: `100 Continue`.
            assert!(capture < 32 || cut.told.len() <= whole.told.len(), "{name}");
            if capture >= 256 && !is_pipelined(&transcript.name) {
                assert_eq!(cut.told.len(), whole.told.len(), "{name}");
            }
            if capture >= 64 && cut.counts.cut == 0 && cut.counts.unparsed == 0 {
                assert_eq!(positions(&cut, (0, 0)), positions(&whole, (0, 0)), "{name}");
            }
        }
    }
}

/// A pipeline of which only the first commands are seen: the answers count the others.
#[test]
fn answers_count_the_requests_that_were_not_captured() {
    for name in ["redis-bench-set", "redis-bench-get"] {
        let transcript = named(name);
        let whole = whole(&transcript);
        for capture in [64, 100, 256, 1024] {
            let mut listener = Listener::new(hinted(&transcript));
            for said in &transcript.pieces {
                let kept = if said.direction == Direction::FromClient { capture } else { usize::MAX };
                let captured = &said.bytes[..said.bytes.len().min(kept)];
                let length = said.bytes.len() as u64;
                listener.hear(&Piece { direction: said.direction, length, captured, missed: false });
            }
            let cut = listener.close();
            assert_eq!(cut.told.len(), whole.told.len(), "{name} at {capture}");
            let answers = |story: &Story| -> Vec<_> {
                story
                    .told
                    .iter()
                    .map(|told| told.answered.map(|answered| (answered.began, answered.end)))
                    .collect()
            };
            assert_eq!(answers(&cut), answers(&whole), "{name} at {capture}");
        }
    }
}

#[test]
fn joined_at_any_piece_what_is_told_is_true() {
    for transcript in all() {
        let whole = whole(&transcript);
        let (mut client, mut server) = (0, 0);
        for (index, said) in transcript.pieces.iter().enumerate() {
            for hint in [hinted(&transcript).hint, None] {
                let settings = Settings { start: Start::Joined, hint };
                let joined = story(&transcript.pieces[index..], usize::MAX, settings);
                let name = format!("{} from {index}: {}", transcript.name, joined.render());
                let told = positions(&joined, (client, server));
                assert!(positions(&whole, (0, 0)).ends_with(&told), "{name}");
                let numbers: Vec<u64> = joined.told.iter().map(|told| told.asked.n).collect();
                assert_eq!(numbers, (0..told.len() as u64).collect::<Vec<_>>(), "{name}");
                let left = whole.told.iter().filter(|told| told.asked.began >= client).count();
                assert!(told.len() == left || joined.counts.mid_connection > 0, "{name}");
                // One turn to find the boundary, one to prove it; data of a COPY takes a turn of its own.
                let serial = !is_pipelined(&transcript.name) && !transcript.name.contains("pipeline");
                if serial && hint.is_some() && transcript.pieces.len() > 40 {
                    // What has no answer proves nothing.
                    let answered = |told: &&Told| told.asked.began >= client && told.answered.is_some();
                    let left = whole.told.iter().filter(answered).count();
                    assert!(told.len() + 3 >= left, "{left} left of {name}");
                }
            }
            match said.direction {
                Direction::FromClient => client += said.bytes.len() as u64,
                Direction::FromServer => server += said.bytes.len() as u64,
            }
        }
    }
}

/// A request and its answer, as long as they were. A statement that was prepared unseen is as good as its text.
fn lengths(told: &Told) -> Option<(String, u64, u64)> {
    let answered = told.answered?;
    let Asked { began, complete, kind, .. } = told.asked;
    Some((format!("{kind:?} {:?}", answered.status), complete - began, answered.end - answered.began))
}

fn hear_with_losses(transcript: &Transcript, lost: impl Fn(usize) -> bool) -> Story {
    let mut listener = Listener::new(hinted(transcript));
    let mut missed = false;
    for (index, said) in transcript.pieces.iter().enumerate() {
        if lost(index) {
            missed = true;
            continue;
        }
        let Said { direction, bytes } = said;
        listener.hear(&Piece { missed: std::mem::take(&mut missed), ..Piece::whole(*direction, bytes) });
    }
    listener.close()
}

/// If this fails, a lost piece gives a request the answer of another one.
#[test]
fn after_a_loss_what_is_told_is_true() {
    for transcript in all() {
        let whole: Vec<_> = whole(&transcript).told.iter().filter_map(lengths).collect();
        for first in 0..transcript.pieces.len() {
            for count in 1..4 {
                let heard = hear_with_losses(&transcript, |index| (first..first + count).contains(&index));
                for told in heard.told.iter().filter(|told| told.asked.sight == Sight::Framed) {
                    let framed = told.answered.is_some_and(|answered| answered.end_by == EndBy::Framing);
                    let Some(lengths) = lengths(told).filter(|_| framed) else { continue };
                    assert!(whole.contains(&lengths), "{} without {first}: {told:?}", transcript.name);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// The law is checked by the listener: every request asked is answered, unanswered by nature, or dropped.
    #[test]
    fn the_law_holds_whatever_is_captured_missed_or_lost(
        captures in proptest::collection::vec(prop_oneof![Just(usize::MAX), 0usize..80], 1..30),
        losses in proptest::collection::vec(0u8..20, 1..30),
        start in prop_oneof![Just(Start::Fresh), Just(Start::Joined)],
    ) {
        for transcript in all() {
            let mut listener = Listener::new(Settings { start, ..hinted(&transcript) });
            let mut missed = false;
            for (index, said) in transcript.pieces.iter().enumerate() {
                if losses[index % losses.len()] == 0 {
                    missed = true;
                    continue;
                }
                let captured = &said.bytes[..said.bytes.len().min(captures[index % captures.len()])];
                let (direction, length) = (said.direction, said.bytes.len() as u64);
                listener.hear(&Piece { direction, length, captured, missed: std::mem::take(&mut missed) });
            }
            listener.close();
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
        let mut listener = Listener::new(hinted(transcript));
        for said in transcript.pieces.iter().take(at) {
            listener.hear(&Piece::whole(said.direction, &said.bytes));
        }
        for (client, bytes, more, missed) in &pieces {
            let direction = if *client { Direction::FromClient } else { Direction::FromServer };
            let length = bytes.len() as u64 + more.saturating_sub(30);
            listener.hear(&Piece { direction, length, captured: bytes, missed: *missed == 0 });
        }
        listener.close();
    }
}
