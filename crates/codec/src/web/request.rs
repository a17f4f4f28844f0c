//! A request as the user gives it, how it is validated, and its encoding.

use std::str::FromStr;

use thiserror::Error;

use super::url::Url;

/// One kind of request of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub url: Url,
    /// Sent in this order, after our own headers; a header replaces our own one of the same name.
    pub headers: Vec<Header>,
    pub body: Vec<u8>,
    /// Its share of the requests, relative to the other weights. At least 1.
    pub weight: u32,
}

/// One header line. Parses `Name: value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub value: String,
}

/// Why a request was refused. Invalid input never starts a run; the message states what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestError {
    #[error("there is no request to send; give a URL or a target")]
    NoRequests,
    #[error("a pipeline of 0 sends nothing; use 1 or more")]
    NoPipeline,
    #[error("the text to look for in the body is empty; give the text that must be present")]
    EmptyCheck,
    #[error("`{method}` is not a method; write for example GET or POST")]
    BadMethod { method: String },
    #[error("CONNECT would turn the connection into a tunnel; it cannot be measured here")]
    Connect,
    #[error("`{line}` is not a header; write `Name: value`")]
    BadHeader { line: String },
    #[error("the value of header `{name}` contains a line break or another control character; remove it")]
    BadValue { name: String },
    #[error("header `{name}` is given twice; remove one")]
    Repeated { name: String },
    #[error("Transfer-Encoding cannot be set: bodies are sent with a Content-Length; leave it out")]
    TransferEncoding,
    #[error("Content-Length is {given} but the body has {actual} bytes; leave the header out")]
    WrongLength { given: String, actual: usize },
    #[error("request {number} has weight 0 and would never be sent; give 1 or more, or leave it out")]
    NoWeight { number: usize },
    #[error(
        "the weights need a cycle of {turns} requests, over the limit of {limit}; use rounder weights or fewer targets"
    )]
    WeightsTooFine { turns: u64, limit: u64 },
    #[error("`{what}` is not allowed in HTTP/2; use letters, digits and percent-encoding")]
    NotForHttp2 { what: String },
    #[error("the path has {length} bytes, over the limit of {limit}; use a shorter one")]
    LongPath { length: usize, limit: usize },
    #[error("{url} is reached over TLS, which was not set up; use http://")]
    NoTls { url: String },
    #[error("the requests go to {count} servers, over the limit of {limit}; split them into several runs")]
    TooManyOrigins { count: usize, limit: usize },
    #[error("{url} is not on one of the run's servers; add its server")]
    UnknownOrigin { url: String },
    #[error("there are {count} requests, over the limit of {limit}; split them into several runs")]
    TooManyRequests { count: usize, limit: usize },
}

impl Request {
    /// A GET request without headers or a body of the user.
    pub fn get(url: Url) -> Request {
        Request { method: "GET".to_owned(), url, headers: Vec::new(), body: Vec::new(), weight: 1 }
    }

    /// Checks that it can be sent as it is. [`Web::new`](super::Web::new) does this for every request.
    ///
    /// # Errors
    ///
    /// [`RequestError`], whose message states what to do.
    pub fn check(&self) -> Result<(), RequestError> {
        if self.method.is_empty() || !self.method.bytes().all(is_token_byte) {
            return Err(RequestError::BadMethod { method: printable(&self.method) });
        }
        if self.method == "CONNECT" {
            return Err(RequestError::Connect);
        }
        self.headers.iter().try_for_each(Header::check)?;
        if self.header("transfer-encoding").is_some() {
            return Err(RequestError::TransferEncoding);
        }
        for name in ["Host", "Content-Length"] {
            if self.headers_named(name).count() > 1 {
                return Err(RequestError::Repeated { name: name.to_owned() });
            }
        }
        let actual = self.body.len();
        match self.header("content-length") {
            Some(given) if given.trim().parse() != Ok(actual) => {
                Err(RequestError::WrongLength { given: given.to_owned(), actual })
            }
            _ => Ok(()),
        }
    }

    /// Whether the response has no body even if its head announces one.
    pub(super) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Whether it has `Connection: close`, which ends the connection after the response.
    pub(super) fn asks_close(&self) -> bool {
        let mut tokens = self.headers_named("connection").flat_map(|value| value.split(','));
        tokens.any(|token| token.trim().eq_ignore_ascii_case("close"))
    }

    /// Appends the whole request in the form of HTTP/1.1. It must have passed [`Request::check`].
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for part in [self.method.as_str(), " ", self.url.path_and_query(), " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        self.each_header(|name, value| {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        });
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
    }

