//! `run.json`: the one document that describes a run, written at its start and replaced at its end.
//!
//! The types here are the wire format, in the order in which people read it, and the source of the JSON Schema
//! in `formats/`. Times end in `_ns`. A value that is not known is left out, with a reason beside it where one
//! is known: absent is never zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of this format. Readers refuse a larger one.
pub const SCHEMA_VERSION: u32 = 1;

/// What a run was, how it went, and whether to believe it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub schema_version: u32,
    /// The verb that made the record.
    pub kind: Kind,
    pub state: State,
    /// `None` while the run goes on.
    pub verdict: Option<Verdict>,
    /// The version of the program that made the record.
    pub parallax_version: String,
    /// The exact command line.
    pub command: Vec<String>,
    /// The effective value of every option, defaults included, by the option's long name.
    pub options: BTreeMap<String, EffectiveOption>,
    pub subject: Subject,
    pub load: Load,
    pub time: Time,
    pub stamps: Stamps,
    pub host: Host,
    /// `None` while the run goes on.
    pub results: Option<Results>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Drive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Under way; or, when its process is gone, cut off: the folder holds all but at most the last second.
    Running,
    Finished,
    /// Ended early by the user; what was measured is whole.
    Interrupted,
    /// Broke off by a fault of Parallax or of this host's event facility; what was measured until then is there.
    Broken,
    /// Rebuilt from a folder whose process was cut off.
    Recovered,
}

/// One option as it took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EffectiveOption {
    /// As one would write it on the command line; empty for a flag that is off.
    pub value: String,
    pub source: OptionSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OptionSource {
    Given,
    Default,
    /// Worked out from other options or from the host.
    Derived,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The URL, or the first of a target file.
    pub url: String,
    pub protocol: String,
    /// How many different requests were sent in turn.
    pub request_kinds: u64,
    /// The address first connected to; absent when none was reached.
    pub address: Option<String>,
}

/// How the load was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub model: Model,
    /// Requests a second asked for, in an open loop.
    pub rate_per_s: Option<f64>,
    pub callers: u64,
    pub connections: u64,
    /// Requests that may be outstanding on one connection.
    pub pipeline: u64,
    pub workers: u64,
    /// How long requests were scheduled for; absent when only a count was given.
    pub duration_ns: Option<u64>,
    /// How many requests were asked for.
    pub request_limit: Option<u64>,
}

impl Load {
    /// Requests that may be on connections at once.
    pub fn slots(&self) -> u64 {
        self.connections.saturating_mul(self.pipeline.max(1))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Requests are due by a schedule, whatever became of the earlier ones.
    Open,
    /// Each caller sends its next request when its last one ended.
    Closed,
}

/// When the run was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Time {
    /// RFC 3339, UTC.
    pub started: String,
    /// The run's zero on the monotonic clock of this host's boot.
    pub started_monotonic_ns: u64,
    /// From the run's zero to the end of the last interval; absent while it goes on.
    pub elapsed_ns: Option<u64>,
    /// From the run's zero until nothing more was scheduled: what throughput is divided by.
    pub window_ns: Option<u64>,
}

/// Where the arrival edges come from, and how well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stamps {
    pub arrival: ArrivalStamps,
    /// Why there are no kernel stamps.
    pub reason: Option<String>,
    /// The kernel's clock is paired with the monotonic one to within this.
    pub pairing_error_ns: Option<u64>,
    /// How often the wall clock was set during the run.
    pub wall_clock_steps: u64,
}

impl Stamps {
    /// The reason of a run whose user asked for none.
    pub const SWITCHED_OFF: &'static str = "switched off";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalStamps {
    /// `SO_TIMESTAMPING`, software receive stamps.
    Kernel,
    /// The moment the client read: `client_lag` is absent and lies within `wait` and `receive`.
    Read,
}

