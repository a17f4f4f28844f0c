//! Rule `lengths`: a file has at most 600 lines, a function 70; exceptions are listed and may only shrink.
//!
//! All lines count, including tests and comments; a function from its signature to its closing brace. For C, only files
//! are measured.

use super::exceptions::{self, LongException};
use super::{Finding, line_where};
use crate::rust;
use crate::tree::Tree;

const FILE_AIM: usize = 300;
const FILE_MOST: usize = 600;
const FUNCTION_AIM: usize = 40;
const FUNCTION_MOST: usize = 70;

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    // An unreadable list is found by the rule `exceptions`.
    let exceptions = exceptions::read(tree).unwrap_or_default();
    let mut used = vec![false; exceptions.long.len()];
    let mut findings = Vec::new();
    for (path, text) in sources(tree) {
        match measure(path, text) {
            Ok(lengths) => findings
                .extend(lengths.iter().filter_map(|length| judge(length, path, &exceptions.long, &mut used))),
            Err(finding) => findings.push(finding),
        }
    }
    let text = tree.text(exceptions::FILE).unwrap_or_default();
    for (exception, used) in exceptions.long.iter().zip(used) {
        if !used {
            let line = line_where(text, |line| line.contains(&format!("\"{}\"", exception.path)));
            let what = format!("`{exception}` is within the limits or gone; remove the entry");
            findings.push(Finding::new(exceptions::FILE, line, what));
        }
    }
    findings
}

/// What is within the limits but longer than the aim.
pub fn over_aims(tree: &Tree) -> Vec<Finding> {
    let lengths = sources(tree).filter_map(|(path, text)| Some((path, measure(path, text).ok()?)));
    let each = lengths.flat_map(|(path, lengths)| lengths.into_iter().map(move |length| (path, length)));
    each.filter(|(_, length)| length.lines > length.aim() && length.lines <= length.most())
        .map(|(path, length)| {
            let what = format!("{} has {} lines; aim at {}", length.whose(), length.lines, length.aim());
            Finding::new(path, length.line, what)
        })
        .collect()
}

/// The sources that are measured.
fn sources(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.texts().filter(|(path, _)| is_rust(path) || path.ends_with(".c") || path.ends_with(".h"))
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

struct Length {
    /// `None`: the file.
    function: Option<String>,
    line: usize,
    lines: usize,
}

impl Length {
    fn aim(&self) -> usize {
        if self.function.is_some() { FUNCTION_AIM } else { FILE_AIM }
    }

    fn most(&self) -> usize {
        if self.function.is_some() { FUNCTION_MOST } else { FILE_MOST }
    }

    fn whose(&self) -> String {
        self.function.as_ref().map_or_else(|| "the file".to_owned(), |name| format!("`{name}`"))
    }
}

fn measure(path: &str, text: &str) -> Result<Vec<Length>, Finding> {
    let mut lengths = vec![Length { function: None, line: 1, lines: text.lines().count() }];
    if !is_rust(path) {
        return Ok(lengths);
    }
    let file = syn::parse_file(text).map_err(|error| {
        Finding::new(path, error.span().start().line, format!("is not Rust ({error}); make it parse"))
    })?;
    lengths.extend(rust::functions(&file).into_iter().map(|function| Length {
        function: Some(function.name),
        line: function.line,
        lines: function.lines,
    }));
    Ok(lengths)
}

fn judge(length: &Length, path: &str, long: &[LongException], used: &mut [bool]) -> Option<Finding> {
    if length.lines <= length.most() {
        return None;
    }
    let whose = length.whose();
    let lines = length.lines;
    let index = long.iter().position(|entry| entry.path == path && entry.function == length.function);
    let Some(index) = index else {
        let what =
            format!("{whose} has {lines} lines, at most {} are allowed; split it by subject", length.most());
        return Some(Finding::new(path, length.line, what));
    };
    used[index] = true;
    let recorded = long[index].lines;
    let what = if lines > recorded {
        format!(
            "{whose} has {lines} lines, {recorded} are excepted; exceptions only shrink: take something out"
        )
    } else if lines < recorded {
        format!(
            "{whose} has shrunk to {lines} lines; lower its entry in {} from {recorded}",
            exceptions::FILE
        )
    } else {
        return None;
    };
    Some(Finding::new(path, length.line, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(exceptions: &str, source: &str) -> Vec<String> {
        let tree = Tree::of(&[("crates/a/src/lib.rs", source), (exceptions::FILE, exceptions)]);
        check(&tree).into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.what)).collect()
    }

    /// A method with this many lines, beginning on line 2.
    fn method(lines: usize) -> String {
        format!("impl A {{\nfn f() {{\n{}}}\n}}\n", "g();\n".repeat(lines - 2))
    }

    fn entry(function: &str, lines: usize) -> String {
        format!(
            "[[long]]\npath = \"crates/a/src/lib.rs\"\n{function}lines = {lines}\nreason = \"one table\"\n"
        )
    }

    const METHOD: &str = "function = \"A::f\"\n";

    #[test]
    fn the_limits_themselves_pass() {
        assert_eq!(found("", &method(FUNCTION_MOST)), [""; 0]);
        assert_eq!(found("", &"\n".repeat(FILE_MOST)), [""; 0]);
    }

    #[test]
    fn a_long_function_is_found() {
        let findings = found("", &method(FUNCTION_MOST + 1));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/a/src/lib.rs:2: `A::f` has 71 lines"), "{findings:?}");
    }

    #[test]
    fn a_long_file_is_found() {
        let findings = found("", &"\n".repeat(FILE_MOST + 1));
        assert!(findings[0].starts_with("crates/a/src/lib.rs:1: the file has 601 lines"), "{findings:?}");
    }

    #[test]
    fn a_long_file_of_c_is_found_and_its_functions_are_not() {
        for path in ["crates/a/bpf/a.bpf.c", "crates/a/bpf/a.h"] {
            let findings = |lines| check(&Tree::of(&[(path, &"f();\n".repeat(lines))]));
            assert!(findings(FILE_MOST).is_empty());
            let found = findings(FILE_MOST + 1);
            assert_eq!(found.len(), 1);
            assert!(
                found[0].path == path && found[0].what.starts_with("the file has 601 lines"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_exception_holds_for_exactly_its_length() {
        assert_eq!(found(&entry(METHOD, 80), &method(80)), [""; 0]);
        assert_eq!(found(&entry("", 601), &"\n".repeat(601)), [""; 0]);
        assert!(found(&entry(METHOD, 80), &method(81))[0].contains("81 lines, 80 are excepted"));
        assert!(found(&entry(METHOD, 80), &method(79))[0].contains("shrunk to 79"));
    }

    #[test]
    fn an_exception_that_is_not_needed_is_found() {
        let findings = found(&entry(METHOD, 80), &method(70));
        assert!(findings[0].starts_with("xtask/exceptions.toml:2: "), "{findings:?}");
        assert!(found(&entry("", 700), &method(70))[0].contains("remove the entry"));
    }

    #[test]
    fn aims_are_told_apart_from_limits() {
        let tree = Tree::of(&[("a.rs", &method(41))]);
        assert_eq!(over_aims(&tree).len(), 1);
        assert!(over_aims(&Tree::of(&[("a.rs", &method(40))])).is_empty());
        assert!(over_aims(&Tree::of(&[("a.rs", &method(71))])).is_empty());
    }

    #[test]
    fn what_is_not_rust_is_found() {
        assert!(found("", "fn {")[0].contains("is not Rust"));
    }
}
