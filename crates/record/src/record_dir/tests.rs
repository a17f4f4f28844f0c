//! Directories that an attacker may leave: links, pipes, and directories of other users.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn pipe(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[track_caller]
fn assert_no_file(path: &Path) {
    let refused = open_file(path).unwrap_err();
    assert!(matches!(refused, RecordError::NotAFile { .. }), "{refused}");
}

/// If this fails, a report on an untrusted directory waits forever, or reads another file of this host.
#[test]
fn only_a_regular_file_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("plain"), "text").unwrap();
    symlink(at("plain"), at("link")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    pipe(&at("pipe"));
    for name in ["link", "zero", "dangling", "folder", "pipe"] {
        assert_no_file(&at(name));
    }
    assert_eq!(read_file(&at("plain"), 4).unwrap().as_deref(), Some(&b"text"[..]));
    assert!(matches!(read_file(&at("plain"), 3), Err(RecordError::TooLarge { limit: 3, .. })));
    assert!(open_file(&at("missing")).unwrap().is_none());
    assert!(open_file(&at("missing/file")).unwrap().is_none());
    assert!(open_file(Path::new("/")).is_err());
}

/// If this fails, an attacker can make root overwrite any file.
#[test]
fn a_file_is_written_through_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    for name in ["a", "a.tmp"] {
        symlink(at("victim"), at(name)).unwrap();
    }
    replace_file(&at("a"), |out| out.write_all(b"new")).unwrap();
    assert_eq!(fs::read(at("a")).unwrap(), b"new");
    assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
    assert!(!at("a.tmp").exists());

    let dir = RecordDir::make(folder.path()).unwrap();
    symlink(at("other"), at("series")).unwrap();
    assert_eq!(dir.create("series").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(!at("other").exists());
    assert!(dir.create("../outside").is_err());
}

#[test]
fn a_failed_write_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    replace_file(&path, |out| out.write_all(b"old")).unwrap();
    let failed = replace_file(&path, |out| {
        out.write_all(b"half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(failed.is_err());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// If this fails, an attacker who created the directory first can read and replace what root writes there.
#[test]
fn a_folder_of_another_user_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    RecordDir::make(&folder.path().join("new/folder")).unwrap();
    RecordDir::make(&folder.path().join("new/folder")).unwrap();
    // Only root can give a directory away; without root, a directory that belongs to root is used.
    let foreign = if rustix::process::geteuid().is_root() {
        let given = folder.path().join("given");
        fs::create_dir(&given).unwrap();
        fs::set_permissions(&given, fs::Permissions::from_mode(0o777)).unwrap();
        std::os::unix::fs::chown(&given, Some(65_534), None).unwrap();
        given
    } else {
        PathBuf::from("/")
    };
    let refused = RecordDir::make(&foreign).err().unwrap();
    assert!(matches!(refused, RecordError::Foreign { .. }), "{refused}");
    let link = folder.path().join("link");
    symlink(&foreign, &link).unwrap();
    assert!(matches!(RecordDir::make(&link), Err(RecordError::Foreign { .. })));
}

/// If this fails, the owner of a parent directory makes root overwrite files in any directory of root.
#[test]
fn a_record_stays_in_its_directory_when_its_path_changes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("evil/profile")).unwrap();
    for name in ["evil/run.json", "evil/profile/run.json"] {
        fs::write(at(name), "mine").unwrap();
    }
    let record = at("parent/record");
    let dir = RecordDir::make(&record).unwrap();
    replace_file(&record.join("run.json"), |out| out.write_all(b"before")).unwrap();
    fs::rename(&record, at("parent/moved")).unwrap();
    symlink(at("evil"), &record).unwrap();

    replace_file(&record.join("run.json"), |out| out.write_all(b"after")).unwrap();
    assert_eq!(read_file(&record.join("run.json"), 9).unwrap().as_deref(), Some(&b"after"[..]));
    let inner = RecordDir::make(&record.join("profile")).unwrap();
    assert!(!inner.contains("run.json").unwrap());
    inner.replace("run.json", |out| out.write_all(b"inner")).unwrap();
    assert_eq!(fs::read(dir.lasting_path().join("profile/run.json")).unwrap(), b"inner");
    dir.remove_directory(OsStr::new("profile")).unwrap();
    for name in ["evil/run.json", "evil/profile/run.json"] {
        assert_eq!(fs::read(at(name)).unwrap(), b"mine", "{name}");
    }
    assert_eq!(fs::read(at("parent/moved/run.json")).unwrap(), b"after");

    // Nor does a link within the record lead out of it.
    symlink(at("evil"), at("parent/moved/link")).unwrap();
    assert!(RecordDir::make(&record.join("link")).is_err());
    // Once it is removed or no longer held, its path is free again.
    fs::remove_dir_all(at("parent/moved")).unwrap();
    fs::remove_file(&record).unwrap();
    let again = RecordDir::make(&record).unwrap();
    assert!(record.is_dir());
    fs::rename(&record, at("parent/moved")).unwrap();
    drop((dir, again));
    assert!(RecordDir::open(&record).is_err());
}
