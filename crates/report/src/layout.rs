//! A view as text on a terminal: the verdict, the conditions, and one section after another.
//!
//! People paste it into tickets. The order never changes, a normal run takes fewer than fifty lines, and colour never
//! carries information by itself. Figures are formatted and drawn here, and nothing is computed: what is printed is in
//! the view.

mod chart;
mod histogram;
mod line;
mod percentiles;
mod table;
mod tables;
mod verdict;
mod waterfall;

use std::io::{self, Write};

use findings::view::{Block, Section, Subject, Table, View};

use crate::style::Style;

/// Writes a whole view as text.
///
/// # Errors
///
/// When `out` fails.
pub fn text(view: &View, out: &mut dyn Write, style: Style) -> io::Result<()> {
    match (&view.verdict, &view.headline) {
        (Some(verdict), Some(headline)) => verdict::with_figures(verdict, headline, out, style)?,
        (Some(verdict), None) => verdict::verdict(view.kind, verdict, out, style)?,
        (None, _) => {}
    }
    verdict::thresholds(&view.thresholds, out, style)?;
    // For a search, the result takes the place of the verdict.
    let is_judged = view.verdict.is_some() && view.kind != Subject::Search;
    let shown = view.sections.iter().filter(|section| style.details || !section.detail);
    for (place, section) in shown.filter(|section| !section.blocks.is_empty()).enumerate() {
        if place > 0 || is_judged {
            writeln!(out)?;
        }
        blocks(view.kind, section, out, style)?;
    }
    Ok(())
}

/// Writes one section of a view that is of `kind`.
///
/// # Errors
///
/// When `out` fails.
pub fn section(kind: Subject, section: &Section, out: &mut dyn Write, style: Style) -> io::Result<()> {
    blocks(kind, section, out, style)
}

/// Writes one table with its titles.
///
/// # Errors
///
/// When `out` fails.
pub fn table(table: &Table, out: &mut dyn Write, style: Style) -> io::Result<()> {
    table::table(table, out, style)
}

fn blocks(kind: Subject, section: &Section, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut blocks = section.blocks.as_slice();
    let mut is_first_advice = true;
    while let [block, rest @ ..] = blocks {
        blocks = rest;
        match block {
            Block::Line(line) => match rest {
                [Block::Line(next), after @ ..] if line::is_subject(line, next) => {
                    line::subject(line, next, out, style)?;
                    blocks = after;
                }
                _ => line::line(kind, line, out, style)?,
            },
            Block::Advice(advice) => {
                line::advice(kind, advice, is_first_advice, out, style)?;
                is_first_advice = false;
            }
            Block::Table(table) => table::table(table, out, style)?,
            Block::Distribution(distribution) => percentiles::intervals(distribution, out, style)?,
            Block::Histogram(histogram) => histogram::draw(histogram, out, style)?,
            Block::Series(series) => chart::throughput(series, out, style)?,
            Block::Waterfall(waterfall) => waterfall::draw(kind, waterfall, out, style)?,
        }
    }
    Ok(())
}
