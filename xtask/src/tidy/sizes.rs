//! Rule `sizes`: a crate has at most 7,000 lines of code, the command line's 5,000.
//!
//! Lines of code are those of Rust that are neither blank nor a comment, without tests: a `mod tests` at the end of its
//! file, a file `tests.rs` or `testing.rs`, and all below a folder `tests`.

use std::collections::BTreeMap;

use super::Finding;
use crate::tree::Tree;

const MOST: usize = 7_000;

/// Crates with their own limit, by directory.
const LIMITS: [(&str, usize); 1] = [("crates/cli", 5_000)];

/// One finding per crate that is over its limit.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !is_test(path)) {
        let mut parts = path.splitn(4, '/');
        if let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next()) {
            *crates.entry(format!("crates/{name}")).or_default() += lines_of_code(text);
        }
    }
    let over = crates.into_iter().filter_map(|(folder, lines)| {
        let own = LIMITS.iter().find(|(limited, _)| *limited == folder).map(|(_, most)| *most);
        let most = own.unwrap_or(MOST);
        (lines > most).then(|| {
            let what = format!("the crate has {lines} lines of code, at most {most} are allowed; split it");
            Finding::new(&format!("{folder}/Cargo.toml"), 1, what)
        })
    });
    over.collect()
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "testing.rs"))
}

fn lines_of_code(text: &str) -> usize {
    let mut lines = text.lines().map(str::trim).peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let begins_tests = line == "#[cfg(test)]"
            && lines.peek().is_some_and(|next| next.contains("mod ") && next.ends_with('{'));
        if begins_tests {
            break;
        }
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_comments_and_tests_do_not_count() {
        let text = "//! What it is.\n\nuse a;\n\n/// Does it.\nfn b() {\n    // why\n    c();\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    fn d() {}\n}\n";
        assert_eq!(lines_of_code(text), 4);
        assert!(is_test("crates/a/src/tests/b.rs") && is_test("crates/a/src/b/tests.rs"));
        assert!(!is_test("crates/a/src/attests.rs"));
    }

    #[test]
    fn the_command_line_has_a_lower_limit() {
        let code = "x;\n".repeat(5_001);
        let tree = Tree::of(&[("crates/cli/src/main.rs", &code), ("crates/a/src/lib.rs", &code)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("5001 lines of code, at most 5000"), "{found:?}");
    }
}
