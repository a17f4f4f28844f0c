//! The values of one record, and what it was asked to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use record::document::{
    Document, EffectiveOption, Envelope, Model, Quantity, Reading, State, Verdict, VerdictWord,
};
use record::import::{Import, ImportedResults, read_import};
use record::{RecordError, kind_of};
use units::Nanos;

use crate::ComparedMetric;
use findings::{Condition, Figures};
use findings::{Rebuilt, rebuild};

/// One record as one repeat.
#[derive(Debug, Clone)]
pub struct ComparedRun {
    pub folder: PathBuf,
    /// What the run was made next to: `drive --block`.
    pub block: Option<String>,
    /// `None` if the record was not audited.
    pub verdict: Option<VerdictWord>,
    /// The check that makes it invalid; `None` if it is not, or if no check says so.
    pub invalid_by: Option<String>,
    pub state: State,
    /// When it began, RFC 3339 in UTC, so that texts are in the order of time; empty if unknown.
    pub started: String,
    /// The value of each metric, or why there is none.
    pub values: BTreeMap<&'static str, Result<f64, String>>,
    /// Failed requests and all of them; `None` if the tool does not say.
    pub failures: Option<(u64, u64)>,
    pub options: BTreeMap<String, EffectiveOption>,
    pub url: Option<String>,
    pub host: Option<String>,
    /// Program and version that made the record.
    pub tool: String,
    /// Whether requests are sent on a schedule: the rate is then given, and not found.
    pub is_open_loop: bool,
}

/// Reads a record of `drive` or `import`. The values are those of the histograms, not of the document.
///
/// # Errors
///
/// As for reading the record; `None` for a record of another kind, which has nothing to compare.
pub fn compared_run(folder: &Path) -> Result<Option<ComparedRun>, RecordError> {
    if record::import::is_import(folder)? {
        return Ok(Some(of_import(folder, &read_import(folder)?)));
    }
    if record::search::is_search(folder) || kind_of(folder)? != "drive" {
        return Ok(None);
    }
    Ok(Some(of_drive(folder, &rebuild(record::read(folder)?))))
}

fn of_drive(folder: &Path, rebuilt: &Rebuilt) -> ComparedRun {
    let Document { envelope, subject, load, results, .. } = &rebuilt.document;
    let values = ComparedMetric::all().map(|metric| (metric.name, value(rebuilt, metric.name))).collect();
    let failures = results.as_ref().map(|results| (results.totals.failed, results.totals.scheduled));
    ComparedRun {
        url: Some(subject.url.clone()),
        tool: format!("parallax {}", envelope.parallax_version),
        is_open_loop: load.model == Model::Open,
        failures,
        ..of_envelope(folder, envelope, values)
    }
}

fn of_import(folder: &Path, import: &Import) -> ComparedRun {
    let results = &import.results;
    let values = ComparedMetric::all().map(|metric| (metric.name, imported(results, metric.name))).collect();
    let version = import.imported.tool_version.as_deref().unwrap_or_default();
    ComparedRun {
        url: results.url.clone(),
        tool: format!("{} {version}", import.imported.tool).trim_end().to_owned(),
        started: results.started.clone().unwrap_or_default(),
        is_open_loop: results.rate_per_s.is_some(),
        failures: results.failed.zip(results.requests),
        // The options of `import` are not those of the run.
        options: BTreeMap::new(),
        host: None,
        ..of_envelope(folder, &import.envelope, values)
    }
}

fn of_envelope(
    folder: &Path,
    envelope: &Envelope,
    values: BTreeMap<&'static str, Result<f64, String>>,
) -> ComparedRun {
    let block = envelope.options.get("block").map(|option| option.value.clone());
    ComparedRun {
        folder: folder.to_owned(),
        block: block.filter(|block| !block.is_empty()),
        verdict: envelope.verdict.as_ref().map(|verdict| verdict.word),
        invalid_by: envelope.verdict.as_ref().and_then(invalid_by),
        state: envelope.state,
        started: envelope.time.started.clone(),
        values,
        failures: None,
        options: envelope.options.clone(),
        url: None,
        host: envelope.host.name.clone(),
        tool: String::new(),
        is_open_loop: false,
    }
}

fn invalid_by(verdict: &Verdict) -> Option<String> {
    let finding = verdict.findings.iter().find(|finding| finding.makes == VerdictWord::Invalid);
    finding.map(|finding| finding.check.name().to_owned())
}

