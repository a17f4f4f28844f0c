//! Parses the URLs given to a load generator: a scheme, a host, a port, a path. It is strict, so that a typing error is
//! reported and does not cause traffic to somewhere else. It resolves no name and normalises no path: dot segments and
//! percent signs are sent as written.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use thiserror::Error;

/// Where a request goes: scheme, host, port, and the path with its query, as in the request line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    scheme: Scheme,
    /// Path of the Unix domain socket to connect to, instead of host and port.
    socket: Option<String>,
    /// In lower case; an IPv6 address has no brackets.
    host: String,
    port: u16,
    path_and_query: String,
}

units::named_enum! {
    /// What carries the requests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Scheme {
        Http = "http",
        /// Over TLS.
        Https = "https",
    }
}

impl Scheme {
    fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Why a URL was refused. The message states what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UrlError {
    #[error("`{scheme}` in `{text}` is not a scheme here; use http://, https:// or unix:")]
    UnknownScheme { text: String, scheme: String },
    #[error("`{text}` lacks the colon of http://; write it with one")]
    NoColon { text: String },
    #[error("`{text}` has no socket; write unix:/path/of.sock:/path")]
    NoSocket { text: String },
    #[error("`{text}` has no host; write for example http://127.0.0.1:8080/")]
    NoHost { text: String },
    #[error("`{host}` in `{text}` is not a host name or an address; an IPv6 address needs brackets: [::1]")]
    BadHost { text: String, host: String },
    #[error("`{port}` in `{text}` is not a port; write a number from 1 to 65535")]
    BadPort { text: String, port: String },
    /// The message does not contain the URL, because that contains a password.
    #[error("user name and password in a URL are not sent; use -H 'Authorization: Basic ...'")]
    Credentials,
    /// Nor does this one: a slash or question mark in a password ends the authority before its `@`.
    #[error(
        "this URL is not valid, and not shown because `@` may follow a password; check its scheme, host and port"
    )]
    Hidden,
    #[error("a URL must not contain control characters; write %0A for a line feed")]
    ControlCharacter,
}

impl Url {
    /// Parses `http[s]://host[:port][/path][?query]` and `unix:/path/of.sock[:/path][?query]`. The scheme may be
    /// omitted (`localhost:8080/x`), and then the host too (`:8080/x` is port 8080 of `localhost`). A fragment is
    /// dropped; characters that a URL may not contain in path and query are percent-encoded.
    ///
    /// # Errors
    ///
    /// [`UrlError`], whose message states what to write instead.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(UrlError::ControlCharacter);
        }
        Url::parse_shown(text).map_err(|error| match error {
            UrlError::Credentials => UrlError::Credentials,
            _ if text.contains('@') => UrlError::Hidden,
            error => error,
        })
    }

    /// The errors contain the text.
    fn parse_shown(text: &str) -> Result<Url, UrlError> {
        if let Some(rest) = text.strip_prefix("unix:") {
            return Url::parse_unix(rest, text);
        }
        let (scheme, rest) = strip_scheme(text)?;
        let bare = scheme.is_none();
        let scheme = scheme.unwrap_or(Scheme::Http);
        if bare && ["http/", "https/"].iter().any(|slip| rest.starts_with(slip)) {
            return Err(UrlError::NoColon { text: text.to_owned() });
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path_and_query) = rest.split_at(authority_end);
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        let (host, port) = split_authority(authority, text)?;
        let host = match host {
            "" if bare && port.is_some() => "localhost".to_owned(),
            "" => return Err(UrlError::NoHost { text: text.to_owned() }),
            host => parse_host(host, text)?,
        };
        let port = port.map_or(Ok(scheme.default_port()), |port| parse_port(port, text))?;
        Ok(Url { scheme, socket: None, host, port, path_and_query: encode_path(path_and_query) })
    }

    fn parse_unix(rest: &str, text: &str) -> Result<Url, UrlError> {
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (socket, path) = rest.split_once(":/").unwrap_or((rest, ""));
        // As in `unix:///run/x.sock`.
        let socket = if socket.starts_with("///") { &socket[2..] } else { socket };
        if socket.is_empty() || socket.ends_with('/') {
            return Err(UrlError::NoSocket { text: text.to_owned() });
        }
        let path_and_query = encode_path(&format!("/{path}"));
        let (host, port) = ("localhost".to_owned(), Scheme::Http.default_port());
        Ok(Url { scheme: Scheme::Http, socket: Some(socket.to_owned()), host, port, path_and_query })
    }

    /// The same server over a Unix domain socket: requests still name the same host and port.
    pub fn over_socket(self, socket: &str) -> Url {
        Url { socket: Some(socket.to_owned()), ..self }
    }

    /// Another path on the same server. Characters that a URL may not contain are percent-encoded, line ends included.
    pub fn with_path(&self, path_and_query: &str) -> Url {
        Url { path_and_query: encode_path(path_and_query), ..self.clone() }
    }

    /// The scheme, which decides about TLS.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Path of the Unix domain socket to connect to, instead of host and port.
    pub fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    /// Name or address to connect to; an IPv6 address has no brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path with its query; begins with a slash.
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }

    /// Host and port in the form of a Host header: brackets around IPv6, no default port.
    pub fn host_header(&self) -> String {
        let bracketed = self.host.contains(':');
        let host = if bracketed { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }

    /// Whether both can be reached over the same connections.
    pub fn same_origin(&self, other: &Url) -> bool {
        let server = |url: &Url| (url.scheme, url.port);
        server(self) == server(other) && self.host == other.host && self.socket == other.socket
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        Url::parse(text)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(socket) if self.host == "localhost" && self.scheme == Scheme::Http => {
                write!(f, "unix:{socket}:{}", self.path_and_query)
            }
            _ => write!(f, "{}://{}{}", self.scheme.name(), self.host_header(), self.path_and_query),
        }
    }
}

