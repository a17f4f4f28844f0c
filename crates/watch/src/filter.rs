//! Which requests a watch counts: by statement or route, and by the client's address.

use std::net::IpAddr;
use std::str::FromStr;

use record::Served;
use regex::{Regex, RegexBuilder};

/// Which requests are counted; all unless something is named.
#[derive(Debug, Clone, Default)]
pub struct RequestFilter {
    pub statement: Option<StatementPattern>,
    pub peer: Option<PeerPattern>,
}

impl RequestFilter {
    /// Whether a request is counted; `statement` is the text of its digest.
    pub fn has(&self, served: &Served, statement: &str) -> bool {
        let is_peer = self.peer.is_none_or(|pattern| pattern.matches(served.peer.map(|peer| peer.ip())));
        is_peer && self.statement.as_ref().is_none_or(|pattern| pattern.matches(statement))
    }

    /// Whether every request is counted.
    pub fn is_all(&self) -> bool {
        self.statement.is_none() && self.peer.is_none()
    }
}

/// Clients: those with one IP address, or `unix` for those that use a Unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerPattern {
    Address(IpAddr),
    Unix,
}

impl FromStr for PeerPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerPattern, String> {
        match text {
            "unix" => Ok(PeerPattern::Unix),
            _ => text.parse().map(PeerPattern::Address).map_err(|_| {
                "is an IP address without a port, or `unix` for clients that use a Unix socket".to_owned()
            }),
        }
    }
}

impl PeerPattern {
    /// Whether a client is meant; `None` is one that uses a Unix socket.
    pub fn matches(self, peer: Option<IpAddr>) -> bool {
        match self {
            PeerPattern::Address(address) => {
                peer.is_some_and(|peer| peer.to_canonical() == address.to_canonical())
            }
            PeerPattern::Unix => peer.is_none(),
        }
    }
}

/// Statements or routes: `/REGEX/`, or a text that is contained, in which `*` is anything. Upper and lower case are
/// the same.
#[derive(Debug, Clone)]
pub struct StatementPattern {
    regex: Regex,
}

/// A larger one takes long for every new statement.
const REGEX_BYTES: usize = 1 << 20;

impl FromStr for StatementPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<StatementPattern, String> {
        let inner = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let pattern = match inner {
            Some(regex) => regex.to_owned(),
            None => text.split('*').map(regex::escape).collect::<Vec<_>>().join(".*"),
        };
        if text.is_empty() {
            return Err("an empty text is in every statement; leave out --statement".to_owned());
        }
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(true)
            .dot_matches_new_line(true)
            .size_limit(REGEX_BYTES)
            .build()
            .map_err(|error| {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                format!("{why}; write a text with * for anything, or /REGEX/")
            })?;
        Ok(StatementPattern { regex })
    }
}

impl StatementPattern {
    /// Whether a statement or route is meant.
    pub fn matches(&self, statement: &str) -> bool {
        self.regex.is_match(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, statement: &str, expected: bool) {
        assert_eq!(pattern.parse::<StatementPattern>().unwrap().matches(statement), expected, "{pattern}");
    }

    #[test]
    fn a_statement_is_named_by_a_part_of_it_or_by_an_expression() {
        let statement = "select c from sbtest1 where id in (?+)";
        for (pattern, expected) in [
            ("sbtest1", true),
            ("SELECT*id in (?+)", true),
            ("select*sbtest2", false),
            ("/sbtest[12] where/", true),
            ("/^c from/", false),
        ] {
            check(pattern, statement, expected);
        }
        check("/users", "GET /users/{}", true);
        check("GET /users/*", "GET /users/{}", true);
    }

    #[test]
    fn a_client_is_named_by_its_address_or_by_its_kind_of_socket() {
        let (here, there) = ("127.0.0.1".parse().ok(), "::1".parse().ok());
        for (pattern, matching, other) in [
            ("127.0.0.1", here, there),
            ("::ffff:127.0.0.1", here, there),
            ("::1", there, None),
            ("unix", None, here),
        ] {
            let pattern: PeerPattern = pattern.parse().unwrap();
            assert_eq!((pattern.matches(matching), pattern.matches(other)), (true, false), "{pattern:?}");
        }
        for nonsense in ["127.0.0.1:80", "localhost", ""] {
            assert!(nonsense.parse::<PeerPattern>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn what_is_no_expression_is_one_line() {
        for pattern in ["/a(/", "", "/(a{1000}){1000}/"] {
            let error = pattern.parse::<StatementPattern>().unwrap_err();
            assert!(!error.contains('\n') && error.len() < 200, "{error}");
        }
    }
}
