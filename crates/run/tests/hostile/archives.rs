//! Archives from a remote host: only a record's files are extracted into the folder, whatever the archive contains.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use record::observation::watch::is_file_name;
use run::companion::archive::unpack;
use tar::{Builder, EntryType, Header};

use crate::mutation::Draw;

const KINDS: [u8; 16] = *b"0123456789gxLKSV";
const NAMES: [&str; 10] = [
    "./run.json",
    "./series.ndjson",
    "./response.hlog",
    "./events.ndjson",
    "./served.parquet",
    "../outside",
    "/tmp/parallax-hostile-outside",
    "./sub/run.json",
    "./",
    "./clock.json",
];

/// Extracts into a folder next to a file that must not change.
pub fn fuzzer(root: &Path) -> Box<dyn FnMut(&mut Draw)> {
    let root = root.to_owned();
    put_outside(&root);
    Box::new(move |draw| {
        let archive = archive(draw);
        let folder = root.join("folder");
        let _ = unpack(&archive[..], &folder);
        check(&root, &folder, archive.len() as u64);
        let _ = fs::remove_dir_all(&folder);
    })
}

/// An archive of a few entries, some of which may be hostile or damaged.
pub fn archive(draw: &mut Draw) -> Vec<u8> {
    let mut archive = Builder::new(Vec::new());
    for _ in 0..draw.below(5) {
        let bytes = vec![b'x'; draw.below(2_000)];
        let mut header = Header::new_gnu();
        let name = draw.of(&NAMES).as_bytes();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        let link = draw.of(&NAMES).as_bytes();
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
        header.set_mode(draw.number() as u32 & 0o7777);
        let size = if draw.one_in(10) { draw.number() } else { bytes.len() as u64 };
        header.set_size(size);
        let kind = if draw.one_in(2) { b'0' } else { *draw.of(&KINDS) };
        header.set_entry_type(EntryType::new(kind));
        if draw.one_in(10) {
            header.as_mut_bytes()[draw.below(512)] = draw.number() as u8;
        }
        header.set_cksum();
        archive.append(&header, &bytes[..]).expect("memory takes what is written");
    }
    let mut bytes = archive.into_inner().expect("memory takes what is written");
    if draw.one_in(2) {
        draw.damage(&mut bytes);
    }
    bytes
}

/// Writes the file that must not change.
pub fn put_outside(root: &Path) {
    fs::write(root.join("outside"), "mine").expect("the test's folder can be written");
}

/// Checks that nothing was written but files of a record in `folder`, which have at most `most` bytes together.
pub fn check(root: &Path, folder: &Path, most: u64) {
    let names: Vec<_> = fs::read_dir(root).expect("the test's folder is there").flatten().collect();
    assert!(names.iter().all(|name| name.path() == folder || name.file_name() == "outside"), "{names:?}");
    assert_eq!(fs::read(root.join("outside")).expect("it is there"), b"mine");
    assert!(!Path::new("/tmp/parallax-hostile-outside").exists());
    let mut bytes = 0;
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let facts = file.metadata().expect("it is there");
        assert!(is_file_name(&name) && facts.is_file() && facts.nlink() == 1, "{name}");
        assert_eq!(facts.mode() & 0o7777 & !0o644, 0, "{name}");
        bytes += facts.len();
    }
    assert!(bytes <= most, "{bytes} bytes of an archive of {most}");
}
