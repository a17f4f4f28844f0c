//! `--requests`: keeps requests one by one, in `requests.parquet` of the record.
//!
//! A thread of its own writes them, below the workers in priority. Until its footer is written nobody can read such a
//! file, so it bears another name until then.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use engine::{Batch, Keep, Keeping};
use export::requests::{Run, Writer};
use record::Slowest;
use record::document::{Document, Kept};
use schedule::Sample;

const FILE: &str = "requests.parquet";

/// As long as it has no footer.
const UNFINISHED: &str = "requests.parquet.unfinished";

/// Each worker holds so many, of 210 bytes.
const MOST_SLOWEST: u64 = 1_000_000;

/// Batches on the way: a second of 150,000 requests.
const QUEUE: usize = 40;

/// Nicer than the workers: on a busy host it waits, not they.
const NICE: i32 = 10;

/// Which requests to keep, as it is stated.
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

/// `1%`; without its sign a 1 could be all or one in a hundred.
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

    /// As it is stated.
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
    folder: PathBuf,
    thread: JoinHandle<anyhow::Result<u64>>,
}

impl RequestsFile {
    /// Begins the file in the folder of a run that has begun, with what the engine is to send it. A sample is drawn
    /// by `seed`.
    ///
    /// # Errors
    ///
    /// When the file or its thread cannot be made.
    pub fn begin(
        keep: KeepRequests,
        seed: u64,
        folder: &Path,
        document: &Document,
        names: &[String],
    ) -> anyhow::Result<(RequestsFile, Keeping)> {
        let path = folder.join(UNFINISHED);
        let file = File::create_new(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let run = Run {
            zero: units::Nanos(document.time.started_monotonic_ns),
            started: document.time.started.clone(),
            kept: keep.words(),
            targets: names.to_vec(),
        };
        let (to, batches) = sync_channel(QUEUE);
        let write = move || {
            let this = rustix::thread::gettid();
            // Without it, it only competes as an equal.
            let _ = rustix::process::setpriority_process(Some(this), NICE);
            write(keep, BufWriter::new(file), &run, &batches)
        };
        let thread = thread::Builder::new()
            .name("requests".to_owned())
            .spawn(write)
            .context("cannot start the thread that keeps requests")?;
        Ok((RequestsFile { keep, folder: folder.to_owned(), thread }, Keeping { keep: keep.keep(seed), to }))
    }

    /// The engine has ended: waits for the last rows. `unkept` found no room on the way.
    ///
    /// # Errors
    ///
    /// Why there is no file: the disk was full, say.
    pub fn finish(self, unkept: u64) -> anyhow::Result<Kept> {
        let (unfinished, path) = (self.folder.join(UNFINISHED), self.folder.join(FILE));
        let rows = self.thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a bug in Parallax")));
        let rows = rows.with_context(|| {
            format!("{} cannot be read, because its end is missing", unfinished.display())
        })?;
        fs::rename(&unfinished, &path).with_context(|| format!("cannot rename to {}", path.display()))?;
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
    // Of each worker the slowest, at its end; of them the slowest.
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
