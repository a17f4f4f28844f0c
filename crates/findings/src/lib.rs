//! What a report says, as data: results, verdicts on conditions, and advice from records.
//!
//! Everything here is a function of a record. Nothing here prints, reads a clock, or looks at the environment.

mod advice;
mod condition;
mod distribution;
mod import_thresholds;
mod observations;
mod rebuild;
mod summary;
mod words;

pub use advice::{Advice, advice};
pub use condition::{
    Answer, Condition, ConditionError, Figures, Judgement, Metric, Of, Operator, Statistic, quantity_text,
    reading_text,
};
pub use distribution::QUANTILES;
pub use import_thresholds::import_thresholds;
pub use observations::{summarize_hiccups, summarize_watch};
pub use rebuild::{Rebuilt, rebuild, rebuild_so_far};
pub use summary::{RunFacts, summarize};
pub use words::{meaning, phase, quantile_name, typical, value_of};
