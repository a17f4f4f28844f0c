//! Rule `function-docs`: a public function has a documentation comment.
//!
//! Reads lines. Whether a comment is good is for reviewers.

use super::Finding;
use crate::rust::TestLines;
use crate::tree::Tree;

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".rs")
        .filter(|(path, _)| is_checked(path))
        .flat_map(|(path, text)| check_file(path, text))
        .collect()
}

/// The sources of every crate. The test crates under `tests` are left out: their functions are named by what they do.
fn is_checked(path: &str) -> bool {
    path.starts_with("xtask/src/") || (path.starts_with("crates/") && path.contains("/src/"))
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    // Syntax errors are found by the rule `lengths`.
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let tests = TestLines::of(path, &file);
    let mut findings = Vec::new();
    let mut is_documented = false;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim_start();
        if is_public_function(text) && !is_documented && !tests.contain(line) {
            findings.push(Finding::new(path, line, "a public function without `///`; document it"));
        }
        // There may be attributes between the comment and the function, on several lines.
        is_documented = text.starts_with("///") || (is_documented && !text.ends_with(['{', '}', ';', ',']));
    }
    findings
}

fn is_public_function(line: &str) -> bool {
    let Some(mut rest) = line.strip_prefix("pub ") else { return false };
    while let Some(after) = ["const ", "unsafe ", "async "].iter().find_map(|word| rest.strip_prefix(word)) {
        rest = after;
    }
    rest.starts_with("fn ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_functions_without_a_comment_are_found() {
        let text = "\
/// What it is.
pub struct A;

impl A {
    pub const fn bare() {}

    /// What it does.
    #[must_use]
    pub fn documented() {}

    fn private() {}
}

#[cfg(test)]
mod tests {
    pub fn helper() {}
}
";
        let tree = Tree::of(&[("crates/units/src/a.rs", text), ("tests/other/src/b.rs", "pub fn f() {}\n")]);
        let findings = check(&tree);
        assert_eq!(
            findings,
            [Finding::new("crates/units/src/a.rs", 5, "a public function without `///`; document it")]
        );
    }
}
