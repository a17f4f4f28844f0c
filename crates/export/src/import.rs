//! Other tools' outputs as records, each labelled with what the output leaves out.
//!
//! One module per tool. The input is untrusted: its size is bounded by the caller, every number is checked, and an
//! error names the line. A missing figure is absent; an impossible figure is an error.

mod ab;
mod hey;
mod k6;
mod oha;
mod pgbench;
mod sysbench;
mod text;
mod values;
mod vegeta;
mod wrk;

use record::document::{Envelope, Finding, RecordKind, State, Time, Verdict, VerdictWord};
use record::import::{Import, Imported, ImportedInterval, ImportedQuantile, ImportedResults, ImportedTime};
use record::{Check, LogLine};
use stats::needed_samples;
use thiserror::Error;

use values::Values;

/// Maximum bytes that are read of a file.
pub const LONGEST: u64 = 256 << 20;

/// A day of seconds.
const MOST_INTERVALS: usize = 86_400;

/// More different errors than this are not a useful list.
const MOST_ERRORS: usize = 1_000;

units::named_enum! {
    /// The tool that produced an output.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Tool {
        /// wrk2, a fork of wrk with a schedule.
        Wrk2 = "wrk2",
        /// wrk; or wrk2 if the output cannot be distinguished: they print alike.
        Wrk = "wrk",
        /// hey.
        Hey = "hey",
        /// oha.
        Oha = "oha",
        /// k6.
        K6 = "k6",
        /// vegeta.
        Vegeta = "vegeta",
        /// sysbench, with any of its scripts for databases.
        Sysbench = "sysbench",
        /// pgbench.
        Pgbench = "pgbench",
        /// ab, ApacheBench.
        Ab = "ab",
    }
}

/// Why an output could not be read. Messages are one line each.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportError {
    #[error(
        "the tool that produced this was not recognized; give it with --from: wrk2, wrk, hey, oha, k6, vegeta, sysbench, pgbench or ab"
    )]
    Unknown,
    #[error("it is not UTF-8 text from byte {at} on; import the tool's own output")]
    NotText { at: usize },
    #[error("line {line}: {what}; import the tool's output as it was written")]
    Line { line: usize, what: String },
    #[error("{what}; import the tool's output as it was written")]
    Whole { what: String },
}

/// A parsed output.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tool's name.
    pub tool: &'static str,
    /// Its version, if the output has it.
    pub tool_version: Option<String>,
    /// Which of the tool's output formats it is.
    pub form: &'static str,
    /// What the output does not contain, in words for the record.
    pub cannot_know: Vec<&'static str>,
    /// The figures.
    pub results: ImportedResults,
    /// Single values, each under the name of an entry of `results.times`.
    pub values: Vec<(String, Values)>,
}

/// Parses an output of `tool`, or of the tool that it looks like.
///
/// # Errors
///
/// [`ImportError`], with the line if there is one.
pub fn parse(bytes: &[u8], tool: Option<Tool>) -> Result<Parsed, ImportError> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| ImportError::NotText { at: error.valid_up_to() })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parsed = match tool.or_else(|| detect(text)).ok_or(ImportError::Unknown)? {
        Tool::Wrk => wrk::parse(text, false),
        Tool::Wrk2 => wrk::parse(text, true),
        Tool::Hey => hey::parse(text),
        Tool::Oha => oha::parse(text),
        Tool::K6 => k6::parse(text),
        Tool::Vegeta => vegeta::parse(text),
        Tool::Sysbench => sysbench::parse(text),
        Tool::Pgbench => pgbench::parse(text),
        Tool::Ab => ab::parse(text),
    }?;
    parsed.results.throughput_per_s = parsed.results.throughput_per_s.or(throughput(&parsed.results));
    for time in &mut parsed.results.times {
        keep_what_the_sample_carries(time);
        check(time)?;
    }
    Ok(parsed)
}

/// As in a run: `ok` responses per second. A rate of all requests is scaled by the share that succeeded.
fn throughput(results: &ImportedResults) -> Option<f64> {
    let ok = results.ok? as f64;
    let of_time = || Some(ok * 1e9 / results.elapsed_ns.filter(|&ns| ns > 0)? as f64);
    let of_rate = || Some(results.request_rate_per_s? * ok / results.requests.filter(|&all| all > 0)? as f64);
    of_time().or_else(of_rate)
}

fn detect(text: &str) -> Option<Tool> {
    let begin = text.trim_start();
    let has = |mark: &str| text.contains(mark);
    if begin.starts_with("response-time,") {
        return Some(Tool::Hey);
    }
    if begin.starts_with('{') {
        return match () {
            () if has("\"latencies\"") || has("\"latency\"") => Some(Tool::Vegeta),
            () if has("\"metrics\"") => Some(Tool::K6),
            () if has("\"latencyPercentiles\"") => Some(Tool::Oha),
            () => None,
        };
    }
    match () {
        () if begin.starts_with("sysbench ") => Some(Tool::Sysbench),
        () if begin.starts_with("pgbench (") => Some(Tool::Pgbench),
        () if has("ApacheBench, Version") => Some(Tool::Ab),
        () if has("Thread Stats") => Some(Tool::Wrk),
        () if has("Success rate:") => Some(Tool::Oha),
        () if has("Summary:") && has("Requests/sec:") => Some(Tool::Hey),
        () if vegeta::is_csv(begin.lines().next().unwrap_or("")) => Some(Tool::Vegeta),
        () => None,
    }
}

