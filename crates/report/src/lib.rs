//! From records to what people and programs read: summaries, terminal text and JSON.
//!
//! Everything here is a function of a record. Text goes to a writer that the caller gives; nothing here prints,
//! reads a clock, or looks at the environment, the terminal included.

mod chart;
mod cpu;
mod hiccup;
mod import;
mod json;
mod jvm;
mod profile;
mod search;
mod second;
mod style;
mod table;
mod targets;
mod text;
mod trap;
mod watch;

pub use cpu::{CpuTable, CpuUnit, cpu_notes, cpu_table};
pub use findings::{
    Advice, Answer, Condition, ConditionError, Figures, Judgement, Metric, Of, Operator, QUANTILES, Rebuilt,
    RunFacts, Statistic, advice, import_thresholds, reading_text as reading, rebuild, rebuild_so_far,
    summarize, summarize_hiccups, summarize_watch,
};
pub use hiccup::{hiccup_head, hiccup_line, hiccup_text};
pub use import::import_text;
pub use json::json;
pub use jvm::jvm_text;
pub use profile::{ProfileChange, profile_change_text, profile_text};
pub use search::{probe_line, search_json, search_text};
pub use second::second_line;
pub use style::{Style, wrap};
pub use text::{Report, text};
pub use trap::{Trap, demo_text, trap};
pub use units::{count, percent, plural, rate};
pub use watch::{WatchReport, part_words, watch_cost, watch_line, watch_text};
