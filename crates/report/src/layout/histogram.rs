//! How many values are in each range, drawn with bars.

use std::io::{self, Write};

use findings::view::Histogram;
use units::count;

use crate::style::Style;

const CELLS: usize = 44;

/// A row for each range; the range with most values has the longest bar.
pub(super) fn draw(histogram: &Histogram, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let most = histogram.bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    for bin in &histogram.bins {
        let bar = style.bar(bin.count as f64 / most as f64, CELLS);
        writeln!(out, "  {:>10} {bar} {:>12}", format!("{} –", bin.from), count(bin.count))?;
    }
    Ok(())
}
