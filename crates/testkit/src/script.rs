//! What a simulated network does: data only. [`SimReactor`](crate::SimReactor) plays it.
//!
//! Lengths are lengths; the instants of a [`Span`] are offsets from the start of the simulated run.

use std::borrow::Cow;
use std::net::SocketAddr;

use units::Nanos;

/// Everything that happens to a simulated client.
#[derive(Debug, Clone)]
pub struct Script {
    pub lookups: Turns<Lookup>,
    /// Connection attempts, in their order, to addresses that `dials_to` does not name.
    pub dials: Turns<Dial>,
    pub dials_to: Vec<(SocketAddr, Turns<Dial>)>,
    /// What the server does with each request, in the order in which their first bytes were sent.
    pub services: Turns<Service>,
    /// What the server does with a request by its text, without the line's end; where it is set, `services` are not
    /// asked.
    pub by_text: Option<fn(&str) -> Service>,
    /// The server does not run within these. In order, apart from each other.
    pub freezes: Vec<Span>,
    /// The client does not run within these. In order, apart from each other.
    pub stalls: Vec<Span>,
    /// The kernel stamps what arrives.
    pub stamps: bool,
    /// How far one reading of the clock moves it.
    pub clock_cost: Nanos,
}

impl Script {
    /// Connections stand at once, and every request is answered well after `after`.
    pub fn answering_after(after: Nanos) -> Script {
        Script::serving(Turns::always(Service::response(after, "ok")))
    }

    /// Connections stand at once; requests go as told.
    pub fn serving(services: Turns<Service>) -> Script {
        Script {
            lookups: Turns::always(Lookup::Fails { after: Nanos::ZERO }),
            dials: Turns::always(Dial::stands(Nanos::ZERO)),
            dials_to: Vec::new(),
            services,
            by_text: None,
            freezes: Vec::new(),
            stalls: Vec::new(),
            stamps: true,
            clock_cost: Nanos::ZERO,
        }
    }

    /// Connections stand at once; the server answers each request by its text.
    pub fn by_text(by_text: fn(&str) -> Service) -> Script {
        Script { by_text: Some(by_text), ..Script::answering_after(Nanos::ZERO) }
    }

    /// Connections to addresses not named otherwise go as told.
    #[must_use]
    pub fn dialing(self, dials: Turns<Dial>) -> Script {
        Script { dials, ..self }
    }
}

/// What happens the first time, the second time, and so on.
#[derive(Debug, Clone)]
pub struct Turns<T> {
    turns: Vec<T>,
    around: Around,
}

/// What comes after the last turn.
#[derive(Debug, Clone, Copy)]
enum Around {
    LastAgain,
    FromTheFirst,
}

impl<T> Turns<T> {
    /// The same turn for every request.
    pub fn always(turn: T) -> Turns<T> {
        Turns { turns: vec![turn], around: Around::LastAgain }
    }

    /// Each of `first` once, then `rest` for ever.
    pub fn first(mut first: Vec<T>, rest: T) -> Turns<T> {
        first.push(rest);
        Turns { turns: first, around: Around::LastAgain }
    }

    /// All of `turns`, over and over.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn cycle(turns: Vec<T>) -> Turns<T> {
        assert!(!turns.is_empty(), "a script needs at least one turn");
        Turns { turns, around: Around::FromTheFirst }
    }

    pub(crate) fn nth(&self, n: usize) -> &T {
        let count = self.turns.len();
        match self.around {
            Around::LastAgain => &self.turns[n.min(count - 1)],
            Around::FromTheFirst => &self.turns[n % count],
        }
    }
}

/// From an instant until another, as offsets from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Nanos,
    pub until: Nanos,
}

/// How a name lookup goes.
#[derive(Debug, Clone)]
pub enum Lookup {
    Finds { after: Nanos, addresses: Vec<SocketAddr> },
    Fails { after: Nanos },
}

/// How a connection attempt goes.
#[derive(Debug, Clone)]
pub enum Dial {
    Stands {
        after: Nanos,
        way: Way,
    },
    /// The kernel's error, as a number.
    Fails {
        after: Nanos,
        errno: i32,
    },
    /// The call itself fails.
    FailsAtOnce {
        errno: i32,
    },
    /// Nobody ever answers.
    Silent,
}

impl Dial {
    /// A connection over a network that takes no time.
    pub fn stands(after: Nanos) -> Dial {
        Dial::Stands { after, way: Way::default() }
    }
}

/// The way between the client and the server of one connection.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// From the client's kernel to the server.
    pub there: Nanos,
    /// From the server to the client's kernel.
    pub back: Nanos,
    pub acks: Acks,
    /// Where the client's kernel stops accepting for a while, in order.
    pub chokes: Vec<Choke>,
    /// The server closes after this long without a request.
    pub idle_close: Option<Nanos>,
    /// What the server does as soon as it has the connection, unasked.
    pub greeting: Option<Service>,
}

/// What the client's kernel hears of the bytes it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acks {
    /// They are acknowledged after the way there and back.
    #[default]
    Prompt,
    Never,
    /// The kernel does not report.
    Unknown,
}

/// The client's kernel accepts nothing for a while.
#[derive(Debug, Clone, Copy)]
pub struct Choke {
    /// Once it has accepted this many bytes in all on the connection.
    pub after_bytes: u64,
    /// Counted from the first write that was cut short. `Nanos::MAX`: for ever.
    pub lasts: Nanos,
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub struct Service {
    /// Begins once this many bytes of the request are there, instead of all.
    pub early_bytes: Option<usize>,
    /// The server's own time before it writes.
    pub after: Nanos,
    pub pieces: Vec<Piece>,
    pub then: Then,
}

impl Service {
    /// One line of the test protocol: `word`, and the request's number.
    pub fn response(after: Nanos, word: &'static str) -> Service {
        let text = vec![Text::of(word), Text::of(" "), Text::Number, Text::of("\n")];
        Service::pieces(after, vec![Piece { after: Nanos::ZERO, text }])
    }

    /// Starts to respond `after` the request has arrived, with these pieces, and keeps the connection.
    pub fn pieces(after: Nanos, pieces: Vec<Piece>) -> Service {
        Service { early_bytes: None, after, pieces, then: Then::Keep }
    }

    /// Nothing is written.
    pub fn nothing(after: Nanos, then: Then) -> Service {
        Service { early_bytes: None, after, pieces: Vec::new(), then }
    }

    /// `text` as it stands, in one piece.
    pub fn raw(after: Nanos, text: &'static str, then: Then) -> Service {
        let pieces = vec![Piece { after: Nanos::ZERO, text: vec![Text::of(text)] }];
        Service { early_bytes: None, after, pieces, then }
    }

    /// The same service with another end of the connection.
    #[must_use]
    pub fn then(self, then: Then) -> Service {
        Service { then, ..self }
    }
}

/// Bytes that the server writes at once.
#[derive(Debug, Clone)]
pub struct Piece {
    /// After the piece before.
    pub after: Nanos,
    pub text: Vec<Text>,
}

/// A part of a piece.
#[derive(Debug, Clone)]
pub enum Text {
    Bytes(Cow<'static, [u8]>),
    /// The digits that the request began with.
    Number,
}

impl Text {
    /// Fixed text.
    pub fn of(text: &'static str) -> Text {
        Text::Bytes(Cow::Borrowed(text.as_bytes()))
    }
}

/// What the server does with the connection after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Keep,
    Close,
    Reset,
    /// Keeps it, and never writes on it again.
    Hang,
}
