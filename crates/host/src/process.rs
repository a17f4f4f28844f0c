//! How much CPU time, memory and storage other processes of this host used between two exact instants.
//!
//! The total is the scheduler's own account in nanoseconds, of all threads, ended ones included. The kernel divides
//! it into user and system time by looking at what runs at each tick, which misses a program that works between
//! ticks: [`Split`] carries the number of ticks it rests on. Nothing here changes a process, and nothing needs a
//! privilege; /proc may hide other users' processes (`hidepid`).
//!
//! `text` parses /proc, `reading` reads one process at one instant and `family` one with its descendants, `control`
//! reads a control group, `usage` and `group` add up what happened between readings, `meter` decides which processes
//! are read. The verb `cpu` and `drive` decide when.

mod control;
mod family;
mod group;
mod meter;
mod reading;
mod text;
mod usage;

pub use group::{Faults, GroupOf, GroupUse, Memory, Storage};
pub use meter::{CpuError, CpuMeter, CpuSpan, Wanted};
pub use reading::{Detail, Moment, cpus_online, is_process, process_clock};
pub use usage::{End, ProcessUse, Split, Switches, ThreadUse, Ticks, Usage};
