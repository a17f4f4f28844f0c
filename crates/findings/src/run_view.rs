//! The view of a run: its verdict, what was measured, where the time went, and how requests ended.

mod heading;
mod times;

use std::cmp::Ordering;
use std::path::Path;

use record::document::{
    Document, EffectiveOption, Model, OptionSource, QuantileValue, Results, TargetResult,
};
use record::{JourneySecond, Second};
use units::Nanos;

use crate::account_view;
use crate::advice::advice;
use crate::group_view::group_lines;
use crate::progress::is_whole;
use crate::verdict::{thresholds_view, verdict_so_far};
use crate::view::{
    Block, Cell, Headline, Phrase, Point, Role, Row, Section, Series, Subject, Table, Value, View, phrase,
};
use crate::words::{Peer, meaning, percentile, value_of};

pub(crate) use heading::host_facts;

/// A run as read from its record: the document, the intervals, and the directory.
#[derive(Debug, Clone, Copy)]
pub struct RunRecord<'a> {
    pub document: &'a Document,
    pub seconds: &'a [Second],
    /// The results directory; `None` if there is no record.
    pub folder: Option<&'a Path>,
}

/// The view of a run.
pub fn run_view(run: &RunRecord<'_>) -> View {
    let document = run.document;
    let mut view = View::new(Subject::Drive);
    view.verdict = Some(verdict_so_far(document));
    view.thresholds = thresholds_view(&document.thresholds);
    let mut subject = heading::subject(document);
    let host = heading::host(document);
    if let Some(results) = &document.results {
        view.headline = Some(headline(results, document));
        view.sections.push(Section::new("phases", times::phases(results)));
        view.sections.extend(advice_section(results, document, run.seconds));
        view.sections.push(Section::new("outcomes", outcomes(results, Peer::of(document))));
        view.sections.push(Section::new("server", server(results, document)));
        view.sections.extend(document.server_account.as_ref().map(account_view::section));
        view.sections.extend(targets(document, results));
        view.sections.extend(journeys(document, results));
        view.sections.extend(throughput(run.seconds, document));
        view.sections.push(Section::detail("response", vec![times::response(results)]));
        let mut details = vec![requests(results)];
        details.extend(cost(results, document));
        details.extend(options(document));
        details.extend(kept(results));
        view.sections.push(Section::detail("details", details));
        view.sections.push(Section::detail("host", host));
        subject.push(record_line(run.folder));
        view.sections.push(Section::new("subject", subject));
    } else {
        subject.extend(host);
        subject.extend(options(document));
        subject.push(record_line(run.folder));
        view.sections.push(Section::new("subject", subject));
    }
    view
}

fn headline(results: &Results, document: &Document) -> Headline {
    let totals = &results.totals;
    let is_mixed = has_single_requests_too(document);
    let quantile = |q| percentile(&results.response, q);
    // A single request has a response time, but no rate.
    let has_rate = totals.scheduled > 1;
    let because = || Cell::Absent { because: "a single request has no rate".to_owned() };
    Headline {
        rate: if has_rate { Value::PerSecond(totals.throughput_per_s).into() } else { because() },
        journey_rate: totals.journeys_per_s.filter(|_| !is_mixed).map(|per_s| Value::PerSecond(per_s).into()),
        asked: document
            .load
            .rate_per_s
            .filter(|_| has_rate && !is_mixed)
            .map(|per_s| Value::PerSecond(per_s).into()),
        response_p50: quantile(0.5),
        response_p90: quantile(0.9),
        response_p99: quantile(0.99),
        response_max: times::response_max(results),
        errors: Value::Count(totals.failed).into(),
        error_share: Value::Share(share(totals.failed, totals.scheduled)).into(),
        requests: Some(Value::Count(totals.scheduled).into()),
    }
}

