//! The maximum that this load generator reached against the built-in target, kept from one run to the next.
//!
//! One private file per shape under `$XDG_CACHE_HOME/parallax`. Files there are not trusted: one that another user owns
//! or can write to, that is too long, or that is for another shape is ignored.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use engine::RunPlan;
use record::document::{Ceiling, Host, MissingFact};
use rustix::fs::OFlags;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::{Value, json};

/// Far more than this program writes: a few hundred bytes.
const LONGEST: u64 = 64 << 10;

/// More responses per second than any client can count.
const MOST_PER_S: u64 = 1_000_000_000;

/// Everything that a ceiling depends on, as text; runs with the same shape share a ceiling.
pub fn shape(plan: &RunPlan, pipeline: u64, host: &Host) -> String {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".to_owned());
    [
        format!("parallax {}", env!("CARGO_PKG_VERSION")),
        known(&host.name),
        format!("Linux {}", known(&host.kernel)),
        known(&host.cpu_model),
        format!("CPUs {}", cpus()),
        "http/1.1".to_owned(),
        format!(
            "{} connections with {pipeline} requests each, {} workers",
            plan.pool.connections, plan.workers
        ),
        format!("pace {}", plan.pace.name()),
        // One thread per worker: with fewer, the target would be the bottleneck.
        format!("a target of {} threads", plan.workers),
        format!("kernel stamps {}", if plan.kernel_stamps { "on" } else { "off" }),
    ]
    .join("; ")
}

fn cpus() -> String {
    let Ok(allowed) = sched_getaffinity(None) else { return "unknown".to_owned() };
    let numbers = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu.to_string());
    numbers.collect::<Vec<_>>().join(",")
}

/// Creates the private cache directory, with mode 0700.
///
/// # Errors
///
/// When no cache directory is known, or it cannot be created.
pub fn make_cache(folder: Option<&Path>) -> anyhow::Result<&Path> {
    let folder = folder.context("no cache directory: set XDG_CACHE_HOME or HOME")?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(|| {
        format!("cannot create the directory `{}`; set XDG_CACHE_HOME to another one", folder.display())
    })?;
    Ok(folder)
}

/// The stored ceiling for this shape, if there is one; otherwise, why a stored file cannot be used.
pub fn known(folder: Option<&Path>, shape: &str) -> (Option<Ceiling>, Option<MissingFact>) {
    let Some(folder) = folder else { return (None, None) };
    let path = path_in(folder, shape);
    match read(&path, shape) {
        Ok(ceiling) => (ceiling, None),
        Err(error) => {
            let why = format!("`{}` is not used: {error:#}", path.display());
            (None, Some(MissingFact { what: "ceiling".to_owned(), why }))
        }
    }
}

/// Stores `ceiling` for later runs of this shape, and returns the path.
///
/// # Errors
///
/// When it cannot be written.
pub fn keep(folder: &Path, shape: &str, ceiling: &Ceiling) -> anyhow::Result<PathBuf> {
    let path = path_in(folder, shape);
    let text = as_json(shape, ceiling);
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{text:#}\n").as_bytes())?;
        // Atomic: a reader finds the old file or the new one.
        fs::rename(&draft, &path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.with_context(|| format!("cannot store the result in `{}`", path.display()))?;
    Ok(path)
}

/// The JSON that is stored.
pub fn as_json(shape: &str, ceiling: &Ceiling) -> Value {
    json!({
        "shape": shape,
        "throughput_per_s": ceiling.throughput_per_s,
        "rate_per_s": ceiling.rate_per_s,
        "measured": ceiling.measured,
    })
}

fn path_in(folder: &Path, shape: &str) -> PathBuf {
    // FNV-1a: any hash does that is stable between releases. The file contains the shape, which is compared.
    let hash = shape.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    folder.join(format!("ceiling-{hash:016x}.json"))
}

fn read(path: &Path, shape: &str) -> anyhow::Result<Option<Ceiling>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = match opened {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened?,
    };
    check_owner(&file)?;
    let mut text = String::new();
    file.take(LONGEST + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= LONGEST, "it is longer than {LONGEST} bytes");
    let kept: Value = serde_json::from_str(&text)?;
    // Two shapes may have the same hash, and so the same file name.
    if kept["shape"].as_str() != Some(shape) {
        return Ok(None);
    }
    let plausible = |value: &Value| value.as_u64().filter(|per_s| (1..=MOST_PER_S).contains(per_s));
    let measured: jiff::Timestamp = kept["measured"].as_str().unwrap_or_default().parse()?;
    Ok(Some(Ceiling {
        throughput_per_s: plausible(&kept["throughput_per_s"])
            .context("its throughput is not a valid number")?,
        rate_per_s: plausible(&kept["rate_per_s"]),
        measured: measured.to_string(),
    }))
}

fn check_owner(file: &File) -> anyhow::Result<()> {
    let facts = file.metadata()?;
    ensure!(facts.is_file(), "it is not a regular file");
    ensure!(facts.uid() == rustix::process::geteuid().as_raw(), "it belongs to another user");
    ensure!(facts.mode() & 0o022 == 0, "other users can write to it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn ceiling() -> Ceiling {
        let measured = "2026-01-31T12:00:00Z".to_owned();
        Ceiling { throughput_per_s: 90_000, rate_per_s: Some(50_000), measured }
    }

    #[test]
    fn what_was_kept_is_read_back_for_its_own_shape_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = keep(folder.path(), "one", &ceiling()).unwrap();
        assert_eq!(read(&path, "one").unwrap(), Some(ceiling()));
        assert_eq!(read(&path, "other").unwrap(), None);
        assert_eq!(read(&path_in(folder.path(), "other"), "other").unwrap(), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Ceiling { rate_per_s: None, ..ceiling() };
        keep(folder.path(), "one", &again).unwrap();
        assert_eq!(read(&path, "one").unwrap(), Some(again));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// If this fails, any user who can write to the cache influences the verdict of a run.
    #[test]
    fn what_is_not_ours_counts_for_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = keep(folder.path(), "one", &ceiling()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(read(&path, "one").unwrap_err().to_string().contains("other users can write"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        read(&link, "one").unwrap_err();
        read(folder.path(), "one").unwrap_err();
        for text in [
            "",
            "[]]",
            r#"{"shape":"one","measured":"never","throughput_per_s":1}"#,
            r#"{"shape":"one","measured":"2026-01-31T12:00:00Z","throughput_per_s":0}"#,
            r#"{"shape":"one","measured":"2026-01-31T12:00:00Z","throughput_per_s":-1}"#,
            r#"{"shape":"one","measured":"2026-01-31T12:00:00Z","throughput_per_s":1e300}"#,
            &" ".repeat(LONGEST as usize + 1),
        ] {
            fs::write(&path, text).unwrap();
            assert!(read(&path, "one").is_err(), "{text:.80}");
        }
    }
}
