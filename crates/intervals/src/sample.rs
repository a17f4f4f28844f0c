//! The content of a response that failed a check, made safe for a record: limited, printable, and without credentials.

use crate::interval::Reason;
use crate::reason::bounded;

/// The maximum number of samples per check, in an interval and in a run: more would show nothing new.
pub const SAMPLES_MAX: usize = 3;

/// Replaces a value that may be a credential.
const REDACTED: &str = "(redacted)";

/// A name that contains one of these has a secret value.
const SECRET_NAMES: [&str; 11] = [
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "api-key",
    "api_key",
    "apikey",
    "session",
    "credential",
];

/// A check of a digest: the digest looks random but is not secret, and the user needs to see it.
const DIGEST: &str = "sha256:";

/// A failed check and what came instead, each truncated to the length that a record keeps of a reason.
///
/// # Cost
///
/// Allocates: for responses that failed a check.
pub fn check_sample(check: &str, got: &str) -> (Reason, String) {
    let kept = |text: &str| bounded(&if check.starts_with(DIGEST) { text.to_owned() } else { masked(text) });
    (kept(check).into(), kept(got))
}

/// `text` without the values of names that usually have a credential, and without words that look like one: long ones
/// of letters and digits.
fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()));
        out.push_str(if is_random(word) { REDACTED } else { word });
        let (gap, next) = after.split_at(after.find(is_of_word).unwrap_or(after.len()));
        out.push_str(gap);
        rest = next;
        if is_secret_name(word) && gap.contains([':', '=']) && !rest.is_empty() {
            let ends: &[char] =
                if gap.ends_with(['"', '\'']) { &['"', '\''] } else { &[',', ';', '&', '}', '<', '\n'] };
            out.push_str(REDACTED);
            rest = &rest[rest.find(ends).unwrap_or(rest.len())..];
        }
    }
    out
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "-_.+/~%".contains(c)
}

fn is_secret_name(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|name| word.contains(name))
}

/// Ordinary words and paths are shorter, or have no digits among their letters.
const RANDOM_LENGTH: usize = 20;

fn is_random(word: &str) -> bool {
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    word.len() >= RANDOM_LENGTH
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
        && word.chars().filter(|c| "/.".contains(*c)).count() < 3
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, passing on a record passes on a password that the server echoed.
    #[test]
    fn credentials_in_a_response_are_masked() {
        for (got, kept) in [
            (r#"{"user":"ann","token":"hunter2","n":3}"#, r#"{"user":"ann","token":"(redacted)","n":3}"#),
            ("Authorization: Bearer hunter2", "Authorization: (redacted)"),
            ("a=1&password=hunter2&b=2", "a=1&password=(redacted)&b=2"),
            ("/user/token: hunter2", "/user/token: (redacted)"),
            ("eyJhbGciOiJIUzI1NiJ9x is it", "(redacted) is it"),
            ("<h1>Maintenance until 10:00</h1>", "<h1>Maintenance until 10:00</h1>"),
            ("302", "302"),
            ("", ""),
        ] {
            assert_eq!(check_sample("body: expected to contain `x`", got).1, kept);
        }
        let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let (check, got) = check_sample(&format!("sha256: expected {digest}"), digest);
        assert_eq!((check.as_ref(), got.as_str()), (format!("sha256: expected {digest}").as_str(), digest));
        let (check, _) = check_sample("json /token: expected \"hunter2\"", "");
        assert_eq!(check, "json /token: (redacted)");
    }

    #[test]
    fn a_sample_is_bounded_and_printable() {
        let (_, got) = check_sample("x", &"\u{1b}[2Jé".repeat(10_000));
        assert!(got.len() <= crate::reason::LONGEST_REASON && !got.contains('\u{1b}'), "{got}");
    }
}
