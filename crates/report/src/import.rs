//! The report of an import: the same order as of a run, and what its tool could not know before its figures.

use std::io::{self, Write};
use std::path::Path;

use record::document::{Quantity, Reading, Threshold};
use record::escaped;
use record::import::{Import, ImportedResults, ImportedTime};
use units::{Bytes, Nanos};

use crate::condition::{Answer, Condition, Judgement, Metric, Of, Statistic};
use crate::style::{Style, aligned, count, plural, rate, wrap};
use crate::text::{record_line, thresholds, verdict_lines};
use crate::words::quantile_name;

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

/// Judges an import by what its tool stated; what it did not state cannot be decided.
pub fn import_thresholds(conditions: &[Condition], results: &ImportedResults) -> Vec<Threshold> {
    let judged = conditions.iter().map(|condition| {
        let judgement = match reading(condition, results) {
            Ok(figure) => condition.judge_reading(Reading::Known(figure)),
            Err(reason) => Judgement { reading: None, answer: Answer::CannotTell(reason) },
        };
        condition.to_threshold(judgement)
    });
    judged.collect()
}

fn reading(condition: &Condition, results: &ImportedResults) -> Result<Quantity, String> {
    let absent = || format!("the import states no {}", condition.metric_name());
    let counted = |part: Option<u64>| match condition.limit {
        Quantity::Share(_) => share(part, results.requests).ok_or_else(absent),
        _ => part.map(Quantity::Count).ok_or_else(absent),
    };
    match condition.metric {
        Metric::Time(of, statistic) => time(of, statistic, results).map(Quantity::Ns).ok_or_else(absent),
        Metric::Throughput => results.throughput_per_s.map(Quantity::PerS).ok_or_else(absent),
        Metric::ErrorShare => share(results.failed, results.requests).ok_or_else(absent),
        Metric::Failed => counted(results.failed),
        Metric::Outcome(record::Outcome::Ok) => counted(results.ok),
        Metric::Code(code) if !results.codes.is_empty() => {
            let found = results.codes.iter().find(|row| row.code == code);
            counted(Some(found.map_or(0, |row| row.count)))
        }
        _ => Err(absent()),
    }
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<Quantity> {
    let (part, whole) = part.zip(whole.filter(|&whole| whole > 0))?;
    Some(Quantity::Share(part as f64 / whole as f64))
}

fn time(of: Of, statistic: Statistic, results: &ImportedResults) -> Option<u64> {
    let name = match of {
        Of::Response => "response".to_owned(),
        Of::Service => "service".to_owned(),
        Of::Phase(phase) => format!("phase-{}", phase.name()),
    };
    let time: &ImportedTime = results.times.iter().find(|time| time.name == name)?;
    match statistic {
        Statistic::Quantile(q) => time.quantiles.iter().find(|found| found.q == q).map(|found| found.ns),
        Statistic::Mean => time.mean_ns,
        Statistic::Max => time.max_ns,
    }
}
