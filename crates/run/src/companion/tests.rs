//! Hostile observers, played by local processes that send what ssh would pass on.

use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

use tar::{Builder, EntryType, Header};

use super::*;

/// An entry of an archive, as GNU tar would unpack it.
fn entry(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header
}

/// Names are written as they are: the library would refuse some of them.
fn add(archive: &mut Builder<Vec<u8>>, mut header: Header, name: &str, bytes: &[u8]) {
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    archive.append(&header, bytes).unwrap();
}

fn archive_of(entries: &[(Header, &str, &[u8])]) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for (header, name, bytes) in entries {
        add(&mut archive, header.clone(), name, bytes);
    }
    archive.into_inner().unwrap()
}

fn link(to: &str) -> Header {
    let mut header = entry(EntryType::Symlink, 0o777, 0);
    header.set_link_name_literal(to).unwrap();
    header
}

/// If this fails, the server under test can create files as root anywhere.
#[test]
fn only_regular_files_of_a_record_are_taken_from_an_archive() {
    let root = tempfile::tempdir().unwrap();
    let victim = root.path().join("victim");
    std::fs::write(&victim, "mine").unwrap();
    let device = {
        let mut header = entry(EntryType::Char, 0o666, 0);
        header.set_device_major(1).unwrap();
        header.set_device_minor(5).unwrap();
        header
    };
    let hard_link = {
        let mut header = entry(EntryType::Link, 0o666, 0);
        header.set_link_name_literal(victim.to_str().unwrap()).unwrap();
        header
    };
    let text = entry(EntryType::Regular, 0o4777, 4);
    let refused: [&[(Header, &str, &[u8])]; 6] = [
        &[(link(victim.to_str().unwrap()), "./clock.json", b"")],
        &[(link(victim.to_str().unwrap()), "./run.json", b""), (text.clone(), "./run.json", b"evil")],
        &[(device, "./run.json", b"")],
        &[(hard_link, "./run.json", b"")],
        &[(entry(EntryType::Fifo, 0o666, 0), "./series.ndjson", b"")],
        &[(text.clone(), "./run.json", b"evil"), (text.clone(), "./run.json", b"evil")],
    ];
    for (number, entries) in refused.into_iter().enumerate() {
        let folder = root.path().join(format!("refused-{number}"));
        let error = archive::unpack(&archive_of(entries)[..], &folder).unwrap_err();
        assert_eq!(std::fs::read(&victim).unwrap(), b"mine", "{error:#}");
        for made in std::fs::read_dir(&folder).unwrap() {
            let kind = made.unwrap().metadata().unwrap();
            assert!(kind.is_file() && kind.nlink() == 1, "{error:#}");
            assert!(!kind.file_type().is_char_device());
        }
    }

    // Regular files that do not belong to a record: left out, wherever they would go.
    let folder = root.path().join("taken");
    let names = ["./../outside", "/etc/outside", "./sub/run.json", "./setuid", ".bashrc", "./clock.json"];
    let mut entries: Vec<_> = names.map(|name| (text.clone(), name, &b"evil"[..])).to_vec();
    entries.push((entry(EntryType::Directory, 0o777, 0), "./", b""));
    entries.push((text, "./run.json", b"good"));
    archive::unpack(&archive_of(&entries)[..], &folder).unwrap();
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["run.json"]);
    assert_eq!(std::fs::metadata(folder.join("run.json")).unwrap().mode() & 0o7777 & !0o644, 0);
    assert!(!root.path().join("outside").exists());

    // A directory that somebody else created first.
    symlink(root.path(), root.path().join("elsewhere")).unwrap();
    let taken = archive::unpack(&archive_of(&[])[..], &root.path().join("taken/run.json"));
    assert!(taken.is_err());
}

/// If this fails, a remote host can fill this client's memory or disk, or block it for ever.
#[test]
fn an_archive_is_bounded_and_read_to_its_end() {
    let root = tempfile::tempdir().unwrap();
    let folder = |name: &str| root.path().join(name);
    let large = archive_of(&[(
        entry(EntryType::GNULongName, 0o644, 64 << 20),
        "././@LongLink",
        &vec![b'x'; 64 << 20],
    )]);
    let used = allocation_counter::measure(|| {
        assert!(archive::unpack(&large[..], &folder("long-name")).is_err());
    });
    assert!(used.bytes_max < 1 << 20, "{used:?}");

    let claimed = entry(EntryType::Regular, 0o644, 1 << 40);
    let mut cut = archive_of(&[]);
    add_claim(&mut cut, claimed);
    let error = archive::unpack(&cut[..], &folder("claimed")).unwrap_err();
    assert!(error.to_string().contains("incomplete"), "{error:#}");

    let empty = archive::unpack(&archive_of(&[])[..], &folder("empty")).unwrap_err();
    assert!(empty.to_string().contains("no run.json"), "{empty:#}");
    let mut followed = archive_of(&[]);
    followed.extend(vec![0; 2 << 20]);
    assert!(archive::unpack(&followed[..], &folder("followed")).is_err());
}

