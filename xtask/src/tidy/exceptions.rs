//! Rule `exceptions`: `xtask/exceptions.toml` can be read, and every entry gives a reason.
//!
//! The rules with exceptions read them here, and report those that are no longer needed.

use std::fmt;

use serde::Deserialize;

use super::Finding;
use crate::tree::Tree;

pub const FILE: &str = "xtask/exceptions.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    #[serde(default)]
    pub long: Vec<LongException>,
    #[serde(default)]
    pub machine_path: Vec<PathException>,
}

/// A file, or a function in it, over its limit: exactly this long.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongException {
    pub path: String,
    /// Including its type: `Pool::take`. `None`: the whole file.
    pub function: Option<String>,
    pub lines: usize,
    reason: String,
}

impl fmt::Display for LongException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some(function) => write!(f, "{} {function}", self.path),
            None => f.write_str(&self.path),
        }
    }
}

/// A file that must contain a path that looks like one of a development machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathException {
    pub path: String,
    reason: String,
}

/// The exceptions; empty if there is no file.
///
/// # Errors
///
/// What is wrong with the file.
pub fn read(tree: &Tree) -> Result<Exceptions, Finding> {
    let text = tree.text(FILE).unwrap_or_default();
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        Finding::new(FILE, line, format!("{}; correct the entry", error.message()))
    })
}

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let exceptions = match read(tree) {
        Ok(exceptions) => exceptions,
        Err(finding) => return vec![finding],
    };
    let long = exceptions.long.iter().map(|entry| (&entry.path, &entry.reason));
    let paths = exceptions.machine_path.iter().map(|entry| (&entry.path, &entry.reason));
    long.chain(paths)
        .filter(|(_, reason)| reason.trim().is_empty())
        .map(|(path, _)| Finding::new(FILE, 1, format!("the exception of {path} has no reason; give one")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<Finding> {
        check(&Tree::of(&[(FILE, text)]))
    }

    #[test]
    fn a_good_list_passes() {
        let good = "[[long]]\npath = \"a.rs\"\nlines = 700\nreason = \"a table\"\n";
        assert_eq!(found(good), []);
        assert_eq!(check(&Tree::of(&[])), []);
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_found_with_its_line() {
        let findings = found("[[long]]\npath = \"a.rs\"\nlimes = 700\n");
        assert_eq!((findings.len(), findings[0].line), (1, 3), "{findings:?}");
    }

    #[test]
    fn an_entry_without_a_reason_is_found() {
        assert_eq!(found("[[machine_path]]\npath = \"a.rs\"\n").len(), 1);
        assert_eq!(found("[[machine_path]]\npath = \"a.rs\"\nreason = \"\"\n").len(), 1);
    }
}
