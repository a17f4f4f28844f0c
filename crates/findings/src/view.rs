//! What a report says, as data: the same for text, pages and programs.
//!
//! A view holds figures with their units and the words that name them, in the order of their weight. Whoever lays it
//! out formats numbers, draws, and leaves out what has no room; it works out nothing.

mod value;

use serde::{Deserialize, Serialize};

pub(crate) use value::phrase;
pub use value::{Cell, Phrase, Piece, Stress, Value};

/// The version of the form of a view, `major.minor`: a reader takes any minor of its major.
pub const VIEW_VERSION: &str = "1.0";

units::named_enum! {
    /// What a view is of.
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
    }
}

/// Everything that a report says of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct View {
    /// Of the form of this document: see [`VIEW_VERSION`].
    pub view_version: String,
    /// What the record is of.
    pub kind: Subject,
    /// Absent where nothing is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Absent where the record has no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<Headline>,
    /// The missed ones first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    pub sections: Vec<Section>,
}

impl View {
    /// A view that says nothing yet.
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

/// Whether to believe the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Valid,
    /// Usable with care: the reasons say where.
    Degraded,
    /// Not to be used.
    Invalid,
}

/// The word and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    pub word: Word,
    /// The word as it is shown; it may say that it is of a part only.
    pub head: Phrase,
    /// How many checks held.
    pub summary: Phrase,
    /// The gravest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Checks that could not be made, those of one reason together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_made: Vec<NotMade>,
}

/// A check that did not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reason {
    /// The name of the check.
    pub check: String,
    /// Whom it concerns: `client`, `host`, `server` or `sample`.
    pub concern: String,
    /// What this reason alone makes of the record; `valid` is a note.
    pub makes: Word,
    /// The finding with its figure, and the limit that it exceeds.
    pub finding: Phrase,
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
    pub response_p50: Cell,
    pub response_p90: Cell,
    pub response_p99: Cell,
    pub response_max: Cell,
    /// Requests that did not end ok.
    pub errors: Cell,
    /// Of all that were scheduled.
    pub error_share: Cell,
}

/// What became of a condition that was stated with `--fail-if`.
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
    /// As it was given.
    pub fail_if: String,
    pub result: Outcome,
    pub measured: Cell,
    pub limit: Value,
    /// Why nobody can tell; absent where it was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What belongs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Section {
    /// Stable across versions.
    pub id: String,
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section of these blocks.
    pub fn new(id: &str, blocks: Vec<Block>) -> Section {
        Section { id: id.to_owned(), blocks }
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

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Names what follows.
    Title,
    /// One statement of figures.
    Line,
    /// Running text.
    Text,
    /// What explains the figures next to it.
    Note,
    /// What makes figures incomplete.
    Warning,
}

/// Words with figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line {
    pub role: Role,
    /// What the line is about, in a word or two; empty where the words say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    pub text: Phrase,
}

impl Block {
    /// A line without a label.
    pub fn line(role: Role, text: Phrase) -> Block {
        Block::Line(Line { role, label: String::new(), text })
    }

    /// A line that begins with what it is about.
    pub fn labelled(role: Role, label: &str, text: Phrase) -> Block {
        Block::Line(Line { role, label: label.to_owned(), text })
    }
}

/// A finding with its figures, why it matters, and what to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advice {
    /// The rule that made it: stable across versions.
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
    /// Of its figures, as in [`Value`].
    pub unit: String,
    /// What the figures are.
    pub meaning: String,
}

/// A row of a table: a cell for each column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Row {
    pub cells: Vec<Cell>,
    /// It sums up the others, or stands out of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub key: bool,
    /// Shown below the row where the row itself has no room.
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

/// Rows of figures, in the order in which they are read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Table {
    /// Stable across versions.
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

/// A percentile by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Percentile {
    /// `p99.9`.
    pub name: String,
    /// Between 0 and 1.
    pub q: f64,
    pub value: Cell,
}

/// The percentiles that a sample carries, each with its interval.
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

/// Values from `from` up to that of the next bin.
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

/// One interval of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Point {
    pub start_ns: u64,
    pub length_ns: u64,
    pub ok: u64,
    pub failed: u64,
    /// What became due.
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

/// A part of a waterfall, at its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Part {
    pub name: String,
    pub start_ns: u64,
    pub length_ns: u64,
    /// Who was in the way; empty where nobody is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
}
