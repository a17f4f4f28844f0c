//! The contents of reports, as data: results, verdicts on conditions, and the [`view::View`] of every kind of record.
//!
//! Everything here is a function of a record. Shares, order, intervals, and what is shown or left out are decided here;
//! the layout formats the figures. Nothing here prints, reads a clock, or looks at the environment.

mod account_view;
mod advice;
mod arithmetic;
mod condition;
mod cpu_view;
mod demo_view;
mod distribution;
mod disturb_view;
mod focus_view;
#[cfg(test)]
mod formats;
mod group_view;
mod hiccup_view;
mod histogram;
mod import_thresholds;
mod import_view;
mod jvm_view;
mod observation_view;
mod observations;
mod profile_change_view;
mod profile_view;
mod progress;
mod rebuild;
mod record_list;
mod record_summary;
mod run_view;
pub mod search;
mod search_view;
mod seen_times;
mod summary;
mod unreachable;
mod verdict;
pub mod view;
mod watch_query;
mod watch_view;
mod words;

pub use advice::advice;
pub use arithmetic::{IntervalRates, largest_shares, mean, per_s, share};
pub use condition::{
    Condition, ConditionError, Decision, Figures, Judgement, Metric, Of, Operator, Part, Statistic,
    quantity_text, reading_text,
};
pub use cpu_view::{CpuTable, CpuUnit, cpu_notes, cpu_table, cpu_view};
pub use demo_view::{Trap, demo_view, trap};
pub use distribution::{QUANTILES, times};
pub use disturb_view::disturb_view;
pub use focus_view::{FoundFrames, FrameAnswers, focus_view};
pub use hiccup_view::hiccup_view;
pub use import_thresholds::import_thresholds;
pub use import_view::import_view;
pub use jvm_view::jvm_view;
pub use observation_view::observation_view;
pub use observations::{summarize_hiccups, summarize_watch};
pub use profile_change_view::{ProfileChange, Samples, profile_change_view};
pub use profile_view::profile_view;
pub use progress::{hiccup_head, hiccup_line, is_whole, probe_line, second_line, watch_line};
pub use rebuild::{Rebuilt, rebuild, rebuild_so_far};
pub use record::escape_text;
pub use record_list::record_list;
pub use record_summary::{RecordSummary, summaries, summary};
pub use run_view::{RunRecord, run_view};
pub use search_view::search_view;
pub use seen_times::{SeenTimes, SeenWindow};
pub use summary::{RunFacts, summarize, warm_up};
pub use unreachable::{nothing_reached, unreachable};
pub use watch_query::{SortBy, WatchQuery, Where};
pub use watch_view::{WatchRecord, part_words, watch_cost, watch_view};
pub use words::{meaning, phase, quantile_name, typical, value_of};
