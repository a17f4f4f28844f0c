//! What is printed besides reports: one-line messages on standard error, and the result of printing a report.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use anyhow::Context;

/// Prints one line on standard error. The text can come from an untrusted file or a hostile peer: it is escaped.
pub fn report_line(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", stderr_line(text));
}

/// Prints the reader's notes on a record: fields that were ignored, a newer schema version.
pub fn report_notes(envelope: &record::document::Envelope) {
    envelope.notes.iter().for_each(report_line);
}

/// Maximum length of a message, in characters: one that quotes a file or a peer can be of any length.
const LONGEST_MESSAGE: usize = 2_000;

/// The line with its prefix. Control characters are escaped: none reaches the terminal, and a newline starts no second
/// line. A line that is too long keeps its beginning and its end, which often says what to do.
fn stderr_line(text: impl Display) -> String {
    format!("parallax: {}", shortened(&record::escape_text(&text.to_string())))
}

fn shortened(text: &str) -> Cow<'_, str> {
    if text.chars().nth(LONGEST_MESSAGE).is_none() {
        return text.into();
    }
    let end_length = LONGEST_MESSAGE / 4;
    let begin: String = text.chars().take(LONGEST_MESSAGE - end_length - 1).collect();
    let end = text.char_indices().rev().nth(end_length - 1).map_or(0, |(at, _)| at);
    format!("{begin}…{}", &text[end..]).into()
}

/// The chain of causes in one line, without causes that an earlier message already contains.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut causes = error.chain().map(ToString::to_string);
    let first = causes.next().unwrap_or_default();
    causes.fold(first, |line, cause| if line.contains(&cause) { line } else { format!("{line}: {cause}") })
}

/// The result of printing. A reader that closes the pipe early is not an error.
///
/// # Errors
///
/// When standard output cannot be written to.
pub fn printed(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the result"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let source = io::Error::new(io::ErrorKind::StorageFull, "no space left");
        let write = record::RecordError::Write { path: "run/series.ndjson".into(), source };
        let error = anyhow::Error::new(write).context("the record is incomplete");
        assert_eq!(
            one_line(&error),
            "the record is incomplete: cannot write run/series.ndjson: no space left; free some space, or use \
             another directory"
        );
    }

    /// If this fails, a file or a peer can flood the terminal.
    #[test]
    fn a_message_has_at_most_2000_characters() {
        let quoting = |count| stderr_line(format!("`{}` is not a path; use another", "ä".repeat(count)));
        assert_eq!(quoting(1_971).chars().count(), "parallax: ".len() + 2_000);
        assert!(!quoting(1_971).contains('…'));
        for long in [quoting(1_972), quoting(5_000_000), stderr_line("\0".repeat(5_000_000))] {
            assert_eq!(long.chars().count(), "parallax: ".len() + 2_000);
        }
        let long = quoting(5_000_000);
        assert!(long.starts_with("parallax: `ää") && long.ends_with("ä` is not a path; use another"));
        assert!(long.contains("ä…ä"));
    }

    /// If this fails, a file or a peer can control the terminal.
    #[test]
    fn what_is_told_is_one_line_without_control_characters() {
        let error =
            anyhow::anyhow!("of `\u{1b}]0;owned\u{7}`").context("line 1\nparallax: all is well\u{202e}");
        assert_eq!(
            stderr_line(one_line(&error)),
            r"parallax: line 1\u{a}parallax: all is well\u{202e}: of `\u{1b}]0;owned\u{7}`"
        );
    }
}
