//! `RunSpec`: everything that a run needs, as data. The command line, a search, a calibration, a lab and another host
//! make one to start a run.
//!
//! An absent field has the default in [`crate::options`]. Values are texts with their units, as written on the command
//! line.

use std::collections::BTreeMap;
use std::net::IpAddr;

use codec::web::{Sha256Digest, StatusSet};
use findings::Condition;
use record::document::OptionSource;
use schedule::{Jitter, Speed, Think};
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate};

use crate::requests_file::KeepRequests;
use crate::values::{
    Count, Drain, HttpChoice, Length, ListenAddress, Measured, OnInvalid, PaceChoice, Pid, Resolve, Spacing,
    StageText, StampSource, Switch, Timeout, TlsVersionChoice, WatchSubject, Written,
};
use record::record_mode::RecordMode;

/// Declares a group of options: a struct whose fields may all be absent.
macro_rules! group {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident : $type:ty),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* #[serde(skip_serializing_if = "is_default")] pub $field: $type),+
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

type Given<T> = Option<Written<T>>;
type List<T> = Vec<Written<T>>;

/// Everything that a run needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    pub request: Request,
    #[serde(default, skip_serializing_if = "is_default")]
    pub load: Load,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pool: Pool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub connection: Connection,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tls: Tls,
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: Checks,
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "is_default")]
    pub observers: Observers,
    #[serde(default, skip_serializing_if = "is_default")]
    pub sinks: Sinks,
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: Output,
    /// Who gave an option, by its name, if it was not the maker of the spec but, for example, a scenario file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sources: BTreeMap<String, OptionSource>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// One request per URL, in turn.
    Urls(UrlRequests),
    /// The requests of a file in one of vegeta's formats.
    Targets(TargetRequests),
    /// A scenario file, with its journeys, data and checks.
    Scenario(ScenarioRequests),
    /// Statements to a database, in turn.
    Statements(StatementRequests),
}

group! {
    /// Requests by URL.
    UrlRequests {
        /// http[s]://HOST[:PORT]/PATH or unix:/SOCKET:/PATH.
        url: Vec<String>,
        /// Without it: GET, or POST with a body.
        method: Option<String>,
        /// `Name: value`.
        header: Vec<String>,
        /// The body, or @FILE to read it from one.
        body: Option<String>,
    }
}

group! {
    /// Requests of a file.
    TargetRequests {
        /// The file; `-` is standard input.
        file: Option<String>,
        /// Headers of every target that does not have its own: `Name: value`.
        header: Vec<String>,
    }
}

group! {
    /// A scenario.
    ScenarioRequests {
        file: Option<String>,
        /// A built-in scenario instead of a file: oltp-point-select, oltp-read-only, oltp-read-write, oltp-write-only,
        /// tpcb-like, redis-get-set.
        workload: Option<String>,
        /// Commands to Redis instead of a file: `GET key:{{random 1 100}}`. They take turns.
        command: Vec<String>,
        /// The database of a built-in scenario.
        database: Vec<String>,
        /// The tables and rows of a built-in scenario.
        tables: Given<Count>,
        rows: Given<Count>,
        /// Changes to the file: `run.rate=500/s`, `vars.user=ann`.
        set: Vec<String>,
    }
}

group! {
    /// Statements to a database.
    StatementRequests {
        /// mysql://USER@HOST[:PORT]/DATABASE, or the same with postgres://.
        url: Vec<String>,
        /// SQL, without parameters.
        query: Vec<String>,
        /// Each connection prepares a statement once and then executes it by number.
        prepared: bool,
    }
}

group! {
    /// When requests are sent, and how many.
    Load {
        model: Model,
        /// Schedule requests for this long.
        duration: Given<Length>,
        /// Schedule this many requests.
        count: Given<Count>,
        /// Generate the load for this long before the run, and leave it out of the figures.
        warmup: Given<Length>,
        /// Random seed for arrivals and think times.
        seed: Given<u64>,
        /// How closely an open loop follows its schedule: precise, balanced, efficient.
        pace: Given<PaceChoice>,
    }
}

/// Who decides when a request is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Virtual users: each sends its next request when its last one has ended.
    Closed(ClosedLoop),
    /// A schedule: when a request is due does not depend on earlier ones.
    Open(OpenLoop),
}

impl Default for Model {
    fn default() -> Model {
        Model::Closed(ClosedLoop::default())
    }
}

group! {
    /// A closed loop.
    ClosedLoop {
        /// Number of virtual users.
        users: Given<Count>,
        /// How long a virtual user pauses between requests: 100ms, 50ms..150ms, exp:100ms.
        think: Given<Think>,
    }
}

/// An open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// Bound of the requests that are in flight or queued.
    #[serde(default, skip_serializing_if = "is_default")]
    pub max_in_flight: Given<Count>,
    pub schedule: Schedule,
}

/// When the requests of an open loop are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// One rate throughout.
    Steady {
        rate: Written<Rate>,
        /// How requests are spaced: even, poisson.
        #[serde(default, skip_serializing_if = "is_default")]
        arrivals: Given<Spacing>,
        /// Moves each request by a random time: 5ms, 10%.
        #[serde(default, skip_serializing_if = "is_default")]
        jitter: Given<Jitter>,
    },
    /// Stages one after another: `ramp 100/s..1k/s 30s`.
    Stages { stage: List<StageText> },
    /// The requests of a recording, or its times alone.
    Replay(Replay),
}

