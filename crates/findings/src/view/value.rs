//! Figures with their units, and the words around them.

use std::collections::BTreeMap;
use std::fmt;

use record::document::{Quantity, Reading};
use record::escape_text;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos, count, percent, plural, rate};

/// A figure and its unit: never a formatted number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "unit", content = "value", rename_all = "snake_case")]
pub enum Value {
    /// A duration, or an offset from the start of the record, in nanoseconds.
    Ns(u64),
    /// A difference of two durations in nanoseconds.
    NsChange(i64),
    /// A number of things that are named by the column or the surrounding words.
    Count(u64),
    /// A number of things that are named here, in the singular.
    Items {
        count: u64,
        noun: String,
    },
    /// Events per second.
    PerSecond(f64),
    /// A part of a whole: 1 is all of it.
    Share(f64),
    /// A difference of two shares: 0.01 is one percentage point.
    ShareChange(f64),
    /// How much larger one figure is than another: 0.05 is 5 % more.
    RatioChange(f64),
    /// Seconds of CPU time.
    CpuSeconds(f64),
    /// Percent of the available CPU time: of one CPU or of all, as the table says.
    CpuPercent(f64),
    Bytes(u64),
    /// A difference of two sizes in bytes.
    BytesChange(i64),
    /// A ratio, or an average of counts: one decimal place is enough.
    Number(f64),
    /// A number that names something: a process, a port.
    Id(u64),
    /// Text from the record. It can come from a stranger: show it as text, never as markup.
    Text(String),
}

impl Value {
    /// `noun` in the singular.
    pub fn items(count: u64, noun: &str) -> Value {
        Value::Items { count, noun: noun.to_owned() }
    }

    /// The figure alone, for drawing: bars and charts are scaled by it. `None` for text.
    pub fn magnitude(&self) -> Option<f64> {
        match self {
            Value::Ns(n) | Value::Count(n) | Value::Bytes(n) | Value::Id(n) => Some(*n as f64),
            Value::Items { count, .. } => Some(*count as f64),
            Value::NsChange(change) | Value::BytesChange(change) => Some(*change as f64),
            Value::PerSecond(n)
            | Value::Share(n)
            | Value::ShareChange(n)
            | Value::RatioChange(n)
            | Value::CpuSeconds(n)
            | Value::CpuPercent(n)
            | Value::Number(n) => Some(*n),
            Value::Text(_) => None,
        }
    }
}

impl From<Quantity> for Value {
    fn from(quantity: Quantity) -> Value {
        match quantity {
            Quantity::Ns(ns) => Value::Ns(ns),
            Quantity::PerS(per_s) => Value::PerSecond(per_s),
            Quantity::Share(share) => Value::Share(share),
            Quantity::Count(n) => Value::Count(n),
        }
    }
}

/// Formats for running text: three significant digits, text without control characters.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Value::Ns(ns) => Nanos(*ns).to_string(),
            Value::NsChange(change) => {
                let sign = if *change < 0 { '-' } else { '+' };
                format!("{sign}{}", Nanos(change.unsigned_abs()))
            }
            Value::Count(n) => count(*n),
            Value::Items { count, noun } => plural(*count, &escape_text(noun)),
            Value::PerSecond(per_s) => rate(*per_s),
            Value::Share(share) => percent(*share),
            Value::ShareChange(change) => format!("{:+.1}", change * 100.0),
            Value::RatioChange(change) => {
                let percent = change * 100.0;
                let places = if percent.abs() < 0.995 { 2 } else { 1 };
                format!("{percent:+.places$}%")
            }
            Value::CpuSeconds(n) | Value::CpuPercent(n) => four_digits(*n),
            Value::Bytes(n) => Bytes(*n).to_string(),
            Value::BytesChange(change) => {
                let sign = if *change < 0 { '-' } else { '+' };
                format!("{sign}{}", Bytes(change.unsigned_abs()))
            }
            Value::Number(n) => format!("{n:.1}"),
            Value::Id(n) => n.to_string(),
            Value::Text(text) => escape_text(text),
        };
        f.pad(&text)
    }
}

