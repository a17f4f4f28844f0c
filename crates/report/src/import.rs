//! The report of an import: the same order as of a run, and what its tool could not know before its figures.

use std::io::{self, Write};
use std::path::Path;

use record::escaped;
use record::import::{Import, ImportedResults};
use units::{Bytes, Nanos};

use crate::style::{Style, aligned, wrap};
use crate::text::{record_line, thresholds, verdict_lines};
use findings::quantile_name;
use units::{count, plural, rate};

/// The quantiles that have a column, as for a run.
const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Writes the whole report as text.
///
/// # Errors
///
/// Those of `out`.
pub fn import_text(import: &Import, folder: &Path, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let import = &escaped(import.clone());
    let Import { imported, results, .. } = import;
    verdict_lines(&import.verdict, out, style)?;
    thresholds(&import.thresholds, out, style)?;
    writeln!(out)?;
    let version = imported.tool_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let url = results.url.as_ref().map(|url| format!("{}  ", style.strong(url))).unwrap_or_default();
    writeln!(
        out,
        "  {url}by {}{version}, imported from {} ({})",
        imported.tool, imported.file, imported.form
    )?;
    figures(results, out, style)?;
    writeln!(out)?;
    times(results, out, style)?;
    writeln!(out)?;
    writeln!(out, "  {}", style.strong("what this cannot tell"))?;
    for unknown in &imported.cannot_know {
        writeln!(out, "{}", wrap("    - ", unknown, style.width))?;
    }
    writeln!(out)?;
    ends(results, out, style)?;
    record_line(Some(folder), out, style)
}

/// What is stated, and no more: a figure that is absent is not printed as 0.
fn figures(results: &ImportedResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut facts = Vec::new();
    facts.extend(results.throughput_per_s.map(|per_s| format!("{} ok", style.strong(rate(per_s)))));
    // Where all were good, it is the same rate again.
    let differs = results.throughput_per_s.is_none() || results.failed != Some(0);
    let requests_a_second = results.request_rate_per_s.filter(|_| differs);
    facts.extend(requests_a_second.map(|per_s| format!("{} of all requests", rate(per_s))));
    facts.extend(results.requests.map(|requests| plural(requests, "request")));
    facts.extend(results.ok.map(|ok| format!("{} ok", count(ok))));
    facts.extend(results.failed.map(|failed| format!("{} failed", count(failed))));
    facts.extend(results.elapsed_ns.map(|ns| format!("in {}", Nanos(ns))));
    facts.extend(results.connections.map(|connections| plural(connections, "connection")));
    facts.extend(results.bytes_received.map(|bytes| format!("{} in", Bytes(bytes))));
    writeln!(out, "{}", wrap("  ", &facts.join(", "), style.width))
}

fn times(results: &ImportedResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let titles = COLUMNS.map(quantile_name).into_iter().chain(["max".to_owned(), "mean".to_owned()]);
    let titles: String = titles.map(|title| format!("{title:>7}   ")).collect();
    writeln!(out, "  {}", style.faint(format!("{:28}{titles}", "").trim_end()))?;
    for time in &results.times {
        let column = |q| time.quantiles.iter().find(|quantile| quantile.q == q).map(|quantile| quantile.ns);
        let cells = COLUMNS.map(column).into_iter().chain([time.max_ns, time.mean_ns]);
        let cells: String = cells
            .map(|ns| {
                let cell = ns.map_or_else(|| format!("{} ", style.absent()), |ns| aligned(Nanos(ns)));
                format!("{cell:>10}")
            })
            .collect();
        let name = if time.name == "other" { &time.said } else { &time.name };
        writeln!(out, "  {}", format!("{name:<28}{cells}").trim_end())?;
    }
    for time in &results.times {
        writeln!(
            out,
            "{}",
            wrap("    ", &format!("{} ({}): {}", time.name, time.said, time.meaning), style.width)
        )?;
    }
    Ok(())
}

fn ends(results: &ImportedResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if !results.codes.is_empty() {
        let codes =
            results.codes.iter().map(|code| format!("{} {} {}", code.code, style.times(), count(code.count)));
        writeln!(out, "{}", wrap("  codes     ", &codes.collect::<Vec<_>>().join(", "), style.width))?;
    }
    for error in results.errors.iter().take(10) {
        let times = error.count.map_or_else(|| "some".to_owned(), count);
        writeln!(
            out,
            "{}",
            wrap("  error     ", &format!("{times} {} {}", style.times(), error.said), style.width)
        )?;
    }
    if results.errors.len() > 10 {
        writeln!(out, "  error     {} more in the record", count(results.errors.len() as u64 - 10))?;
    }
    Ok(())
}
