//! Throughput over the run as a small chart, drawn from the series.

use std::io::{self, Write};

use super::line::plain;
use crate::style::Style;
use findings::view::{Point, Series, SeriesRates};
use units::rate;

const ROWS: usize = 3;
/// The label before each row, as wide as `123 456/s`.
const LABEL: usize = 11;

/// Maximum width of a second of a short run, in columns.
const WIDEST: usize = 4;

/// `ok` per second, with seconds that had failures marked below. Nothing for fewer than two intervals.
///
/// The top is the larger of responses and requests due: a gap above the columns is load without responses.
pub(super) fn throughput(series: &Series, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let points = series.points.as_slice();
    if points.len() < 2 {
        return Ok(());
    }
    let columns = columns(series, style.width.saturating_sub(LABEL + 4).max(10));
    let highest = columns.iter().map(|column| column.ok_per_s.max(column.due_per_s)).fold(0.0, f64::max);
    let top = round_up(highest);
    writeln!(out, "  {}", style.faint(plain(&series.title, style)))?;
    for row in (0..ROWS).rev() {
        let label = match row {
            0 => "0/s".to_owned(),
            _ if row == ROWS - 1 => rate(top),
            _ => String::new(),
        };
        let cells: String = columns.iter().map(|column| cell(column.ok_per_s / top, row, style)).collect();
        writeln!(out, "{}", format!("  {label:>LABEL$} {cells}").trim_end())?;
    }
    if columns.iter().any(|column| column.failed) {
        let mark = |column: &SeriesRates| if column.failed { style.times() } else { " " };
        let marks: String = columns.iter().map(mark).collect();
        writeln!(out, "  {:>LABEL$} {}", "failures", style.bad(marks.trim_end()))?;
    }
    writeln!(out, "  {:>LABEL$} {}", "", style.faint(axis(points, columns.len())))
}

/// `0 s` under the first column, and the end under the last if there is room.
fn axis(points: &[Point], columns: usize) -> String {
    let end_s = points.last().map_or(0, |last| (last.start_ns + last.length_ns).div_ceil(1_000_000_000));
    let room = columns.saturating_sub("0 s ".len()).max(" 9 s".len());
    let scale = match points.len().div_ceil(columns.max(1)) {
        0 | 1 => String::new(),
        several => format!("   {several} seconds a column"),
    };
    format!("0 s {:>room$}{scale}", format!("{end_s} s"))
}

/// A rate with two digits, no smaller than `per_s`: the top of the chart.
fn round_up(per_s: f64) -> f64 {
    if per_s <= 0.0 {
        return 1.0;
    }
    let unit = 10f64.powf(per_s.log10().floor() - 1.0);
    // A value slightly above a round number becomes that number, not the next.
    ((per_s / unit - 0.05).ceil() * unit).max(unit)
}

/// One column for several seconds of a long run, or several columns for each second of a short one.
fn columns(series: &Series, most: usize) -> Vec<SeriesRates> {
    let count = series.points.len();
    let per_second = (most / count.max(1)).clamp(1, WIDEST);
    series.rates(count.div_ceil(most)).flat_map(|column| std::iter::repeat_n(column, per_second)).collect()
}

/// What a column of `height` (1 is the top) shows in `row`, counted from the bottom.
fn cell(height: f64, row: usize, style: Style) -> char {
    let levels: &[char] = if style.unicode {
        &[' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
    } else {
        &[' ', '.', ':', '#']
    };
    let full = levels.len() - 1;
    let mut filled = (height.clamp(0.0, 1.0) * (ROWS * full) as f64).round() as usize;
    if height > 0.0 {
        filled = filled.max(1);
    }
    levels[filled.saturating_sub(row * full).min(full)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_a_round_number() {
        for (per_s, top) in [(998.0, 1_000.0), (1_000.0, 1_000.0), (1_012.0, 1_100.0), (0.5, 0.5), (0.0, 1.0)]
        {
            assert!((round_up(per_s) - top).abs() < 1e-9, "{per_s}: {}", round_up(per_s));
        }
    }

    #[test]
    fn columns_fill_from_the_bottom() {
        let drawn = |height: f64| (0..ROWS).map(|row| cell(height, row, Style::PLAIN)).collect::<String>();
        assert_eq!(drawn(0.0), "   ");
        assert_eq!(drawn(0.001), "▁  ");
        assert_eq!(drawn(0.5), "█▄ ");
        assert_eq!(drawn(1.0), "███");
        assert_eq!(drawn(7.0), "███");
    }
}
