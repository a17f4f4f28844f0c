//! Heads of requests and responses, whole or as far as they were captured.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request, Response};

use super::HEAD_MOST;
use crate::tap::{Step, View};

/// The content of a head.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    pub status: u16,
    /// Bytes of the head with its empty line. `None` when its end was not captured.
    pub length: Option<u64>,
    pub framing: Framing,
}

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Framing {
    /// No information: a request has no body, a response ends with the connection.
    #[default]
    None,
    Length(u64),
    Chunked,
}

impl Framing {
    /// Bytes of a body of known length.
    pub(super) fn body_bytes(self) -> u64 {
        match self {
            Framing::Length(bytes) => bytes,
            _ => 0,
        }
    }
}

pub(super) fn request(view: View<'_>) -> Result<Head<'_>, Step> {
    let mut places = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADER_LINES];
    let mut request = Request::new(&mut []);
    let parsed =
        ParserConfig::default().parse_request_with_uninit_headers(&mut request, view.bytes, &mut places);
    match parsed {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MOST => Ok(Head {
            method: request.method.unwrap_or_default().as_bytes(),
            target: request.path.unwrap_or_default().as_bytes(),
            length: Some(length as u64),
            framing: framing(request.headers)?,
            ..Head::default()
        }),
        Ok(httparse::Status::Partial) if view.cut => cut_request(view.bytes),
        Ok(httparse::Status::Partial) => Err(Step::Need),
        _ => Err(Step::Bad),
    }
}

pub(super) fn response(view: View<'_>) -> Result<Head<'_>, Step> {
    let mut places = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADER_LINES];
    let mut response = Response::new(&mut []);
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    match config.parse_response_with_uninit_headers(&mut response, view.bytes, &mut places) {
        Ok(httparse::Status::Complete(length)) if length <= HEAD_MOST => Ok(Head {
            status: response.code.unwrap_or_default(),
            length: Some(length as u64),
            framing: framing(response.headers)?,
            ..Head::default()
        }),
        // After `HTTP/1.1 200 ` the head may be cut.
        Ok(httparse::Status::Partial) if view.cut => {
            let digits = view.bytes.get(9..12).filter(|_| view.bytes.starts_with(b"HTTP/1."));
            let status = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            Ok(Head { status: status.ok_or(Step::Need)?, ..Head::default() })
        }
        Ok(httparse::Status::Partial) => Err(Step::Need),
        _ => Err(Step::Bad),
    }
}

/// The line of a request whose head is cut. The target is returned as far as it was captured, even if it is cut too.
fn cut_request(bytes: &[u8]) -> Result<Head<'_>, Step> {
    let line = &bytes[..memchr::memchr(b'\r', bytes).unwrap_or(bytes.len())];
    let method = memchr::memchr(b' ', line).ok_or(Step::Need)?;
    let rest = &line[method + 1..];
    let target = &rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())];
    Ok(Head { method: &line[..method], target, ..Head::default() })
}

fn framing(headers: &[Header<'_>]) -> Result<Framing, Step> {
    let mut framing = Framing::None;
    for header in headers {
        let named = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            14 if named("content-length") && framing != Framing::Chunked => {
                let digits = std::str::from_utf8(header.value.trim_ascii()).map_err(|_| Step::Bad)?;
                let length: u64 = digits.parse().map_err(|_| Step::Bad)?;
                if length > BODY_MOST {
                    return Err(Step::Bad);
                }
                framing = Framing::Length(length);
            }
            17 if named("transfer-encoding") => {
                let last = header.value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                if last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    framing = Framing::Chunked;
                }
            }
            _ => {}
        }
    }
    Ok(framing)
}

/// More than servers and clients send; a longer head is not read.
const HEADER_LINES: usize = 128;
/// No body is longer; keeps positions far from overflow.
const BODY_MOST: u64 = 1 << 50;
