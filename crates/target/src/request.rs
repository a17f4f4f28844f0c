//! Bytes → requests. Knows no socket and no clock; every length from the peer is checked before it is used.

use std::mem::MaybeUninit;

use crate::body::{Body, Chunk, Taken};
use crate::options::Limits;
use crate::route::Route;

/// One complete request: its head and body have been read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Request {
    pub route: Route,
    /// `HEAD`: the response has no body.
    pub head_only: bool,
    pub http10: bool,
    pub keep_alive: bool,
    /// Bytes it took on the wire, head and body.
    pub wire_bytes: u64,
    /// Its body, kept for `/echo` only.
    pub body: Vec<u8>,
}

/// Why a connection is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadRequest,
    Timeout,
    BodyTooLarge,
    HeadTooLarge,
    UnknownCoding,
    UnknownVersion,
}

impl Refusal {
    pub(crate) fn status(self) -> u16 {
        match self {
            Refusal::BadRequest => 400,
            Refusal::Timeout => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::HeadTooLarge => 431,
            Refusal::UnknownCoding => 501,
            Refusal::UnknownVersion => 505,
        }
    }
}

/// What [`Parser::step`] found.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// The remaining bytes hold nothing complete.
    NeedMore,
    /// The peer waits for `100 Continue` before it sends the body.
    Continue,
    Request(Request),
}

/// The server's side of HTTP/1 on one connection, the reading half.
///
/// Call [`step`](Parser::step) with all unconsumed bytes until it returns [`Step::NeedMore`]; any split of the bytes
/// gives the same requests. It must not be called again after a [`Refusal`].
#[derive(Debug)]
pub(crate) struct Parser {
    limits: Limits,
    /// A request whose head has been read and whose body has not.
    current: Option<(Request, Body)>,
}

impl Parser {
    pub(crate) fn new(limits: Limits) -> Parser {
        Parser { limits, current: None }
    }

    /// Whether a head has been read whose body has not.
    pub(crate) fn in_body(&self) -> bool {
        self.current.is_some()
    }

    /// Takes one step; returns how many bytes of `input` it consumed.
    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> Result<(usize, Step), Refusal> {
        if self.current.is_some() { self.step_body(input) } else { self.step_head(input) }
    }

    fn step_head(&mut self, input: &[u8]) -> Result<(usize, Step), Refusal> {
        // Empty lines between requests are not part of any (RFC 9112, 2.2).
        let skipped = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let input = &input[skipped..];
        let limit = usize::try_from(self.limits.head.0).unwrap_or(usize::MAX);
        let window = &input[..input.len().min(limit)];
        let mut headers = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut head = httparse::Request::new(&mut []);
        match head.parse_with_uninit_headers(window, &mut headers).map_err(refusal)? {
            httparse::Status::Partial if input.len() > limit => Err(Refusal::HeadTooLarge),
            httparse::Status::Partial => Ok((skipped, Step::NeedMore)),
            httparse::Status::Complete(count) => match self.head_read(&head, count)? {
                Some(step) => Ok((skipped + count, step)),
                None => {
                    let (more, step) = self.step_body(&input[count..])?;
                    Ok((skipped + count + more, step))
                }
            },
        }
    }

    /// Handles a complete head; `None` when its body follows.
    fn head_read(&mut self, head: &httparse::Request<'_, '_>, count: usize) -> Result<Option<Step>, Refusal> {
        let method = head.method.ok_or(Refusal::BadRequest)?;
        let target = head.path.ok_or(Refusal::BadRequest)?;
        let http10 = head.version == Some(0);
        let fields = Fields::read(head.headers, http10)?;
        let request = Request {
            route: Route::parse(method, target),
            head_only: method == "HEAD",
            http10,
            keep_alive: fields.keep_alive,
            wire_bytes: count as u64,
            body: Vec::new(),
        };
        let Some(body) = fields.body else { return Ok(Some(Step::Request(request))) };
        if let Body::Length { left } = body
            && left > self.body_limit(&request)
        {
            return Err(Refusal::BodyTooLarge);
        }
        self.current = Some((request, body));
        Ok(fields.expects_continue.then_some(Step::Continue))
    }

