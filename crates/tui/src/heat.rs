//! A heat map of the last minute: seconds from left to right, slow above fast, denser for a larger share of a second's
//! responses. The characters alone show the shares; colour repeats them.

use ratatui::style::Color;
use ratatui::text::{Line, Span};
use units::Nanos;

use super::model::Model;
use super::tally::Values;
use super::terminal_style::TerminalStyle;

/// Edges per decade, from 1 us on: the finest resolution.
const EDGES: [u64; 6] = [100, 150, 200, 300, 500, 700];
const LOWEST: u64 = 1_000;
const DECADES: usize = 8;
const BUCKETS: usize = EDGES.len() * DECADES;

/// The fine buckets at which a row begins, for each resolution: all, 1-2-5, decades.
const COARSENESS: [&[usize]; 3] = [&[0, 1, 2, 3, 4, 5], &[0, 2, 4], &[0]];

/// Number of seconds kept.
pub const KEPT: usize = 60;

/// One second of the heat map.
#[derive(Debug, Clone)]
pub struct Column {
    counts: [u64; BUCKETS],
    total: u64,
    pub failed: bool,
}

impl Column {
    /// The column of one second; `failed` marks seconds with failures.
    pub fn of(values: &Values, failed: bool) -> Column {
        let mut column = Column { counts: [0; BUCKETS], total: 0, failed };
        for &(value, count) in values {
            column.counts[bucket(value)] += count;
            column.total += count;
        }
        column
    }
}

fn edge(bucket: usize) -> u64 {
    EDGES[bucket % EDGES.len()] * LOWEST / EDGES[0] * 10u64.pow((bucket / EDGES.len()) as u32)
}

fn bucket(value: u64) -> usize {
    (0..BUCKETS).rev().find(|&bucket| edge(bucket) <= value).unwrap_or(0)
}

/// The heat map in at most `rows` lines of `width` columns, including its title; empty if that is too small.
pub fn strip(model: &Model, width: usize, rows: usize, look: TerminalStyle) -> Vec<Line<'static>> {
    const LABEL: usize = 10;
    let room = width.saturating_sub(LABEL + 1);
    if rows < 4 || room < 10 {
        return Vec::new();
    }
    let cells = (room / KEPT).clamp(1, 2);
    let shown = (room / cells).min(KEPT);
    let columns: Vec<&Column> = model.heat.iter().rev().take(shown).rev().collect();
    let mut lines = vec![Line::from(vec![
        look.title(" response"),
        look.faint(format!("  last {shown} s, newest right, share of each: {}", look.heat_key())),
    ])];
    let failures = columns.iter().any(|column| column.failed);
    let budget = rows - 1 - usize::from(failures);
    let bands = bands(&columns, budget);
    if failures {
        let mark = |column: &&Column| if column.failed { look.cross() } else { " " }.repeat(cells);
        let pad = " ".repeat((shown - columns.len()) * cells);
        let marks: String = columns.iter().map(mark).collect();
        lines.push(Line::from(vec![
            look.faint(format!("{:>LABEL$} ", "failures")),
            look.bad(format!("{pad}{marks}")),
        ]));
    }
    for &(from, to) in bands.iter().rev() {
        let label = format!("{:>LABEL$} ", Nanos(edge(from)).to_string());
        let mut spans = vec![look.faint(label), Span::raw(" ".repeat((shown - columns.len()) * cells))];
        for column in &columns {
            let count: u64 = column.counts[from..to].iter().sum();
            spans.push(look.heat(share(count, column.total), cells));
        }
        lines.push(Line::from(spans));
    }
    lines
}

fn share(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

/// The rows as ranges of buckets, fast first: as fine as the room allows for the values in `columns`.
fn bands(columns: &[&Column], rows: usize) -> Vec<(usize, usize)> {
    let held = |bucket: &usize| columns.iter().any(|column| column.counts[*bucket] > 0);
    let (Some(first), Some(last)) = ((0..BUCKETS).find(held), (0..BUCKETS).rev().find(held)) else {
        return Vec::new();
    };
    let cut = |begins: &[usize]| -> Vec<(usize, usize)> {
        let starts: Vec<usize> =
            (0..BUCKETS).filter(|bucket| begins.contains(&(bucket % EDGES.len()))).collect();
        let ends = starts.iter().skip(1).copied().chain([BUCKETS]);
        starts.iter().copied().zip(ends).filter(|&(from, to)| to > first && from <= last).collect()
    };
    let mut bands = COARSENESS.iter().map(|begins| cut(begins));
    let fitting = bands.find(|bands| bands.len() <= rows);
    fitting.unwrap_or_else(|| {
        // Too few rows even for decades: the fastest ones are merged.
        let mut decades = cut(COARSENESS[2]);
        while decades.len() > rows.max(1) {
            let (from, _) = decades.remove(0);
            decades[0].0 = from;
        }
        decades
    })
}

/// How densely a share is drawn, from 0 for nothing to 5.
pub fn density(share: f64) -> usize {
    match share {
        s if s <= 0.0 => 0,
        s if s < 0.01 => 1,
        s if s < 0.05 => 2,
        s if s < 0.2 => 3,
        s if s < 0.5 => 4,
        _ => 5,
    }
}

/// By density; a dense cell is not an alarm, so none is red.
pub const COLOURS: [Color; 6] =
    [Color::Reset, Color::Blue, Color::Blue, Color::Cyan, Color::Green, Color::Yellow];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_round_and_hold_their_values() {
        assert_eq!((edge(0), edge(1), edge(6), edge(20)), (1_000, 1_500, 10_000, 2_000_000));
        for value in [0, 999, 1_000, 1_499, 1_500, 2_000_000, 2_999_999, 10_000_000_000_000] {
            let bucket = bucket(value);
            assert!(edge(bucket) <= value.max(LOWEST), "{value}");
            assert!(bucket + 1 == BUCKETS || edge(bucket + 1) > value, "{value}");
        }
    }

    #[test]
    fn rows_are_as_fine_as_the_room_allows() {
        let column = Column::of(&vec![(1_100_000, 90), (6_000_000, 10)], false);
        let bands_of = |rows| -> Vec<String> {
            bands(&[&column], rows).into_iter().map(|(from, _)| Nanos(edge(from)).to_string()).collect()
        };
        assert_eq!(bands_of(9), ["1.00 ms", "1.50 ms", "2.00 ms", "3.00 ms", "5.00 ms"]);
        assert_eq!(bands_of(4), ["1.00 ms", "2.00 ms", "5.00 ms"]);
        assert_eq!(bands_of(1), ["1.00 ms"]);
        let wide = Column::of(&vec![(20_000, 1), (5_000_000_000, 1)], false);
        assert_eq!(bands(&[&wide], 3).len(), 3);
    }
}
