//! Texts with `{{...}}` in them: parsed at load, filled in for each journey.
//!
//! Values are escaped for their place, so that none can end a line of a request's head, leave its path segment, or
//! close a JSON string. Which names exist is decided by [`Scope`](crate::scope::Scope).

use std::borrow::Cow;
use std::fmt::Write;

use crate::distribution::Distribution;
use crate::escape::{self, Escape};
use crate::random::{draw, uuid};

/// A parsed text, ready to be filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Text that came from the environment: sent like any other, but not shown.
    Hidden {
        variable: String,
        text: String,
    },
    Value {
        source: Value,
        escape: Escape,
    },
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Captured by an earlier step of the journey.
    Captured(u16),
    /// A column of the journey's row.
    Cell {
        table: u16,
        column: u16,
    },
    /// The journey's number in the run.
    Number,
    /// Drawn at random from a distribution.
    Drawn {
        distribution: Distribution,
        id: u64,
    },
    Uuid {
        id: u64,
    },
}

/// Provides the values to fill in.
pub(crate) trait Moment {
    fn captured(&self, slot: u16) -> &str;
    fn cell(&self, table: u16, column: u16) -> &str;
    fn seed(&self) -> u64;
    /// The journey's number in the run.
    fn n(&self) -> u64;
    /// The number of a draw, which differs between the repetitions of a step.
    fn draw_id(&self, id: u64) -> u64 {
        id
    }
    /// Whether the text is for display, so that hidden values must not appear in it.
    fn is_shown(&self) -> bool {
        false
    }
}

impl Template {
    pub(crate) fn text(text: impl Into<String>) -> Template {
        Template { pieces: vec![Piece::Text(text.into())] }
    }

    /// The value of an environment variable.
    pub(crate) fn hidden(variable: &str, text: String) -> Template {
        Template { pieces: vec![Piece::Hidden { variable: variable.to_owned(), text }] }
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        match (self.pieces.last_mut(), piece) {
            (Some(Piece::Text(last)), Piece::Text(more)) => last.push_str(&more),
            (_, piece) => self.pieces.push(piece),
        }
    }

    pub(crate) fn append(&mut self, other: Template) {
        other.pieces.into_iter().for_each(|piece| self.push(piece));
    }

    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text, if nothing has to be filled in.
    pub(crate) fn fixed(&self) -> Option<Cow<'_, str>> {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) | Piece::Hidden { text, .. } => Some(text.as_str()),
            Piece::Value { .. } => None,
        });
        match texts.collect::<Option<Vec<&str>>>()?.as_slice() {
            [one] => Some(Cow::Borrowed(one)),
            several => Some(Cow::Owned(several.concat())),
        }
    }

    pub(crate) fn hides(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Hidden { .. }))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = (Value, Escape)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) | Piece::Hidden { .. } => None,
            Piece::Value { source, escape } => Some((*source, *escape)),
        })
    }

    pub(crate) fn render(&self, moment: &impl Moment) -> String {
        let mut out = String::new();
        self.render_into(moment, &mut out);
        out
    }

    pub(crate) fn render_into(&self, moment: &impl Moment, out: &mut String) {
        for piece in &self.pieces {
            match piece {
                // Unreserved characters, so that it looks the same in every place.
                Piece::Hidden { variable, .. } if moment.is_shown() => {
                    let _ = write!(out, "~env.{variable}~");
                }
                Piece::Text(text) | Piece::Hidden { text, .. } => out.push_str(text),
                Piece::Value { source, escape } => source.write(moment, *escape, out),
            }
        }
    }
}

impl Value {
    fn write(self, moment: &impl Moment, escape: Escape, out: &mut String) {
        let draw = |id| draw(moment.seed(), moment.n(), moment.draw_id(id));
        match self {
            Value::Captured(slot) => escape::write(moment.captured(slot), escape, out),
            Value::Cell { table, column } => escape::write(moment.cell(table, column), escape, out),
            // The remaining values are digits, letters and dashes: harmless anywhere.
            Value::Number => out.push_str(&moment.n().to_string()),
            Value::Drawn { distribution, id } => {
                let _ = write!(out, "{}", distribution.value(moment.seed(), moment.n(), moment.draw_id(id)));
            }
            Value::Uuid { id } => out.push_str(&uuid(draw(id), draw(id + 1))),
        }
    }
}

/// A text cut at its `{{...}}`, before the names are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut<'a> {
    Text(&'a str),
    /// The text between the braces, without surrounding spaces.
    Expression(&'a str),
}

impl<'a> Cut<'a> {
    /// The name, and the filter after it; `None` for plain text.
    pub(crate) fn expression(&self) -> Option<(&'a str, &'a str)> {
        match self {
            Cut::Text(_) => None,
            Cut::Expression(text) => {
                let (name, filter) = text.split_once('|').unwrap_or((text, ""));
                Some((name.trim(), filter.trim()))
            }
        }
    }
}

/// Cuts `text`. `\{{` is an escape for two braces.
///
/// # Errors
///
/// What is wrong, and the part of the text that is wrong.
pub(crate) fn cut(text: &str) -> Result<Vec<Cut<'_>>, (String, &str)> {
    let mut cuts = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        if let Some(before) = rest[..open].strip_suffix('\\') {
            cuts.push(Cut::Text(before));
            cuts.push(Cut::Text("{{"));
            rest = &rest[open + 2..];
            continue;
        }
        cuts.push(Cut::Text(&rest[..open]));
        let inner = &rest[open + 2..];
        let Some(close) = inner.find("}}") else {
            return Err((
                "`{{` without `}}`; close it, or write `\\{{` for the braces themselves".into(),
                &rest[open..],
            ));
        };
        let expression = inner[..close].trim();
        if expression.is_empty() {
            let what = "`{{}}` names nothing; write for example `{{n}}`, or `\\{{` for the braces themselves";
            return Err((what.into(), &rest[open..open + close + 4]));
        }
        cuts.push(Cut::Expression(expression));
        rest = &inner[close + 2..];
    }
    cuts.push(Cut::Text(rest));
    cuts.retain(|cut| *cut != Cut::Text(""));
    Ok(cuts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_their_braces() {
        use Cut::{Expression, Text};
        for (text, cuts) in [
            ("", vec![]),
            ("a", vec![Text("a")]),
            ("a{{ b }}c", vec![Text("a"), Expression("b"), Text("c")]),
            ("{{a}}{{b|c}}", vec![Expression("a"), Expression("b|c")]),
            (r"a\{{b}}", vec![Text("a"), Text("{{"), Text("b}}")]),
            ("{a}", vec![Text("{a}")]),
        ] {
            assert_eq!(cut(text), Ok(cuts), "{text}");
        }
        assert_eq!(cut("a{{b").unwrap_err().1, "{{b");
        assert_eq!(cut("a{{ }}b").unwrap_err().1, "{{ }}");
    }
}
