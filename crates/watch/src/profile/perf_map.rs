//! Names of code generated at run time, as its compiler publishes them: `/tmp/perf-PID.map`.
//!
//! A line is `START SIZE NAME`, the first two in hexadecimal; a later line replaces what it overlaps.
//! The file may have hundreds of MiB and untrusted content: it is read line by line, and only the names of addresses
//! that were seen are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};

/// The map of a very large application has some 250 MiB after days of recompilation.
const LONGEST: u64 = 1 << 30;
/// The longest names of Java methods have some hundred bytes.
const LINE_LONGEST: usize = 1_024;
/// Names of a hundred thousand methods.
const NAMES_LONGEST: usize = 32 << 20;

/// Names by address.
#[derive(Debug, Default)]
pub struct PerfMap {
    names: BTreeMap<u64, (u64, String)>,
    bytes: usize,
}

impl PerfMap {
    /// Reads the names of the code at the addresses `seen`, or just before them.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is longer than any map.
    ///
    /// # Cost
    ///
    /// Memory for the names that are found, at most 32 MiB, and for one line.
    pub fn read(file: impl Read, seen: &BTreeSet<u64>) -> Result<PerfMap, String> {
        let mut map = PerfMap::default();
        let mut reader = BufReader::new(file.take(LONGEST + 1));
        let (mut line, mut length) = (Vec::with_capacity(LINE_LONGEST), 0_u64);
        loop {
            line.clear();
            let read = read_line(&mut reader, &mut line).map_err(|error| error.to_string())?;
            length += read;
            if length > LONGEST {
                return Err(format!("it is larger than {} MiB", LONGEST >> 20));
            }
            if read == 0 {
                return Ok(map);
            }
            map.take(&line, seen);
            if map.bytes > NAMES_LONGEST {
                return Err(format!("its names are larger than {} MiB", NAMES_LONGEST >> 20));
            }
        }
    }

    fn take(&mut self, line: &[u8], seen: &BTreeSet<u64>) {
        let line = String::from_utf8_lossy(line);
        let mut parts = line.trim_end().splitn(3, ' ');
        let mut hex = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
        let (Some(start), Some(size)) = (hex(), hex()) else { return };
        let (Some(name), Some(end)) = (parts.next(), start.checked_add(size)) else { return };
        self.remove(start, end);
        // A return address may be just after the code.
        if start < end && seen.range(start..=end).next().is_some() {
            self.bytes += name.len();
            self.names.insert(start, (end, name.to_owned()));
        }
    }

    /// Removes the entries that overlap `start..end`: their code is gone.
    fn remove(&mut self, start: u64, end: u64) {
        let before = self.names.range(..end).rev();
        let overlapped: Vec<_> =
            before.take_while(|(_, (old_end, _))| *old_end > start).map(|(old, _)| *old).collect();
        for old in overlapped {
            self.bytes -= self.names.remove(&old).map_or(0, |(_, name)| name.len());
        }
    }

    /// The name of the code at `address`.
    pub fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.names.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }
}

/// Reads a line, of which the first [`LINE_LONGEST`] bytes are kept; returns its whole length, 0 at the end.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<u64> {
    let mut length = 0;
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        line.extend(&part[..part.len().min(LINE_LONGEST - line.len())]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        length += used as u64;
        if used == 0 || end.is_some() {
            return Ok(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<const N: usize>(text: &str, seen: [u64; N]) -> PerfMap {
        PerfMap::read(text.as_bytes(), &BTreeSet::from(seen)).unwrap()
    }

    #[test]
    fn an_address_finds_its_name() {
        let text =
            "10 10 int A.f(int, long)\n0x30 0x8 Interpreter\nbad line\n40 zz x\n50\n60 10 never seen\n";
        let map = parse(text, [0x1f, 0x20, 0x30, 0x0f]);
        assert_eq!(map.find(0x1f), Some("int A.f(int, long)"));
        assert_eq!(map.find(0x20), None);
        assert_eq!(map.find(0x30), Some("Interpreter"));
        assert_eq!(map.find(0x0f), None);
        assert_eq!(map.names.len(), 2);
    }

    /// If this fails, a method compiled at an earlier method's address gets that method's name.
    #[test]
    fn a_later_line_wins() {
        let map = parse("10 10 old\n18 10 new\n", [0x12, 0x18]);
        assert_eq!(map.find(0x12), None);
        assert_eq!(map.find(0x18), Some("new"));
        assert_eq!(parse("10 10 old\n12 2 nobody saw it\n", [0x18]).find(0x18), None);
        assert_eq!(parse("ffffffffffffffff 2 x", [u64::MAX]).find(u64::MAX), None);
    }

    /// If this fails, the map of a long-running JVM takes ten times its size in memory.
    #[test]
    fn what_was_not_seen_takes_no_memory() {
        let lines = (0..2_000_000_u64).map(|n| format!("{:x} 10 java.util.Map.get{n}\n", n << 4));
        let mut text = lines.collect::<String>();
        text.push_str(&format!("100 8 {}\n", "x".repeat(3_000_000)));
        let map = parse(&text, [0x104, 0x50, 31_999_990]);
        // One of them may also be the end of a method.
        assert_eq!((map.names.len(), map.find(0x50)), (4, Some("java.util.Map.get5")));
        assert!(map.bytes < 2 * LINE_LONGEST, "{}", map.bytes);
        // Lines that never end are refused and not stored.
        let endless = PerfMap::read(io::repeat(b'x'), &BTreeSet::from([1]));
        assert_eq!(endless.unwrap_err(), "it is larger than 1024 MiB");
    }
}
