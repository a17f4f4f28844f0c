//! Facts about this host, what this process used of it, and what the host took from this process.
//!
//! Every fact may be missing: a fact that cannot be read is `None`, never a guess. Only [`disturb`] changes
//! anything on the host.

mod abilities;
mod cgroup;
mod counters;
mod cpu;
mod cpu_list;
pub mod disturb;
mod facts;
mod hiccup;
mod net;
mod pid_namespace;
pub mod process;
mod run_queue;

pub use abilities::{Ability, CAPABILITIES, Status, abilities};
pub use cgroup::own_group;
pub use counters::{Counters, Missing, Reading, open_files_limit};
pub use cpu::{children_cpu, process_cpu, process_memory};
pub use cpu_list::{CpuList, cpu_list};
pub use facts::Facts;
pub use hiccup::{Accounts, Causes, HiccupMeter, MeterSettings, Priority, Sample, Tick, Wake, explain};
pub use net::{local_ports, ports_towards};
pub use pid_namespace::sees_host_pids;
pub use run_queue::RunQueue;
