//! Rule `tables`: no Markdown table has two rows with the same first cell.
//!
//! Such rows remain where two texts were merged, and readers may believe either. A first cell that is empty or a number
//! identifies nothing.

use super::Finding;
use crate::tree::Tree;

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".md").flat_map(|(path, text)| twice(path, text)).collect()
}

fn twice(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    // The first cells of the table so far.
    let mut seen: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(cell) = first_cell(line) else {
            seen.clear();
            continue;
        };
        if seen.contains(&cell) {
            let what = format!("the table has a row `{cell}` already; make one of the two");
            findings.push(Finding::new(path, index + 1, what));
        } else if cell.starts_with(|c: char| !c.is_ascii_digit()) {
            seen.push(cell);
        }
    }
    findings
}

/// `None` outside tables.
fn first_cell(line: &str) -> Option<&str> {
    let cell = line.trim_start().strip_prefix('|')?.split('|').next()?;
    Some(cell.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        check(&Tree::of(&[("a.md", text)])).len()
    }

    #[test]
    fn rows_that_begin_alike_are_found_within_one_table() {
        let table = "| kind | rule |\n|---|---|\n| unit | one |\n| fuzz | two |\n";
        assert_eq!(count(table), 0);
        assert_eq!(count(&format!("{table}| unit | three |\n")), 1);
        assert_eq!(count(&format!("{table}\n{table}")), 0);
        assert_eq!(count("| a | b |\n|---|---|\n| | one |\n| | two |\n| 5/s | one |\n| 5/s | two |\n"), 0);
        assert_eq!(check(&Tree::of(&[("a.rs", "| a |\n| a |\n")])), []);
    }
}
