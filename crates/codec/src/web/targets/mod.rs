//! Parses vegeta's target files into requests.
//!
//! Both of vegeta's forms are supported. It opens no file itself: bodies named in the text are read through a closure
//! of the caller, which gets the path as written. It sends nothing, and does not add the run's own headers.
//!
//! There is one addition, which vegeta ignores: a weight, as a comment in the HTTP form and as a key in the JSON form.

mod http_form;
mod json_form;

use std::io;
use std::path::Path;

use thiserror::Error;

use super::request::{Request, RequestError};
use super::url::UrlError;

/// How a target file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `METHOD URL`, header lines, an `@file` line with the body; an empty line between targets.
    Http,
    /// One JSON object per line.
    Json,
}

/// Maximum number of targets: a run has as many numbers for requests.
const TARGETS_MAX: usize = 1 << 16;

/// Why a target file was refused: where, what, and what to do.
#[derive(Debug, Error)]
#[error("line {line}: {problem}")]
pub struct TargetError {
    /// Counted from 1.
    pub line: usize,
    pub problem: Problem,
}

/// What is wrong with a target.
#[derive(Debug, Error)]
pub enum Problem {
    #[error("there are more than {TARGETS_MAX} targets; split the file")]
    TooMany,
    #[error("no target here; write for example `GET http://127.0.0.1:8080/`")]
    NoTargets,
    #[error("`{text}` is not a target; write `METHOD URL`, for example `GET http://127.0.0.1:8080/`")]
    NotATarget { text: String },
    #[error("`HTTP/1.1` after the URL is not part of a target; leave it out")]
    VersionAfterUrl,
    #[error("`{text}` is not a header; write `Name: value`, with an empty line before the next target")]
    NotAHeader { text: String },
    #[error("`{text}` is not a weight; write a whole number from 1, for example `# weight: 3`")]
    NotAWeight { text: String },
    #[error("a weight must be before the `METHOD URL` line of its target; move it there")]
    MisplacedWeight,
    #[error("no path after `@`; write for example `@body.json`")]
    NoBodyPath,
    #[error("cannot read the body `{path}`: {reason}")]
    Body { path: String, reason: io::Error },
    #[error(
        "not a JSON target: {reason}; write for example {{\"method\":\"GET\",\"url\":\"http://127.0.0.1/\"}}"
    )]
    NotJson { reason: String },
    #[error("`body` is not base64; encode the body, for example with `base64 -w0`")]
    NotBase64,
    #[error(transparent)]
    Url(UrlError),
    #[error(transparent)]
    Request(RequestError),
}

/// The most likely form of a file: JSON if the first line that is neither empty nor a comment begins an object.
pub fn detect(text: &str) -> Form {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    if first.is_some_and(|line| line.starts_with('{')) { Form::Json } else { Form::Http }
}

/// Parses all targets of `text`, in order. Each has been checked and can be sent as it is.
///
/// `read_body` returns the content of a file that the text names.
///
/// # Errors
///
/// [`TargetError`] with the line of the first problem.
pub fn parse(
    text: &str,
    form: Form,
    read_body: impl FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<Request>, TargetError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let targets = match form {
        Form::Http => http_form::parse(text, read_body)?,
        Form::Json => json_form::parse(text)?,
    };
    check_targets(&targets)?;
    Ok(targets.into_iter().map(|target| target.request).collect())
}

/// A request and the line on which it begins.
#[derive(Debug)]
struct Target {
    line: usize,
    request: Request,
}

/// Appends a target. Their number is checked while they are read, because each takes more memory than its text.
fn push(targets: &mut Vec<Target>, target: Target) -> Result<(), Problem> {
    if targets.len() == TARGETS_MAX {
        return Err(Problem::TooMany);
    }
    targets.push(target);
    Ok(())
}

fn check_targets(targets: &[Target]) -> Result<(), TargetError> {
    if targets.is_empty() {
        return Err(TargetError { line: 1, problem: Problem::NoTargets });
    }
    for target in targets {
        let at = |problem| TargetError { line: target.line, problem };
        target.request.check().map_err(|error| at(Problem::Request(error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
