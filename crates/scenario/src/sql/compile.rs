//! From one request of the file to a statement: its text, its parameters, and what its response must satisfy.

use database::DatabaseKind;
use database::sql::Statement;
use toml::Spanned;

use super::step::{Bounds, ColumnCapture, ColumnLook, Parameter, SqlStep, rollback_step};
use crate::distribution::Distribution;
use crate::format::{Expect, Request};
use crate::place::{Slip, Span};
use crate::plan::Step;
use crate::scope::{Context, Scope};
use crate::steps::Common;
use crate::template::{Cut, Piece, Template, Value, cut};
use crate::values::{CaptureSpec, Named, Scalar};
use crate::web;

/// How many statements one text with `|name` may stand for: each connection prepares them all.
const MOST_VARIANTS: u64 = 1_000;

/// How often one step may be repeated.
const MOST_REPETITIONS: u32 = 100_000;

/// Compiles the statement `request`, and adds it to `statements`.
pub(crate) fn compile(
    request: &Spanned<Request>,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
    (kind, statements): (DatabaseKind, &mut Vec<Statement>),
) -> Result<SqlStep, Slip> {
    let own = request.get_ref();
    refuse_http(own)?;
    let text = text_of(request, kind)?;
    let own_draws = scope.next_draw();
    let read = read(text, scope)?;
    let prepared = own.prepared.as_ref().map(|prepared| *prepared.get_ref());
    let prepared = prepared.or(common.file.defaults.prepared).unwrap_or(true);
    let first = u16::try_from(statements.len()).ok();
    let (variant, parameters) = (read.variant, read.parameters);
    for pieces in read.pieces {
        let statement = Statement { pieces, prepared };
        statement.check().map_err(|error| Slip::new(&text.span(), error.to_string()))?;
        statements.push(statement);
    }
    let too_many = || Slip::new(&text.span(), "the scenario has more than 65535 statements; split it");
    let first = first.filter(|_| statements.len() <= usize::from(u16::MAX)).ok_or_else(too_many)?;
    Ok(SqlStep {
        first,
        variant,
        parameters,
        repeat: repeat(own)?,
        own_draws,
        is_unnamed: own.name.is_none(),
        rows: bounds(own.expect.rows.as_ref())?,
        affected: bounds(own.expect.affected.as_ref())?,
        looks: looks(&own.expect)?,
        captures: captures(&own.capture, common, scope)?,
    })
}

/// The text of a statement, or of a command of Redis.
fn text_of(request: &Spanned<Request>, kind: DatabaseKind) -> Result<&Spanned<String>, Slip> {
    let own = request.get_ref();
    let (text, other, what) = match kind {
        DatabaseKind::Redis => (&own.command, &own.sql, "no command; add for example command = \"GET key\""),
        DatabaseKind::MySql | DatabaseKind::Postgres => {
            (&own.sql, &own.command, "no statement; add for example sql = \"SELECT 1\"")
        }
    };
    match (text, other) {
        (_, Some(other)) => {
            let what = format!("this is not for {}; it has {}", kind.product(), own_key(kind));
            Err(Slip::new(&other.span(), what))
        }
        (Some(text), None) => Ok(text),
        (None, None) => Err(Slip::new(&request.span(), what)),
    }
}

/// The key of what is sent to a kind of database.
fn own_key(kind: DatabaseKind) -> &'static str {
    if kind == DatabaseKind::Redis { "command" } else { "sql" }
}

/// The statement that undoes a transaction before it is tried again, as a step after all others.
pub(crate) fn rollback(statements: &mut Vec<Statement>) -> Step {
    statements.push(Statement::text("ROLLBACK"));
    // The scenario has at most as many statements as a `u16` can count, and this one.
    rollback_step((statements.len() - 1) as u16)
}

