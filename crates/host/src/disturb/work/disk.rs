//! Writes blocks into a file and waits for the disk after each (fsync).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use schedule::Stream;
use units::Nanos;

use super::{Window, fact};
use crate::disturb::conduct::Fact;

/// A file that is overwritten in a cycle.
pub(super) struct Writer {
    path: PathBuf,
    file: File,
    block: Vec<u8>,
    blocks: u64,
    next: u64,
    per_s: Option<u64>,
}

impl Writer {
    pub(super) fn open(
        folder: &Path,
        block_bytes: u64,
        file_bytes: u64,
        per_s: Option<u64>,
    ) -> io::Result<Writer> {
        let path = folder.join(format!("writer-{}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| within(&path, &error))?;
        // Random bytes: some file systems and disks optimise zeros away.
        let noise = Stream::new(u64::from(std::process::id()), 0);
        let words = (0..block_bytes.div_ceil(8)).flat_map(|n| noise.up_to(n, u64::MAX).to_le_bytes());
        let block: Vec<u8> = words.take(usize::try_from(block_bytes).map_err(io::Error::other)?).collect();
        Ok(Writer { path, file, block, blocks: (file_bytes / block_bytes.max(1)).max(1), next: 0, per_s })
    }

    /// Writes until the window closes. A running fsync is waited for: it may end later than the window.
    pub(super) fn write(&mut self, window: &Window) -> io::Result<Vec<Fact>> {
        let begin = clock::now();
        let (mut writes, mut sum, mut max) = (0, 0, 0);
        while window.is_open() {
            if let Some(rate) = self.per_s {
                // A write that the disk delayed is late; the next one is due at its own time.
                window.sleep_until(begin + due(writes, rate));
                if !window.is_open() {
                    break;
                }
            }
            let at = self.next % self.blocks * self.block.len() as u64;
            self.next += 1;
            let before = clock::now();
            let written = self.file.write_all_at(&self.block, at).and_then(|()| self.file.sync_all());
            written.map_err(|error| within(&self.path, &error))?;
            let took = (clock::now() - before).0;
            (writes, sum, max) = (writes + 1, sum + took, max.max(took));
        }
        Ok(vec![
            fact("fsyncs", writes),
            fact("written_bytes", writes * self.block.len() as u64),
            fact("fsync_ns", sum),
            fact("fsync_max_ns", max),
        ])
    }
}

/// Adds to an error where it happened and what to do.
fn within(path: &Path, error: &io::Error) -> io::Error {
    let shown = path.display();
    let what_to_do = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "make room there, or give a smaller --file or fewer --writers"
        }
        _ => "use a directory on a writable disk",
    };
    io::Error::other(format!("cannot write `{shown}`: {error}; {what_to_do}"))
}

fn due(n: u64, per_s: u64) -> Nanos {
    let ns = u128::from(n) * 1_000_000_000 / u128::from(per_s.max(1));
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_wrap_around_within_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path(), 4_096, 3 * 4_096, Some(200)).unwrap();
        let window = Window::until(clock::now() + Nanos::from_millis(200));
        let facts = writer.write(&window).unwrap();
        // Due at 0, 5, 10 … 195 ms: forty, fewer on a slow disk.
        assert!((4..=40).contains(&facts[0].value), "{facts:?}");
        assert_eq!(facts[1].value, facts[0].value * 4_096);
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3 * 4_096);
    }
}
