//! The table of phases, and the intervals of the response beneath it.

use std::io::{self, Write};

use record::Outcome;
use record::document::{Distribution, PhaseResult, QuantileValue, Results};
use units::Nanos;

use crate::style::{Style, aligned, wrap};
use findings::{quantile_name, value_of};
use units::{count, percent};

/// The quantiles that have a column; the others stand among the intervals.
const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const NAME: usize = 12;
/// As wide as `server and network`.
const OWNER: usize = 18;
const BAR: usize = 7;
const SHARE: usize = 8;
const VALUE: usize = 10;

/// Where a row's numbers begin, and what stands before them.
#[derive(Debug, Clone, Copy)]
struct Layout {
    owner: bool,
    bar: bool,
}

impl Layout {
    fn of(style: Style) -> Layout {
        Layout { owner: style.width >= 100, bar: style.width >= 82 }
    }
}

/// Response, service and the ten phases: whose they are, their share, and their quantiles.
pub(crate) fn phases(results: &Results, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let layout = Layout::of(style);
    let titles: Vec<_> = COLUMNS.map(quantile_name).into_iter().chain(["max".to_owned()]).collect();
    let head = head(layout, "", "", "", &format!("{:>SHARE$}", "share "));
    let titles: String =
        titles.iter().map(|title| format!("{title:>width$}   ", width = VALUE - 3)).collect();
    writeln!(out, "{}", style.faint(format!("{head}{titles}").trim_end()))?;

    let response = numbers(&results.response, response_max(results), style);
    row(out, &style.strong(head_of("response", "felt by the caller", layout)), &response)?;
    let service = numbers(&results.service, max_cell(&results.service, style), style);
    row(out, &head_of("service", "sent to arrived", layout), &service)?;
    for phase in &results.phases {
        phase_row(phase, layout, out, style)?;
    }
    let unanswered = unanswered(results);
    if unanswered > 0 {
        let text = format!(
            "response counts the unanswered ({}) at their ages; the rows below it are of the ok requests alone",
            count(unanswered)
        );
        writeln!(out, "{}", style.faint(wrap("  ", &text, style.width)))?;
    }
    Ok(())
}

fn head_of(name: &str, owner: &str, layout: Layout) -> String {
    // What is said of the two sums runs on over the columns of bar and share, which they do not have.
    let spare = if layout.bar { BAR + 1 } else { 0 };
    let owner = if layout.owner { format!(" {owner:<OWNER$}") } else { String::new() };
    format!("  {name:<NAME$}{owner} {:spare$}{:SHARE$}", "", "")
}

fn head(layout: Layout, name: &str, owner: &str, bar: &str, share: &str) -> String {
    let owner = if layout.owner { format!(" {owner:<OWNER$}") } else { String::new() };
    let bar = if layout.bar { format!("{bar:<BAR$} ") } else { String::new() };
    format!("  {name:<NAME$}{owner} {bar}{share:>SHARE$}")
}

fn phase_row(phase: &PhaseResult, layout: Layout, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(distribution) = &phase.distribution else {
        let absent = format!("{:>SHARE$}", format!("{} ", style.absent()));
        let reason = phase.absent.as_deref().unwrap_or("not known why");
        let head = head(layout, &phase.phase, &phase.belongs_to, "", &absent);
        return row(out, &head, &style.faint(format!("   {reason}")));
    };
    let share = phase.share.unwrap_or(0.0);
    let head = head(layout, &phase.phase, &phase.belongs_to, &style.bar(share, BAR), &percent(share));
    row(out, &head, &numbers(distribution, max_cell(distribution, style), style))
}

fn row(out: &mut dyn Write, head: &str, rest: &str) -> io::Result<()> {
    writeln!(out, "{}", format!("{head}{rest}").trim_end())
}

fn numbers(distribution: &Distribution, max: String, style: Style) -> String {
    let cells = COLUMNS.into_iter().map(|q| value_cell(distribution, q, style));
    cells.chain([max]).map(|cell| format!("{cell:>VALUE$}")).collect()
}

pub(crate) fn value_cell(distribution: &Distribution, q: f64, style: Style) -> String {
    match value_of(distribution, q) {
        Some(QuantileValue::Known { ns, .. }) => aligned(Nanos(ns)),
        Some(QuantileValue::Above { ns }) => format!("> {}", aligned(Nanos(ns))),
        Some(QuantileValue::TooFew { .. }) => "too few ".to_owned(),
        None => format!("{} ", style.absent()),
    }
}

