//! Extracts the record of an observer on another host from the archive that it sends.
//!
//! That host may be hostile, and this process may be root: only regular files that a record of `watch` has are
//! extracted. Each is created in a directory that was empty, with the permissions of any new file of this process; the
//! archive's
//! paths, owners, modes, times, links and devices are ignored.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use record::RecordDir;
use record::observation::watch::is_file_name;
use tar::{Archive, Entry, EntryType};

/// Enough for 60 times the requests that `explain` reads; a host that sends more is filling this disk on purpose.
pub const MOST_BYTES: u64 = 4 << 30;

/// A record has a log per class and part, some dozens of files.
const MOST_ENTRIES: usize = 2_000;

/// tar fills the last record of 20 blocks with zeros; other implementations use larger ones.
const MOST_PADDING: u64 = 1 << 20;

/// Reads an archive to its end and extracts the record's files into `folder`, which is created here.
///
/// # Errors
///
/// If it is incomplete, larger than [`MOST_BYTES`], or not the archive of a record, which contains a `run.json`.
/// `folder` may then contain a part of the record.
pub fn unpack(archive: impl Read, folder: &Path) -> anyhow::Result<()> {
    let into = RecordDir::make(folder)?;
    let mut archive = Archive::new(archive.take(MOST_BYTES));
    // Raw: extended headers, whatever their size, would otherwise be read into memory, and may rename or resize an
    // entry.
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        ensure!(number < MOST_ENTRIES, "the archive has over {MOST_ENTRIES} entries");
        take(entry.context("the archive is damaged or incomplete")?, &into)?;
    }
    let mut rest = archive.into_inner();
    ensure!(rest.limit() > 0, "the archive is larger than {} GiB", MOST_BYTES >> 30);
    let padding = io::copy(&mut rest.by_ref().take(MOST_PADDING), &mut io::sink())?;
    ensure!(padding < MOST_PADDING, "something follows the archive");
    ensure!(into.contains("run.json")?, "the archive has no run.json");
    Ok(())
}

/// Deletes the directory of an observer's record, which is in the directory of the run's.
///
/// # Errors
///
/// Errors of the system.
pub fn discard(folder: &Path) -> anyhow::Result<()> {
    let (run, name) = place(folder)?;
    Ok(run.remove_directory(name)?)
}

/// The directory of the run's record, and the name of the observer's in it.
///
/// # Errors
///
/// When the run's cannot be opened.
pub fn place(folder: &Path) -> anyhow::Result<(RecordDir, &OsStr)> {
    let (run, name) = folder.parent().zip(folder.file_name()).context("a record has a directory")?;
    Ok((RecordDir::open(run)?, name))
}

fn take(mut entry: Entry<'_, impl Read>, into: &RecordDir) -> anyhow::Result<()> {
    let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let name = path.strip_prefix("./").unwrap_or(&path);
    match entry.header().entry_type() {
        EntryType::Regular if is_file_name(name) => {
            let mut file = into.create(name).with_context(|| format!("cannot create {name}"))?;
            let (size, copied) = (entry.size(), io::copy(&mut entry, &mut file)?);
            ensure!(copied == size, "{name} is incomplete");
            Ok(())
        }
        // The record's directory itself.
        EntryType::Directory if name.is_empty() => Ok(()),
        // A newer version may have more files, and tar may put a header before one.
        EntryType::Regular | EntryType::XHeader | EntryType::XGlobalHeader => Ok(()),
        _ => bail!("`{}` is not a regular file", record::escape_text(name)),
    }
}
