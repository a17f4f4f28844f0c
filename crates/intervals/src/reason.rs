//! The reason of a failure with the server's own message, made safe for a record before anything counts it.

use crate::interval::Reason;
use units::escape_text;

/// In bytes. Our own texts have a few words; a server's message is truncated to this.
pub const LONGEST_REASON: usize = 200;

/// `what`, followed by the server's message `words`: control characters are escaped, and the text is truncated to the
/// 200 bytes that a record keeps.
///
/// # Cost
///
/// Allocates: for connections that fail, not for every request.
pub fn server_reason(what: &str, words: &str) -> Reason {
    cut(format!("{what}: {}", escaped_beginning(words))).into()
}

/// The server's message alone, escaped and truncated in the same way; for errors that have a code besides.
///
/// # Cost
///
/// Allocates: for requests that fail, not for every request.
pub fn server_words(words: &str) -> Reason {
    bounded(words).into()
}

/// `text` alone, escaped and truncated in the same way.
pub(crate) fn bounded(text: &str) -> String {
    cut(escaped_beginning(text))
}

fn escaped_beginning(text: &str) -> String {
    // Truncated before escaping too, since a server may send a megabyte.
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

    /// If this fails, a server writes control characters to a terminal, or causes a record that no reader accepts.
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
