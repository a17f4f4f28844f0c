//! The names that a text may use, and what each refers to.
//!
//! A name is a variable of the file, a column of its data, a value captured by an earlier step, an environment
//! variable, or built in. An unknown name is an error at load, with its place and the nearest known name.

use std::collections::BTreeMap;

use crate::distribution::{self, Distribution, Shape};
use crate::escape::{Escape, fits_header};
use crate::place::{Slip, Sources, Span, did_you_mean};
use crate::template::{Cut, Piece, Template, Value, cut};

/// The kind of place a text is in, which decides how values in it are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Context {
    Path,
    /// A value of a query or a form.
    Form,
    Header,
    Body,
    /// A string within a JSON body.
    Json,
    /// The value of a variable of the file: only what does not depend on a step.
    Variable,
}

/// The names of a scenario. Those of captures change with the journey that is being read.
pub(crate) struct Scope<'a> {
    pub sources: &'a Sources,
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    pub seed: u64,
    variables: BTreeMap<String, Template>,
    pub tables: Vec<TableUse>,
    captured: Vec<Captured>,
    /// Captured elsewhere: by a later step, or in another journey.
    elsewhere: BTreeMap<String, String>,
    draws: u64,
}

/// How the texts use a data file.
pub(crate) struct TableUse {
    pub name: String,
    pub columns: Vec<ColumnUse>,
}

pub(crate) struct ColumnUse {
    pub name: String,
    /// Where it is first used.
    pub span: Span,
    pub needs: Needs,
}

/// A value captured by a step of the journey that is being read.
#[derive(Debug, Clone)]
pub(crate) struct Captured {
    pub name: String,
    /// What the texts of later steps require of it.
    pub needs: Needs,
}

/// What a value must satisfy in the places where it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Needs {
    /// No control characters, because it is used in a header.
    pub header: bool,
    pub number: bool,
}

impl Needs {
    pub(crate) fn hold(self, value: &str) -> bool {
        (!self.header || fits_header(value)) && (!self.number || crate::escape::is_json_number(value))
    }

