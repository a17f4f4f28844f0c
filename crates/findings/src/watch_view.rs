//! The view of a watched server: how fast it responded, where the time went, and what got in the way.

use std::collections::BTreeMap;

use record::document::Distribution;
use record::observation::Observation;
use record::observation::watch::{
    self, Inexact, Losses, MissedRequests, PREEMPTED, RESPONSE, UNDISTURBED, WatchResults,
};
use record::{Durations, Part, Protocol};
use units::Nanos;

use crate::arithmetic::{largest_shares, mean};
use crate::histogram::{histogram, linear};
use crate::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, View, phrase};
use crate::watch_query::WatchQuery;
use crate::words::percentile;

mod slow;
mod statements;
mod usage;
mod windows;

/// A record of `watch`: its document, and the histograms of the whole watch by name.
#[derive(Clone, Copy)]
pub struct WatchRecord<'a> {
    pub document: &'a Observation,
    pub results: &'a WatchResults,
    pub logs: &'a BTreeMap<String, Durations>,
    /// Which rows are shown.
    pub query: &'a WatchQuery,
}

/// The view of a record of `watch`, without its cost: see [`watch_cost`].
pub fn watch_view(record: &WatchRecord<'_>) -> View {
    let WatchRecord { document, results, query, .. } = *record;
    let elapsed = Nanos(document.time.elapsed_ns.unwrap_or(0));
    // Rates are of the time in which the requests were seen.
    let elapsed = results.windows.as_ref().map_or(elapsed, |windows| Nanos(windows.seen_ns()));
    let mut view = View::new(Subject::Watch);
    view.sections.push(Section::new("subject", head(document, results)));
    if results.requests == 0 {
        return view;
    }
    view.sections.push(Section::new("times", times(results)));
    view.sections.push(Section::new("parts", parts(results)));
    view.sections.extend(slow::slow(results, query));
    view.sections.extend(
        preemptors(results, query.top.unwrap_or(PREEMPTORS)).map(|blocks| Section::new("preemptors", blocks)),
    );
    view.sections.push(Section::new("digests", statements::statements(results, elapsed, query)));
    view.sections.extend(usage::usages(results, elapsed, query.top()));
    view.sections.extend(distributions(record));
    view
}

/// What watching cost the server in the time `elapsed`, according to the kernel.
pub fn watch_cost(results: &WatchResults, elapsed: Nanos) -> Section {
    let mut blocks = vec![Block::line(Role::Title, Phrase::new("cost of watching"))];
    let total: u64 = results.self_cost.iter().map(|program| program.ns).sum();
    if let Some(each) = total.checked_div(results.requests) {
        let text = phrase!("{each} of kernel time per request, measured by the kernel", each = Nanos(each));
        blocks.push(Block::line(Role::Text, text));
    }
    let rows = results.self_cost.iter().map(|program| {
        let each = Value::Ns(program.ns / program.runs.max(1));
        Row::new(vec![program.name.as_str().into(), Value::Count(program.runs).into(), each.into()])
    });
    let columns = [
        ("program", "", "text", "the eBPF program"),
        ("runs", "", "count", "how often it ran"),
        ("each", "", "ns", "mean time of a run"),
    ];
    blocks.push(Block::Table(Table::new("watch_cost", &columns, rows.collect())));
    let own = match results.self_cpu_ns {
        Some(cpu) => phrase!(
            "parallax itself: {cpu} of CPU time, {share} of one CPU",
            cpu = Nanos(cpu),
            share = Value::Share(cpu as f64 / elapsed.0.max(1) as f64)
        ),
        None => Phrase::new("parallax itself: CPU time unknown"),
    };
    blocks.push(Block::line(Role::Text, own));
    Section::new("watch_cost", blocks)
}