/// A recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Replay {
    pub file: String,
    /// How many times faster: 2x.
    #[serde(default, skip_serializing_if = "is_default")]
    pub speed: Given<Speed>,
    /// Where the times of the recording are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub column: Option<String>,
    /// Use the times, and not the requests.
    #[serde(default, skip_serializing_if = "is_default")]
    pub times_only: bool,
    /// Methods of the requests to send: GET,HEAD.
    #[serde(default, skip_serializing_if = "is_default")]
    pub methods: Option<String>,
    /// Regular expression that the path of a request must match.
    #[serde(default, skip_serializing_if = "is_default")]
    pub filter: Option<String>,
    /// Send the Cookie and Authorization headers of the recording.
    #[serde(default, skip_serializing_if = "is_default")]
    pub credentials: bool,
}

group! {
    /// Connections and threads of the client.
    Pool {
        /// Connections to each server.
        connections: Given<Count>,
        /// Requests in flight per connection of HTTP/1.1, PostgreSQL or Redis.
        pipeline: Given<Count>,
        /// Threads.
        workers: Given<Count>,
        /// Additional connections to each server that carry nothing.
        idle_connections: Given<u64>,
        /// Requests after which a connection is replaced.
        reconnect_every: Given<Count>,
        /// Connections opened per second at most.
        connect_rate: Given<Rate>,
    }
}

group! {
    /// How servers are reached.
    Connection {
        /// auto, 1.1, 2, h2c.
        http: Given<HttpChoice>,
        /// Concurrent streams per connection of HTTP/2.
        streams: Given<Count>,
        /// HOST:PORT:ADDR, as with curl.
        resolve: List<Resolve>,
        /// Unix domain socket to connect to.
        unix: Option<String>,
        /// File with the password for a database.
        password_file: Option<String>,
        /// Record what the database server counted during the run.
        server_account: bool,
        /// SQL that each new connection executes at the end of its login.
        setup_query: Vec<String>,
        /// Local addresses to connect from, in turn.
        source: List<IpAddr>,
    }
}

group! {
    /// TLS.
    Tls {
        /// Skip certificate verification.
        insecure: bool,
        /// CA bundle (PEM).
        cacert: Option<String>,
        /// Client certificate chain (PEM).
        cert: Option<String>,
        /// Private key of the client certificate (PEM).
        key: Option<String>,
        /// Server name to ask for and to verify.
        sni: Option<String>,
        /// Protocols to offer, the preferred one first.
        alpn: Vec<String>,
        /// auto, 1.2, 1.3.
        tls_version: Given<TlsVersionChoice>,
        /// Session resumption: on, off.
        tls_resumption: Given<Switch>,
    }
}

group! {
    /// What a good response is, and which results fail the run.
    Checks {
        /// Status codes: 200, 2xx, 200-299.
        expect_status: Given<StatusSet>,
        /// Text that every body must contain.
        expect_body_contains: Option<String>,
        /// SHA-256 of every body.
        expect_sha256: Given<Sha256Digest>,
        /// Conditions that fail the run: `response.p99 > 50ms`.
        fail_if: List<Condition>,
        /// What to do if the measurement is invalid: fail, warn, retry:2.
        on_invalid: Given<OnInvalid>,
        /// Largest header of a response.
        max_head: Given<Bytes>,
        /// Largest body of a response.
        max_body: Given<Bytes>,
    }
}

group! {
    /// How long each thing may take.
    Limits {
        timeout: Given<Timeout>,
        connect_timeout: Given<Timeout>,
        checkout_timeout: Given<Timeout>,
        drain: Given<Drain>,
        /// Go on although no server can be reached.
        keep_trying: bool,
        /// Who timestamps responses: kernel, read.
        stamps: Given<StampSource>,
    }
}

group! {
    /// What else is measured during the run.
    Observers {
        /// PID or ssh:HOST:PID of the server to watch.
        watch: Given<WatchSubject>,
        /// PID of the server to profile.
        profile: Given<Pid>,
        /// What of the server is measured: PID with its descendants, only:PID, cgroup:PATH, unit:NAME.
        watch_cpu: List<Measured>,
    }
}

group! {
    /// Who gets the figures while the run goes on.
    Sinks {
        prometheus: Given<ListenAddress>,
        prometheus_linger: Given<Timeout>,
        otlp: Option<String>,
        otlp_interval: Given<Length>,
        jsonl: Option<String>,
        csv: Option<String>,
    }
}

group! {
    /// Where results go.
    Output {
        /// The results directory.
        folder: Option<String>,
        /// Permissions of the record's files: 600, 640, 644.
        record_mode: Given<RecordMode>,
        /// What the run is made next to: records of the same block are pairs.
        block: Option<String>,
        /// Keep no record after the report.
        no_record: bool,
        /// Which requests to keep: all, slowest=100, sample=1%.
        requests: Given<KeepRequests>,
        json: bool,
        quiet: bool,
        /// Print details.
        verbose: bool,
        no_tui: bool,
        no_color: bool,
    }
}

impl Sinks {
    /// Whether rows replace the report on standard output.
    pub fn to_stdout(&self) -> bool {
        [&self.jsonl, &self.csv].into_iter().flatten().any(|path| path == "-")
    }
}

/// What is shown during a run, if the terminal supports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    Nothing,
    /// A plain line per second.
    Lines,
    /// The live view.
    Live {
        no_color: bool,
    },
}

impl RunSpec {
    /// What to show while the run goes on.
    pub fn display(&self) -> Display {
        let output = &self.output;
        match output.quiet {
            true => Display::Nothing,
            // Rows on standard output would corrupt the view.
            false if output.json || output.no_tui || self.sinks.to_stdout() => Display::Lines,
            false => Display::Live { no_color: output.no_color },
        }
    }
}
