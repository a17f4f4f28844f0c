//! The directory of an experiment: its plan, one folder per run, and a journal.
//!
//! A run is made in `running/` and becomes part of the experiment when its folder is renamed to `runs/`, which happens
//! as a whole or not at all. What did not come to its end is kept in `aborted/`, what was replaced in `superseded/`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::documents::{JournalEvent, JournalLine, PlanDocument, RunDocument, SCHEMA_VERSION};

/// The directory of an experiment.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    pub(crate) plan: PlanDocument,
    /// The experiment file as it was when the plan was made.
    pub(crate) text: String,
}

const PLAN: &str = "plan.json";
const EXPERIMENT: &str = "experiment.toml";
const JOURNAL: &str = "journal.jsonl";
const LOCK: &str = "lab.lock";
const RUN: &str = "run.json";
const RUNS: &str = "runs";
const RUNNING: &str = "running";
const ABORTED: &str = "aborted";
const SUPERSEDED: &str = "superseded";

impl Store {
    /// Makes the directory of a new experiment.
    ///
    /// # Errors
    ///
    /// When it is not empty, or cannot be written.
    pub(crate) fn create(folder: &Path, plan: PlanDocument, text: &str) -> anyhow::Result<Store> {
        let shown = folder.display();
        fs::create_dir_all(folder).with_context(|| format!("cannot create `{shown}`"))?;
        let is_empty =
            fs::read_dir(folder).with_context(|| format!("cannot read `{shown}`"))?.next().is_none();
        ensure!(
            is_empty,
            "`{shown}` is not empty; name a new directory, or continue with `parallax lab resume {shown}`"
        );
        let folder = fs::canonicalize(folder).with_context(|| format!("cannot find `{shown}`"))?;
        for inner in [RUNS, RUNNING, ABORTED, SUPERSEDED] {
            fs::create_dir(folder.join(inner))
                .with_context(|| format!("cannot create `{inner}` in `{shown}`"))?;
        }
        write(&folder.join(EXPERIMENT), text.as_bytes())?;
        write_json(&folder.join(PLAN), &plan)?;
        sync(&folder)?;
        Ok(Store { folder, plan, text: text.to_owned() })
    }

