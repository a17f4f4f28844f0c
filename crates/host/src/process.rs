//! What other processes of this host used of its CPUs between two exact instants.
//!
//! The total is the scheduler's own account in nanoseconds, of all threads, those that ended included. The kernel
//! divides it into user and system by looking who runs at each tick, which a program that works between ticks
//! escapes wholly: [`Split`] carries how many ticks it rests on. Nothing here changes a process, and none of it
//! needs a privilege; /proc may hide other users' processes (`hidepid`).
//!
//! `text` parses /proc, `reading` reads one process at one instant, `usage` adds up what happened between readings,
//! `meter` decides which processes are read. The verb and `drive` decide when.

mod meter;
mod reading;
mod text;
mod usage;

pub use meter::{CpuError, CpuMeter, CpuSpan, Wanted};
pub use reading::{Detail, Moment, cpus_online, is_process};
pub use usage::{End, ProcessUse, Split, Switches, ThreadUse, Ticks, Usage};
