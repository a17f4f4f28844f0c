//! Rule `paths`: a path, link or heading that a document names exists.
//!
//! Reads Markdown outside code blocks: text in backticks that looks like a path here, and relative links.

use super::Finding;
use crate::tree::Tree;

/// Directories a path may begin with, in addition to those that exist, so that a removed one is found too.
const FOLDERS: &[&str] = &[
    ".cargo", ".ci", "bench", "crates", "docs", "formats", "fuzz", "jvm", "lab", "scripts", "tests", "web",
    "xtask",
];

/// Files in the root directory that are recognised by name alone.
const ROOT_FILES: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "LIMITS.md",
    "METHODOLOGY.md",
    "Makefile",
    "README.md",
    "SECURITY.md",
    "clippy.toml",
    "layers.toml",
    "rustfmt.toml",
];

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.ending(".md").flat_map(|(path, text)| check_document(tree, path, text)).collect()
}

fn check_document(tree: &Tree, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, prose) in prose(text) {
        for code in code_spans(prose) {
            if let Some(named) = as_path(tree, code)
                && !tree.has(&named)
                && !tree.has(&resolve(path, &named))
            {
                let what = format!("`{named}` does not exist; correct it, or remove it");
                findings.push(Finding::new(path, line, what));
            }
        }
        for link in links(prose) {
            if let Some(what) = broken(tree, path, link) {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    findings
}

/// The lines outside fenced code blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// The text between pairs of backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The path in the code span, up to its first variable part; `None` if it is something else.
fn as_path(tree: &Tree, code: &str) -> Option<String> {
    let code = code.strip_prefix("./").unwrap_or(code);
    let code = code.split_once(':').map_or(code, |(path, _line)| path).trim_end_matches('/');
    if ROOT_FILES.contains(&code) {
        return Some(code.to_owned());
    }
    let (first, _) = code.split_once('/')?;
    let spoken_of = FOLDERS.contains(&first) || (tree.has(first) && tree.text(first).is_none());
    if !spoken_of || code.contains(char::is_whitespace) {
        return None;
    }
    let fixed = code.split('/').take_while(|part| !is_variable(part));
    Some(fixed.collect::<Vec<_>>().join("/"))
}

/// `*`, `<name>`, `{a,b}`, `NNNN-title.md`.
fn is_variable(part: &str) -> bool {
    part.contains(['*', '<', '{', '…']) || part.contains("NNNN")
}

/// The targets of inline links, images and reference definitions.
fn links(line: &str) -> Vec<&str> {
    let outside_code = |at: usize| line[..at].matches('`').count().is_multiple_of(2);
    let inline = line.match_indices("](").filter(|(at, _)| outside_code(*at)).filter_map(|(at, open)| {
        let rest = &line[at + open.len()..];
        Some(&rest[..rest.find(')')?])
    });
    let defined = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    inline.chain(defined).map(|link| link.split_whitespace().next().unwrap_or_default()).collect()
}

/// Why the link is broken, if it is. Links to other sites are not followed.
fn broken(tree: &Tree, path: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let file = if file.is_empty() { path.to_owned() } else { resolve(path, file.trim_end_matches('/')) };
    if !tree.has(&file) {
        return Some(format!("the link to {link} leads nowhere; correct it, or remove it"));
    }
    let anchor = anchor.filter(|_| file.ends_with(".md"))?;
    let found = tree.text(&file).is_some_and(|text| anchors(text).iter().any(|known| known == anchor));
    (!found).then(|| format!("{file} has no heading for #{anchor}; correct the link"))
}

/// The path from the root of what a document at `path` calls `named`.
fn resolve(path: &str, named: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    let mut anchors: Vec<String> = Vec::new();
    for (_, heading) in headings {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let earlier = anchors.iter().filter(|known| **known == anchor).count();
        anchors.push(anchor.clone());
        if earlier > 0 {
            anchors.push(format!("{anchor}-{earlier}"));
        }
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(document: &str) -> Vec<(usize, String)> {
        let tree = Tree::of(&[
            ("docs/a.md", document),
            ("docs/decisions/0001-first.md", "# The first\n## Why, and why not\n"),
            ("crates/units/src/lib.rs", ""),
            ("Cargo.toml", ""),
        ]);
        check(&tree).into_iter().map(|f| (f.line, f.what)).collect()
    }

    fn passes(document: &str) {
        assert_eq!(found(document), []);
    }

    fn fails(document: &str) {
        assert_eq!(found(document).len(), 1, "{document}");
    }

    #[test]
    fn a_path_in_backticks_must_exist() {
        passes("see `crates/units/src/lib.rs`, `crates/units`, `crates/units/`, `Cargo.toml` and\n");
        passes("`crates/units/src/lib.rs:12`, `./crates/units`, `decisions/0001-first.md`\n");
        fails("see `crates/united/src/lib.rs`\n");
        fails("see `Makefile`\n");
        fails("gone: `lab/subjects`\n");
        assert_eq!(found("one\n`docs/b.md`\n")[0].0, 2);
    }

    #[test]
    fn what_is_no_path_is_left_alone() {
        passes("`500/s`, `text/html`, `cargo xtask tidy`, `/plaintext`, `Reactor::close`, `a / b`\n");
        passes("```\ncrates/nothing `crates/nothing`\n```\n");
        passes("crates/nothing without backticks\n");
    }

    #[test]
    fn a_path_with_a_variable_part_is_checked_up_to_it() {
        passes("`crates/*/src`, `docs/decisions/NNNN-title.md`, `crates/<name>`\n");
        fails("`docs/choices/NNNN-title.md`\n");
    }

    #[test]
    fn a_relative_link_must_lead_somewhere() {
        passes(
            "[a](decisions/0001-first.md), [b](../Cargo.toml), [c](https://example.org/x), [d](../crates/)\n",
        );
        fails("[a](decisions/0002-second.md)\n");
        fails("![a](picture.svg)\n");
        fails("[a]: nowhere.md\n");
        passes("`[a](nowhere.md)`\n");
    }

    #[test]
    fn an_anchor_must_be_a_heading() {
        passes("[a](decisions/0001-first.md#why-and-why-not)\n");
        fails("[a](decisions/0001-first.md#why)\n");
        passes("# Twice\n# Twice\n[a](#twice-1)\n");
        fails("[a](#thrice)\n");
    }
}
