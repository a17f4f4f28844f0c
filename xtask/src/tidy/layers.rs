//! Rule `layers`: every edge between crates of the workspace is in `layers.toml`, and points down.
//!
//! Reads manifests only. Cycles need no check: cargo refuses them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Finding, line_where};
use crate::tree::Tree;

pub const FILE: &str = "layers.toml";

/// The entry of `layers.toml` for one crate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    pub layer: u8,
    /// For readers only.
    #[serde(rename = "holds")]
    _holds: String,
    pub uses: Vec<String>,
    /// Edges for tests only; they may point up.
    #[serde(default)]
    dev: Vec<String>,
    /// The crate does not exist yet.
    #[serde(default)]
    planned: bool,
}

/// The entries of `layers.toml` by the crate's name.
///
/// # Errors
///
/// What is wrong with the file.
pub fn read(tree: &Tree) -> Result<BTreeMap<String, Layer>, Finding> {
    let text = tree.text(FILE).ok_or_else(|| Finding::new(FILE, 1, "missing; write it"))?;
    toml::from_str(text).map_err(|error| Finding::new(FILE, error_line(text, &error), error.message()))
}

/// A crate of the workspace: its name here is its directory's, whatever its package is called.
pub struct Member {
    pub name: String,
    pub manifest: String,
    package: String,
    edges: Vec<Edge>,
}

/// A dependency as written in a manifest, on any package.
struct Edge {
    package: String,
    for_tests: bool,
}

/// The crates whose manifests are in the tree, without those that the workspace excludes or that are separate.
pub fn members(tree: &Tree) -> Result<Vec<Member>, Vec<Finding>> {
    let mut members = Vec::new();
    let mut findings = Vec::new();
    let excluded = excluded(tree);
    for (path, text) in tree.ending("/Cargo.toml") {
        if excluded.iter().any(|folder| path.starts_with(&format!("{folder}/"))) {
            continue;
        }
        match text.parse::<toml::Table>() {
            Ok(table) if table.contains_key("workspace") => {}
            Ok(table) => members.extend(member(path, &table)),
            Err(error) => findings.push(Finding::new(path, error_line(text, &error), error.message())),
        }
    }
    if findings.is_empty() { Ok(members) } else { Err(findings) }
}

/// The findings of this rule in the whole tree.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let layers = match read(tree) {
        Ok(layers) => layers,
        Err(finding) => return vec![finding],
    };
    let members = match members(tree) {
        Ok(members) => members,
        Err(findings) => return findings,
    };
    let by_package: BTreeMap<&str, &str> =
        members.iter().map(|member| (member.package.as_str(), member.name.as_str())).collect();
    let file = tree.text(FILE).unwrap_or_default();
    let mut findings = check_file(file, &layers, &members);
    for member in &members {
        let text = tree.text(&member.manifest).unwrap_or_default();
        let Some(layer) = layers.get(&member.name) else {
            let what = format!("crate `{}` is not in {FILE}; add it with its layer", member.name);
            findings.push(Finding::new(&member.manifest, 1, what));
            continue;
        };
        for edge in &member.edges {
            let Some(to) = by_package.get(edge.package.as_str()) else { continue };
            if let Some(what) = wrong(member, layer, edge, to, &layers) {
                let line = line_where(text, |line| line.trim_start().starts_with(edge.package.as_str()));
                findings.push(Finding::new(&member.manifest, line, what));
            }
        }
    }
    findings
}

/// Why the edge is not allowed, if so.
fn wrong(
    from: &Member,
    layer: &Layer,
    edge: &Edge,
    to: &str,
    layers: &BTreeMap<String, Layer>,
) -> Option<String> {
    let name = &from.name;
    let written = layer.uses.iter().any(|used| used == to);
    if edge.for_tests {
        // A crate's own tests may enable one of its features.
        let written = written || to == name || layer.dev.iter().any(|used| used == to);
        return (!written).then(|| {
            format!(
                "tests of `{name}` use `{to}`, which {FILE} does not allow; remove it, or add it to `dev`"
            )
        });
    }
    if !written {
        return Some(format!(
            "`{name}` uses `{to}`, which {FILE} does not allow; remove it, or add it to `uses` in a commit of its own"
        ));
    }
    let is_below = layers.get(to).is_none_or(|to| to.layer < layer.layer);
    (!is_below).then(|| {
        format!("`{name}` uses `{to}`, which is not of a lower layer; turn the edge round, or move the shared part down")
    })
}

/// What is wrong within `layers.toml` itself.
fn check_file(text: &str, layers: &BTreeMap<String, Layer>, members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, layer) in layers {
        let heading = format!("[{name}]");
        let line = line_where(text, |line| line.trim() == heading);
        let mut add = |what: String| findings.push(Finding::new(FILE, line, what));
        let exists = members.iter().any(|member| member.name == *name);
        if exists && layer.planned {
            add(format!("`{name}` exists; remove `planned`"));
        }
        if !exists && !layer.planned {
            add(format!("crate `{name}` does not exist; remove the entry, or mark it `planned = true`"));
        }
        for used in layer.uses.iter().chain(&layer.dev) {
            if !layers.contains_key(used) {
                add(format!("`{name}` may use `{used}`, which has no entry; add one, or remove it here"));
            }
        }
        for used in &layer.uses {
            if layers.get(used).is_some_and(|used| used.layer >= layer.layer) {
                add(format!("`{name}` may use `{used}`, which is not of a lower layer; edges point down"));
            }
        }
    }
    findings
}

