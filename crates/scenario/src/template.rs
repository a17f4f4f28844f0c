//! Texts with `{{...}}` in them: read at load, filled in for each journey.
//!
//! What is filled in is made harmless for the place where it stands, so no value can end a line of a request's
//! head, leave its segment of a path, or close a string of JSON. Which names there are is the business of
//! [`Scope`](crate::scope::Scope).

use std::borrow::Cow;
use std::fmt::Write;

use crate::distribution::Distribution;
use crate::escape::{self, Escape};
use crate::random::{draw, uuid};

/// A text, ready to be filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Text that came from the environment: sent as any other, but not shown.
    Hidden {
        variable: String,
        text: String,
    },
    Value {
        source: Value,
        escape: Escape,
    },
}

/// Where a value comes from.
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
    /// Drawn from a distribution.
    Drawn {
        distribution: Distribution,
        id: u64,
    },
    Uuid {
        id: u64,
    },
}

/// What values are looked up in.
pub(crate) trait Moment {
    fn captured(&self, slot: u16) -> &str;
    fn cell(&self, table: u16, column: u16) -> &str;
    fn seed(&self) -> u64;
    /// The journey's number in the run.
    fn n(&self) -> u64;
    /// Whether it is for eyes, and shows only what they may see.
    fn is_shown(&self) -> bool {
        false
    }
}

impl Template {
    pub(crate) fn text(text: impl Into<String>) -> Template {
        Template { pieces: vec![Piece::Text(text.into())] }
    }

    /// The value of a variable of the environment.
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

    /// The text, where nothing has to be filled in.
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
                // Unreserved, so that it looks the same wherever it is put.
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
        let draw = |id| draw(moment.seed(), moment.n(), id);
        match self {
            Value::Captured(slot) => escape::write(moment.captured(slot), escape, out),
            Value::Cell { table, column } => escape::write(moment.cell(table, column), escape, out),
            // What follows is digits, letters and dashes: harmless anywhere.
            Value::Number => out.push_str(&moment.n().to_string()),
            Value::Drawn { distribution, id } => {
                let _ = write!(out, "{}", distribution.value(moment.seed(), moment.n(), id));
            }
            Value::Uuid { id } => out.push_str(&uuid(draw(id), draw(id + 1))),
        }
    }
}

/// A text cut at its `{{...}}`, before the names mean anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cut<'a> {
    Text(&'a str),
    /// What stands between the braces, without the spaces around it.
    Expression(&'a str),
}

impl<'a> Cut<'a> {
    /// What is named, and the filter behind it; nothing for plain text.
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

/// Cuts `text`. `\{{` stands for two braces.
///
/// # Errors
///
/// What is wrong, and the part of the text that it is wrong with.
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
