//! The figures of each target, where a run has several.

use std::io::{self, Write};

use record::document::{Distribution, Results};

use crate::style::Style;
use crate::table::value_cell;
use units::count;

const COUNT: usize = 9;
const VALUE: usize = 10;

/// One line a target: its requests, and how long they took. Nothing where there is one.
pub(crate) fn targets(
    names: &[String],
    results: &Results,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    if results.targets.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let counts = ["requests", "ok", "failed"].map(|title| format!("{title:>COUNT$} ")).concat();
    let values = ["resp. p50", "p99", "serv. p50", "p99"].map(|title| format!("{title:>VALUE$}")).concat();
    writeln!(out, "{}", style.faint(format!("  {counts}{values}  target")))?;
    let unnamed = String::new();
    for (index, target) in results.targets.iter().enumerate() {
        let counts = [target.requests, target.ok, target.failed].map(|n| format!("{:>COUNT$} ", count(n)));
        let cells =
            |of: &Distribution| [0.5, 0.99].map(|q| format!("{:>VALUE$}", value_cell(of, q, style))).concat();
        let values = [cells(&target.response), cells(&target.service)].concat();
        let name = names.get(index).unwrap_or(&unnamed);
        writeln!(out, "{}", format!("  {}{values}  {name}", counts.concat()).trim_end())?;
    }
    Ok(())
}

/// One line a journey: how many went through.
pub(crate) fn journeys(results: &Results, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if results.journeys.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let titles = ["started", "completed", "cut"].map(|title| format!("{title:>COUNT$} ")).concat();
    writeln!(out, "{}", style.faint(format!("  {titles} journey")))?;
    for journey in &results.journeys {
        let counts = [journey.started, journey.completed, journey.cut];
        writeln!(out, "  {} {}", counts.map(|n| format!("{:>COUNT$} ", count(n))).concat(), journey.name)?;
    }
    Ok(())
}
