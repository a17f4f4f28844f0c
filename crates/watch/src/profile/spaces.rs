//! Finds the file that an address of a process belongs to, even if the process has ended by then.
//!
//! The files are held open from when they were first seen: a binary that was replaced, or that is in another container,
//! is read as the process mapped it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags};

use super::world::{Owner, World, regular};

/// Maximum number of executable mappings kept per process.
const MAPPINGS_MOST: usize = 65_536;
/// Maximum number of files held open: far more than a server maps, and below the default limit of descriptors.
const FILES_MOST: usize = 512;
/// Maximum size of a library; some have megabytes.
const FILE_MOST: u64 = 64 << 20;

/// A file that is mapped for execution.
#[derive(Debug)]
pub struct Module {
    /// The last component of its path in the process's own view.
    pub name: String,
    /// `None` when it could not be opened.
    pub file: Option<File>,
}

#[derive(Debug, Clone)]
pub enum Backing {
    File {
        module: Rc<Module>,
        offset: u64,
    },
    Vdso,
    /// Memory without a file: usually code generated at run time.
    Anonymous,
}

/// A file's code in a process.
#[derive(Debug)]
pub struct Code {
    pub start: u64,
    pub end: u64,
    /// The offset in the file.
    pub offset: u64,
    pub module: Rc<Module>,
}

impl Module {
    /// The whole content of the file.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut file = self.file.as_ref()?;
        let mut bytes = Vec::new();
        file.rewind().ok()?;
        file.take(FILE_MOST).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

#[derive(Debug, Clone)]
struct Mapping {
    end: u64,
    backing: Backing,
}

/// What is known about one process.
#[derive(Debug, Clone, Default)]
pub struct Space {
    mappings: BTreeMap<u64, Mapping>,
    /// Its pid in its own namespace, which is in the name of its perf map.
    pub inner_pid: Option<u32>,
    pub name: Option<String>,
    pub owner: Option<u32>,
}

/// All processes that were seen.
#[derive(Debug, Default)]
pub struct Spaces {
    processes: BTreeMap<u32, Space>,
    modules: HashMap<(String, u64), Rc<Module>>,
}

impl Space {
    /// What the address belongs to, and its offset in the file or in the mapping.
    pub fn find(&self, address: u64) -> Option<(Backing, u64)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        let from_start = address - start;
        if address >= mapping.end {
            return None;
        }
        let offset = match mapping.backing {
            Backing::File { offset, .. } => offset.checked_add(from_start)?,
            Backing::Vdso | Backing::Anonymous => from_start,
        };
        Some((mapping.backing.clone(), offset))
    }

    /// The code of the files whose names are wanted.
    pub fn code(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = Code> {
        self.mappings.iter().filter_map(move |(&start, mapping)| match &mapping.backing {
            Backing::File { module, offset } if wanted(&module.name) => {
                Some(Code { start, end: mapping.end, offset: *offset, module: Rc::clone(module) })
            }
            _ => None,
        })
    }

    /// Whether a file of this name is mapped.
    pub fn maps(&self, name: &str) -> bool {
        let is_named = |mapping: &Mapping| matches!(&mapping.backing, Backing::File { module, .. } if module.name == name);
        self.mappings.values().any(is_named)
    }
}

impl Spaces {
    /// What is known about process `pid`; `None` if it was never read.
    pub fn of(&self, pid: u32) -> Option<&Space> {
        self.processes.get(&pid)
    }

    /// Reads a process's mappings again; older ones stay where nothing newer is. Returns false when the process is
    /// gone.
    pub fn look(&mut self, pid: u32, parent: u32) -> bool {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if !self.processes.contains_key(&pid) {
            // Until it executes another program, a child has its parent's mappings.
            let known = self.processes.get(&parent).cloned().unwrap_or_default();
            self.processes.insert(pid, Space { inner_pid: None, ..known });
        }
        let mut lines: Vec<_> = maps.lines().filter_map(Line::parse).collect();
        lines.truncate(MAPPINGS_MOST);
        let mut found = Vec::with_capacity(lines.len());
        for line in lines {
            let backing = match line.path {
                "[vdso]" => Backing::Vdso,
                path if path.starts_with('/')
                    && !path.starts_with("/memfd:")
                    && !path.starts_with("/dev/") =>
                {
                    Backing::File { module: self.module(pid, &line), offset: line.offset }
                }
                _ => Backing::Anonymous,
            };
            found.push((line.start, Mapping { end: line.end, backing }));
        }
        let space = self.processes.get_mut(&pid).expect("it was put in above");
        let is_there = !found.is_empty();
        space.replace(found);
        if let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
            space.note(&status);
        }
        is_there
    }

    fn module(&mut self, pid: u32, line: &Line<'_>) -> Rc<Module> {
        let key = (line.device.to_owned(), line.inode);
        if let Some(module) = self.modules.get(&key) {
            return Rc::clone(module);
        }
        let is_room = self.modules.len() < FILES_MOST;
        let file = is_room.then(|| mapped_file(pid, (line.start, line.end), line.path).ok()).flatten();
        let name = line.path.strip_suffix(" (deleted)").unwrap_or(line.path);
        let name = name.rsplit('/').next().unwrap_or(name).to_owned();
        let module = Rc::new(Module { name, file });
        self.modules.insert(key, Rc::clone(&module));
        module
    }
}