fn head(document: &Observation, results: &WatchResults) -> Vec<Block> {
    let subject = &results.subject;
    let name = subject.comm.as_deref().map_or(String::new(), |comm| format!("{comm} "));
    let elapsed = Nanos(document.time.elapsed_ns.unwrap_or(0));
    let seen = results.windows.as_ref().map_or(elapsed, |windows| Nanos(windows.seen_ns()));
    let per_s = results.requests as f64 * 1e9 / seen.0.max(1) as f64;
    let mut text = phrase!(
        "{*server}: {*requests} in {elapsed}, {rate} on {connections}",
        server = format!("{name}({})", subject.named),
        requests = Value::items(results.requests, "request"),
        elapsed = seen,
        rate = Value::PerSecond(per_s),
        connections = Value::items(results.connections, "connection")
    );
    let protocols: Vec<&str> = subject.protocols.iter().map(|count| count.protocol.name()).collect();
    if !protocols.is_empty() {
        text = text.then(", ", phrase!("{protocols}", protocols = protocols.join(" and ")));
    }
    let mut blocks = vec![Block::line(Role::Line, text)];
    blocks.extend(results.windows.iter().flat_map(|seen| windows::windows(seen, elapsed)));
    if results.left_out > 0 {
        let text = phrase!(
            "{requests} that --statement or --peer leaves out, not included in other figures",
            requests = Value::items(results.left_out, "request")
        );
        blocks.push(Block::labelled(Role::Text, "left out:", text));
    }
    let labelled = |role, label: &'static str| move |text| Block::labelled(role, label, text);
    blocks.extend(results.missed.map(missed).map(labelled(Role::Warning, "missed:")));
    blocks.extend(losses(&results.losses).into_iter().map(labelled(Role::Warning, "lost:")));
    blocks.extend(inexact(&results.inexact).into_iter().map(labelled(Role::Text, "inexact:")));
    blocks.extend(encrypted(results).map(labelled(Role::Text, "encrypted:")));
    let missing =
        document.missing.iter().map(|missing| Phrase::text(format!("{}: {}", missing.what, missing.why)));
    blocks.extend(missing.map(labelled(Role::Text, "missing:")));
    if results.requests == 0 {
        let ports: Vec<String> = subject.ports.iter().map(u16::to_string).collect();
        let text = match ports.as_slice() {
            [] => Phrase::new(
                "the server listens on no TCP port; requests on Unix domain sockets are seen only when they are read",
            ),
            ports => phrase!("watched port {ports}", ports = ports.join(", ")),
        };
        blocks.push(Block::labelled(Role::Text, "no requests:", text));
    }
    blocks
}

/// Requests of TLS connections without their text.
fn encrypted(results: &WatchResults) -> Option<Phrase> {
    let tls = results.subject.protocols.iter().find(|count| count.protocol == Protocol::Tls)?;
    let requests = Value::items(tls.requests, "request");
    let is_probed = results.tier.attached.iter().any(|probe| probe.ends_with(":SSL_read"));
    Some(if is_probed {
        phrase!("{requests} timed as turns: their plain text was not seen", requests = requests)
    } else {
        phrase!("{requests} timed as turns; --tls shows their statements and routes", requests = requests)
    })
}

/// The requests of the events that were lost.
fn missed(missed: MissedRequests) -> Phrase {
    let counted = phrase!("{*requests}", requests = Value::items(missed.requests, "request"));
    let counted = match missed.margin {
        0 => counted,
        margin => counted.then(" ± ", phrase!("{margin}", margin = Value::Count(margin))),
    };
    counted.then(", ", Phrase::new("not included in other figures"))
}

/// Each kind of loss that occurred, in words.
fn losses(losses: &Losses) -> Vec<Phrase> {
    happened(&[
        (losses.ring_full, "events did not fit in the ring buffer: use a larger --ring"),
        (losses.map_full, "events found no memory in the kernel"),
        (losses.recursion, "program runs that the kernel skipped"),
        (
            losses.mid_connection,
            "requests on connections that are older than the watch, before their first certain boundary",
        ),
        (losses.unparsed, "places whose bytes could not be parsed; they are timed as turns"),
    ])
}

/// Each kind of inexactness that occurred, in words.
fn inexact(inexact: &Inexact) -> Vec<Phrase> {
    happened(&[
        (
            inexact.forgotten_slices,
            "CPU waits with more competing threads than fit in the table; only the most recent are listed",
        ),
        (
            inexact.joined_arrivals,
            "arrivals were merged with later ones: the socket queue of their requests is too short",
        ),
        (
            inexact.missed_switches,
            "context-switch events were missed: total time is taken from scheduler accounting, and the competing threads are unknown",
        ),
    ])
}

fn happened(counts: &[(u64, &str)]) -> Vec<Phrase> {
    let happened = counts.iter().filter(|(n, _)| *n > 0);
    let text =
        |&(n, what): &(u64, &str)| phrase!("{count}", count = Value::Count(n)).then(" – ", Phrase::new(what));
    happened.map(text).collect()
}

/// The percentiles that have a column.
const COLUMNS: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

fn times(results: &WatchResults) -> Vec<Block> {
    let row = |name: String, distribution: &Option<Distribution>| {
        let distribution = distribution.as_ref()?;
        let mut cells = vec![Cell::from(name), Value::Count(distribution.count).into()];
        cells.push(Cell::ns(distribution.mean_ns));
        cells.extend(COLUMNS.map(|q| percentile(distribution, q)));
        cells.push(Cell::ns(distribution.max_ns));
        Some(Row::new(cells))
    };
    let whole = [
        row(windows::name_of_all(results).to_owned(), &results.response),
        row("not preempted".to_owned(), &results.undisturbed_response),
        row("preempted".to_owned(), &results.preempted_response),
    ];
    let classes = results.classes.iter().map(|class| row(format!("class {}", class.class), &class.response));
    let queue = row("socket queue".to_owned(), &results.socket_queue);
    let rows = whole.into_iter().chain(classes).chain([queue]).flatten().collect();
    let columns = [
        ("name", "", "text", "which requests, or which part of them"),
        ("requests", "requests", "count", "how many"),
        ("mean", "mean", "ns", "mean"),
        ("p50", "p50", "ns", "median"),
        ("p95", "p95", "ns", "95th percentile"),
        ("p99", "p99", "ns", "99th percentile"),
        ("p99.9", "p99.9", "ns", "99.9th percentile"),
        ("max", "max", "ns", "longest"),
    ];
    let mut blocks = vec![Block::Table(Table::new("watch_times", &columns, rows))];
    if results.socket_queue.is_some() {
        let note = "socket queue: arrived but not yet read; it comes before the time at the server";
        blocks.push(Block::line(Role::Note, Phrase::new(note)));
    }
    blocks
}

