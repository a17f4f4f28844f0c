//! Places: a span of the file or of a `--set`, as `file:line:column`; and what is wrong there.

use std::ops::Range;

use thiserror::Error;

/// Why a scenario was refused: where, what, and what to do, in one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {what}")]
pub struct Mistake {
    /// `file:line:column`, or the `--set` it came from.
    pub place: String,
    pub what: String,
}

/// A mistake before its place has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slip {
    pub span: Span,
    pub what: String,
}

pub(crate) type Span = Range<usize>;

impl Slip {
    pub(crate) fn new(span: &Span, what: impl Into<String>) -> Slip {
        Slip { span: span.clone(), what: what.into() }
    }
}

/// The texts that make up a scenario: the file, then each `--set`, as if they were one text.
#[derive(Debug, Clone)]
pub(crate) struct Sources {
    name: String,
    file: String,
    /// Each `--set` with its offset after the file.
    sets: Vec<(usize, String)>,
}

impl Sources {
    pub(crate) fn new(name: &str, file: &str) -> Sources {
        Sources { name: name.to_owned(), file: file.to_owned(), sets: Vec::new() }
    }

    /// Adds a `--set`. Returns its span.
    pub(crate) fn add_set(&mut self, text: &str) -> Span {
        let start = self.sets.last().map_or(self.file.len() + 1, |(start, last)| start + last.len() + 1);
        self.sets.push((start, text.to_owned()));
        start..start + text.len()
    }

    pub(crate) fn is_set(&self, span: &Span) -> bool {
        span.start > self.file.len()
    }

    /// The text of the file at `span`; empty for a `--set`.
    pub(crate) fn slice(&self, span: &Span) -> &str {
        self.file.get(span.clone()).unwrap_or("")
    }

    /// `span`, narrowed to the first `part` within it.
    pub(crate) fn narrow(&self, span: &Span, part: &str) -> Span {
        match self.slice(span).find(part) {
            Some(at) => span.start + at..span.start + at + part.len(),
            None => span.clone(),
        }
    }

    pub(crate) fn place(&self, span: &Span) -> String {
        if self.is_set(span) {
            let set = self.sets.iter().rev().find(|(start, _)| *start <= span.start);
            return format!("--set {}", set.map_or("", |(_, text)| text));
        }
        let before = self.file.get(..span.start).unwrap_or(&self.file);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        format!("{}:{line}:{column}", self.name)
    }

    pub(crate) fn mistake(&self, slip: &Slip) -> Mistake {
        // An error is one line, whatever texts it quotes.
        let what =
            slip.what.split(['\n', '\r']).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        Mistake { place: self.place(&slip.span), what }
    }
}

/// The name in `known` that `given` was probably meant to be.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(given);
    let near =
        known.into_iter().map(|name| (distance(&folded, &fold(name)), name)).min_by_key(|(far, _)| *far);
    // Up to a third of the letters may differ; beyond that it is another word.
    near.filter(|(far, name)| *far <= (name.len().max(given.len()) / 3).max(1) && *far < name.len())
        .map(|(_, name)| name)
}

/// `; did you mean ...`, or nothing if no name is near.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

/// Names that differ only in case, dashes and underscores count as equal when guessing a typo.
fn fold(name: &str) -> Vec<char> {
    name.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Number of letters to insert, delete, replace or swap with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_could_be_meant() {
        let known = ["duration", "requests", "rate", "connect_timeout"];
        for (given, meant) in [
            ("duraton", Some("duration")),
            ("reqeusts", Some("requests")),
            ("connect-timeout", Some("connect_timeout")),
            ("RATE", Some("rate")),
            ("colour", None),
        ] {
            assert_eq!(nearest(given, known), meant, "{given}");
        }
    }

    #[test]
    fn a_place_is_a_line_and_a_column_or_a_set() {
        let mut sources = Sources::new("a.toml", "x = 1\ny = é2\n");
        let first = sources.add_set("run.rate=1/s");
        let second = sources.add_set("vars.a=b");
        assert_eq!(sources.place(&(4..5)), "a.toml:1:5");
        assert_eq!(sources.place(&(12..13)), "a.toml:2:6");
        assert_eq!(sources.place(&first), "--set run.rate=1/s");
        assert_eq!(sources.place(&second), "--set vars.a=b");
        assert_eq!(sources.narrow(&(6..13), "2"), 12..13);
    }
}
