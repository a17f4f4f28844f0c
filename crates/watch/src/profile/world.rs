//! Opens files as a process sees them: in its mounts and its root directory, which may be untrusted.
//!
//! `/proc/PID/root/tmp/x` as a path would follow a link in there to the host's own files. Here the kernel keeps every
//! step within the process's root (`openat2` with `RESOLVE_IN_ROOT`), the last component must not be a link, and
//! nothing is opened for reading before it is known to be a regular file: no FIFO can block, no device is touched.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

/// The root directory of a process, held open: the process may end, or change its root, in the meantime.
#[derive(Debug)]
pub struct World {
    root: OwnedFd,
}

/// The required owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// This user or root.
    OrRoot(u32),
    /// Any owner: the content is not trusted.
    Any,
}

/// The kernel gives up if a directory is renamed in the meantime; number of retries.
const TRIES: usize = 16;

impl World {
    /// The root of a process.
    ///
    /// # Errors
    ///
    /// When it has ended, or this user may not access it.
    pub fn of(pid: u32) -> io::Result<World> {
        World::at(&PathBuf::from(format!("/proc/{pid}/root")))
    }

    /// The root of this host, for processes that have ended, about which nothing else is known.
    ///
    /// # Errors
    ///
    /// As [`World::of`].
    pub fn own() -> io::Result<World> {
        World::at(Path::new("/"))
    }

    fn at(path: &Path) -> io::Result<World> {
        let root = rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(World { root })
    }

    /// A directory, for creating and looking up files.
    ///
    /// # Errors
    ///
    /// When it does not exist.
    pub fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        self.resolve(path, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// A regular file, for reading.
    ///
    /// # Errors
    ///
    /// When it does not exist, is not a regular file, or belongs to another user.
    pub fn file(&self, path: &str, owner: Owner) -> io::Result<File> {
        regular(self.resolve(path, OFlags::PATH | OFlags::NOFOLLOW)?, owner)
    }

    fn resolve(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES {
            match rustix::fs::openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), within) {
                Err(rustix::io::Errno::AGAIN) => {}
                result => return Ok(result?),
            }
        }
        Err(io::Error::from(rustix::io::Errno::AGAIN))
    }
}

/// Opens for reading the file behind `place`, a descriptor with `O_PATH`.
///
/// # Errors
///
/// When it is not a regular file, or belongs to another user.
pub fn regular(place: OwnedFd, owner: Owner) -> io::Result<File> {
    let place = File::from(place);
    let facts = place.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if let Owner::OrRoot(user) = owner
        && facts.uid() != user
        && facts.uid() != 0
    {
        return Err(io::Error::other(format!(
            "it belongs to user {}, not to the process's user",
            facts.uid()
        )));
    }
    // The same file, even if its name refers to another one by now.
    File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn world() -> (tempfile::TempDir, World) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        std::fs::write(folder.path().join("tmp/own"), "own").unwrap();
        let world = World::at(folder.path()).unwrap();
        (folder, world)
    }

    /// If this fails, a container makes a profiler that runs as root read the host's files.
    #[test]
    fn a_link_in_a_world_leads_nowhere_else() {
        let (folder, world) = world();
        let outside = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(outside.path(), "secret").unwrap();
        let (tmp, path) = (folder.path().join("tmp"), outside.path());
        symlink(path, tmp.join("file")).unwrap();
        symlink(path.parent().unwrap(), tmp.join("folder")).unwrap();
        symlink("../../../../../../../../../../../etc", tmp.join("up")).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for path in ["tmp/file".to_owned(), format!("tmp/folder/{name}"), "tmp/up/passwd".to_owned()] {
            assert!(world.file(&path, Owner::Any).is_err(), "{path}");
        }
        // Within the process's root links are followed, except in the last component.
        symlink("/tmp", folder.path().join("var")).unwrap();
        assert!(world.file("var/own", Owner::Any).is_ok());
        assert!(world.file("/tmp/own", Owner::Any).is_ok());
        symlink("own", tmp.join("other")).unwrap();
        assert!(world.file("tmp/other", Owner::Any).is_err());
    }

    /// If this fails, a FIFO with the name of a perf map blocks `profile` for ever.
    #[test]
    fn only_regular_files_are_opened() {
        let (folder, world) = world();
        let fifo = folder.path().join("tmp/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in ["tmp/fifo", "tmp"] {
            let refused = world.file(path, Owner::Any).unwrap_err().to_string();
            assert_eq!(refused, "it is not a regular file", "{path}");
        }
        assert_eq!(world.file("tmp/none", Owner::Any).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn another_users_file_is_refused() {
        let (folder, world) = world();
        let path = folder.path().join("tmp/own");
        let user = std::fs::metadata(&path).unwrap().uid();
        assert!(world.file("tmp/own", Owner::OrRoot(user)).is_ok());
        if user == 0 {
            std::os::unix::fs::chown(&path, Some(1_234), None).unwrap();
        }
        let refused = world.file("tmp/own", Owner::OrRoot(user + 1)).unwrap_err().to_string();
        assert!(refused.starts_with("it belongs to user "), "{refused}");
    }
}