/// A file that a process executes from.
pub(crate) struct Executable {
    pid: u32,
    range: (u64, u64),
    /// Device and inode: the same for all processes.
    pub id: (String, u64),
    /// Where the process finds it.
    pub path: String,
}

impl Executable {
    /// Those of process `pid`; none if it has ended.
    pub fn all(pid: u32) -> Vec<Executable> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let lines = maps.lines().filter_map(Line::parse).filter(|line| line.path.starts_with('/'));
        let files = lines.take(MAPPINGS_MOST).map(|line| Executable {
            pid,
            range: (line.start, line.end),
            id: (line.device.to_owned(), line.inode),
            path: line.path.to_owned(),
        });
        files.collect()
    }

    /// Opens it, if it is a regular file.
    ///
    /// # Errors
    ///
    /// When it is none, or cannot be opened.
    pub fn open(&self) -> io::Result<File> {
        mapped_file(self.pid, self.range, &self.path)
    }
}

/// The mapped file itself, or if the kernel does not provide it, the one with its name in the process's own view.
fn mapped_file(pid: u32, (start, end): (u64, u64), path: &str) -> io::Result<File> {
    let link = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
    let mapped = rustix::fs::open(link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    match mapped {
        Ok(place) => regular(place, Owner::Any),
        Err(_) => World::of(pid)?.file(path, Owner::Any),
    }
}

impl Space {
    /// Puts newer mappings over older ones.
    fn replace(&mut self, found: Vec<(u64, Mapping)>) {
        for (start, mapping) in found {
            let end = mapping.end;
            let overlapped: Vec<_> = self
                .mappings
                .range(..end)
                .rev()
                .take_while(|(_, old)| old.end > start)
                .map(|(old, _)| *old)
                .collect();
            for old in overlapped {
                self.mappings.remove(&old);
            }
            self.mappings.insert(start, mapping);
        }
    }

    fn note(&mut self, status: &str) {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        self.name = field("Name").map(|name| name.trim().to_owned()).or(self.name.take());
        self.inner_pid = field("NSpid").and_then(|pids| pids.split_whitespace().last()?.parse().ok());
        // The effective user ID.
        self.owner = field("Uid").and_then(|users| users.split_whitespace().nth(1)?.parse().ok());
    }
}

/// A line of /proc/PID/maps for executable memory.
#[derive(Debug, PartialEq, Eq)]
struct Line<'t> {
    start: u64,
    end: u64,
    offset: u64,
    device: &'t str,
    inode: u64,
    path: &'t str,
}

impl<'t> Line<'t> {
    fn parse(line: &'t str) -> Option<Line<'t>> {
        let mut rest = line;
        let mut word = || {
            let trimmed = rest.trim_start();
            let (word, after) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
            rest = after;
            word
        };
        let (range, rights, offset, device, inode) = (word(), word(), word(), word(), word());
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        if rights.as_bytes().get(2) != Some(&b'x') || start >= end {
            return None;
        }
        Some(Line { start, end, offset: hex(offset)?, device, inode: inode.parse().ok()?, path: rest.trim() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_are_read() {
        let line = "55d0c0a02000-55d0c0a06000 r-xp 00002000 fe:00 1311 /usr/bin/a b (deleted)";
        let read = Line::parse(line).unwrap();
        assert_eq!((read.start, read.end, read.offset), (0x55d0_c0a0_2000, 0x55d0_c0a0_6000, 0x2000));
        assert_eq!((read.device, read.inode, read.path), ("fe:00", 1311, "/usr/bin/a b (deleted)"));
        let anonymous = Line::parse("7f00-7f10 rwxp 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.path, "");
        assert!(Line::parse("7f00-7f10 rw-p 00000000 00:00 0 [heap]").is_none());
        assert!(Line::parse("7f10-7f00 rwxp 00000000 00:00 0").is_none());
        assert!(Line::parse("nonsense").is_none());
    }

    fn anonymous(end: u64) -> Mapping {
        Mapping { end, backing: Backing::Anonymous }
    }

    /// If this fails, a library loaded where another one was gets the other one's names.
    #[test]
    fn newer_mappings_replace_older_ones() {
        let mut space = Space::default();
        space.replace(vec![(0x10, anonymous(0x20)), (0x30, anonymous(0x40))]);
        space.replace(vec![(0x18, Mapping { end: 0x38, backing: Backing::Vdso })]);
        assert!(space.find(0x12).is_none());
        assert!(matches!(space.find(0x18), Some((Backing::Vdso, 0))));
        assert!(matches!(space.find(0x37), Some((Backing::Vdso, 0x1f))));
        assert!(space.find(0x38).is_none());
    }

    #[test]
    fn this_process_maps_its_own_binary() {
        let mut spaces = Spaces::default();
        assert!(spaces.look(std::process::id(), 0));
        let space = spaces.of(std::process::id()).unwrap();
        let here = executable_mappings_are_read as fn() as usize as u64;
        let Some((Backing::File { module, .. }, _)) = space.find(here) else { panic!("code lies in a file") };
        assert!(module.file.is_some(), "{module:?}");
        assert!(!spaces.look(u32::MAX, 0));
    }
}
