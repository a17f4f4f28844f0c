//! A request from left to right.

use std::io::{self, Write};

use findings::escape_text;
use findings::view::{Subject, Waterfall};
use units::Nanos;

use super::line::plain;
use crate::style::Style;

/// Width of a drawn request, in cells.
const CELLS: usize = 48;
const NAME: usize = 20;

pub(super) fn draw(
    kind: Subject,
    waterfall: &Waterfall,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    if kind == Subject::Demo { one_bar(waterfall, out, style) } else { rows(waterfall, out, style) }
}

/// A row for each part.
fn rows(waterfall: &Waterfall, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "  {}", plain(&waterfall.head, style))?;
    let (full, empty) = if style.unicode { ("█", "·") } else { ("#", ".") };
    let total = u128::from(waterfall.total_ns.max(1));
    let place = |ns: u64| (u128::from(ns) * CELLS as u128 / total).min(CELLS as u128) as usize;
    for part in &waterfall.parts {
        let begin = place(part.start_ns).min(CELLS - 1);
        let length = place(part.start_ns.saturating_add(part.length_ns)).saturating_sub(begin).max(1);
        let bar =
            [empty.repeat(begin), full.repeat(length), empty.repeat(CELLS.saturating_sub(begin + length))]
                .concat();
        let who = if part.who.is_empty() { String::new() } else { format!("  {}", escape_text(&part.who)) };
        writeln!(out, "    {:NAME$}{bar} {}{who}", escape_text(&part.name), Nanos(part.length_ns))?;
    }
    Ok(())
}

/// In one bar: the first part light, the rest full.
fn one_bar(waterfall: &Waterfall, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let [wait, ..] = waterfall.parts.as_slice() else { return Ok(()) };
    let total = waterfall.total_ns;
    let share = if total == 0 { 0.0 } else { wait.length_ns as f64 / total as f64 };
    let waiting = ((share * CELLS as f64).round() as usize).min(CELLS);
    let (light, full) = if style.unicode { ("▒", "█") } else { (".", "#") };
    let bar = format!("{}{}", style.faint(light.repeat(waiting)), full.repeat(CELLS - waiting));
    let over = if waiting > 9 { wait.name.as_str() } else { "" };
    let rest = waterfall.parts.get(1).map(|part| part.name.as_str()).unwrap_or_default();
    writeln!(out, "  {:>11} {:<waiting$}{}", "", escape_text(over), escape_text(rest))?;
    writeln!(out, "  {:>11} {bar}", plain(&waterfall.head, style))?;
    let ends = format!("{:<waiting$}", "0");
    let middle = if waiting > 9 { Nanos(wait.length_ns).to_string() } else { String::new() };
    let rest = CELLS.saturating_sub(ends.chars().count() + middle.len());
    let scale = format!("{ends}{middle}{:>rest$}", Nanos(total).to_string());
    writeln!(out, "  {:>11} {}", "", style.faint(scale))
}
