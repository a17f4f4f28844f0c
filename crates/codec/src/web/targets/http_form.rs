//! vegeta's HTTP form.
//!
//! ```text
//! # weight: 3
//! POST http://127.0.0.1:8080/things
//! X-Account-ID: 99
//! @things/new.json
//!
//! GET http://127.0.0.1:8080/
//! ```
//!
//! As in vegeta: a line that begins with `#` is a comment, `@` ends a target, an empty line ends one, and a method in
//! capitals begins one. Two mistakes that vegeta accepts silently are handled: a target line directly after headers
//! begins a target (in vegeta it becomes a header), and `HTTP/1.1` after a URL is refused (in vegeta it becomes part of
//! the path).

use std::io;
use std::path::Path;

use super::super::request::{Header, Request, printable};
use super::super::url::Url;
use super::{Problem, Target, TargetError, push};

pub(super) fn parse(
    text: &str,
    mut read_body: impl FnMut(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<Target>, TargetError> {
    let mut reader = Reader { targets: Vec::new(), open: false, weight: None };
    for (line, text) in (1..).zip(text.lines()) {
        let read = reader.handle_line(line, text.trim(), &mut read_body);
        read.map_err(|problem| TargetError { line, problem })?;
    }
    if let Some(weight) = reader.weight {
        return Err(TargetError { line: weight.line, problem: Problem::MisplacedWeight });
    }
    Ok(reader.targets)
}

struct Reader {
    targets: Vec<Target>,
    /// Whether the last target may have more lines.
    open: bool,
    /// A weight whose target has not come yet.
    weight: Option<Weight>,
}

struct Weight {
    line: usize,
    value: u32,
}

impl Reader {
    fn handle_line(
        &mut self,
        line: usize,
        text: &str,
        read_body: &mut impl FnMut(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<(), Problem> {
        if text.is_empty() {
            self.open = false;
            return Ok(());
        }
        if let Some(comment) = text.strip_prefix('#') {
            return self.handle_comment(line, comment.trim());
        }
        let begins = begins_target(text);
        match self.targets.last_mut() {
            Some(target) if self.open && !begins => {
                if self.weight.is_some() {
                    return Err(Problem::MisplacedWeight);
                }
                if let Some(path) = text.strip_prefix('@') {
                    target.request.body = body(path, read_body)?;
                    self.open = false;
                } else {
                    target.request.headers.push(header(text)?);
                }
            }
            _ => {
                let weight = self.weight.take().map_or(1, |weight| weight.value);
                push(&mut self.targets, Target { line, request: Request { weight, ..target_line(text)? } })?;
                self.open = true;
            }
        }
        Ok(())
    }

    fn handle_comment(&mut self, line: usize, comment: &str) -> Result<(), Problem> {
        let Some(text) = comment.strip_prefix("weight:") else {
            return Ok(());
        };
        if self.weight.is_some() {
            return Err(Problem::MisplacedWeight);
        }
        let value = text.trim().parse().ok().filter(|value| *value > 0);
        let value = value.ok_or_else(|| Problem::NotAWeight { text: printable(text.trim()) })?;
        self.weight = Some(Weight { line, value });
        Ok(())
    }
}

/// Whether the first word is in capitals and is followed by another.
fn begins_target(text: &str) -> bool {
    let capitals = text.bytes().take_while(u8::is_ascii_uppercase).count();
    capitals > 0 && text[capitals..].starts_with([' ', '\t'])
}

fn target_line(text: &str) -> Result<Request, Problem> {
    let not_a_target = || Problem::NotATarget { text: printable(text) };
    if !begins_target(text) {
        return Err(not_a_target());
    }
    let (method, url) = text.split_once([' ', '\t']).ok_or_else(not_a_target)?;
    let url = url.trim();
    if url.split([' ', '\t']).skip(1).any(|word| word.starts_with("HTTP/")) {
        return Err(Problem::VersionAfterUrl);
    }
    let url = Url::parse(url).map_err(Problem::Url)?;
    Ok(Request { method: method.to_owned(), ..Request::get(url) })
}

/// vegeta refuses a header without a value, so a file that contains one was not written for vegeta either.
fn header(text: &str) -> Result<Header, Problem> {
    let not_a_header = || Problem::NotAHeader { text: Header::shown(text) };
    let (name, value) = text.split_once(':').ok_or_else(not_a_header)?;
    let header = Header { name: name.trim().to_owned(), value: value.trim().to_owned() };
    if header.value.is_empty() || header.check().is_err() {
        return Err(not_a_header());
    }
    Ok(header)
}

fn body(path: &str, read_body: &mut impl FnMut(&Path) -> io::Result<Vec<u8>>) -> Result<Vec<u8>, Problem> {
    if path.is_empty() {
        return Err(Problem::NoBodyPath);
    }
    read_body(Path::new(path)).map_err(|reason| Problem::Body { path: printable(path), reason })
}
