//! Rule `decisions`: each decision has a unique number, its sections, and a line in the index.
//!
//! Checks the form; the reasons are for readers.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

const FOLDER: &str = "docs/decisions/";
const INDEX: &str = "docs/decisions/README.md";
const SECTIONS: &[&str] = &["## Context", "## Choice", "## Given up", "## What would change our mind"];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let index = tree.text(INDEX).unwrap_or_default();
    let mut by_number: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md").filter(|(path, _)| path.starts_with(FOLDER) && *path != INDEX) {
        let mut add = |what: String| findings.push(Finding::new(path, 1, what));
        let file = path.strip_prefix(FOLDER).unwrap_or(path);
        let number = file.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            add("the name does not begin with four digits and a dash; number it".to_owned());
        }
        if let Some(other) = by_number.insert(number, path) {
            add(format!("{other} has the same number; take the next free one"));
        }
        if !index.contains(&format!("]({file})")) {
            add(format!("{INDEX} does not link it; add a line there"));
        }
        for section in SECTIONS.iter().filter(|section| !text.lines().any(|line| line == **section)) {
            add(format!("has no section \"{section}\"; write it"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(file: &str, index: &str) -> usize {
        let good = SECTIONS.join("\n");
        check(&Tree::of(&[
            (INDEX, index),
            ("docs/decisions/0001-a.md", &good),
            (&format!("docs/decisions/{file}"), &good),
        ]))
        .len()
    }

    #[test]
    fn numbers_are_unique_and_the_index_is_whole() {
        let index = "[a](0001-a.md)\n[b](0002-b.md)\n[c](0001-b.md)\n[d](b.md)\n";
        assert_eq!(count("0002-b.md", index), 0);
        assert_eq!(count("0001-b.md", index), 1);
        assert_eq!(count("b.md", index), 1);
        assert_eq!(count("0003-c.md", index), 1);
    }

    #[test]
    fn a_decision_without_a_section_is_found() {
        let text = SECTIONS.join("\n").replace("## Given up", "");
        let tree = Tree::of(&[(INDEX, "[a](0001-a.md)"), ("docs/decisions/0001-a.md", &text)]);
        assert_eq!(check(&tree).len(), 1);
    }
}