/// The value of a metric of a run; those that `--fail-if` knows are read as there.
fn value(rebuilt: &Rebuilt, name: &str) -> Result<f64, String> {
    let results = rebuilt.document.results.as_ref().ok_or("the record has no results")?;
    let cpu = &results.cpu;
    let optional =
        |value: Option<u64>, why: &str| value.map(|value| value as f64).ok_or_else(|| why.to_owned());
    let totals = &results.totals;
    let without = totals.failed as f64 / totals.scheduled.max(1) as f64;
    if quantile_of(name).is_some_and(|q| !name.starts_with("response.") && without > 1.0 - q) {
        // It is measured of good responses alone: without the slowest ones, it would look better.
        return Err(format!("{:.1} % of the requests failed, and have none", without * 100.0));
    }
    match name {
        "client_cpu_per_request" => optional(cpu.per_request_ns, "the CPU time of the client was not read"),
        "server_cpu_per_request" => optional(cpu.server_per_request_ns, "no --watch-cpu"),
        "server_memory" => optional(cpu.server.map(|server| server.resident_bytes), "no --watch-cpu"),
        "wall_time" | "cpu_time" | "peak_memory" => Err("only runs of a program have it".to_owned()),
        _ if name.starts_with("request.") => Err("only records of other tools have it".to_owned()),
        _ => {
            let limit = if name == "throughput" { "0/s" } else { "0s" };
            let condition: Condition =
                format!("{name} > {limit}").parse().expect("the names are those of conditions");
            let window = Nanos(rebuilt.document.time.window_ns.unwrap_or(0));
            let subject = &rebuilt.document.subject;
            let judgement = condition.judge(&Figures { total: &rebuilt.total, results, subject, window });
            number(judgement.reading, &judgement.decision)
        }
    }
}

/// The quantile that a metric is: 0.95 for `service.p95`.
fn quantile_of(name: &str) -> Option<f64> {
    let digits = name.rsplit_once(".p")?.1;
    let shift = 10_f64.powi(i32::try_from(digits.len()).ok()?);
    Some(digits.parse::<f64>().ok()? / shift)
}

/// How the reason begins why a figure is not a number: requests were never answered.
pub(crate) const ONLY_OVER: &str = "only known to be over";

fn number(reading: Option<Reading>, decision: &findings::Decision) -> Result<f64, String> {
    match reading {
        Some(Reading::Known(Quantity::Ns(ns))) => Ok(ns as f64),
        Some(Reading::Known(Quantity::PerS(per_s))) => Ok(per_s),
        Some(Reading::Above(bound)) => Err(format!("{ONLY_OVER} {}", findings::quantity_text(bound))),
        Some(Reading::Known(_)) => unreachable!("compared metrics are times and rates"),
        None => match decision {
            findings::Decision::Undecided(reason) => Err(reason.clone()),
            _ => Err("absent".to_owned()),
        },
    }
}

fn imported(results: &ImportedResults, name: &str) -> Result<f64, String> {
    let none = || "the tool does not report it".to_owned();
    if name == "throughput" {
        return results.throughput_per_s.ok_or_else(none);
    }
    let (of, statistic) = name.split_once('.').ok_or_else(none)?;
    let time = results.times.iter().find(|time| time.name == of).ok_or_else(none)?;
    if statistic == "mean" {
        return time.mean_ns.map(|ns| ns as f64).ok_or_else(none);
    }
    let is_named = |q: f64| findings::quantile_name(q) == statistic;
    time.quantiles
        .iter()
        .find(|quantile| is_named(quantile.q))
        .map(|quantile| quantile.ns as f64)
        .ok_or_else(none)
}

impl ComparedRun {
    /// A run of a program that made no record.
    pub fn of_program(values: BTreeMap<&'static str, Result<f64, String>>) -> ComparedRun {
        ComparedRun {
            folder: PathBuf::new(),
            block: None,
            verdict: None,
            invalid_by: None,
            state: State::Finished,
            started: String::new(),
            values,
            failures: None,
            options: BTreeMap::new(),
            url: None,
            host: None,
            tool: String::new(),
            is_open_loop: false,
        }
    }

    /// The value of `metric`.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn value(&self, metric: &ComparedMetric) -> Result<f64, String> {
        self.values.get(metric.name).cloned().unwrap_or_else(|| Err("not measured".to_owned()))
    }

    /// Whether its figures may be used at all: it came to its end, and was not found invalid.
    pub fn is_valid(&self) -> bool {
        self.verdict != Some(VerdictWord::Invalid) && self.state == State::Finished
    }

    /// Whether it is a run of a program, without a record.
    pub fn is_of_program(&self) -> bool {
        self.folder.as_os_str().is_empty()
    }
}
