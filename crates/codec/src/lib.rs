//! Protocols without I/O: requests to bytes, bytes to replies.
//!
//! A codec sees no socket, reads no clock and starts no thread. The engine drives it through two traits and
//! never names a protocol: [`Protocol`] is what a run says, shared by all workers; [`Session`] is the client
//! side of one connection. A new protocol is one module here, its golden transcripts and its fuzz target.

mod http1;
mod http2;
pub mod tls;
pub mod web;

use thiserror::Error;
use units::Nanos;

/// What one run says, and how. Shared, read-only, by all workers.
pub trait Protocol: Send + Sync {
    /// What one unit of demand is about to ask for: an index where each request stands alone, a whole state
    /// where one answer decides the next request. It travels with its request.
    type Journey: Send;

    type Session: Session<Journey = Self::Journey>;

    /// The client side of a new connection to `origin`.
    fn session(&self, origin: Origin) -> Self::Session;

    /// The first request of unit `n` of the run's demand.
    ///
    /// It depends on `n` alone, so the mix is the same whatever the number of workers.
    fn begin(&self, n: u64) -> Self::Journey;

    /// Where the journey's current request goes, and among whose figures it counts.
    fn route(&self, journey: &Self::Journey) -> Route;

    /// How many kinds of requests the run tells apart: every [`Route::kind`] is below it.
    fn kinds(&self) -> usize;

    /// What follows the journey's current request, which has ended.
    fn advance(&self, journey: Self::Journey, ended: Ended<'_, Self::Session>) -> Next<Self::Journey> {
        let _ = (journey, ended);
        Next::End
    }
}

/// One of the run's peers, by its place in the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Origin(pub u16);

/// Where a request goes, and among whose figures it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Route {
    pub origin: Origin,
    pub kind: u16,
}

/// How a request of a journey ended.
#[derive(Debug)]
pub enum Ended<'a, S> {
    /// In an answer that the session has read just now.
    Answered {
        session: &'a mut S,
        judgement: Judgement,
    },
    Unanswered,
}

/// What follows a request of a journey.
#[derive(Debug)]
pub enum Next<J> {
    /// Nothing: its caller is free.
    End,
    /// Another request, intended `think` after the end of the last one.
    Then { journey: J, think: Nanos },
}

/// A request of a connection, as the engine names it: unique among those outstanding on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// The client side of one connection.
///
/// Drive it in this order: [`open`](Session::open) once it stands, [`request`](Session::request) for each request,
/// [`handle_input`](Session::handle_input) as bytes arrive, until nothing is outstanding and
/// [`capacity`](Session::capacity) is 0 or an answer says that the connection ends. What it has to say it appends
/// to the `out` it is given, in the order in which it must be sent.
pub trait Session {
    type Journey;

    /// The connection stands. Appends what opens the conversation, if anything.
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        let _ = out;
        Opening::Ready
    }

    /// How many requests may be outstanding at once on this connection. May change with every input; 0 once the
    /// connection takes no more requests.
    fn capacity(&self) -> usize;

    /// Appends the current request of `journey`.
    ///
    /// # Cost
    ///
    /// Hot path: where requests stand alone it copies prepared bytes, and allocates only while `out` grows.
    fn request(&mut self, journey: &Self::Journey, key: Key, out: &mut Vec<u8>) -> Encoded;

    /// Takes bytes in the order they were read; any split is allowed.
    ///
    /// Stops after the first event: call again with the rest while [`Step::more`] is set or less was consumed
    /// than was given. Without an event everything is consumed.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] ends the connection: the oldest outstanding request failed by it.
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError>;

    /// The peer has closed its side. Ends the connection.
    fn handle_close(&mut self) -> CloseEvent;

    /// The answer to request `key` is not waited for any longer. Appends what tells the peer, and says whether the
    /// connection goes on without it: where it cannot, the connection must go.
    fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        let _ = (key, out);
        false
    }

    /// Whether the connection can go on after a request that was answered before it was wholly sent. Where the
    /// requests stand one behind the other, what the rest of the bytes would mean to the peer is not known.
    fn survives_early_answer(&self) -> bool {
        false
    }
}

