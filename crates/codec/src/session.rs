//! The client side of one connection: what the engine asks of it, and what it reports.

use units::Code;

use crate::error::DecodeError;

/// A request of a connection, as the engine names it: unique among those outstanding on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// The client side of one connection.
///
/// Drive it in this order: [`open`](Session::open) once it stands, [`request`](Session::request) for each request,
/// [`handle_input`](Session::handle_input) as bytes arrive, until nothing is outstanding and
/// [`capacity`](Session::capacity) is 0 or a response says that the connection ends. What it has to say it appends
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

    /// The response to request `key` is not waited for any longer. Appends what tells the peer, and says whether the
    /// connection goes on without it: where it cannot, the connection must go.
    fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        let _ = (key, out);
        false
    }

    /// Whether the connection can go on after a request that was answered before it was wholly sent. Where
    /// requests are sent one behind the other, what the rest of the bytes would mean to the peer is not known.
    fn survives_early_response(&self) -> bool {
        false
    }

    /// Whether another journey may use the connection now that the one that had leased it has ended. Within a
    /// transaction it may not: the engine closes the connection, and the server rolls back.
    fn is_reusable(&self) -> bool {
        true
    }

    /// Which check of the user's the last response did not pass, where it was judged [`Judgement::CheckFailed`]: asked
    /// for before more input is taken.
    ///
    /// # Cost
    ///
    /// Allocates texts; only responses that failed a check pay for it.
    fn failed_check(&mut self) -> Option<FailedCheck> {
        None
    }

    /// The server's own words about why it refused or ended the connection, where it gave any: asked for after
    /// [`handle_input`](Session::handle_input) failed or the peer closed. A session keeps a few hundred bytes of them
    /// at most; the engine cuts and escapes them for the record.
    fn server_message(&self) -> Option<&str> {
        None
    }
}

/// How the opening of a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The connection takes requests at once.
    Ready,
    /// With a TLS handshake, or with the plaintext exchange that agrees on one (PostgreSQL's `SSLRequest`, MySQL's
    /// greeting): all of it counts as `tls`. Ends with [`Event::Secured`] where a login follows, with
    /// [`Event::Plaintext`] where the exchange ends without TLS, and with [`Event::Opened`] where requests follow.
    Tls,
    /// With a login without TLS, of as many rounds as it takes. Ends with [`Event::Opened`].
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
    /// Bytes follow the response that has just ended, and no request is outstanding that they could answer.
    pub trailing: bool,
}

impl Step {
    /// Nothing is within the session beyond `event`.
    pub fn new(consumed: usize, event: Option<Event>) -> Step {
        Step { consumed, event, more: false, trailing: false }
    }
}

/// Progress of a connection, or of a request on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The TLS handshake has ended, and a login follows: what comes now counts as `auth`. At most once, and only where
    /// [`Session::open`] reported [`Opening::Tls`].
    Secured,
    /// The exchange that might have led to TLS ended without it, and that is accepted: all of the opening, from the
    /// moment the connection was established, counts as `auth`. At most once, and only where [`Session::open`]
    /// reported [`Opening::Tls`].
    Plaintext,
    /// The connection takes requests from now on. Once, and only when [`Session::open`] did not report
    /// [`Opening::Ready`].
    Opened,
    /// The last of the request has been appended. Said only of one that was [`Encoded::Partly`].
    Encoded(Key),
    /// The response has begun, and the input is used up before its end, or it fails before that. Said once a response,
    /// and not of one that is complete in the input in which it begins.
    Began(Key),
    /// The response is complete.
    Finished(Key, Reply),
    /// There will be no response to this request. The connection goes on.
    Failed(Key, StreamEnd),
}

impl Event {
    /// The request that it is about.
    pub(crate) fn key(self) -> Option<Key> {
        match self {
            Event::Secured | Event::Plaintext | Event::Opened => None,
            Event::Encoded(key) | Event::Began(key) | Event::Finished(key, _) | Event::Failed(key, _) => {
                Some(key)
            }
        }
    }
}

/// How one of several requests on a connection ended without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer gave it up.
    Reset,
    /// The peer says that it has not looked at it.
    Unprocessed,
    /// Its response ended before its announced end.
    Incomplete,
    /// Its response was not in the protocol's form, or over one of our limits.
    Malformed,
}

/// A complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The server's own code: an HTTP status, an SQLSTATE with its number, the word of a RESP error. `None` where the
    /// response has none.
    pub code: Option<Code>,
    pub judgement: Judgement,
    /// Bytes of the body, after transfer decoding.
    pub body_bytes: u64,
    /// Whether the connection may carry another request.
    pub keep: bool,
}

/// A check that a response did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    /// Its name and what it expects, the same for every response that fails it: `status: expected 200-299`.
    pub check: String,
    /// What came instead, or the beginning of it: at most [`SAMPLE_BYTES`], as the peer sent it.
    pub got: String,
}

/// How much of a response is quoted: enough to recognise an error page or a wrong document.
pub const SAMPLE_BYTES: usize = 160;

impl FailedCheck {
    /// A check and the bytes that failed it, of which the beginning is kept.
    pub fn new(check: String, got: &[u8]) -> FailedCheck {
        let text = String::from_utf8_lossy(&got[..got.len().min(SAMPLE_BYTES)]);
        let cut = if got.len() > SAMPLE_BYTES { "…" } else { "" };
        FailedCheck { check, got: format!("{text}{cut}") }
    }
}

/// Whether a response is the one that was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Good,
    /// The application says it failed through no fault of the request (HTTP 5xx).
    ServerError,
    /// The application says the request was at fault (HTTP 4xx).
    RequestError,
    /// A check of the user's did not hold.
    CheckFailed,
    /// The server undid or refused the transaction through no fault of the request, and the same transaction may
    /// succeed when it is tried again: a deadlock, a serialization failure. Whether it is tried again is for
    /// [`Protocol::advance`](crate::Protocol::advance) to say.
    Retryable,
}

/// What the end of the stream means for the oldest outstanding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseEvent {
    /// Nothing was outstanding.
    Idle,
    /// The response was delimited by the close, and is complete.
    Finished(Reply),
    /// Not one byte of the response had come.
    BeforeResponse,
    /// The response was cut off.
    Incomplete,
}
