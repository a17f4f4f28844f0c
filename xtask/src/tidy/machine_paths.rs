//! Rule `machine-paths`: no tracked file contains a path that exists only on one developer's machine.
//!
//! Such a path works nowhere else. A file that needs one is listed in `xtask/exceptions.toml`.

use super::exceptions;
use super::{Finding, line_where};
use crate::tree::Tree;

/// Joined here, so that this file passes its own rule.
const FOLDERS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/")];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    // An unreadable list is found by the rule `exceptions`.
    let exceptions = exceptions::read(tree).unwrap_or_default();
    let mut findings = Vec::new();
    let mut used = vec![false; exceptions.machine_path.len()];
    for (path, text) in tree.texts().filter(|(path, _)| *path != exceptions::FILE) {
        for (index, line) in text.lines().enumerate() {
            let Some(folder) = FOLDERS.iter().find(|folder| names(line, folder)) else { continue };
            match exceptions.machine_path.iter().position(|entry| entry.path == path) {
                Some(entry) => used[entry] = true,
                None => {
                    let what = format!("a path under {folder}; name it from the repository or from $HOME");
                    findings.push(Finding::new(path, index + 1, what));
                }
            }
        }
    }
    for (entry, _) in exceptions.machine_path.iter().zip(used).filter(|(_, used)| !used) {
        let text = tree.text(exceptions::FILE).unwrap_or_default();
        let line = line_where(text, |line| line.contains(&format!("\"{}\"", entry.path)));
        let what = format!("{} names no such path; remove the entry", entry.path);
        findings.push(Finding::new(exceptions::FILE, line, what));
    }
    findings
}

/// Whether the directory occurs in the line at the start of a path, not in the middle of one.
fn names(line: &str, folder: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || "._-*})>".contains(c);
    line.match_indices(folder).any(|(at, _)| !line[..at].ends_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception(path: &str) -> String {
        format!("[[machine_path]]\npath = \"{path}\"\nreason = \"a target's path\"\n")
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        for folder in FOLDERS {
            let findings = check(&Tree::of(&[("a.sh", &format!("one\ncd {folder}me\n"))]));
            assert_eq!((findings.len(), findings[0].line), (1, 2));
            assert_eq!(check(&Tree::of(&[("a.sh", &format!("cd target{folder}me\n"))])), []);
        }
    }

    #[test]
    fn an_exception_holds_while_it_is_needed() {
        let text = format!("GET {}x", FOLDERS[1]);
        let listed = exception("a.rs");
        assert_eq!(check(&Tree::of(&[("a.rs", &text), (exceptions::FILE, &listed)])), []);
        let findings = check(&Tree::of(&[("a.rs", ""), (exceptions::FILE, &listed)]));
        assert_eq!((findings.len(), findings[0].line), (1, 2));
    }
}
