//! Two or more sets of records: whether they differ, and whether the difference matters.
//!
//! The first set is the base; each other one is compared with it. A record is one run, and one value of each metric:
//! requests are never counted as repeats. What the records were asked to do is compared before any figure is.

mod combined;
mod combined_view;
mod condition;
mod differences;
mod judged;
mod metrics;
mod run;
mod view;

pub use combined::{Combination, Combined, compare_combinations};
pub use combined_view::{Progress, combined_view};
pub use condition::{ComparisonCondition, blocks_for, judge_conditions};
pub use differences::Difference;
pub use judged::{Arm, Comparison, Judged, Pairing, compare_arms};
pub use metrics::{ComparedMetric, MetricSettings, Unit};
pub use run::{ComparedRun, compared_run};
pub use view::comparison_view;

#[cfg(test)]
mod tests;