fn excluded(tree: &Tree) -> Vec<String> {
    let root = tree.text("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let list = root.as_ref().and_then(|root| root.get("workspace")?.get("exclude")?.as_array());
    list.into_iter().flatten().filter_map(toml::Value::as_str).map(str::to_owned).collect()
}

fn member(path: &str, table: &toml::Table) -> Option<Member> {
    let folder = path.strip_suffix("/Cargo.toml")?;
    let package = table.get("package")?.get("name")?.as_str()?.to_owned();
    let mut edges = Vec::new();
    collect_edges(table, &mut edges);
    for (_, target) in table.get("target").and_then(toml::Value::as_table).into_iter().flatten() {
        if let Some(target) = target.as_table() {
            collect_edges(target, &mut edges);
        }
    }
    let name = folder.rsplit('/').next().unwrap_or(folder).to_owned();
    Some(Member { name, manifest: path.to_owned(), package, edges })
}

fn collect_edges(table: &toml::Table, edges: &mut Vec<Edge>) {
    for (section, for_tests) in
        [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        for (key, value) in table.get(section).and_then(toml::Value::as_table).into_iter().flatten() {
            let renamed = value.get("package").and_then(toml::Value::as_str);
            edges.push(Edge { package: renamed.unwrap_or(key).to_owned(), for_tests });
        }
    }
}

fn error_line(text: &str, error: &toml::de::Error) -> usize {
    let start = error.span().map_or(0, |span| span.start);
    text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = r#"
[units]
layer = 0
holds = ""
uses = []

[codec]
layer = 1
holds = ""
uses = ["units"]
dev = ["kit"]

[kit]
layer = 3
holds = ""
uses = ["units"]
"#;

    fn found(layers: &str, codec: &str) -> Vec<String> {
        let codec = format!("[package]\nname = \"codec\"\n{codec}");
        let tree = Tree::of(&[
            (FILE, layers),
            ("Cargo.toml", "[workspace]\nexclude = [\"fuzz\"]\n"),
            ("crates/units/Cargo.toml", "[package]\nname = \"units\"\n"),
            ("crates/codec/Cargo.toml", &codec),
            ("crates/kit/Cargo.toml", "[package]\nname = \"parallax-kit\"\n"),
            ("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n"),
            ("bench/own/Cargo.toml", "[workspace]\n[package]\nname = \"own\"\n"),
        ]);
        check(&tree).into_iter().map(|f| format!("{}:{}: {}", f.path, f.line, f.what)).collect()
    }

    #[test]
    fn edges_that_are_written_pass() {
        let codec = "[dependencies]\nunits.workspace = true\nthiserror = \"2\"\n\
                     [dev-dependencies]\nkit = { package = \"parallax-kit\", path = \"../kit\" }\n";
        assert_eq!(found(LAYERS, codec), [""; 0]);
    }

    #[test]
    fn an_edge_that_is_not_written_is_found() {
        let codec = "[dependencies]\nparallax-kit.workspace = true\n";
        let findings = found(LAYERS, codec);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("crates/codec/Cargo.toml:4: `codec` uses `kit`"), "{findings:?}");
        let codec = "[build-dependencies]\nparallax-kit.workspace = true\n";
        assert_eq!(found(LAYERS, codec).len(), 1);
        let codec = "[target.'cfg(unix)'.dependencies]\nparallax-kit.workspace = true\n";
        assert_eq!(found(LAYERS, codec).len(), 1);
    }

    #[test]
    fn a_test_edge_that_is_not_written_is_found() {
        let layers = LAYERS.replace("dev = [\"kit\"]\n", "");
        let findings = found(&layers, "[dev-dependencies]\nparallax-kit.workspace = true\n");
        assert!(findings[0].contains("tests of `codec` use `kit`"), "{findings:?}");
    }

    #[test]
    fn an_edge_that_does_not_point_down_is_found_even_when_written() {
        let layers = LAYERS.replace("uses = [\"units\"]\ndev", "uses = [\"units\", \"kit\"]\ndev");
        for layers in [layers.clone(), layers.replace("layer = 3", "layer = 1")] {
            let findings = found(&layers, "[dependencies]\nparallax-kit.workspace = true\n");
            assert_eq!(findings.len(), 2, "{findings:?}");
            assert!(findings.iter().all(|line| line.contains("not of a lower layer")), "{findings:?}");
        }
    }

    #[test]
    fn a_crate_without_an_entry_is_found() {
        let layers = LAYERS.split("[kit]").next().unwrap().replace("dev = [\"kit\"]\n", "");
        let findings = found(&layers, "");
        assert_eq!(
            findings,
            ["crates/kit/Cargo.toml:1: crate `kit` is not in layers.toml; add it with its layer"]
        );
    }

    #[test]
    fn an_entry_without_a_crate_must_say_that_it_is_planned() {
        let stats = "[stats]\nlayer = 1\nholds = \"\"\nuses = []\n";
        let findings = found(&format!("{LAYERS}{stats}"), "");
        assert!(findings[0].starts_with("layers.toml:17: crate `stats` does not exist"), "{findings:?}");
        assert_eq!(found(&format!("{LAYERS}{stats}planned = true\n"), ""), [""; 0]);
    }

    #[test]
    fn a_planned_crate_that_exists_is_found() {
        let findings = found(&format!("{LAYERS}planned = true\n"), "");
        assert_eq!(findings, ["layers.toml:13: `kit` exists; remove `planned`"]);
    }

    #[test]
    fn a_broken_file_is_a_finding_with_its_line() {
        let findings = found("[units]\nlayer = 0\nholds = 7\nuses = []\n", "");
        assert!(findings[0].starts_with("layers.toml:3: "), "{findings:?}");
        assert!(found(&LAYERS.replace("uses", "users"), "")[0].contains("unknown field"));
    }
}
