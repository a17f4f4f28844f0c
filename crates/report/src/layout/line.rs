//! Phrases as lines: indented, hanging under their labels, with the most important words in bold.

use std::io::{self, Write};

use findings::escape_text;
use findings::view::{Advice, Line, Phrase, Piece, Role, Stress, Subject};

use crate::style::{Style, wrap};

/// A phrase without colours. A terminal without Unicode gets `x` as the multiplication sign.
pub(super) fn plain(phrase: &Phrase, style: Style) -> String {
    spans(phrase, Style { colour: false, ..style })
}

/// A phrase with its emphasis.
fn spans(phrase: &Phrase, style: Style) -> String {
    let mut text = String::new();
    for piece in phrase.pieces() {
        match piece {
            Piece::Words(words) => text.push_str(&words_of(words, style)),
            Piece::Figure { cell, stress } => {
                let figure = cell.to_string();
                let is_zero = cell.value().and_then(|value| value.magnitude()) == Some(0.0);
                text.push_str(&match stress {
                    Stress::Key => style.strong(figure),
                    Stress::Bad if !is_zero => style.bad(figure),
                    _ => figure,
                });
            }
        }
    }
    text
}

fn words_of(words: &str, style: Style) -> String {
    let words = escape_text(words);
    if style.unicode { words } else { words.replace('×', "x").replace('–', "-") }
}

/// `text` after `head`, wrapped to the width; emphasis is kept if one line is enough.
pub(super) fn wrapped(head: &str, phrase: &Phrase, style: Style) -> String {
    let text = wrap(head, &plain(phrase, style), style.width);
    if !style.colour || text.contains('\n') || text[head.len()..] != plain(phrase, style) {
        return text;
    }
    format!("{head}{}", spans(phrase, style))
}

/// The beginning of a line.
fn head(kind: Subject, role: Role, label: &str) -> String {
    use Subject::{Disturb, Explain, Hiccup, Import, Jvm, Profile, Watch};
    let head = match (kind, role, label) {
        (_, _, "subject") => "  ",
        (_, _, "-") => "    - ",
        (Import, Role::Note, "") => "    ",
        (Explain, Role::Note, label) if label.ends_with(':') => {
            return format!("    {} ", escape_text(label));
        }
        (Explain, Role::Note, label) if label != "note" => return format!("  {:<8}", escape_text(label)),
        (Watch | Profile | Hiccup | Jvm | Explain | Disturb | Subject::ProfileChange, Role::Title, "") => "",
        (Watch | Profile | Hiccup | Jvm, Role::Line, "") | (Jvm, Role::Text, "") => "",
        (_, _, "") => "  ",
        (Profile, ..) => return format!("{}  ", escape_text(label)),
        (Explain, ..) => return format!("  {}  ", escape_text(label)),
        _ if label.ends_with(':') => return format!("  {} ", escape_text(label)),
        _ => return format!("  {:<10}", escape_text(label)),
    };
    head.to_owned()
}

pub(super) fn line(kind: Subject, line: &Line, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let head = head(kind, line.role, &line.label);
    match line.role {
        Role::Title => writeln!(out, "{head}{}", style.strong(plain(&line.text, style))),
        Role::Line => writeln!(out, "{}", format!("{head}{}", spans(&line.text, style)).trim_end()),
        Role::Text => writeln!(out, "{}", wrapped(&head, &line.text, style)),
        Role::Note => {
            // Notes under a wide table are limited to 120 columns, because longer lines are hard to read.
            let width = if kind == Subject::Cpu { style.width.min(120) } else { style.width };
            writeln!(out, "{}", style.faint(wrap(&head, &plain(&line.text, style), width)))
        }
        Role::Warning => writeln!(out, "{}", style.bad(wrap(&head, &plain(&line.text, style), style.width))),
    }
}

/// Whether the subject and its protocol go on one line, if there is room.
pub(super) fn is_subject(line: &Line, next: &Line) -> bool {
    line.label == "subject" && next.label == "protocol"
}

pub(super) fn subject(line: &Line, next: &Line, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let (what, protocol) = (spans(&line.text, style), plain(&next.text, style));
    let length = plain(&line.text, style).chars().count() + protocol.chars().count();
    if 4 + length <= style.width {
        return writeln!(out, "  {what}  {protocol}");
    }
    writeln!(out, "  {what}")?;
    writeln!(out, "{}", wrap("    ", &protocol, style.width))
}

/// A finding and its reason. In an explanation it is a sentence without a reason, and the first one has the word for
/// its place above it.
pub(super) fn advice(
    kind: Subject,
    advice: &Advice,
    is_first: bool,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let finding = plain(&advice.finding, style);
    if kind == Subject::Explain {
        let head = if is_first { "        " } else { "  also  " };
        return writeln!(out, "{}", wrap(head, &finding, style.width));
    }
    if !is_first {
        writeln!(out)?;
    }
    writeln!(out, "{}", wrap("  ", &finding, style.width))?;
    writeln!(out, "{}", wrap("    ", &plain(&advice.reason, style), style.width))
}
