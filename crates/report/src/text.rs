//! The report on a terminal: whether to believe it, what was measured, where the time went, how requests ended.
//!
//! People paste it into tickets. The order never changes, a normal run takes fewer than fifty lines, and nothing
//! is said by colour alone.

use std::io::{self, Write};
use std::path::Path;

use record::document::{
    CodeCount, Document, EffectiveOption, Load, LoadChange, LoadOrder, Model, OptionSource, Results, State,
    ThinkFacts, Threshold, ThresholdResult, Unchecked, Verdict, VerdictWord,
};
use record::{Second, escape_text, escaped};
use units::{Bytes, Nanos};

use crate::style::{Style, wrap};
use crate::targets::{journeys, targets};
use crate::{chart, table};
use findings::{advice, meaning};
use units::{count, percent, plural, rate};

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
    thresholds(&document.thresholds, out, style)?;
    writeln!(out)?;
    header(document, out, style)?;
    if let Some(results) = &document.results {
        requests(results, &document.load, out, style)?;
        writeln!(out)?;
        table::phases(results, out, style)?;
        writeln!(out)?;
        table::intervals(&results.response, out, style)?;
        advice_lines(results, &document.load, report.seconds, out, style)?;
        outcomes(results, out, style)?;
        targets(&document.subject.targets, results, out, style)?;
        journeys(results, out, style)?;
        if report.seconds.len() > 1 {
            writeln!(out)?;
            chart::throughput(report.seconds, &document.load, out, style)?;
        }
        writeln!(out)?;
        cost(results, document, out, style)?;
    }
    options(document, out, style)?;
    record_line(report.folder, out, style)?;
    kept(document.results.as_ref(), out)
}

/// The word first, then every finding with its figure, its limit and what to do.
pub(crate) fn verdict(document: &Document, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Some(verdict) = &document.verdict else {
        let word = style.verdict(VerdictWord::Degraded, "no verdict");
        return writeln!(out, "{word}: the run has not ended");
    };
    let so_far = if document.state == State::Running { " so far" } else { "" };
    findings_lines(verdict, so_far, out, style)
}

pub(crate) fn verdict_lines(verdict: &Verdict, out: &mut dyn Write, style: Style) -> io::Result<()> {
    findings_lines(verdict, "", out, style)
}

fn findings_lines(verdict: &Verdict, so_far: &str, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let Verdict { word, findings, .. } = verdict;
    let head = format!("{}{so_far}", word_text(*word));
    let notes = findings.iter().filter(|finding| finding.makes == VerdictWord::Valid).count();
    let unchecked = not_made(verdict);
    let every = if unchecked.is_empty() { "every check held" } else { "every check made held" };
    let mut said = match findings.len() - notes {
        0 if notes > 0 => format!("{every}, with {}", plural(notes as u64, "note")),
        0 => every.to_owned(),
        1 => "one check did not hold".to_owned(),
        n => format!("{n} checks did not hold"),
    };
    if !unchecked.is_empty() {
        said.push_str("; not made: ");
        let room = style.width.saturating_sub(head.len() + 2 + said.len());
        let reasoned = with_reasons(&unchecked);
        // The record has the reasons where this line has no room for them.
        let is_short = reasoned.chars().count() <= room;
        said.push_str(&if is_short { reasoned } else { names(&unchecked) });
    }
    let lines = wrap(&format!("{head}: "), &said, style.width);
    writeln!(out, "{}{}", style.verdict(*word, &head), &lines[head.len()..])?;
    for finding in findings {
        // Among findings of several weights, each lighter one says its own.
        let makes = match finding.makes {
            VerdictWord::Valid => "note",
            makes if makes == *word => "",
            makes => word_text(makes),
        };
        let makes = if makes.is_empty() { String::new() } else { format!(" ({makes})") };
        let measured = finding.measured.trim_end_matches('.');
        let text = format!("{}{makes}: {measured}; limit: {}", finding.check, finding.limit);
        writeln!(out, "{}", wrap("  ", &text, style.width))?;
        writeln!(out, "{}", wrap("    ", &finding.advice, style.width))?;
    }
    Ok(())
}

/// The checks that were not made.
fn not_made(verdict: &Verdict) -> Vec<&Unchecked> {
    verdict.unchecked.iter().filter(|one| !one.check.is_opt_in()).collect()
}

fn names(unchecked: &[&Unchecked]) -> String {
    unchecked.iter().map(|one| one.check.name()).collect::<Vec<_>>().join(", ")
}

/// `run_queue (this kernel keeps no account of it), drift, independence (7 of 8 full seconds)`.
fn with_reasons(unchecked: &[&Unchecked]) -> String {
    let of_one_reason = unchecked.chunk_by(|a, b| a.reason == b.reason);
    let told = of_one_reason.map(|alike| format!("{} ({})", names(alike), alike[0].reason));
    told.collect::<Vec<_>>().join(", ")
}

