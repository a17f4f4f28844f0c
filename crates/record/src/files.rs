//! The four file-system operations that a results directory needs, so that a test can replace the file system: to
//! record what was written in which order, or to simulate a full disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use crate::record_dir::RecordDir;

#[cfg(test)]
pub(crate) mod journal;

/// A directory with one writer. Names are plain file names.
pub(crate) trait Files: Send {
    /// Creates an empty file, to be appended to.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is such a file, and any error of the system.
    fn create(&mut self, name: &str) -> io::Result<()>;

    /// Appends to a file created here. If it fails, part of `bytes` may have been written.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Truncates a file created here to `len` bytes.
    fn cut(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Replaces a whole file by `bytes`, atomically: a reader sees either the old or the new contents.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// The real file system. Files stay open, since a run writes to each of them once per second.
pub(crate) struct Disk {
    folder: RecordDir,
    open: BTreeMap<String, File>,
}

impl Disk {
    pub(crate) fn new(folder: RecordDir) -> Disk {
        Disk { folder, open: BTreeMap::new() }
    }

    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        self.open.get_mut(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Files for Disk {
    fn create(&mut self, name: &str) -> io::Result<()> {
        // Opened in append mode, so that writing continues at the new end after a file was truncated.
        let file = self.folder.create(name)?;
        self.open.insert(name.to_owned(), file);
        Ok(())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.file(name)?.write_all(bytes)
    }

    fn cut(&mut self, name: &str, len: u64) -> io::Result<()> {
        self.file(name)?.set_len(len)
    }

    // Without fsync: the page cache survives the death of this process, which is the failure that this protects
    // against.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.folder.replace(name, |out| out.write_all(bytes))
    }
}
