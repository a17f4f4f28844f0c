//! Rule `architecture`: `ARCHITECTURE.md` describes every crate, and its table of layers agrees with `layers.toml`.
//!
//! The table is the one whose first columns are `crate`, `layer` and `may use`.

use std::collections::BTreeMap;

use super::layers::{self, Layer};
use super::{Finding, line_where};
use crate::tree::Tree;

const FILE: &str = "ARCHITECTURE.md";

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(text) = tree.text(FILE) else {
        return vec![Finding::new(FILE, 1, "missing; write it")];
    };
    // Errors in manifests and layers are found by the rule `layers`.
    let (Ok(members), Ok(layers)) = (layers::members(tree), layers::read(tree)) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for member in members.iter().filter(|member| member.manifest.starts_with("crates/")) {
        if !describes(text, &member.name) {
            let what =
                format!("no heading or table row for crate `{}`; say what it does and does not", member.name);
            findings.push(Finding::new(FILE, 1, what));
        }
    }
    findings.extend(check_table(text, &layers));
    findings
}

/// Whether a heading, or the first cell of a row outside the table of layers, names the crate.
fn describes(text: &str, name: &str) -> bool {
    let names = [format!("`{name}`"), format!("`crates/{name}`"), name.to_owned()];
    let table = layers_table(text).map(|row| row.line).collect::<Vec<_>>();
    text.lines().enumerate().any(|(index, line)| {
        let heading = line.starts_with('#').then(|| line.trim_start_matches('#').trim());
        let cell = cells(line).first().copied().filter(|_| !table.contains(&(index + 1)));
        heading.or(cell).is_some_and(|named| names.iter().any(|name| name == named))
    })
}

fn check_table(text: &str, layers: &BTreeMap<String, Layer>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in layers_table(text) {
        let what = match layers.get(row.name) {
            None => format!("`{}` is not in {}; remove the row", row.name, layers::FILE),
            Some(layer) if !row.says(layer) => {
                format!(
                    "the row of `{}` differs from {}; write layer {} and {:?}",
                    row.name,
                    layers::FILE,
                    layer.layer,
                    layer.uses
                )
            }
            Some(_) => continue,
        };
        findings.push(Finding::new(FILE, row.line, what));
    }
    for name in layers.keys() {
        if !layers_table(text).any(|row| row.name == name) {
            let line = line_where(text, is_table_head);
            findings.push(Finding::new(
                FILE,
                line,
                format!("the table of layers has no row for `{name}`; add it"),
            ));
        }
    }
    findings
}

struct Row<'a> {
    line: usize,
    name: &'a str,
    layer: &'a str,
    uses: Vec<&'a str>,
}

impl Row<'_> {
    fn says(&self, layer: &Layer) -> bool {
        let mut written = self.uses.clone();
        let mut allowed: Vec<&str> = layer.uses.iter().map(String::as_str).collect();
        written.sort_unstable();
        allowed.sort_unstable();
        self.layer == layer.layer.to_string() && written == allowed
    }
}

fn layers_table(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| !is_table_head(line));
    lines.skip(2).map_while(|(index, line)| {
        let [name, layer, uses, ..] = cells(line)[..] else { return None };
        let uses = if uses == "nothing" { Vec::new() } else { uses.split(", ").map(bare).collect() };
        Some(Row { line: index + 1, name: bare(name), layer, uses })
    })
}

fn is_table_head(line: &str) -> bool {
    cells(line).starts_with(&["crate", "layer", "may use"])
}

/// The cells of a table's row; empty if the line is not a row.
fn cells(line: &str) -> Vec<&str> {
    match line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
        Some(inner) => inner.split('|').map(str::trim).collect(),
        None => Vec::new(),
    }
}

fn bare(name: &str) -> &str {
    name.trim_matches('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "\
# How it is built
| crate | what it does |
|---|---|
| `units` | values |
## `codec`
| crate | layer | may use |
|---|---|---|
| `units` | 0 | nothing |
| `codec` | 1 | `units`, `clock` |
| `clock` | 0 | nothing |
";

    fn found(document: &str) -> Vec<String> {
        let layers = "[units]\nlayer = 0\nholds = \"\"\nuses = []\n[codec]\nlayer = 1\nholds = \"\"\n\
                      uses = [\"clock\", \"units\"]\n[clock]\nlayer = 0\nholds = \"\"\nuses = []\nplanned = true\n";
        let tree = Tree::of(&[
            (FILE, document),
            (layers::FILE, layers),
            ("crates/units/Cargo.toml", "[package]\nname = \"units\"\n"),
            ("crates/codec/Cargo.toml", "[package]\nname = \"codec\"\n"),
        ]);
        check(&tree).into_iter().map(|f| format!("{}: {}", f.line, f.what)).collect()
    }

    #[test]
    fn a_document_that_agrees_passes() {
        assert_eq!(found(DOCUMENT), [""; 0]);
    }

    #[test]
    fn a_crate_that_is_not_described_is_found() {
        let findings = found(&DOCUMENT.replace("## `codec`\n", ""));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("no heading or table row for crate `codec`"), "{findings:?}");
    }

    #[test]
    fn a_row_that_differs_is_found() {
        let findings = found(&DOCUMENT.replace("| 1 | `units`, `clock`", "| 1 | `units`"));
        assert!(findings[0].starts_with("9: the row of `codec` differs"), "{findings:?}");
        assert_eq!(found(&DOCUMENT.replace("`units` | 0", "`units` | 2")).len(), 1);
        assert_eq!(found(&DOCUMENT.replace("| `clock` | 0", "| `clack` | 0")).len(), 2);
    }

    #[test]
    fn a_document_without_the_table_is_found() {
        assert_eq!(found(&DOCUMENT.replace("may use", "uses")).len(), 3);
    }
}
