//! vegeta's JSON form: one object per line, the body in base64.
//!
//! ```json
//! {"method":"POST","url":"http://127.0.0.1:8080/","header":{"X-Id":["99"]},"body":"UHVuY2gh","weight":3}
//! ```
//!
//! As in vegeta's schema, `method` and `url` are required and unknown keys are refused; `weight` is an addition.
//! Headers are sent in the order of their names, because JSON objects are unordered.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::super::request::{Header, Request, printable};
use super::super::url::Url;
use super::{Problem, Target, TargetError, push};

pub(super) fn parse(text: &str) -> Result<Vec<Target>, TargetError> {
    let mut targets = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        if !text.trim().is_empty() {
            let read = parse_line(text).and_then(|request| push(&mut targets, Target { line, request }));
            read.map_err(|problem| TargetError { line, problem })?;
        }
    }
    Ok(targets)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTarget {
    method: String,
    url: String,
    header: Option<BTreeMap<String, Vec<String>>>,
    body: Option<String>,
    weight: Option<u32>,
}

fn parse_line(text: &str) -> Result<Request, Problem> {
    let target: JsonTarget = serde_json::from_str(text).map_err(|error| not_json(&error))?;
    if target.weight == Some(0) {
        return Err(Problem::NotAWeight { text: "0".to_owned() });
    }
    let headers =
        target.header.unwrap_or_default().into_iter().flat_map(|(name, values)| {
            values.into_iter().map(move |value| Header { name: name.clone(), value })
        });
    let body = STANDARD.decode(target.body.unwrap_or_default()).map_err(|_| Problem::NotBase64)?;
    Ok(Request {
        method: target.method,
        url: Url::parse(&target.url).map_err(Problem::Url)?,
        headers: headers.collect(),
        body,
        weight: target.weight.unwrap_or(1),
    })
}

/// The parser saw only one line, so its own line number would mislead.
fn not_json(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    Problem::NotJson { reason: format!("{} at column {}", printable(reason), error.column()) }
}
