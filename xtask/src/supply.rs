//! `cargo xtask supply`: checks what a build takes from others against `deny.toml`: licences, banned packages, sources,
//! and the advisories of `supply/advisories.tsv`.
//!
//! `deny.toml` is a configuration of cargo-deny, which fetches the newest advisories but takes ten minutes to compile
//! and needs the network. This command needs neither, so it is part of every CI run.

mod advisories;
mod notices;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

pub use advisories::update;
pub use notices::write as write_notices;

/// The part of `cargo metadata` that is needed here.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Debug, Clone, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: semver::Version,
    license: Option<String>,
    /// `None` for our own packages.
    source: Option<String>,
    repository: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// `build` or `dev`; `None` for what is linked in.
    kind: Option<String>,
}

/// The part of `deny.toml` that is checked here.
#[derive(Debug, Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
    advisories: Ignored,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: Vec<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Ignored {
    ignore: Vec<String>,
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Prints what is not allowed; false if there is anything.
pub fn run(root: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let policy = fs::read_to_string(root.join("deny.toml")).context("deny.toml")?;
    let policy: Policy = toml::from_str(&policy).context("deny.toml")?;
    let copy = fs::read_to_string(root.join(advisories::PATH)).context(advisories::PATH)?;
    let known = advisories::parse(&copy)?;
    let metadata = metadata(root, &[])?;
    let foreign: Vec<&Package> =
        metadata.packages.iter().filter(|package| package.source.is_some()).collect();
    let mut findings: Vec<String> = foreign.iter().flat_map(|package| refused(package, &policy)).collect();
    findings.extend(advisories::affecting(&known, &foreign, &policy.advisories.ignore));
    for finding in &findings {
        writeln!(out, "supply: {finding}")?;
    }
    writeln!(
        out,
        "supply: {} packages, {} advisories of {}: {} findings",
        foreign.len(),
        known.len(),
        advisories::date(&copy),
        findings.len()
    )?;
    Ok(findings.is_empty())
}

fn refused(package: &Package, policy: &Policy) -> Vec<String> {
    let Package { name, version, .. } = package;
    let mut findings = Vec::new();
    if let Err(why) = license(package, &policy.licenses) {
        findings.push(format!("{name} {version}: {why}"));
    }
    if policy.bans.deny.iter().any(|ban| ban.name == *name) {
        findings.push(format!("{name} {version} is banned by deny.toml; its comment says why"));
    }
    if package.source.as_deref() != Some(REGISTRY) {
        findings.push(format!("{name} {version} is not from crates.io but from {:?}", package.source));
    }
    findings
}

fn license(package: &Package, licenses: &Licenses) -> Result<(), String> {
    let expression = package.license.as_deref().ok_or("it names no licence")?;
    let parsed = spdx::Expression::parse_mode(expression, spdx::ParseMode::LAX)
        .map_err(|error| format!("its licence `{expression}` is not an SPDX expression: {}", error.reason))?;
    let own = licenses.exceptions.iter().filter(|exception| exception.name == package.name);
    let allowed: Vec<&String> =
        licenses.allow.iter().chain(own.flat_map(|exception| &exception.allow)).collect();
    match parsed.evaluate(|required| allowed.iter().any(|allowed| **allowed == required.to_string())) {
        true => Ok(()),
        false => Err(format!("its licence `{expression}` is not allowed by deny.toml")),
    }
}

/// The packages of the workspace and all their dependencies; `options` are cargo's.
fn metadata(root: &Path, options: &[&str]) -> anyhow::Result<Metadata> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--locked", "--format-version", "1"]).args(options).current_dir(root);
    let output = command.output().context("cargo metadata cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {}", said.trim());
    serde_json::from_slice(&output.stdout).context("the output of cargo metadata")
}

/// The packages that are linked into package `name`, without that package itself.
fn linked<'a>(metadata: &'a Metadata, name: &str) -> anyhow::Result<Vec<&'a Package>> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|package| (package.id.as_str(), package)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let first = metadata.packages.iter().find(|package| package.name == name);
    let mut to_visit = vec![first.with_context(|| format!("no package {name}"))?.id.as_str()];
    let mut found: BTreeMap<&str, &Package> = BTreeMap::new();
    while let Some(id) = to_visit.pop() {
        for dependency in &nodes[id].deps {
            let is_linked = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let id = dependency.pkg.as_str();
            if is_linked && found.insert(id, packages[id]).is_none() {
                to_visit.push(id);
            }
        }
    }
    let mut found: Vec<&Package> = found.into_values().collect();
    found.sort_by_key(|package| (&package.name, &package.version));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, license: Option<&str>) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: semver::Version::new(1, 2, 3),
            license: license.map(str::to_owned),
            source: Some(REGISTRY.to_owned()),
            repository: None,
            manifest_path: PathBuf::new(),
        }
    }

    fn policy() -> Policy {
        toml::from_str(
            r#"
            [licenses]
            allow = ["MIT", "Apache-2.0 WITH LLVM-exception"]
            exceptions = [{ crate = "special", allow = ["CDDL-1.0"] }]
            [bans]
            deny = [{ crate = "openssl-sys" }]
            [advisories]
            ignore = []
            "#,
        )
        .unwrap()
    }

    #[track_caller]
    fn check(package: &Package, finding: Option<&str>) {
        let findings = refused(package, &policy()).join("\n");
        match finding {
            None => assert_eq!(findings, ""),
            Some(finding) => assert!(findings.contains(finding), "{findings}"),
        }
    }

    #[test]
    fn a_licence_must_be_allowed_for_its_package() {
        for fine in ["MIT", "MIT OR GPL-3.0-only", "MIT/GPL-3.0", "Apache-2.0 WITH LLVM-exception AND MIT"] {
            check(&package("a", Some(fine)), None);
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "CDDL-1.0"] {
            check(&package("a", Some(refused)), Some("is not allowed by deny.toml"));
        }
        check(&package("special", Some("CDDL-1.0")), None);
        check(&package("a", None), Some("it names no licence"));
        check(&package("a", Some("as is")), Some("is not an SPDX expression"));
    }

    #[test]
    fn banned_packages_and_other_sources_are_refused() {
        check(&package("openssl-sys", Some("MIT")), Some("is banned"));
        let git =
            Package { source: Some("git+https://example.com/a".to_owned()), ..package("a", Some("MIT")) };
        check(&git, Some("is not from crates.io"));
    }
}
