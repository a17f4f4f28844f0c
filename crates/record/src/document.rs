//! `run.json`: the one document that describes a run, written at its start and replaced at its end.
//!
//! The types here are the wire format, in the order in which people read it, and the source of the JSON Schema
//! in `formats/`. Names of times end in `_ns`. An unknown value is left out, with the reason next to it if that is
//! known: absent is never zero.

use std::collections::BTreeMap;

use intervals::{GroupMemory, GroupResources};
use serde::{Deserialize, Serialize};
use units::Nanos;

mod account;
mod before;
mod codes;
mod envelope;
mod host;
mod verdict;
mod version;

pub use account::{CounterChange, LockWait, SampledSessions, ServerAccount, StatementAccount};
pub use before::{IdleFacts, WarmUpFacts};
pub use codes::{CheckSample, CodeCount, TextCodeCount};
pub(crate) use envelope::envelope_of;
pub use envelope::{EffectiveOption, Envelope, MissingFact, OptionSource, RecordKind, State, Time};
pub use host::{Ceiling, Host, HostLimits, PortRange};
pub use verdict::{Finding, Quantity, Reading, Threshold, ThresholdResult, Unchecked, Verdict, VerdictWord};
pub use version::{SCHEMA_VERSION, SchemaVersion};

/// `run.json` of a run: what was sent where, how the load was made, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Document {
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The results of the `--fail-if` conditions at the end of the run; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    pub subject: Subject,
    pub load: Load,
    pub stamps: Stamps,
    /// What the database server counted; absent without `--server-account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_account: Option<ServerAccount>,
    /// `None` while the run is in progress.
    pub results: Option<Results>,
}

envelope_of!(Document);

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Subject {
    /// The URL, or the first of a target file.
    pub url: String,
    pub protocol: String,
    /// The number of different requests that were sent in turn.
    pub request_kinds: u64,
    /// The names of those requests, if each has its own figures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// The journeys: which of those requests follow each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyFacts>,
    /// The address of the first connection; absent if no server was reached.
    pub address: Option<String>,
}

/// A journey: requests that follow each other, by their index in `subject.targets`, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct JourneyFacts {
    pub name: String,
    pub first: u64,
    pub last: u64,
}

/// How the load was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Load {
    pub model: Model,
    /// The requested rate of an open loop, in requests per second; absent if the rate changes.
    pub rate_per_s: Option<f64>,
    /// How an open loop's requests are placed in time.
    pub arrivals: Option<ArrivalFacts>,
    /// The think time of the virtual users of a closed loop; absent if there is none.
    pub think: Option<ThinkFacts>,
    /// The pace; absent in a closed loop without think time, which has no schedule.
    #[serde(default)]
    pub pace: Option<Pace>,
    pub callers: u64,
    pub connections: u64,
    /// Maximum requests in flight on one connection.
    pub pipeline: u64,
    pub workers: u64,
    /// The duration for which requests were scheduled; absent if only a count was given.
    pub duration_ns: Option<u64>,
    /// The number of requests that was requested with `-n`.
    pub request_limit: Option<u64>,
    /// The load before the run's zero; absent without a warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup: Option<WarmUpFacts>,
    /// Connections that carry nothing; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_connections: Option<IdleFacts>,
    /// After how many requests a connection was closed and replaced; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<u64>,
    /// Manual changes of the load during the run, in order; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LoadChange>,
}

/// One manual change of the load during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct LoadChange {
    /// When it took effect, as an offset from the run's zero.
    pub at_ns: u64,
    pub change: LoadOrder,
    /// The new rate in requests per second, if the rate was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadOrder {
    /// Paused: nothing becomes due; what would have been due is due after the pause.
    Paused,
    Resumed,
    /// The rate was changed.
    Rate,
    /// Ended: nothing more becomes due, the window ends here, and the last responses are waited for.
    Ended,
}

impl Load {
    /// The number of requests that all connections together can carry at a time.
    pub fn slots(&self) -> u64 {
        self.connections.saturating_mul(self.pipeline.max(1))
    }

    /// By how much the pace allows a request to be sent, or a response to be read, late.
    pub fn batch(&self) -> Nanos {
        Nanos(self.pace.as_ref().map_or(0, |pace| pace.batch_ns))
    }
}

