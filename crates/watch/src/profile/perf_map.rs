//! Names of code generated at run time, as its compiler publishes them: `/tmp/perf-PID.map`.
//!
//! A line is `START SIZE NAME`, the first two in hexadecimal; a later line wins where it overlaps an earlier one.
//! Anybody can write to the file's folder, so the file counts only when it belongs to the process's owner or to root.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The map of a very large application has some 20 MiB.
const LONGEST: u64 = 256 << 20;

/// Names by address.
#[derive(Debug, Default)]
pub struct PerfMap {
    names: BTreeMap<u64, (u64, String)>,
}

impl PerfMap {
    /// Reads the map at `path` of a process whose user is `owner`.
    ///
    /// # Errors
    ///
    /// Why it does not count, in words for people.
    pub fn read(path: &Path, owner: u32) -> Result<PerfMap, String> {
        let shown = path.display();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| format!("{shown}: {error}"))?;
        let facts = file.metadata().map_err(|error| format!("{shown}: {error}"))?;
        if !facts.is_file() || (facts.uid() != owner && facts.uid() != 0) {
            return Err(format!("{shown} is not owned by the user of the process"));
        }
        let mut text = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut text).map_err(|error| format!("{shown}: {error}"))?;
        if text.len() as u64 > LONGEST {
            return Err(format!("{shown} is larger than {} MiB", LONGEST >> 20));
        }
        Ok(PerfMap::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(text: &str) -> PerfMap {
        let mut map = PerfMap::default();
        for line in text.lines() {
            let mut parts = line.trim_end().splitn(3, ' ');
            let mut hex = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
            let (Some(start), Some(size)) = (hex(), hex()) else { continue };
            let (Some(name), Some(end)) = (parts.next(), start.checked_add(size)) else { continue };
            map.insert(start, end, name);
        }
        map
    }

    fn insert(&mut self, start: u64, end: u64, name: &str) {
        let before = self.names.range(..end).rev();
        let overlapped: Vec<_> =
            before.take_while(|(_, (old_end, _))| *old_end > start).map(|(old, _)| *old).collect();
        for old in overlapped {
            self.names.remove(&old);
        }
        self.names.insert(start, (end, name.to_owned()));
    }

    /// The name of the code at `address`.
    pub fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.names.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }

    /// Whether it has no names.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_finds_its_name() {
        let map = PerfMap::parse("10 10 int A.f(int, long)\n0x30 0x8 Interpreter\nbad line\n40 zz x\n50\n");
        assert_eq!(map.find(0x1f), Some("int A.f(int, long)"));
        assert_eq!(map.find(0x20), None);
        assert_eq!(map.find(0x30), Some("Interpreter"));
        assert_eq!(map.find(0x0f), None);
    }

    /// If this fails, a method that was compiled where another one was has the other one's name.
    #[test]
    fn a_later_line_wins() {
        let map = PerfMap::parse("10 10 old\n18 10 new\n");
        assert_eq!(map.find(0x12), None);
        assert_eq!(map.find(0x18), Some("new"));
        assert!(PerfMap::parse("ffffffffffffffff 2 x").is_empty());
    }

    /// If this fails, any user of the host can name the functions of another user's server.
    #[test]
    fn another_users_map_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        std::fs::write(&path, "10 10 f\n").unwrap();
        let own = std::fs::metadata(&path).unwrap().uid();
        assert!(PerfMap::read(&path, own).is_ok());
        if own == 0 {
            std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        }
        let refused = PerfMap::read(&path, own + 1).unwrap_err();
        assert!(refused.contains("is not owned by the user of the process"), "{refused}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(PerfMap::read(&link, own).is_err());
    }
}
