//! Prometheus text, format 0.0.4, and OpenMetrics 1.0.0, which differ in how counters are named and how the text
//! ends.
//!
//! Histograms are classic buckets, cumulative over the run, in seconds. Values in the same three-digit bucket as a
//! bound count as within the bound.

use std::fmt::Write as _;

use record::{Durations, Second};

mod watch;

use crate::figures::{Family, counters, families, targets};
use crate::snapshot::Snapshot;

pub use watch::{StatementNames, StatementSeries, WatchSnapshot, render_watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// The two forms of the text.
pub enum Form {
    Prometheus,
    OpenMetrics,
}

/// Bounds in nanoseconds: 1, 2.5 and 5 of each decade from 10 us to 10 s, then half and whole minutes.
const BOUNDS_NS: [u64; 21] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
    60_000_000_000,
];

impl Form {
    /// The form for a scraper that sends this `Accept` header.
    pub fn accepted(accept: &str) -> Form {
        // A scraper that reads OpenMetrics names it; scrapers list what they prefer first, and read both.
        if accept.contains("application/openmetrics-text") { Form::OpenMetrics } else { Form::Prometheus }
    }

    /// The `Content-Type` of the form.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The whole text for one scrape.
pub fn render(snapshot: &Snapshot<'_>, form: Form) -> String {
    let mut text = Exposition { text: String::new(), form };
    let facts = snapshot.facts;
    text.family("parallax_run_info", "gauge", "What is measured, and by which version.");
    let labels = [("url", &*facts.url), ("protocol", &facts.protocol), ("version", &facts.version)];
    text.sample("parallax_run_info", &labels, "1");
    text.gauge(
        "parallax_run_start_time_seconds",
        "The start of the run since the epoch.",
        &seconds(u128::from(facts.started_unix_ns)),
    );
    for (name, help, value) in counters(snapshot.total) {
        text.counter(&format!("parallax_{name}"), help, &[(&[], value)]);
    }
    requests(snapshot, &mut text);
    if let Some(second) = snapshot.last {
        gauges(second, &mut text);
    }
    for family in families(snapshot) {
        histograms(&family, &mut text);
    }
    if form == Form::OpenMetrics {
        text.text.push_str("# EOF\n");
    }
    text.text
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

fn requests(snapshot: &Snapshot<'_>, text: &mut Exposition) {
    let ok = [("outcome", "ok"), ("phase", ""), ("blame", "")].to_vec();
    let mut rows: Vec<(Labels<'_>, u64)> = vec![(ok, snapshot.total.counts.ok)];
    rows.extend(snapshot.total.failures().iter().map(|(failure, count)| {
        let labels = [
            ("outcome", failure.outcome.name()),
            ("phase", failure.phase.name()),
            ("blame", failure.blame.name()),
        ];
        (labels.to_vec(), *count)
    }));
    let borrowed: Vec<_> = rows.iter().map(|(labels, count)| (labels.as_slice(), *count)).collect();
    text.counter("parallax_requests", "Requests that ended, by outcome, phase and blame.", &borrowed);
    let of_targets = targets(snapshot).flat_map(|(target, kind)| {
        let failed = kind.failures().iter().map(|(_, count)| count).sum();
        [("ok", kind.ok), ("failed", failed)]
            .map(|(result, count)| ([("target", target), ("result", result)], count))
    });
    let of_targets: Vec<_> = of_targets.collect();
    let borrowed: Vec<_> = of_targets.iter().map(|(labels, count)| (labels.as_slice(), *count)).collect();
    if !borrowed.is_empty() {
        text.counter("parallax_target_requests", "Requests of each target that ended.", &borrowed);
    }
    let codes: Vec<_> =
        snapshot.total.codes().iter().map(|(code, count)| (code.to_string(), *count)).collect();
    let labels: Vec<_> = codes.iter().map(|(code, count)| ([("code", code.as_str())], *count)).collect();
    let borrowed: Vec<_> = labels.iter().map(|(labels, count)| (labels.as_slice(), *count)).collect();
    if !borrowed.is_empty() {
        text.counter("parallax_responses", "Responses by the application's own code.", &borrowed);
    }
}

fn gauges(second: &Second, text: &mut Exposition) {
    text.gauge(
        "parallax_outstanding_requests",
        "Requests in flight or queued.",
        &second.outstanding.to_string(),
    );
    for (name, help, count) in [
        ("parallax_scheduled_per_second", "Requests due in the last second.", second.scheduled),
        ("parallax_sent_per_second", "Requests sent in the last second.", second.sent),
        ("parallax_ok_per_second", "Requests that ended ok in the last second.", second.ok),
        ("parallax_failed_per_second", "Requests that ended otherwise in the last second.", second.failed),
    ] {
        if second.length_ns > 0 {
            text.gauge(name, help, &(count as f64 * 1e9 / second.length_ns as f64).to_string());
        }
    }
}

fn histograms(family: &Family<'_>, text: &mut Exposition) {
    let name = format!("parallax_{}_seconds", family.name);
    text.family(&name, "histogram", family.help);
    for (value, durations) in &family.members {
        let own: Labels<'_> = if family.label.is_empty() { Vec::new() } else { vec![(family.label, value)] };
        for (bound, count) in BOUNDS_NS.into_iter().zip(within(durations)) {
            let bound = seconds(u128::from(bound));
            let labels: Vec<_> = own.iter().copied().chain([("le", bound.as_str())]).collect();
            text.sample(&format!("{name}_bucket"), &labels, &count.to_string());
        }
        let count = durations.count().to_string();
        let labels: Vec<_> = own.iter().copied().chain([("le", "+Inf")]).collect();
        text.sample(&format!("{name}_bucket"), &labels, &count);
        text.sample(&format!("{name}_sum"), &own, &seconds(durations.sum_ns()));
        text.sample(&format!("{name}_count"), &own, &count);
    }
}

/// How many values are within each bound.
fn within(durations: &Durations) -> [u64; BOUNDS_NS.len()] {
    let histogram = durations.histogram();
    let mut counts = [0; BOUNDS_NS.len()];
    for bucket in histogram.iter_recorded() {
        let low = histogram.lowest_equivalent(bucket.value_iterated_to());
        let first = BOUNDS_NS.partition_point(|&bound| bound < low);
        if let Some(count) = counts.get_mut(first) {
            *count += bucket.count_at_value();
        }
    }
    for i in 1..counts.len() {
        counts[i] += counts[i - 1];
    }
    counts
}

/// Nanoseconds as seconds, exactly, without trailing zeros.
fn seconds(ns: u128) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

struct Exposition {
    text: String,
    form: Form,
}

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect(WRITES);
    }

    fn gauge(&mut self, name: &str, help: &str, value: &str) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    /// A counter of time.
    fn seconds_counter(&mut self, name: &str, help: &str, rows: &[(&[(&'static str, &str)], u64)]) {
        let total = format!("{name}_total");
        self.family(if self.form == Form::OpenMetrics { name } else { &total }, "counter", help);
        for (labels, ns) in rows {
            self.sample(&total, labels, &seconds(u128::from(*ns)));
        }
    }

    /// The family name of a counter has the suffix in one form and not in the other; its samples always have it.
    fn counter(&mut self, name: &str, help: &str, rows: &[(&[(&'static str, &str)], u64)]) {
        let total = format!("{name}_total");
        let family = if self.form == Form::OpenMetrics { name } else { &total };
        self.family(family, "counter", help);
        for (labels, value) in rows {
            self.sample(&total, labels, &value.to_string());
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&'static str, &str)], value: &str) {
        self.text.push_str(name);
        for (i, (label, value)) in labels.iter().enumerate() {
            let open = if i == 0 { '{' } else { ',' };
            write!(self.text, "{open}{label}=\"{}\"", escaped(value)).expect(WRITES);
        }
        let close = if labels.is_empty() { "" } else { "}" };
        writeln!(self.text, "{close} {value}").expect(WRITES);
    }
}

const WRITES: &str = "a String takes every write";

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use record::{Failure, Outcome, Phase, Series};
    use units::Nanos;

    use super::*;
    use crate::snapshot::Facts;

    fn rendered(form: Form) -> String {
        let facts = Facts {
            url: "http://h/\"\\\n".to_owned(),
            protocol: "http/1.1".to_owned(),
            version: "0.1.0".to_owned(),
            targets: vec!["GET /a".to_owned(), "say \"b\"\\\n".to_owned()],
            started_unix_ns: 1_700_000_000_250_000_000,
        };
        let mut total = Interval::default();
        for us in [10, 11, 1_000, 90_000_000] {
            total.counts.ok += 1;
            total.slot(Series::Response).record(Nanos::from_micros(us));
            total.slot(Series::Phase(Phase::Wait)).record(Nanos::from_micros(us));
        }
        total.record_failure(Failure::new(Outcome::Reset, Phase::Wait), Nanos::from_millis(3));
        total.record_code(units::Code::status(200));
        total.kind(0).ok = 3;
        total.kind(1).record_failure(Failure::new(Outcome::Reset, Phase::Wait), Nanos::from_millis(3));
        total.counts.scheduled = 5;
        let mut interval = Interval::default();
        interval.length = Nanos::from_millis(500);
        interval.counts.scheduled = 5;
        let last = Second::of(&interval, None);
        render(&Snapshot { facts: &facts, total: &total, last: Some(&last), at: Nanos::from_secs(1) }, form)
    }

    use record::Interval;

    #[test]
    fn buckets_are_cumulative_and_end_with_all() {
        let text = rendered(Form::Prometheus);
        for line in [
            "# TYPE parallax_requests_total counter",
            "parallax_requests_total{outcome=\"ok\",phase=\"\",blame=\"\"} 4",
            "parallax_requests_total{outcome=\"reset\",phase=\"wait\",blame=\"server\"} 1",
            "parallax_responses_total{code=\"200\"} 1",
            "parallax_run_info{url=\"http://h/\\\"\\\\\\n\",protocol=\"http/1.1\",version=\"0.1.0\"} 1",
            "parallax_run_start_time_seconds 1700000000.25",
            "parallax_scheduled_per_second 10",
            "# TYPE parallax_response_seconds histogram",
            "parallax_response_seconds_bucket{le=\"0.00001\"} 1",
            "parallax_response_seconds_bucket{le=\"0.000025\"} 2",
            "parallax_response_seconds_bucket{le=\"0.001\"} 3",
            "parallax_response_seconds_bucket{le=\"60\"} 3",
            "parallax_response_seconds_bucket{le=\"+Inf\"} 4",
            "parallax_response_seconds_sum 90.001021",
            "parallax_response_seconds_count 4",
            "parallax_phase_seconds_bucket{phase=\"wait\",le=\"+Inf\"} 4",
            "parallax_failed_seconds_sum{outcome=\"reset\"} 0.003",
            "parallax_target_requests_total{target=\"GET /a\",result=\"ok\"} 3",
            "parallax_target_requests_total{target=\"say \\\"b\\\"\\\\\\n\",result=\"failed\"} 1",
            "parallax_target_failed_seconds_count{target=\"say \\\"b\\\"\\\\\\n\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
        assert!(!text.contains("# EOF"));
    }

    /// If this fails, a scraper that requests OpenMetrics refuses the whole page.
    #[test]
    fn open_metrics_names_the_family_without_its_suffix_and_marks_the_end() {
        let text = rendered(Form::OpenMetrics);
        assert!(text.contains("# TYPE parallax_requests counter\nparallax_requests_total{"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        assert_eq!(
            Form::accepted("application/openmetrics-text;version=1.0.0,text/plain"),
            Form::OpenMetrics
        );
        assert_eq!(Form::accepted("*/*"), Form::Prometheus);
    }

    #[test]
    fn every_family_is_described_once_and_before_its_samples() {
        for form in [Form::Prometheus, Form::OpenMetrics] {
            let text = rendered(form);
            let mut families = Vec::new();
            for line in text.lines().filter(|line| *line != "# EOF") {
                match line.strip_prefix("# TYPE ") {
                    Some(rest) => families.push(rest.split(' ').next().unwrap().to_owned()),
                    None if line.starts_with('#') => {}
                    None => assert!(line.starts_with(families.last().unwrap().as_str()), "{line}"),
                }
            }
            let all = families.len();
            families.sort();
            families.dedup();
            assert_eq!(families.len(), all);
        }
    }
}