/// Adds an interval of the output, if `line` is one.
fn push(
    results: &mut ImportedResults,
    line: text::Line<'_>,
    interval: Option<ImportedInterval>,
) -> Result<(), ImportError> {
    let Some(interval) = interval else { return Ok(()) };
    if results.intervals.last().is_some_and(|last| last.end_ns >= interval.end_ns) {
        return Err(line.wrong("an interval that does not end after the one before"));
    }
    if results.intervals.len() >= MOST_INTERVALS {
        return Err(line.wrong(format!("over {MOST_INTERVALS} intervals")));
    }
    results.intervals.push(interval);
    Ok(())
}

/// Keeps a percentile only if the sample is large enough, whichever program computed it.
fn keep_what_the_sample_carries(time: &mut ImportedTime) {
    let count = time.count;
    time.quantiles.retain(|quantile| {
        // The ends of a spectrum are the minimum and the maximum.
        quantile.q > 0.0 && quantile.q < 1.0 && count.is_none_or(|n| n >= needed_samples(quantile.q))
    });
}

/// Quantiles never fall, and a mean is never outside its values: inconsistent figures are not a measurement.
fn check(time: &ImportedTime) -> Result<(), ImportError> {
    let wrong =
        |what: &str| ImportError::Whole { what: format!("{what} of `{}` do not agree", time.original) };
    let rising = |pair: &[ImportedQuantile]| pair[0].q <= pair[1].q && pair[0].ns <= pair[1].ns;
    if !time.quantiles.windows(2).all(rising) {
        return Err(wrong("the percentiles"));
    }
    // What a tool prints is rounded: to a thousandth of the value, or to 0.1 ms.
    let above = |value: u64, bound: u64| value > bound + bound / 100 + 100_000;
    let ends = time.min_ns.zip(time.max_ns).is_some_and(|(min, max)| above(min, max));
    let mean = time.mean_ns.is_some_and(|mean| {
        time.max_ns.is_some_and(|max| above(mean, max)) || time.min_ns.is_some_and(|min| above(min, mean))
    });
    if ends || mean { Err(wrong("minimum, mean and maximum")) } else { Ok(()) }
}

/// The record of an output, and its histogram logs.
///
/// # Errors
///
/// When the start in the output is not a valid time.
pub fn record(
    parsed: Parsed,
    file: &str,
    version: &str,
) -> Result<(Import, Vec<(String, String)>), ImportError> {
    let Parsed { tool, tool_version, form, cannot_know, mut results, values } = parsed;
    // Without a start, offsets count from the epoch: the tools need some zero.
    let started = results.started.clone().unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned());
    let mut logs = Vec::new();
    for (name, values) in &values {
        let lines = values.intervals();
        let lines = lines.map(|(start, length, durations)| LogLine { tag: None, start, length, durations });
        let log = record::histogram_log(&started, lines)
            .map_err(|error| ImportError::Whole { what: error.to_string() })?;
        let file = format!("{name}.hlog");
        if let Some(time) = results.times.iter_mut().find(|time| time.name == *name) {
            time.log = Some(file.clone());
        }
        logs.push((file, log));
    }
    let import = Import {
        envelope: envelope(&results, tool, version),
        thresholds: Vec::new(),
        imported: Imported {
            tool: tool.to_owned(),
            tool_version,
            form: form.to_owned(),
            file: file.to_owned(),
            cannot_know: cannot_know.into_iter().map(str::to_owned).collect(),
        },
        results,
    };
    Ok((import, logs))
}

/// The start of the run is the tool's own; no tool reports the host.
fn envelope(results: &ImportedResults, tool: &str, version: &str) -> Envelope {
    let started = results.started.clone().unwrap_or_default();
    Envelope {
        state: State::Finished,
        verdict: Some(verdict(results, tool)),
        time: Time { started, elapsed_ns: results.elapsed_ns, ..Time::default() },
        ..Envelope::new(RecordKind::Import, version)
    }
}

/// Never `valid`, because the run was not audited; `invalid` when nothing was measured.
fn verdict(results: &ImportedResults, tool: &str) -> Verdict {
    let mut findings = vec![Finding {
        check: Check::Imported,
        makes: VerdictWord::Degraded,
        measured: format!(
            "{tool} measured this and did not audit itself: whether its schedule was kept, and whether it or its host \
             stood still, is not known"
        ),
        limit: "an audited run".to_owned(),
        advice: "consider what it cannot know; to be sure, measure again with `parallax drive`".to_owned(),
    }];
    let nothing = results.requests == Some(0) || results.ok == Some(0);
    if nothing {
        findings.insert(
            0,
            Finding {
                check: Check::NothingMeasured,
                makes: VerdictWord::Invalid,
                measured: "no request was successful".to_owned(),
                limit: "at least one ok".to_owned(),
                advice: "the codes and errors show what happened instead; fix that first".to_owned(),
            },
        );
    }
    let word = if nothing { VerdictWord::Invalid } else { VerdictWord::Degraded };
    Verdict { word, findings, unchecked: Vec::new() }
}

const NO_SCHEDULE: &str = "whether requests were sent when they were due: schedule lag is not observed, so a late client goes unnoticed";
const NO_PHASES: &str = "where the time went: there are no phases";
const NO_STAMPS: &str =
    "when responses arrived: times end when the tool had read them, so its own delays count as the server's";
const NO_BLAME: &str = "what caused a failure, and in which phase it happened";
const NO_UNANSWERED: &str =
    "how long requests without a response waited: percentiles leave them out or cut them off at a timeout";
const NO_VALUES: &str =
    "any figure that it did not print: there is no histogram to merge or to recompute from";

#[cfg(test)]
mod tests;
