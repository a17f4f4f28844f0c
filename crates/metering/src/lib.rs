//! What `host` measures, in the form of the record: the CPU time of processes, split into user and system time with the
//! programs of `watch`, hiccups with their causes, and the limits of this host during a run. It decides about no run and
//! writes no file.

mod host_monitor;
pub mod measured;
mod meters;
mod split;

pub use host_monitor::HostMonitor;
pub use meters::{Continued, MeterPlan, Meters, Tally};
pub use split::{SplitBy, Splitter};