/// Whether a scenario has single requests besides its journeys. The requested rate is that of both together, which is
/// neither the rate of journeys nor that of requests.
fn has_single_requests_too(document: &Document) -> bool {
    let steps =
        document.subject.journeys.iter().map(|journey| (journey.last + 1).saturating_sub(journey.first));
    let steps: u64 = steps.sum();
    (1..document.subject.request_kinds).contains(&steps)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The number of scheduled requests and how they ended, in one line.
fn requests(results: &Results) -> Block {
    let totals = &results.totals;
    let mut text = phrase!(
        "{scheduled} scheduled = {ok} ok + {!failed} failed",
        scheduled = Value::Count(totals.scheduled),
        ok = Value::Count(totals.ok),
        failed = Value::Count(totals.failed),
    );
    if totals.failed > 0 {
        let share = Value::Share(share(totals.failed, totals.scheduled));
        text = text.then("", phrase!(" ({error_share})", error_share = share));
    }
    let received = phrase!("{received} received", received = Value::Bytes(totals.bytes_received));
    Block::labelled(Role::Text, "requests", text.then("; ", received))
}

/// The advice that follows from the figures; no section if there is none.
pub(crate) fn advice_section(results: &Results, document: &Document, seconds: &[Second]) -> Option<Section> {
    let all = advice(results, document, seconds);
    (!all.is_empty()).then(|| Section::new("advice", all.into_iter().map(Block::Advice).collect()))
}

/// The outcomes, unless all requests ended ok, and the application's status codes.
fn outcomes(results: &Results, peer: Peer) -> Vec<Block> {
    let mut blocks = Vec::new();
    if results.totals.failed > 0 {
        let text = |text: &Option<String>| text.clone().map_or_else(Cell::absent, Cell::from);
        let rows = results.outcomes.iter().map(|row| {
            Row::new(vec![
                Value::Count(row.count).into(),
                Value::Share(share(row.count, results.totals.scheduled)).into(),
                row.outcome.as_str().into(),
                text(&row.blame),
                text(&row.phase),
                meaning(&row.outcome, peer).into(),
            ])
        });
        let columns = [
            ("requests", "requests", "count", "requests with this outcome"),
            ("share", "share", "share", "of all scheduled requests"),
            ("outcome", "outcome", "text", "the outcome"),
            ("blame", "blame", "text", "who caused it"),
            ("phase", "in phase", "text", "the phase in which it happened"),
            ("meaning", "", "text", "the outcome in other words"),
        ];
        blocks.push(Block::Table(Table::new("outcomes", &columns, rows.collect())));
        for row in &results.reasons {
            let label = format!("why {}:", row.outcome);
            blocks.push(Block::labelled(Role::Text, &label, counted(row.reason.clone(), row.count)));
            let samples = results.check_samples.iter().filter(|sample| sample.check == row.reason);
            let got: Vec<Phrase> =
                samples.map(|sample| phrase!("{got}", got = sample.got.as_str())).collect();
            if !got.is_empty() {
                blocks.push(Block::labelled(Role::Text, "  got:", Phrase::join(got, " | ")));
            }
        }
    }
    let statuses = results.codes.iter().map(|row| counted(row.code.to_string(), row.count));
    let texts = results.text_codes.iter().map(|row| counted(row.code.clone(), row.count));
    let others = (results.other_codes > 0).then(|| counted("others".to_owned(), results.other_codes));
    let codes: Vec<Phrase> = statuses.chain(texts).chain(others).collect();
    if !codes.is_empty() {
        blocks.push(Block::labelled(Role::Text, "codes", Phrase::join(codes, ", ")));
    }
    blocks
}

/// `200 × 30 000`.
pub(crate) fn counted(what: String, count: u64) -> Phrase {
    phrase!("{what} × {count}", what = what, count = Value::Count(count))
}

/// Maximum number of rows of a table of targets.
const TARGETS_SHOWN: usize = 100;

/// The indices of the targets that are shown, in order. The worst are those with the largest share of failures, then
/// those with the longest response at p99, or with the longest response if there are too few for p99.
fn shown_targets(targets: &[TargetResult]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..targets.len()).collect();
    if places.len() > TARGETS_SHOWN {
        let key = |place: &usize| {
            let target = &targets[*place];
            let slow = match value_of(&target.response, 0.99) {
                Some(QuantileValue::Known { ns, .. } | QuantileValue::Above { ns }) => ns,
                Some(QuantileValue::TooFew { .. }) | None => target.response.max_ns.unwrap_or(0),
            };
            (share(target.failed, target.requests), slow)
        };
        places.sort_by(|a, b| key(b).partial_cmp(&key(a)).unwrap_or(Ordering::Equal));
        places.truncate(TARGETS_SHOWN);
        places.sort_unstable();
    }
    places
}

