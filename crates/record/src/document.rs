//! `run.json`: the one document that describes a run, written at its start and replaced at its end.
//!
//! The types here are the wire format, in the order in which people read it, and the source of the JSON Schema
//! in `formats/`. Times end in `_ns`. A value that is not known is left out, with a reason next to it where one
//! is known: absent is never zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

mod codes;
mod envelope;
mod host;
mod verdict;
mod version;

pub use codes::{CodeCount, TextCodeCount};
pub(crate) use envelope::envelope_of;
pub use envelope::{EffectiveOption, Envelope, MissingFact, OptionSource, RecordKind, State, Time};
pub use host::{Ceiling, Host, HostLimits, PortRange};
pub use verdict::{Finding, Quantity, Reading, Threshold, ThresholdResult, Unchecked, Verdict, VerdictWord};
pub use version::{SCHEMA_VERSION, SchemaVersion};

/// `run.json` of a run: what was sent where, how the load was made, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What was stated with `--fail-if`, judged at the run's end; left out where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    pub subject: Subject,
    pub load: Load,
    pub stamps: Stamps,
    /// `None` while the run goes on.
    pub results: Option<Results>,
}

envelope_of!(Document);

/// What was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// The URL, or the first of a target file.
    pub url: String,
    pub protocol: String,
    /// How many different requests were sent in turn.
    pub request_kinds: u64,
    /// Those requests by name, where each has figures of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Which of those requests follow each other, where some do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyFacts>,
    /// The address first connected to; absent when none was reached.
    pub address: Option<String>,
}

/// Requests that follow each other, by their places in `subject.targets`, from 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyFacts {
    pub name: String,
    pub first: u64,
    pub last: u64,
}

/// How the load was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    pub model: Model,
    /// Requests a second asked for, in an open loop at one rate; absent where the rate changes.
    pub rate_per_s: Option<f64>,
    /// How an open loop's requests are placed in time.
    pub arrivals: Option<ArrivalFacts>,
    /// How long a closed loop's callers pause; absent when they do not.
    pub think: Option<ThinkFacts>,
    /// How closely due instants were kept; absent in a closed loop without think time, which has none.
    #[serde(default)]
    pub pace: Option<Pace>,
    pub callers: u64,
    pub connections: u64,
    /// Requests that may be outstanding on one connection.
    pub pipeline: u64,
    pub workers: u64,
    /// How long requests were scheduled for; absent when only a count was given.
    pub duration_ns: Option<u64>,
    /// How many requests were asked for.
    pub request_limit: Option<u64>,
    /// What the user did to the load while it ran, in order; left out where it was left alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LoadChange>,
}

/// One hand laid on the load while it ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadChange {
    /// When it took effect, as an offset from the run's zero.
    pub at_ns: u64,
    pub change: LoadOrder,
    /// Requests a second from then on, where it changed the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadOrder {
    /// Nothing becomes due from here on; what would have been is due after the pause.
    Paused,
    Resumed,
    /// The rate is another one.
    Rate,
    /// Nothing more becomes due: the run's window ends here, and its last answers are waited for.
    Ended,
}

impl Load {
    /// Requests that may be on connections at once.
    pub fn slots(&self) -> u64 {
        self.connections.saturating_mul(self.pipeline.max(1))
    }

    /// By how much a request, or a response, may be late by choice.
    pub fn batch(&self) -> Nanos {
        Nanos(self.pace.as_ref().map_or(0, |pace| pace.batch_ns))
    }
}

/// A bargain between lateness, which is in `schedule_lag`, and CPU time, which is in `results.cpu`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pace {
    /// `precise`, `balanced` or `efficient`.
    pub name: String,
    /// What became due within this was sent together: by so much a request may be late without any fault.
    pub batch_ns: u64,
}

/// The arrival process of an open loop: enough to make the same schedule again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalFacts {
    /// In one line, for people.
    pub words: String,
    /// Absent where nothing is random.
    pub seed: Option<u64>,
    /// The highest rate that is asked for; of a replay its mean.
    pub peak_per_s: f64,
    /// One after another.
    pub stages: Vec<StageFacts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageFacts {
    /// As it may be given to `--stage` again; a replay and a stage without end say what they are.
    pub stage: String,
    /// `even`, `jitter`, `poisson` or `replay`.
    pub process: String,
    /// From the run's zero.
    pub begin_ns: u64,
    /// Absent without end.
    pub length_ns: Option<u64>,
    /// How many requests it has, before a limit of the run cuts it; absent without end.
    pub requests: Option<u64>,
}

