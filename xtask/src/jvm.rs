//! `cargo xtask jvm`: the modules under `jvm/`, built once and tested on each Java that they are promised for.
//!
//! Maven does the work, and says how it went; this finds the JDKs.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The oldest that is supported, whose compiler and libraries are used, and the newest.
const OLDEST: u32 = 17;
const NEWEST: u32 = 25;

/// Where Linux distributions put their JDKs.
const JDKS: &str = "/usr/lib/jvm";

/// Builds, and runs the tests of all modules on both. False when Maven found fault.
pub fn run(root: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let (oldest, newest) = (jdk(OLDEST)?, jdk(NEWEST)?);
    writeln!(out, "jvm: built with Java {OLDEST}, {}", oldest.display())?;
    // Modules side by side: what is built measures nothing.
    if !maven(root, &oldest, &["--threads", "1C", "-DskipTests", "package"])? {
        return Ok(false);
    }
    // The same classes for both: nothing has changed, so nothing is compiled. Fault on one may be fault on the other.
    let mut passed = true;
    for (version, java) in [(OLDEST, &oldest), (NEWEST, &newest)] {
        writeln!(out, "jvm: tested on Java {version}, {}", java.display())?;
        let on = format!("-Dtest.java={}", java.join("bin/java").display());
        passed &= maven(root, &oldest, &["--fail-at-end", &on, "test"])?;
    }
    Ok(passed)
}

fn maven(root: &Path, built_with: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    let status = Command::new("mvn")
        .args(["--batch-mode", "--no-transfer-progress", "-Dstyle.color=never", "-f"])
        .arg(root.join("jvm/pom.xml"))
        .args(arguments)
        .env("JAVA_HOME", built_with)
        .status()
        .context("cannot start mvn; `scripts/setup test` installs it (Debian's maven)")?;
    Ok(status.success())
}

/// The folder of a JDK of that version: `JDK_25` in the environment, or the first by name where distributions put them.
fn jdk(version: u32) -> anyhow::Result<PathBuf> {
    let name = format!("JDK_{version}");
    if let Some(named) = env::var_os(&name) {
        let folder = PathBuf::from(named);
        ensure!(is_jdk(&folder, version), "{name} names {}, which is no JDK {version}", folder.display());
        return Ok(folder);
    }
    let entries = fs::read_dir(JDKS).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().find(|folder| is_jdk(folder, version)).with_context(|| {
        format!(
            "no JDK {version} in {JDKS}; install openjdk-{version}-jdk-headless or temurin-{version}-jdk \
             (https://adoptium.net), or set {name} to its folder"
        )
    })
}

fn is_jdk(folder: &Path, version: u32) -> bool {
    let release = fs::read_to_string(folder.join("release")).unwrap_or_default();
    folder.join("bin/javac").is_file() && major(&release) == Some(version)
}

/// Of a JDK's file `release`: `JAVA_VERSION="25.0.1"`.
fn major(release: &str) -> Option<u32> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    version.split(['.', '"', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jdk_is_known_by_its_release() {
        assert_eq!(major("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"25.0.1\"\n"), Some(25));
        assert_eq!(major("JAVA_VERSION=\"17\"\n"), Some(17));
        assert_eq!(major(""), None);
    }
}