    /// The request's head in the form of HTTP/2: the server is part of the URL, and headers about a single connection
    /// are left out, since HTTP/2 has none of them.
    ///
    /// # Errors
    ///
    /// [`RequestError`] if HTTP/2 cannot express it.
    pub(super) fn http2_head(&self) -> Result<http::Request<()>, RequestError> {
        let authority =
            self.header("host").map_or_else(|| self.url.host_header(), |host| host.trim().to_owned());
        let path = self.path()?;
        let uri = http::Uri::builder()
            .scheme(self.url.scheme().name())
            .authority(authority.as_str())
            .path_and_query(path)
            .build();
        let uri =
            uri.map_err(|_| RequestError::NotForHttp2 { what: printable(&format!("{authority}{path}")) })?;
        let method = http::Method::from_bytes(self.method.as_bytes())
            .map_err(|_| RequestError::BadMethod { method: printable(&self.method) })?;
        let mut head = http::Request::new(());
        *head.method_mut() = method;
        *head.uri_mut() = uri;
        *head.version_mut() = http::Version::HTTP_2;
        let mut bad = None;
        let headers = head.headers_mut();
        self.each_header(|name, value| {
            if ONE_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                return;
            }
            let value = http::HeaderValue::from_bytes(value.as_bytes());
            match (http::HeaderName::from_bytes(name.as_bytes()), value) {
                (Ok(name), Ok(value)) => {
                    headers.append(name, value);
                }
                _ => bad = Some(name.to_owned()),
            }
        });
        bad.map_or(Ok(head), |name| Err(RequestError::BadValue { name }))
    }

    /// Checks whether HTTP/2 can express it; cheaper than [`Request::http2_head`].
    ///
    /// # Errors
    ///
    /// [`RequestError`] if it cannot.
    pub(super) fn check_http2(&self) -> Result<(), RequestError> {
        let path = self.path()?;
        let not = |what: &str| RequestError::NotForHttp2 { what: printable(what) };
        path.parse::<http::uri::PathAndQuery>().map_err(|_| not(path))?;
        match self.header("host") {
            Some(host) => host.trim().parse::<http::uri::Authority>().map(drop).map_err(|_| not(host)),
            None => Ok(()),
        }
    }

    /// Path and query, if they are not too long.
    fn path(&self) -> Result<&str, RequestError> {
        let path = self.url.path_and_query();
        if path.len() > LONGEST_PATH {
            return Err(RequestError::LongPath { length: path.len(), limit: LONGEST_PATH });
        }
        Ok(path)
    }

    /// Every header in the order of sending: ours unless the user gave one, then the user's, then the length.
    fn each_header(&self, mut add: impl FnMut(&str, &str)) {
        for (name, value) in
            [("Host", self.url.host_header().as_str()), ("User-Agent", USER_AGENT), ("Accept", "*/*")]
        {
            if self.header(name).is_none() {
                add(name, value);
            }
        }
        for header in &self.headers {
            add(&header.name, header.value.trim());
        }
        // RFC 9110, section 8.6: if the method gives a body a meaning, the length is sent even for an empty body.
        let has_body = !self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        if has_body && self.header("content-length").is_none() {
            add("Content-Length", &self.body.len().to_string());
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers_named(name).next()
    }

    fn headers_named(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.map(|header| header.value.as_str())
    }
}

impl Header {
    /// The first word of a header line, for a message: the rest may be a credential, as may a line of one word.
    pub fn shown(line: &str) -> String {
        let end = line.find(|c: char| !c.is_ascii_alphabetic() && c != '-').unwrap_or(0);
        let word = if line[end..].starts_with([' ', ':']) { &line[..end] } else { "" };
        format!("{word}…")
    }

    /// Checks that it is exactly one valid header line.
    ///
    /// # Errors
    ///
    /// [`RequestError::BadHeader`] or [`RequestError::BadValue`].
    pub fn check(&self) -> Result<(), RequestError> {
        if self.name.is_empty() || !self.name.bytes().all(is_token_byte) {
            return Err(RequestError::BadHeader {
                line: Header::shown(&format!("{}: {}", self.name, self.value)),
            });
        }
        if self.value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
            return Err(RequestError::BadValue { name: self.name.clone() });
        }
        Ok(())
    }
}

impl FromStr for Header {
    type Err = RequestError;

    fn from_str(line: &str) -> Result<Header, RequestError> {
        let (name, value) =
            line.split_once(':').ok_or_else(|| RequestError::BadHeader { line: Header::shown(line) })?;
        let value = value.trim_matches([' ', '\t']);
        let header = Header { name: name.to_owned(), value: value.to_owned() };
        header.check()?;
        Ok(header)
    }
}

/// `text` with its control characters escaped, so that user input cannot break the line of an error message.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { printable.extend(c.escape_default()) } else { printable.push(c) }
    }
    printable
}

/// Whether `byte` may be part of a token (RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Headers about a single connection (RFC 9113, section 8.2.2), and `Host`, which is part of the URL.
const ONE_CONNECTION: [&str; 6] = ["connection", "keep-alive", "proxy-connection", "upgrade", "te", "host"];

/// Maximum length of path and query, in bytes: that of `http`'s paths. Every request is prepared for HTTP/2 too.
const LONGEST_PATH: usize = 65_534;

