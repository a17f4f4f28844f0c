//! The files of an experiment's directory, as they are written: `plan.json`, `run.json` and the lines of
//! `journal.jsonl`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The version of these files, `major.minor`: a reader accepts any minor version of its major version.
pub(crate) const SCHEMA_VERSION: &str = "1.0";

/// `plan.json`: written before the first run, never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlanDocument {
    pub schema_version: String,
    pub name: String,
    /// The experiment file, for messages; its text is in `experiment.toml`.
    pub file: PathBuf,
    /// Where commands run: the directory of the experiment file.
    pub directory: PathBuf,
    pub seed: u64,
    pub blocks: usize,
    /// In their order.
    pub runs: Vec<PlannedRunDocument>,
}

/// One run of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlannedRunDocument {
    pub number: usize,
    pub block: usize,
    /// Factors and labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is the second, hidden base.
    pub twin: bool,
}

/// `run.json`: one run that came to its end, whatever that was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunDocument {
    pub schema_version: String,
    #[serde(flatten)]
    pub planned: PlannedRunDocument,
    pub state: RunState,
    /// Absent if it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Wall clock, in nanoseconds since 1970.
    pub started_ns: u64,
    pub wall_ns: u64,
    pub boot_id: String,
    /// Absent if the experiment does not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What was started, by name, without passwords.
    pub commands: BTreeMap<String, String>,
    /// CPUs of server and load; absent if they share all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuSets>,
    /// `control group` or `process tree`.
    pub supervision: String,
    /// How long each part took, in order.
    pub steps: Vec<Step>,
    /// What the load used; absent if it did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadUsage>,
    /// CPU time of the server and everything it started, during the load; absent without a control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu_ns: Option<u64>,
    /// Resident memory of the server and the processes below it, at the end of the load; pages that two share count
    /// twice. Absent without a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory_bytes: Option<u64>,
    /// Processes that were still there at the end of the run, and were killed.
    pub left_behind: usize,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunState {
    Done,
    Failed,
}

/// Why a run has no figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// `start`, `ready`, `version`, `check`, `proof`, `load` or `check after`.
    pub step: String,
    pub cause: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CpuSets {
    pub server: Vec<usize>,
    pub load: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub name: String,
    pub ns: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LoadUsage {
    pub wall_ns: u64,
    /// Absent if the kernel does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Absent if it ended before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
}

/// One line of `journal.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalLine {
    /// Wall clock, in nanoseconds since 1970.
    pub at_ns: u64,
    #[serde(flatten)]
    pub event: JournalEvent,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum JournalEvent {
    /// A process begins to carry out the plan.
    Session {
        pid: u32,
        boot_id: String,
        /// Its processes have it in their environment.
        token: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<PathBuf>,
    },
    Built {
        command: String,
        ns: u64,
        /// Absent if it succeeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<String>,
    },
    Begun {
        run: usize,
    },
    Committed {
        run: usize,
        state: RunState,
    },
    /// A run that did not come to its end, and is made again.
    Aborted {
        run: usize,
        folder: PathBuf,
    },
    /// A run that is made again: it is invalid or has failed, or one of its neighbours, or these are missing for too
    /// long.
    Superseded {
        run: usize,
        folder: PathBuf,
    },
    /// The session ended by itself.
    Ended {
        is_complete: bool,
    },
}