/// Facts of the host that made the load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub name: Option<String>,
    pub kernel: Option<String>,
    pub cpu_model: Option<String>,
    /// CPUs this process may run on.
    pub cpus: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub clock_source: Option<String>,
    /// `none` on bare metal; else what the CPU says it runs under.
    pub hypervisor: Option<String>,
}

/// Everything measured, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    pub totals: Totals,
    /// Every outcome that occurred, `ok` first, then by count.
    pub outcomes: Vec<OutcomeCount>,
    /// The application's own codes (HTTP statuses).
    pub codes: Vec<CodeCount>,
    /// Intended to read, of the `ok` requests; quantiles take the unanswered into account.
    pub response: Distribution,
    /// First byte sent to last byte arrived, of the `ok` requests.
    pub service: Distribution,
    /// The ten phases in order.
    pub phases: Vec<PhaseResult>,
    /// Age at the end of the requests that failed, by outcome.
    pub failed: BTreeMap<String, Distribution>,
    pub cpu: Cpu,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Requests that became due. Equals the sum of all outcomes.
    pub scheduled: u64,
    /// Requests whose first byte was handed to the kernel.
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    /// `ok` requests that ended within the window, a second of it.
    pub throughput_per_s: f64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub body_bytes: u64,
    pub connections_opened: u64,
    pub idle_closes: u64,
    /// `ok` answers without kernel stamps.
    pub unstamped: u64,
    /// Stamps moved by over a microsecond to keep their order.
    pub stamps_moved: u64,
    /// Durations over an hour, kept as an hour.
    pub out_of_range: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCount {
    pub outcome: String,
    /// Where it happened; absent for `ok`.
    pub phase: Option<String>,
    /// Whose fault; absent for `ok`.
    pub blame: Option<String>,
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeCount {
    pub code: u16,
    pub count: u64,
}

/// A distribution of durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    pub count: u64,
    /// Exact.
    pub sum_ns: u64,
    /// These three are absent when the count is 0.
    pub min_ns: Option<u64>,
    pub mean_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub quantiles: Vec<Quantile>,
}

/// One quantile, as far as the sample can carry it.
// Unknown fields are denied by the flattened part: serde would take that part's own fields for unknown here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("unevaluatedProperties" = false))]
pub struct Quantile {
    /// Between 0 and 1.
    pub q: f64,
    #[serde(flatten)]
    pub value: QuantileValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is", deny_unknown_fields)]
pub enum QuantileValue {
    /// The estimate with its 95 % interval by order statistics.
    Known {
        ns: u64,
        low_ns: u64,
        /// Absent where the interval has no upper end: it falls among requests that were never answered.
        high_ns: Option<u64>,
    },
    /// It falls among requests that were never answered: all that is known is that it lies above this.
    Above { ns: u64 },
    /// Too few samples for a finite interval.
    TooFew { needed: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhaseResult {
    pub phase: String,
    pub belongs_to: String,
    /// Share of the summed response of all `ok` requests, between 0 and 1. The shares sum to 1.
    pub share: Option<f64>,
    /// Over the requests that passed this phase.
    pub distribution: Option<Distribution>,
    /// Why no request passed it, where it is absent.
    pub absent: Option<String>,
}

/// What the measuring itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// User and system time of this whole process over the run; absent where it could not be read.
    pub process_ns: Option<u64>,
    /// The same, divided by the requests sent.
    pub per_request_ns: Option<u64>,
    /// Of the busiest worker thread, in its busiest full second, between 0 and 1.
    pub busiest_worker_share: Option<f64>,
}

/// Whether to believe the run, with reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub word: VerdictWord,
    /// Everything that was checked and did not hold, the gravest first.
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    Valid,
    /// Usable with care: the findings say where.
    Degraded,
    /// Not to be used.
    Invalid,
}

/// One check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Its name, stable across versions.
    pub check: String,
    /// What this finding alone makes of the run.
    pub makes: VerdictWord,
    /// What was measured, with its figure.
    pub measured: String,
    /// The limit it passed.
    pub limit: String,
    /// What to do about it.
    pub advice: String,
}
