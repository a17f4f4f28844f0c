//! Why a request failed, where the server gives its own words: made fit for a record before anything counts them.

use crate::interval::Reason;
use crate::series::LONGEST_REASON;
use units::escape_text;

/// `what`, and the server's `words` for it: control characters are written out, and what does not fit the 200 bytes
/// that a record keeps is cut.
///
/// # Cost
///
/// Allocates: for connections that fail, not for the way of a request.
pub fn server_reason(what: &str, words: &str) -> Reason {
    cut(format!("{what}: {}", escaped_beginning(words))).into()
}

/// `text` in the same form, by itself.
pub(crate) fn bounded(text: &str) -> String {
    cut(escaped_beginning(text))
}

fn escaped_beginning(text: &str) -> String {
    // Before escaping: a server may send a megabyte.
    let end = text.char_indices().map(|(at, _)| at).find(|&at| at >= LONGEST_REASON).unwrap_or(text.len());
    escape_text(text[..end].trim())
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_REASON {
        let fits = |&at: &usize| text.is_char_boundary(at);
        let end = (0..=LONGEST_REASON - ELLIPSIS.len()).rev().find(fits).unwrap_or(0);
        text.truncate(end);
        text.push_str(ELLIPSIS);
    }
    text
}

const ELLIPSIS: &str = "…";

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a server writes control characters to a terminal, or makes a record that no reader takes.
    #[test]
    fn a_servers_words_are_bounded_and_printable() {
        let reason = |words: &str| server_reason("login refused", words).into_owned();
        assert_eq!(reason(" Access denied\n"), "login refused: Access denied");
        assert_eq!(reason("a\u{1b}[2Jb"), "login refused: a\\u{1b}[2Jb");
        for words in ["x".repeat(1 << 20), "é".repeat(1 << 10), "\u{1b}".repeat(1 << 10)] {
            let reason = reason(&words);
            assert!(reason.len() <= LONGEST_REASON && reason.ends_with('…'), "{}", reason.len());
        }
    }
}
