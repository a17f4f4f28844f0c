//! A search as text and JSON: the answer, every probe, and the load curve that they make together.

use std::io::{self, Write};
use std::path::Path;

use record::document::{QuantileValue, State, VerdictWord};
use record::escaped;
use record::search::{Limit, ProbeResult, Says, SearchAnswer, SearchDocument};
use units::Nanos;

use crate::style::{Style, aligned, wrap};
use crate::text::record_line;
use units::{percent, plural, rate};

/// Cells of a bar of the load curve.
const BAR: usize = 30;

/// Writes `document` indented, with a line end behind it.
///
/// # Errors
///
/// Those of `out`.
pub fn search_json(document: &SearchDocument, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// Writes the whole report of a search as text.
///
/// # Errors
///
/// Those of `out`.
pub fn search_text(
    document: &SearchDocument,
    folder: Option<&Path>,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let document = &escaped(document.clone());
    answer(document, out, style)?;
    writeln!(out)?;
    header(document, out, style)?;
    if !document.probes.is_empty() {
        writeln!(out)?;
        probes(document, out, style)?;
        curve(document, out, style)?;
    }
    writeln!(out)?;
    record_line(folder, out, style)
}

/// One probe in a line, as it is told when it has ended.
pub fn probe_line(number: usize, probe: &ProbeResult) -> String {
    let asked = probe.rate_per_s.map_or("closed loop".to_owned(), rate);
    let why = if probe.why.is_empty() { String::new() } else { format!(": {}", probe.why) };
    format!(
        "probe {number:>2}  {asked:>11}  {:>9} done  p99 {:>9}  {}{why}",
        rate(probe.ok_per_s),
        value(probe.p99).trim_end(),
        says(probe.says),
    )
}

fn answer(document: &SearchDocument, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let word = |word, text: String| style.verdict(word, text);
    let objective = objective(document);
    match &document.answer {
        None => writeln!(out, "{}", word(VerdictWord::Degraded, "no answer: nothing was probed".to_owned()))?,
        Some(answer) => {
            let grade = if answer.holds_per_s.is_some() { VerdictWord::Valid } else { VerdictWord::Invalid };
            writeln!(out, "{}", word(grade, headline(answer)))?;
            writeln!(out, "{}", wrap("  ", &answer.reason, style.width))?;
        }
    }
    writeln!(out, "{}", wrap("  objective ", &objective, style.width))?;
    let confirmed = match &document.answer {
        Some(answer) if answer.confirmed => "each end seen at least twice",
        _ => "not confirmed: an end of it was seen only once",
    };
    let cut = match document.state {
        State::Interrupted => "; interrupted: what is known so far",
        State::Running => "; under way, or cut off: what is known so far",
        State::Broken => "; broke off: what is known so far",
        State::Finished | State::Recovered => "",
    };
    let used = format!(
        "{} of {} used, each {} after {} of warm-up; tolerance {}; {confirmed}{cut}",
        plural(document.probes.len() as u64, "probe"),
        document.probes_allowed,
        measured(document),
        Nanos(document.probes.first().map_or(0, |probe| probe.warmup_ns)),
        percent(document.tolerance),
    );
    writeln!(out, "{}", wrap("  probes    ", &used, style.width))
}

/// `holds 1985/s; fails at 2020/s: the server is the limit`.
fn headline(answer: &SearchAnswer) -> String {
    let limit = match answer.limit {
        Limit::Server => "the server is the limit",
        Limit::Client => "the client was the limit above, the server may hold more",
        Limit::Range => "no higher rate was allowed",
        Limit::Unknown => "no higher rate was tried",
    };
    match (answer.holds_per_s, answer.fails_per_s, answer.limit) {
        (Some(holds), Some(fails), Limit::Client) => {
            format!("holds at least {}; {limit} ({})", rate(holds), rate(fails))
        }
        (Some(holds), Some(fails), _) => format!("holds {}; fails at {}: {limit}", rate(holds), rate(fails)),
        (Some(holds), None, _) => format!("holds at least {}: {limit}", rate(holds)),
        (None, Some(fails), Limit::Client) => {
            format!("no rate is known to hold: the client was not fit down to {}", rate(fails))
        }
        (None, Some(fails), _) => format!("no rate is known to hold; fails at {}", rate(fails)),
        (None, None, _) => "no rate is known to hold or fail".to_owned(),
    }
}

fn objective(document: &SearchDocument) -> String {
    let condition = |demanded: &record::search::Demanded| {
        let implied = if demanded.implied { " (implied)" } else { "" };
        format!("{}{implied}", demanded.condition)
    };
    document.objective.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

/// The usual length: that of most probes with a rate.
fn measured(document: &SearchDocument) -> String {
    let lengths = document.probes.iter().filter(|probe| probe.rate_per_s.is_some());
    lengths.map(|probe| probe.measured_ns).min().map_or("not".to_owned(), |ns| format!("for {}", Nanos(ns)))
}

fn header(document: &SearchDocument, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let subject = &document.subject;
    let reached = subject.address.as_ref().map(|address| format!(", at {address}")).unwrap_or_default();
    writeln!(out, "  {}  {}{reached}", style.strong(&subject.url), subject.protocol)?;
    let mut facts = vec![document.started.clone()];
    facts.extend(document.host.name.as_ref().map(|name| format!("on {name}")));
    facts.extend(document.host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    facts.extend(document.host.cpus.map(|cpus| plural(cpus, "CPU")));
    facts.push(format!("parallax {}", document.parallax_version));
    facts.push(format!("took {}", Nanos(document.elapsed_ns)));
    writeln!(out, "  {}", style.faint(facts.join(", ")))
}

/// Every probe, in the order in which they were made.
fn probes(document: &SearchDocument, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let titles = "  probe     asked      sent      done        p50        p99   errors   client  says";
    writeln!(out, "{}", style.faint(titles))?;
    for (number, probe) in (1..).zip(&document.probes) {
        let head = format!(
            "  {number:>5}  {:>8}  {:>8}  {:>8} {:>10} {:>10}  {:>7}  {:>7}  ",
            probe.rate_per_s.map_or("closed".to_owned(), rate),
            rate(probe.sent_per_s),
            rate(probe.ok_per_s),
            value(probe.p50),
            value(probe.p99),
            percent(probe.error_share),
            probe.client_cpu_share.map_or(style.absent().to_owned(), percent),
        );
        let said = match probe.says {
            Says::Fails => style.bad(says(probe.says)),
            _ => says(probe.says).to_owned(),
        };
        writeln!(out, "{head}{said}")?;
        if !probe.why.is_empty() {
            writeln!(out, "{}", wrap(&" ".repeat(9), &probe.why, style.width))?;
        }
    }
    Ok(())
}

/// p99 against the rate, the lowest first.
fn curve(document: &SearchDocument, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut points: Vec<(f64, u64, &ProbeResult)> = document
        .probes
        .iter()
        .filter_map(|probe| Some((probe.rate_per_s?, nanos(probe.p99)?, probe)))
        .collect();
    if points.len() < 2 {
        return Ok(());
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = points.iter().map(|point| point.1).min().unwrap_or(1).max(1) as f64;
    let most = points.iter().map(|point| point.1).max().unwrap_or(1) as f64;
    // Logarithmic: on both sides of a capacity lie decades. The shortest bar still shows.
    let decades = (most / least).log10().max(1.0);
    writeln!(out)?;
    writeln!(out, "  {}", style.faint("p99 by rate, logarithmic"))?;
    for (per_s, ns, probe) in points {
        let share = 0.1 + 0.9 * (ns as f64 / least).log10().max(0.0) / decades;
        let bar = style.bar(share, BAR);
        writeln!(out, "  {:>9}  {bar}  {:>10}  {}", rate(per_s), value(probe.p99), says(probe.says))?;
    }
    Ok(())
}

fn says(says: Says) -> &'static str {
    match says {
        Says::Estimate => "estimate",
        Says::Holds => "holds",
        Says::Fails => "fails",
        Says::Unsettled => "not settled",
        Says::Client => "client not fit",
        Says::Interrupted => "cut short",
    }
}

fn nanos(value: QuantileValue) -> Option<u64> {
    match value {
        QuantileValue::Known { ns, .. } | QuantileValue::Above { ns } => Some(ns),
        QuantileValue::TooFew { .. } => None,
    }
}

fn value(value: QuantileValue) -> String {
    match value {
        QuantileValue::Known { ns, .. } => aligned(Nanos(ns)),
        QuantileValue::Above { ns } => format!("> {}", aligned(Nanos(ns))),
        QuantileValue::TooFew { .. } => "too few ".to_owned(),
    }
}