/// What was asked of the run, the missed ones first.
pub(crate) fn thresholds(thresholds: &[Threshold], out: &mut dyn Write, style: Style) -> io::Result<()> {
    let of = |result| thresholds.iter().filter(move |threshold| threshold.result == result);
    let met = of(ThresholdResult::Met).count();
    match (thresholds.len(), thresholds.len() - met) {
        (0, _) => return Ok(()),
        (all, 0) => writeln!(out, "thresholds: {} met", if all == 1 { "the one" } else { "all" })?,
        (all, missed) => writeln!(out, "{}: {missed} of {all} missed", style.bad("thresholds"))?,
    }
    for result in [ThresholdResult::Missed, ThresholdResult::Undecided, ThresholdResult::Met] {
        for threshold in of(result) {
            let word = match result {
                ThresholdResult::Missed => "missed",
                ThresholdResult::Undecided => "cannot tell",
                ThresholdResult::Met => "met",
            };
            let reason = threshold.reason.as_ref().map(|reason| format!("; {reason}")).unwrap_or_default();
            let text = format!("fail if {}: {}{reason}", threshold.fail_if, measured(threshold));
            writeln!(out, "{}", wrap(&format!("  {word:<12}"), &text, style.width))?;
        }
    }
    Ok(())
}

fn measured(threshold: &Threshold) -> String {
    threshold.measured.map_or_else(|| "no figure".to_owned(), findings::reading_text)
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
    let protocol = format!("{}{reached}", subject.protocol);
    if 4 + subject.url.chars().count() + kinds.chars().count() + protocol.chars().count() <= style.width {
        writeln!(out, "  {what}  {protocol}")?;
    } else {
        writeln!(out, "  {what}")?;
        writeln!(out, "{}", wrap("    ", &protocol, style.width))?;
    }
    writeln!(out, "{}", wrap("  ", &load_line(document), style.width))?;
    if let Some(changes) = changes_line(&document.load) {
        writeln!(out, "{}", wrap("  changed by hand: ", &changes, style.width))?;
    }
    let host = &document.host;
    let mut facts = vec![document.time.started.clone()];
    facts.extend(host.name.as_ref().map(|name| format!("on {name}")));
    facts.extend(host.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    facts.extend(host.cpus.map(|cpus| plural(cpus, "CPU")));
    facts.push(format!("parallax {}", document.parallax_version));
    writeln!(out, "{}", style.faint(wrap("  ", &facts.join(", "), style.width)))?;
    for fact in &host.missing {
        let text = format!("{} ({})", fact.what, fact.why);
        writeln!(out, "{}", wrap("  not told by this host: ", &text, style.width))?;
    }
    Ok(())
}

fn load_line(document: &Document) -> String {
    let load = &document.load;
    let connections = plural(load.connections, "connection");
    // Even spacing at one rate is what people expect, and needs no words.
    let arrivals = load.arrivals.as_ref().filter(|facts| load.rate_per_s.is_none() || facts.seed.is_some());
    let how = match (load.model, load.rate_per_s, arrivals) {
        (Model::Open, _, Some(facts)) => format!("open loop, {} over {connections}", facts.words),
        (Model::Open, Some(per_s), None) => format!("open loop, {} asked over {connections}", rate(per_s)),
        (Model::Open, None, None) => format!("open loop over {connections}"),
        (Model::Closed, ..) => {
            let think = load.think.as_ref().map(think).unwrap_or_default();
            format!("closed loop, {}{think} over {connections}", plural(load.callers, "caller"))
        }
    };
    let pipeline =
        if load.pipeline > 1 { format!(" with {} requests each", load.pipeline) } else { String::new() };
    format!("{how}{pipeline}, {}, {}", plural(load.workers, "worker"), how_long(document))
}

/// What the user did to the load while it ran, in order.
fn changes_line(load: &Load) -> Option<String> {
    let told = |change: &LoadChange| {
        let what = match (change.change, change.rate_per_s) {
            (LoadOrder::Paused, _) => "paused".to_owned(),
            (LoadOrder::Resumed, _) => "resumed".to_owned(),
            (LoadOrder::Rate, Some(per_s)) => rate(per_s),
            (LoadOrder::Rate, None) => "another rate".to_owned(),
            (LoadOrder::Ended, _) => "ended".to_owned(),
        };
        format!("{what} at {}", Nanos(change.at_ns))
    };
    // A hand that leans on a key makes dozens: the first and the last tell where it began and where it came to.
    let (first, last) = match load.changes.len() {
        0 => return None,
        few @ 1..=8 => (few, 0),
        _ => (4, 3),
    };
    let mut all: Vec<String> = load.changes[..first].iter().map(told).collect();
    if last > 0 {
        all.push(format!("{} more", load.changes.len() - first - last));
        all.extend(load.changes[load.changes.len() - last..].iter().map(told));
    }
    Some(all.join(", "))
}

fn think(think: &ThinkFacts) -> String {
    let seed = think.seed.map(|seed| format!(" (seed {seed})")).unwrap_or_default();
    format!(" thinking {}{seed}", think.words)
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
        State::Finished if load.changes.iter().any(|change| change.change == LoadOrder::Ended) => {
            format!("ended by hand after {took} ({asked} asked)")
        }
        State::Finished if load.duration_ns.is_some() && load.request_limit.is_none() => {
            format!("for {asked}")
        }
        State::Finished => format!("{asked} in {took}"),
        State::Interrupted => format!("interrupted after {took} ({asked} asked)"),
        State::Broken => format!("broke off after {took} ({asked} asked)"),
        State::Recovered => format!("cut off after {took} ({asked} asked)"),
        State::Running if document.time.elapsed_ns.is_none() => format!("running, {asked} asked"),
        State::Running => format!("still running after {took} ({asked} asked)"),
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
        Some(per_s) => {
            let changed = load.changes.iter().any(|change| change.change == LoadOrder::Rate);
            format!(" of {} asked{}", rate(per_s), if changed { " at first" } else { "" })
        }
        None => String::new(),
    };
    // One request has a response, and no rate.
    let has_rate = totals.scheduled > 1;
    let ok = rate(totals.throughput_per_s);
    let per_s = |ok: String| if has_rate { format!("{ok} ok{asked}; ") } else { String::new() };
    let sum = format!("{} scheduled = {} ok", count(totals.scheduled), count(totals.ok));
    let received = Bytes(totals.bytes_received);
    let plain = format!("{}{sum} + {} failed{share}; {received} in", per_s(ok.clone()), count(totals.failed));
    if plain.chars().count() + 2 > style.width {
        return writeln!(out, "{}", wrap("  ", &plain, style.width));
    }
    writeln!(out, "  {}{sum} + {failed}{share}; {received} in", per_s(style.strong(ok)))
}