/// A trade-off between lateness, which is in `schedule_lag`, and CPU time, which is in `results.cpu`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Pace {
    /// `precise`, `balanced` or `efficient`.
    pub name: String,
    /// Requests that became due within this time were sent together, so a request can be late by this much on purpose.
    pub batch_ns: u64,
}

/// The arrival process of an open loop: enough to make the same schedule again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ArrivalFacts {
    /// A description in one line.
    pub words: String,
    /// Absent if nothing is random.
    pub seed: Option<u64>,
    /// The highest rate of the schedule; for a replay, its mean rate.
    pub peak_per_s: f64,
    /// The stages, in order.
    pub stages: Vec<StageFacts>,
    /// What of a recording was sent; absent where its times alone were used, and where nothing was replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayFacts>,
}

/// Requests of a recording, and what of it was not sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ReplayFacts {
    /// Requests of the recording that are sent once it has been replayed.
    pub requests: u64,
    /// How many requests were left out, by the reason: `method POST`, `filter`, `unreadable`.
    pub left_out: BTreeMap<String, u64>,
    /// Requests that had a `Cookie` or `Authorization` header, and were sent without it.
    pub without_credentials: u64,
    /// Requests that named another server than the one that they were sent to.
    pub of_other_servers: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct StageFacts {
    /// The stage in the syntax of `--stage`; a description for a replay and for a stage without end.
    pub stage: String,
    /// `even`, `jitter`, `poisson` or `replay`.
    pub process: String,
    /// From the run's zero.
    pub begin_ns: u64,
    /// Absent if the stage has no end.
    pub length_ns: Option<u64>,
    /// Its number of requests, before any limit of the run; absent if the stage has no end.
    pub requests: Option<u64>,
}

/// The think time of the virtual users of a closed loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ThinkFacts {
    /// The think time in the syntax of `--think`: `100ms`, `50ms..150ms`, `exp:100ms`.
    pub words: String,
    /// Absent if nothing is random.
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Open loop: requests are due on a schedule, regardless of earlier ones.
    Open,
    /// Closed loop: each virtual user sends its next request when its last one has ended.
    Closed,
}

/// The source and the quality of the arrival timestamps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Stamps {
    pub arrival: ArrivalStamps,
    /// Why there are no kernel timestamps.
    pub reason: Option<String>,
    /// The error of the offset between the kernel's clock and the monotonic clock.
    pub pairing_error_ns: Option<u64>,
    /// How often the wall clock was set during the run.
    pub wall_clock_steps: u64,
}

impl Stamps {
    /// The reason if the user switched kernel timestamps off.
    pub const SWITCHED_OFF: &'static str = "switched off";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArrivalStamps {
    /// Software receive timestamps of the kernel.
    Kernel,
    /// The moment at which the client read: `client_lag` is absent, and is contained in `wait` and `receive`.
    Read,
}

/// Everything measured, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Results {
    pub totals: Totals,
    /// Every outcome that occurred: `ok` first, the others by count.
    pub outcomes: Vec<OutcomeCount>,
    /// Reasons of failures as the protocol gives them, by count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
    /// The first responses that failed a check: three of each, bounded and without credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check_samples: Vec<CheckSample>,
    /// Status codes of three digits (HTTP).
    pub codes: Vec<CodeCount>,
    /// The server's other codes, by count: an SQLSTATE with its number, the word of a RESP error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_codes: Vec<TextCodeCount>,
    /// Responses with a code beyond the maximum number of different codes.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub other_codes: u64,
    /// The figures of each target, in the order of `subject.targets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetResult>,
    /// The results of each journey of a scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyResult>,
    /// Response time of the `ok` requests: intended start to read; its quantiles include unanswered requests.
    pub response: Distribution,
    /// Service time of the `ok` requests: first byte sent to last byte arrived.
    pub service: Distribution,
    /// The ten phases in order.
    pub phases: Vec<PhaseResult>,
    /// Age at the end of the requests that failed, by outcome.
    pub failed: BTreeMap<String, Distribution>,
    pub cpu: Cpu,
    /// The contents of `requests.parquet`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// The individual requests that were kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Kept {
    /// The value of `--requests`: `all`, `slowest=100`, `sample=1%`.
    pub requests: String,
    pub rows: u64,
    /// How many arrived faster than they could be written, and are missing.
    pub lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Totals {
    /// Requests that became due. Equals the sum of all outcomes.
    pub scheduled: u64,
    /// Requests whose first byte was handed to the kernel.
    pub sent: u64,
    pub ok: u64,
    pub failed: u64,
    /// `ok` requests that ended within the window, per second of the window.
    pub throughput_per_s: f64,
    /// Completed journeys likewise; absent where no request follows another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journeys_per_s: Option<f64>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub body_bytes: u64,
    pub connections_opened: u64,
    pub idle_closes: u64,
    /// `ok` responses without a kernel timestamp.
    pub unstamped: u64,
    /// Timestamps that were moved by more than a microsecond to keep their order.
    pub stamps_moved: u64,
    /// Durations above an hour, which were kept as an hour.
    pub out_of_range: u64,
    /// Requests whose transaction was retried. Each is also counted under its outcome.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub retries: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct OutcomeCount {
    pub outcome: String,
    /// The phase in which it happened; absent for `ok`.
    pub phase: Option<String>,
    /// Who caused it; absent for `ok`.
    pub blame: Option<String>,
    pub count: u64,
}

