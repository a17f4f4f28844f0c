//! A distribution over powers of two, drawn with bars.

use std::io::{self, Write};

use record::Durations;
use units::Nanos;

use crate::style::Style;
use units::count;

const CELLS: usize = 44;

/// A row for each power of two of nanoseconds that has a value, and those between them.
pub(crate) fn draw(durations: &Durations, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let rows = rows(durations);
    let most = rows.iter().map(|&(_, n)| n).max().unwrap_or(0).max(1);
    for (from, n) in rows {
        let bar = style.bar(n as f64 / most as f64, CELLS);
        writeln!(out, "  {:>10} {bar} {:>12}", format!("{} –", Nanos(from)), count(n))?;
    }
    Ok(())
}

/// How many values lie from each power of two up to the next, from the first that has one to the last.
fn rows(durations: &Durations) -> Vec<(u64, u64)> {
    let mut counts = [0_u64; 64];
    for bucket in durations.histogram().iter_recorded() {
        let value = bucket.value_iterated_to().max(1);
        counts[63 - value.leading_zeros() as usize] += bucket.count_at_value();
    }
    let Some(first) = counts.iter().position(|&n| n > 0) else { return Vec::new() };
    let last = counts.iter().rposition(|&n| n > 0).unwrap_or(first);
    (first..=last).map(|power| (1 << power, counts[power])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_row() {
        let mut durations = Durations::default();
        for value in [1, 2, 3, 900, 1_100, 70_000] {
            durations.record(Nanos(value));
        }
        let rows = rows(&durations);
        assert_eq!(rows.iter().map(|&(_, n)| n).sum::<u64>(), 6);
        assert_eq!(
            (rows[0], rows[1], rows[9], rows[10], rows[16]),
            ((1, 1), (2, 2), (512, 1), (1024, 1), (65536, 1))
        );
    }
}
