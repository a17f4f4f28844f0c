//! The text of wrk and wrk2, with or without `--latency`.
//!
//! wrk measures from the first byte written to the response read. wrk2 measures from when the request was due; `-U`
//! adds a second distribution without that. Its spectrum has each percentile with the count below it.
//!
//! `N requests` counts requests with a response, whatever the status. Lines about errors are present only if there were
//! errors. A `timeout` of wrk is a response that came after `--timeout`: it is included in N, and in no distribution.
//! wrk2 checks every two seconds, and counts each connection that has waited longer: none of those is included in N.

use record::import::{ErrorCount, ImportedQuantile, ImportedResults, ImportedTime};

use super::text::{Line, lines, stated};
use super::{ImportError, NO_BLAME, NO_PHASES, NO_SCHEDULE, NO_STAMPS, NO_UNANSWERED, NO_VALUES, Parsed};

/// More lines than any spectrum has.
const MOST_QUANTILES: usize = 10_000;

const SERVICE: &str =
    "the first byte written until the response is read, of all requests that got a response";
const RESPONSE: &str = "when the request was due by wrk2's own schedule until the response is read, of all requests \
                        that got a response";

const TIMEOUTS_OF_WRK2: &str = "how many requests ran into the timeout: wrk2 counts waiting connections every two seconds, and a long wait \
     several times; each is taken for a failed request here";

#[derive(Default)]
struct State {
    results: ImportedResults,
    /// The distribution being read.
    time: Option<ImportedTime>,
    is_wrk2: bool,
    mean_ns: Option<u64>,
    max_ns: Option<u64>,
    /// The quantile that is printed instead of the maximum, if any.
    third: Option<f64>,
    third_ns: Option<u64>,
    answered: Option<u64>,
    /// Responses with a status of 400 or more.
    bad: u64,
    timeouts: u64,
    /// Connections that failed, each with the request that it was used for.
    broken: u64,
}

pub(super) fn parse(text: &str, is_wrk2: bool) -> Result<Parsed, ImportError> {
    let mut state = State { is_wrk2, ..State::default() };
    for line in lines(text).filter(|line| !line.text.is_empty()) {
        state.line(line)?;
    }
    state.end_time();
    let Some(answered) = state.answered else {
        return Err(ImportError::Whole { what: "there is no line `N requests in TIME`".to_owned() });
    };
    state.count(answered);
    let State { mut results, is_wrk2, mean_ns, max_ns, third, third_ns, .. } = state;
    if results.times.is_empty() {
        let time = if is_wrk2 { named("response", RESPONSE) } else { named("service", SERVICE) };
        results.times.push(time);
    }
    let time = &mut results.times[0];
    let within = if is_wrk2 { answered } else { answered.saturating_sub(state.timeouts) };
    time.count = time.count.or(Some(within));
    // Without --latency there is only the table of threads. A spectrum is finer.
    time.mean_ns = time.mean_ns.or(mean_ns);
    time.max_ns = time.max_ns.or(max_ns);
    if let Some((q, ns)) = third.zip(third_ns).filter(|_| time.quantiles.is_empty()) {
        time.quantiles.push(stated(q, ns));
    }
    let schedule = if is_wrk2 {
        "how late requests were sent: wrk2 counts that as response time, and does not separate it"
    } else {
        NO_SCHEDULE
    };
    let mut cannot_know = vec![schedule, NO_PHASES, NO_STAMPS, NO_BLAME, NO_UNANSWERED, NO_VALUES];
    if is_wrk2 && state.timeouts > 0 {
        cannot_know.push(TIMEOUTS_OF_WRK2);
    }
    Ok(Parsed {
        tool: if is_wrk2 { "wrk2" } else { "wrk" },
        tool_version: None,
        form: "text",
        cannot_know,
        results,
        values: Vec::new(),
    })
}

fn named(name: &str, meaning: &str) -> ImportedTime {
    ImportedTime {
        name: name.to_owned(),
        original: "Latency".to_owned(),
        meaning: meaning.to_owned(),
        ..ImportedTime::default()
    }
}

