//! What a simulated network does, as data. [`SimReactor`](crate::SimReactor) plays it.
//!
//! Times are durations, except that the instants of a [`Span`] are offsets from the start of the simulated run.

use std::borrow::Cow;
use std::net::SocketAddr;

use units::Nanos;

/// Everything that happens to a simulated client.
#[derive(Debug, Clone)]
pub struct Script {
    pub lookups: Turns<Lookup>,
    /// Connection attempts, in order, to addresses that `dials_to` does not name.
    pub dials: Turns<Dial>,
    pub dials_to: Vec<(SocketAddr, Turns<Dial>)>,
    /// What the server does with each request, in the order in which their first bytes were sent.
    pub services: Turns<Service>,
    /// What the server does with a request, given its text without the line feed. If it is set, `services` is not used.
    pub by_text: Option<fn(&str) -> Service>,
    /// Times in which the server does not run; in order and disjoint.
    pub freezes: Vec<Span>,
    /// Times in which the client does not run; in order and disjoint.
    pub stalls: Vec<Span>,
    /// Whether the kernel timestamps what arrives.
    pub stamps: bool,
    /// By how much one reading of the clock advances it.
    pub clock_cost: Nanos,
}

impl Script {
    /// Connections are established at once, and every request gets a good response after `after`.
    pub fn answering_after(after: Nanos) -> Script {
        Script::serving(Turns::always(Service::response(after, "ok")))
    }

    /// Connections are established at once; `services` decides about the requests.
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

    /// Connections are established at once; the server responds to each request according to its text.
    pub fn by_text(by_text: fn(&str) -> Service) -> Script {
        Script { by_text: Some(by_text), ..Script::answering_after(Nanos::ZERO) }
    }

    /// The same with `dials` for connections to addresses that are not named otherwise.
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
    /// The same turn every time.
    pub fn always(turn: T) -> Turns<T> {
        Turns { turns: vec![turn], around: Around::LastAgain }
    }

    /// Each of `first` once, then `rest` forever.
    pub fn first(mut first: Vec<T>, rest: T) -> Turns<T> {
        first.push(rest);
        Turns { turns: first, around: Around::LastAgain }
    }

    /// All of `turns`, over and over.
    ///
    /// # Panics
    ///
    /// If there are none.
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

/// A span of time, as offsets from the start of the run; `until` is excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from: Nanos,
    pub until: Nanos,
}

/// The result of a name lookup.
#[derive(Debug, Clone)]
pub enum Lookup {
    Finds { after: Nanos, addresses: Vec<SocketAddr> },
    Fails { after: Nanos },
}

/// The result of a connection attempt.
#[derive(Debug, Clone)]
pub enum Dial {
    Stands {
        after: Nanos,
        way: Way,
    },
    /// Fails later, with this error number of the kernel.
    Fails {
        after: Nanos,
        errno: i32,
    },
    /// The call itself fails.
    FailsAtOnce {
        errno: i32,
    },
    /// There is never a reply.
    Silent,
}

impl Dial {
    /// A connection over a network that takes no time.
    pub fn stands(after: Nanos) -> Dial {
        Dial::Stands { after, way: Way::default() }
    }
}

/// The network between the client and the server of one connection.
#[derive(Debug, Clone, Default)]
pub struct Way {
    /// Delay from the client's kernel to the server.
    pub there: Nanos,
    /// Delay from the server to the client's kernel.
    pub back: Nanos,
    pub acks: Acks,
    /// When the client's kernel stops accepting bytes for a while, in order.
    pub chokes: Vec<Choke>,
    /// The server closes after this long without a request.
    pub idle_close: Option<Nanos>,
    /// What the server does as soon as the connection is established, without a request.
    pub greeting: Option<Service>,
}

/// What the client's kernel learns about the bytes that it sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acks {
    /// They are acknowledged after the delay in both directions.
    #[default]
    Prompt,
    Never,
    /// The kernel does not report it.
    Unknown,
}

/// The client's kernel accepts nothing for a while.
#[derive(Debug, Clone, Copy)]
pub struct Choke {
    /// It begins when the kernel has accepted this many bytes in total on the connection.
    pub after_bytes: u64,
    /// Counted from the first write that was cut short. `Nanos::MAX`: forever.
    pub lasts: Nanos,
}

/// What the server does with one request.
#[derive(Debug, Clone)]
pub struct Service {
    /// The response begins when this many bytes of the request have arrived, instead of all.
    pub early_bytes: Option<usize>,
    /// The server's own time before it writes.
    pub after: Nanos,
    pub pieces: Vec<Piece>,
    pub then: Then,
}

impl Service {
    /// A response of one line of the test protocol: `word`, and the request's number.
    pub fn response(after: Nanos, word: &'static str) -> Service {
        let text = vec![Text::of(word), Text::of(" "), Text::Number, Text::of("\n")];
        Service::pieces(after, vec![Piece { after: Nanos::ZERO, text }])
    }

    /// A response of `pieces` that begins `after` the request has arrived; the connection is kept.
    pub fn pieces(after: Nanos, pieces: Vec<Piece>) -> Service {
        Service { early_bytes: None, after, pieces, then: Then::Keep }
    }

    /// No response.
    pub fn nothing(after: Nanos, then: Then) -> Service {
        Service { early_bytes: None, after, pieces: Vec::new(), then }
    }

    /// `text` unchanged, in one piece.
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
    /// After the previous piece.
    pub after: Nanos,
    pub text: Vec<Text>,
}

/// A part of a piece.
#[derive(Debug, Clone)]
pub enum Text {
    Bytes(Cow<'static, [u8]>),
    /// The digits that the request begins with.
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
    /// Keeps it, and never writes to it again.
    Hang,
}