    fn body_limit(&self, request: &Request) -> u64 {
        if keeps_body(request) { self.limits.echo.0 } else { self.limits.body.0 }
    }

    fn step_body(&mut self, input: &[u8]) -> Result<(usize, Step), Refusal> {
        let mut consumed = 0;
        loop {
            let (request, body) = self.current.as_mut().expect("step() calls this within a body only");
            let limit = if keeps_body(request) { self.limits.echo.0 } else { self.limits.body.0 };
            let rest = &input[consumed..];
            match body.take(rest, limit)? {
                Taken::NeedMore => return Ok((consumed, Step::NeedMore)),
                Taken::Part { count, data } => {
                    if keeps_body(request) {
                        request.body.extend_from_slice(&rest[data..count]);
                    }
                    request.wire_bytes += count as u64;
                    consumed += count;
                }
                Taken::End { count } => {
                    request.wire_bytes += count as u64;
                    let (request, _) = self.current.take().expect("borrowed just above");
                    return Ok((consumed + count, Step::Request(request)));
                }
            }
        }
    }
}

/// The header fields that matter here.
struct Fields {
    keep_alive: bool,
    expects_continue: bool,
    body: Option<Body>,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>], http10: bool) -> Result<Fields, Refusal> {
        let (mut keep_alive, mut expects_continue, mut host_count) = (!http10, false, 0);
        let (mut length, mut chunked) = (None, false);
        for header in headers {
            let name = header.name;
            if name.eq_ignore_ascii_case("host") {
                host_count += 1;
            } else if name.eq_ignore_ascii_case("connection") {
                keep_alive = connection(header.value, keep_alive);
            } else if name.eq_ignore_ascii_case("content-length") {
                let value = content_length(header.value)?;
                // Two lengths enable request smuggling (RFC 9112, 6.3).
                if length.replace(value).is_some_and(|before| before != value) {
                    return Err(Refusal::BadRequest);
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if chunked || !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::UnknownCoding);
                }
                chunked = true;
            } else if name.eq_ignore_ascii_case("expect") {
                expects_continue = header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
        }
        if host_count > 1 || (host_count == 0 && !http10) {
            return Err(Refusal::BadRequest);
        }
        if chunked && (length.is_some() || http10) {
            return Err(Refusal::BadRequest);
        }
        let body = match (length, chunked) {
            (_, true) => Some(Body::Chunked { at: Chunk::SizeLine, total: 0 }),
            (Some(left), _) if left > 0 => Some(Body::Length { left }),
            _ => None,
        };
        // HTTP/1.0 has no interim responses.
        Ok(Fields { keep_alive, expects_continue: expects_continue && !http10, body })
    }
}

fn connection(value: &[u8], mut keep_alive: bool) -> bool {
    for option in value.split(|&byte| byte == b',') {
        let option = option.trim_ascii();
        if option.eq_ignore_ascii_case(b"close") {
            return false;
        }
        keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }
    keep_alive
}

fn content_length(value: &[u8]) -> Result<u64, Refusal> {
    let text = str::from_utf8(value.trim_ascii()).map_err(|_| Refusal::BadRequest)?;
    // `parse` alone would accept a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::BadRequest);
    }
    text.parse().map_err(|_| Refusal::BadRequest)
}

fn keeps_body(request: &Request) -> bool {
    request.route == Route::Echo
}

fn refusal(error: httparse::Error) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::HeadTooLarge,
        httparse::Error::Version => Refusal::UnknownVersion,
        _ => Refusal::BadRequest,
    }
}

/// About as many as nginx and Apache allow.
const MOST_HEADERS: usize = 100;

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
