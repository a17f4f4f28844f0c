//! The view of an import: in the order of a run's report, with a list of what the tool leaves out.

use std::path::Path;

use record::import::{Import, ImportedResults};
use units::Nanos;

use crate::run_view::{counted, record_line};
use crate::verdict::{thresholds_view, verdict_view};
use crate::view::{Block, Cell, Headline, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};

/// The percentiles that have a column, as for a run.
const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The view of an import.
pub fn import_view(import: &Import, folder: &Path) -> View {
    let Import { imported, results, .. } = import;
    let mut view = View::new(Subject::Import);
    view.verdict = import.verdict.as_ref().map(verdict_view);
    view.headline = Some(headline(results));
    view.thresholds = thresholds_view(&import.thresholds);
    let mut head = match &results.url {
        Some(url) => phrase!("{*url}  by {tool}", url = url.as_str(), tool = imported.tool.as_str()),
        None => phrase!("by {tool}", tool = imported.tool.as_str()),
    };
    if let Some(version) = &imported.tool_version {
        head = head.then(" ", phrase!("{version}", version = version.as_str()));
    }
    let from = phrase!("{file} ({form})", file = imported.file.as_str(), form = imported.form.as_str());
    let head = Block::line(Role::Line, head.then(", imported from ", from));
    view.sections.push(Section::new("subject", vec![head, figures(results)]));
    view.sections.push(Section::new("times", times(results)));
    let mut unknown = vec![Block::line(Role::Title, Phrase::new("what these results leave out"))];
    let items = imported.cannot_know.iter().map(|one| Phrase::text(one.as_str()));
    unknown.extend(items.map(|item| Block::labelled(Role::Text, "-", item)));
    view.sections.push(Section::new("unknown", unknown));
    let mut details = ends(results);
    details.push(record_line(Some(folder)));
    view.sections.push(Section::new("details", details));
    view
}

fn headline(results: &ImportedResults) -> Headline {
    let response = results.times.iter().find(|time| time.name == "response");
    let at = |q: f64| {
        let found = response.and_then(|time| time.quantiles.iter().find(|quantile| quantile.q == q));
        Cell::ns(found.map(|quantile| quantile.ns))
    };
    let share = results.failed.zip(results.requests.filter(|&all| all > 0));
    Headline {
        rate: Cell::maybe(results.throughput_per_s.map(Value::PerSecond)),
        journey_rate: None,
        asked: None,
        response_p50: at(0.5),
        response_p90: at(0.9),
        response_p99: at(0.99),
        response_max: Cell::ns(response.and_then(|time| time.max_ns)),
        errors: Cell::maybe(results.failed.map(Value::Count)),
        error_share: Cell::maybe(share.map(|(failed, all)| Value::Share(failed as f64 / all as f64))),
        requests: results.requests.map(|all| Value::Count(all).into()),
    }
}

/// The figures that the tool reported; an absent figure is not shown as 0.
fn figures(results: &ImportedResults) -> Block {
    let mut facts = Vec::new();
    facts.extend(results.throughput_per_s.map(|per_s| phrase!("{*rate} ok", rate = Value::PerSecond(per_s))));
    // If all were successful, it is the same rate again.
    let differs = results.throughput_per_s.is_none() || results.failed != Some(0);
    let of_all = results.request_rate_per_s.filter(|_| differs).map(Value::PerSecond);
    facts.extend(of_all.map(|per_s| phrase!("{request_rate} of all requests", request_rate = per_s)));
    let items = |count: Option<u64>, noun: &str| {
        count.map(|count| phrase!("{items}", items = Value::items(count, noun)))
    };
    facts.extend(items(results.requests, "request"));
    facts.extend(results.ok.map(|ok| phrase!("{ok} ok", ok = Value::Count(ok))));
    facts.extend(results.failed.map(|failed| phrase!("{failed} failed", failed = Value::Count(failed))));
    facts.extend(results.elapsed_ns.map(|ns| phrase!("in {elapsed}", elapsed = Nanos(ns))));
    facts.extend(items(results.connections, "connection"));
    facts
        .extend(results.bytes_received.map(|bytes| phrase!("{received} in", received = Value::Bytes(bytes))));
    Block::line(Role::Text, Phrase::join(facts, ", "))
}

fn times(results: &ImportedResults) -> Vec<Block> {
    let rows = results.times.iter().map(|time| {
        let name = if time.name == "other" { &time.original } else { &time.name };
        let column = |q| time.quantiles.iter().find(|quantile| quantile.q == q).map(|quantile| quantile.ns);
        let cells = COLUMNS.map(column).into_iter().chain([time.max_ns, time.mean_ns]).map(Cell::ns);
        Row::new([Cell::from(name.as_str())].into_iter().chain(cells).collect())
    });
    let columns = [
        ("name", "", "text", "which time, explained below"),
        ("p50", "p50", "ns", "median"),
        ("p90", "p90", "ns", "90th percentile"),
        ("p99", "p99", "ns", "99th percentile"),
        ("p99.9", "p99.9", "ns", "99.9th percentile"),
        ("max", "max", "ns", "longest"),
        ("mean", "mean", "ns", "mean"),
    ];
    let mut blocks = vec![Block::Table(Table::new("imported_times", &columns, rows.collect()))];
    blocks.extend(results.times.iter().map(|time| {
        let text = phrase!(
            "{name} ({of_tool}): {meaning}",
            name = time.name.as_str(),
            of_tool = time.original.as_str(),
            meaning = time.meaning.as_str()
        );
        Block::line(Role::Note, text)
    }));
    blocks
}

/// Maximum number of errors shown.
const ERRORS: usize = 10;

fn ends(results: &ImportedResults) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !results.codes.is_empty() {
        let codes = results.codes.iter().map(|code| counted(code.code.to_string(), code.count));
        blocks.push(Block::labelled(Role::Text, "codes", Phrase::join(codes, ", ")));
    }
    for error in results.errors.iter().take(ERRORS) {
        let times = match error.count {
            Some(count) => phrase!("{count}", count = Value::Count(count)),
            None => Phrase::new("some"),
        };
        let text = times.then(" × ", phrase!("{error}", error = error.original.as_str()));
        blocks.push(Block::labelled(Role::Text, "error", text));
    }
    if results.errors.len() > ERRORS {
        let more = Value::Count((results.errors.len() - ERRORS) as u64);
        blocks.push(Block::labelled(Role::Line, "error", phrase!("{more} more in the record", more = more)));
    }
    blocks
}
