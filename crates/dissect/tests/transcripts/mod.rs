//! Transcripts of real servers, and what a dissector reports about them. `testdata/README.md` describes how each was
//! taken.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "test code: a panic is the test failing; not every test uses all"
)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use dissect::{
    Counts, Digests, Direction, Dissector, DissectorSettings, Event, Piece, Protocol, RequestComplete,
    ResponseComplete, Start,
};

/// One piece of a transcript, whole.
#[derive(Debug, Clone)]
pub struct TranscriptPiece {
    pub direction: Direction,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Transcript {
    pub name: String,
    pub pieces: Vec<TranscriptPiece>,
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// All transcripts, by name.
pub fn all() -> Vec<Transcript> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "pieces"))
        .collect();
    names.sort();
    assert!(names.len() >= 30, "{} transcripts", names.len());
    names.iter().map(|path| read(path)).collect()
}

pub fn named(name: &str) -> Transcript {
    read(&folder().join(format!("{name}.pieces")))
}

fn read(path: &Path) -> Transcript {
    let pieces = std::fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| {
            let (side, text) = line.split_at(2);
            let direction = if side == "C " { Direction::FromClient } else { Direction::FromServer };
            TranscriptPiece { direction, bytes: unescape(text) }
        })
        .collect();
    Transcript { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), pieces }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let (byte, taken) = match (first, after.first()) {
            (b'\\', Some(b'n')) => (b'\n', 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(b'\\')) => (b'\\', 2),
            (b'\\', Some(b'x')) => {
                (u8::from_str_radix(std::str::from_utf8(&after[1..3]).unwrap(), 16).unwrap(), 4)
            }
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    bytes
}

/// A request as reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    pub request: RequestComplete,
    pub digest: String,
    pub response: Option<ResponseComplete>,
    pub dropped: bool,
}

/// Everything a dissector reported about a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dissected {
    pub protocols: Vec<Protocol>,
    pub exchanges: Vec<Exchange>,
    pub counts: Counts,
}

impl Dissected {
    /// One line per request.
    pub fn render(&self) -> String {
        let mut text = format!("protocols {:?}\n", self.protocols);
        for exchange in &self.exchanges {
            let RequestComplete { n, began, complete, kind, sight, .. } = exchange.request;
            write!(text, "{n} {kind:?} {sight:?} client {began}..{complete}").unwrap();
            match exchange.response {
                Some(ResponseComplete { began, end, status, end_by, statements, data_bytes, .. }) => {
                    let status = match status {
                        dissect::Status::SqlState(state) => format!("SqlState({})", state.escape_ascii()),
                        status => format!("{status:?}"),
                    };
                    write!(text, " server {began}..{end} {status} {end_by:?}").unwrap();
                    if (statements, data_bytes) != (1, 0) {
                        write!(text, " {statements} statements, {data_bytes} bytes of data").unwrap();
                    }
                }
                None if exchange.request.no_response => text.push_str(" no response"),
                None if exchange.dropped => text.push_str(" dropped"),
                None => text.push_str(" in flight"),
            }
            writeln!(text, " | {}", exchange.digest).unwrap();
        }
        writeln!(text, "{:?}", self.counts).unwrap();
        text
    }
}

/// Drives a dissector and keeps what it reports; checks the law and the order of events on the way.
pub struct Harness {
    pub dissector: Dissector,
    pub digests: Digests,
    events: Vec<Event>,
    pub dissected: Dissected,
}

impl Harness {
    pub fn new(settings: DissectorSettings) -> Harness {
        let dissector = Dissector::new(settings);
        Harness {
            dissector,
            digests: Digests::default(),
            events: Vec::new(),
            dissected: Dissected::default(),
        }
    }

    pub fn feed(&mut self, piece: &Piece<'_>) {
        let named_from = self.dissector.named_from();
        self.dissector.handle_piece(piece, &mut self.digests, &mut self.events);
        self.take(named_from);
    }

    pub fn close(mut self) -> Dissected {
        let named_from = self.dissector.named_from();
        self.dissector.handle_close(&mut self.events);
        self.take(named_from);
        self.dissected.counts = *self.dissector.counts();
        let dropped = self.dissected.exchanges.iter().filter(|exchange| exchange.dropped).count() as u64;
        assert_eq!(dropped, self.dissected.counts.dropped);
        for exchange in &self.dissected.exchanges {
            let endings = [exchange.request.no_response, exchange.dropped, exchange.response.is_some()];
            assert_eq!(endings.into_iter().filter(|ending| *ending).count(), 1, "{exchange:?}");
        }
        self.dissected
    }

    fn take(&mut self, (client_from, server_from): (u64, u64)) {
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::ProtocolKnown(protocol) => self.dissected.protocols.push(protocol),
                Event::RequestComplete(request) => {
                    assert!(
                        request.began >= client_from && request.complete >= request.began,
                        "{request:?} {client_from}"
                    );
                    let digest = self.digests.text(request.digest).to_owned();
                    self.dissected.exchanges.push(Exchange {
                        request,
                        digest,
                        response: None,
                        dropped: false,
                    });
                }
                Event::ResponseComplete(response) => {
                    assert!(
                        response.began >= server_from && response.end >= response.began,
                        "{response:?} {server_from}"
                    );
                    let exchange = self.exchange(response.n);
                    assert!(!exchange.request.no_response && !exchange.dropped);
                    assert_eq!(exchange.response.replace(response), None);
                }
                Event::Dropped { n } => {
                    let exchange = self.exchange(n);
                    assert!(
                        exchange.response.is_none() && !exchange.request.no_response && !exchange.dropped
                    );
                    exchange.dropped = true;
                }
            }
        }
    }

    fn exchange(&mut self, n: u64) -> &mut Exchange {
        self.dissected
            .exchanges
            .iter_mut()
            .rev()
            .find(|exchange| exchange.request.n == n)
            .expect("every response has a request")
    }
}

/// What is reported for pieces that were captured up to `capture` bytes each.
pub fn dissect_at(pieces: &[TranscriptPiece], capture: usize, settings: DissectorSettings) -> Dissected {
    let mut harness = Harness::new(settings);
    for piece in pieces {
        let captured = &piece.bytes[..piece.bytes.len().min(capture)];
        let length = piece.bytes.len() as u64;
        harness.feed(&Piece { direction: piece.direction, length, captured, missed: None });
    }
    harness.close()
}

pub fn whole(transcript: &Transcript) -> Dissected {
    dissect_at(&transcript.pieces, usize::MAX, DissectorSettings::default())
}

/// The protocol as a port hint, as a user would give it.
pub fn hinted(transcript: &Transcript) -> DissectorSettings {
    let hint = match transcript.name.split('-').next().unwrap() {
        "mariadb" => Protocol::MySql,
        "postgres" => Protocol::Postgres,
        "redis" => Protocol::Redis,
        _ => Protocol::Http1,
    };
    DissectorSettings { start: Start::Fresh, hint: Some(hint) }
}
