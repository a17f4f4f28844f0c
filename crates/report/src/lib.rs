//! From records to what people and programs read: summaries, terminal text and JSON.
//!
//! Everything here is a function of a record. Text goes to a writer that the caller gives; nothing here prints,
//! reads a clock, or looks at the environment, the terminal included.

mod advice;
mod chart;
mod condition;
mod cpu;
mod distribution;
mod hiccup;
mod import;
mod json;
mod jvm;
mod profile;
mod rebuild;
mod search;
mod second;
mod style;
mod summary;
mod table;
mod targets;
mod text;
mod trap;
mod watch;
mod words;

pub use advice::{Advice, advice};
pub use condition::{Answer, Condition, ConditionError, Figures, Judgement, Metric, Of, Operator, Statistic};
pub use cpu::{CpuTable, CpuUnit, cpu_notes, cpu_table};
pub use distribution::QUANTILES;
pub use hiccup::{hiccup_head, hiccup_line, hiccup_text, summarize_hiccups};
pub use import::{import_text, import_thresholds};
pub use json::json;
pub use jvm::jvm_text;
pub use profile::{ProfileChange, profile_change_text, profile_text};
pub use rebuild::{Rebuilt, rebuild, rebuild_so_far};
pub use search::{probe_line, reading, search_json, search_text};
pub use second::second_line;
pub use style::{Style, count, percent, plural, rate, wrap};
pub use summary::{RunFacts, summarize};
pub use text::{Report, text};
pub use trap::{Trap, demo_text, trap};
pub use watch::{WatchReport, part_words, summarize_watch, watch_cost, watch_line, watch_text};
