//! Rule `cycles`: the files of a crate use each other in one direction.
//!
//! Reads paths that begin with `crate`, `super`, `self` or a module that the file declares, outside tests. A name that
//! a file re-exports belongs to that file. Applies to the crates listed here; the compiler does not care, a reader
//! does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::rust::{TestLines, inside, is_ident, is_punct};
use crate::tree::Tree;

/// The source folders without cycles.
const ACYCLIC: &[&str] = &["crates/cli/src/", "crates/run/src/", "crates/explain/src/"];

/// The findings of this rule in the whole tree: one per file that is the first of a cycle.
pub fn check(tree: &Tree) -> Vec<Finding> {
    ACYCLIC.iter().flat_map(|folder| check_crate(tree, folder)).collect()
}

/// Which file uses which, and the first line on which it does.
type Uses = BTreeMap<String, BTreeMap<String, usize>>;

fn check_crate(tree: &Tree, folder: &str) -> Vec<Finding> {
    let files = tree.ending(".rs").filter_map(|(path, text)| Some((path.strip_prefix(folder)?, text)));
    let files: BTreeMap<&str, &str> =
        files.filter(|(path, _)| !path.split('/').any(|part| matches!(part, "tests" | "tests.rs"))).collect();
    let modules: BTreeMap<Vec<String>, &str> = files.keys().map(|path| (module(path), *path)).collect();
    let uses: Uses =
        files.iter().map(|(path, text)| ((*path).to_owned(), used(path, text, &modules))).collect();
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for file in uses.keys() {
        // Only one finding for files that are in one cycle.
        let Some(cycle) =
            shortest_cycle(&uses, file).filter(|cycle| cycle.iter().all(|one| !seen.contains(one)))
        else {
            continue;
        };
        let line = uses[file][&cycle[1]];
        let what = format!(
            "files use each other in a cycle: {}; move what both need to a third",
            cycle.join(" -> ")
        );
        findings.push(Finding::new(&format!("{folder}{file}"), line, what));
        seen.extend(cycle);
    }
    findings
}

/// `a/mod.rs` and `a.rs` are the module `a`; `lib.rs` and `main.rs` the crate itself.
fn module(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let parts = path.split('/').filter(|part| !matches!(*part, "lib" | "main"));
    parts.map(str::to_owned).collect()
}

/// The other files that the file at `path` uses.
fn used(path: &str, text: &str, modules: &BTreeMap<Vec<String>, &str>) -> BTreeMap<String, usize> {
    // Syntax errors are found by the rule `lengths`.
    let (Ok(file), Ok(tokens)) = (syn::parse_file(text), text.parse::<TokenStream>()) else {
        return BTreeMap::new();
    };
    let mut finder = Paths { tests: TestLines::of(path, &file), found: Vec::new() };
    finder.walk(tokens, &module(path));
    let mut used = BTreeMap::new();
    for (name, line) in finder.found {
        let file = (0..=name.len()).rev().find_map(|length| modules.get(&name[..length]));
        if let Some(file) = file.filter(|file| **file != path) {
            used.entry((*file).to_owned()).or_insert(line);
        }
    }
    used
}

/// Collects full paths of names, each with its line.
struct Paths {
    tests: TestLines,
    found: Vec<(Vec<String>, usize)>,
}

impl Paths {
    /// Reads `tokens`, which are in the module `at`.
    fn walk(&mut self, tokens: TokenStream, at: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let declared: BTreeSet<String> = tokens.windows(2).filter_map(declared_module).collect();
        let mut index = 0;
        while index < tokens.len() {
            let token = &tokens[index];
            let follows_path = ends_in_path(&tokens[..index]);
            match token {
                _ if self.tests.contain(token.span().start().line) => {}
                TokenTree::Ident(name) if !follows_path && is_path(&tokens[index + 1..]) => {
                    let name = name.to_string();
                    let base = match name.as_str() {
                        "crate" => Some(Vec::new()),
                        "self" => Some(at.to_vec()),
                        "super" => Some(parent(at)),
                        name if declared.contains(name) => Some([at, &[name.to_owned()]].concat()),
                        _ => None,
                    };
                    if let Some(base) = base {
                        self.path(base, &tokens[index + 1..]);
                    }
                }
                TokenTree::Ident(name) if name == "mod" => {
                    if let (Some(TokenTree::Ident(name)), Some(within)) =
                        (tokens.get(index + 1), inside(tokens.get(index + 2), Delimiter::Brace))
                    {
                        self.walk(within, &[at, &[name.to_string()]].concat());
                        index += 2;
                    }
                }
                TokenTree::Group(group) => self.walk_group(group.stream(), at, &declared),
                _ => {}
            }
            index += 1;
        }
    }

    /// Within a group, the modules declared around it are known.
    fn walk_group(&mut self, tokens: TokenStream, at: &[String], declared: &BTreeSet<String>) {
        let declarations = declared.iter().map(|name| format!("mod {name};")).collect::<String>();
        let mut all: TokenStream = declarations.parse().unwrap_or_default();
        all.extend(tokens);
        self.walk(all, at);
    }

