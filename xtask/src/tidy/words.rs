//! Rule `words`: no note of unfinished work, and no disabled test.
//!
//! What is missing belongs in an issue, which has a reader; a note in the source has none.

use super::Finding;
use crate::tree::Tree;

/// Joined here, so that this file passes its own rule.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];
const IN_RUST: &[&str] = &[concat!("todo", "!("), concat!("#[", "ignore")];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        let is_rust = path.ends_with(".rs");
        for (index, line) in text.lines().enumerate() {
            let note = NOTES.iter().find(|note| has_word(line, note));
            let in_rust = IN_RUST.iter().find(|pattern| is_rust && line.contains(**pattern));
            if let Some(found) = note.or(in_rust) {
                let what = format!("`{found}`; finish it, or open an issue and remove it");
                findings.push(Finding::new(path, index + 1, what));
            }
        }
    }
    findings
}

/// Whether `word` is in `line` without a letter, digit or underscore next to it.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(part_of_word) && !line[at + word.len()..].starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn notes_are_found_in_every_kind_of_file() {
        for note in NOTES {
            assert_eq!(count("a.md", &format!("{note}: later\n")), 1);
            assert_eq!(count("a.rs", &format!("// ({note})\n")), 1);
            assert_eq!(count("a.sh", &format!("X{note}S=1\n")), 0);
        }
    }

    #[test]
    fn unfinished_and_switched_off_code_is_found() {
        assert_eq!(count("a.rs", concat!("fn f() { todo", "!() }\n")), 1);
        assert_eq!(count("a.rs", concat!("#[", "ignore = \"slow\"]\nfn f() {}\n")), 1);
        assert_eq!(count("a.md", concat!("the attribute #[", "ignore]\n")), 0);
    }
}