/// The reason of failures with one outcome, in the words of the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ReasonCount {
    pub outcome: String,
    pub reason: String,
    pub count: u64,
}

/// One of several targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct TargetResult {
    /// Requests to this target that ended.
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    /// Its failures, by count.
    pub outcomes: Vec<OutcomeCount>,
    /// Response time of its `ok` requests; its quantiles include unanswered requests.
    pub response: Distribution,
    /// Service time of its `ok` requests.
    pub service: Distribution,
}

/// Requests that follow each other. Started = completed + cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct JourneyResult {
    pub name: String,
    /// Journeys whose first request ended.
    pub started: u64,
    /// Journeys whose last request ended `ok`.
    pub completed: u64,
    /// Journeys that ended before that, by a failed request or by the end of the run.
    pub cut: u64,
    /// Those of them that a request ended which failed. Absent where journeys were not measured as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// How often a journey was retried from its beginning.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub retries: u64,
    /// Response time of completed journeys: intended start of the first request to the last response read, including all
    /// retries. Absent in records before 1.1, and if whole journeys were not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Distribution>,
}

/// A distribution of durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Distribution {
    pub count: u64,
    /// Exact.
    pub sum_ns: u64,
    /// These three are absent if the count is 0.
    pub min_ns: Option<u64>,
    pub mean_ns: Option<u64>,
    pub max_ns: Option<u64>,
    pub quantiles: Vec<Quantile>,
}

/// One quantile, if the sample is large enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Quantile {
    /// Between 0 and 1.
    pub q: f64,
    #[serde(flatten)]
    pub value: QuantileValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum QuantileValue {
    /// The estimate with its 95 % confidence interval from order statistics.
    Known {
        ns: u64,
        low_ns: u64,
        /// Absent if the interval has no upper end, because that is among requests without a response.
        high_ns: Option<u64>,
    },
    /// The quantile is among requests without a response: it is only known to be above this.
    Above { ns: u64 },
    /// Too few samples for a finite interval.
    TooFew { needed: u64 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct PhaseResult {
    pub phase: String,
    pub belongs_to: String,
    /// Share of the summed response times of all `ok` requests, from 0 to 1. The shares of all phases add up to 1.
    pub share: Option<f64>,
    /// The distribution over the requests that passed through this phase.
    pub distribution: Option<Distribution>,
    /// Why no request passed through it, if it is absent.
    pub absent: Option<String>,
}

/// The CPU cost of the load generator.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Cpu {
    /// User and system time of the whole process during the run; absent if it could not be read.
    pub process_ns: Option<u64>,
    /// The same, divided by the requests sent.
    pub per_request_ns: Option<u64>,
    /// The share of a core used by the busiest worker in its busiest full second, from 0 to 1.
    pub busiest_worker_share: Option<f64>,
    /// CPU time of the processes of `--watch-cpu` and their descendants; absent without it, and if one that was named
    /// ended during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ns: Option<u64>,
    /// The same, divided by the requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_per_request_ns: Option<u64>,
    /// What else they used over the run: sizes at its end, counts in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<GroupResources>,
    /// Their memory before and after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_memory: Option<GroupMemory>,
}
