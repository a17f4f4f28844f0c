//! Which requests are kept one by one, in `served.parquet`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use export::served::{Record, Writer};
use record::Served;
use record::document::Kept;
use units::Nanos;

pub use run::requests_file::KeepRequests;

const FILE: &str = "served.parquet";

/// As long as it has no footer, nobody can read it.
const UNFINISHED: &str = "served.parquet.unfinished";

/// The file while it is written.
pub struct ServedFile {
    keep: KeepRequests,
    folder: PathBuf,
    writer: Writer<BufWriter<File>>,
    /// By response, then in order of coming.
    slowest: BTreeMap<(Nanos, Reverse<u64>), Served>,
    seen: u64,
    sample: schedule::Sample,
}

impl ServedFile {
    /// # Errors
    ///
    /// When the file cannot be made.
    pub fn begin(
        keep: KeepRequests,
        folder: &Path,
        zero: Nanos,
        started: &str,
    ) -> anyhow::Result<ServedFile> {
        let path = folder.join(UNFINISHED);
        let file = File::create_new(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let record = Record { zero, started: started.to_owned(), kept: keep.words() };
        let writer = Writer::new(BufWriter::new(file), &record)?;
        let share = if let KeepRequests::Sample(share) = keep { share } else { 1.0 };
        let sample = schedule::Sample::new(share, 1);
        Ok(ServedFile { keep, folder: folder.to_owned(), writer, slowest: BTreeMap::new(), seen: 0, sample })
    }

    /// # Errors
    ///
    /// When the disk is full, say; the file cannot be finished then.
    pub fn take(&mut self, served: Served) -> anyhow::Result<()> {
        let n = self.seen;
        self.seen += 1;
        match self.keep {
            KeepRequests::All => self.writer.write([served])?,
            KeepRequests::Sample(_) if self.sample.has(n) => self.writer.write([served])?,
            KeepRequests::Sample(_) => {}
            KeepRequests::Slowest(most) => {
                let key = (served.response(), Reverse(n));
                if self.slowest.len() < most {
                    self.slowest.insert(key, served);
                } else if self.slowest.first_key_value().is_some_and(|(least, _)| *least < key) {
                    self.slowest.pop_first();
                    self.slowest.insert(key, served);
                }
            }
        }
        Ok(())
    }

    /// # Errors
    ///
    /// As [`ServedFile::take`]; nothing is left of the file then.
    pub fn finish(mut self) -> anyhow::Result<Kept> {
        let (unfinished, path) = (self.folder.join(UNFINISHED), self.folder.join(FILE));
        let written = self.writer.write(std::mem::take(&mut self.slowest).into_values().rev());
        let written = written.and_then(|()| self.writer.finish()).map_err(anyhow::Error::from);
        let named = written.and_then(|rows| {
            fs::rename(&unfinished, &path).with_context(|| format!("cannot name {}", path.display()))?;
            Ok(Kept { requests: self.keep.words(), rows, lost: 0 })
        });
        if named.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        named
    }

    /// It cannot be finished: takes it away, which may make room for the rest of the record.
    pub fn abandon(self) {
        let _ = fs::remove_file(self.folder.join(UNFINISHED));
    }
}
