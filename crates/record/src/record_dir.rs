//! Opens and creates the files of a record. A record may be from an untrusted source, and root may write one into a
//! directory that others can access: no link is followed, no pipe or device is opened, reads are limited, and a file is
//! created only under a name that did not exist.
//!
//! While this process holds a directory that it has made, the path means that directory: an owner of one of its parents
//! could otherwise put another directory in its place, and have root write there.
//!
//! Every module that accesses a file of a record uses this one. It knows no formats.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::error::RecordError;

/// A record's directory, held open: even if its path changes in the meantime, its files are in this directory.
pub struct RecordDir {
    fd: Arc<OwnedFd>,
}

/// The directories that this process has made and still holds, by path.
static MADE: Mutex<Vec<(PathBuf, Weak<OwnedFd>)>> = Mutex::new(Vec::new());

/// Appended to the name of a file that is not complete yet.
const UNFINISHED: &str = ".tmp";

impl RecordDir {
    /// Creates the directory with its parents, or uses an existing one. Until the result is dropped, its path means this
    /// directory.
    ///
    /// # Errors
    ///
    /// [`RecordError::Foreign`] if an existing directory belongs to another user, who could replace its files, and
    /// [`RecordError::Write`].
    pub fn make(path: &Path) -> Result<RecordDir, RecordError> {
        let write = |source| RecordError::Write { path: path.to_owned(), source };
        let fd = match made(path) {
            Some((fd, rest)) => make_within(fd, &rest).map_err(write)?,
            None => {
                // Without a slash at the end, which would follow a link.
                let path = path.components().as_path();
                fs::create_dir_all(path).map_err(write)?;
                match openat(CWD, path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
                    Ok(fd) => Arc::new(fd),
                    Err(_) if is_own_link(path) => open_directory(path).map_err(write)?,
                    Err(_) => return Err(RecordError::Foreign { path: path.to_owned() }),
                }
            }
        };
        if fstat(&fd).map_err(|error| write(error.into()))?.st_uid != rustix::process::geteuid().as_raw() {
            return Err(RecordError::Foreign { path: path.to_owned() });
        }
        let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(known, _)| known != path);
        all.push((path.to_owned(), Arc::downgrade(&fd)));
        Ok(RecordDir { fd })
    }

    /// Opens an existing directory, also one of another user.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn open(path: &Path) -> io::Result<RecordDir> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let fd = match made(path) {
            Some((fd, rest)) if rest.as_os_str().is_empty() => fd,
            Some((fd, rest)) => Arc::new(openat2(&fd, rest, DIRECTORY, Mode::empty(), WITHIN)?),
            None => open_directory(path)?,
        };
        Ok(RecordDir { fd })
    }

    /// A path of this directory that stays right whatever happens to its parents. Only this process can use it, and a
    /// process that it starts, until that executes its program.
    pub fn lasting_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Whether there is anything under this name.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn contains(&self, name: impl AsRef<OsStr>) -> io::Result<bool> {
        match statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            found => Ok(found.map(|_| true)?),
        }
    }

    /// Gives a file a new name; a file that has it is replaced.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes the directory `name` with its files.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_dir_all(self.lasting_path().join(name))
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
        Ok(openat2(&self.fd, name, flags | OFlags::NOFOLLOW, mode, WITHIN)?.into())
    }
}

/// The directory made by this process that contains `path`, and the path within it.
fn made(path: &Path) -> Option<(Arc<OwnedFd>, PathBuf)> {
    let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    // A removed directory no longer counts.
    let is_there =
        |fd: &Weak<OwnedFd>| fd.upgrade().filter(|fd| fstat(fd).is_ok_and(|found| found.st_nlink > 0));
    all.retain(|(_, fd)| fd.strong_count() > 0);
    let within = all.iter().filter_map(|(known, fd)| Some((fd, path.strip_prefix(known).ok()?)));
    let held = within.filter_map(|(fd, rest)| Some((is_there(fd)?, rest)));
    let (fd, rest) = held.min_by_key(|(_, rest)| rest.as_os_str().len())?;
    Some((fd, rest.to_owned()))
}

/// Creates each directory of `path` within `fd`, and opens the last one.
fn make_within(mut fd: Arc<OwnedFd>, path: &Path) -> io::Result<Arc<OwnedFd>> {
    for name in path {
        match mkdirat(&fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        fd = Arc::new(openat2(&fd, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty(), WITHIN)?);
    }
    Ok(fd)
}

fn open_directory(path: &Path) -> io::Result<Arc<OwnedFd>> {
    Ok(Arc::new(openat(CWD, path, DIRECTORY, Mode::empty())?))
}

/// Whether the path is a link of this user: one of another user may refer to a directory of this one.
fn is_own_link(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;

    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink() && found.uid() == own)
}

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const WITHIN: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

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