/// The scheme, unless it was omitted, and the rest.
fn strip_scheme(text: &str) -> Result<(Option<Scheme>, &str), UrlError> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok((None, text));
    };
    // A URL in the query of one without a scheme: `localhost/?next=http://x`.
    if scheme.contains(['/', '?', '#']) {
        return Ok((None, text));
    }
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok((Some(Scheme::Http), rest)),
        "https" => Ok((Some(Scheme::Https), rest)),
        _ => Err(UrlError::UnknownScheme { text: text.to_owned(), scheme: scheme.to_owned() }),
    }
}

/// Splits host and port; the brackets of an IPv6 address are kept.
fn split_authority<'a>(authority: &'a str, text: &str) -> Result<(&'a str, Option<&'a str>), UrlError> {
    let bad_host = || UrlError::BadHost { text: text.to_owned(), host: authority.to_owned() };
    let host_end = match authority.strip_prefix('[') {
        Some(inner) => inner.find(']').ok_or_else(bad_host)? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, after) = authority.split_at(host_end);
    match after.strip_prefix(':') {
        // Two colons without brackets: an IPv6 address, not a port.
        Some(port) if !host.starts_with('[') && port.contains(':') => Err(bad_host()),
        Some(port) => Ok((host, Some(port))),
        None if after.is_empty() => Ok((host, None)),
        None => Err(bad_host()),
    }
}

fn parse_host(host: &str, text: &str) -> Result<String, UrlError> {
    let bad_host = || UrlError::BadHost { text: text.to_owned(), host: host.to_owned() };
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        return address.map(|address| address.to_string()).ok_or_else(bad_host);
    }
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.len() > HOST_BYTES_MAX || !host.bytes().all(known) {
        return Err(bad_host());
    }
    Ok(host.to_ascii_lowercase())
}

fn parse_port(port: &str, text: &str) -> Result<u16, UrlError> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse::<u16>().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| UrlError::BadPort { text: text.to_owned(), port: port.to_owned() })
}

