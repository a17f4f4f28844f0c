//! A run at one moment: the input of every exporter.

use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

/// Facts that do not change during a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The target's URL.
    pub url: String,
    /// The protocol, such as `http/1.1`.
    pub protocol: String,
    /// The version of Parallax.
    pub version: String,
    /// The distinct names of the targets; empty for a run with a single target.
    pub targets: Vec<String>,
    /// The start of the run, in nanoseconds since the epoch.
    pub started_unix_ns: u64,
}

impl Facts {
    /// The facts of a record. `started_unix_ns` is `document.time.started`, which only the caller can parse.
    pub fn of(document: &Document, started_unix_ns: u64) -> Facts {
        Facts {
            url: document.subject.url.clone(),
            protocol: document.subject.protocol.clone(),
            version: document.parallax_version.clone(),
            targets: made_distinct(&document.subject.targets),
            started_unix_ns,
        }
    }
}

/// Two series may not have the same labels, but a target may occur twice in a run.
fn made_distinct(names: &[String]) -> Vec<String> {
    let apart = names.iter().enumerate().map(|(place, name)| match names[..place].contains(name) {
        true => format!("{name} #{place}"),
        false => name.clone(),
    });
    apart.collect()
}

/// Everything up to one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    /// The facts.
    pub facts: &'a Facts,
    /// The sums since the start of the run.
    pub total: &'a Interval,
    /// The last whole second, for current rates; `None` for a finished run.
    pub last: Option<&'a Second>,
    /// The moment, as an offset from the start of the run.
    pub at: Nanos,
}