fn max_cell(distribution: &Distribution, style: Style) -> String {
    distribution.max_ns.map_or_else(|| format!("{} ", style.absent()), |max| aligned(Nanos(max)))
}

/// How many requests were never answered, of which the response knows a lower bound only.
fn unanswered(results: &Results) -> u64 {
    let is_unanswered = |name: &str| Outcome::from_name(name).is_some_and(Outcome::is_unanswered);
    results.outcomes.iter().filter(|row| is_unanswered(&row.outcome)).map(|row| row.count).sum()
}

/// The longest answer; where a request was given up later than that, only a lower bound is known.
fn response_max(results: &Results) -> String {
    let is_unanswered = |name: &str| Outcome::from_name(name).is_some_and(Outcome::is_unanswered);
    let unanswered = results.failed.iter().filter(|(name, _)| is_unanswered(name));
    let oldest = unanswered.filter_map(|(_, ages)| ages.max_ns).max();
    match oldest.filter(|&age| Some(age) > results.response.max_ns) {
        Some(age) => format!("> {}", aligned(Nanos(age))),
        None => results.response.max_ns.map_or_else(|| "none ".to_owned(), |max| aligned(Nanos(max))),
    }
}

/// Every quantile of the response with its 95 % interval.
pub(crate) fn intervals(response: &Distribution, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "  {}", style.faint("response with 95 % intervals"))?;
    let mut cells = Vec::new();
    let mut lacking = Vec::new();
    for quantile in &response.quantiles {
        let name = quantile_name(quantile.q);
        match quantile.value {
            QuantileValue::Known { ns, low_ns, high_ns } => {
                cells.push(format!("{name:<5} {}", with_interval(ns, low_ns, high_ns)));
            }
            QuantileValue::Above { ns } => cells.push(format!("{name:<5} > {}", Nanos(ns))),
            QuantileValue::TooFew { needed } => lacking.push(format!("{name} needs {}", count(needed))),
        }
    }
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(1) + 3;
    for line in cells.chunks((style.width.saturating_sub(2) / width).clamp(1, 4)) {
        let line: String = line.iter().map(|cell| format!("{cell:<width$}")).collect();
        writeln!(out, "  {}", line.trim_end())?;
    }
    if !lacking.is_empty() {
        writeln!(out, "{}", wrap("  too few requests: ", &lacking.join(", "), style.width))?;
    }
    Ok(())
}

/// `12.3 ms [12.1, 12.6]`: the unit is written once where all three share it.
fn with_interval(ns: u64, low_ns: u64, high_ns: Option<u64>) -> String {
    let value = Nanos(ns).to_string();
    let unit = value.rsplit_once(' ').map(|(_, unit)| unit);
    // Where one end has another unit, both say theirs: `[888 us, 5.50]` would leave the reader to guess.
    let shares = |text: &String| {
        text.rsplit_once(' ').is_some_and(|(number, theirs)| Some(theirs) == unit && !number.contains(' '))
    };
    let ends: Vec<String> =
        [Some(low_ns), high_ns].into_iter().flatten().map(|ns| Nanos(ns).to_string()).collect();
    let shared = ends.iter().all(shares);
    let end = |ns: u64| {
        let text = Nanos(ns).to_string();
        match text.rsplit_once(' ') {
            Some((number, _)) if shared => number.to_owned(),
            _ => text,
        }
    };
    match high_ns {
        Some(high) => format!("{value} [{}, {}]", end(low_ns), end(high)),
        None => format!("{value} [{} and up]", end(low_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_written_once_where_it_is_shared() {
        assert_eq!(with_interval(12_300_000, 12_100_000, Some(12_600_000)), "12.3 ms [12.1, 12.6]");
        assert_eq!(with_interval(1_200_000, 980_000, Some(1_300_000)), "1.20 ms [980 us, 1.30 ms]");
        assert_eq!(with_interval(1_200_000, 1_100_000, None), "1.20 ms [1.10 and up]");
        assert_eq!(with_interval(0, 0, Some(5_000)), "0 [0, 5.00 us]");
    }
}