/// CPU time: `44.17`, `3.391`, `0.04416`; below a thousandth, millionths.
fn four_digits(value: f64) -> String {
    let size = value.abs();
    if size < 5e-7 {
        return "0.000".to_owned();
    }
    // By what will be printed: 9.99996 is 10.00, not 10.000.
    let digits = |places: i32| format!("{:.1$}", value, places.clamp(0, 6) as usize);
    let places = 3 - size.log10().floor() as i32;
    let text = digits(places);
    let grown = text.parse::<f64>().map_or(0.0, f64::abs).log10().floor() > size.log10().floor();
    if grown { digits(places - 1) } else { text }
}

/// A cell of a table or a figure in a sentence: a value, or the reason why there is none. Absent is never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    Figure(Value),
    /// A figure with its 95 % confidence interval; no upper end if that is among requests without a response.
    Interval {
        value: Value,
        low: Value,
        high: Option<Value>,
    },
    /// A lower bound: the true figure is above it.
    Above(Value),
    /// A figure with a large relative error.
    Doubtful(Value),
    /// The sample is too small for this percentile, which needs at least this many values.
    TooFew {
        needed: u64,
    },
    /// There is no figure, for this reason; empty if the record gives no reason.
    Absent {
        because: String,
    },
}

impl Cell {
    /// An absent value without a reason: it does not apply here.
    pub fn absent() -> Cell {
        Cell::Absent { because: String::new() }
    }

    /// A duration in nanoseconds, or none.
    pub fn ns(ns: Option<u64>) -> Cell {
        ns.map_or_else(Cell::absent, |ns| Cell::Figure(Value::Ns(ns)))
    }

    /// A figure, or none.
    pub fn maybe(value: Option<Value>) -> Cell {
        value.map_or_else(Cell::absent, Cell::Figure)
    }

    /// The figure or its lower bound, if there is one.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Cell::Figure(value)
            | Cell::Interval { value, .. }
            | Cell::Above(value)
            | Cell::Doubtful(value) => Some(value),
            Cell::TooFew { .. } | Cell::Absent { .. } => None,
        }
    }
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell::Figure(value)
    }
}

impl From<Nanos> for Cell {
    fn from(value: Nanos) -> Cell {
        Cell::Figure(Value::Ns(value.0))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Figure(Value::Text(text.to_owned()))
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Figure(Value::Text(text))
    }
}

impl From<Reading> for Cell {
    fn from(reading: Reading) -> Cell {
        match reading {
            Reading::Known(figure) => Cell::Figure(figure.into()),
            Reading::Above(bound) => Cell::Above(bound.into()),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cell::Figure(value) | Cell::Interval { value, .. } => value.fmt(f),
            Cell::Above(value) => f.pad(&format!("> {value}")),
            Cell::Doubtful(value) => f.pad(&format!("{value}?")),
            Cell::TooFew { .. } => f.pad("too few"),
            Cell::Absent { .. } => f.pad("-"),
        }
    }
}

/// Words with placeholders for figures: `{name}` is the figure of that name, `{*name}` the most important one,
/// `{!name}` one that is bad unless it is zero.
///
/// The figures are the evidence for the words: a reader of the JSON finds each with its unit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Phrase {
    pub words: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Cell>,
}

/// How a figure is highlighted in its phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stress {
    None,
    /// It is the most important figure.
    Key,
    /// It is bad unless it is zero.
    Bad,
}

impl Stress {
    /// Parses a placeholder: the emphasis, and the name without its sign.
    fn of(place: &str) -> (Stress, &str) {
        match (place.strip_prefix('*'), place.strip_prefix('!')) {
            (Some(name), _) => (Stress::Key, name),
            (_, Some(name)) => (Stress::Bad, name),
            _ => (Stress::None, place),
        }
    }
}

