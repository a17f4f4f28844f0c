//! `search.json`: what a search for the highest rate tried and found. It is in the directory above those of the probes,
//! each of which is an ordinary results directory.
//!
//! Written again after each probe, so that a search that is cut off keeps its results so far.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check::Check;
use crate::compatibility::Ignored;
use crate::document::{Envelope, QuantileValue, Reading, Subject, VerdictWord, envelope_of};
use crate::error::RecordError;
use crate::folder_reader::read_upgraded;
use crate::record_dir::replace_file;

/// The file name in the directory of a search.
pub const SEARCH: &str = "search.json";

/// A search: its objective, its probes, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SearchDocument {
    /// Has no verdict; each probe has its own.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The result; that of the probes so far while the search runs. Absent before the first probe.
    pub answer: Option<SearchResult>,
    pub subject: Subject,
    /// All of them have to hold.
    pub objective: Vec<Demanded>,
    /// The search ends when its interval is no wider than this share of the rate: 0.02 is 2 %.
    pub tolerance: f64,
    pub probes_allowed: u64,
    /// In the order in which they were carried out.
    pub probes: Vec<ProbeResult>,
}

envelope_of!(SearchDocument);

/// One condition of the objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Demanded {
    pub condition: String,
    /// Not stated by the user: a rate at which responses are errors is not held.
    pub implied: bool,
}

/// One probe, over the time that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProbeResult {
    /// Its results directory, within that of the search.
    pub folder: String,
    /// What was asked for; absent of the estimate, which is a closed loop.
    pub rate_per_s: Option<f64>,
    /// Before it, nothing counts: connections open and the server warms up.
    pub warmup_ns: u64,
    pub measured_ns: u64,
    pub sent_per_s: f64,
    pub ok_per_s: f64,
    /// Requests that did not end `ok`, as a share of those that ended.
    pub error_share: f64,
    /// Response.
    pub p50: QuantileValue,
    pub p99: QuantileValue,
    /// Each condition of the objective, in its order.
    pub figures: Vec<ProbeFigure>,
    /// CPU of the busiest worker, between 0 and 1; absent where it could not be read.
    pub client_cpu_share: Option<f64>,
    /// The audit's word on this run.
    pub verdict: Option<VerdictWord>,
    /// Findings of the audit that concern the load generator, by name: it could not measure this rate.
    pub against_client: Vec<Check>,
    pub says: ProbeOutcome,
    /// Why, in a few words.
    pub why: String,
}

/// What was measured for one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProbeFigure {
    pub measured: Option<Reading>,
    /// Absent if the sample cannot decide it.
    pub held: Option<bool>,
}

/// The result of a probe for its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// Not judged: it only estimates where to begin.
    Estimate,
    Holds,
    Fails,
    /// Its two halves disagree, so the rate is probed again for twice as long.
    Unsettled,
    /// The load generator was the limit.
    Client,
    /// It was interrupted.
    Interrupted,
}

/// The result, as an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct SearchResult {
    /// The highest rate that passed without being limited by the load generator; absent if there is none.
    pub holds_per_s: Option<f64>,
    /// The lowest rate above it that failed; absent if none was tried.
    pub fails_per_s: Option<f64>,
    /// Whether both ends were confirmed by a majority of at least two probes at that rate.
    pub confirmed: bool,
    pub limit: Limit,
    /// The reason for the limit, in one line.
    pub reason: String,
}

/// Why the result is not higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The server: the objective failed while the load generator kept up.
    Server,
    /// The load generator: it did not keep up at the next higher rate, so the server may reach more.
    Client,
    /// No higher rate was allowed.
    Range,
    /// The probes ended before anything failed.
    Unknown,
}

/// Writes `document` into `folder`, replacing the previous one atomically.
///
/// # Errors
///
/// [`RecordError::Write`]; the old document is then kept.
pub fn write_search(folder: &Path, document: &SearchDocument) -> Result<(), RecordError> {
    let path = folder.join(SEARCH);
    let mut text = serde_json::to_vec_pretty(document).expect("a document has no keys but strings");
    text.push(b'\n');
    let written = replace_file(&path, |out| {
        out.write_all(&text)?;
        out.flush()?;
        out.get_ref().sync_data()
    });
    written.map_err(|source| RecordError::Write { path, source })
}