/// Whether statements were sent, not requests.
fn is_of_database(document: &Document) -> bool {
    ["mysql", "postgresql", "redis"].iter().any(|name| document.subject.protocol.starts_with(name))
}

/// A row for each target if there are several; only the worst if there are many.
fn targets(document: &Document, results: &Results) -> Option<Section> {
    let names = &document.subject.targets;
    let shown = shown_targets(&results.targets);
    let rows = shown.iter().map(|&index| (index, &results.targets[index])).map(|(index, target)| {
        let mut cells: Vec<Cell> =
            [target.requests, target.ok, target.failed].map(|n| Value::Count(n).into()).into();
        for of in [&target.response, &target.service] {
            cells.extend([0.5, 0.99].map(|q| percentile(of, q)));
        }
        cells.push(names.get(index).map(String::as_str).unwrap_or_default().into());
        Row::new(cells)
    });
    let columns = [
        ("requests", "requests", "count", "requests to this target"),
        ("ok", "ok", "count", "of them, those that ended ok"),
        ("failed", "failed", "count", "of them, those that did not"),
        ("response_p50", "resp. p50", "ns", "median response time"),
        ("response_p99", "p99", "ns", "99th percentile of the response time"),
        ("service_p50", "serv. p50", "ns", "median service time"),
        ("service_p99", "p99", "ns", "99th percentile of the service time"),
        match is_of_database(document) {
            true => ("target", "statement", "text", "the statement"),
            false => ("target", "target", "text", "the target"),
        },
    ];
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    if rows.len() < results.targets.len() {
        let text = phrase!(
            "the worst {shown} of {all} requests, by share of failures, then by response p99",
            shown = Value::Count(rows.len() as u64),
            all = Value::Count(results.targets.len() as u64),
        );
        blocks.push(Block::line(Role::Note, text));
    }
    blocks.push(Block::Table(Table::new("targets", &columns, rows)));
    Some(Section::new("targets", blocks))
}

/// A row for each journey: how many were completed, and how long whole journeys took, if that was measured.
fn journeys(document: &Document, results: &Results) -> Option<Section> {
    let tells_failed = results.journeys.iter().all(|journey| journey.failed.is_some());
    let is_whole = results.journeys.iter().any(|journey| journey.response.is_some());
    let is_retried = results.journeys.iter().any(|journey| journey.retries > 0);
    let rows = results.journeys.iter().map(|journey| {
        let failed = journey.failed.unwrap_or(0);
        let counts = [journey.started, journey.completed, failed, journey.cut.saturating_sub(failed)];
        let counts = counts.into_iter().enumerate().filter(|(place, _)| tells_failed || *place != 2);
        let mut cells: Vec<Cell> = counts.map(|(_, n)| Value::Count(n).into()).collect();
        if is_retried {
            cells.push(Value::Count(journey.retries).into());
        }
        if is_whole {
            let at = |q| journey.response.as_ref().map_or_else(Cell::absent, |of| percentile(of, q));
            cells.extend([0.5, 0.99].map(at));
        }
        cells.push(journey.name.as_str().into());
        Row::new(cells)
    });
    let mut columns = vec![
        ("started", "started", "count", "journeys that were started"),
        ("completed", "completed", "count", "journeys whose last step ended ok"),
    ];
    if tells_failed {
        columns.push(("failed", "failed", "count", "that a request ended which failed"));
        columns.push(("cut", "cut", "count", "that the end of the run ended"));
    } else {
        columns.push(("cut", "cut", "count", "that ended earlier"));
    }
    if is_retried {
        columns.push(("retries", "retries", "count", "how often a journey was retried from its beginning"));
    }
    if is_whole {
        columns.push((
            "response_p50",
            "resp. p50",
            "ns",
            "median time from the first intended start to the end",
        ));
        columns.push(("response_p99", "p99", "ns", "99th percentile of that time"));
    }
    columns.push(match is_of_database(document) {
        true => ("journey", "transaction", "text", "the transaction"),
        false => ("journey", "journey", "text", "the journey"),
    });
    let rows: Vec<Row> = rows.collect();
    (!rows.is_empty())
        .then(|| Section::new("journeys", vec![Block::Table(Table::new("journeys", &columns, rows))]))
}

