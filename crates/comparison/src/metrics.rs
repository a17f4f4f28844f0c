//! The figures that are compared: one of each per record, with the difference from which on it matters.

use stats::comparison::{Direction, Metric};

use findings::view::Value;

/// The unit of a compared figure; its values are floats, because they are averaged over records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Ns,
    PerSecond,
    Bytes,
}

/// A figure that is compared, with its default margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComparedMetric {
    /// As in `--fail-if`.
    pub name: &'static str,
    pub unit: Unit,
    pub metric: Metric,
    /// The fewest records per arm that carry a verdict on it.
    pub fewest_records: usize,
}

/// What the user chose.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricSettings {
    /// The name of the primary metric; by default the one that the load leaves free.
    pub primary: Option<String>,
    /// The names of metrics on which something depends: they are judged together with the primary one.
    pub named: Vec<String>,
    /// Whether something depends on the share of failures: it is judged together with them.
    pub failures: bool,
    /// Names with their margins, each a share.
    pub margins: Vec<(String, f64)>,
    /// Whether options that differ are what is compared, as for commands that were given together.
    pub differences_are_meant: bool,
}

const fn metric(name: &'static str, unit: Unit, direction: Direction, margin: f64) -> ComparedMetric {
    ComparedMetric { name, unit, metric: Metric { direction, margin }, fewest_records: 6 }
}

const fn tail(name: &'static str) -> ComparedMetric {
    ComparedMetric { fewest_records: 10, ..time(name, 0.1) }
}

const fn time(name: &'static str, margin: f64) -> ComparedMetric {
    metric(name, Unit::Ns, Direction::LowerIsBetter, margin)
}

/// In the order of the table. The margins are those from which on people act: 2 % of what a server can do, 5 % of a
/// typical time, 10 % of a rare one. A rare one needs ten records, because it varies more between runs.
const METRICS: [ComparedMetric; 24] = [
    metric("throughput", Unit::PerSecond, Direction::HigherIsBetter, 0.02),
    time("response.mean", 0.05),
    time("response.p50", 0.05),
    time("response.p95", 0.05),
    tail("response.p99"),
    tail("response.p99.9"),
    time("service.mean", 0.05),
    time("service.p50", 0.05),
    time("service.p95", 0.05),
    tail("service.p99"),
    time("request.mean", 0.05),
    time("request.p50", 0.05),
    time("request.p95", 0.05),
    tail("request.p99"),
    time("pool_wait.mean", 0.05),
    time("connect.mean", 0.05),
    time("wait.mean", 0.05),
    time("receive.mean", 0.05),
    metric("server_cpu_per_request", Unit::Ns, Direction::LowerIsBetter, 0.02),
    metric("server_memory", Unit::Bytes, Direction::LowerIsBetter, 0.05),
    metric("client_cpu_per_request", Unit::Ns, Direction::LowerIsBetter, 0.02),
    time("wall_time", 0.05),
    metric("cpu_time", Unit::Ns, Direction::LowerIsBetter, 0.02),
    metric("peak_memory", Unit::Bytes, Direction::LowerIsBetter, 0.05),
];

impl ComparedMetric {
    /// All of them, in the order of the table.
    pub fn all() -> impl Iterator<Item = ComparedMetric> {
        METRICS.into_iter()
    }

    /// The metric of this name; `p99` alone is that of the response time.
    ///
    /// # Errors
    ///
    /// One line with the names that exist.
    pub fn from_name(name: &str) -> Result<ComparedMetric, String> {
        let is_named = |metric: &ComparedMetric| {
            metric.name == name || metric.name.strip_prefix("response.") == Some(name)
        };
        ComparedMetric::all().find(is_named).ok_or_else(|| {
            let names: Vec<&str> = ComparedMetric::all().map(|metric| metric.name).collect();
            format!("there is no metric `{name}`; there are {}", names.join(", "))
        })
    }

    /// A value of this metric with its unit.
    pub fn value(&self, value: f64) -> Value {
        match self.unit {
            Unit::Ns => Value::Ns(value.round() as u64),
            Unit::PerSecond => Value::PerSecond(value),
            Unit::Bytes => Value::Bytes(value.round() as u64),
        }
    }

    /// The name split for reading: `response p99`.
    pub fn words(&self) -> String {
        self.name.replacen('.', " ", 1).replace('_', " ")
    }
}

impl MetricSettings {
    /// Whether a condition names `metric`.
    pub(super) fn names(&self, metric: &ComparedMetric) -> bool {
        self.named.iter().any(|name| name == metric.name)
    }

    /// The metric with the margin that applies.
    pub fn with_margin(&self, mut metric: ComparedMetric) -> ComparedMetric {
        if let Some((_, margin)) = self.margins.iter().rev().find(|(name, _)| name == metric.name) {
            metric.metric.margin = *margin;
        }
        metric
    }
}
