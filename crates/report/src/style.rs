//! The look of text: colour, characters, widths, and number formats.
//!
//! Colour only repeats what the words already express. The caller finds out whether to use it, and whether the reader's
//! terminal supports more than ASCII.

use std::fmt::Display;

use anstyle::{AnsiColor, Effects};
use findings::view::Word;
use units::Nanos;

/// The capabilities of the reader's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub colour: bool,
    /// Blocks and dashes beyond ASCII.
    pub unicode: bool,
    /// Columns. Below 100 the table leaves out what is least important.
    pub width: usize,
    /// Whether the reader requested details: reasons with their limits and advice, intervals, options, the host.
    pub details: bool,
}

impl Style {
    /// For tickets, files and pipes.
    pub const PLAIN: Style = Style { colour: false, unicode: true, width: 100, details: false };

    pub(crate) fn absent(self) -> &'static str {
        if self.unicode { "–" } else { "-" }
    }

    pub(crate) fn times(self) -> &'static str {
        if self.unicode { "×" } else { "x" }
    }

    /// Emphasis for the most important words.
    pub fn strong(self, text: impl Display) -> String {
        self.paint(anstyle::Style::new().effects(Effects::BOLD), text)
    }

    /// For what can be skipped.
    pub fn faint(self, text: impl Display) -> String {
        self.paint(anstyle::Style::new().effects(Effects::DIMMED), text)
    }

    pub(crate) fn bad(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    pub(crate) fn verdict(self, word: Word, text: impl Display) -> String {
        let colour = match word {
            Word::Valid => AnsiColor::Green,
            Word::Degraded => AnsiColor::Yellow,
            Word::Invalid => AnsiColor::Red,
        };
        self.paint(colour.on_default().effects(Effects::BOLD), text)
    }

    fn paint(self, style: anstyle::Style, text: impl Display) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// A bar of `share` of `cells` characters, padded to them.
    pub(crate) fn bar(self, share: f64, cells: usize) -> String {
        let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
        let bar = if self.unicode {
            let rest = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8];
            let mut bar = "█".repeat(eighths / 8);
            if !eighths.is_multiple_of(8) {
                bar.push(rest);
            }
            bar
        } else {
            "#".repeat((eighths + 4) / 8)
        };
        format!("{bar:<cells$}")
    }
}

/// A duration whose unit is two characters wide, so that numbers in a column line up.
pub(crate) fn aligned(value: Nanos) -> String {
    let text = value.to_string();
    if text.ends_with(" s") || !text.contains(' ') { format!("{text} ") } else { text }
}

/// `text` in lines of at most `width` characters, the first starting with `head`, the others indented by its length.
pub fn wrap(head: &str, text: &str, width: usize) -> String {
    let indent = head.chars().count();
    let mut lines = vec![head.to_owned()];
    let mut used = indent;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > indent && used + 1 + length > width {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        let line = lines.last_mut().expect("the list begins with one line and only grows");
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_their_cells() {
        assert_eq!(Style::PLAIN.bar(0.5, 4), "██  ");
        assert_eq!(Style::PLAIN.bar(0.031, 4), "▏   ");
        assert_eq!(Style { unicode: false, ..Style::PLAIN }.bar(0.75, 4), "### ");
        assert_eq!(Style::PLAIN.bar(7.0, 3), "███");
    }

    #[test]
    fn long_text_hangs_under_its_head() {
        assert_eq!(wrap("  a  ", "one two three", 13), "  a  one two\n     three");
        assert_eq!(wrap("", "unbreakable", 3), "unbreakable");
    }
}