fn encode_path(path_and_query: &str) -> String {
    let mut encoded = String::with_capacity(path_and_query.len() + 1);
    if !path_and_query.starts_with('/') {
        encoded.push('/');
    }
    for byte in path_and_query.bytes() {
        // Characters that RFC 3986 excludes from paths and queries, except for brackets, which are sent raw in
        // practice.
        let raw = byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
        if raw {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// RFC 1035, section 2.3.4, minus the length bytes at both ends.
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, host: &str, port: u16, path_and_query: &str) {
        let url = Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((url.host(), url.port(), url.path_and_query()), (host, port, path_and_query), "{text}");
        assert_eq!(Url::parse(&url.to_string()), Ok(url), "{text}");
    }

    #[test]
    fn urls_are_read() {
        check("http://example.com", "example.com", 80, "/");
        check("HTTP://Example.COM:8080/A", "example.com", 8080, "/A");
        check("http://127.0.0.1:9/x?y=1#z", "127.0.0.1", 9, "/x?y=1");
        check("http://h?q=/", "h", 80, "/?q=/");
        check("http://h#f", "h", 80, "/");
        check("http://[::1]:8080/", "::1", 8080, "/");
        check("http://[2001:DB8:0::1]", "2001:db8::1", 80, "/");
        check("http://h/a b/é?q={\"a\"}&b[]=1", "h", 80, "/a%20b/%C3%A9?q=%7B%22a%22%7D&b[]=1");
        check("http://h/%41/../%zz", "h", 80, "/%41/../%zz");
        check("http://h/user@place", "h", 80, "/user@place");
        check("https://h/x", "h", 443, "/x");
        check("HTTPS://h:80/x", "h", 80, "/x");
        check("unix:/run/x.sock", "localhost", 80, "/");
        check("unix:///run/x.sock:/a b?c#d", "localhost", 80, "/a%20b?c");
    }

    #[test]
    fn a_server_is_scheme_host_port_and_socket() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(url("http://h/a").same_origin(&url("h:80/b")));
        for (one, other) in
            [("http://h", "https://h"), ("h:80", "h:81"), ("unix:/a", "unix:/b"), ("unix:/a", "localhost")]
        {
            assert!(!url(one).same_origin(&url(other)), "{one} {other}");
        }
        assert_eq!(url("unix:./x.sock:/y").socket(), Some("./x.sock"));
        assert_eq!(url("https://h:443/").host_header(), "h");
        assert_eq!(url("https://h:80/").host_header(), "h:80");
        assert_eq!(url("http://h/a").with_path("b\r\nc").path_and_query(), "/b%0D%0Ac");
    }

    #[test]
    fn the_scheme_and_with_a_port_the_host_may_be_left_out() {
        check("localhost:8080", "localhost", 8080, "/");
        check("localhost", "localhost", 80, "/");
        check(":8080/x", "localhost", 8080, "/x");
        check("[::1]:8080/x", "::1", 8080, "/x");
        check("h/?next=http://x/", "h", 80, "/?next=http://x/");
    }

    #[test]
    fn what_is_no_url_is_refused_with_a_cure() {
        for (text, cure) in [
            ("unix:", "unix:/path/of.sock:/path"),
            ("unix::/x", "unix:/path/of.sock:/path"),
            ("unix:/run/", "unix:/path/of.sock:/path"),
            ("http//h/x", "lacks the colon"),
            ("ftp://h/", "http://, https:// or unix:"),
            ("", "no host"),
            ("http://", "no host"),
            ("http:///x", "no host"),
            ("http://:80/", "no host"),
            ("/x", "no host"),
            ("http://user:secret@h/", "use -H"),
            ("https://user:secret@h/", "use -H"),
            ("htp://user:secret@h/x", "scheme, host and port"),
            ("http://user:sec/ret@h/", "scheme, host and port"),
            ("http/user:secret@h/", "scheme, host and port"),
            ("user:secret@h://x", "scheme, host and port"),
            ("http://h:0/", "1 to 65535"),
            ("http://h:65536/", "1 to 65535"),
            ("http://h:/", "1 to 65535"),
            ("http://h:+1/", "1 to 65535"),
            ("http://::1/", "brackets"),
            ("http://[::1/", "brackets"),
            ("http://[::1]x/", "brackets"),
            ("http://[1.2.3.4]/", "brackets"),
            ("http://a b/", "host name"),
            ("http://bücher/", "host name"),
            ("http://h/\r\nX: y", "control"),
            ("http://h/\0", "control"),
        ] {
            let error = Url::parse(text).expect_err(text).to_string();
            assert!(error.contains(cure) && !error.contains("secret"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_path_never_breaks_the_request_line(text in "\\PC*") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert!(url.path_and_query().starts_with('/'));
                prop_assert!(url.path_and_query().bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(Url::parse(&url.to_string()), Ok(url));
            }
        }
    }
}
