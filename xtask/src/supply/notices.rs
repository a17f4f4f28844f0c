//! `cargo xtask notices`: the licences of everything that is linked into the program, for its package.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use super::{Package, linked, metadata};

/// Names of files with licences and notices, in upper case.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Prints a list of the packages, then each text once, under the packages that it belongs to.
pub fn write(root: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let metadata = metadata(root, &[])?;
    let packages: Vec<&Package> =
        linked(&metadata, "parallax")?.into_iter().filter(|package| package.source.is_some()).collect();
    writeln!(out, "Parallax contains these packages. Their licences follow the list.\n")?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, .. } = package;
        let license = package.license.as_deref().unwrap_or("see below");
        let source = package.repository.as_deref().unwrap_or("https://crates.io");
        writeln!(out, "{name} {version}: {license}; {source}")?;
        let folder = package.manifest_path.parent().context("a manifest is in a folder")?;
        for text in texts_in(folder).with_context(|| format!("{name} {version}"))? {
            texts.entry(text).or_default().push(format!("{name} {version}"));
        }
    }
    for (text, packages) in texts {
        writeln!(out, "\n{}\n{}\n\n{text}", "-".repeat(80), packages.join(", "))?;
    }
    Ok(())
}

fn texts_in(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && NAMES.iter().any(|known| name.starts_with(known))
    });
    paths.sort();
    let text = |path: &std::path::PathBuf| {
        let bytes = fs::read(path)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned())
    };
    paths.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a package is published without the licences of what it contains.
    #[test]
    fn every_linked_package_is_named_with_its_texts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut text = Vec::new();
        write(root, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for name in ["\nclap ", "\nlibbpf-sys ", "\nrustls ", "\ninferno "] {
            assert!(text.contains(name), "{name}");
        }
        for words in ["Permission is hereby granted", "Apache License", "COMMON DEVELOPMENT AND DISTRIBUTION"]
        {
            assert!(text.contains(words), "{words}");
        }
        assert!(!text.contains("\nproptest "), "what only tests use is not part of the program");
        assert!(!text.contains("\nparallax "), "our own packages are not others'");
    }
}
