//! The committed copy of the RustSec advisories: one line each, tabs between the fields.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;

use super::Package;

/// Path of the copy.
pub const PATH: &str = "supply/advisories.tsv";

/// One advisory.
#[derive(Debug)]
pub struct Advisory<'t> {
    package: &'t str,
    id: &'t str,
    kind: &'t str,
    /// Versions with the fix, and those that were never affected.
    fine: Vec<VersionReq>,
    title: &'t str,
}

/// Parses the copy.
pub fn parse(text: &str) -> anyhow::Result<Vec<Advisory<'_>>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    lines.map(|(n, line)| one(line).with_context(|| format!("{PATH}:{}", n + 1))).collect()
}

fn one(line: &str) -> anyhow::Result<Advisory<'_>> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [package, id, kind, patched, unaffected, title] = fields[..] else {
        anyhow::bail!("{} fields instead of 6", fields.len());
    };
    let ranges = [patched, unaffected].into_iter().flat_map(|field| field.split(" || "));
    let fine = ranges.filter(|range| !range.is_empty()).map(VersionReq::parse).collect::<Result<_, _>>()?;
    Ok(Advisory { package, id, kind, fine, title })
}

/// The date of the copy, from its second line.
pub fn date(text: &str) -> &str {
    let line = text.lines().nth(1).unwrap_or_default();
    line.split_once(" of ").and_then(|(_, rest)| rest.split(';').next()).unwrap_or("an unknown date")
}

/// The advisories that affect one of `packages` and are not ignored, one line each.
pub fn affecting(known: &[Advisory<'_>], packages: &[&Package], ignored: &[String]) -> Vec<String> {
    let affects = |advisory: &Advisory<'_>, package: &Package| {
        advisory.package == package.name && !advisory.fine.iter().any(|fine| matches(fine, &package.version))
    };
    let relevant = known.iter().filter(|advisory| !ignored.iter().any(|ignored| ignored == advisory.id));
    relevant
        .flat_map(|advisory| {
            let affected = packages.iter().filter(move |package| affects(advisory, package));
            affected.map(move |package| {
                let Advisory { id, kind, title, .. } = advisory;
                format!(
                    "{} {}: {id} ({kind}): {title}; `cargo update -p {}`, or ignore it in deny.toml with a reason",
                    package.name, package.version, package.name
                )
            })
        })
        .collect()
}

/// A pre-release counts as the release that it precedes.
fn matches(range: &VersionReq, version: &Version) -> bool {
    range.matches(version) || range.matches(&Version::new(version.major, version.minor, version.patch))
}

/// The head of an advisory's file.
#[derive(Debug, Deserialize)]
struct Head {
    advisory: About,
    #[serde(default)]
    versions: Versions,
}

#[derive(Debug, Deserialize)]
struct About {
    id: String,
    package: String,
    informational: Option<String>,
    withdrawn: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Versions {
    #[serde(default)]
    patched: Vec<String>,
    #[serde(default)]
    unaffected: Vec<String>,
}

/// Writes the copy from a clone of <https://github.com/rustsec/advisory-db>, whose head is called `head` (`COMMIT of
/// DATE`).
pub fn update(root: &Path, clone: &Path, head: &str) -> anyhow::Result<usize> {
    let folders = fs::read_dir(clone.join("crates")).context("this is no clone of the advisories")?;
    let mut lines = Vec::new();
    for folder in folders {
        for file in fs::read_dir(folder?.path())? {
            let path = file?.path();
            let text = fs::read_to_string(&path)?;
            lines.extend(line(&text).with_context(|| path.display().to_string())?);
        }
    }
    ensure!(!lines.is_empty(), "no advisories in {}", clone.display());
    lines.sort();
    let text = format!(
        "# Advisories of https://github.com/rustsec/advisory-db (CC0-1.0, those from GitHub CC-BY-4.0), without withdrawn ones.\n\
         # Commit {head}; `cargo xtask supply --update CLONE` writes this file.\n\
         # package\tid\tkind\tpatched\tunaffected\ttitle\n{}\n",
        lines.join("\n")
    );
    parse(&text)?;
    fs::write(root.join(PATH), text)?;
    Ok(lines.len())
}

fn line(text: &str) -> anyhow::Result<Option<String>> {
    let (head, body) =
        text.strip_prefix("```toml\n").and_then(|text| text.split_once("```")).context("no head")?;
    let Head { advisory, versions } = toml::from_str(head)?;
    if advisory.withdrawn.is_some() {
        return Ok(None);
    }
    let title = body.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let kind = advisory.informational.as_deref().unwrap_or("vulnerability");
    let (patched, unaffected) = (versions.patched.join(" || "), versions.unaffected.join(" || "));
    Ok(Some([&advisory.package, &advisory.id, kind, &patched, &unaffected, &title].join("\t")))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const COPY: &str = "# From somewhere.\n# Commit 1234 of 2026-08-21; written so.\n# package\tid\n\
        h2\tRUSTSEC-1\tvulnerability\t^0.3.26 || >= 0.4.4\t< 0.1.0\tFlood\n\
        old\tRUSTSEC-2\tunmaintained\t\t\tGone\n";

    fn package(name: &str, version: &str) -> Package {
        Package {
            id: String::new(),
            name: name.to_owned(),
            version: version.parse().unwrap(),
            license: None,
            source: None,
            repository: None,
            manifest_path: PathBuf::new(),
        }
    }

    /// If this fails, a release has a publicly known vulnerability.
    #[test]
    fn a_version_without_the_repair_is_found() {
        let known = parse(COPY).unwrap();
        assert_eq!(date(COPY), "2026-08-21");
        for (name, version, affected) in [
            ("h2", "0.3.25", true),
            ("h2", "0.3.26", false),
            ("h2", "0.4.0", true),
            ("h2", "0.4.4-rc.1", false),
            ("h2", "0.0.9", false),
            ("h3", "0.3.25", false),
            ("old", "9.0.0", true),
        ] {
            let package = package(name, version);
            let found = affecting(&known, &[&package], &[]);
            assert_eq!(!found.is_empty(), affected, "{name} {version}: {found:?}");
        }
        let old = package("old", "1.0.0");
        assert!(affecting(&known, &[&old], &["RUSTSEC-2".to_owned()]).is_empty());
        assert!(parse("h2\tRUSTSEC-1\n").is_err());
    }

    #[test]
    fn a_file_of_the_database_is_a_line() {
        let file = "```toml\n[advisory]\nid = \"RUSTSEC-1\"\npackage = \"a\"\ndate = \"2026-01-01\"\n\
            [versions]\npatched = [\"^1.2\", \">= 2.1\"]\n```\n\n# Reads\tanything\n\nText.\n";
        let expected = "a\tRUSTSEC-1\tvulnerability\t^1.2 || >= 2.1\t\tReads anything";
        assert_eq!(line(file).unwrap().as_deref(), Some(expected));
        let withdrawn = file.replace("date", "withdrawn = \"2026-02-02\"\ndate");
        assert_eq!(line(&withdrawn).unwrap(), None);
    }
}