    /// Opens the directory of an experiment.
    ///
    /// # Errors
    ///
    /// When it is none, or was written by a program with another format.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Store> {
        let shown = folder.display();
        let plan: PlanDocument = read_json(&folder.join(PLAN))
            .with_context(|| format!("`{shown}` is not the directory of an experiment"))?;
        let major = |version: &str| version.split('.').next().map(str::to_owned);
        ensure!(
            major(&plan.schema_version) == major(SCHEMA_VERSION),
            "`{shown}` has format {}, and this program reads {SCHEMA_VERSION}",
            plan.schema_version
        );
        let path = folder.join(EXPERIMENT);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let folder = fs::canonicalize(folder).with_context(|| format!("cannot find `{shown}`"))?;
        Ok(Store { folder, plan, text })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps other processes from carrying out the same plan, as long as the file is open.
    ///
    /// # Errors
    ///
    /// When another process has it.
    pub(crate) fn lock(&self) -> anyhow::Result<File> {
        let path = self.folder.join(LOCK);
        let file = File::create(&path).with_context(|| format!("cannot create `{}`", path.display()))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {
                bail!("another process carries out the experiment in `{}`", self.folder.display())
            }
            Err(error) => Err(error).with_context(|| format!("cannot lock `{}`", path.display())),
        }
    }

    /// The runs that came to their end, by number.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub(crate) fn committed(&self) -> anyhow::Result<BTreeMap<usize, RunDocument>> {
        let mut found = BTreeMap::new();
        for number in self.numbers(RUNS)? {
            let path = self.run(number).join(RUN);
            let run = read_json(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
            found.insert(number, run);
        }
        Ok(found)
    }

    /// The folder of a run that came to its end.
    pub(crate) fn run(&self, number: usize) -> PathBuf {
        self.folder.join(RUNS).join(name(number))
    }

    /// A new folder for a run that begins.
    pub(crate) fn begin(&self, number: usize) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(RUNNING).join(name(number));
        fs::create_dir(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        Ok(folder)
    }

    /// Makes a run part of the experiment.
    pub(crate) fn commit(&self, run: &RunDocument) -> anyhow::Result<()> {
        let number = run.planned.number;
        let (from, to) = (self.folder.join(RUNNING).join(name(number)), self.run(number));
        write_json(&from.join(RUN), run)?;
        sync(&from)?;
        fs::rename(&from, &to).with_context(|| format!("cannot rename `{}`", from.display()))?;
        sync(&self.folder.join(RUNS))
    }

    /// Moves every run that did not come to its end to `aborted/`: their numbers and places.
    pub(crate) fn abort(&self) -> anyhow::Result<Vec<(usize, PathBuf)>> {
        let numbers = self.numbers(RUNNING)?;
        let moved = numbers.into_iter().map(|number| Ok((number, self.set_aside(RUNNING, ABORTED, number)?)));
        moved.collect()
    }

    /// Moves a committed run to `superseded/`.
    pub(crate) fn supersede(&self, number: usize) -> anyhow::Result<PathBuf> {
        self.set_aside(RUNS, SUPERSEDED, number)
    }

    /// Runs that were begun and did not come to their end, by number.
    pub(crate) fn aborted(&self) -> anyhow::Result<Vec<usize>> {
        self.numbers(ABORTED)
    }

    /// Runs that were replaced.
    pub(crate) fn superseded(&self) -> anyhow::Result<Vec<usize>> {
        self.numbers(SUPERSEDED)
    }

    fn set_aside(&self, from: &str, to: &str, number: usize) -> anyhow::Result<PathBuf> {
        let free = (1..).map(|time| Path::new(to).join(format!("{}-{time}", name(number))));
        let mut free = free.filter(|place| !self.folder.join(place).exists());
        let place = free.next().expect("there are more numbers than folders");
        let from = self.folder.join(from).join(name(number));
        fs::rename(&from, self.folder.join(&place))
            .with_context(|| format!("cannot rename `{}`", from.display()))?;
        Ok(place)
    }

    /// The numbers of the folders in `inner`, in order.
    fn numbers(&self, inner: &str) -> anyhow::Result<Vec<usize>> {
        let path = self.folder.join(inner);
        let entries = fs::read_dir(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let number = |entry: fs::DirEntry| {
            let name = entry.file_name();
            name.to_str()?.split('-').next()?.parse().ok()
        };
        let mut numbers: Vec<usize> = entries.flatten().filter_map(number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Opens the journal for more lines.
    pub(crate) fn journal(&self) -> anyhow::Result<Journal> {
        let path = self.folder.join(JOURNAL);
        let torn = fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
        let file = File::options().create(true).append(true).open(&path);
        let mut file = file.with_context(|| format!("cannot write `{}`", path.display()))?;
        if torn {
            file.write_all(b"\n").context("cannot write the journal")?;
        }
        Ok(Journal { file })
    }

    /// What happened so far; a line that a crash cut off is left out.
    pub(crate) fn events(&self) -> Vec<JournalLine> {
        let text = fs::read_to_string(self.folder.join(JOURNAL)).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// The journal of an experiment.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
}

impl Journal {
    /// Adds a line.
    pub(crate) fn note(&mut self, event: JournalEvent) -> anyhow::Result<()> {
        let line = JournalLine { at_ns: clock::wall().0, event };
        let mut text = serde_json::to_string(&line).context("a line of the journal is JSON")?;
        text.push('\n');
        // One write per line: a crash loses no part of one.
        self.file.write_all(text.as_bytes()).context("cannot write the journal")
    }
}

/// `0007`
fn name(number: usize) -> String {
    format!("{number:04}")
}

fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("documents are JSON")?;
    text.push('\n');
    write(path, text.as_bytes())
}

/// Writes the file to the disk, so that what is renamed later is complete.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn sync(folder: &Path) -> anyhow::Result<()> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot sync a directory; the rename is atomic without it.
        Err(error) if error.kind() != ErrorKind::InvalidInput => {
            Err(error).with_context(|| format!("cannot sync `{}`", folder.display()))
        }
        _ => Ok(()),
    }
}

/// The most that a document may have: plans of 100,000 runs are smaller.
const LONGEST: u64 = 256 << 20;

fn read_json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let length = fs::metadata(path)?.len();
    ensure!(length <= LONGEST, "longer than {LONGEST} bytes");
    serde_json::from_slice(&fs::read(path)?).context("not a document of `parallax lab`")
}
