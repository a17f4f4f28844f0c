//! The form of an experiment file, as written. The source of `formats/lab.schema.json`.
//!
//! Its meaning is worked out in `read`, which also checks what a form cannot say.

#[cfg(test)]
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::values::{Factor, Named, Scalar};

/// What is varied, how often, which server and load make a run, and what is compared.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The version of this format: 1.
    #[cfg_attr(test, schemars(with = "u32"))]
    pub format: Spanned<u32>,
    /// The name of the experiment, also in the name of its directory.
    #[cfg_attr(test, schemars(with = "String"))]
    pub name: Spanned<String>,
    /// What the experiment is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Decides the order of the runs; the same seed gives the same order. 1 unless given.
    #[serde(default)]
    pub seed: Option<u64>,
    /// What is varied, by name: `{name}` in a command is replaced by the value, `{name.label}` by its label.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Factor>"))]
    pub factors: Named<Factor>,
    #[serde(default)]
    pub plan: Plan,
    /// The server, started again for each run; without it the load runs alone.
    #[serde(default)]
    pub server: Option<Server>,
    pub load: Load,
    #[serde(default)]
    pub observe: Observe,
    #[serde(default)]
    pub compare: Compare,
}

/// How often and in which order the runs are made.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Plan {
    /// Times that every combination of values is run: 10 unless given; a verdict needs 6.
    #[cfg_attr(test, schemars(with = "Option<usize>"))]
    pub blocks: Option<Spanned<usize>>,
    /// `random-in-block` unless given: a new random order in each block. `as-written` is for looking only.
    pub order: Order,
    /// Combinations that are left out: all that have these labels.
    #[cfg_attr(test, schemars(with = "Vec<BTreeMap<String, Scalar>>"))]
    pub skip: Vec<Spanned<Named<Scalar>>>,
    /// Whether a second, hidden base runs in each block, which shows the noise of the host. Yes, if a factor is compared.
    pub twin: Option<bool>,
    /// Whether server and load run on separate CPUs. `split` unless given, where there are two cores.
    pub cpus: Cpus,
}

/// The order of runs within a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    #[default]
    RandomInBlock,
    AsWritten,
}

/// Which CPUs server and load may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cpus {
    #[default]
    Split,
    Shared,
}

/// The server of a run. Commands may contain `{factor}`, `{results}`, `{port}`, `{run}`, `{block}`, and
/// `{pid}` after the start.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// Command that runs once for each of its texts, before the first run.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub build: Option<Spanned<String>>,
    /// Longest time of a build. 30 minutes unless given.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub build_within: Option<Spanned<String>>,
    /// Command that starts the server in the foreground.
    #[cfg_attr(test, schemars(with = "String"))]
    pub start: Spanned<String>,
    /// Variables of its environment.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, Scalar>"))]
    pub env: Named<Scalar>,
    /// Address before the paths of `ready`, `check` and `proof`: `http://127.0.0.1:{port}`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub url: Option<Spanned<String>>,
    /// When the server takes requests.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Ready>"))]
    pub ready: Option<Spanned<Ready>>,
    /// What is asked before and after the load; another response makes the run a failed one.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Probe>"))]
    pub check: Option<Spanned<Probe>>,
    /// That the values of the factors are in effect: a run without this proof is a failed one.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<Probe>"))]
    pub proof: Option<Spanned<Probe>>,
    /// Command whose output is the version of the server; a run without one is a failed one.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub version: Option<Spanned<String>>,
    #[serde(default)]
    pub stop: Stop,
}

/// How it is known that the server takes requests: one of these, tried until it is so.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Ready {
    /// A GET of this URL or path has a response below status 400.
    pub http: Option<String>,
    /// This port, or host and port, takes connections.
    pub tcp: Option<Scalar>,
    /// The output of the server contains this text.
    pub log: Option<String>,
    /// This command succeeds.
    pub command: Option<String>,
    /// Longest time from the start. 30 seconds unless given.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub within: Option<Spanned<String>>,
}

/// What must be true of a server. Everything that is given is checked.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Probe {
    /// URL or path of a GET, for `status`, `contains` and `json`.
    pub http: Option<String>,
    /// Status of the response. 200 unless given.
    pub status: Option<u16>,
    /// Text in the body of the response, or in the output of the command.
    pub contains: Option<String>,
    /// Members that the body has, as JSON.
    #[cfg_attr(test, schemars(with = "Option<BTreeMap<String, serde_json::Value>>"))]
    pub json: Option<serde_json::Map<String, serde_json::Value>>,
    /// Command that succeeds.
    pub command: Option<String>,
    /// Text in the memory map of the server: the name of a library that is loaded.
    pub maps_contains: Option<String>,
    /// Text in the command line of the server.
    pub command_line_contains: Option<String>,
    /// Longest time. 10 seconds unless given.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub within: Option<Spanned<String>>,
}

/// How the server is ended.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stop {
    /// Command instead of SIGTERM.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub command: Option<Spanned<String>>,
    /// Time until it is killed. 10 seconds unless given.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub within: Option<Spanned<String>>,
}

/// The load of a run: `drive`, with or without `scenario`; or `command`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Load {
    /// Options and URL of `parallax drive`: `-r 500/s -d 10s http://127.0.0.1:{port}/`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub drive: Option<Spanned<String>>,
    /// Scenario file in place of the URL.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub scenario: Option<Spanned<String>>,
    /// Any other program.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub command: Option<Spanned<String>>,
    /// Tool whose output the command prints, as in `parallax import --from`. Without it, the wall time, CPU time and
    /// peak memory of the command are its figures.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub import: Option<Spanned<String>>,
    /// Length of the load, as `--duration` of `drive`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub window: Option<Spanned<String>>,
    /// Length of the same load before it, which is not measured. Needs `window`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub warmup: Option<Spanned<String>>,
    /// Longest time of the load. The window and a minute, or 10 minutes, unless given.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub within: Option<Spanned<String>>,
}

/// What is observed next to the load.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Observe {
    /// CPU time and memory of the server and everything that it started. Yes, with `drive`, unless given.
    pub cpu: Option<bool>,
    /// Commands that run during the load, by name; their output is kept in the directory of the run.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub commands: Named<String>,
}

/// What is compared, and from which difference on it matters.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Compare {
    /// The metric of the first table: `response.p95`.
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub primary: Option<Spanned<String>>,
    /// Metrics that are judged together with it.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub also: Vec<Spanned<String>>,
    /// Differences that are too small to matter, by metric: `throughput = "2%"`.
    #[cfg_attr(test, schemars(with = "BTreeMap<String, String>"))]
    pub same: Named<String>,
}
