//! Any pieces of any connection: no panic, bounded memory, and the law that every complete request gets a response,
//! has none by nature, is dropped, or is in flight. A connection captured whole gives the same events however its
//! pieces are cut.
//!
//! The first byte chooses hint and start; then each piece has a byte for its direction, loss and capture, a byte for
//! its length, and its bytes.

#![no_main]

use dissect::{Digests, Direction, Dissector, Event, Piece, Protocol, DissectorSettings, Start};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [options, rest @ ..] = data else { return };
    let settings = settings(*options);
    let pieces = pieces(rest);
    tell(settings, pieces.iter().copied());
    if settings.start == Start::Fresh {
        let whole = || pieces.iter().map(|piece| Piece { missed: None, ..Piece::whole(piece.direction, piece.captured) });
        let told = tell(settings, whole());
        let cut = whole().flat_map(|piece| piece.captured.chunks(1).map(move |byte| Piece::whole(piece.direction, byte)));
        assert_eq!(framed(&tell(settings, cut)), framed(&told));
    }
});

fn settings(options: u8) -> DissectorSettings {
    let hints = [None, Some(Protocol::Http1), Some(Protocol::Postgres), Some(Protocol::MySql), Some(Protocol::Redis)];
    let start = if options & 0x80 == 0 { Start::Fresh } else { Start::Joined };
    DissectorSettings { start, hint: hints[usize::from(options & 0x7f) % hints.len()] }
}

fn pieces(mut rest: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    while let [flags, length, behind @ ..] = rest {
        let (bytes, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        let direction = if flags & 1 == 0 { Direction::FromClient } else { Direction::FromServer };
        let more = u64::from(flags >> 2 & 0xf) * 97;
        let lost = flags & 0xc2 == 0xc2;
        pieces.push(Piece { direction, length: bytes.len() as u64 + more, captured: bytes, missed: lost.then_some(more) });
        rest = behind;
    }
    pieces
}

/// Requests that are known by their framing: those known by turns may differ with the cuts.
fn framed(events: &[Event]) -> Vec<Event> {
    let lost = events.iter().position(|event| match event {
        Event::ResponseComplete(answered) => answered.end_by == dissect::EndBy::Turn,
        Event::RequestComplete(asked) => asked.sight != dissect::Sight::Framed,
        Event::Dropped { .. } => true,
        Event::ProtocolKnown(_) => false,
    });
    events[..lost.unwrap_or(events.len())].to_vec()
}

fn tell<'a>(settings: DissectorSettings, pieces: impl Iterator<Item = Piece<'a>>) -> Vec<Event> {
    let mut dissector = Dissector::new(settings);
    let (mut digests, mut events) = (Digests::default(), Vec::new());
    for piece in pieces {
        dissector.handle_piece(&piece, &mut digests, &mut events);
    }
    dissector.handle_close(&mut events);
    let (mut asked, mut no_response, mut answered, mut dropped) = (0, 0, 0, 0);
    for event in &events {
        match event {
            Event::RequestComplete(of) if of.no_response => no_response += 1,
            Event::RequestComplete(of) => {
                assert!(of.began <= of.complete);
                asked += 1;
            }
            Event::ResponseComplete(of) => {
                assert!(of.began <= of.end);
                answered += 1;
            }
            Event::Dropped { .. } => dropped += 1,
            Event::ProtocolKnown(_) => {}
        }
        assert!(answered + dropped <= asked);
    }
    assert_eq!(asked, answered + dropped);
    let _ = no_response;
    assert_eq!(dropped, dissector.counts().dropped);
    events
}
