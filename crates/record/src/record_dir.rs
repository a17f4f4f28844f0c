//! Opens and creates the files of a record. A record may be from an untrusted source, and root may write one into a
//! directory that others can access: no link is followed, no pipe or device is opened, reads are limited, and a file is
//! created only under a name that did not exist.
//!
//! Every module that accesses a file of a record uses this one. It knows no formats.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::RecordError;

/// A record's directory, held open: even if its path changes in the meantime, its files are in this directory.
pub struct RecordDir {
    fd: OwnedFd,
}

/// Appended to the name of a file that is not complete yet.
const UNFINISHED: &str = ".tmp";

impl RecordDir {
    /// Creates the directory with its parents, or uses an existing one.
    ///
    /// # Errors
    ///
    /// [`RecordError::Foreign`] if an existing directory belongs to another user, who could replace its files, and
    /// [`RecordError::Write`].
    pub fn make(path: &Path) -> Result<RecordDir, RecordError> {
        check_owner(path)?;
        let write = |source| RecordError::Write { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(write)?;
        let dir = RecordDir::open(path).map_err(write)?;
        // The path may refer to another directory than a moment ago.
        if fstat(&dir.fd).map_err(|error| write(error.into()))?.st_uid == rustix::process::geteuid().as_raw()
        {
            Ok(dir)
        } else {
            Err(RecordError::Foreign { path: path.to_owned() })
        }
    }

    fn open(path: &Path) -> io::Result<RecordDir> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(RecordDir { fd: openat(CWD, path, flags, Mode::empty())? })
    }

    /// Opens a file for reading. `None` if there is none.
    fn read(&self, name: &OsStr) -> io::Result<Option<File>> {
        // Checked by name first: merely opening a device can change its state.
        let found = match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        regular(found.st_mode)?;
        // A pipe that replaced the file in the meantime does not block, and is refused below.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.open_within(name, flags)?;
        regular(fstat(&file)?.st_mode)?;
        Ok(Some(file))
    }

    /// Creates a file, for appending and reading.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is anything under this name, even a dangling link.
    pub fn create(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        self.open_within(name.as_ref(), flags)
    }

    /// Writes a complete file, and then lets it replace the previous one.
    ///
    /// # Errors
    ///
    /// Errors of the system and of `write`; the previous file then remains.
    pub fn replace(
        &self,
        name: impl AsRef<OsStr>,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let name = name.as_ref();
        let mut unfinished = name.to_owned();
        unfinished.push(UNFINISHED);
        // Left by a process that was killed, or created by somebody else: removed, never written to.
        let _ = unlinkat(&self.fd, &unfinished, AtFlags::empty());
        let mut out = BufWriter::new(self.create(&unfinished)?);
        let written = write(&mut out).and_then(|()| out.flush());
        let renamed = written.and_then(|()| Ok(renameat(&self.fd, &unfinished, &self.fd, name)?));
        if renamed.is_err() {
            // Best effort: the first error is the one to report.
            let _ = unlinkat(&self.fd, &unfinished, AtFlags::empty());
        }
        renamed
    }

    fn open_within(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Ok(openat2(&self.fd, name, flags | OFlags::NOFOLLOW, mode, within)?.into())
    }
}

/// A path that does not exist passes. For a link, the owner of the link counts; [`RecordDir::make`] checks its target.
fn check_owner(path: &Path) -> Result<(), RecordError> {
    use std::os::unix::fs::MetadataExt;

    let own = rustix::process::geteuid().as_raw();
    match fs::symlink_metadata(path) {
        Ok(found) if found.uid() != own => Err(RecordError::Foreign { path: path.to_owned() }),
        _ => Ok(()),
    }
}

/// Opens a file of a record for reading, without following a link at its name. `None` if there is none.
///
/// # Errors
///
/// [`RecordError::NotAFile`] for anything but a regular file, and [`RecordError::Read`]. Never blocks.
pub fn open_file(path: &Path) -> Result<Option<File>, RecordError> {
    let read = |source| RecordError::Read { path: path.to_owned(), source };
    let opened = match parts(path).and_then(|(folder, name)| RecordDir::open(folder)?.read(name)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened,
    };
    opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => RecordError::NotAFile { path: path.to_owned() },
        _ => read(error),
    })
}

/// Reads a file of a record that has at most `longest` bytes. `None` if there is none.
///
/// # Errors
///
/// Like [`open_file`], and [`RecordError::TooLarge`].
pub fn read_file(path: &Path, longest: u64) -> Result<Option<Vec<u8>>, RecordError> {
    let Some(file) = open_file(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = file.take(longest.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|source| RecordError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > longest {
        return Err(RecordError::TooLarge { path: path.to_owned(), limit: longest });
    }
    Ok(Some(bytes))
}

/// Writes a complete file, and then lets it replace the one at `path`. Follows no link.
///
/// # Errors
///
/// Errors of the system and of `write`; the previous file then remains.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let (folder, name) = parts(path)?;
    RecordDir::open(folder)?.replace(name, write)
}

fn parts(path: &Path) -> io::Result<(&Path, &OsStr)> {
    path.parent().zip(path.file_name()).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

/// Fails unless `mode` is that of a regular file. The error is the one for a link, which becomes
/// [`RecordError::NotAFile`].
fn regular(mode: u32) -> io::Result<()> {
    if FileType::from_raw_mode(mode) == FileType::RegularFile { Ok(()) } else { Err(Errno::LOOP.into()) }
}

#[cfg(test)]
mod tests;
