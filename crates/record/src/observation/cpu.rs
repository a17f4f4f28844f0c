//! What `cpu` records: CPU time between two instants, over the whole record and per interval.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them. Command lines are not recorded, because
//! people write passwords there.

use intervals::{GroupMemory, GroupResources};
use serde::{Deserialize, Serialize};

/// What `cpu` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuResults {
    /// CPUs of the host that are switched on: the whole of a share of the machine.
    pub cpus: u64,
    /// The kernel's tick: what a thread that runs may have used unseen.
    pub tick_ns: u64,
    /// CPU time that the observer itself used, first reading to last. Absent while it goes on.
    pub observer_ns: Option<u64>,
    /// How often each process was looked at, the begin included.
    pub readings: u64,
    /// By pid.
    pub processes: Vec<CpuProcess>,
    /// The trees, single processes or control group that were asked for, each as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<CpuGroup>,
}

/// What `cpu` says of one interval, next to the frame of the line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuLine {
    pub readings: u64,
    /// By pid. Of all processes of a host: those that used CPU time, began or ended. Of a tree or a control group:
    /// those that exist at the end, and the first process of the tree.
    pub processes: Vec<CpuProcess>,
    /// As in the results, for this interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<CpuGroup>,
    /// How many others were there and used nothing.
    #[serde(default)]
    pub idle: u64,
}

/// Processes that were measured as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuGroup {
    pub kind: CpuGroupKind,
    /// The process, or the first of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The path of the control group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The name of the process, or the last part of the path.
    pub name: String,
    /// Of all processes, with those that began and ended meanwhile. Waits, slices and switches are of those that were
    /// seen.
    pub used: CpuUse,
    /// How many of the processes that were seen began and ended.
    pub began: u64,
    pub ended: u64,
    /// How many of those that ended left their account to nobody: what they used after the last reading is missing.
    pub cut: u64,
    /// The name of a process that ignores SIGCHLD: what its children used after the last reading is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarding: Option<String>,
    /// Whether waits and switches are those of all processes for all of the time; otherwise they are lower bounds.
    pub counts_all: bool,
    /// What else they used.
    pub resources: GroupResources,
    pub memory: GroupMemory,
}

/// What processes were measured as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuGroupKind {
    /// A process and its descendants.
    Tree,
    /// A process without its children, by `--only`.
    Process,
    /// A control group and those below it; its CPU time, faults and bytes are by its own account.
    Cgroup,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuProcess {
    pub pid: u32,
    /// When it began, in hundredths of a second after the start of the host: with the pid it names a process for
    /// good.
    pub started: u64,
    /// As in /proc/PID/comm.
    pub name: String,
    pub uid: u32,
    /// The user's name; absent where /etc/passwd has none.
    pub user: Option<String>,
    /// It began in the meantime.
    pub began: bool,
    pub end: CpuEnd,
    pub used: CpuUse,
    pub threads_began: u64,
    pub threads_ended: u64,
    /// What threads used that ended between two looks. It is in `used.run_ns`; their waits and switches are in no
    /// count.
    pub unseen_ns: u64,
    /// Whether waits and switches are those of all threads for all of the time. Where threads ended they are lower
    /// bounds.
    pub counts_all: bool,
    /// With `--threads`, by tid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<CpuThread>,
}

/// How a process fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CpuEnd {
    /// It was there at the end.
    Alive,
    /// It ended, and all that it used was seen.
    Whole,
    /// It ended; what it used after the last look at it is missing.
    Cut,
    /// As `cut`, and its pid is another process's by now, which was not looked at.
    Reused,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuThread {
    pub tid: u32,
    pub name: String,
    pub began: bool,
    /// It ended; what it used after the last look at it is in its process alone.
    pub ended: bool,
    pub used: CpuUse,
}

/// What was used between two instants, which are those of this process or thread.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuUse {
    /// The two instants, on the monotonic clock.
    pub from_ns: u64,
    pub to_ns: u64,
    /// By how much the time between them is uncertain: the account was read within so much of them.
    pub elapsed_error_ns: u64,
    /// Time on a CPU, by the scheduler's account.
    pub run_ns: u64,
    /// The truth differs from `run_ns` by at most this, where ticks come in time.
    pub error_ns: u64,
    /// Ready to run and without a CPU.
    pub wait_ns: u64,
    /// How often it was put on a CPU.
    pub slices: u64,
    /// Off the CPU of itself, to wait for something. Absent where the kernel does not report.
    pub voluntary: Option<u64>,
    /// Off the CPU against its will, or by `sched_yield`. Absent where the kernel does not report.
    pub involuntary: Option<u64>,
    /// User and system. Absent where nothing is known of it: no tick was counted, or it was not asked for.
    pub split: Option<CpuSplit>,
}

impl CpuUse {
    /// The time between the two readings, in nanoseconds.
    pub fn elapsed_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// User and system time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuSplit {
    pub method: SplitMethod,
    pub user_ns: u64,
    pub system_ns: u64,
    /// Of either. By ticks: for 95 % of splits, if the program does not keep step with the ticks. By eBPF: at most.
    pub error_ns: u64,
    /// Whether `error_ns` is at most a quarter of the whole.
    pub reliable: bool,
    /// How many ticks could fall into the time; with [`SplitMethod::Ticks`].
    pub ticks: Option<u64>,
    /// What the boundaries of system calls and interrupts told; with [`SplitMethod::Ebpf`].
    pub boundary: Option<CpuBoundary>,
}

/// How user and system were distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SplitMethod {
    /// By the mode that the kernel saw at each of its ticks.
    Ticks,
    /// By programs at the boundaries of system calls.
    Ebpf,
}

/// What programs at the boundaries saw. `user_ns + system_ns + interrupt_ns = wall_ns`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct CpuBoundary {
    /// On a CPU by the clock on the wall, switch to switch.
    pub wall_ns: u64,
    /// Of which: in interrupts that came in user mode. Those that came in a system call are in `system_ns`.
    pub interrupt_ns: u64,
    /// `wall_ns` less what the scheduler counted for the same time: what the hypervisor took, and interrupts where
    /// the kernel accounts for them. Below zero by the little that is between the two clocks.
    pub stolen_ns: i64,
    pub system_calls: u64,
    /// Page faults from user space. What they and system calls took before they could be seen is moved from user to
    /// system by what they take on this host; `error_ns` is as much.
    pub faults: u64,
    pub interrupts: u64,
    /// Switches that the kernel ran no program for; the scheduler's account fills their time in.
    pub missed_switches: u64,
}
