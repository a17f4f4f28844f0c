//! The contents of a report, as data: the same for text, pages and programs.
//!
//! A view holds figures with their units and the words that name them, the most important first. A layout formats
//! numbers, draws, and leaves out what does not fit; it computes nothing.

mod value;

use serde::{Deserialize, Serialize};

use crate::arithmetic::per_s;

pub(crate) use value::phrase;
pub use value::{Cell, Phrase, Piece, Stress, Value};

/// The version of the view format, `major.minor`: a reader accepts any minor version of its major version.
pub const VIEW_VERSION: &str = "1.3";

units::named_enum! {
    /// The kind of record that a view shows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Subject {
        Drive = "drive",
        Demo = "demo",
        Search = "search",
        Import = "import",
        Watch = "watch",
        Cpu = "cpu",
        Hiccup = "hiccup",
        Disturb = "disturb",
        Profile = "profile",
        Jvm = "jvm",
        /// What changed between two profiles.
        ProfileChange = "profile_change",
        Explain = "explain",
        /// Whether sets of records differ.
        Compare = "compare",
        /// The runs of an experiment.
        Lab = "lab",
    }
}

/// Everything that a report shows of one record, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct View {
    /// The version of this format: see [`VIEW_VERSION`].
    pub view_version: String,
    /// The kind of the record.
    pub kind: Subject,
    /// Absent if the record has no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Absent if the record has no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// Missed thresholds first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    pub sections: Vec<Section>,
}

impl View {
    /// An empty view.
    pub fn new(kind: Subject) -> View {
        View {
            view_version: VIEW_VERSION.to_owned(),
            kind,
            verdict: None,
            headline: None,
            thresholds: Vec::new(),
            sections: Vec::new(),
        }
    }
}

units::named_enum! {
    /// Whether to trust the record.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[cfg_attr(test, derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Word {
        Valid = "valid",
        /// Usable with care: the reasons say why.
        Degraded = "degraded",
        /// Not to be used.
        Invalid = "invalid",
    }
}

/// The verdict with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    pub word: Word,
    /// The word as it is shown; for a run in progress with the addition "so far".
    pub head: Phrase,
    /// How many checks passed or failed.
    pub summary: Phrase,
    /// The most severe first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Checks that could not be made, grouped by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_made: Vec<NotMade>,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    /// The name of the check.
    pub check: String,
    /// What it concerns: `client`, `host`, `server` or `sample`.
    pub concern: String,
    /// The verdict that this reason alone would give; `valid` for a note.
    pub makes: Word,
    /// The finding with its figure.
    pub finding: Phrase,
    /// The limit that it exceeds.
    #[serde(default)]
    pub limit: String,
    /// What to do about it.
    pub advice: Phrase,
}

/// Checks that could not be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NotMade {
    pub checks: Vec<String>,
    pub reason: String,
}

/// The figures that are read first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Headline {
    /// Successful requests per second.
    pub rate: Cell,
    /// Completed journeys per second. If there are any, the requested rate is in journeys too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journey_rate: Option<Cell>,
    /// The rate that an open loop was asked for, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Cell>,
    pub response_p50: Cell,
    pub response_p90: Cell,
    pub response_p99: Cell,
    pub response_max: Cell,
    /// Requests that did not end ok.
    pub errors: Cell,
    /// Failed requests as a share of all scheduled ones.
    pub error_share: Cell,
    /// All that were scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Cell>,
}

/// The result of a `--fail-if` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Missed,
    Undecided,
    Met,
}

/// A condition under which the run fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Threshold {
    /// The condition as given.
    pub fail_if: String,
    pub result: Outcome,
    pub measured: Cell,
    pub limit: Value,
    /// Why it is undecided; for a comparison, the verdict. Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A group of blocks that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Section {
    /// An ID that is stable across versions.
    pub id: String,
    pub blocks: Vec<Block>,
    /// Shown to readers who ask for details (`-v`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub detail: bool,
}

impl Section {
    /// A section of these blocks.
    pub fn new(id: &str, blocks: Vec<Block>) -> Section {
        Section { id: id.to_owned(), blocks, detail: false }
    }

    /// A section for readers who ask for details.
    pub fn detail(id: &str, blocks: Vec<Block>) -> Section {
        Section { detail: true, ..Section::new(id, blocks) }
    }
}

