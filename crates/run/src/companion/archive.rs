//! Takes the record of an observer on another host out of the archive that the far side sends.
//!
//! That host may be hostile, and this process root: only regular files that a record of `watch` has are taken. Each is
//! created in a folder that was empty, with the permissions of any new file of this process; what the archive says of
//! paths, owners, modes, times, links and devices is used for nothing.

use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use record::RecordDir;
use record::observation::watch::is_file_name;
use tar::{Archive, Entry, EntryType};

/// Enough for 20 times the requests that `explain` reads; a far side that sends more wants to fill this disk.
pub const MOST_BYTES: u64 = 4 << 30;

/// A record has a log per class and part, some dozens of files.
const MOST_ENTRIES: usize = 2_000;

/// tar fills the last record of 20 blocks with zeros; other implementations use larger ones.
const MOST_PADDING: u64 = 1 << 20;

/// Reads an archive to its end and puts the files of the record into `folder`, which is made here.
///
/// # Errors
///
/// If it is not the archive of a record, which has a `run.json`, not complete, or larger than [`MOST_BYTES`]. `folder` may then hold a part
/// of the record.
pub fn unpack(archive: impl Read, folder: &Path) -> anyhow::Result<()> {
    let into = RecordDir::make(folder)?;
    let mut archive = Archive::new(archive.take(MOST_BYTES));
    // Raw: extended headers would be read into memory, whatever their size, and may rename or resize an entry.
    for (number, entry) in archive.entries()?.raw(true).enumerate() {
        ensure!(number < MOST_ENTRIES, "the archive has over {MOST_ENTRIES} entries");
        take(entry.context("the archive is damaged or incomplete")?, &into)?;
    }
    let mut rest = archive.into_inner();
    ensure!(rest.limit() > 0, "the archive is larger than {} GiB", MOST_BYTES >> 30);
    let padding = io::copy(&mut rest.by_ref().take(MOST_PADDING), &mut io::sink())?;
    ensure!(padding < MOST_PADDING, "something follows the archive");
    ensure!(folder.join("run.json").exists(), "the archive has no run.json");
    Ok(())
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
        // The folder itself.
        EntryType::Directory if name.is_empty() => Ok(()),
        // A newer version may have more files, and tar may describe one with a header before it.
        EntryType::Regular | EntryType::XHeader | EntryType::XGlobalHeader => Ok(()),
        _ => bail!("`{}` is not a regular file", record::escape_text(name)),
    }
}
