//! `search.json`: what a search for the highest rate tried and found. It lies in a folder above those of its
//! probes, each of which is an ordinary run folder.
//!
//! Written anew after each probe, so that a search that is cut off leaves what it knew.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::document::{
    EffectiveOption, Host, QuantileValue, Reading, SCHEMA_VERSION, State, Subject, VerdictWord,
};
use crate::error::{Damage, RecordError};
use crate::escape::escaped;
use crate::lines;

/// The file in the folder of a search.
pub const SEARCH: &str = "search.json";

/// A dozen probes take some kilobytes each.
const LONGEST: u64 = 4 << 20;

/// A search: its objective, its probes, and what they say together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchDocument {
    pub schema_version: u32,
    pub state: State,
    /// What is known; while the search goes on, so far. Absent before the first probe.
    pub answer: Option<SearchAnswer>,
    pub parallax_version: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// The effective value of every option, defaults included, by the option's long name.
    pub options: BTreeMap<String, EffectiveOption>,
    pub subject: Subject,
    pub host: Host,
    /// RFC 3339, UTC.
    pub started: String,
    pub elapsed_ns: u64,
    /// All of them have to hold.
    pub objective: Vec<Demanded>,
    /// How near the two ends of the answer were to come: 0.02 is 2 %.
    pub tolerance: f64,
    pub probes_allowed: u64,
    /// In the order in which they were carried out.
    pub probes: Vec<ProbeResult>,
}

/// One condition of the objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Demanded {
    pub condition: String,
    /// Not stated by the user: a rate at which the answers are errors is not held.
    pub implied: bool,
}

/// One probe, over the time that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeResult {
    /// Its run folder, within that of the search.
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
    /// Findings of the audit against the client, by their names: it was not fit to measure this rate.
    pub against_client: Vec<Check>,
    pub says: Says,
    /// Why, in a few words.
    pub why: String,
}

/// What was measured for one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeFigure {
    pub measured: Option<Reading>,
    /// Absent where the sample cannot tell.
    pub held: Option<bool>,
}

/// What a probe says of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Says {
    /// Nothing: it was there to find where to begin.
    Estimate,
    Holds,
    Fails,
    /// Its two halves disagree; probed again for twice as long.
    Unsettled,
    /// The client was not fit to say.
    Client,
    /// It was cut short.
    Interrupted,
}

/// The answer, as an interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchAnswer {
    /// The highest rate that held with a fit client; absent where none did.
    pub holds_per_s: Option<f64>,
    /// The lowest rate above it that did not; absent where none was tried.
    pub fails_per_s: Option<f64>,
    /// Both ends were seen at least twice, by a majority of the probes at that rate.
    pub confirmed: bool,
    pub limit: Limit,
    /// For people; one line.
    pub reason: String,
}

/// Why the answer is no higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The objective broke while the client was fit.
    Server,
    /// The client was not fit at the next higher rate: the server may hold more.
    Client,
    /// No higher rate was allowed.
    Range,
    /// The probes ended before anything failed.
    Unknown,
}

/// Writes `document` into `folder`, in the place of the one before it, at once.
///
/// # Errors
///
/// [`RecordError::Write`]; the old document stands then.
pub fn write_search(folder: &Path, document: &SearchDocument) -> Result<(), RecordError> {
    let path = folder.join(SEARCH);
    let fresh = folder.join("search.json.new");
    let mut text = serde_json::to_vec_pretty(document).expect("a document has no keys but strings");
    text.push(b'\n');
    let write = || {
        let mut file = fs::File::create(&fresh)?;
        file.write_all(&text)?;
        file.sync_data()?;
        fs::rename(&fresh, &path)
    };
    write().map_err(|source| RecordError::Write { path: path.clone(), source })
}

/// Whether `folder` is that of a search.
pub fn is_search(folder: &Path) -> bool {
    folder.join(SEARCH).is_file()
}

/// Reads the search in `folder`.
///
/// # Errors
///
/// As [`read`](crate::read).
pub fn read_search(folder: &Path) -> Result<SearchDocument, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        schema_version: u64,
    }

    let path = folder.join(SEARCH);
    let file = lines::open(&path)?.ok_or_else(|| RecordError::NoRun { path: folder.to_owned() })?;
    let mut text = Vec::new();
    let read = file.take(LONGEST + 1).read_to_end(&mut text);
    read.map_err(|source| RecordError::Read { path: path.clone(), source })?;
    if text.len() as u64 > LONGEST {
        return Err(RecordError::TooLarge { path, limit: LONGEST });
    }
    let damaged = |error: serde_json::Error| RecordError::Damaged {
        path: path.clone(),
        line: error.line() as u64,
        damage: Damage::Json(error),
    };
    let version: Version = serde_json::from_slice(&text).map_err(damaged)?;
    if version.schema_version > u64::from(SCHEMA_VERSION) {
        return Err(RecordError::Newer { path, found: version.schema_version, known: SCHEMA_VERSION });
    }
    serde_json::from_slice(&text).map(escaped).map_err(damaged)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture;

    pub(crate) fn document() -> SearchDocument {
        let run = fixture::document();
        SearchDocument {
            schema_version: SCHEMA_VERSION,
            state: State::Finished,
            answer: Some(SearchAnswer {
                holds_per_s: Some(1_985.0),
                fails_per_s: Some(2_020.0),
                confirmed: false,
                limit: Limit::Server,
                reason: "at 2020/s p99 was 29.3 ms".to_owned(),
            }),
            parallax_version: run.parallax_version,
            command: run.command,
            options: run.options,
            subject: run.subject,
            host: run.host,
            started: run.time.started,
            elapsed_ns: 9_000_000_000,
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
                says: Says::Holds,
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
        document.schema_version += 1;
        write_search(folder.path(), &document).unwrap();
        assert!(matches!(read_search(folder.path()), Err(RecordError::Newer { .. })));
    }
}
