//! An experiment as it is meant: what `read` makes of a file, and the plan and the runs are made from.

use comparison::ComparedMetric;
use units::Nanos;

use super::format::{Cpus, Order};
use super::template::Template;

/// An experiment without mistakes.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    pub seed: u64,
    /// In the order of the file.
    pub factors: Vec<ExperimentFactor>,
    /// Place of the factor that is compared.
    pub compared: Option<usize>,
    pub blocks: usize,
    /// Whether a second, hidden base runs in each block.
    pub twin: bool,
    pub(crate) order: Order,
    /// Combinations that are left out: factor and label.
    pub(crate) skip: Vec<Vec<(usize, String)>>,
    pub(crate) cpus: Cpus,
    pub(crate) server: Option<ServerSpec>,
    pub(crate) load: LoadSpec,
    pub(crate) observers: Vec<(String, Template)>,
    /// Whether the load measures the CPU time of the server.
    pub(crate) measures_server: bool,
    /// `None`: the one that the load leaves free.
    pub primary: Option<ComparedMetric>,
    pub also: Vec<ComparedMetric>,
    /// Names of metrics with their margins, each a share.
    pub margins: Vec<(String, f64)>,
}

impl Experiment {
    /// The margin of the primary metric, as far as the file names one.
    pub fn margin(&self) -> Option<f64> {
        let metric = self.primary?;
        let given = self.margins.iter().find(|(name, _)| name == metric.name);
        Some(given.map_or(metric.metric.margin, |(_, margin)| *margin))
    }
}

/// Something that is varied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentFactor {
    pub name: String,
    /// The base first, if it is compared.
    pub levels: Vec<Level>,
    /// Whether runs with the same level stay together within a block.
    pub changes_rarely: bool,
}

/// One value of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// As in tables; the value itself unless it is given.
    pub label: String,
    /// As in commands.
    pub value: String,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerSpec {
    pub build: Option<Template>,
    pub build_within: Nanos,
    pub start: Template,
    pub env: Vec<(String, Template)>,
    /// What is written before paths.
    pub url: Option<Template>,
    pub ready: Option<(ReadySpec, Nanos)>,
    pub check: Option<ProbeSpec>,
    pub proof: Option<ProbeSpec>,
    pub version: Option<Template>,
    pub stop: Option<Template>,
    pub stop_within: Nanos,
}

#[derive(Debug, Clone)]
pub(crate) enum ReadySpec {
    Http(Template),
    /// Host and port.
    Tcp(Template),
    /// Text in the output of the server.
    Log(Template),
    Command(Template),
}

#[derive(Debug, Clone)]
pub(crate) struct ProbeSpec {
    pub http: Option<Template>,
    pub status: u16,
    pub contains: Option<Template>,
    /// As text, so that names in it can be filled in.
    pub json: Option<Template>,
    pub command: Option<Template>,
    pub maps_contains: Option<Template>,
    pub command_line_contains: Option<Template>,
    pub within: Nanos,
}

#[derive(Debug, Clone)]
pub(crate) struct LoadSpec {
    pub kind: LoadKind,
    pub warmup: Option<Nanos>,
    /// How long warm-up and load take together, as far as the file says.
    pub expected: Option<Nanos>,
    /// Longest time of the load.
    pub within: Nanos,
}

#[derive(Debug, Clone)]
pub(crate) enum LoadKind {
    /// The words after `parallax drive`, without a length.
    Drive { words: Template, window: Option<Nanos> },
    /// The tool whose output it prints; `None`: the program itself is measured.
    Program { command: Template, import: Option<String> },
}
