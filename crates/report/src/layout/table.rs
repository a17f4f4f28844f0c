//! Tables: the columns of a view at the positions that `tables` defines.

use std::io::{self, Write};

use findings::view::{Cell, Row, Table, Value};
use units::Nanos;

use super::line::plain;
use super::percentiles::with_interval;
use super::tables::{Form, Place, Side, layout_of};
use crate::style::{Style, aligned, wrap};

/// A column with its position on the line.
struct Shown<'a> {
    index: usize,
    place: &'a Place,
}

pub(super) fn table(table: &Table, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let layout = layout_of(table);
    let shown: Vec<Shown<'_>> = layout
        .places
        .iter()
        .filter(|place| style.width >= place.from_width)
        .filter_map(|place| {
            let index = table.columns.iter().position(|column| column.id == place.column)?;
            Some(Shown { index, place })
        })
        .collect();
    if layout.has_titles {
        writeln!(out, "{}", style.faint(titles(table, &shown, layout.indent).trim_end()))?;
    }
    for row in &table.rows {
        let line = line(row, &shown, layout.indent, layout.runs_on, style);
        writeln!(out, "{}", line.trim_end())?;
        if let Some(note) = &row.note {
            let text = wrap(layout.note_indent, &plain(note, style), style.width);
            writeln!(out, "{text}")?;
        }
    }
    Ok(())
}

