//! The figures of a `watch` in progress.

use std::collections::BTreeSet;

use record::observation::watch::{Losses, MissedRequests, PartsNs};
use record::{Durations, Part};
use units::Nanos;

use super::{Exposition, Form, Labels, histograms};
use crate::figures::Family;

/// A watch at one moment.
#[derive(Debug, Clone)]
pub struct WatchSnapshot {
    /// How the server was named, such as `--port 3306`.
    pub server: String,
    pub version: String,
    /// The start of the record, in nanoseconds since the epoch.
    pub started_unix_ns: u64,
    pub requests: u64,
    pub preempted: u64,
    pub connections: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub parts_ns: PartsNs,
    /// Time at the server of all requests.
    pub response: Durations,
    /// Statements and routes; the last one is the sum of all that have no series of their own.
    pub statements: Vec<StatementSeries>,
    /// The limit of slow requests, and how many were over it.
    pub slow: (Nanos, u64),
    /// Requests that a filter leaves out.
    pub left_out: u64,
    pub losses: Losses,
    /// `None` if none is known to be missed.
    pub missed: Option<MissedRequests>,
    /// Requests per second in the last interval.
    pub rate: f64,
    /// CPU time of the observer; `None` if it could not be read.
    pub own_cpu_ns: Option<u64>,
    /// Memory of the observer, in bytes; `None` if it could not be read.
    pub own_memory: Option<u64>,
    /// Time in the kernel's programs, if it is measured.
    pub programs_ns: Option<u64>,
}

/// One statement or route, or the sum of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementSeries {
    pub text: String,
    pub requests: u64,
    pub sum_ns: u64,
    /// `None` if its rows are not known.
    pub rows_sent: Option<u64>,
}

/// Statements with a series of their own: the first ones seen, of those seen together the ones with the most time.
/// They keep theirs, so that no counter ever falls.
const STATEMENTS: usize = 100;

/// Which statements have a series of their own.
#[derive(Debug, Default)]
pub struct StatementNames {
    named: BTreeSet<u32>,
}

impl StatementNames {
    /// The series of all statements, given with their numbers: those that have their own, and the sum of all others.
    pub fn series(&mut self, all: Vec<(u32, StatementSeries)>) -> Vec<StatementSeries> {
        let room = STATEMENTS - self.named.len();
        let unnamed = all.iter().filter(|(id, _)| !self.named.contains(id));
        let mut unnamed: Vec<(u64, u32)> = unnamed.map(|(id, statement)| (statement.sum_ns, *id)).collect();
        unnamed.sort_unstable_by(|a, b| b.cmp(a));
        self.named.extend(unnamed.into_iter().take(room).map(|(_, id)| id));
        let (named, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(id, _)| self.named.contains(id));
        let none = StatementSeries { text: "all others".to_owned(), requests: 0, sum_ns: 0, rows_sent: None };
        let other = others.into_iter().fold(none, |sum, (_, one)| StatementSeries {
            requests: sum.requests + one.requests,
            sum_ns: sum.sum_ns.saturating_add(one.sum_ns),
            rows_sent: sum.rows_sent.into_iter().chain(one.rows_sent).reduce(u64::saturating_add),
            ..sum
        });
        named.into_iter().map(|(_, statement)| statement).chain([other]).collect()
    }
}

/// Bytes of a label: Prometheus keeps each of them in memory for every series.
const LABEL_BYTES: usize = 200;