/// Throughput over the run; `None` unless there are at least two whole intervals.
fn throughput(seconds: &[Second], document: &Document) -> Option<Section> {
    if seconds.len() < 2 {
        return None;
    }
    // In the incomplete one at the end, the last responses were read.
    let whole = match seconds {
        [.., last] if !is_whole(last) => &seconds[..seconds.len() - 1],
        _ => seconds,
    };
    // If there are only journeys, the rate is that of journeys, so it is compared with journeys.
    let is_mixed = has_single_requests_too(document);
    let has_journeys = !is_mixed && seconds.iter().any(|second| !second.journeys.is_empty());
    let mut title = Phrase::new(if has_journeys { "journeys completed per second" } else { "ok per second" });
    if let Some(per_s) = document.load.rate_per_s.filter(|_| !is_mixed) {
        title = title.then(", ", phrase!("{asked} requested", asked = Value::PerSecond(per_s)));
    }
    let point = |second: &Second| {
        let sum = |count: fn(&JourneySecond) -> u64| second.journeys.iter().map(count).sum();
        let (ok, failed, due) = match has_journeys {
            true => (sum(|of| of.ok), sum(|of| of.failed), sum(|of| of.begun)),
            false => (second.ok, second.failed, second.scheduled),
        };
        Point { start_ns: second.start_ns, length_ns: second.length_ns, ok, failed, due }
    };
    let points = if whole.len() < 2 { Vec::new() } else { whole.iter().map(point).collect() };
    let series = Series { id: "throughput".to_owned(), title, points };
    Some(Section::new("throughput", vec![Block::Series(series)]))
}

/// The CPU cost of the load generator, and the quality of its timestamps.
fn cost(results: &Results, document: &Document) -> Vec<Block> {
    let cpu = &results.cpu;
    let mut facts = vec![match cpu.per_request_ns {
        Some(ns) => phrase!("{cpu} of CPU per request", cpu = Nanos(ns)),
        None => Phrase::new("CPU unknown"),
    }];
    facts.extend(cpu.busiest_worker_share.map(|share| {
        phrase!("busiest worker {busiest_worker} of a core", busiest_worker = Value::Share(share))
    }));
    facts.extend(of_ceiling(results, document));
    let totals = &results.totals;
    facts.push(phrase!("{opened} opened", opened = Value::items(totals.connections_opened, "connection")));
    if totals.idle_closes > 0 {
        let closes = Value::Count(totals.idle_closes);
        facts.push(phrase!("{idle_closes} ended while idle", idle_closes = closes));
    }
    if totals.unstamped > 0 {
        let unstamped = Value::items(totals.unstamped, "response");
        facts.push(phrase!("{unstamped} without kernel timestamps", unstamped = unstamped));
    }
    if totals.out_of_range > 0 {
        let over = Value::items(totals.out_of_range, "duration");
        facts.push(phrase!("{out_of_range} longer than an hour", out_of_range = over));
    }
    let mut blocks = vec![Block::labelled(Role::Text, "client", Phrase::join(facts, ", "))];
    if let Some((resources, memory)) = cpu.server.as_ref().zip(cpu.server_memory.as_ref()) {
        let lines = group_lines(resources, memory);
        blocks.extend(lines.map(|line| Block::labelled(Role::Text, "server", line)));
    }
    blocks
}

