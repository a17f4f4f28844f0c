//! What is counted and recorded while a run is in progress: phases, timelines, outcomes, and the histograms of one
//! interval, which can be added and written as lines of a histogram log.
//!
//! Everything here is called for every request, or for every histogram of every second. The format that results are
//! kept in is the crate `record`, which passes these types on; it is compiled apart, because reading and writing
//! documents is much code that runs rarely.

mod compact;
mod durations;
mod error;
pub mod hlog;
mod interval;
mod outcome;
mod phase;
mod reason;
mod sample;
mod surroundings;
mod timeline;

pub use compact::Compact;
pub use durations::{COARSE_DIGITS, DIGITS, Durations, LONGEST};
pub use error::LogDamage;
pub use interval::{
    CODES_MAX, Counts, Interval, Journey, JourneySeries, KindFigures, Lag, OTHER_REASONS, REASONS_MAX, Reach,
    Reason, Series, TargetSeries,
};
pub use outcome::{Blame, Failure, Outcome};
pub use phase::{Edge, Phase};
pub use reason::{LONGEST_REASON, server_reason, server_words};
pub use sample::{SAMPLES_MAX, check_sample};
pub use surroundings::{GroupMemory, GroupResources, HostSecond, LATE, WorkerSecond};
pub use timeline::Timeline;
