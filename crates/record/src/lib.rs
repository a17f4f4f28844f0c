//! The format in which results are stored: documents, the series of a run, and their files.
//!
//! The vocabulary (phases, outcomes, timelines, intervals) is that of the crate `intervals`, which is passed on here. It opens no socket, starts no thread and reads no clock; only the modules of records access files.

mod check;
mod commit;
mod compatibility;
pub mod diagnosis;
pub mod document;
mod error;
mod escape;
mod files;
#[cfg(test)]
mod fixture;
mod folder;
mod folder_reader;
#[cfg(test)]
mod formats;
pub mod import;
mod lines;
mod log_reader;
mod log_text;
pub mod observation;
mod record_dir;
pub mod record_mode;
mod request;
pub mod search;
mod series;
mod served;
pub mod stacks;
mod tree;
mod two_clocks;

pub use check::{Check, Concern};
pub use error::{Damage, RecordError};
pub use escape::escaped;
pub use folder::{Event, FolderWriter};
pub use folder_reader::{Recording, kind_of, read, read_part, read_seconds, read_whole};
pub use intervals::{
    Blame, CODES_MAX, Compact, Counts, Durations, Edge, Failure, GroupMemory, GroupResources, HostSecond,
    Interval, Journey, JourneySeries, KindFigures, LATE, LONGEST, Lag, OTHER_REASONS, Outcome, Phase,
    REASONS_MAX, Reach, Reason, SAMPLES_MAX, Series, TargetSeries, Timeline, WorkerSecond, check_sample,
    server_reason, server_words,
};
pub use log_text::{LogLine, histogram_log};
pub use observation::{Observation, ObservationWriter, Observed, read_observation};
pub use record_dir::{RecordDir, open_file, read_file, replace_file};
pub use request::{Carried, KeptRequest, Slowest};
pub use series::{JourneySecond, ResponseNs, Second};
pub use served::{Culprit, Owner, Part, Protocol, Rows, Served, Sleep, Stop, Waits};
pub use two_clocks::{ClockReading, TwoClocks};
pub use units::escape_text;
