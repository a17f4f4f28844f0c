//! Parses a scenario file, with `--set` applied; errors give the place and what was probably meant.

use std::borrow::Cow;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::format::File;
use crate::place::{Slip, Sources, Span, did_you_mean, nearest};
use crate::settings::RUN;

/// Parses `text` with `sets` (`key=value`) applied.
///
/// # Errors
///
/// The first thing that does not have the right form.
pub(crate) fn read<'a>(text: &'a str, sets: &'a [String], sources: &mut Sources) -> Result<File, Slip> {
    let mut table = DeTable::parse(text).map_err(|error| slip(&error))?;
    for set in sets {
        let span = sources.add_set(set);
        lay_over(table.get_mut(), set, &span)?;
    }
    File::deserialize(toml::de::Deserializer::from(table)).map_err(|error| slip(&error))
}

/// An error of the TOML parser in our words.
fn slip(error: &toml::de::Error) -> Slip {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    let what =
        match message.strip_prefix("unknown field `").or_else(|| message.strip_prefix("unknown variant `")) {
            Some(rest) => unknown(rest),
            None if message == "invalid type: map, expected a sequence" => {
                "an entry of a list is written with two brackets, as [[request]]".to_owned()
            }
            // The parser mentions its own types.
            None => ["u32", "u64", "usize"].iter().fold(message.to_owned(), |text, number| {
                text.replace(&format!("expected {number}"), "expected a whole number")
            }),
        };
    Slip { span, what }
}

/// `x`, expected one of `a`, `b`.
fn unknown(rest: &str) -> String {
    let (given, expected) = rest.split_once('`').unwrap_or((rest, ""));
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    match nearest(given, known.iter().copied()) {
        Some(name) => format!("unknown key `{given}`; did you mean `{name}`?"),
        None => format!("unknown key `{given}`; valid keys are {}", known.join(", ")),
    }
}

/// Puts the value of `key=value` into the table.
fn lay_over<'a>(table: &mut DeTable<'a>, set: &'a str, span: &Span) -> Result<(), Slip> {
    let (key, text) = set
        .split_once('=')
        .ok_or_else(|| Slip::new(span, "is not `key=value`; write for example --set run.rate=500/s"))?;
    let key = key.trim();
    let path = full_path(table, key, span)?;
    place(table, &path, value(text.trim(), span), span)
}

/// A key without dots belongs to `[vars]` or `[run]`.
fn full_path(table: &DeTable<'_>, key: &str, span: &Span) -> Result<Vec<String>, Slip> {
    let parts: Vec<String> = key.split('.').map(|part| part.trim().trim_matches('"').to_owned()).collect();
    if parts.iter().any(String::is_empty) {
        return Err(Slip::new(span, format!("`{key}` is not a key; write for example run.rate")));
    }
    let vars: Vec<&str> = table
        .get("vars")
        .and_then(|vars| vars.get_ref().as_table())
        .map_or(Vec::new(), |vars| vars.keys().map(|name| name.get_ref().as_ref()).collect());
    let is_run = RUN.iter().any(|known| known.key == key);
    match (parts.as_slice(), vars.contains(&key)) {
        ([_], true) if is_run => Err(Slip::new(
            span,
            format!("`{key}` is both a variable and an option; write vars.{key} or run.{key}"),
        )),
        ([_], true) => Ok(vec!["vars".to_owned(), key.to_owned()]),
        ([_], false) if is_run => Ok(vec!["run".to_owned(), key.to_owned()]),
        ([_], false) if key != "description" => {
            let known = vars.iter().copied().chain(RUN.iter().map(|known| known.key));
            let meant = did_you_mean(key, known);
            Err(Slip::new(
                span,
                format!("`{key}` is neither a variable of the file nor an option of [run]{meant}"),
            ))
        }
        ([first, name], _) if first == "vars" && !vars.contains(&name.as_str()) => {
            let meant = did_you_mean(name, vars.iter().copied());
            Err(Slip::new(span, format!("the file has no variable `{name}`{meant}")))
        }
        _ => Ok(parts),
    }
}

fn place<'a>(
    table: &mut DeTable<'a>,
    path: &[String],
    value: Spanned<DeValue<'a>>,
    span: &Span,
) -> Result<(), Slip> {
    let (first, rest) = path.split_first().expect("a key has at least one part");
    let key = Spanned::new(span.clone(), Cow::Owned(first.clone()));
    if rest.is_empty() {
        // From now on the key has the place of the `--set`, even if the file has it, too.
        table.remove(first.as_str());
        table.insert(key, value);
        return Ok(());
    }
    if !table.contains_key(first.as_str()) {
        table.insert(key, Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
    }
    let inner = table.get_mut(first.as_str()).expect("it has just been put there");
    match inner.get_mut() {
        DeValue::Table(inner) => place(inner, rest, value, span),
        DeValue::Array(list) => {
            let (wanted, deeper) = rest.split_first().expect("there is more of the path");
            let found = list.iter_mut().enumerate().find(|(index, entry)| {
                let name = entry.get_ref().get("name").and_then(|name| name.get_ref().as_str());
                name == Some(wanted) || wanted.parse() == Ok(*index)
            });
            match (found.map(|(_, entry)| entry.get_mut()), deeper) {
                (Some(DeValue::Table(entry)), [_, ..]) => place(entry, deeper, value, span),
                (Some(entry), []) => {
                    *entry = value.into_inner();
                    Ok(())
                }
                _ => Err(Slip::new(span, format!("`{first}` has no entry of the name or number `{wanted}`"))),
            }
        }
        _ => Err(Slip::new(span, format!("`{first}` has no keys"))),
    }
}

/// The value as TOML would parse it, otherwise as a text: `30s` needs no quotes here.
fn value<'a>(text: &'a str, span: &Span) -> Spanned<DeValue<'a>> {
    let read = DeValue::parse(text).ok().map(Spanned::into_inner);
    let value = match read {
        Some(DeValue::Datetime(_)) | None => DeValue::String(Cow::Borrowed(text)),
        Some(value) => respan(value, span),
    };
    Spanned::new(span.clone(), value)
}

/// Gives everything within a value the place of its `--set`.
fn respan<'a>(value: DeValue<'a>, span: &Span) -> DeValue<'a> {
    let again = |value: Spanned<DeValue<'a>>| Spanned::new(span.clone(), respan(value.into_inner(), span));
    match value {
        DeValue::Array(list) => DeValue::Array(list.into_iter().map(again).collect()),
        DeValue::Table(table) => {
            let entries = table.into_iter();
            let entries =
                entries.map(|(key, value)| (Spanned::new(span.clone(), key.into_inner()), again(value)));
            DeValue::Table(entries.collect())
        }
        value => value,
    }
}
