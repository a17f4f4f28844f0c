//! Parses the head of a response: the status, how the body is delimited, and whether the connection can be kept.
//!
//! It looks only at the three headers that decide this, and has no state: the input contains a complete head or not
//! yet. Driven by the session.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Response, Status};

use crate::DecodeError;
use crate::web::HEADER_LINES;

/// What the head of a response states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub status: u16,
    /// How the body is delimited, if there is one: the request's method or the status may exclude a body.
    pub framing: Framing,
    pub keep: bool,
    /// Bytes of the head itself, including the empty line.
    pub head_bytes: usize,
}

/// How a body is delimited (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
}

/// Parses a head at the start of `input`; `None` if its empty line has not arrived.
pub(crate) fn parse_head(input: &[u8]) -> Result<Option<Head>, DecodeError> {
    let mut places = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADER_LINES];
    let mut response = Response::new(&mut []);
    let mut config = ParserConfig::default();
    // RFC 9112, section 5.2: a user agent treats a folded line as one with spaces. `httparse` leaves the fold in the
    // value; `trim` below removes it at the ends, and within a number it is malformed, like a space.
    config.allow_obsolete_multiline_headers_in_responses(true);
    let head_bytes = match config.parse_response_with_uninit_headers(&mut response, input, &mut places) {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(translate(error)),
    };
    let (Some(status), Some(version)) = (response.code, response.version) else {
        return Err(DecodeError::Malformed { what: "status line" });
    };
    if status < 100 {
        return Err(DecodeError::Malformed { what: "status code" });
    }
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.read(header)?;
    }
    let keep = fields.keep(version);
    Ok(Some(Head { status, framing: fields.framing(), keep, head_bytes }))
}

/// All headers of a head that [`parse_head`] has accepted, as the peer wrote them.
pub(crate) fn head_fields(input: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut places = [httparse::EMPTY_HEADER; HEADER_LINES];
    let mut response = Response::new(&mut places);
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    if !matches!(config.parse_response(&mut response, input), Ok(Status::Complete(_))) {
        return Vec::new();
    }
    response.headers.iter().map(|header| (header.name.to_owned(), trim(header.value).to_vec())).collect()
}

/// The headers that matter, collected over all lines.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    /// A transfer coding was named.
    coded: bool,
    /// The last transfer coding named is `chunked`.
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

impl Fields {
    /// The length of the name is compared first: that excludes most headers of most responses.
    fn read(&mut self, header: &Header<'_>) -> Result<(), DecodeError> {
        let named = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            10 if named("connection") => self.read_connection(header.value),
            14 if named("content-length") => return self.read_length(header.value),
            17 if named("transfer-encoding") => return self.read_codings(header.value),
            _ => {}
        }
        Ok(())
    }

    fn read_connection(&mut self, value: &[u8]) {
        for token in tokens(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// A repeated length is refused even if both agree: a peer that sends it is broken and should not be measured.
    fn read_length(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        let digits = trim(value);
        let number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        if !number || self.content_length.is_some() {
            return Err(DecodeError::Malformed { what: "content-length" });
        }
        // Saturating keeps a number of more than 64 bits above every limit.
        let length = digits
            .iter()
            .fold(0u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
        self.content_length = Some(length);
        Ok(())
    }

    fn read_codings(&mut self, value: &[u8]) -> Result<(), DecodeError> {
        for token in tokens(value) {
            if token.eq_ignore_ascii_case(b"identity") {
                continue;
            }
            let chunked = token.eq_ignore_ascii_case(b"chunked");
            if chunked && self.chunked {
                return Err(DecodeError::Malformed { what: "transfer-encoding" });
            }
            if !chunked && !COMPRESSIONS.iter().any(|name| token.eq_ignore_ascii_case(name)) {
                // Reading until the close, as the RFC requires, would make the server look as if it hangs.
                return Err(DecodeError::Unsupported { what: "transfer coding" });
            }
            self.coded = true;
            self.chunked = chunked;
        }
        Ok(())
    }

    fn framing(&self) -> Framing {
        match (self.coded, self.chunked, self.content_length) {
            (true, true, _) => Framing::Chunked,
            (true, false, _) | (false, _, None) => Framing::UntilClose,
            (false, _, Some(length)) => Framing::Length(length),
        }
    }

    /// RFC 9112, section 9.3, and section 6.1 for the two faulty framings after which a connection is not kept: a
    /// coding together with a length, and a coding in HTTP/1.0.
    fn keep(&self, minor_version: u8) -> bool {
        let faulty = self.coded && (self.content_length.is_some() || minor_version == 0);
        !self.close && !faulty && (minor_version > 0 || self.keep_alive)
    }
}

/// The tokens of a comma-separated value. Empty ones are allowed and skipped.
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(trim).filter(|token| !token.is_empty())
}

/// Removes spaces, tabs and folds at both ends.
fn trim(value: &[u8]) -> &[u8] {
    value.trim_ascii()
}

fn translate(error: httparse::Error) -> DecodeError {
    use httparse::Error;
    let what = match error {
        Error::TooManyHeaders => {
            return DecodeError::TooLong { what: "header lines", limit: HEADER_LINES as u64 };
        }
        Error::Version => "status line: not HTTP/1.0 or HTTP/1.1",
        Error::Status => "status line",
        Error::HeaderName => "header name",
        Error::HeaderValue => "header value",
        Error::NewLine | Error::Token => "head",
    };
    DecodeError::Malformed { what }
}

/// Codings that may precede `chunked`. We request none of them, count their bytes as they are, and decode none.
const COMPRESSIONS: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
