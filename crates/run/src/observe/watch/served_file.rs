//! Keeps individual requests in `served.parquet`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::Context;
use export::served::{Record, Writer};
use record::document::Kept;
use record::observation::watch::SERVED;
use record::{RecordDir, Served};
use units::Nanos;

use crate::requests_file::KeepRequests;

/// Its name while it is written: without its footer it is unreadable.
const UNFINISHED: &str = "served.parquet.unfinished";

/// The file while it is written.
pub struct ServedFile {
    keep: KeepRequests,
    folder: RecordDir,
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
    /// Ordered by response time, then by order of arrival.
    slowest: BTreeMap<(Nanos, Reverse<u64>), Served>,
    seen: u64,
    sample: schedule::Sample,
}

impl ServedFile {
    /// # Errors
    ///
    /// When the file cannot be created.
    pub fn begin(
        keep: KeepRequests,
        folder: &Path,
        zero: Nanos,
        started: &str,
    ) -> anyhow::Result<ServedFile> {
        let path = folder.join(SERVED);
        let created = RecordDir::open(folder).and_then(|folder| Ok((folder.create(UNFINISHED)?, folder)));
        let (file, folder) = created.with_context(|| format!("cannot create {}", path.display()))?;
        let record = Record { zero, started: started.to_owned(), kept: keep.words() };
        let writer = Writer::new(BufWriter::new(file), &record)?;
        let share = if let KeepRequests::Sample(share) = keep { share } else { 1.0 };
        let sample = schedule::Sample::new(share, 1);
        Ok(ServedFile { keep, folder, path, writer, slowest: BTreeMap::new(), seen: 0, sample })
    }

    /// # Errors
    ///
    /// When a write fails, for example because the disk is full; the file cannot be finished then.
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
        let written = self.writer.write(std::mem::take(&mut self.slowest).into_values().rev());
        let written = written.and_then(|()| self.writer.finish()).map_err(anyhow::Error::from);
        let named = written.and_then(|rows| {
            let renamed = self.folder.rename(UNFINISHED, SERVED);
            renamed.with_context(|| format!("cannot rename to {}", self.path.display()))?;
            Ok(Kept { requests: self.keep.words(), rows, lost: 0 })
        });
        if named.is_err() {
            let _ = self.folder.remove(UNFINISHED);
        }
        named
    }

    /// Deletes the file after a failed write, which can free space for the rest of the record.
    pub fn abandon(self) {
        let _ = self.folder.remove(UNFINISHED);
    }
}