/// Refuses what only statements have.
pub(crate) fn refuse(own: &Request) -> Result<(), Slip> {
    let expect = &own.expect;
    let spans = [
        own.sql.as_ref().map(Spanned::span),
        own.command.as_ref().map(Spanned::span),
        own.prepared.as_ref().map(Spanned::span),
        own.repeat.as_ref().map(Spanned::span),
        expect.rows.as_ref().map(Spanned::span),
        expect.affected.as_ref().map(Spanned::span),
        expect.columns.values().next().map(Spanned::span),
    ];
    match spans.into_iter().flatten().next() {
        Some(span) => Err(Slip::new(
            &span,
            "this is for a database, whose url begins with mysql://, postgres:// or redis://",
        )),
        None => Ok(()),
    }
}

/// Refuses what only HTTP has.
fn refuse_http(own: &Request) -> Result<(), Slip> {
    let expect = &own.expect;
    let spans = [
        own.path.as_ref().map(Spanned::span),
        own.method.as_ref().map(Spanned::span),
        own.body.as_ref().map(Spanned::span),
        own.json.as_ref().map(Spanned::span),
        own.file.as_ref().map(Spanned::span),
        own.query.values().next().map(Spanned::span),
        own.headers.values().next().map(Spanned::span),
        own.form.values().next().map(Spanned::span),
        expect.status.as_ref().map(Spanned::span),
        expect.body_contains.as_ref().map(Spanned::span),
        expect.body_matches.as_ref().map(Spanned::span),
        expect.sha256.as_ref().map(Spanned::span),
        expect.headers.values().next().map(Spanned::span),
        expect.json.values().next().map(Spanned::span),
    ];
    match spans.into_iter().flatten().next() {
        Some(span) => {
            Err(Slip::new(&span, "this is for HTTP; a database has sql, expect.rows and expect.columns"))
        }
        None => Ok(()),
    }
}

/// A statement's text, cut at its parameters.
struct ReadText {
    /// Of each variant.
    pieces: Vec<Vec<String>>,
    variant: Option<(Distribution, u64)>,
    parameters: Vec<Parameter>,
}

/// A part of a statement's text.
enum Segment {
    Text(String),
    /// The number that distinguishes the variants.
    Variant,
    Parameter,
}

fn read(text: &Spanned<String>, scope: &mut Scope<'_>) -> Result<ReadText, Slip> {
    let span = text.span();
    let source = text.get_ref().trim().trim_end_matches(';');
    let cuts = cut(source).map_err(|(what, part)| Slip { span: scope.sources.narrow(&span, part), what })?;
    let (mut segments, mut variant, mut parameters) = (Vec::new(), None, Vec::new());
    for cut in cuts {
        let (name, filter) = match cut {
            Cut::Text(text) => {
                segments.push(Segment::Text(text.to_owned()));
                continue;
            }
            Cut::Expression(_) => cut.expression().unwrap_or_default(),
        };
        let at = scope.sources.narrow(&span, name);
        let template = scope.template(&format!("{{{{{name}}}}}"), &at, Context::Body)?;
        if filter == "name" {
            segments.push(part_of_text(&template, &at, &mut variant)?);
        } else {
            segments.push(Segment::Parameter);
            parameters.push(parameter(template, filter, &at)?);
        }
    }
    let numbers =
        variant.map_or(0..=0, |(distribution, _): (Distribution, u64)| distribution.low..=distribution.high);
    let pieces = numbers.map(|number| pieces(&segments, number)).collect();
    Ok(ReadText { pieces, variant, parameters })
}

fn pieces(segments: &[Segment], number: u64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for segment in segments {
        let last = pieces.last_mut().expect("there is always a piece");
        match segment {
            Segment::Text(text) => last.push_str(text),
            Segment::Variant => last.push_str(&number.to_string()),
            Segment::Parameter => pieces.push(String::new()),
        }
    }
    pieces
}

