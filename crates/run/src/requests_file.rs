//! `--requests`: keeps individual requests, in `requests.parquet` of the record.
//!
//! Written by a thread with a lower priority than the workers. Such a file cannot be read until its footer is written,
//! so it has another name until then.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use engine::{Batch, Keep, Keeping};
use export::requests::{Run, Writer};
use record::document::{Document, Kept};
use record::{RecordDir, Slowest};
use schedule::Sample;

const FILE: &str = "requests.parquet";

/// File name until the footer is written.
const UNFINISHED: &str = "requests.parquet.unfinished";

/// Maximum requests that each worker holds, at 210 bytes each.
const MOST_SLOWEST: u64 = 1_000_000;

/// Batches in the queue: 1 s at 150,000 requests per second.
const QUEUE: usize = 40;

/// Nicer than the workers: on a busy host this thread waits, not they.
const NICE: i32 = 10;

/// Which individual requests to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeepRequests {
    All,
    Slowest(usize),
    Sample(f64),
}

impl FromStr for KeepRequests {
    type Err = String;

    fn from_str(text: &str) -> Result<KeepRequests, String> {
        const FORMS: &str = "all, slowest=100 or sample=1%";
        match text.split_once('=') {
            None if text == "all" => Ok(KeepRequests::All),
            Some(("slowest", number)) => match units::parse_count(number) {
                Ok(number @ 1..=MOST_SLOWEST) => Ok(KeepRequests::Slowest(number as usize)),
                _ => Err("slowest= takes a number from 1 to 1000000".to_owned()),
            },
            Some(("sample", share)) => parse_share(share).map(KeepRequests::Sample).ok_or(
                "sample= takes a share of more than 0% and at most 100%, with the percent sign".to_owned(),
            ),
            None if units::parse_count(text).is_ok() => {
                Err(format!("is one of {FORMS}; to schedule {text} requests write `-n {text}`"))
            }
            _ => Err(format!("is one of {FORMS}")),
        }
    }
}

/// Parses `1%`; the sign is required, because a plain 1 could mean all or one in a hundred.
fn parse_share(text: &str) -> Option<f64> {
    let share = text.strip_suffix('%')?.trim().parse::<f64>().ok()? / 100.0;
    (share > 0.0 && share <= 1.0).then_some(share)
}

impl KeepRequests {
    fn keep(self, seed: u64) -> Keep {
        match self {
            KeepRequests::All => Keep::All,
            KeepRequests::Slowest(most) => Keep::Slowest(most),
            KeepRequests::Sample(share) => Keep::Sample(Sample::new(share, seed)),
        }
    }

    /// The text of the option.
    pub fn words(self) -> String {
        match self {
            KeepRequests::All => "all".to_owned(),
            KeepRequests::Slowest(most) => format!("slowest={most}"),
            KeepRequests::Sample(share) => format!("sample={}%", share * 100.0),
        }
    }
}

/// The file while it is written.
pub struct RequestsFile {
    keep: KeepRequests,
    folder: RecordDir,
    path: PathBuf,
    thread: JoinHandle<anyhow::Result<u64>>,
}

impl RequestsFile {
    /// Creates the file in the folder of a run that has begun, and returns what the engine needs to send to it. `seed`
    /// selects a sample.
    ///
    /// # Errors
    ///
    /// When the file or its thread cannot be created.
    pub fn begin(
        keep: KeepRequests,
        seed: u64,
        folder: &Path,
        document: &Document,
        names: &[String],
    ) -> anyhow::Result<(RequestsFile, Keeping)> {
        let path = folder.to_owned();
        let created = RecordDir::open(folder).and_then(|folder| Ok((folder.create(UNFINISHED)?, folder)));
        let (file, folder) =
            created.with_context(|| format!("cannot create {}", path.join(UNFINISHED).display()))?;
        let run = Run {
            zero: units::Nanos(document.time.started_monotonic_ns),
            started: document.time.started.clone(),
            kept: keep.words(),
            targets: names.to_vec(),
        };
        let (to, batches) = sync_channel(QUEUE);
        let write = move || {
            let this = rustix::thread::gettid();
            // Failure is harmless: the thread then competes at the same priority.
            let _ = rustix::process::setpriority_process(Some(this), NICE);
            write(keep, BufWriter::new(file), &run, &batches)
        };
        let thread = thread::Builder::new()
            .name("requests".to_owned())
            .spawn(write)
            .context("cannot start the thread that keeps requests")?;
        Ok((RequestsFile { keep, folder, path, thread }, Keeping { keep: keep.keep(seed), to }))
    }

    /// Call when the engine has ended: waits for the last rows. `unkept` is the number of requests that were dropped.
    ///
    /// # Errors
    ///
    /// Why there is no file, for example because the disk was full.
    pub fn finish(self, unkept: u64) -> anyhow::Result<Kept> {
        let (unfinished, path) = (self.path.join(UNFINISHED), self.path.join(FILE));
        let rows = self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a bug in Parallax")));
        let rows = rows.with_context(|| {
            format!("{} cannot be read, because its end is missing", unfinished.display())
        })?;
        let renamed = self.folder.rename(UNFINISHED, FILE);
        renamed.with_context(|| format!("cannot rename to {}", path.display()))?;
        Ok(Kept { requests: self.keep.words(), rows, lost: unkept })
    }
}

fn write(
    keep: KeepRequests,
    out: impl io::Write + Send,
    run: &Run,
    batches: &Receiver<Batch>,
) -> anyhow::Result<u64> {
    let mut writer = Writer::new(out, run)?;
    let KeepRequests::Slowest(most) = keep else {
        for batch in batches {
            writer.write(&batch)?;
        }
        return Ok(writer.finish()?);
    };
    // Each worker sends its slowest at its end; the slowest of those are kept.
    let mut slowest = Slowest::new(most);
    for batch in batches {
        batch.iter().for_each(|request| slowest.offer(request));
    }
    writer.write(&slowest.into_sorted())?;
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_keep_is_read_or_refused() {
        for (text, keep) in [
            ("all", KeepRequests::All),
            ("slowest=10k", KeepRequests::Slowest(10_000)),
            ("sample=5%", KeepRequests::Sample(0.05)),
            ("sample=100%", KeepRequests::Sample(1.0)),
        ] {
            assert_eq!(text.parse(), Ok(keep), "{text}");
        }
        let nonsense = [
            "",
            "none",
            "slowest",
            "slowest=0",
            "slowest=2M",
            "slowest=x",
            "sample=",
            "sample=0%",
            "sample=101%",
            "sample=1",
            "sample=nan",
            "sample=-1%",
            "all=1",
        ];
        for text in nonsense {
            assert!(text.parse::<KeepRequests>().is_err(), "{text}");
        }
        assert!("500".parse::<KeepRequests>().unwrap_err().contains("-n 500"));
    }
}
