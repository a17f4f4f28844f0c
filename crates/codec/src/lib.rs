//! Protocols without I/O: requests to bytes, bytes to replies.
//!
//! A codec sees no socket, reads no clock and starts no thread. The engine drives it through two traits and
//! never names a protocol: [`Protocol`] is what a run says, shared by all workers; [`Session`] is the client
//! side of one connection. A new protocol is one module here, its golden transcripts and its fuzz target.

pub mod http1;

use thiserror::Error;

/// What one run says, and how. Shared, read-only, by all workers.
pub trait Protocol: Send + Sync {
    type Session: Session;

    /// The client side of a new connection.
    fn session(&self) -> Self::Session;

    /// Appends request number `n` of the run, whole, to `out`.
    ///
    /// Which of the run's requests number `n` is depends on `n` alone, so the mix is the same whatever the
    /// number of workers. Returns what the session must know to read the answer.
    ///
    /// # Cost
    ///
    /// Hot path: copies prepared bytes; allocates only while `out` grows.
    fn encode(&self, n: u64, out: &mut Vec<u8>) -> Expect;
}

/// What the session must know of a request to read its answer: an index into the protocol's own table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expect(pub u32);

/// The client side of one connection. Answers come in the order of the requests.
///
/// Drive it in this order: [`expect`](Session::expect) for each request encoded, then
/// [`handle_input`](Session::handle_input) as bytes arrive, until nothing is outstanding or it asks to close.
pub trait Session {
    /// How many requests may be outstanding at once on this connection.
    fn capacity(&self) -> usize;

    /// A request has been encoded for this connection.
    fn expect(&mut self, expect: Expect);

    /// Takes bytes in the order they were read; any split is allowed.
    ///
    /// Stops after the first event: call again with the rest while [`Step::consumed`] is less than what was
    /// given. Without an event everything is consumed.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] ends the connection: the oldest outstanding request failed by it.
    fn handle_input(&mut self, input: &[u8]) -> Result<Step, DecodeError>;

    /// The peer has closed its side. Ends the connection.
    fn handle_close(&mut self) -> CloseEvent;
}

/// What [`Session::handle_input`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How many bytes were taken.
    pub consumed: usize,
    pub event: Option<Event>,
}

/// Progress of the oldest outstanding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its answer has begun, and the input is used up before its end. Said once an answer, and only when
    /// the answer did not both begin and end in one input.
    Began,
    /// Its answer is complete.
    Finished(Reply),
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
}
