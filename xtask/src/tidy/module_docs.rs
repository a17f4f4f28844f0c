//! Rule `module-docs`: a source file begins with what it is for.
//!
//! Checks that the text exists; whether it is good is for reviewers.

use super::Finding;
use crate::tree::Tree;

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".rs")
        .filter(|(path, text)| is_source(path) && !text.starts_with("//!"))
        .map(|(path, _)| {
            let what = "does not open with `//!`; say what it is for, what it does not do, who drives it";
            Finding::new(path, 1, what)
        })
        .collect()
}

fn is_source(path: &str) -> bool {
    path.starts_with("xtask/src/") || (path.starts_with("crates/") && path.split('/').nth(2) == Some("src"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_source_file_without_its_opening_is_found() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! What a is for.\n"),
            ("crates/a/src/deep/b.rs", "use std::io;\n//! too late\n"),
            ("crates/a/tests/it.rs", "fn main() {}\n"),
            ("tests/e2e/src/lib.rs", "fn main() {}\n"),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/a/src/deep/b.rs");
    }
}