/// The think time of a closed loop's callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThinkFacts {
    /// As it is given to `--think`: `100ms`, `50ms..150ms`, `exp:100ms`.
    pub words: String,
    /// Absent where nothing is random.
    pub seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Requests are due by a schedule, whatever became of the earlier ones.
    Open,
    /// Each caller sends its next request when its last one ended.
    Closed,
}

/// Where the arrival edges come from, and how well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The kernel's software receive stamps.
    Kernel,
    /// The moment the client read: `client_lag` is absent and is within `wait` and `receive`.
    Read,
}

/// Everything measured, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    pub totals: Totals,
    /// Every outcome that occurred, `ok` first, then by count.
    pub outcomes: Vec<OutcomeCount>,
    /// Why requests failed, where the protocol says it, by count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<ReasonCount>,
    /// The server's own codes that are three-digit statuses (HTTP).
    pub codes: Vec<CodeCount>,
    /// The server's other codes, by count: an SQLSTATE with its number, the word of a RESP error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_codes: Vec<TextCodeCount>,
    /// Responses with a code that found no room among those distinguished.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub other_codes: u64,
    /// The figures of each target, in the order of `subject.targets`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetResult>,
    /// What became of each journey of a scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journeys: Vec<JourneyResult>,
    /// Intended to read, of the `ok` requests; quantiles take the unanswered into account.
    pub response: Distribution,
    /// First byte sent to last byte arrived, of the `ok` requests.
    pub service: Distribution,
    /// The ten phases in order.
    pub phases: Vec<PhaseResult>,
    /// Age at the end of the requests that failed, by outcome.
    pub failed: BTreeMap<String, Distribution>,
    pub cpu: Cpu,
    /// What `requests.parquet` holds, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
}

/// The requests that were kept one by one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    /// Which, as it was asked for: `all`, `slowest=100`, `sample=1%`.
    pub requests: String,
    pub rows: u64,
    /// Those of them that came faster than they could be written.
    pub lost: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Requests whose transaction was tried again. Each is counted under its own outcome, too.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub retries: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeCount {
    pub outcome: String,
    /// Where it happened; absent for `ok`.
    pub phase: Option<String>,
    /// Whose fault; absent for `ok`.
    pub blame: Option<String>,
    pub count: u64,
}

/// Why requests that ended in one outcome did so, in the protocol's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReasonCount {
    pub outcome: String,
    pub reason: String,
    pub count: u64,
}

/// One of several targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetResult {
    /// Requests to it that ended.
    pub requests: u64,
    pub ok: u64,
    pub failed: u64,
    /// Every failure of it, by count.
    pub outcomes: Vec<OutcomeCount>,
    /// Intended to read, of its `ok` requests; quantiles take the unanswered into account.
    pub response: Distribution,
    /// First byte sent to last byte arrived, of its `ok` requests.
    pub service: Distribution,
}

/// Requests that follow each other. Started = completed + cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyResult {
    pub name: String,
    /// Whose first request ended.
    pub started: u64,
    /// Whose last request was `ok`.
    pub completed: u64,
    /// Ended before that: by a request that failed, or by the end of the run.
    pub cut: u64,
    /// How often one was tried again from its beginning.
    #[serde(default, skip_serializing_if = "crate::series::is_zero")]
    pub retries: u64,
    /// First request intended to last response read, of the completed ones: from the first try on, however often it
    /// was tried. Absent in records before 1.1 and where journeys were not measured as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Distribution>,
}

/// A distribution of durations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantile {
    /// Between 0 and 1.
    pub q: f64,
    #[serde(flatten)]
    pub value: QuantileValue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// User and system time of this whole process over the run; absent where it could not be read.
    pub process_ns: Option<u64>,
    /// The same, divided by the requests sent.
    pub per_request_ns: Option<u64>,
    /// Of the busiest worker thread, in its busiest full second, between 0 and 1.
    pub busiest_worker_share: Option<f64>,
    /// Of the processes of `--watch-cpu`; absent without it, and where one of them ended within the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ns: Option<u64>,
    /// The same, divided by the requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_per_request_ns: Option<u64>,
}