    fn add(&mut self, escape: Escape) {
        self.header |= escape == Escape::Header;
        self.number |= escape == Escape::Number;
    }
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        sources: &'a Sources,
        environment: &'a dyn Fn(&str) -> Option<String>,
        seed: u64,
        tables: impl Iterator<Item = String>,
    ) -> Scope<'a> {
        Scope {
            sources,
            environment,
            seed,
            variables: BTreeMap::new(),
            tables: tables.map(|name| TableUse { name, columns: Vec::new() }).collect(),
            captured: Vec::new(),
            elsewhere: BTreeMap::new(),
            draws: 0,
        }
    }

    pub(crate) fn add_variable(&mut self, name: &str, template: Template) {
        self.variables.insert(name.to_owned(), template);
    }

    /// Begins a journey: nothing is captured yet. `elsewhere` has the names that are captured elsewhere.
    pub(crate) fn begin_journey(&mut self, elsewhere: BTreeMap<String, String>) {
        self.captured.clear();
        self.elsewhere = elsewhere;
    }

    /// Continues with another step of the journey: `elsewhere` has the captured names that it cannot use.
    pub(crate) fn look_elsewhere(&mut self, elsewhere: BTreeMap<String, String>) {
        self.elsewhere = elsewhere;
    }

    /// A step captures `name`, so the texts of later steps may use it. Returns its slot.
    pub(crate) fn capture(&mut self, name: &str, span: &Span) -> Result<u16, Slip> {
        if let Some(what) = self.taken(name) {
            return Err(Slip::new(
                span,
                format!("`{name}` is {what} already; give the captured value another name"),
            ));
        }
        if let Some(slot) = self.captured.iter().position(|captured| captured.name == name) {
            // Captured again: the latest value counts.
            return Ok(slot as u16);
        }
        self.captured.push(Captured { name: name.to_owned(), needs: Needs::default() });
        u16::try_from(self.captured.len() - 1).map_err(|_| Slip::new(span, "too many captured values"))
    }

    /// What the journey captured, by slot, now that all its texts have been read.
    pub(crate) fn captured(&self) -> &[Captured] {
        &self.captured
    }

    /// What else has this name already.
    pub(crate) fn taken(&self, name: &str) -> Option<&'static str> {
        match name {
            "n" | "seed" | "uuid" | "random" | "env" => Some("built in"),
            _ if self.variables.contains_key(name) => Some("a variable of the file"),
            _ if self.tables.iter().any(|table| table.name == name) => Some("data of the file"),
            _ => None,
        }
    }

    /// A number for an independent draw.
    pub(crate) fn next_draw(&mut self) -> u64 {
        // Plus two, because a UUID takes two draws.
        self.draws += 2;
        self.draws
    }

    /// Parses a text whose place is `span`.
    pub(crate) fn template(&mut self, text: &str, span: &Span, context: Context) -> Result<Template, Slip> {
        let cuts = cut(text).map_err(|(what, part)| Slip { span: self.sources.narrow(span, part), what })?;
        let mut template = Template::default();
        for cut in cuts {
            match cut {
                Cut::Text(text) => template.push(Piece::Text(own_text(text, context))),
                Cut::Expression(text) => {
                    let span = self.sources.narrow(span, text);
                    let (name, filter) = cut.expression().unwrap_or((text, ""));
                    let escape = escape_of(context, filter, &span)?;
                    template.append(self.value(name, &span, escape, context)?);
                }
            }
        }
        let fixed = template.pieces().iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text),
            // Checked when they were inserted.
            Piece::Hidden { .. } | Piece::Value { .. } => None,
        });
        if context == Context::Header && !fixed.into_iter().all(|text| fits_header(text)) {
            return Err(Slip::new(
                span,
                "the value of a header cannot contain a line break or another control character",
            ));
        }
        Ok(template)
    }

    /// The template that `name` refers to.
    fn value(&mut self, name: &str, span: &Span, escape: Escape, context: Context) -> Result<Template, Slip> {
        let one = |source| {
            let mut template = Template::default();
            template.push(Piece::Value { source, escape });
            Ok(template)
        };
        let words: Vec<&str> = name.split_whitespace().collect();
        match words.as_slice() {
            ["n"] => one(Value::Number),
            ["seed"] => Ok(Template::text(self.seed.to_string())),
            ["uuid"] if escape == Escape::Number => {
                Err(Slip::new(span, "a UUID is not a number; leave out `number`"))
            }
            ["uuid"] => {
                let id = self.next_draw();
                one(Value::Uuid { id })
            }
            ["random", low, high] => {
                let (low, high) = bounds(low, high).ok_or_else(|| {
                    Slip::new(span, format!("`{name}` has no bounds; write for example random 1 100"))
                })?;
                let id = self.next_draw();
                one(Value::Drawn { distribution: Distribution { low, high, shape: Shape::Uniform }, id })
            }
            ["random", ..] => {
                Err(Slip::new(span, format!("`{name}` has no bounds; write for example random 1 100")))
            }
            [shape, ..] if words.len() > 1 && distribution::names().any(|name| name == *shape) => {
                let read =
                    Distribution::parse(&words).unwrap_or_else(|| Err(format!("`{name}` is not known")));
                let distribution = read.map_err(|what| Slip::new(span, what))?;
                let id = self.next_draw();
                one(Value::Drawn { distribution, id })
            }
            [name] => self.named(name, span, escape, context),
            _ => Err(Slip::new(
                span,
                format!("`{name}` is not a name; a value is written {{{{name}}}} or {{{{name|filter}}}}"),
            )),
        }
    }

    fn named(&mut self, name: &str, span: &Span, escape: Escape, context: Context) -> Result<Template, Slip> {
        if let Some(variable) = name.strip_prefix("env.") {
            let value = (self.environment)(variable).ok_or_else(|| {
                Slip::new(
                    span,
                    format!("the environment has no {variable}; set it, or use a variable of [vars]"),
                )
            })?;
            return written(&Template::hidden(variable, value), escape, name, span);
        }
        if let Some(template) = self.variables.get(name) {
            return written(template, escape, name, span);
        }
        if let Some((table, column)) = name.split_once('.')
            && let Some(index) = self.tables.iter().position(|known| known.name == table)
        {
            if context == Context::Variable {
                return Err(Slip::new(
                    span,
                    format!("a variable cannot be used for a row: write `{{{{{name}}}}}` where it is used"),
                ));
            }
            let source = self.cell(index, column, span, escape);
            let mut template = Template::default();
            template.push(Piece::Value { source, escape });
            return Ok(template);
        }
        if let Some(slot) = self.captured.iter().position(|captured| captured.name == name) {
            self.captured[slot].needs.add(escape);
            let mut template = Template::default();
            template.push(Piece::Value { source: Value::Captured(slot as u16), escape });
            return Ok(template);
        }
        Err(self.unknown(name, span))
    }

    fn cell(&mut self, index: usize, column: &str, span: &Span, escape: Escape) -> Value {
        let table = &mut self.tables[index];
        let found = table.columns.iter().position(|known| known.name == column).unwrap_or_else(|| {
            let (name, span) = (column.to_owned(), span.clone());
            table.columns.push(ColumnUse { name, span, needs: Needs::default() });
            table.columns.len() - 1
        });
        table.columns[found].needs.add(escape);
        Value::Cell { table: index as u16, column: found as u16 }
    }

    fn unknown(&self, name: &str, span: &Span) -> Slip {
        if let Some(place) = self.elsewhere.get(name) {
            return Slip::new(span, format!("`{{{{{name}}}}}` is not captured yet: {place}"));
        }
        if let Some((table, _)) = name.split_once('.') {
            let meant =
                did_you_mean(table, self.tables.iter().map(|table| table.name.as_str()).chain(["env"]));
            return Slip::new(span, format!("there is no data `{table}` for `{{{{{name}}}}}`{meant}"));
        }
        let built_in = ["n", "seed", "uuid"];
        let known = self.captured.iter().map(|captured| captured.name.as_str());
        let known = known.chain(self.variables.keys().map(String::as_str)).chain(built_in);
        let meant = did_you_mean(name, known);
        let meant = if FOR_N.contains(&name) {
            "; the number of the journey in the run is `{{n}}`".to_owned()
        } else if meant.is_empty() {
            "; valid names are variables of [vars], columns `data.column`, values captured by an earlier step, and the built-in \
             n, seed, uuid, random LOW HIGH, zipf LOW HIGH and other distributions, env.NAME"
                .to_owned()
        } else {
            meant
        };
        Slip::new(span, format!("unknown name `{{{{{name}}}}}`{meant}"))
    }
}

