//! What `profile` records: the sums of three pictures, what threads wait for, and how reliable the stacks are.
//!
//! Wire types only; the verb fills them, `report` and `explain` read them. The stacks are separate files next to
//! `run.json`, one collapsed text and one flame graph per picture.

use serde::{Deserialize, Serialize};

units::named_enum! {
    /// A picture of where threads are; its name is that of its files, without their endings.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Picture {
        /// They run: by samples.
        OnCpu = "on-cpu",
        /// They sleep: by time, under the stack they went to sleep with.
        OffCpu = "off-cpu",
        /// They could run and have no CPU: by time, under the stack they last ran or slept with.
        RunQueue = "run-queue",
    }
}

impl Picture {
    /// The unit of the weights in its collapsed file.
    pub const fn unit(self) -> &'static str {
        match self {
            Picture::OnCpu => "samples",
            Picture::OffCpu | Picture::RunQueue => "us",
        }
    }
}

units::named_enum! {
    /// What a thread waits for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum WaitKind {
        Pool = "pool",
        Lock = "lock",
        Disk = "disk",
        Network = "network",
        Sleep = "sleep",
        Other = "other",
        /// For something to do: nothing waits for this thread.
        Idle = "idle",
    }
}

/// What `profile` saw, over the whole record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProfileResults {
    /// The processes that were looked at: the one that was named, and its children.
    pub processes: Vec<ProfiledProcess>,
    /// Samples per second on each busy CPU, on average: the time between two is random.
    pub rate_hz: u64,
    /// Time on a CPU by the scheduler; samples are checked with it.
    pub on_cpu_ns: u64,
    pub pictures: Vec<PictureResult>,
    /// What threads spin for on a CPU, the most samples first; in records before it was measured, empty.
    #[serde(default)]
    pub spins: Vec<Spin>,
    pub waits: Vec<Wait>,
    /// Threads by name and reason, the longest asleep first.
    pub sleepers: Vec<Sleeper>,
    pub quality: StackQuality,
    pub lost: ProfileLosses,
    /// What the programs in the kernel took; absent where the kernel did not report.
    pub cost_ns: Option<u64>,
    /// How often they ran.
    pub cost_runs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProfiledProcess {
    pub pid: u32,
    /// Absent when it was gone before it was looked at.
    pub name: Option<String>,
    /// It ended before the profile did.
    pub ended: bool,
}

/// One picture: its sums, and the frames with the most of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct PictureResult {
    pub picture: Picture,
    /// Samples, sleeps, or waits for a CPU.
    pub count: u64,
    /// Of samples: their number times the mean time between two.
    pub time_ns: u64,
    /// Different stacks.
    pub stacks: u64,
    /// The frames with the largest own share.
    pub frames: Vec<FrameShare>,
    /// The same by their share with all they call.
    pub widest: Vec<FrameShare>,
}

/// A frame's share of a picture, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct FrameShare {
    pub frame: String,
    /// Where it is the leaf.
    pub own: f64,
    /// With all it calls.
    pub total: f64,
}

/// Samples whose leaf function waits for a lock without sleeping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Spin {
    pub what: String,
    pub samples: u64,
    /// Of all samples, from 0 to 1.
    pub share: f64,
}

/// Frames that wait, found by the rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Wait {
    /// Off-CPU; in older records also on-CPU.
    pub picture: Picture,
    pub kind: WaitKind,
    pub what: String,
    pub time_ns: u64,
    /// Of the picture, from 0 to 1.
    pub share: f64,
    /// Of the picture without what is idle, from 0 to 1; absent for what is idle itself.
    pub share_of_busy: Option<f64>,
}

/// Threads of one name that sleep for one reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Sleeper {
    pub thread: String,
    pub threads: u64,
    pub sleeps: u64,
    pub asleep_ns: u64,
    /// What for, where a rule knows.
    pub what: Option<String>,
}

/// How far the stacks can be believed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct StackQuality {
    /// Frames of user space in the samples, each as often as it was sampled.
    pub frames: u64,
    /// Of which without a name.
    pub unknown_frames: u64,
    /// Samples with a stack of user space.
    pub stacks: u64,
    /// Of which do not reach the begin of their thread: without frame pointers a walk ends early.
    pub cut_stacks: u64,
    /// Of which a caller was looked for along the stack: neither frame pointers nor the C library's rules led to it.
    pub mended_stacks: u64,
    /// Sleeps with a stack of user space.
    pub sleeps: u64,
    pub cut_sleeps: u64,
    pub mended_sleeps: u64,
    /// Files without names for the addresses in them, the most sampled first.
    pub nameless: Vec<NamelessFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct NamelessFile {
    pub file: String,
    pub frames: u64,
}

/// What was not kept, each by its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProfileLosses {
    /// Stacks that had no place in the kernel's tables: their time is in the pictures, without frames.
    pub stacks: u64,
    /// Samples, sleeps and waits that had no place in the kernel's table: in no picture.
    pub weights: u64,
    /// Threads of which nothing could be kept.
    pub threads: u64,
    /// Children that were not followed.
    pub processes: u64,
    /// Switches and wake-ups of threads that no eBPF program saw: their time is the scheduler's, and is in the
    /// pictures.
    pub switches: u64,
}

impl ProfileLosses {
    /// Whether anything was lost.
    pub fn any(&self) -> bool {
        *self != ProfileLosses::default()
    }
}

/// What `profile` says of one interval, next to the frame of the line: sums of all threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ProfileLine {
    pub samples: u64,
    pub on_cpu_ns: u64,
    pub asleep_ns: u64,
    pub run_queue_ns: u64,
}
