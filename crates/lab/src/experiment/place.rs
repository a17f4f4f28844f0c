//! Where in an experiment file something is wrong: `file:line:column`, and what was probably meant.

use std::ops::Range;

/// A mistake before its place has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slip {
    pub span: Range<usize>,
    pub what: String,
}

impl Slip {
    pub(crate) fn new(span: Range<usize>, what: impl Into<String>) -> Slip {
        Slip { span, what: what.into() }
    }

    /// One line with the place in the file `name`, whose text is `text`.
    pub(crate) fn line(&self, name: &str, text: &str) -> String {
        let before = text.get(..self.span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        // A message of the parser may have lines of its own.
        let what = self.what.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{name}:{line}:{column}: {what}")
    }
}

/// An error of the TOML parser in our words.
pub(crate) fn slip_of(error: &toml::de::Error) -> Slip {
    let message = error.message();
    let unknown =
        message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `"));
    let what = match unknown {
        Some(rest) => {
            let (given, expected) = rest.split_once('`').unwrap_or((rest, ""));
            let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
            let kind = if message.starts_with("unknown field") { "key" } else { "value" };
            format!("unknown {kind} `{given}`{}", meant_or_known(given, &known))
        }
        None => ["u16", "u32", "u64", "usize"].iter().fold(message.to_owned(), |text, number| {
            text.replace(&format!("expected {number}"), "expected a whole number")
        }),
    };
    Slip::new(error.span().unwrap_or(0..0), what)
}

/// `; did you mean ...?`, or the names that there are.
pub(crate) fn meant_or_known(given: &str, known: &[&str]) -> String {
    let near = known.iter().map(|name| (strsim::osa_distance(given, name), name)).min();
    match near.filter(|(far, name)| *far <= (name.len().max(given.len()) / 3).max(1)) {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None if known.is_empty() => "; there is none".to_owned(),
        None => format!("; there are {}", known.join(", ")),
    }
}