/// Names that other tools use for the number of a journey.
const FOR_N: [&str; 5] = ["iteration", "iter", "caller", "vu", "number"];

/// How a value in `context` is escaped.
fn escape_of(context: Context, filter: &str, span: &Span) -> Result<Escape, Slip> {
    let own = match context {
        Context::Path | Context::Form => Escape::Percent,
        Context::Header => Escape::Header,
        Context::Body | Context::Variable => Escape::Raw,
        Context::Json => Escape::Json,
    };
    match (filter, context) {
        ("", _) => Ok(own),
        ("path", Context::Path) => Ok(Escape::Path),
        ("json", Context::Body) => Ok(Escape::Json),
        ("url", Context::Body | Context::Header) => Ok(Escape::Percent),
        ("number", Context::Json | Context::Body) => Ok(Escape::Number),
        ("path", _) => Err(Slip::new(span, "`path` is only for paths; leave it out here")),
        ("json" | "url" | "number" | "raw", _) => Err(Slip::new(
            span,
            format!("`{filter}` is not needed here: values are always encoded for their place; leave it out"),
        )),
        _ => {
            let meant = did_you_mean(filter, ["path", "json", "url", "number"]);
            Err(Slip::new(
                span,
                format!("`{filter}` is not a filter{meant}; filters are path, json, url and number"),
            ))
        }
    }
}

/// The text around the values. In a form or a JSON string it is data too, and is escaped; elsewhere it is syntax.
fn own_text(text: &str, context: Context) -> String {
    let escape = match context {
        Context::Form => Escape::Percent,
        Context::Json => Escape::Json,
        Context::Path | Context::Header | Context::Body | Context::Variable => return text.to_owned(),
    };
    let mut fit = String::new();
    crate::escape::write(text, escape, &mut fit);
    fit
}

/// A template whose values were raw, escaped for another place.
fn written(template: &Template, escape: Escape, name: &str, span: &Span) -> Result<Template, Slip> {
    let mut out = Template::default();
    for piece in template.pieces() {
        out.push(match piece {
            Piece::Text(text) => Piece::Text(fit(text, escape, name, span)?),
            Piece::Hidden { variable, text } => {
                Piece::Hidden { variable: variable.clone(), text: fit(text, escape, name, span)? }
            }
            Piece::Value { source, .. } => Piece::Value { source: *source, escape },
        });
    }
    Ok(out)
}

/// The text of `name`, escaped with `escape`.
fn fit(text: &str, escape: Escape, name: &str, span: &Span) -> Result<String, Slip> {
    let needs = Needs { header: escape == Escape::Header, number: escape == Escape::Number };
    if !needs.hold(text) {
        let what =
            if needs.number { "is no number" } else { "contains a line break or another control character" };
        return Err(Slip::new(span, format!("the value of `{name}` {what}, and cannot be used here")));
    }
    let mut fit = String::new();
    crate::escape::write(text, escape, &mut fit);
    Ok(fit)
}

fn bounds(low: &str, high: &str) -> Option<(u64, u64)> {
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then_some((low, high))
}
