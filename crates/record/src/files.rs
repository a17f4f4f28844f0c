//! The four file-system operations that a results directory needs, so that a test can replace the file system: record
//! what was written in which order, or be full.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};

use crate::record_dir::RecordDir;

#[cfg(test)]
pub(crate) mod journal;

/// A folder under one writer. Names are plain file names.
pub(crate) trait Files: Send {
    /// Makes an empty file, to be appended to.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, besides what the system says.
    fn create(&mut self, name: &str) -> io::Result<()>;

    /// Appends to a file made here. When it fails, a part of `bytes` may have been written.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Shortens a file made here to `len` bytes.
    fn cut(&mut self, name: &str, len: u64) -> io::Result<()>;

    /// Puts `bytes` in the place of a whole file at once: a reader sees the old or the new.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// The real one. Files stay open: a run writes each of them once a second.
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
        // Opened to append, so that a file that was cut goes on at its new end.
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

    // Without fsync: the page cache outlives this process, which is the failure that is provided for.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.folder.replace(name, |out| out.write_all(bytes))
    }
}
