//! `cargo xtask tidy`: the project's rules that the compiler and clippy do not check.
//!
//! One file per rule; each is a function from the tree to its findings and changes nothing.

mod architecture;
mod cycles;
mod decisions;
mod exceptions;
mod formats;
mod function_docs;
mod invariants;
mod layers;
mod lengths;
mod machine_paths;
mod module_docs;
mod paths;
mod sizes;
mod tables;
mod words;

use std::io::{self, Write};
use std::path::Path;

use crate::tree::Tree;

/// How much to print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Findings,
    /// Also what is within a limit but misses the aim.
    Aims,
}

/// Something to fix: where, what, and what to do.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, what: what.into() }
    }
}

struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "layers", check: layers::check },
    Rule { name: "architecture", check: architecture::check },
    Rule { name: "cycles", check: cycles::check },
    Rule { name: "lengths", check: lengths::check },
    Rule { name: "sizes", check: sizes::check },
    Rule { name: "module-docs", check: module_docs::check },
    Rule { name: "function-docs", check: function_docs::check },
    Rule { name: "invariants", check: invariants::check },
    Rule { name: "words", check: words::check },
    Rule { name: "machine-paths", check: machine_paths::check },
    Rule { name: "paths", check: paths::check },
    Rule { name: "tables", check: tables::check },
    Rule { name: "decisions", check: decisions::check },
    Rule { name: "formats", check: formats::check },
    Rule { name: "exceptions", check: exceptions::check },
];

/// Checks the repository at `root` and prints one line per finding; true if there is none.
pub fn run(root: &Path, detail: Detail, out: &mut impl Write) -> anyhow::Result<bool> {
    let tree = Tree::read(root)?;
    if detail == Detail::Aims {
        write_findings(out, "aim", lengths::over_aims(&tree))?;
    }
    let mut count = 0;
    for rule in RULES {
        let findings = (rule.check)(&tree);
        count += findings.len();
        write_findings(out, rule.name, findings)?;
    }
    let verdict = if count == 0 { "no findings".to_owned() } else { format!("{count} findings") };
    writeln!(out, "tidy: {} files, {} rules, {verdict}", tree.len(), RULES.len())?;
    Ok(count == 0)
}

fn write_findings(out: &mut impl Write, rule: &str, mut findings: Vec<Finding>) -> io::Result<()> {
    findings.sort();
    for Finding { path, line, what } in findings {
        writeln!(out, "{path}:{line}: {rule}: {what}")?;
    }
    Ok(())
}

/// The number of the first line that `wanted` accepts; 1 if none does.
fn line_where(text: &str, wanted: impl Fn(&str) -> bool) -> usize {
    text.lines().position(wanted).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_with_its_place_first() {
        let mut out = Vec::new();
        let findings = vec![Finding::new("b", 2, "second"), Finding::new("a", 9, "first")];
        write_findings(&mut out, "lengths", findings).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a:9: lengths: first\nb:2: lengths: second\n");
    }

    /// If this fails, the repository breaks its own rules.
    #[test]
    fn this_repository_is_tidy() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut out = Vec::new();
        let good = run(root, Detail::Findings, &mut out).unwrap();
        assert!(good, "{}", String::from_utf8_lossy(&out));
    }
}
