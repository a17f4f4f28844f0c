//! The view of a search: the result, every probe, and the load curve.

use std::path::Path;

use record::document::{QuantileValue, State};
use record::search::{Limit, ProbeOutcome, ProbeResult, SearchDocument, SearchResult};
use units::Nanos;

use crate::run_view::{host_facts, record_line};
use crate::view::{
    Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, Verdict, View, Word, phrase,
};
use crate::words::quantile_cell;

/// The view of a search.
pub fn search_view(document: &SearchDocument, folder: Option<&Path>) -> View {
    let mut view = View::new(Subject::Search);
    let (word, head) = match &document.answer {
        None => (Word::Degraded, Phrase::new("no result: no probe was made")),
        Some(answer) if answer.holds_per_s.is_some() => (Word::Valid, headline(answer)),
        Some(answer) => (Word::Invalid, headline(answer)),
    };
    let summary =
        document.answer.as_ref().map(|answer| Phrase::text(answer.reason.as_str())).unwrap_or_default();
    let reason = document.answer.is_some().then(|| Block::line(Role::Text, summary.clone()));
    view.verdict = Some(Verdict { word, head, summary, reasons: Vec::new(), not_made: Vec::new() });
    let mut answer: Vec<Block> = reason.into_iter().collect();
    answer.push(Block::labelled(Role::Text, "objective", Phrase::text(objective(document))));
    answer.push(Block::labelled(Role::Text, "probes", used(document)));
    view.sections.push(Section::new("answer", answer));
    view.sections.push(Section::new("subject", header(document)));
    if !document.probes.is_empty() {
        view.sections.push(Section::new("probes", vec![probes(document)]));
        view.sections.extend(curve(document));
    }
    view.sections.push(Section::new("details", vec![record_line(folder)]));
    view
}

fn used(document: &SearchDocument) -> Phrase {
    let confirmed = match &document.answer {
        Some(answer) if answer.confirmed => "both ends confirmed by a second probe",
        _ => "not confirmed: one end was probed only once",
    };
    let cut = match document.state {
        State::Interrupted => "; interrupted, results so far",
        State::Running => "; in progress or cut off, results so far",
        State::Broken => "; ended by an error, results so far",
        State::Finished | State::Recovered => "",
    };
    // The usual length: that of most probes at a rate.
    let lengths = document.probes.iter().filter(|probe| probe.rate_per_s.is_some());
    let measured = match lengths.map(|probe| probe.measured_ns).min() {
        Some(ns) => phrase!("for {measured}", measured = Nanos(ns)),
        None => Phrase::new("not"),
    };
    let allowed = document.probes_allowed;
    let used = phrase!(
        "{used} of {allowed} used, each ",
        used = Value::items(document.probes.len() as u64, "probe"),
        allowed = Value::Id(allowed)
    );
    let rest = phrase!(
        " after {warmup} of warm-up; tolerance {tolerance}; ",
        warmup = Nanos(document.probes.first().map_or(0, |probe| probe.warmup_ns)),
        tolerance = Value::Share(document.tolerance)
    );
    used.then("", measured).then("", rest).then(confirmed, Phrase::new(cut))
}

/// `passes at 1985/s; fails at 2020/s: the server is the limit`.
fn headline(answer: &SearchResult) -> Phrase {
    let limit = match answer.limit {
        Limit::Server => "the server is the limit",
        Limit::Client => "above that, the load generator was the limit; the server may reach more",
        Limit::Range => "no higher rate was allowed",
        Limit::Unknown => "no higher rate was tried",
    };
    let fails = |per_s: f64| phrase!("{fails}", fails = Value::PerSecond(per_s));
    let holds = |per_s: f64| phrase!("{holds}", holds = Value::PerSecond(per_s));
    match (answer.holds_per_s, answer.fails_per_s, answer.limit) {
        (Some(per_s), Some(above), Limit::Client) => {
            let limit = Phrase::new(limit).then(" (", fails(above)).then(")", Phrase::default());
            Phrase::new("passes at ").then("", holds(per_s)).then("; ", limit)
        }
        (Some(per_s), Some(above), _) => Phrase::new("passes at ")
            .then("", holds(per_s))
            .then("; fails at ", fails(above))
            .then(": ", Phrase::new(limit)),
        (Some(per_s), None, _) => {
            Phrase::new("passes at ").then("", holds(per_s)).then(": ", Phrase::new(limit))
        }
        (None, Some(above), Limit::Client) => {
            Phrase::new("no rate passed: the load generator was the limit down to ").then("", fails(above))
        }
        (None, Some(above), _) => Phrase::new("no rate passed; fails at ").then("", fails(above)),
        (None, None, _) => Phrase::new("no rate was found that passes or fails"),
    }
}

