//! The user's checks of every response, and the judgement that follows.
//!
//! A status is judged at the head; a body is checked as it arrives, and never stored. [`Checks`] is shared by all
//! connections, [`BodyChecks`] belongs to one.

use std::fmt;
use std::str::FromStr;

use memchr::memmem::Finder;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::search::Search;
use crate::{FailedCheck, Judgement, SAMPLE_BYTES};

/// What every response of a run must satisfy. The default requires only a status below 400.
///
/// Checks of the body apply to responses whose status was accepted, except for responses to HEAD requests, which have
/// no body to check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The accepted statuses; an accepted status is good whatever its class. `None`: those below 400.
    pub expect_status: Option<StatusSet>,
    /// Bytes that the body must contain.
    pub expect_body_contains: Option<Vec<u8>>,
    /// Digest of the whole body, after transfer decoding.
    pub expect_sha256: Option<Sha256Digest>,
}

/// Why the text of a check could not be parsed. The message states what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    #[error("`{text}` is not a set of statuses; write for example 200, 2xx, 200-299 or 200,404")]
    NotStatuses { text: String },
    #[error("status {status} is never final; expect a status from 200 to 999")]
    NotFinal { status: u16 },
    #[error("a SHA-256 digest has 64 hexadecimal digits; `{text}` has not")]
    NotADigest { text: String },
}

/// A set of final statuses, such as `200`, `2xx`, `200-299` or `2xx,404`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusSet {
    /// First and last status of each range, in the order given.
    ranges: Vec<(u16, u16)>,
}

impl StatusSet {
    /// Whether this status is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&status))
    }
}

impl FromStr for StatusSet {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<StatusSet, CheckError> {
        let ranges = text.split(',').map(|part| parse_range(part.trim(), text)).collect::<Result<_, _>>()?;
        Ok(StatusSet { ranges })
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// A SHA-256 digest, parsed from and printed as 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sha256Digest(pub [u8; 32]);

impl FromStr for Sha256Digest {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Sha256Digest, CheckError> {
        let not_a_digest = || CheckError::NotADigest { text: text.to_owned() };
        let mut digest = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(not_a_digest());
        }
        for (index, byte) in digest.iter_mut().enumerate() {
            let pair = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(pair, 16).map_err(|_| not_a_digest())?;
        }
        Ok(Sha256Digest(digest))
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The checks of a run, prepared for use.
#[derive(Debug, Clone)]
pub(crate) struct PreparedChecks {
    status: Option<StatusSet>,
    finder: Option<Finder<'static>>,
    sha256: Option<Sha256Digest>,
}

impl PreparedChecks {
    pub(crate) fn new(checks: &Checks) -> PreparedChecks {
        PreparedChecks {
            status: checks.expect_status.clone(),
            finder: checks.expect_body_contains.as_ref().map(|text| Finder::new(text).into_owned()),
            sha256: checks.expect_sha256,
        }
    }

    /// The judgement from the status alone. [`Judgement::Good`] means that it was accepted.
    pub(crate) fn judge_status(&self, status: u16) -> Judgement {
        match (&self.status, status) {
            (Some(accepted), _) if accepted.contains(status) => Judgement::Good,
            (_, 500..) => Judgement::ServerError,
            (_, 400..=499) => Judgement::RequestError,
            (Some(_), _) => Judgement::CheckFailed,
            (None, _) => Judgement::Good,
        }
    }

    /// The failed check of the status: what it expects, and what came.
    #[cold]
    pub(crate) fn failed_status(&self, status: u16) -> FailedCheck {
        let expected = self.status.as_ref().map(StatusSet::to_string).unwrap_or_default();
        FailedCheck::new(format!("status: expected {expected}"), status.to_string().as_bytes())
    }
}

/// The checks of one body, reused for each response of a connection.
#[derive(Debug, Clone)]
pub(crate) struct BodyChecks {
    search: Option<Search>,
    digest: Option<Sha256>,
    /// The beginning of the body, if it is searched, to be quoted if the search fails. It has one byte more than a
    /// quote, to show that the body continues.
    beginning: Vec<u8>,
    /// Whether the current body is checked.
    active: bool,
}

impl BodyChecks {
    pub(crate) fn new(checks: &PreparedChecks) -> BodyChecks {
        BodyChecks {
            search: checks.finder.as_ref().map(|finder| Search::new(finder.needle().len())),
            digest: checks.sha256.map(|_| Sha256::new()),
            beginning: Vec::with_capacity(if checks.finder.is_some() { SAMPLE_BYTES + 1 } else { 0 }),
            active: false,
        }
    }

    /// Begins a new body; one that is not `wanted` is not checked.
    pub(crate) fn begin(&mut self, wanted: bool) {
        self.active = wanted && (self.search.is_some() || self.digest.is_some());
        if !self.active {
            return;
        }
        if let Some(search) = &mut self.search {
            search.restart();
            self.beginning.clear();
        }
        if let Some(digest) = &mut self.digest {
            digest.reset();
        }
    }

    pub(crate) fn update(&mut self, checks: &PreparedChecks, data: &[u8]) {
        if !self.active {
            return;
        }
        if let (Some(search), Some(finder)) = (&mut self.search, &checks.finder) {
            search.update(finder, data);
            let room = (SAMPLE_BYTES + 1).saturating_sub(self.beginning.len());
            self.beginning.extend_from_slice(&data[..data.len().min(room)]);
        }
        if let Some(digest) = &mut self.digest {
            digest.update(data);
        }
    }

