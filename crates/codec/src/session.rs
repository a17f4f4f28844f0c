//! The client's side of one connection: what the engine calls, and what is reported to it.

use units::Code;

use crate::error::DecodeError;

/// A request on a connection, as the engine identifies it: unique among those outstanding on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

/// The client's side of one connection.
///
/// Call [`open`](Session::open) once it is connected, [`request`](Session::request) for each request, and
/// [`handle_input`](Session::handle_input) as bytes arrive, until nothing is outstanding and
/// [`capacity`](Session::capacity) is 0 or a response announces that the connection ends. Bytes to be sent are appended
/// to `out`, in the order in which they must be sent.
pub trait Session {
    type Journey;

    /// The connection is established. Appends the first bytes to be sent, if there are any before the first request.
    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        let _ = out;
        Opening::Ready
    }

    /// How many requests may be outstanding on this connection at the same time. May change with every input; 0 once
    /// the connection accepts no more requests.
    fn capacity(&self) -> usize;

    /// Appends the current request of `journey`.
    ///
    /// # Cost
    ///
    /// Hot path: for single requests it copies prepared bytes, and allocates only if `out` must grow.
    fn request(&mut self, journey: &Self::Journey, key: Key, out: &mut Vec<u8>) -> Encoded;

    /// Takes bytes in the order in which they were read, cut anywhere.
    ///
    /// Stops after the first event: call again with the rest while [`Step::more`] is set or fewer bytes were consumed
    /// than were given. If there is no event, everything was consumed.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] ends the connection: the oldest outstanding request failed with it.
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError>;

    /// The peer has closed its side. Ends the connection.
    fn handle_close(&mut self) -> CloseEvent;

    /// Cancels request `key`: its response is no longer awaited. Appends what informs the peer, and returns whether the
    /// connection can be used without it; if not, the connection must be closed.
    fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        let _ = (key, out);
        false
    }

    /// Whether the connection can be used after a request whose response came before it was completely sent. If
    /// requests are sent one after another, the peer may misinterpret the rest of the bytes.
    fn survives_early_response(&self) -> bool {
        false
    }

    /// Whether another journey may use the connection now that the lease on it has ended. Not within a transaction: the
    /// engine then closes the connection, and the server rolls back.
    fn is_reusable(&self) -> bool {
        true
    }

    /// Which of the user's checks the last response failed, if it was judged [`Judgement::CheckFailed`]. Must be called
    /// before more input is given.
    ///
    /// # Cost
    ///
    /// Allocates text, but only for responses that failed a check.
    fn failed_check(&mut self) -> Option<FailedCheck> {
        None
    }

    /// The server's message about why it refused the last request, or refused or ended the connection, if it sent one.
    /// Called after a response that is an error of the application, after [`handle_input`](Session::handle_input)
    /// failed, and after the peer closed. A session keeps at most a few hundred bytes of the message; the engine
    /// truncates and escapes it for the record.
    fn server_message(&self) -> Option<&str> {
        None
    }
}

/// How the opening of a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The connection accepts requests at once.
    Ready,
    /// With a TLS handshake, or with the plaintext exchange that negotiates one (PostgreSQL's `SSLRequest`, MySQL's
    /// greeting); all of it counts as `tls`. Ends with [`Event::Secured`] if a login follows, with [`Event::Plaintext`]
    /// if the exchange ends without TLS, and with [`Event::Opened`] if requests follow.
    Tls,
    /// With a login without TLS, in any number of rounds. Ends with [`Event::Opened`].
    Auth,
}

/// How much of a request was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoded {
    Whole,
    /// The rest follows as the peer makes room; [`Event::Encoded`] reports when it is complete.
    Partly,
}

/// The result of [`Session::handle_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How many bytes were taken.
    pub consumed: usize,
    pub event: Option<Event>,
    /// Bytes already taken may contain more events: call again, even with empty input.
    pub more: bool,
    /// Bytes follow the response that has just ended, although no request is outstanding that they could belong to.
    pub trailing: bool,
}

impl Step {
    /// A step after which the session has nothing more to report, with no trailing bytes.
    pub fn new(consumed: usize, event: Option<Event>) -> Step {
        Step { consumed, event, more: false, trailing: false }
    }
}

/// Progress of a connection, or of a request on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The TLS handshake has ended and a login follows: the rest of the opening counts as `auth`. At most once, and
    /// only if [`Session::open`] returned [`Opening::Tls`].
    Secured,
    /// The exchange that could have led to TLS ended without it, which is accepted: all of the opening, from the moment
    /// the connection was established, counts as `auth`. At most once, and only if [`Session::open`] returned
    /// [`Opening::Tls`].
    Plaintext,
    /// The connection accepts requests from now on. Once, and only if [`Session::open`] did not return
    /// [`Opening::Ready`].
    Opened,
    /// The rest of the request has been appended. Reported only for one that was [`Encoded::Partly`].
    Encoded(Key),
    /// The response has begun, and the input ended before the response did, or the response failed. At most once per
    /// response, and not for one that is complete in the input in which it begins.
    Began(Key),
    /// The response is complete.
    Finished(Key, Reply),
    /// There will be no response to this request. The connection can still be used.
    Failed(Key, StreamEnd),
}

impl Event {
    /// The request that the event is about.
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
    /// The peer reset it.
    Reset,
    /// The peer reports that it has not processed it.
    Unprocessed,
    /// Its response ended before its announced end.
    Incomplete,
    /// Its response was malformed, or exceeded one of our limits.
    Malformed,
}

/// A complete response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The server's own code: an HTTP status, an SQLSTATE with its number, the first word of a RESP error. `None` if
    /// the response has none.
    pub code: Option<Code>,
    pub judgement: Judgement,
    /// Bytes of the body, after transfer decoding.
    pub body_bytes: u64,
    /// Whether the connection can carry another request.
    pub keep: bool,
}

/// A check that a response failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    /// Its name and what it expects, the same for every response that fails it: `status: expected 200-299`.
    pub check: String,
    /// What came instead, or its beginning: at most [`SAMPLE_BYTES`], as the peer sent it.
    pub got: String,
}

/// How much of a response is quoted: enough to recognise an error page or a wrong document.
pub const SAMPLE_BYTES: usize = 160;

impl FailedCheck {
    /// A failed check, with the beginning of the bytes that failed it.
    pub fn new(check: String, got: &[u8]) -> FailedCheck {
        let text = String::from_utf8_lossy(&got[..got.len().min(SAMPLE_BYTES)]);
        let cut = if got.len() > SAMPLE_BYTES { "…" } else { "" };
        FailedCheck { check, got: format!("{text}{cut}") }
    }
}

/// Whether a response is the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    Good,
    /// The application reports that it failed, through no fault of the request (HTTP 5xx).
    ServerError,
    /// The application reports that the request was at fault (HTTP 4xx).
    RequestError,
    /// The response failed a check of the user.
    CheckFailed,
    /// The server rolled back or refused the transaction through no fault of the request, and the same transaction may
    /// succeed if it is retried: a deadlock, a serialization failure.
    /// [`Protocol::advance`](crate::Protocol::advance) decides whether it is retried.
    Retryable,
}

/// What the end of the byte stream means for the oldest outstanding request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseEvent {
    /// No request was outstanding.
    Idle,
    /// The response was delimited by the close, and is complete.
    Finished(Reply),
    /// Not one byte of the response had arrived.
    BeforeResponse,
    /// The response was cut off.
    Incomplete,
}
