//! The report on a terminal: whether to believe it, what was measured, where the time went, how requests ended.
//!
//! People paste it into tickets. The order never changes, a normal run takes fewer than fifty lines, and nothing
//! is said by colour alone.

use std::io::{self, Write};
use std::path::Path;

use record::document::{
    CodeCount, Document, EffectiveOption, Load, Model, OptionSource, Results, State, Verdict, VerdictWord,
};
use record::{Second, escape_text, escaped};
use units::{Bytes, Nanos};

use crate::advice::advice;
use crate::style::{Style, count, percent, plural, rate, wrap};
use crate::words::meaning;
use crate::{chart, table};

/// A run as it is read: its document, its seconds, and the folder they lie in.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    pub document: &'a Document,
    pub seconds: &'a [Second],
    /// Absent when nothing was kept.
    pub folder: Option<&'a Path>,
}

/// Writes the whole report as text.
///
/// # Errors
///
/// Those of `out`.
pub fn text(report: &Report<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let document = &escaped(report.document.clone());
    verdict(document, out, style)?;
    writeln!(out)?;
    header(document, out, style)?;
    if let Some(results) = &document.results {
        requests(results, &document.load, out, style)?;
        writeln!(out)?;
        table::phases(results, out, style)?;
        writeln!(out)?;
        table::intervals(&results.response, out, style)?;
        advice_lines(results, &document.load, out, style)?;
        outcomes(results, out, style)?;
        if report.seconds.len() > 1 {
            writeln!(out)?;
            chart::throughput(report.seconds, &document.load, out, style)?;
        }
        writeln!(out)?;
        cost(results, out, style)?;
    }
    options(document, out, style)?;
    record_line(report.folder, out, style)
}

/// The word first, then every finding with its figure, its limit and what to do.
pub(crate) fn verdict(document: &Document, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(Verdict { word, findings }) = &document.verdict else {
        let word = style.verdict(VerdictWord::Degraded, "no verdict");
        return writeln!(out, "{word}: the run has not ended");
    };
    let said = style.verdict(*word, word_text(*word));
    match findings.len() {
        0 => writeln!(out, "{said}: every check held")?,
        1 => writeln!(out, "{said}: one check did not hold")?,
        n => writeln!(out, "{said}: {n} checks did not hold")?,
    }
    for finding in findings {
        // Among findings of several weights, each lighter one says its own.
        let makes = if finding.makes == *word { "" } else { word_text(finding.makes) };
        let makes = if makes.is_empty() { String::new() } else { format!(" ({makes})") };
        let measured = finding.measured.trim_end_matches('.');
        let text = format!("{}{makes}: {measured}; limit: {}", finding.check, finding.limit);
        writeln!(out, "{}", wrap("  ", &text, style.width))?;
        writeln!(out, "{}", wrap("    ", &finding.advice, style.width))?;
    }
    Ok(())
}

fn word_text(word: VerdictWord) -> &'static str {
    match word {
        VerdictWord::Valid => "valid",
        VerdictWord::Degraded => "degraded",
        VerdictWord::Invalid => "invalid",
    }
}

fn header(document: &Document, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let subject = &document.subject;
    let kinds = if subject.request_kinds > 1 {
        format!(" and {} more in turn", count(subject.request_kinds - 1))
    } else {
        String::new()
    };
    let reached = subject.address.as_ref().map(|address| format!(", at {address}")).unwrap_or_default();
    let what = format!("{}{kinds}", style.strong(&subject.url));
    writeln!(out, "  {what}  {}{reached}", subject.protocol)?;
    writeln!(out, "  {}", load_line(document))?;
    let host = &document.host;
    let mut facts = vec![document.time.started.clone()];
    facts.extend(host.name.as_ref().map(|name| format!("on {name}")));
    facts.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    facts.extend(host.cpus.map(|cpus| plural(cpus, "CPU")));
    facts.push(format!("parallax {}", document.parallax_version));
    writeln!(out, "  {}", style.faint(facts.join(", ")))
}

fn load_line(document: &Document) -> String {
    let load = &document.load;
    let how = match (load.model, load.rate_per_s) {
        (Model::Open, Some(per_s)) => {
            format!("open loop, {} asked over {}", rate(per_s), plural(load.connections, "connection"))
        }
        (Model::Open, None) => format!("open loop over {}", plural(load.connections, "connection")),
        (Model::Closed, _) => format!(
            "closed loop, {} over {}",
            plural(load.callers, "caller"),
            plural(load.connections, "connection")
        ),
    };
    let pipeline =
        if load.pipeline > 1 { format!(" with {} requests each", load.pipeline) } else { String::new() };
    format!("{how}{pipeline}, {}, {}", plural(load.workers, "worker"), how_long(document))
}

fn how_long(document: &Document) -> String {
    let load = &document.load;
    let asked = match (load.duration_ns, load.request_limit) {
        (Some(ns), Some(limit)) => format!("{} or {}", Nanos(ns), plural(limit, "request")),
        (Some(ns), None) => Nanos(ns).to_string(),
        (None, Some(limit)) => plural(limit, "request"),
        (None, None) => "no end given".to_owned(),
    };
    let took = document.time.elapsed_ns.map_or("not known how long".to_owned(), |ns| Nanos(ns).to_string());
    match document.state {
        State::Finished if load.duration_ns.is_some() && load.request_limit.is_none() => {
            format!("for {asked}")
        }
        State::Finished => format!("{asked} in {took}"),
        State::Interrupted => format!("interrupted after {took} ({asked} asked)"),
        State::Broken => format!("broke off after {took} ({asked} asked)"),
        State::Recovered => format!("cut off after {took} ({asked} asked)"),
        State::Running => format!("running, {asked} asked"),
    }
}