impl State {
    fn line(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["Running", .., "@", url] => self.results.url = Some((*url).to_owned()),
            [_, "threads", "and", connections, "connections"] => {
                self.results.connections = Some(line.count(connections)?);
            }
            ["Latency", "Distribution", ..] => self.begin(line),
            ["Thread", "calibration:", ..] => self.is_wrk2 = true,
            // `Avg Stdev Max +/- Stdev`; some forms of wrk2 have a percentile in the third place.
            ["Thread", "Stats", _mean, _stdev, third, ..] if third.ends_with('%') => {
                self.third = Some(line.percent(third)?);
            }
            // A line about nothing contains -nan.
            ["Latency", mean, _stdev, third, share]
                if self.mean_ns.is_none() && !mean.contains("nan") && !share.contains("nan") =>
            {
                self.mean_ns = Some(line.duration(mean)?);
                let third = Some(line.duration(third)?);
                if self.third.is_some() { self.third_ns = third } else { self.max_ns = third }
            }
            ["Uncorrected", ..] => {
                self.is_wrk2 = true;
                self.end_time();
                self.time = Some(named("service", SERVICE));
            }
            [share, value] if share.ends_with('%') => {
                let quantile = stated(line.percent(share)?, line.duration(value)?);
                self.quantile(line, quantile)?;
            }
            [value, share, count, inverse] if self.time.is_some() && is_spectrum(share, inverse) => {
                let percent = format!("{:.10}", line.float(share)? * 100.0);
                let quantile = stated(line.percent(&percent)?, line.milliseconds(value)?);
                line.count(count)?;
                self.quantile(line, quantile)?;
            }
            [mark, ..] if mark.starts_with("#[") => self.footer(line)?,
            [requests, "requests", "in", elapsed, read, "read"] => {
                self.end_time();
                self.answered = Some(line.count(requests)?);
                self.results.elapsed_ns = Some(line.duration(elapsed.trim_end_matches(','))?);
                self.results.bytes_received = Some(bytes(line, read)?);
            }
            ["Socket", "errors:", rest @ ..] => self.socket_errors(line, &rest.join(" "))?,
            ["Non-2xx", .., count] => {
                self.bad = line.count(count)?;
                self.results.errors.push(error("Non-2xx or 3xx responses", self.bad));
            }
            [name, rate] if *name == "Requests/sec:" => {
                self.results.request_rate_per_s = Some(line.float(rate)?);
            }
            _ => {}
        }
        Ok(())
    }

    fn begin(&mut self, line: Line<'_>) {
        self.end_time();
        self.is_wrk2 |= line.text.contains("HdrHistogram");
        let uncorrected = line.text.contains("Uncorrected");
        let time = if self.is_wrk2 && !uncorrected {
            named("response", RESPONSE)
        } else {
            named("service", SERVICE)
        };
        self.time = Some(time);
    }

    fn quantile(&mut self, line: Line<'_>, quantile: ImportedQuantile) -> Result<(), ImportError> {
        let Some(time) = &mut self.time else {
            return Err(line.wrong("a percentile outside of a distribution"));
        };
        if time.quantiles.len() >= MOST_QUANTILES {
            return Err(line.wrong(format!("over {MOST_QUANTILES} percentiles")));
        }
        time.quantiles.push(quantile);
        Ok(())
    }

    /// `#[Mean    =        0.285, StdDeviation   =        0.186]` and `#[Max     =       10.808, Total count    =  …]`.
    fn footer(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let Some(time) = &mut self.time else { return Ok(()) };
        for part in line.text.trim_start_matches("#[").trim_end_matches(']').split(',') {
            let Some((name, value)) = part.split_once('=') else { continue };
            match name.trim() {
                "Mean" => time.mean_ns = Some(line.milliseconds(value)?),
                "Max" => time.max_ns = Some(line.milliseconds(value)?),
                "Total count" => time.count = Some(line.count(value)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// A bad status and a timeout may belong to the same response: at most as many requests failed as there were.
    fn count(&mut self, answered: u64) {
        let unanswered = if self.is_wrk2 { self.timeouts.saturating_add(self.broken) } else { self.broken };
        let requests = answered.saturating_add(unanswered);
        let failed = self.bad.saturating_add(self.timeouts).saturating_add(self.broken).min(requests);
        self.results.requests = Some(requests);
        (self.results.ok, self.results.failed) = (Some(requests - failed), Some(failed));
    }

    /// A spectrum repeats the short list before it, more finely.
    fn end_time(&mut self) {
        if let Some(mut time) = self.time.take() {
            time.quantiles.sort_by(|a, b| a.q.total_cmp(&b.q).then(a.ns.cmp(&b.ns)));
            time.quantiles.dedup_by_key(|quantile| quantile.q);
            // One of the two is rounded for printing: never let it fall below the one before.
            for i in 1..time.quantiles.len() {
                time.quantiles[i].ns = time.quantiles[i].ns.max(time.quantiles[i - 1].ns);
            }
            self.results.times.push(time);
        }
    }

    fn socket_errors(&mut self, line: Line<'_>, text: &str) -> Result<(), ImportError> {
        for part in text.split(',') {
            let Some((what, count)) = part.trim().split_once(' ') else { continue };
            let count = line.count(count)?;
            let sum = if what == "timeout" { &mut self.timeouts } else { &mut self.broken };
            *sum = sum.saturating_add(count);
            if count > 0 {
                self.results.errors.push(error(&format!("socket error: {what}"), count));
            }
        }
        Ok(())
    }
}

fn is_spectrum(share: &str, inverse: &str) -> bool {
    share.starts_with(['0', '1'])
        && share.contains('.')
        && (inverse == "inf" || inverse.parse::<f64>().is_ok())
}

fn error(original: &str, count: u64) -> ErrorCount {
    ErrorCount { original: original.to_owned(), count: Some(count) }
}

/// `17.76GB`: wrk's units are powers of 1024.
fn bytes(line: Line<'_>, text: &str) -> Result<u64, ImportError> {
    let begin = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(begin);
    let exponent = match unit {
        "B" | "" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return Err(line.wrong(format!("`{}` is not a number of bytes", super::text::shown(text)))),
    };
    let bytes = line.float(number)? * 1024f64.powi(exponent);
    if bytes < 9e18 { Ok(bytes.round() as u64) } else { Err(line.wrong("that many bytes were never read")) }
}
