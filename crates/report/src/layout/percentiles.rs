//! Percentiles with their intervals.

use std::io::{self, Write};

use findings::view::{Cell, Distribution, Value};
use units::count;

use super::line::plain;
use crate::style::{Style, wrap};

/// Every percentile that the sample carries, and the sample size that the others need.
pub(super) fn intervals(distribution: &Distribution, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "  {}", style.faint(plain(&distribution.title, style)))?;
    let mut cells = Vec::new();
    let mut lacking = Vec::new();
    for percentile in &distribution.percentiles {
        let name = findings::escape_text(&percentile.name);
        match &percentile.value {
            Cell::Interval { value, low, high } => {
                cells.push(format!("{name:<5} {}", with_interval(value, low, high.as_ref())));
            }
            Cell::TooFew { needed } => lacking.push(format!("{name} needs {}", count(*needed))),
            other => cells.push(format!("{name:<5} {other}")),
        }
    }
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(1) + 3;
    for line in cells.chunks((style.width.saturating_sub(2) / width).clamp(1, 4)) {
        let line: String = line.iter().map(|cell| format!("{cell:<width$}")).collect();
        writeln!(out, "  {}", line.trim_end())?;
    }
    if !lacking.is_empty() {
        writeln!(out, "{}", wrap("  too few samples: ", &lacking.join(", "), style.width))?;
    }
    Ok(())
}

/// `12.3 ms [12.1, 12.6]`: the unit is written once if all three share it.
pub(super) fn with_interval(value: &Value, low: &Value, high: Option<&Value>) -> String {
    let value = value.to_string();
    let unit = value.rsplit_once(' ').map(|(_, unit)| unit);
    // If one bound has another unit, both name theirs: `[888 us, 5.50]` would be ambiguous.
    let shares = |text: &String| {
        text.rsplit_once(' ').is_some_and(|(number, theirs)| Some(theirs) == unit && !number.contains(' '))
    };
    let (low, high) = (low.to_string(), high.map(Value::to_string));
    let shared = [Some(&low), high.as_ref()].into_iter().flatten().all(shares);
    let end = |text: &str| match text.rsplit_once(' ') {
        Some((number, _)) if shared => number.to_owned(),
        _ => text.to_owned(),
    };
    match high {
        Some(high) => format!("{value} [{}, {}]", end(&low), end(&high)),
        None => format!("{value} [{} and up]", end(&low)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_written_once_where_it_is_shared() {
        let interval = |ns, low, high: Option<u64>| {
            with_interval(&Value::Ns(ns), &Value::Ns(low), high.map(Value::Ns).as_ref())
        };
        assert_eq!(interval(12_300_000, 12_100_000, Some(12_600_000)), "12.3 ms [12.1, 12.6]");
        assert_eq!(interval(1_200_000, 980_000, Some(1_300_000)), "1.20 ms [980 us, 1.30 ms]");
        assert_eq!(interval(1_200_000, 1_100_000, None), "1.20 ms [1.10 and up]");
        assert_eq!(interval(0, 0, Some(5_000)), "0 [0, 5.00 us]");
    }
}
