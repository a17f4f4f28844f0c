//! Transcripts of real servers, and what a dissector tells of them. `testdata/README.md` says how each was taken.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "test code: a panic is the test failing; not every test uses all"
)]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use dissect::{
    Answered, Asked, Counts, Digests, Direction, Dissector, Event, Piece, Protocol, Settings, Start,
};

/// One piece of a transcript, whole.
#[derive(Debug, Clone)]
pub struct Said {
    pub direction: Direction,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct Transcript {
    pub name: String,
    pub pieces: Vec<Said>,
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
            Said { direction, bytes: unescape(text) }
        })
        .collect();
    Transcript { name: path.file_stem().unwrap().to_str().unwrap().to_owned(), pieces }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let (byte, taken) = match (first, behind.first()) {
            (b'\\', Some(b'n')) => (b'\n', 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(b'\\')) => (b'\\', 2),
            (b'\\', Some(b'x')) => {
                (u8::from_str_radix(std::str::from_utf8(&behind[1..3]).unwrap(), 16).unwrap(), 4)
            }
            _ => (*first, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    bytes
}

/// A request as it was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    pub asked: Asked,
    pub digest: String,
    pub answered: Option<Answered>,
    pub dropped: bool,
}

/// What a dissector told of a connection.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Story {
    pub spoken: Vec<Protocol>,
    pub told: Vec<Told>,
    pub counts: Counts,
}

impl Story {
    /// One line a request.
    pub fn render(&self) -> String {
        let mut text = format!("spoken {:?}\n", self.spoken);
        for told in &self.told {
            let Asked { n, began, complete, kind, sight, .. } = told.asked;
            write!(text, "{n} {kind:?} {sight:?} client {began}..{complete}").unwrap();
            match told.answered {
                Some(Answered { began, end, status, end_by, .. }) => {
                    let status = match status {
                        dissect::Status::SqlState(state) => format!("SqlState({})", state.escape_ascii()),
                        status => format!("{status:?}"),
                    };
                    write!(text, " server {began}..{end} {status} {end_by:?}").unwrap();
                }
                None if told.asked.unanswered => text.push_str(" unanswered"),
                None if told.dropped => text.push_str(" dropped"),
                None => text.push_str(" under way"),
            }
            writeln!(text, " | {}", told.digest).unwrap();
        }
        writeln!(text, "{:?}", self.counts).unwrap();
        text
    }
}

/// Drives a dissector and keeps what it tells; checks the law and the order of events on the way.
pub struct Listener {
    pub dissector: Dissector,
    pub digests: Digests,
    events: Vec<Event>,
    pub story: Story,
}

impl Listener {
    pub fn new(settings: Settings) -> Listener {
        let dissector = Dissector::new(settings);
        Listener { dissector, digests: Digests::default(), events: Vec::new(), story: Story::default() }
    }

    pub fn hear(&mut self, piece: &Piece<'_>) {
        let named_from = self.dissector.named_from();
        self.dissector.handle_piece(piece, &mut self.digests, &mut self.events);
        self.take(named_from);
    }

    pub fn close(mut self) -> Story {
        let named_from = self.dissector.named_from();
        self.dissector.handle_close(&mut self.events);
        self.take(named_from);
        self.story.counts = *self.dissector.counts();
        let dropped = self.story.told.iter().filter(|told| told.dropped).count() as u64;
        assert_eq!(dropped, self.story.counts.dropped);
        for told in &self.story.told {
            let endings = [told.asked.unanswered, told.dropped, told.answered.is_some()];
            assert_eq!(endings.into_iter().filter(|ending| *ending).count(), 1, "{told:?}");
        }
        self.story
    }

    fn take(&mut self, (client_from, server_from): (u64, u64)) {
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Spoken(protocol) => self.story.spoken.push(protocol),
                Event::Asked(asked) => {
                    assert!(
                        asked.began >= client_from && asked.complete >= asked.began,
                        "{asked:?} {client_from}"
                    );
                    let digest = self.digests.text(asked.digest).to_owned();
                    self.story.told.push(Told { asked, digest, answered: None, dropped: false });
                }
                Event::Answered(answered) => {
                    assert!(
                        answered.began >= server_from && answered.end >= answered.began,
                        "{answered:?} {server_from}"
                    );
                    let told = self.told(answered.n);
                    assert!(!told.asked.unanswered && !told.dropped);
                    assert_eq!(told.answered.replace(answered), None);
                }
                Event::Dropped { n } => {
                    let told = self.told(n);
                    assert!(told.answered.is_none() && !told.asked.unanswered && !told.dropped);
                    told.dropped = true;
                }
            }
        }
    }

    fn told(&mut self, n: u64) -> &mut Told {
        self.story.told.iter_mut().rev().find(|told| told.asked.n == n).expect("answered what was asked")
    }
}

/// What is told of pieces that were captured up to `capture` bytes each.
pub fn story(pieces: &[Said], capture: usize, settings: Settings) -> Story {
    let mut listener = Listener::new(settings);
    for piece in pieces {
        let captured = &piece.bytes[..piece.bytes.len().min(capture)];
        let length = piece.bytes.len() as u64;
        listener.hear(&Piece { direction: piece.direction, length, captured, missed: false });
    }
    listener.close()
}

pub fn whole(transcript: &Transcript) -> Story {
    story(&transcript.pieces, usize::MAX, Settings::default())
}

/// A port hint, as a user would have it.
pub fn hinted(transcript: &Transcript) -> Settings {
    let hint = match transcript.name.split('-').next().unwrap() {
        "mariadb" => Protocol::MySql,
        "postgres" => Protocol::Postgres,
        "redis" => Protocol::Redis,
        _ => Protocol::Http1,
    };
    Settings { start: Start::Fresh, hint: Some(hint) }
}