/// The CPU time of the server's processes, which was asked for.
fn server(results: &Results, document: &Document) -> Vec<Block> {
    let cpu = &results.cpu;
    let Some((used, each)) = cpu.server_ns.zip(cpu.server_per_request_ns) else { return Vec::new() };
    let text = phrase!("{each} of CPU per request, {all} in total", each = Nanos(each), all = Nanos(used));
    let mut blocks = vec![Block::labelled(Role::Line, "server", text)];
    let incomplete = document.host.missing.iter().find(|fact| fact.what == "server_cpu_of_children");
    blocks.extend(incomplete.map(|fact| {
        let text = phrase!("at least: {why}", why = fact.why.as_str());
        Block::labelled(Role::Warning, "server", text)
    }));
    blocks
}

/// How close the run came to the load generator's own maximum; none without a calibration.
fn of_ceiling(results: &Results, document: &Document) -> Option<Phrase> {
    let ceiling = document.host.limits.ceiling.as_ref()?;
    let most = match document.load.model {
        Model::Open => ceiling.rate_per_s?,
        Model::Closed => ceiling.throughput_per_s,
    };
    let share = results.totals.throughput_per_s / most.max(1) as f64;
    Some(phrase!(
        "at {of_ceiling} of the load generator's own maximum, {ceiling}",
        of_ceiling = Value::Share(share),
        ceiling = Value::PerSecond(most as f64)
    ))
}

/// Options that change the meaning of the figures, so their defaults are shown too.
const DEFINING: [&str; 11] = [
    "connections",
    "callers",
    "users",
    "max-in-flight",
    "workers",
    "pipeline",
    "timeout",
    "connect-timeout",
    "checkout-timeout",
    "drain",
    "stamps",
];

/// Positional arguments, which have no option name.
const POSITIONAL: [&str; 1] = ["url"];

fn options(document: &Document) -> Vec<Block> {
    let of = |sources: &[OptionSource]| -> Vec<String> {
        let chosen = document.options.iter().filter(|(name, option)| {
            sources.contains(&option.source)
                && (matches!(option.source, OptionSource::Given | OptionSource::Set)
                    || (DEFINING.contains(&name.as_str())
                        && !option.value.is_empty()
                        && !option.value.starts_with("none: ")))
        });
        chosen.map(|(name, option)| written(name, option)).collect()
    };
    let lists = [
        ("given", of(&[OptionSource::Given])),
        ("set", of(&[OptionSource::Set])),
        ("scenario", of(&[OptionSource::File])),
        ("default", of(&[OptionSource::Default, OptionSource::Derived])),
    ];
    let shown = lists.into_iter().filter(|(_, list)| !list.is_empty());
    shown.map(|(label, list)| Block::labelled(Role::Text, label, Phrase::text(list.join(" ")))).collect()
}

fn written(name: &str, option: &EffectiveOption) -> String {
    let quoted = match option.value.as_str() {
        value if value.contains(char::is_whitespace) => format!("'{value}'"),
        value => value.to_owned(),
    };
    match quoted.as_str() {
        _ if POSITIONAL.contains(&name) => quoted,
        // A value of a scenario file, in the form in which `--set` would change it.
        value if name.contains('.') => format!("{name}={value}"),
        "" | "true" => format!("--{name}"),
        value => format!("--{name}={value}"),
    }
}

/// The contents of `requests.parquet`.
fn kept(results: &Results) -> Option<Block> {
    let kept = results.kept.as_ref()?;
    let rows = Value::items(kept.rows, "request");
    let mut text = phrase!("{rows} in requests.parquet ({kept})", rows = rows, kept = kept.requests.as_str());
    if kept.lost > 0 {
        let lost = phrase!("{lost} more arrived too fast to be written", lost = Value::Count(kept.lost));
        text = text.then("; ", lost);
    }
    Some(Block::labelled(Role::Line, "kept", text))
}

/// The line with the path of the record.
pub(crate) fn record_line(folder: Option<&Path>) -> Block {
    let text = match folder {
        Some(folder) => phrase!("{*folder}", folder = folder.display().to_string()),
        None => Phrase::new("not kept"),
    };
    Block::labelled(Role::Line, "record", text)
}