/// Everything that was scheduled, and what became of it, in one line.
fn requests(results: &Results, load: &Load, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let totals = &results.totals;
    let failed = format!("{} failed", count(totals.failed));
    let failed = if totals.failed > 0 { style.bad(failed) } else { failed };
    let share = totals.failed as f64 / totals.scheduled.max(1) as f64;
    let share = if totals.failed > 0 { format!(" ({})", percent(share)) } else { String::new() };
    let asked = match load.rate_per_s {
        Some(per_s) => format!(" of {} asked", rate(per_s)),
        None => String::new(),
    };
    writeln!(
        out,
        "  {} ok{asked}; {} = {} ok + {failed}{share}; {} in",
        style.strong(rate(totals.throughput_per_s)),
        format_args!("{} scheduled", count(totals.scheduled)),
        count(totals.ok),
        Bytes(totals.bytes_received),
    )
}

pub(crate) fn advice_lines(
    results: &Results,
    load: &Load,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    for advice in advice(results, load) {
        writeln!(out)?;
        writeln!(out, "{}", wrap("  ", &advice.text, style.width))?;
        writeln!(out, "{}", wrap("    ", &advice.reason, style.width))?;
    }
    Ok(())
}

/// How requests ended, where all did not end ok, and the application's codes.
fn outcomes(results: &Results, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out)?;
    if results.totals.failed > 0 {
        let explained = style.width >= 100;
        let titles = outcome_line(["requests", "share", "outcome", "blame", "in phase"], "");
        writeln!(out, "{}", style.faint(titles.trim_end()))?;
        for row in &results.outcomes {
            let share = percent(row.count as f64 / results.totals.scheduled.max(1) as f64);
            let or_absent = |text: &'_ Option<String>| text.clone().unwrap_or(style.absent().to_owned());
            let (blame, phase) = (or_absent(&row.blame), or_absent(&row.phase));
            let meaning = if explained { meaning(&row.outcome) } else { "" };
            let line = outcome_line([&count(row.count), &share, &row.outcome, &blame, &phase], meaning);
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    if results.codes.is_empty() {
        return Ok(());
    }
    let of_one = |code: &CodeCount| format!("{} {} {}", code.code, style.times(), count(code.count));
    let codes: Vec<_> = results.codes.iter().map(of_one).collect();
    writeln!(out, "{}", wrap("  codes     ", &codes.join(", "), style.width))
}

fn outcome_line(cells: [&str; 5], meaning: &str) -> String {
    let [requests, share, outcome, blame, phase] = cells;
    format!("  {requests:>9} {share:>8}  {outcome:<22} {blame:<9} {phase:<12} {meaning}")
}

/// What the measuring itself took, and how good its stamps are.
fn cost(results: &Results, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut facts = Vec::new();
    let cpu = &results.cpu;
    facts.push(match cpu.per_request_ns {
        Some(ns) => format!("{} of CPU a request", Nanos(ns)),
        None => "CPU not known".to_owned(),
    });
    facts
        .extend(cpu.busiest_worker_share.map(|share| format!("busiest worker {} of a core", percent(share))));
    let totals = &results.totals;
    facts.push(format!("{} opened", plural(totals.connections_opened, "connection")));
    if totals.idle_closes > 0 {
        facts.push(format!("{} closed by the peer while idle", count(totals.idle_closes)));
    }
    if totals.unstamped > 0 {
        facts.push(format!("{} without kernel stamps", plural(totals.unstamped, "answer")));
    }
    if totals.out_of_range > 0 {
        facts.push(format!("{} over an hour", plural(totals.out_of_range, "duration")));
    }
    writeln!(out, "{}", wrap("  client    ", &facts.join(", "), style.width))
}

/// Options without which the numbers mean something else, so that their defaults are printed too.
const DEFINING: [&str; 9] = [
    "connections",
    "callers",
    "workers",
    "pipeline",
    "timeout",
    "connect-timeout",
    "checkout-timeout",
    "drain",
    "stamps",
];

/// Written on a command line without a name before them.
const POSITIONAL: [&str; 1] = ["url"];

fn options(document: &Document, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let of = |sources: &[OptionSource]| -> Vec<String> {
        let chosen = document.options.iter().filter(|(name, option)| {
            sources.contains(&option.source)
                && (option.source == OptionSource::Given
                    || (DEFINING.contains(&name.as_str()) && !option.value.is_empty()))
        });
        chosen.map(|(name, option)| written(name, option)).collect()
    };
    for (head, list) in [
        ("  given     ", of(&[OptionSource::Given])),
        ("  default   ", of(&[OptionSource::Default, OptionSource::Derived])),
    ] {
        if !list.is_empty() {
            writeln!(out, "{}", wrap(head, &list.join(" "), style.width))?;
        }
    }
    Ok(())
}

fn written(name: &str, option: &EffectiveOption) -> String {
    let quoted = match option.value.as_str() {
        value if value.contains(char::is_whitespace) => format!("'{value}'"),
        value => value.to_owned(),
    };
    match quoted.as_str() {
        _ if POSITIONAL.contains(&name) => quoted,
        "" | "true" => format!("--{name}"),
        value => format!("--{name}={value}"),
    }
}

pub(crate) fn record_line(folder: Option<&Path>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    match folder {
        Some(folder) => {
            writeln!(out, "  record    {}", style.strong(escape_text(&folder.display().to_string())))
        }
        None => writeln!(out, "  record    not kept"),
    }
}
