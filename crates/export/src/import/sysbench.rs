//! The text of sysbench 1.0: the final statistics, and the lines of `--report-interval`.
//!
//! A transaction is one event of a script. Without `--rate`, each thread begins the next one when its last one has
//! ended; with it, events wait in one queue for a thread. An ignored error is a transaction that was started again.

use record::import::{ErrorCount, ImportedInterval, ImportedTime};

use super::text::{Line, exact_share, lines, stated};
use super::{
    ImportError, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed, push,
};

const MEANING: &str = "one event of the script, without what precedes it in the thread";
const MEANING_WITH_RATE: &str =
    "one event of the script; sysbench does not say whether its time in the queue of --rate is included";
const NO_STATEMENTS: &str = "the times of single statements: only those of whole transactions are printed";

pub(super) fn parse(text: &str) -> Result<Parsed, ImportError> {
    let mut results = record::import::ImportedResults::default();
    let mut time =
        ImportedTime { name: "request".into(), original: "Latency (ms)".into(), ..ImportedTime::default() };
    let mut ignored = 0;
    let mut is_of_latency = false;
    for line in lines(text) {
        if line.text.starts_with("[ ") {
            push(&mut results, line, interval(line)?)?;
            continue;
        }
        is_of_latency |= line.text.starts_with("Latency (ms)");
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["Number", "of", "threads:", threads] => results.connections = Some(line.count(threads)?),
            ["Target", "transaction", "rate:", rate] => {
                results.rate_per_s = Some(line.float(rate.trim_end_matches("/sec"))?);
            }
            ["transactions:", count, rate, ..] => {
                results.ok = Some(line.count(count)?);
                results.request_rate_per_s = Some(line.float(rate.trim_start_matches('('))?);
            }
            ["ignored", "errors:", count, ..] => ignored = line.count(count)?,
            ["total", "time:", elapsed] => results.elapsed_ns = Some(line.seconds(elapsed)?),
            ["min:", value] if is_of_latency => time.min_ns = Some(line.milliseconds(value)?),
            ["avg:", value] if is_of_latency => time.mean_ns = Some(line.milliseconds(value)?),
            ["max:", value] if is_of_latency => time.max_ns = Some(line.milliseconds(value)?),
            // Without --percentile it is that of nothing, with a time of 0.
            [rank, "percentile:", value] if is_of_latency && *rank != "0th" => {
                let percent = rank.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let q = exact_share(percent).ok_or_else(|| line.wrong("not a percentile"))?;
                time.quantiles.push(stated(q, line.milliseconds(value)?));
            }
            _ => {}
        }
    }
    let Some(ok) = results.ok else {
        return Err(ImportError::Whole { what: "there is no line `transactions: N`".to_owned() });
    };
    (results.failed, results.requests) = (Some(ignored), Some(ok.saturating_add(ignored)));
    if ignored > 0 {
        results.errors.push(ErrorCount { original: "ignored errors".to_owned(), count: Some(ignored) });
    }
    time.count = Some(ok);
    time.meaning = if results.rate_per_s.is_some() { MEANING_WITH_RATE } else { MEANING }.to_owned();
    results.times.push(time);
    let version = lines(text)
        .find_map(|line| line.text.strip_prefix("sysbench "))
        .and_then(|rest| rest.split(' ').next());
    Ok(Parsed {
        tool: "sysbench",
        tool_version: version.map(super::text::shown),
        form: "text",
        cannot_know: vec![
            NO_SCHEDULE,
            NO_STATEMENTS,
            NO_PHASES,
            NO_STAMPS,
            NO_BLAME,
            NO_UNANSWERED,
            NO_VALUES,
        ],
        results,
        values: Vec::new(),
    })
}

/// `[ 1s ] thds: 4 tps: 42.72 qps: 874.34 (r/w/o: 614.02/172.88/87.43) lat (ms,99%): 77.19 err/s: 0.00 reconn/s: 0.00`,
/// `None` for another line with a time.
fn interval(line: Line<'_>) -> Result<Option<ImportedInterval>, ImportError> {
    let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
    let after =
        |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1)).copied();
    let (Some(end), Some(tps)) = (words.get(1), after("tps:")) else { return Ok(None) };
    let latency = words.iter().position(|word| word.starts_with("(ms,")).and_then(|at| words.get(at + 1));
    let end = line.seconds(end)?;
    Ok(Some(ImportedInterval {
        end_ns: end,
        rate_per_s: line.float(tps)?,
        mean_ns: None,
        quantile_ns: latency.map(|value| line.milliseconds(value)).transpose()?,
        failed_per_s: after("err/s:").map(|value| line.float(value)).transpose()?,
    }))
}