/// A title that is wider than its column uses the space before the next one.
fn titles(table: &Table, shown: &[Shown<'_>], indent: &str) -> String {
    let mut line = indent.to_owned();
    let mut end = indent.chars().count();
    for Shown { index, place } in shown {
        let is_drawn = matches!(place.form, Form::Bar(_));
        let title = if is_drawn { "" } else { table.columns[*index].title.as_str() };
        let title = format!("{}{}", findings::escape_text(title), " ".repeat(place.title_pad));
        let begin = end + place.gap.chars().count();
        end = begin + place.width;
        let at = match place.side {
            Side::Left => begin,
            Side::Right => end.saturating_sub(title.chars().count()),
        };
        line.push_str(&" ".repeat(at.saturating_sub(line.chars().count())));
        line.push_str(&title);
    }
    line
}

fn line(row: &Row, shown: &[Shown<'_>], indent: &str, runs_on: bool, style: Style) -> String {
    let mut line = indent.to_owned();
    let absent = Cell::absent();
    for Shown { index, place } in shown {
        let cell = row.cells.get(*index).unwrap_or(&absent);
        let reason = match cell {
            Cell::Absent { because } if runs_on && !because.is_empty() && place.form == Form::Blank => {
                because
            }
            _ => {
                let used = line.chars().count() + place.gap.chars().count();
                let text = formatted(cell, place, used, style);
                if place.form == Form::Wrapped {
                    return wrap(&format!("{line}{}", place.gap), &text, style.width);
                }
                if place.form == Form::OwnLine && !row.key {
                    line.push_str(&own_line(&text, place.width));
                    continue;
                }
                let text = place.pad(&text);
                let text = if row.key && *index == 0 { style.strong(text) } else { text };
                line.push_str(place.gap);
                line.push_str(&text);
                continue;
            }
        };
        // The reason continues over the columns that have no figure.
        line.push_str(place.gap);
        line.push_str(&place.pad(&format!("{} ", style.absent())));
        line.push_str(&style.faint(format!("   {}", findings::escape_text(reason))));
        break;
    }
    line
}

/// A text below its row; one as wide as its column gets its own line.
fn own_line(text: &str, width: usize) -> String {
    let text = format!("  {text}");
    if text.chars().count() < width {
        return format!("{text:width$}");
    }
    format!("{text}\n{:width$}", "")
}

/// A cell without its padding. `used` columns of the line are taken.
fn formatted(cell: &Cell, place: &Place, used: usize, style: Style) -> String {
    let value = match cell {
        Cell::Absent { because } => {
            return match place.form {
                Form::Blank | Form::Bar(_) | Form::AlignedOrBlank => String::new(),
                Form::AlignedOrNone if !because.is_empty() => "none ".to_owned(),
                Form::Aligned | Form::AlignedOrNone => format!("{} ", style.absent()),
                Form::Dash | Form::Compact => "-".to_owned(),
                _ => style.absent().to_owned(),
            };
        }
        Cell::TooFew { .. } => {
            return match place.form {
                Form::Dash => "-".to_owned(),
                Form::Compact => "too few".to_owned(),
                _ => "too few ".to_owned(),
            };
        }
        Cell::Figure(value) | Cell::Interval { value, .. } | Cell::Above(value) | Cell::Doubtful(value) => {
            value
        }
    };
    if let (Form::WithInterval, Cell::Interval { value, low, high }) = (place.form, cell) {
        return with_interval(value, low, high.as_ref());
    }
    let (before, after) = match cell {
        Cell::Above(_) if place.form == Form::Tight => (">", ""),
        Cell::Above(_) => ("> ", ""),
        Cell::Doubtful(_) => ("", "?"),
        _ => ("", ""),
    };
    let text = match (place.form, value) {
        (Form::Bar(cells), value) => return style.bar(value.magnitude().unwrap_or(0.0), cells),
        (Form::Aligned | Form::AlignedOrNone | Form::AlignedOrBlank, Value::Ns(ns)) => aligned(Nanos(*ns)),
        (Form::Whole, Value::Share(share)) => format!("{:.0} %", share * 100.0),
        (Form::DashZero, value) if value.magnitude() == Some(0.0) => return "-".to_owned(),
        (Form::With(words), value) => format!("{value}{words}"),
        (Form::Tight, Value::CpuSeconds(_) | Value::CpuPercent(_)) => {
            // One column is the gap to the column before.
            fitting(value.to_string(), place.width.saturating_sub(1 + before.len() + after.len()))
        }
        (Form::Bound, Value::CpuSeconds(error) | Value::CpuPercent(error)) => bound(*error),
        (Form::Cut, value) => {
            let to_the_end = style.width.saturating_sub(used).max(20);
            let room = if place.width > 0 { place.width } else { to_the_end };
            return cut(&value.to_string(), room);
        }
        (Form::Clipped, value) => {
            let room = style.width.saturating_sub(used).max(9);
            return value.to_string().chars().take(room).collect();
        }
        (_, value) => value.to_string(),
    };
    format!("{before}{text}{after}")
}

/// An error is rounded up, to two digits: it must not promise more than is known.
fn bound(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_owned();
    }
    let places = (1 - value.log10().floor() as i32).clamp(0, 5);
    let scale = 10f64.powi(places);
    // The subtraction removes floating-point noise, which would round up to one more.
    format!("{:.1$}", (value * scale - 1e-9).ceil() / scale, places as usize)
}

/// A number with as many of its decimals as there is room for.
fn fitting(number: String, room: usize) -> String {
    match (number.find('.'), number.parse::<f64>()) {
        (Some(point), Ok(value)) if number.len() > room => {
            format!("{value:.0$}", room.saturating_sub(point + 1))
        }
        _ => number,
    }
}

/// Cuts `text` to at most `width` characters.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

impl Place {
    fn pad(&self, text: &str) -> String {
        match self.side {
            Side::Left => format!("{text:<width$}", width = self.width),
            Side::Right => format!("{text:>width$}", width = self.width),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_decimals_that_fit() {
        for (number, text) in [
            ("0.005726", "0.00573"),
            ("-0.005834", "-0.0058"),
            ("100.0", "100.0"),
            ("12345678.5", "12345678"),
            ("7", "7"),
        ] {
            assert_eq!(fitting(number.to_owned(), 7), text);
        }
    }

    #[test]
    fn errors_are_rounded_up() {
        for (value, text) in
            [(0.0, "0"), (0.0401, "0.041"), (0.04, "0.040"), (1.21, "1.3"), (12.1, "13"), (1e-9, "0.00001")]
        {
            assert_eq!(bound(value), text, "{value}");
        }
    }
}
