//! The text of pgbench: the final report, and the lines of `--progress`.
//!
//! With `--rate`, a transaction's time is from when it was due by pgbench's own schedule, and the lag is the part of it
//! before it was sent. Without `--rate`, `--progress` and `--latency-limit` no transaction is timed: the average it then
//! prints is the duration times the clients, divided by all transactions, and is no measurement.

use record::import::{ErrorCount, ImportedInterval, ImportedResults, ImportedTime};

use super::text::{Line, lines};
use super::{
    ImportError, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed, push,
};

const SERVICE: &str = "the first statement sent until the last response of the transaction is read";
const RESPONSE: &str =
    "when the transaction was due by pgbench's own schedule until its last response is read";
const LAG: &str = "when a transaction was due until its first statement was sent";
const NO_TIMES: &str =
    "any time of a transaction: pgbench measures them only with --rate, --progress or --latency-limit";
const NO_PERCENTILES: &str = "any percentile: pgbench prints the average and the standard deviation";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let mut results = ImportedResults::default();
    let (mut mean, mut lag, mut skipped, mut is_measured) = (None, None, 0, false);
    for line in lines(text) {
        if line.text.starts_with("progress: ") {
            push(&mut results, line, interval(line)?)?;
            continue;
        }
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["number", "of", "clients:", clients] => results.connections = Some(line.count(clients)?),
            ["duration:", seconds, "s"] => results.elapsed_ns = Some(line.seconds(seconds)?),
            ["number", "of", "transactions", "actually", "processed:", count] => {
                // `200/200`: of those that were requested.
                results.ok = Some(line.count(count.split('/').next().unwrap_or(""))?);
            }
            ["number", "of", "failed", "transactions:", count, ..] => {
                results.failed = Some(line.count(count)?)
            }
            ["number", "of", "transactions", "skipped:", count, ..] => skipped = line.count(count)?,
            ["latency", "average", "=", value, "ms", ..] => {
                mean = mean.or(Some(line.milliseconds(value)?));
            }
            ["latency", "stddev", "=", ..] => is_measured = true,
            ["rate", "limit", "schedule", "lag:", "avg", average, "(max", most, ..] => {
                lag = Some((line.milliseconds(average)?, line.milliseconds(most.trim_end_matches(')'))?));
            }
            ["tps", "=", rate, ..] => results.request_rate_per_s = Some(line.float(rate)?),
            _ => {}
        }
    }
    let Some(ok) = results.ok else {
        let what = "there is no line `number of transactions actually processed`".to_owned();
        return Err(ImportError::Whole { what });
    };
    if skipped > 0 {
        results.errors.push(ErrorCount { original: "skipped".to_owned(), count: Some(skipped) });
    }
    results.failed = Some(results.failed.unwrap_or(0).saturating_add(skipped));
    results.requests = Some(ok.saturating_add(results.failed.unwrap_or(0)));
    let (name, meaning) = if lag.is_some() { ("response", RESPONSE) } else { ("service", SERVICE) };
    let time = |name: &str, original: &str, meaning: &str| ImportedTime {
        name: name.to_owned(),
        original: original.to_owned(),
        meaning: meaning.to_owned(),
        count: Some(ok),
        ..ImportedTime::default()
    };
    if is_measured {
        results.times.push(ImportedTime { mean_ns: mean, ..time(name, "latency", meaning) });
    }
    since_the_beginning(&mut results.intervals);
    if let Some((average, most)) = lag {
        let lag = time("phase-schedule_lag", "rate limit schedule lag", LAG);
        results.times.push(ImportedTime { mean_ns: Some(average), max_ns: Some(most), ..lag });
    }
    let times = if is_measured { NO_PERCENTILES } else { NO_TIMES };
    let mut cannot_know = vec![times, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES];
    if lag.is_none() {
        cannot_know.insert(0, NO_SCHEDULE);
    }
    Ok(Parsed {
        tool: "pgbench",
        tool_version: version(text).map(super::text::shown),
        form: "text",
        cannot_know,
        results,
        values: Vec::new(),
    })
}

/// `pgbench (15.18 (Debian 15.18-0+deb12u1))`, `pgbench (15.18, server 14.2)`.
fn version(text: &str) -> Option<&str> {
    let rest = lines(text).find_map(|line| line.text.strip_prefix("pgbench ("))?;
    rest.split([' ', ',', ')']).next()
}

/// 2500-01-01.
const LATEST_NS: f64 = 16_725_225_600e9;

/// A day: what comes later is since 1970, as pgbench prints it with `--progress-timestamp`.
const LATEST_SINCE_BEGINNING: u64 = 86_400_000_000_000;

/// All intervals are as long as the second one; of a single one the length is not known.
fn since_the_beginning(intervals: &mut Vec<ImportedInterval>) {
    if intervals.first().is_none_or(|first| first.end_ns <= LATEST_SINCE_BEGINNING) {
        return;
    }
    let [first, second, ..] = intervals.as_slice() else { return intervals.clear() };
    let began = first.end_ns.saturating_sub(second.end_ns - first.end_ns);
    intervals.iter_mut().for_each(|interval| interval.end_ns = interval.end_ns.saturating_sub(began));
}

/// `progress: 1.0 s, 179.0 tps, lat 24.798 ms stddev 19.434, 0 failed, lag 11.791 ms`
fn interval(line: Line<'_>) -> Result<Option<ImportedInterval>, ImportError> {
    let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
    let ["progress:", end, "s,", rate, "tps,", "lat", mean, "ms", ..] = words.as_slice() else {
        return Err(line.wrong("not a line of --progress"));
    };
    let end = line.float(end)? * 1e9;
    // Without a transaction there is no mean.
    let mean = if mean.contains("nan") { None } else { Some(line.milliseconds(mean)?) };
    Ok(Some(ImportedInterval {
        // With --progress-timestamp since 1970.
        end_ns: if end < LATEST_NS { end as u64 } else { return Err(line.wrong("not a time")) },
        rate_per_s: line.float(rate)?,
        mean_ns: mean,
        quantile_ns: None,
        failed_per_s: None,
    }))
}