/// The whole text for one scrape.
pub fn render_watch(watch: &WatchSnapshot, form: Form) -> String {
    let mut text = Exposition { text: String::new(), form };
    text.family("parallax_watch_info", "gauge", "What is watched, and by which version.");
    let labels = [("server", watch.server.as_str()), ("version", &watch.version)];
    text.sample("parallax_watch_info", &labels, "1");
    text.gauge(
        "parallax_watch_start_time_seconds",
        "The start of the record since the epoch.",
        &super::seconds(u128::from(watch.started_unix_ns)),
    );
    for (name, help, value) in [
        ("requests", "Requests that the server answered.", watch.requests),
        ("preempted_requests", "Requests that were preempted at least once.", watch.preempted),
        ("connections", "Connections on which requests were seen.", watch.connections),
        ("request_bytes", "Bytes of the requests.", watch.request_bytes),
        ("response_bytes", "Bytes of the responses.", watch.response_bytes),
        ("left_out_requests", "Requests that --statement or --peer leaves out.", watch.left_out),
        (
            "missed_requests",
            "Estimate of the requests that were not seen because their events were lost.",
            watch.missed.map_or(0, |missed| missed.requests),
        ),
    ] {
        text.counter(&format!("parallax_watch_{name}"), help, &[(&[], value)]);
    }
    text.gauge(
        "parallax_watch_requests_per_second",
        "Requests per second in the last interval.",
        &watch.rate.to_string(),
    );
    let over = super::seconds(u128::from(watch.slow.0.0));
    let slow = [("over", over.as_str())];
    text.counter(
        "parallax_watch_slow_requests",
        "Requests that took longer than this at the server.",
        &[(&slow, watch.slow.1)],
    );
    parts(watch, &mut text);
    let members = vec![("", &watch.response)];
    let help = "Time at the server, from read to written.";
    histograms(&Family { name: "watch_response", help, label: "", members }, &mut text);
    statements(watch, &mut text);
    losses(&watch.losses, &mut text);
    own_cost(watch, &mut text);
    if form == Form::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

fn parts(watch: &WatchSnapshot, text: &mut Exposition) {
    let sums: [Nanos; Part::COUNT] = watch.parts_ns.into();
    let rows: Vec<_> =
        Part::ALL.into_iter().map(|part| ([("part", part.name())], sums[part as usize].0)).collect();
    let rows: Vec<_> = rows.iter().map(|(labels, ns)| (labels.as_slice(), *ns)).collect();
    text.seconds_counter("parallax_watch_part_seconds", "Time at the server by part.", &rows);
}

fn statements(watch: &WatchSnapshot, text: &mut Exposition) {
    let label = |statement: &StatementSeries| {
        let mut end = statement.text.len().min(LABEL_BYTES);
        while !statement.text.is_char_boundary(end) {
            end -= 1;
        }
        record::escape_text(&statement.text[..end])
    };
    // Two that begin alike would be one series: the second is distinguished by its place.
    let mut seen = BTreeSet::new();
    let named: Vec<(String, &StatementSeries)> = watch
        .statements
        .iter()
        .enumerate()
        .map(|(n, statement)| {
            let label = label(statement);
            let label = if seen.insert(label.clone()) { label } else { format!("{label} #{n}") };
            (label, statement)
        })
        .collect();
    let rows = |of: fn(&StatementSeries) -> Option<u64>| -> Vec<(Labels<'_>, u64)> {
        let labelled = named.iter();
        labelled
            .filter_map(|(label, statement)| Some((vec![("statement", label.as_str())], of(statement)?)))
            .collect()
    };
    let requests = rows(|statement| Some(statement.requests));
    let borrowed: Vec<_> = requests.iter().map(|(labels, value)| (labels.as_slice(), *value)).collect();
    text.counter("parallax_watch_statement_requests", "Requests by statement or route.", &borrowed);
    let times = rows(|statement| Some(statement.sum_ns));
    let borrowed: Vec<_> = times.iter().map(|(labels, value)| (labels.as_slice(), *value)).collect();
    text.seconds_counter(
        "parallax_watch_statement_seconds",
        "Time at the server by statement or route.",
        &borrowed,
    );
    let sent = rows(|statement| statement.rows_sent);
    let borrowed: Vec<_> = sent.iter().map(|(labels, value)| (labels.as_slice(), *value)).collect();
    if !borrowed.is_empty() {
        text.counter("parallax_watch_statement_rows_sent", "Rows sent by statement.", &borrowed);
    }
}

fn losses(losses: &Losses, text: &mut Exposition) {
    let Losses { ring_full, map_full, recursion, mid_connection, unparsed } = *losses;
    let rows = [
        ([("cause", "ring_full")], ring_full),
        ([("cause", "map_full")], map_full),
        ([("cause", "recursion")], recursion),
        ([("cause", "mid_connection")], mid_connection),
        ([("cause", "unparsed")], unparsed),
    ];
    let rows: Vec<_> = rows.iter().map(|(labels, count)| (labels.as_slice(), *count)).collect();
    text.counter("parallax_watch_lost", "What happened and was not seen, by cause.", &rows);
}

fn own_cost(watch: &WatchSnapshot, text: &mut Exposition) {
    if let Some(ns) = watch.own_cpu_ns {
        text.seconds_counter("parallax_watch_own_cpu_seconds", "CPU time of the observer.", &[(&[], ns)]);
    }
    if let Some(ns) = watch.programs_ns {
        let help = "Time in the observer's eBPF programs, on the server's CPUs.";
        text.seconds_counter("parallax_watch_program_seconds", help, &[(&[], ns)]);
    }
    if let Some(bytes) = watch.own_memory {
        let help = "Memory of the observer.";
        text.gauge("parallax_watch_resident_bytes", help, &bytes.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> WatchSnapshot {
        let statement = |text: &str, requests, rows_sent| StatementSeries {
            text: text.to_owned(),
            requests,
            sum_ns: requests * 1_500_000,
            rows_sent,
        };
        let mut response = Durations::new();
        (0..5).for_each(|n| response.record(Nanos::from_millis(n)));
        WatchSnapshot {
            server: "--port 3306".to_owned(),
            version: "0.1.0".to_owned(),
            started_unix_ns: 1_700_000_000_000_000_000,
            requests: 5,
            preempted: 1,
            connections: 2,
            request_bytes: 50,
            response_bytes: 500,
            parts_ns: PartsNs { on_cpu: 7_000_000, ..PartsNs::default() },
            response,
            statements: vec![
                statement("select \"a\"", 2, Some(8)),
                statement(&"é".repeat(300), 1, None),
                statement(&"é".repeat(301), 1, None),
                statement("other", 1, None),
            ],
            slow: (Nanos::from_millis(5), 1),
            left_out: 0,
            losses: Losses { ring_full: 3, ..Losses::default() },
            missed: Some(MissedRequests { requests: 4, margin: 1 }),
            rate: 2.5,
            own_cpu_ns: Some(20_000_000),
            own_memory: Some(1 << 20),
            programs_ns: None,
        }
    }

    #[test]
    fn a_scrape_has_rate_histogram_statements_losses_and_cost() {
        let text = render_watch(&snapshot(), Form::Prometheus);
        for line in [
            "parallax_watch_info{server=\"--port 3306\",version=\"0.1.0\"} 1",
            "parallax_watch_requests_total 5",
            "parallax_watch_requests_per_second 2.5",
            "parallax_watch_slow_requests_total{over=\"0.005\"} 1",
            "parallax_watch_part_seconds_total{part=\"on_cpu\"} 0.007",
            "parallax_watch_response_seconds_bucket{le=\"0.001\"} 2",
            "parallax_watch_response_seconds_count 5",
            "parallax_watch_statement_requests_total{statement=\"select \\\"a\\\"\"} 2",
            "parallax_watch_statement_seconds_total{statement=\"other\"} 0.0015",
            "parallax_watch_statement_rows_sent_total{statement=\"select \\\"a\\\"\"} 8",
            "parallax_watch_lost_total{cause=\"ring_full\"} 3",
            "parallax_watch_missed_requests_total 4",
            "parallax_watch_own_cpu_seconds_total 0.02",
            "parallax_watch_resident_bytes 1048576",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(!text.contains("program_seconds"));
        assert!(render_watch(&snapshot(), Form::OpenMetrics).ends_with("# EOF\n"));
    }

    /// If this fails, Prometheus refuses the whole page: two samples have the same labels.
    #[test]
    fn no_two_samples_are_of_one_series() {
        let text = render_watch(&snapshot(), Form::Prometheus);
        let mut series: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.rsplit_once(' ').unwrap().0)
            .collect();
        let all = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), all);
    }
}
