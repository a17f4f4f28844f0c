//! The building blocks of live views: texts that fit, figures, bars, and parts with space between them. Pure.

use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use units::Nanos;

use super::tally::Shown;
use super::terminal_style::TerminalStyle;

pub type Lines = Vec<Line<'static>>;

/// `text` in at most `width` columns.
pub fn shortened(text: &str, width: usize, look: TerminalStyle) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mark = if look.unicode { "…" } else { "~" };
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}{mark}")
}

/// A quantile as text: a value, `> value` for a lower bound, or a dash for too few samples.
pub fn shown_text(shown: Shown, look: TerminalStyle) -> String {
    match shown {
        Shown::Known(value) => value.to_string(),
        Shown::Above(value) => format!("> {value}"),
        Shown::TooFew if look.unicode => "–".to_owned(),
        Shown::TooFew => "-".to_owned(),
    }
}

/// Whole seconds, as shown by a progress bar: `7 s`, `2 min 5 s`.
pub fn seconds(time: Nanos) -> String {
    match time.0 / 1_000_000_000 {
        s @ 0..=119 => format!("{s} s"),
        s => Nanos::from_secs(s).to_string(),
    }
}

/// The progress, with a bar if there is an end and room for one.
pub fn progress(text: &str, share: Option<f64>, width: usize, look: TerminalStyle) -> Line<'static> {
    let cells = width.saturating_sub(text.chars().count() + 3).min(60);
    match share {
        Some(share) if cells >= 8 => {
            let (full, empty) = look.bar(share, cells);
            Line::from(vec![
                Span::raw(" "),
                look.paint(full, Color::Cyan),
                look.faint(empty),
                Span::raw(format!(" {text}")),
            ])
        }
        _ => Line::from(shortened(&format!(" {text}"), width, look)),
    }
}

/// One bar of several parts, each with its share of the whole and its colour.
pub fn stacked(parts: &[(f64, Color)], cells: usize, look: TerminalStyle) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    let (mut drawn, mut sum) = (0, 0.0);
    for (index, &(share, colour)) in parts.iter().enumerate() {
        sum += share;
        // Ends, not lengths, are rounded: the parts fill the bar whatever their number.
        let end = ((sum * cells as f64).round() as usize).min(cells);
        spans.push(look.paint(look.part(index).repeat(end - drawn), colour));
        drawn = end;
    }
    Line::from(spans)
}

/// The parts with empty lines between them, as far as there are spare lines.
pub fn spread<const N: usize>(parts: [Lines; N], spare: usize) -> Lines {
    let mut spare = spare;
    let mut lines = Lines::new();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !lines.is_empty() && spare > 0 {
            lines.push(Line::default());
            spare -= 1;
        }
        lines.extend(part);
    }
    lines
}

/// A rectangle on the screen, clipped to `area`.
pub fn rect(area: Rect, at: (usize, usize), size: (usize, usize)) -> Rect {
    let narrow = |length: usize| u16::try_from(length).unwrap_or(u16::MAX);
    Rect::new(narrow(at.0), narrow(at.1), narrow(size.0), narrow(size.1)).intersection(area)
}