    /// What follows `base`: `::name`, or `::{…}` with several.
    fn path(&mut self, mut base: Vec<String>, mut rest: &[TokenTree]) {
        while is_path(rest) {
            match &rest[2] {
                TokenTree::Ident(name) if name == "super" => base = parent(&base),
                TokenTree::Ident(name) => {
                    base.push(name.to_string());
                    self.found.push((base.clone(), name.span().start().line));
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for one in inner.split(|token| is_punct(token, ',')).filter(|one| !one.is_empty()) {
                        let mut name = base.clone();
                        if !is_ident(&one[0], "self") {
                            name.push(one[0].to_string());
                        }
                        self.found.push((name.clone(), one[0].span().start().line));
                        self.path(name, &one[1..]);
                    }
                    return;
                }
                // `super::*`: everything of that module.
                token => return self.found.push((base, token.span().start().line)),
            }
            rest = &rest[3..];
        }
    }
}

fn parent(module: &[String]) -> Vec<String> {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// Whether the tokens continue with `::` and something after it.
fn is_path(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [first, second, _, ..] if is_punct(first, ':') && is_punct(second, ':'))
}

/// Whether what comes next goes on with a path, or is a field or a method.
fn ends_in_path(tokens: &[TokenTree]) -> bool {
    match tokens {
        [.., first, second] if is_punct(first, ':') && is_punct(second, ':') => true,
        [.., last] => is_punct(last, '.'),
        [] => false,
    }
}

/// `mod name`, in two tokens.
fn declared_module(tokens: &[TokenTree]) -> Option<String> {
    match tokens {
        [first, TokenTree::Ident(name)] if is_ident(first, "mod") => Some(name.to_string()),
        _ => None,
    }
}

/// The shortest chain of files from `file` back to itself, with it at both ends.
fn shortest_cycle(uses: &Uses, file: &str) -> Option<Vec<String>> {
    let mut paths = VecDeque::from([vec![file.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(path) = paths.pop_front() {
        for next in uses.get(path.last()?)?.keys() {
            let longer = [path.as_slice(), std::slice::from_ref(next)].concat();
            if next == file {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                paths.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(path, _)| format!("crates/cli/src/{path}")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)).collect();
        let shown = |finding: Finding| {
            let path = finding.path.trim_start_matches("crates/cli/src/").to_owned();
            let cycle = finding.what.split(['(', ';']).next().unwrap_or_default();
            format!(
                "{path}:{}: {}",
                finding.line,
                cycle.trim_start_matches("files use each other in a cycle: ")
            )
        };
        check(&Tree::of(&files)).into_iter().map(shown).collect()
    }

    #[test]
    fn a_name_of_the_root_or_of_a_sibling_makes_a_cycle() {
        let main = "mod a;\nmod b;\nfn main() {\n    a::run();\n}\npub fn say() {}\n";
        assert_eq!(
            found(&[("main.rs", main), ("a.rs", "\nuse crate::{say};\n")]),
            ["a.rs:2: a.rs -> main.rs -> a.rs"]
        );
        assert_eq!(
            found(&[
                ("a.rs", "use crate::b::{B, C};\n"),
                ("b.rs", "use crate::c::x;\n"),
                ("c.rs", "fn f(x: crate::a::A) {}")
            ]),
            ["a.rs:1: a.rs -> b.rs -> c.rs -> a.rs"]
        );
        assert_eq!(
            found(&[("a.rs", "use crate::{b, c::d};\n"), ("c.rs", "use super::a;\n")]),
            ["a.rs:1: a.rs -> c.rs -> a.rs"]
        );
    }

    #[test]
    fn a_parent_and_its_part_use_each_other_in_one_direction() {
        let parent = "mod part;\nuse self::part::Part;\npub struct Whole;\n";
        assert_eq!(
            found(&[("a/mod.rs", parent), ("a/part.rs", "use super::Whole;\n")]),
            ["a/mod.rs:2: a/mod.rs -> a/part.rs -> a/mod.rs"]
        );
        assert_eq!(
            found(&[("a.rs", parent), ("a/part.rs", "use super::other::Other;\n"), ("a/other.rs", "")]),
            [""; 0]
        );
        // Declared, and not used.
        assert_eq!(
            found(&[("a.rs", "mod part;\npub struct Whole;\n"), ("a/part.rs", "use super::Whole;\n")]),
            [""; 0]
        );
    }

    #[test]
    fn tests_and_inline_modules_make_none() {
        let tested = "use crate::b::B;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        let inline =
            "mod inner {\n    use super::*;\n}\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
        assert_eq!(found(&[("a.rs", tested), ("b.rs", inline), ("a/tests.rs", "use super::*;\n")]), [""; 0]);
    }
}