const USER_AGENT: &str = concat!("parallax/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a typing error prints a password on the screen.
    #[test]
    fn a_header_that_is_refused_is_not_shown_in_full() {
        for (line, shown) in [
            ("Authorization Bearer hunter2", "`Authorization…`"),
            ("Authorization Bearer: hunter2", "`Authorization…`"),
            ("hunter2", "`…`"),
            ("", "`…`"),
        ] {
            let error = line.parse::<Header>().unwrap_err().to_string();
            assert!(error.contains(shown) && !error.contains("hunter2"), "{error}");
        }
    }

    fn request(method: &str, headers: &[(&str, &str)], body: &[u8]) -> Request {
        let header =
            |&(name, value): &(&str, &str)| Header { name: name.to_owned(), value: value.to_owned() };
        Request {
            method: method.to_owned(),
            headers: headers.iter().map(header).collect(),
            body: body.to_vec(),
            ..Request::get(Url::parse("http://h:81/x?y").unwrap())
        }
    }

    fn encoded(request: &Request) -> String {
        let mut out = Vec::new();
        request.encode(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn check(request: &Request, expected: &str) {
        request.check().unwrap();
        let encoded = encoded(request);
        assert_eq!(encoded, expected.replace("VERSION", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn requests_carry_what_was_not_given() {
        check(
            &request("GET", &[], b""),
            "GET /x?y HTTP/1.1\r\nHost: h:81\r\nUser-Agent: parallax/VERSION\r\nAccept: */*\r\n\r\n",
        );
        check(
            &request("GET", &[("host", "other"), ("user-agent", "u"), ("ACCEPT", "a"), ("X", " 1 ")], b""),
            "GET /x?y HTTP/1.1\r\nhost: other\r\nuser-agent: u\r\nACCEPT: a\r\nX: 1\r\n\r\n",
        );
    }

    #[test]
    fn a_length_is_sent_with_a_body_and_with_methods_that_mean_one() {
        for (method, headers, body, sent) in [
            ("GET", &[][..], &b""[..], 0),
            ("POST", &[], b"", 1),
            ("PUT", &[], b"", 1),
            ("PATCH", &[], b"", 1),
            ("DELETE", &[], b"abc", 1),
            ("POST", &[("content-length", "3")], b"abc", 1),
        ] {
            let request = request(method, headers, body);
            request.check().unwrap();
            let encoded = encoded(&request);
            let line = format!("content-length: {}\r\n", body.len());
            assert_eq!(encoded.to_lowercase().matches(&line).count(), sent, "{encoded}");
            assert!(encoded.as_bytes().ends_with(body));
        }
    }

    #[test]
    fn what_would_break_the_request_is_refused() {
        for (method, name, value) in [
            ("GET\r\nX: y", "A", "b"),
            ("GE T", "A", "b"),
            ("", "A", "b"),
            ("CONNECT", "A", "b"),
            ("GET", "A\r\nB", "c"),
            ("GET", "A b", "c"),
            ("GET", "", "c"),
            ("GET", "A:", "c"),
            ("GET", "A", "b\r\nC: d"),
            ("GET", "A", "b\0"),
            ("GET", "A", "b\n"),
            ("GET", "Transfer-Encoding", "chunked"),
            ("GET", "Content-Length", "1"),
            ("GET", "Content-Length", "x"),
        ] {
            let request = request(method, &[(name, value)], b"");
            let error = request.check().expect_err(&format!("{method} {name} {value}"));
            assert!(!error.to_string().contains(['\r', '\n', '\0']), "{error}");
        }
        assert!(request("GET", &[("Host", "a"), ("host", "b")], b"").check().is_err());
    }

    /// If this fails, a path that is only too long is refused because of its characters, or because of HTTP/2.
    #[test]
    fn a_path_that_is_too_long_is_refused_with_its_length() {
        let long = |length: usize| {
            Request::get(Url::parse(&format!("http://h/{}", "a".repeat(length - 1))).unwrap())
        };
        assert!(long(65_534).http2_head().is_ok() && long(65_534).check_http2().is_ok());
        let refused = "the path has 65535 bytes, over the limit of 65534; use a shorter one";
        assert_eq!(long(65_535).http2_head().unwrap_err().to_string(), refused);
        assert_eq!(long(65_535).check_http2().unwrap_err().to_string(), refused);
    }

    #[test]
    fn header_lines_are_read() {
        let read = |line: &str| line.parse::<Header>().map(|header| (header.name, header.value));
        assert_eq!(read("A:  b: c "), Ok(("A".to_owned(), "b: c".to_owned())));
        assert_eq!(read("A:"), Ok(("A".to_owned(), String::new())));
        assert!(read("A b").is_err() && read(": b").is_err() && read("A : b").is_err());
    }

    #[test]
    fn a_request_that_closes_is_known() {
        assert!(request("GET", &[("connection", "x, Close")], b"").asks_close());
        assert!(!request("GET", &[("connection", "keep-alive")], b"").asks_close());
    }
}
