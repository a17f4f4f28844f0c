//! Rebuilds a document from its results directory alone, so that everything printed can be recomputed from the record.

use audit::{Evidence, audit};
use record::document::{Document, State};
use record::{Interval, Recording, Second};
use serde_json::Value;
use units::Nanos;

use crate::condition::{Condition, Figures};
use crate::summary::{RunFacts, summarize};

/// A run, rebuilt from its record.
#[derive(Debug, Clone)]
pub struct Rebuilt {
    /// The document, with results and verdict computed again.
    pub document: Document,
    pub seconds: Vec<Second>,
    /// The sum of all intervals.
    pub total: Interval,
    /// Paths of fields in which the record's document differs: empty for a correct record, and for one without results.
    /// Not an error: the histograms are the evidence, and another version of Parallax may have judged them with other
    /// limits.
    pub differences: Vec<String>,
}

/// Computes results and verdict from the histograms of a record; the open requests of a run that was cut off count as
/// `in_flight`.
pub fn rebuild(mut recording: Recording) -> Rebuilt {
    recording.settle();
    work_out(recording)
}

/// Like [`rebuild`], for a run in progress: outstanding requests have not ended and are not counted as failed.
pub fn rebuild_so_far(recording: Recording) -> Rebuilt {
    work_out(recording)
}

fn work_out(recording: Recording) -> Rebuilt {
    let Recording { mut document, seconds, total, .. } = recording;
    let end = seconds.last().map_or(0, |last| last.start_ns + last.length_ns);
    if document.state == State::Recovered {
        let window = document.time.window_ns.or(document.load.duration_ns).unwrap_or(end).min(end);
        document.time.elapsed_ns = Some(end);
        document.time.window_ns = Some(window);
    }
    if document.state == State::Running {
        document.time.elapsed_ns = Some(end);
    }
    let window = Nanos(document.time.window_ns.unwrap_or(end));
    let facts = RunFacts { subject: &document.subject, stamps: &document.stamps, window, seconds: &seconds };
    let mut results = summarize(&total, &facts);
    // What other files of the record contain does not follow from the histograms.
    results.kept = document.results.as_ref().and_then(|stored| stored.kept.clone());
    results.cpu.server_memory = document.results.as_ref().and_then(|stored| stored.cpu.server_memory);
    let verdict = audit(&Evidence { window, ..Evidence::of(&document, &total, &seconds) });
    let mut differences = Vec::new();
    if let Some(stored) = &document.results {
        compare("results", &as_json(stored), &as_json(&results), &mut differences);
    }
    if let Some(stored) = &document.verdict {
        compare("verdict", &as_json(stored), &as_json(&verdict), &mut differences);
    }
    document.results = Some(results);
    document.verdict = Some(verdict);
    let mut rebuilt = Rebuilt { document, seconds, total, differences };
    rebuilt.judge_again();
    rebuilt
}

impl Rebuilt {
    /// Evaluates `conditions` on the run instead of those it was made with.
    pub fn judge(&mut self, conditions: &[Condition]) {
        let Some(results) = &self.document.results else { return };
        let window = Nanos(self.document.time.window_ns.unwrap_or(0));
        let figures = Figures { total: &self.total, results, subject: &self.document.subject, window };
        self.document.thresholds = conditions.iter().map(|condition| condition.threshold(&figures)).collect();
    }

    /// Evaluates the record's thresholds again, on the histograms.
    fn judge_again(&mut self) {
        let stored = std::mem::take(&mut self.document.thresholds);
        let parsed: Result<Vec<Condition>, _> = stored.iter().map(|one| one.fail_if.parse()).collect();
        let Ok(conditions) = parsed else {
            // They cannot be parsed by this version, so they are kept as they are.
            self.differences.push("thresholds".to_owned());
            self.document.thresholds = stored;
            return;
        };
        self.judge(&conditions);
        // A run that was cut off has no evaluated thresholds.
        compare("thresholds", &as_json(&stored), &as_json(&self.document.thresholds), &mut self.differences);
    }
}

fn as_json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("a document has string keys and nothing that can fail to be written")
}

/// Adds the path of every leaf that differs. Floats may differ by what decimal text loses.
fn compare(path: &str, stored: &Value, anew: &Value, differences: &mut Vec<String>) {
    match (stored, anew) {
        (Value::Object(a), Value::Object(b)) => {
            // A field that an earlier version did not write is not a difference.
            for (key, a) in a {
                compare(&format!("{path}.{key}"), a, b.get(key).unwrap_or(&Value::Null), differences);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{i}]"), a, b, differences);
            }
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            if (a - b).abs() > 1e-12 * a.abs().max(b.abs()) {
                differences.push(path.to_owned());
            }
        }
        (a, b) if a == b => {}
        _ => differences.push(path.to_owned()),
    }
}
