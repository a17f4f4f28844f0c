//! A run as it stands at one moment: what every exporter is given.

use record::document::Document;
use record::{Interval, Second};
use units::Nanos;

/// What does not change while a run goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub url: String,
    pub protocol: String,
    pub version: String,
    /// The targets by name, each name once; empty where they are not told apart.
    pub targets: Vec<String>,
    /// The run's zero in nanoseconds since the epoch.
    pub started_unix_ns: u64,
}

impl Facts {
    /// `started_unix_ns` is `document.time.started`, which only `cli` can read.
    pub fn of(document: &Document, started_unix_ns: u64) -> Facts {
        Facts {
            url: document.subject.url.clone(),
            protocol: document.subject.protocol.clone(),
            version: document.parallax_version.clone(),
            targets: told_apart(&document.subject.targets),
            started_unix_ns,
        }
    }
}

/// Two series may not have the same labels, but a target may stand twice among those of a run.
fn told_apart(names: &[String]) -> Vec<String> {
    let apart = names.iter().enumerate().map(|(place, name)| match names[..place].contains(name) {
        true => format!("{name} #{place}"),
        false => name.clone(),
    });
    apart.collect()
}

/// Everything up to one moment.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a> {
    pub facts: &'a Facts,
    /// From the run's zero on.
    pub total: &'a Interval,
    /// The last whole second, for what is a rate of the moment; absent of a run that is over.
    pub last: Option<&'a Second>,
    /// The moment, as an offset from the run's zero.
    pub at: Nanos,
}