fn objective(document: &SearchDocument) -> String {
    let condition = |demanded: &record::search::Demanded| {
        let implied = if demanded.implied { " (implied)" } else { "" };
        format!("{}{implied}", demanded.condition)
    };
    document.objective.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

fn header(document: &SearchDocument) -> Vec<Block> {
    let subject = &document.subject;
    let mut protocol = phrase!("{protocol}", protocol = subject.protocol.as_str());
    if let Some(address) = &subject.address {
        protocol = protocol.then("", phrase!(", at {address}", address = address.as_str()));
    }
    let facts = host_facts(&document.time.started, &document.host, &document.parallax_version)
        .then(", took ", phrase!("{took}", took = Nanos(document.time.elapsed_ns.unwrap_or(0))));
    vec![
        Block::labelled(Role::Title, "subject", phrase!("{*url}", url = subject.url.as_str())),
        Block::labelled(Role::Line, "protocol", protocol),
        Block::line(Role::Note, facts),
    ]
}

/// Every probe, in the order in which they ran.
fn probes(document: &SearchDocument) -> Block {
    let row = |(number, probe): (u64, &ProbeResult)| {
        let cells = vec![
            Value::Id(number).into(),
            probe.rate_per_s.map_or_else(|| Cell::from("closed"), |per_s| Value::PerSecond(per_s).into()),
            Value::PerSecond(probe.sent_per_s).into(),
            Value::PerSecond(probe.ok_per_s).into(),
            quantile_cell(probe.p50),
            quantile_cell(probe.p99),
            Value::Share(probe.error_share).into(),
            Cell::maybe(probe.client_cpu_share.map(Value::Share)),
            outcome_words(probe.says).into(),
        ];
        let note = (!probe.why.is_empty()).then(|| Phrase::text(probe.why.as_str()));
        Row { note, ..Row::new(cells) }
    };
    let columns = [
        ("probe", "probe", "id", "in the order in which they were made"),
        ("asked", "rate", "per_second", "the requested rate"),
        ("sent", "sent", "per_second", "requests sent"),
        ("done", "done", "per_second", "requests that ended ok"),
        ("p50", "p50", "ns", "median response time"),
        ("p99", "p99", "ns", "99th percentile of the response time"),
        ("errors", "errors", "share", "of all requests"),
        ("client", "client", "share", "of one CPU, by the busiest worker"),
        ("says", "result", "text", "the result of the probe"),
    ];
    Block::Table(Table::new("probes", &columns, (1..).zip(&document.probes).map(row).collect()))
}

/// p99 against the rate, the lowest first.
fn curve(document: &SearchDocument) -> Option<Section> {
    let mut points: Vec<(f64, u64, &ProbeResult)> = document
        .probes
        .iter()
        .filter_map(|probe| Some((probe.rate_per_s?, nanos(probe.p99)?, probe)))
        .collect();
    if points.len() < 2 {
        return None;
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let least = points.iter().map(|point| point.1).min().unwrap_or(1).max(1) as f64;
    let most = points.iter().map(|point| point.1).max().unwrap_or(1) as f64;
    // Logarithmic, because the times on both sides of the capacity are decades apart. The shortest bar is still
    // visible.
    let decades = (most / least).log10().max(1.0);
    let rows = points.into_iter().map(|(per_s, ns, probe)| {
        let height = 0.1 + 0.9 * (ns as f64 / least).log10().max(0.0) / decades;
        Row::new(vec![
            Value::PerSecond(per_s).into(),
            Value::Share(height).into(),
            quantile_cell(probe.p99),
            outcome_words(probe.says).into(),
        ])
    });
    let columns = [
        ("rate", "", "per_second", "the requested rate"),
        ("height", "", "share", "the logarithm of p99, as a part of the longest bar"),
        ("p99", "", "ns", "99th percentile of the response time"),
        ("says", "", "text", "the result of the probe"),
    ];
    let title = Block::line(Role::Note, Phrase::new("p99 by rate, logarithmic"));
    let table = Block::Table(Table::new("load_curve", &columns, rows.collect()));
    Some(Section::new("load_curve", vec![title, table]))
}

/// The result of a probe in words.
pub(crate) fn outcome_words(outcome_words: ProbeOutcome) -> &'static str {
    match outcome_words {
        ProbeOutcome::Estimate => "estimate",
        ProbeOutcome::Holds => "passes",
        ProbeOutcome::Fails => "fails",
        ProbeOutcome::Unsettled => "not settled",
        ProbeOutcome::Client => "client is the limit",
        ProbeOutcome::Interrupted => "cut short",
    }
}

fn nanos(value: QuantileValue) -> Option<u64> {
    match value {
        QuantileValue::Known { ns, .. } | QuantileValue::Above { ns } => Some(ns),
        QuantileValue::TooFew { .. } => None,
    }
}