/// One thing to lay out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Block {
    Line(Line),
    Advice(Advice),
    Table(Table),
    Distribution(Box<Distribution>),
    Histogram(Histogram),
    Series(Series),
    Waterfall(Waterfall),
}

/// The purpose of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A heading of what follows.
    Title,
    /// A statement with figures.
    Line,
    /// Running text.
    Text,
    /// An explanation of nearby figures.
    Note,
    /// A reason why figures are incomplete.
    Warning,
}

/// Words with figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    pub role: Role,
    /// A label of one or two words; empty if the text needs none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    pub text: Phrase,
}

impl Block {
    /// A line without a label.
    pub fn line(role: Role, text: Phrase) -> Block {
        Block::Line(Line { role, label: String::new(), text })
    }

    /// A line with a label.
    pub fn labelled(role: Role, label: &str, text: Phrase) -> Block {
        Block::Line(Line { role, label: label.to_owned(), text })
    }
}

/// A finding with its figures, why it matters, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// The ID of the rule that made it, which is stable across versions.
    pub rule: String,
    pub finding: Phrase,
    pub reason: Phrase,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Column {
    pub id: String,
    pub title: String,
    /// The unit of its figures, as in [`Value`].
    pub unit: String,
    /// The meaning of the figures.
    pub meaning: String,
}

/// A row of a table: a cell for each column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Row {
    pub cells: Vec<Cell>,
    /// Whether this row is a sum of the others, or is highlighted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key: bool,
    /// Text shown below the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Phrase>,
}

impl Row {
    /// An ordinary row.
    pub fn new(cells: Vec<Cell>) -> Row {
        Row { cells, key: false, note: None }
    }

    /// A row that sums up others.
    pub fn key(cells: Vec<Cell>) -> Row {
        Row { cells, key: true, note: None }
    }
}

/// Rows of figures, in display order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Table {
    /// An ID that is stable across versions.
    pub id: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
}

impl Table {
    /// Columns as (id, title, unit, meaning).
    pub fn new(id: &str, columns: &[(&str, &str, &str, &str)], rows: Vec<Row>) -> Table {
        let column = |&(id, title, unit, meaning): &(&str, &str, &str, &str)| Column {
            id: id.to_owned(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            meaning: meaning.to_owned(),
        };
        Table { id: id.to_owned(), columns: columns.iter().map(column).collect(), rows }
    }
}

/// A percentile with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentile {
    /// `p99.9`.
    pub name: String,
    /// Between 0 and 1.
    pub q: f64,
    pub value: Cell,
}

/// The percentiles for which the sample is large enough, each with its confidence interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Distribution {
    pub id: String,
    pub title: Phrase,
    pub count: Cell,
    pub min: Cell,
    pub mean: Cell,
    pub max: Cell,
    pub percentiles: Vec<Percentile>,
}

/// How many values are in each range.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Histogram {
    pub id: String,
    pub bins: Vec<Bin>,
}

/// The number of values from `from` up to the `from` of the next bin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bin {
    pub from: Value,
    pub count: u64,
}

/// What happened in each interval of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    pub id: String,
    pub title: Phrase,
    /// Whole intervals only.
    pub points: Vec<Point>,
}

/// Neighbouring intervals of a series as one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SeriesRates {
    /// Throughput.
    pub ok_per_s: f64,
    /// Requests that became due.
    pub due_per_s: f64,
    /// Whether a request failed in them.
    pub failed: bool,
}

impl Series {
    /// The rates of the series, with every `count` intervals as one; the last one may be of fewer.
    pub fn rates(&self, count: usize) -> impl Iterator<Item = SeriesRates> {
        self.points.chunks(count.max(1)).map(|points| {
            let length = points.iter().map(|point| point.length_ns).sum();
            SeriesRates {
                ok_per_s: per_s(points.iter().map(|point| point.ok).sum(), length),
                due_per_s: per_s(points.iter().map(|point| point.due).sum(), length),
                failed: points.iter().any(|point| point.failed > 0),
            }
        })
    }
}

/// One interval of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    pub start_ns: u64,
    pub length_ns: u64,
    pub ok: u64,
    pub failed: u64,
    /// Requests that became due.
    pub due: u64,
}

/// One request, or the mean of several, from left to right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Waterfall {
    pub id: String,
    pub head: Phrase,
    pub total_ns: u64,
    pub parts: Vec<Part>,
}

/// A part of a waterfall, with its position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    pub name: String,
    pub start_ns: u64,
    pub length_ns: u64,
    /// What caused it; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
}
