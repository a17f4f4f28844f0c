//! Rule `formats`: the JSON under `formats/` is valid JSON, and the licences exist.
//!
//! Whether a record fits its schema is checked by the tests of the crate that writes it.

use super::Finding;
use crate::tree::Tree;

const LICENCES: &[(&str, &str)] =
    &[("LICENSE-MIT", "Permission is hereby granted"), ("LICENSE-APACHE", "Apache License")];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.starts_with("formats/")) {
        if path.ends_with(".json") {
            findings.extend(not_json(path, 0, text));
        } else if path.ends_with(".ndjson") {
            let lines = text.lines().enumerate();
            findings.extend(lines.filter_map(|(index, line)| not_json(path, index, line)));
        }
    }
    for (path, words) in LICENCES {
        if !tree.text(path).is_some_and(|text| text.contains(words)) {
            findings.push(Finding::new(path, 1, "the licence's text is missing; restore it"));
        }
    }
    findings
}

fn not_json(path: &str, lines_before: usize, text: &str) -> Option<Finding> {
    let error = serde_json::from_str::<serde_json::Value>(text).err()?;
    Some(Finding::new(path, lines_before + error.line().max(1), format!("is not JSON ({error}); correct it")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(String, usize)> {
        let tree = Tree::of(&[(path, text), (LICENCES[0].0, LICENCES[0].1), (LICENCES[1].0, LICENCES[1].1)]);
        check(&tree).into_iter().map(|f| (f.path, f.line)).collect()
    }

    #[test]
    fn json_that_does_not_parse_is_found_with_its_line() {
        assert_eq!(found("formats/run.schema.json", "{\n  \"a\": 1\n}\n"), []);
        assert_eq!(found("formats/a.json", "{\n  \"a\": 1,\n}\n"), [("formats/a.json".to_owned(), 3)]);
        assert_eq!(found("formats/a.ndjson", "{}\n{\n{}\n"), [("formats/a.ndjson".to_owned(), 2)]);
        assert_eq!(found("other/a.json", "{"), []);
    }

    #[test]
    fn a_missing_or_empty_licence_is_found() {
        assert_eq!(check(&Tree::of(&[("LICENSE-MIT", "")])).len(), 2);
    }
}