/// Adds a header that announces an entry whose data does not follow.
fn add_claim(archive: &mut Vec<u8>, mut header: Header) {
    header.as_old_mut().name[..10].copy_from_slice(b"./run.json");
    header.set_cksum();
    archive.splice(0..0, header.as_bytes().iter().copied().chain([0; 512]));
}

/// If this fails, a remote host that never ends its line grows the client by 0.4 GB per second.
#[test]
fn what_an_observer_prints_is_read_within_bounds() {
    let (begun, has_begun) = sync_channel(1);
    let endless = std::io::repeat(b'x').take(256 << 20);
    let ready = format!("{}\n", Ready::now().line());
    let used = allocation_counter::measure(|| {
        let last = listen(ready.as_bytes().chain(endless), &begun);
        assert_eq!(last.len() as u64, LONGEST_MESSAGE);
    });
    assert!(used.bytes_max < 64 << 10, "{used:?}");
    assert!(has_begun.try_recv().is_ok());
    let last = listen(&b"first\nparallax: it failed \x1b[2J\n"[..], &begun);
    assert_eq!(last, "it failed \\u{1b}[2J");
}

/// An observer on a host that runs `script`; it replies to each line with its clock.
fn far_side(script: &str, folder: &Path) -> anyhow::Result<CompanionObserver> {
    let (ready, closed) = (Ready::now().line(), wire::CLOSED);
    let respond = format!(
        "echo '{ready}' >&2; echo /tmp/far; while read -r line; do echo 1000; done; echo '{closed}';"
    );
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{respond} {script}"));
    CompanionObserver::begin(command, Some("far".to_owned()), folder.to_owned(), &Arc::default())
}

/// From start to finish, over pipes.
#[test]
fn the_record_of_a_far_host_is_fetched() {
    let root = tempfile::tempdir().unwrap();
    let source = root.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("run.json"), "{}").unwrap();
    std::fs::write(source.join("series.ndjson"), "").unwrap();
    let folder = root.path().join("server");
    let script = format!("exec tar -C '{}' -cf - .", source.display());
    let observer = far_side(&script, &folder).unwrap();
    assert_eq!(observer.finish().unwrap(), folder);
    assert_eq!(std::fs::read(folder.join("run.json")).unwrap(), b"{}");
    assert!(record::TwoClocks::read(&folder).unwrap().is_some());
}

/// If this fails, a hostile host can prevent the run from ending.
#[test]
fn a_far_host_that_never_ends_is_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    for script in
        ["exec cat /dev/zero", "exec yes", "exec 1>&2; exec cat /dev/zero", "exec 1>&-; exec sleep 1000"]
    {
        let folder = root.path().join("server");
        let observer = far_side(script, &folder).unwrap();
        let begun = clock::now();
        let error = observer.finish().unwrap_err();
        assert!(clock::now() - begun < Nanos::from_secs(20), "{script}: {error:#}");
        assert!(!folder.exists(), "{script}");
    }
}

#[test]
fn the_ready_line_is_not_the_last_message() {
    let (begun, has_begun) = sync_channel(1);
    let text = format!("parallax: a note\n{}\n", Ready::now().line());
    assert_eq!(listen(text.as_bytes(), &begun), "a note");
    assert_eq!(has_begun.try_recv(), Ok(Ready::now()));
}

/// If this fails, an observer that ends is reported as one that hangs.
#[test]
fn an_observer_that_ends_at_once_is_reported_with_its_status() {
    let mut command = Command::new("sh");
    command.args(["-c", "exit 3"]);
    let folder = PathBuf::from("unused");
    let ended = CompanionObserver::begin(command, Some("far".to_owned()), folder, &Arc::default());
    let error = ended.err().unwrap().to_string();
    assert_eq!(error, "on far: the observer ended without a message (exit status: 3)");
}

/// If this fails, Ctrl-C does not end a run that waits for another host.
#[test]
fn the_user_ends_the_wait_for_an_observer() {
    let ready = Ready::now().line();
    for script in ["exec sleep 1000".to_owned(), format!("echo '{ready}' >&2; exec sleep 1000")] {
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let stop = Arc::new(AtomicBool::new(true));
        let begun = CompanionObserver::begin(command, Some("far".to_owned()), PathBuf::from("unused"), &stop);
        let error = format!("{:#}", begun.err().unwrap());
        assert!(error.contains("interrupted"), "{error}");
    }
}

/// If this fails, an owner of a parent directory makes root's observer write elsewhere.
#[test]
fn an_observer_starts_in_the_directory_of_the_record() {
    let root = tempfile::tempdir().unwrap();
    let run = root.path().join("run");
    RecordDir::make(&run).unwrap();
    let (mut command, _run) =
        here(Some(Path::new("/bin/sh")), &["-c", "echo made > profile; true"], &[1], &run.join(PROFILE))
            .unwrap();
    std::fs::rename(&run, root.path().join("moved")).unwrap();
    std::fs::create_dir(&run).unwrap();
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read(root.path().join("moved/profile")).unwrap(), b"made\n");
    assert!(!run.join("profile").exists());
}
