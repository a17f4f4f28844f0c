//! The vocabulary of results, and the format in which they are stored.
//!
//! It defines the phases of a request, how requests end, the interval histograms, the audit's verdict, and the results
//! directory. It opens no socket, starts no thread and reads no clock; only the modules of records access files.

mod check;
mod commit;
mod compatibility;
pub mod diagnosis;
pub mod document;
mod durations;
mod error;
mod escape;
mod files;
#[cfg(test)]
mod fixture;
mod folder;
mod folder_reader;
#[cfg(test)]
mod formats;
mod hlog;
pub mod import;
mod interval;
mod lines;
mod log_reader;
pub mod observation;
mod outcome;
mod phase;
mod reason;
mod record_dir;
mod request;
mod sample;
pub mod search;
mod series;
mod served;
pub mod stacks;
mod surroundings;
mod timeline;
mod tree;
mod two_clocks;

pub use check::{Check, Concern};
pub use durations::{Durations, LONGEST};
pub use error::{Damage, RecordError};
pub use escape::escaped;
pub use folder::{Event, FolderWriter};
pub use folder_reader::{Recording, kind_of, read, read_part, read_seconds, read_whole};
pub use hlog::{LogLine, histogram_log};
pub use interval::{
    CODES_MAX, Counts, Interval, Journey, JourneySeries, KindFigures, Lag, OTHER_REASONS, REASONS_MAX, Reach,
    Reason, Series, TargetSeries,
};
pub use observation::{Observation, ObservationWriter, Observed, read_observation};
pub use outcome::{Blame, Failure, Outcome};
pub use phase::{Edge, Phase};
pub use reason::server_reason;
pub use record_dir::{RecordDir, open_file, read_file, replace_file};
pub use request::{Carried, KeptRequest, Slowest};
pub use sample::{SAMPLES_MAX, check_sample};
pub use series::{JourneySecond, ResponseNs, Second};
pub use served::{Culprit, Part, Protocol, Served};
pub use surroundings::{GroupMemory, GroupResources, HostSecond, LATE, WorkerSecond};
pub use timeline::Timeline;
pub use two_clocks::{ClockReading, TwoClocks};
pub use units::escape_text;
