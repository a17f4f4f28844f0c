//! Progress lines for pipes and logs: one line per interval, probe or stall.

use record::Second;
use record::document::{Load, Model};
use record::observation::hiccup::{HiccupLine, Hiccups, Stall};
use record::observation::watch;
use record::search::ProbeResult;
use units::{Nanos, count, percent, rate};

use crate::arithmetic::{IntervalRates, per_s, share};
use crate::hiccup_view::causes;
use crate::search_view::outcome_words;
use crate::words::quantile_cell;

/// `   3s  ok     998/s of 1000/s   p50 1.02 ms  p99 1.31 ms  failed 0  open 2`.
///
/// `of` is what became due in an open loop, `open` what was outstanding at the end. At most 80 columns as long as the
/// counts have at most three digits each.
/// The quantiles are those of this second alone; the report merges the histograms. A second with too few requests for
/// p99 shows `max` instead; a partial second, in which the last responses came, has counts and no rates.
pub fn second_line(second: &Second, load: &Load) -> String {
    let rates = IntervalRates::of(second);
    // A partial second has counts and no rates.
    let is_whole = is_whole(second);
    let shown = |n: u64, per_s: f64| if is_whole { rate(per_s) } else { count(n) };
    let ends = (second.start_ns + second.length_ns).div_ceil(1_000_000_000);
    let asked = match load.model {
        Model::Open => format!(" of {:<9}", shown(second.scheduled, rates.due_per_s)),
        Model::Closed => String::new(),
    };
    let quantile = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), |ns| Nanos(ns).to_string());
    let (high_name, high) = if second.ok >= FEWEST_FOR_P99 {
        ("p99", second.response_ns.map(|response| response.p99))
    } else {
        ("max", second.response_ns.map(|response| response.max))
    };
    let journeys = match second.journeys.as_slice() {
        [] => String::new(),
        journeys => {
            let completed = journeys.iter().map(|journey| journey.ok).sum();
            format!("  journeys {}", shown(completed, rates.journeys_per_s))
        }
    };
    format!(
        "{ends:>4}s  ok {:>9}{asked}  p50 {:<7}  {high_name} {:<7}  failed {}  open {}{journeys}",
        shown(second.ok, rates.ok_per_s),
        quantile(second.response_ns.map(|response| response.p50)),
        quantile(high),
        count(second.failed),
        count(second.outstanding),
    )
}

/// Whether a second of a run is whole. A shorter one is the remainder of the run, too short for a rate.
pub fn is_whole(second: &Second) -> bool {
    second.length_ns >= 900_000_000
}

/// The smallest number of requests whose p99 has a finite 95 % interval, as in the report.
const FEWEST_FOR_P99: u64 = 368;

/// One line of a live view: what happened in an interval.
pub fn watch_line(line: &watch::WatchLine, length: Nanos) -> String {
    let times = match line.response_ns {
        Some(times) => format!(
            "p50 {:>9}  p95 {:>9}  p99 {:>9}",
            Nanos(times.p50).to_string(),
            Nanos(times.p95).to_string(),
            Nanos(times.p99).to_string()
        ),
        None if line.seen_ns == Some(0) => "not watched".to_owned(),
        None => "no request".to_owned(),
    };
    let preempted = share(line.preempted, line.requests);
    let preempted = preempted.map_or_else(String::new, |share| format!("  preempted {}", percent(share)));
    let lost = match line.losses.ring_full + line.losses.map_full {
        0 => String::new(),
        lost => format!("  {} events lost", count(lost)),
    };
    let seen = line.seen_ns.map_or(length.0, |seen| seen.min(length.0));
    let share = if seen < length.0 {
        format!("  saw {} of the time", percent(seen as f64 / length.0 as f64))
    } else {
        String::new()
    };
    format!("throughput {:>10}  {times}{preempted}{lost}{share}", rate(per_s(line.requests, seen)))
}

/// The line of a probe that has ended.
pub fn probe_line(number: usize, probe: &ProbeResult) -> String {
    let asked = probe.rate_per_s.map_or("closed loop".to_owned(), rate);
    let why = if probe.why.is_empty() { String::new() } else { format!(": {}", probe.why) };
    format!(
        "probe {number:>2}  {asked:>11}  {:>9} done  p99 {:>9}  {}{why}",
        rate(probe.ok_per_s),
        quantile_cell(probe.p99).to_string(),
        outcome_words(probe.says),
    )
}

/// The column names above [`hiccup_line`].
pub fn hiccup_head() -> String {
    format!("{:>10} {COLUMNS}", "until")
}

/// With `until` 79 columns, as the table at the end.
const COLUMNS: &str = "  ticks     p50     p99   p99.9  p99.99     max >=1ms >=10ms >=100ms";

/// The line of an interval that ends at `end`, and its longest stalls, at most `most`.
pub fn hiccup_line(end: Nanos, line: &HiccupLine, most: usize) -> String {
    let mut text = format!("{:>10} {}\n", end.to_string(), row(&line.saw));
    for stall in line.stalls.iter().take(most) {
        text.push_str(&format!("{:>10}   {}\n", "", stall_text(stall)));
    }
    let reported = line.stalls.len().min(most) as u64;
    if line.saw.stalls > reported {
        text.push_str(&format!("{:>10}   and {} more, shorter\n", "", count(line.saw.stalls - reported)));
    }
    text
}

fn row(saw: &Hiccups) -> String {
    // Too few ticks for a percentile is not a zero.
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| Nanos(ns).to_string());
    format!(
        "{:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>5} {:>6} {:>7}",
        count(saw.ticks),
        time(saw.p50_ns),
        time(saw.p99_ns),
        time(saw.p99_9_ns),
        time(saw.p99_99_ns),
        time(saw.max_ns),
        count(saw.over_1ms),
        count(saw.over_10ms),
        count(saw.over_100ms)
    )
}

fn stall_text(stall: &Stall) -> String {
    let cpu = stall.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let at = stall.at_ns as f64 / 1e9;
    let pressure = stall
        .cpu_pressure_ns
        .filter(|&ns| ns > 0)
        .map_or_else(String::new, |ns| format!("; CPU pressure (PSI some): {}", Nanos(ns)));
    format!("stall at {at:.6} s{cpu}: {} = {}{pressure}", Nanos(stall.length_ns), causes(&stall.causes_ns))
}