/// A part of the time at the server in words.
pub fn part_words(part: Part) -> &'static str {
    match part {
        Part::OnCpu => "on CPU",
        Part::Stolen => "stolen or irq",
        Part::RunQueue => "run queue",
        Part::Yielded => "yielded",
        Part::Throttled => "throttled",
        Part::Disk => "blocked: disk",
        Part::Lock => "blocked: lock",
        Part::Network => "blocked: network",
        Part::Other => "blocked: other",
        Part::LoopWait => "loop wait",
    }
}

fn parts(results: &WatchResults) -> Vec<Block> {
    let sums: [Nanos; Part::COUNT] = results.parts_ns.into();
    let shares = largest_shares(Part::ALL.into_iter().zip(sums.map(|sum| u128::from(sum.0))), Part::COUNT);
    let rows = shares.into_iter().map(|(part, share)| {
        let mean = Value::Ns(mean(sums[part as usize].0, results.requests).0);
        Row::new(vec![part_words(part).into(), Value::Share(share).into(), mean.into()])
    });
    let columns = [
        ("part", "", "text", "what the server's thread did, or waited for"),
        ("share", "", "share", "of the time at the server"),
        ("mean", "", "ns", "per request"),
    ];
    let title = Phrase::new("where the time at the server went");
    vec![Block::line(Role::Title, title), Block::Table(Table::new("watch_parts", &columns, rows.collect()))]
}

fn distributions(record: &WatchRecord<'_>) -> Vec<Section> {
    let log = |name: &str| record.logs.get(name);
    let all = log(RESPONSE).map(|log| ("response".to_owned(), Phrase::new("all requests"), log));
    let classes = record.results.classes.iter().filter_map(|class| {
        let words = phrase!("class {class}", class = class.class.as_str());
        Some((format!("class {}", class.class), words, log(&watch::class_log(&class.class))?))
    });
    let split = [(UNDISTURBED, "not preempted"), (PREEMPTED, "preempted")];
    let split = split.into_iter().filter(|_| record.results.preempted > 0);
    let split = split.filter_map(|(name, words)| Some((name.to_owned(), Phrase::new(words), log(name)?)));
    let all = all.into_iter().chain(classes).chain(split).filter(|(.., log)| !log.is_empty());
    let section = |(id, words, log): (String, Phrase, &Durations)| {
        let title = Phrase::new("time at the server, ").then("", words);
        let (bars, has_rest) = match record.query.bucket {
            Some(bucket) => linear(&id, log, bucket),
            None => (histogram(&id, log), false),
        };
        let mut blocks = vec![Block::line(Role::Title, title), Block::Histogram(bars)];
        if has_rest {
            blocks.push(Block::line(Role::Note, Phrase::new("the last bin has all that is longer")));
        }
        Section::new(&id, blocks)
    };
    all.map(section).collect()
}

/// Rows of the table of preemptors unless `--top` says otherwise; the rest is one row.
const PREEMPTORS: usize = 12;

fn preemptors(results: &WatchResults, top: usize) -> Option<Vec<Block>> {
    if results.preemptors.is_empty() {
        return None;
    }
    let (shown, rest) = results.preemptors.split_at(results.preemptors.len().min(top));
    let mut rows: Vec<Row> = shown
        .iter()
        .map(|one| {
            Row::new(vec![
                Value::Ns(one.time_ns).into(),
                Value::Count(one.count).into(),
                one.comm.as_str().into(),
                Value::Id(u64::from(one.pid)).into(),
                one.cgroup.as_deref().map_or_else(Cell::absent, Cell::from),
            ])
        })
        .collect();
    if !rest.is_empty() {
        let (time, times) =
            rest.iter().fold((0, 0), |(time, times), one| (time + one.time_ns, times + one.count));
        rows.push(Row::new(vec![
            Value::Ns(time).into(),
            Value::Count(times).into(),
            format!("{} others", rest.len()).into(),
            Cell::absent(),
            "".into(),
        ]));
    }
    let columns = [
        ("time", "time taken", "ns", "how long it ran while the server's threads waited"),
        ("times", "times", "count", "how often"),
        ("name", "name", "text", "the thread's name"),
        ("pid", "pid", "id", "its process"),
        ("cgroup", "control group", "text", "its control group"),
    ];
    let title = Phrase::new("preemptors: what ran while the server's threads waited for a CPU");
    Some(vec![Block::line(Role::Title, title), Block::Table(Table::new("preemptors", &columns, rows))])
}

#[cfg(test)]
mod tests;