/// A piece of a phrase, for display.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece<'a> {
    Words(&'a str),
    Figure { cell: &'a Cell, stress: Stress },
}

impl Phrase {
    /// Words whose figures are given by [`Phrase::with`].
    pub fn new(words: impl Into<String>) -> Phrase {
        Phrase { words: words.into(), figures: BTreeMap::new() }
    }

    /// A text from a record, taken literally: nothing in it is a placeholder.
    pub fn text(text: impl Into<String>) -> Phrase {
        Phrase::new("{text}").with("text", text.into())
    }

    /// Sets the figure for the placeholder `{name}`.
    #[must_use]
    pub fn with(mut self, name: &str, figure: impl Into<Cell>) -> Phrase {
        self.figures.insert(name.to_owned(), figure.into());
        self
    }

    /// This phrase, then `between`, then `next`. Names that occur in both get a number to distinguish them.
    #[must_use]
    pub fn then(mut self, between: &str, next: Phrase) -> Phrase {
        let mut words = next.words;
        for (name, figure) in next.figures {
            let free = (2..).map(|n| format!("{name}_{n}"));
            let free =
                std::iter::once(name.clone()).chain(free).find(|name| !self.figures.contains_key(name));
            let free = free.expect("there are more numbers than figures");
            if free != name {
                for sign in ["", "*", "!"] {
                    words = words.replace(&format!("{{{sign}{name}}}"), &format!("{{{sign}{free}}}"));
                }
            }
            self.figures.insert(free, figure);
        }
        self.words.push_str(between);
        self.words.push_str(&words);
        self
    }

    /// All `phrases`, separated by `between`; empty if there are none.
    pub fn join(phrases: impl IntoIterator<Item = Phrase>, between: &str) -> Phrase {
        phrases.into_iter().reduce(|all, next| all.then(between, next)).unwrap_or_default()
    }

    /// The pieces in order. A placeholder without a figure is kept as text.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::new();
        let mut rest = self.words.as_str();
        while let Some(open) = rest.find('{') {
            let place = rest[open + 1..].split_once('}').and_then(|(name, after)| {
                let (stress, name) = Stress::of(name);
                Some((Piece::Figure { cell: self.figures.get(name)?, stress }, after))
            });
            let Some((figure, after)) = place else {
                pieces.push(Piece::Words(&rest[..=open]));
                rest = &rest[open + 1..];
                continue;
            };
            if open > 0 {
                pieces.push(Piece::Words(&rest[..open]));
            }
            pieces.push(figure);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Words(rest));
        }
        pieces
    }
}

/// The words with their figures, as running text.
impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in self.pieces() {
            match piece {
                Piece::Words(words) => f.write_str(&escape_text(words))?,
                Piece::Figure { cell, .. } => write!(f, "{cell}")?,
            }
        }
        Ok(())
    }
}

/// `phrase!("{failed} of {all} failed", failed = Value::Count(1), all = Value::Count(9))`.
#[macro_export]
macro_rules! phrase {
    ($words:expr $(, $name:ident = $figure:expr)* $(,)?) => {
        $crate::view::Phrase::new($words)$(.with(stringify!($name), $figure))*
    };
}
pub(crate) use phrase;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_their_places_and_a_stranger_s_braces_stay_text() {
        let phrase = phrase!("{*a} of {b}: {c} {d}", a = Value::Count(3), b = "{a}", c = Nanos(1_500));
        assert_eq!(phrase.to_string(), "3 of {a}: 1.50 us {d}");
    }

    #[test]
    fn phrases_that_share_a_name_keep_their_figures() {
        let one = |n| phrase!("{n} x", n = Value::Count(n));
        assert_eq!(Phrase::join([one(1), one(2), one(3)], ", ").to_string(), "1 x, 2 x, 3 x");
    }

    #[test]
    fn figures_have_four_digits() {
        for (value, text) in [
            (0.0, "0.000"),
            (44.174, "44.17"),
            (3.3912, "3.391"),
            (0.044_163, "0.04416"),
            (9.999_96, "10.00"),
            (100.0, "100.0"),
            (1_234.56, "1235"),
            (-0.5, "-0.5000"),
            (0.000_012, "0.000012"),
            (1e-9, "0.000"),
        ] {
            assert_eq!(four_digits(value), text);
        }
    }
}