/// What a connection waits for before it takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    Ready,
    /// The end of a handshake; [`Event::Opened`] tells.
    Tls,
    /// The end of a login; [`Event::Opened`] tells.
    Auth,
}

/// How much of a request was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    Whole,
    /// The rest comes as the peer makes room; [`Event::Encoded`] tells when it is whole.
    Partly,
}

/// What [`Session::handle_input`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How many bytes were taken.
    pub consumed: usize,
    pub event: Option<Event>,
    /// There may be more events in what has been taken already: call again, if only with nothing.
    pub more: bool,
}

impl Step {
    /// Nothing lies within the session beyond `event`.
    pub fn new(consumed: usize, event: Option<Event>) -> Step {
        Step { consumed, event, more: false }
    }
}

/// Progress of a connection, or of a request on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The connection takes requests from now on. Said once, and only when [`Session::open`] asked to wait.
    Opened,
    /// The last of the request has been appended. Said only of one that was [`Encoded::Partly`].
    Encoded(Key),
    /// The answer has begun, and the input is used up before its end, or it fails before that. Said once an answer,
    /// and not of one that is complete in the input in which it begins.
    Began(Key),
    /// The answer is complete.
    Finished(Key, Reply),
    /// There will be no answer to this request. The connection goes on.
    Failed(Key, StreamEnd),
}

impl Event {
    /// The request that it is about.
    pub(crate) fn key(self) -> Option<Key> {
        match self {
            Event::Opened => None,
            Event::Encoded(key) | Event::Began(key) | Event::Finished(key, _) | Event::Failed(key, _) => {
                Some(key)
            }
        }
    }
}

/// How one of several requests on a connection ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer gave it up.
    Reset,
    /// The peer says that it has not looked at it.
    Unprocessed,
    /// Its answer ended before its announced end.
    Incomplete,
    /// Its answer was not in the protocol's form, or over one of our limits.
    Malformed,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The protocol's own code: the HTTP status; 0 where there is none.
    pub code: u16,
    pub judgement: Judgement,
    /// Bytes of the body, after transfer decoding.
    pub body_bytes: u64,
    /// Whether the connection may carry another request.
    pub keep: bool,
}

/// Whether an answer is the one that was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Good,
    /// The application says it failed through no fault of the request (HTTP 5xx).
    ServerError,
    /// The application says the request was at fault (HTTP 4xx).
    RequestError,
    /// A check of the user's did not hold.
    CheckFailed,
}

/// What the end of the stream means for the oldest outstanding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseEvent {
    /// Nothing was outstanding.
    Idle,
    /// The answer was delimited by the close, and is complete.
    Finished(Reply),
    /// Not one byte of the answer had come.
    BeforeResponse,
    /// The answer was cut off.
    Incomplete,
}

/// Why bytes could not be read as an answer. Each ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Not in the protocol's form.
    #[error("malformed {what}")]
    Malformed { what: &'static str },
    /// Over one of our limits, checked before memory is taken. `what` names the unit that `limit` counts.
    #[error("{what} over the limit of {limit}")]
    TooLong { what: &'static str, limit: u64 },
    /// In the protocol's form, but something we did not ask for and do not speak.
    #[error("unsupported {what}")]
    Unsupported { what: &'static str },
    /// Bytes came while no request was outstanding.
    #[error("bytes that answer no request")]
    Unsolicited,
    /// The handshake did not come to an end.
    #[error("handshake: {what}")]
    Handshake { what: &'static str },
    /// The login was refused.
    #[error("login: {what}")]
    Login { what: &'static str },
}

impl DecodeError {
    /// The part of it, or the rule, that it is about: the same for every connection that fails alike, so that
    /// they can be counted.
    pub fn what(self) -> &'static str {
        match self {
            DecodeError::Malformed { what }
            | DecodeError::TooLong { what, .. }
            | DecodeError::Unsupported { what }
            | DecodeError::Handshake { what }
            | DecodeError::Login { what } => what,
            DecodeError::Unsolicited => "bytes that answer no request",
        }
    }
}
