//! `cargo xtask jvm`: the modules under `jvm/`, built once and tested on each supported Java version.
//!
//! Maven does the work and prints the result; this finds the JDKs.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The oldest supported version, whose compiler and libraries are used, and the newest.
const OLDEST: u32 = 17;
const NEWEST: u32 = 25;

/// Where Linux distributions put their JDKs.
const JDKS: &str = "/usr/lib/jvm";

/// Maven's options for building: all modules concurrently, without running tests.
const BUILD: &[&str] = &["--threads", "1C", "-DskipTests", "package"];

/// Without this, Maven compiles each module that depends on another again: when built they depend on its jar, when tested on
/// its classes.
const BUILT: &str = "-Dmaven.compiler.useIncrementalCompilation=false";

/// Builds all modules and runs their tests. False if Maven reported a failure.
pub fn run(root: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let oldest = jdk(OLDEST)?;
    writeln!(out, "jvm: built with Java {OLDEST}, {}", oldest.display())?;
    Ok(maven(root, &oldest, BUILD).status().context(NO_MAVEN)?.success() && test(root, out)?)
}

/// Builds all modules and prints Maven's output when it has ended: something else writes to the log in the meantime.
pub fn build_quietly(root: &Path) -> anyhow::Result<bool> {
    let output = maven(root, &jdk(OLDEST)?, BUILD).output().context(NO_MAVEN)?;
    let mut err = io::stderr().lock();
    err.write_all(&output.stdout)?;
    err.write_all(&output.stderr)?;
    Ok(output.status.success())
}

/// Runs the tests of what is built. The same classes on both JDKs: only a file that has changed since is compiled.
/// Tests that depend on a library or on arithmetic, and not on the JVM, are skipped by `skip.libraries`: they run on
/// the newest Java only. Prints the time of each JDK. False if Maven reported a failure on either.
pub fn test(root: &Path, out: &mut impl Write) -> anyhow::Result<bool> {
    let oldest = jdk(OLDEST)?;
    let mut passed = true;
    for (version, java, skipped) in [(OLDEST, oldest.clone(), "true"), (NEWEST, jdk(NEWEST)?, "false")] {
        writeln!(out, "jvm: tested on Java {version}, {}", java.display())?;
        let began = crate::now();
        let on = format!("-Dtest.java={}", java.join("bin/java").display());
        let skip = format!("-Dskip.libraries={skipped}");
        let status = maven(root, &oldest, &["--fail-at-end", BUILT, &on, &skip, "test"]).status();
        passed &= status.context(NO_MAVEN)?.success();
        writeln!(out, "jvm: {:.1} s on Java {version}", began.elapsed().as_secs_f64())?;
    }
    Ok(passed)
}

const NO_MAVEN: &str = "cannot start mvn; `scripts/setup test` installs it (Debian's maven)";

/// A file that does not have the checksum of its repository fails the build; Maven by itself only warns.
const CHECKED: &str = "--strict-checksums";

fn maven(root: &Path, built_with: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("mvn");
    command
        .args([CHECKED, "--batch-mode", "--no-transfer-progress", "-Dstyle.color=never", "-f"])
        .arg(root.join("jvm/pom.xml"))
        .args(arguments)
        .env("JAVA_HOME", built_with);
    command
}

/// The directory of a JDK of that version: `JDK_25` in the environment, or the first by name where distributions put
/// them.
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

/// The major version in a JDK's file `release`: `JAVA_VERSION="25.0.1"`.
fn major(release: &str) -> Option<u32> {
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    version.split(['.', '"', '-', '+']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a library that was altered in transit is built in with only a warning.
    #[test]
    fn every_download_must_have_its_checksum() {
        let command = maven(Path::new("/"), Path::new("/jdk"), BUILD);
        assert!(command.get_args().any(|argument| argument == "--strict-checksums"), "{command:?}");
    }

    #[test]
    fn a_jdk_is_known_by_its_release() {
        assert_eq!(major("IMPLEMENTOR=\"x\"\nJAVA_VERSION=\"25.0.1\"\n"), Some(25));
        assert_eq!(major("JAVA_VERSION=\"17\"\n"), Some(17));
        assert_eq!(major(""), None);
    }
}