/// Whether `folder` is the directory of a search.
pub fn is_search(folder: &Path) -> bool {
    folder.join(SEARCH).is_file()
}

/// Reads the search in `folder`.
///
/// # Errors
///
/// Like [`read`](crate::read).
pub fn read_search(folder: &Path) -> Result<SearchDocument, RecordError> {
    let mut ignored = Ignored::default();
    let mut document: SearchDocument = read_upgraded(&folder.join(SEARCH), &mut ignored, time_of_1_0)?;
    ignored.note_in(&mut document);
    Ok(document)
}

/// Upgrades a document of version 1.0, which had `started` and `elapsed_ns` instead of `time`.
fn time_of_1_0(document: &mut Map<String, Value>) {
    if document.contains_key("time") {
        return;
    }
    let time = ["started", "elapsed_ns"].map(|name| Some((name.to_owned(), document.remove(name)?)));
    document.insert("time".to_owned(), Value::Object(time.into_iter().flatten().collect()));
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::document::{RecordKind, State, Time};
    use crate::fixture;

    pub(crate) fn document() -> SearchDocument {
        let run = fixture::document();
        let time = Time { elapsed_ns: Some(9_000_000_000), ..run.time.clone() };
        let envelope = Envelope { kind: RecordKind::Search, state: State::Finished, time, ..run.envelope };
        SearchDocument {
            envelope,
            answer: Some(SearchResult {
                holds_per_s: Some(1_985.0),
                fails_per_s: Some(2_020.0),
                confirmed: false,
                limit: Limit::Server,
                reason: "at 2020/s p99 was 29.3 ms".to_owned(),
            }),
            subject: run.subject,
            objective: vec![Demanded { condition: "p99 < 20ms".to_owned(), implied: false }],
            tolerance: 0.02,
            probes_allowed: 12,
            probes: vec![ProbeResult {
                folder: "probe-01".to_owned(),
                rate_per_s: Some(1_985.0),
                warmup_ns: 1_000_000_000,
                measured_ns: 4_000_000_000,
                sent_per_s: 1_985.0,
                ok_per_s: 1_985.0,
                error_share: 0.0,
                p50: QuantileValue::Known { ns: 1, low_ns: 1, high_ns: Some(2) },
                p99: QuantileValue::Above { ns: 3 },
                figures: vec![ProbeFigure { measured: None, held: None }],
                client_cpu_share: Some(0.1),
                verdict: Some(VerdictWord::Valid),
                against_client: Vec::new(),
                says: ProbeOutcome::Holds,
                why: String::new(),
            }],
        }
    }

    #[test]
    fn a_search_reads_as_it_was_written_and_the_last_one_stands() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_search(folder.path()));
        assert!(matches!(read_search(folder.path()), Err(RecordError::NoRun { .. })));
        let mut document = document();
        write_search(folder.path(), &document).unwrap();
        document.probes.clear();
        write_search(folder.path(), &document).unwrap();
        assert_eq!(read_search(folder.path()).unwrap(), document);
        document.schema_version.minor += 1;
        write_search(folder.path(), &document).unwrap();
        let read = read_search(folder.path()).unwrap();
        assert!(read.notes[0].contains("schema version 1.2"), "{:?}", read.notes);
        document.schema_version.major += 1;
        write_search(folder.path(), &document).unwrap();
        assert!(matches!(read_search(folder.path()), Err(RecordError::OtherMajor { .. })));
    }

    /// If this fails, a search from before records had an envelope cannot be read any more.
    #[test]
    fn a_search_of_1_0_reads_as_one_of_today() {
        let folder = tempfile::tempdir().unwrap();
        let mut old = serde_json::to_value(document()).unwrap();
        let map = old.as_object_mut().unwrap();
        map.insert("schema_version".to_owned(), 1.into());
        map.remove("kind");
        let time = map.remove("time").unwrap();
        map.insert("started".to_owned(), time["started"].clone());
        map.insert("elapsed_ns".to_owned(), time["elapsed_ns"].clone());
        std::fs::write(folder.path().join(SEARCH), old.to_string()).unwrap();
        let mut expected = document();
        expected.schema_version.minor = 0;
        expected.time.started_monotonic_ns = 0;
        expected.time.window_ns = None;
        assert_eq!(read_search(folder.path()).unwrap(), expected);
    }
}