pub(crate) fn advice_lines(
    results: &Results,
    load: &Load,
    seconds: &[Second],
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    for advice in advice(results, load, seconds) {
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
        for row in &results.reasons {
            let text = format!("{} {} {}", row.reason, style.times(), count(row.count));
            writeln!(out, "{}", wrap(&format!("  why {}: ", row.outcome), &text, style.width))?;
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
fn cost(results: &Results, document: &Document, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut facts = Vec::new();
    let cpu = &results.cpu;
    facts.push(match cpu.per_request_ns {
        Some(ns) => format!("{} of CPU a request", Nanos(ns)),
        None => "CPU not known".to_owned(),
    });
    facts
        .extend(cpu.busiest_worker_share.map(|share| format!("busiest worker {} of a core", percent(share))));
    facts.extend(of_ceiling(results, document));
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
    writeln!(out, "{}", wrap("  client    ", &facts.join(", "), style.width))?;
    if let Some((used, each)) = cpu.server_ns.zip(cpu.server_per_request_ns) {
        writeln!(out, "  server    {} of CPU a request, {} in all", Nanos(each), Nanos(used))?;
    }
    Ok(())
}

/// How near the run came to what this client reached against the built-in target, where that was measured.
fn of_ceiling(results: &Results, document: &Document) -> Option<String> {
    let ceiling = document.host.limits.ceiling.as_ref()?;
    let most = match document.load.model {
        Model::Open => ceiling.rate_per_s?,
        Model::Closed => ceiling.throughput_per_s,
    };
    let share = results.totals.throughput_per_s / most.max(1) as f64;
    Some(format!("at {} of this client's own ceiling, {}", percent(share), rate(most as f64)))
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
                && (matches!(option.source, OptionSource::Given | OptionSource::Set)
                    || (DEFINING.contains(&name.as_str()) && !option.value.is_empty()))
        });
        chosen.map(|(name, option)| written(name, option)).collect()
    };
    for (head, list) in [
        ("  given     ", of(&[OptionSource::Given])),
        ("  set       ", of(&[OptionSource::Set])),
        ("  scenario  ", of(&[OptionSource::File])),
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
        // A value of a scenario file, as `--set` would change it.
        value if name.contains('.') => format!("{name}={value}"),
        "" | "true" => format!("--{name}"),
        value => format!("--{name}={value}"),
    }
}

/// What lies in the record of single requests.
fn kept(results: Option<&Results>, out: &mut dyn Write) -> io::Result<()> {
    let Some(kept) = results.and_then(|results| results.kept.as_ref()) else { return Ok(()) };
    let rows = plural(kept.rows, "request");
    let lost = match kept.lost {
        0 => String::new(),
        lost => format!("; {} more came too fast to be written", count(lost)),
    };
    writeln!(out, "  kept      {rows} in requests.parquet ({}){lost}", kept.requests)
}

pub(crate) fn record_line(folder: Option<&Path>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    match folder {
        Some(folder) => {
            writeln!(out, "  record    {}", style.strong(escape_text(&folder.display().to_string())))
        }
        None => writeln!(out, "  record    not kept"),
    }
}