    /// Ends the body. Returns the first check that it failed.
    pub(crate) fn finish(&mut self, checks: &PreparedChecks) -> Option<FailedCheck> {
        if !self.active {
            return None;
        }
        let digest = self.digest.as_mut().map(|digest| Sha256Digest(digest.finalize_reset().into()));
        if !self.search.as_ref().is_none_or(Search::found) {
            return Some(self.not_found(checks));
        }
        match (digest, checks.sha256) {
            (Some(came), Some(wanted)) if came != wanted => {
                Some(FailedCheck::new(format!("sha256: expected {wanted}"), came.to_string().as_bytes()))
            }
            _ => None,
        }
    }

    #[cold]
    fn not_found(&self, checks: &PreparedChecks) -> FailedCheck {
        let needle = checks.finder.as_ref().map(Finder::needle).unwrap_or_default();
        let shown = FailedCheck::new(String::new(), needle).got;
        FailedCheck::new(format!("body: expected to contain `{shown}`"), &self.beginning)
    }
}

fn parse_range(part: &str, text: &str) -> Result<(u16, u16), CheckError> {
    let not_statuses = || CheckError::NotStatuses { text: text.to_owned() };
    let status = |digits: &str| -> Result<u16, CheckError> {
        let number = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if number { digits.parse().map_err(|_| not_statuses()) } else { Err(not_statuses()) }
    };
    let (first, last) = match (part.strip_suffix("xx"), part.split_once('-')) {
        (Some(class), _) if class.len() == 1 => {
            (status(&format!("{class}00"))?, status(&format!("{class}99"))?)
        }
        (_, Some((first, last))) => (status(first)?, status(last)?),
        _ => (status(part)?, status(part)?),
    };
    if first < 200 {
        return Err(CheckError::NotFinal { status: first });
    }
    if first > last {
        return Err(not_statuses());
    }
    Ok((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_statuses_are_read_and_printed() {
        for (text, printed, inside, outside) in [
            ("200", "200", 200, 201),
            ("2xx", "200-299", 299, 300),
            ("200, 404", "200,404", 404, 403),
            ("200-204,5xx", "200-204,500-599", 503, 205),
        ] {
            let set: StatusSet = text.parse().unwrap();
            assert_eq!(set.to_string(), printed);
            assert!(set.contains(inside) && !set.contains(outside), "{text}");
        }
        for text in
            ["", "20", "2000", "xx", "2x", "20x", "ok", "200,", "404-200", "-200", "+20", "1xx", "099", "éxx"]
        {
            assert!(text.parse::<StatusSet>().is_err(), "{text}");
        }
    }

    #[test]
    fn statuses_are_judged_by_class_unless_a_set_is_given() {
        let judge = |set: Option<&str>, status| {
            let expect_status = set.map(|text| text.parse().unwrap());
            PreparedChecks::new(&Checks { expect_status, ..Checks::default() }).judge_status(status)
        };
        for (set, status, judgement) in [
            (None, 200, Judgement::Good),
            (None, 302, Judgement::Good),
            (None, 404, Judgement::RequestError),
            (None, 503, Judgement::ServerError),
            (Some("200"), 200, Judgement::Good),
            (Some("200"), 204, Judgement::CheckFailed),
            (Some("200"), 302, Judgement::CheckFailed),
            (Some("200"), 404, Judgement::RequestError),
            (Some("200"), 500, Judgement::ServerError),
            (Some("404,500"), 404, Judgement::Good),
            (Some("404,500"), 500, Judgement::Good),
        ] {
            assert_eq!(judge(set, status), judgement, "{set:?} {status}");
        }
    }

    /// If this fails, somebody whose check failed has to guess which check, and what the server sent.
    #[test]
    fn a_failed_check_says_what_it_expected_and_what_came() {
        let failed = |checks: Checks, body: &str| {
            let prepared = PreparedChecks::new(&checks);
            let mut of_body = BodyChecks::new(&prepared);
            of_body.begin(true);
            body.as_bytes().chunks(7).for_each(|piece| of_body.update(&prepared, piece));
            of_body.finish(&prepared).map(|failed| (failed.check, failed.got))
        };
        let contains = |text: &str| Checks { expect_body_contains: Some(text.into()), ..Checks::default() };
        let expected = ("body: expected to contain `hello`".to_owned(), "<h1>Maintenance</h1>".to_owned());
        assert_eq!(failed(contains("hello"), "<h1>Maintenance</h1>"), Some(expected));
        assert_eq!(failed(contains("hello"), "oh, hello there"), None);
        let (_, got) = failed(contains("hello"), &"x".repeat(1 << 20)).unwrap();
        assert_eq!(got, format!("{}…", "x".repeat(SAMPLE_BYTES)));
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let of_digest = || Checks { expect_sha256: Some(digest.parse().unwrap()), ..Checks::default() };
        assert_eq!(failed(of_digest(), ""), None);
        let (check, got) = failed(of_digest(), "x").unwrap();
        assert_eq!(check, format!("sha256: expected {digest}"));
        assert!(got.parse::<Sha256Digest>().is_ok(), "{got}");
        let set = Checks { expect_status: Some("200-204".parse().unwrap()), ..Checks::default() };
        let failed = PreparedChecks::new(&set).failed_status(302);
        assert_eq!((failed.check.as_str(), failed.got.as_str()), ("status: expected 200-204", "302"));
    }

    #[test]
    fn digests_are_read_and_printed() {
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(text.parse::<Sha256Digest>().unwrap().to_string(), text);
        assert!("e3".parse::<Sha256Digest>().is_err());
        assert!(text.replace('e', "g").parse::<Sha256Digest>().is_err());
    }
}