/// `{{table|name}}`: a fixed text, or the draw that chooses among statements.
fn part_of_text(
    template: &Template,
    at: &Span,
    variant: &mut Option<(Distribution, u64)>,
) -> Result<Segment, Slip> {
    if let Some(text) = template.fixed() {
        return Ok(Segment::Text(text.into_owned()));
    }
    let what = "a part of a statement is a fixed text, or a number such as random 1 10";
    let [Piece::Value { source: Value::Drawn { distribution, id }, .. }] = template.pieces() else {
        return Err(Slip::new(at, what));
    };
    if distribution.high - distribution.low >= MOST_VARIANTS {
        return Err(Slip::new(
            at,
            format!("this stands for more than {MOST_VARIANTS} statements; use fewer"),
        ));
    }
    match variant {
        Some(known) if *known != (*distribution, *id) => {
            Err(Slip::new(at, "only one value of a statement can be a part of its text"))
        }
        _ => {
            *variant = Some((*distribution, *id));
            Ok(Segment::Variant)
        }
    }
}

fn parameter(template: Template, filter: &str, at: &Span) -> Result<Parameter, Slip> {
    let plus = filter.strip_prefix("plus ").map(|number| number.trim().parse::<i64>());
    let source = match template.pieces() {
        [Piece::Value { source, .. }] => Some(*source),
        _ => None,
    };
    match (source, plus, filter) {
        (Some(Value::Drawn { distribution, id }), None, "" | "int") => {
            Ok(Parameter::Drawn { distribution, id, plus: 0 })
        }
        (Some(Value::Drawn { distribution, id }), Some(Ok(plus)), _) => {
            Ok(Parameter::Drawn { distribution, id, plus })
        }
        (_, Some(Ok(_)), _) => {
            Err(Slip::new(at, "`plus` is for a number that is drawn, such as random 1 100"))
        }
        (Some(Value::Number), _, "" | "int") => Ok(Parameter::Number),
        (_, _, "") => Ok(Parameter::Text(template)),
        (_, _, "int") => Ok(Parameter::Integer(template)),
        _ => Err(Slip::new(at, format!("`{filter}` is not a filter here; filters are int, plus N and name"))),
    }
}

fn repeat(own: &Request) -> Result<u32, Slip> {
    match own.repeat.as_ref() {
        None => Ok(1),
        Some(repeat) if (1..=MOST_REPETITIONS).contains(repeat.get_ref()) => Ok(*repeat.get_ref()),
        Some(repeat) => {
            Err(Slip::new(&repeat.span(), format!("a statement is executed 1 to {MOST_REPETITIONS} times")))
        }
    }
}

fn bounds(given: Option<&Spanned<Scalar>>) -> Result<Option<Bounds>, Slip> {
    let read = |given: &Spanned<Scalar>| {
        let text = &given.get_ref().0;
        Bounds::parse(text).ok_or_else(|| {
            Slip::new(
                &given.span(),
                format!("`{text}` is not a number of rows; write 1, \"1..10\" or \"1..\""),
            )
        })
    };
    given.map(read).transpose()
}

fn looks(expect: &Expect) -> Result<Vec<ColumnLook>, Slip> {
    let mut looks = Vec::new();
    for (column, matcher) in &expect.columns {
        let look = |wanted| ColumnLook { column: column.clone(), wanted };
        looks.extend(web::wanted(matcher)?.into_iter().map(look));
    }
    Ok(looks)
}

fn captures(
    given: &Named<CaptureSpec>,
    common: &Common<'_>,
    scope: &mut Scope<'_>,
) -> Result<Vec<ColumnCapture>, Slip> {
    let mut captures = Vec::new();
    for (name, spec) in given {
        let span = spec.span();
        if common.last {
            let what = format!("no later step can use `{name}`; to check the response use expect");
            return Err(Slip::new(&span, what));
        }
        let slot = scope.capture(name, &span)?;
        let (column, default) = match spec.get_ref() {
            CaptureSpec::Json(column) => (column.clone(), None),
            CaptureSpec::Table(table) => {
                let others = [table.header.is_some(), table.cookie.is_some(), table.json.is_some()];
                match &table.column {
                    Some(column) if !others.contains(&true) && table.regex.is_none() => {
                        (column.clone(), table.default.clone())
                    }
                    _ => return Err(Slip::new(&span, "a value of a row is taken by column = \"name\"")),
                }
            }
        };
        captures.push(ColumnCapture { slot, column, default });
    }
    Ok(captures)
}
