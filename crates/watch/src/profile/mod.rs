//! Where the threads of a server spend their time: on a CPU, asleep, or waiting for a CPU, each with its stack.
//!
//! A [`Profiler`] counts in the kernel from its start to [`Profiler::finish`], which names the stacks. Its owner
//! calls [`Profiler::look`] whenever it is due ([`Profiler::due`]), so that the names of short-lived processes are known
//! and the time between samples changes.

mod fold;
mod interpreters;
mod jvm;
mod layout;
mod perf_map;
mod programs;
mod sampler;
mod spaces;
mod symbols;
mod unwind;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;

use record::document::MissingFact;
use record::observation::profile::{
    FrameShare, Picture, PictureResult, ProfileLine, ProfileLosses, ProfileResults, ProfiledProcess, Wait,
    WaitKind,
};
use record::stacks::{FrameWeight, Stacks, spins, waits};
use units::Nanos;

use self::fold::Folded;
use self::interpreters::NotUnwound;
use self::jvm::Jvm;
use self::layout::{Totals, Weight};
use self::perf_map::PerfMap;
use self::programs::Programs;
pub(crate) use self::spaces::Executable;
use self::spaces::{Space, Spaces};
use self::symbols::Symbols;
use self::unwind::Unwinding;
use self::world::World;
pub(crate) use self::world::{Owner, regular};
use crate::find;
use crate::kernel::{LoadError, require_host_pids};

/// Why there is no profile. Messages are one line each.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("there is no process {0}")]
    NoProcess(u32),
    #[error("{0} is a thread of process {1}; give the process")]
    Thread(u32, u32),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Counts until it is finished or dropped.
pub struct Profiler {
    programs: Programs,
    spaces: Spaces,
    unwinding: Unwinding,
    roots: Vec<u32>,
    rate: u32,
    began: Nanos,
    /// When to look for new processes, and when to draw the times between samples again.
    due: Nanos,
    looked: Nanos,
    known: usize,
    counted: Totals,
}

/// The result of profiling.
#[derive(Debug)]
pub struct Profile {
    /// The time over which each thread was counted.
    pub span: Range<Nanos>,
    /// The figures for the record.
    pub results: ProfileResults,
    /// In the order of [`Picture::ALL`], in each picture's unit.
    pub stacks: [Stacks; 3],
    /// What could not be seen, and why.
    pub missing: Vec<MissingFact>,
}

impl Profiler {
    /// Starts to count what the threads of `processes`, of their children, and of processes forked later do; with
    /// `rate` samples per second on each busy CPU, on average.
    ///
    /// # Errors
    ///
    /// [`ProfileError`]; in that case nothing was started.
    pub fn start(processes: &[u32], rate: u32) -> Result<Profiler, ProfileError> {
        require_host_pids()?;
        processes.iter().try_for_each(|pid| is_process(*pid))?;
        let mut programs = Programs::load(rate)?;
        let all = with_children(processes);
        let (mut spaces, mut unwinding) = (Spaces::default(), Unwinding::default());
        // First, so that no thread's first sleep loses its callers.
        all.iter().for_each(|pid| look_at(*pid, 0, &mut spaces, &mut unwinding, &programs));
        let began = clock::now();
        programs.watch(&all, began)?;
        let mut profiler = Profiler {
            programs,
            spaces,
            unwinding,
            roots: processes.to_vec(),
            rate,
            began,
            due: began,
            looked: began,
            known: 0,
            counted: Totals::default(),
        };
        profiler.look_at_all();
        profiler.due = profiler.programs.vary(began);
        Ok(profiler)
    }

    /// When to call [`Profiler::look`] next: several times per second, at random times.
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// When it began.
    pub fn began(&self) -> Nanos {
        self.began
    }

    /// Looks at new processes, and from time to time at all of them. Returns false when all named processes have ended.
    ///
    /// # Cost
    ///
    /// Some system calls, and for a new process reading its mappings.
    pub fn look(&mut self) -> bool {
        let processes = self.programs.processes();
        let now = clock::now();
        self.due = self.programs.vary(now).min(now.saturating_add(LOOK_EVERY));
        let age = now - self.began;
        let due = if age < LOOK_AGAIN { Nanos::from_secs(1) } else { LOOK_AGAIN };
        if now - self.looked > due {
            self.look_at_all();
        } else if processes.len() != self.known {
            for (pid, parent) in &processes {
                if self.spaces.of(*pid).is_none() {
                    look_at(*pid, *parent, &mut self.spaces, &mut self.unwinding, &self.programs);
                }
            }
            self.known = processes.len();
        }
        self.roots.iter().any(|pid| is_alive(*pid))
    }

    fn look_at_all(&mut self) {
        let mut processes = self.programs.processes();
        // While others attach to the tracepoint, the kernel may skip our program at forks.
        for pid in with_children(&self.roots) {
            if !processes.iter().any(|(known, _)| *known == pid) {
                self.programs.follow(pid);
                processes.push((pid, 0));
            }
        }
        for (pid, parent) in &processes {
            look_at(*pid, *parent, &mut self.spaces, &mut self.unwinding, &self.programs);
        }
        self.known = processes.len();
        self.looked = clock::now();
    }

    /// What was counted since the last call.
    pub fn line(&mut self) -> ProfileLine {
        let now = self.programs.totals();
        let since = |n: usize| now.weights[n].ns - self.counted.weights[n].ns;
        let line = ProfileLine {
            samples: now.weights[0].count - self.counted.weights[0].count,
            on_cpu_ns: now.on_cpu_ns - self.counted.on_cpu_ns,
            asleep_ns: since(1),
            run_queue_ns: since(2),
        };
        self.counted = now;
        line
    }

    /// Stops counting, and names what was seen. `added_spins` are functions that spin, besides those of
    /// [`record::stacks::spins`].
    ///
    /// # Errors
    ///
    /// When the kernel refuses the final walk over its threads.
    ///
    /// # Cost
    ///
    /// Reads the symbols of every file that was run: seconds where debug information is large. A JVM is asked for the
    /// names of its methods.
    pub fn finish(mut self, added_spins: &[String]) -> Result<Profile, ProfileError> {
        self.look_at_all();
        let cost = self.programs.cost();
        let ended = clock::now();
        self.programs.stop(ended)?;
        let weights = self.programs.weights();
        let stacks = weights.iter().flat_map(|(key, _)| [key.user, key.kernel()]);
        let addresses = self.programs.stacks(stacks);
        let totals = self.programs.totals();
        let mut processes = self.programs.processes();
        // Named processes first.
        processes.sort_by_key(|(pid, _)| {
            (self.roots.iter().position(|root| root == pid).unwrap_or(usize::MAX), *pid)
        });
        let mut missing = Vec::new();
        let seen = addresses.values().flatten().copied().collect();
        let perf_maps = perf_maps(&processes, &self.spaces, &seen, &mut missing);
        let mut symbols = Symbols::new(self.spaces, perf_maps);
        let folded = fold::fold(&weights, &addresses, &mut symbols);
        let is_jvm =
            processes.iter().any(|(pid, _)| symbols.spaces().of(*pid).is_some_and(|space| space.maps(JVM)));
        missing.extend(doubts(&folded, is_jvm));
        missing.extend(doubt_of_samples(folded.sums[0].count, self.rate, totals.on_cpu_ns));
        if cost.is_none() {
            missing.push(fact("cost_ns", "this kernel does not measure the time of eBPF programs"));
        }
        let seen = |(pid, _): &(u32, u32)| ProfiledProcess {
            pid: *pid,
            name: symbols.spaces().of(*pid).and_then(|space| space.name.clone()),
            ended: !is_alive(*pid),
        };
        let results = ProfileResults {
            processes: processes.iter().take(PROCESSES_MOST).map(seen).collect(),
            rate_hz: u64::from(self.rate),
            on_cpu_ns: totals.on_cpu_ns,
            pictures: pictures(&folded, self.rate),
            spins: spins::found(&folded.stacks[0], added_spins),
            waits: found_waits(&folded.stacks[1]),
            sleepers: folded.sleepers,
            quality: folded.quality,
            lost: losses(&totals, cost.map_or(0, |cost| cost.skipped)),
            cost_ns: cost.map(|cost| cost.time.0),
            cost_runs: cost.map(|cost| cost.runs),
        };
        Ok(Profile { span: self.began..ended, results, stacks: folded.stacks, missing })
    }
}

fn look_at(pid: u32, parent: u32, spaces: &mut Spaces, unwinding: &mut Unwinding, programs: &Programs) {
    if spaces.look(pid, parent)
        && let Some(space) = spaces.of(pid)
    {
        unwinding.load(pid, space, programs);
    }
}

fn losses(totals: &Totals, skipped: u64) -> ProfileLosses {
    ProfileLosses {
        stacks: totals.stacks_lost,
        weights: totals.weights_lost.iter().sum::<u64>() + skipped,
        threads: totals.threads_lost,
        processes: totals.processes_lost,
        switches: totals.missed_switches,
    }
}

fn pictures(folded: &Folded, rate: u32) -> Vec<PictureResult> {
    let result = |(n, picture): (usize, Picture)| {
        let stacks = &folded.stacks[n];
        let Weight { count, ns } = folded.sums[n];
        let whole = stacks.total().max(1) as f64;
        let share = |frame: &FrameWeight| FrameShare {
            frame: frame.frame.clone(),
            own: frame.own as f64 / whole,
            total: frame.total as f64 / whole,
        };
        // Asleep, every thread is in the scheduler: only frames outside the kernel differ.
        let shown = if picture == Picture::OnCpu { stacks.clone() } else { stacks.outside_kernel() };
        let mut frames = shown.frames();
        let own: Vec<_> = frames.iter().take(FRAMES_MOST).filter(|frame| frame.own > 0).map(share).collect();
        frames.sort_by(|a, b| (b.total, b.own, &a.frame).cmp(&(a.total, a.own, &b.frame)));
        PictureResult {
            picture,
            count,
            time_ns: if picture == Picture::OnCpu { sampled(count, rate) } else { ns },
            stacks: stacks.len() as u64,
            frames: own,
            widest: frames.iter().take(FRAMES_MOST).map(share).collect(),
        }
    };
    Picture::ALL.into_iter().enumerate().map(result).collect()
}

/// The time that this many samples represent.
fn sampled(count: u64, rate: u32) -> u64 {
    count.saturating_mul(1_000_000_000 / u64::from(rate.max(1)))
}

fn found_waits(asleep: &Stacks) -> Vec<Wait> {
    let found = waits::found(asleep);
    let idle: u64 =
        found.iter().filter(|found| found.rule.kind == WaitKind::Idle).map(|found| found.weight).sum();
    let whole = asleep.total().max(1);
    let busy = (whole - idle.min(whole)).max(1);
    let wait = |found: waits::Found| Wait {
        picture: Picture::OffCpu,
        kind: found.rule.kind,
        what: found.rule.what.to_owned(),
        time_ns: found.weight * 1_000,
        share: found.weight as f64 / whole as f64,
        share_of_busy: (found.rule.kind != WaitKind::Idle).then(|| found.weight as f64 / busy as f64),
    };
    found.into_iter().map(wait).collect()
}

/// Names of run-time code, of every process that has any.
fn perf_maps(
    processes: &[(u32, u32)],
    spaces: &Spaces,
    seen: &BTreeSet<u64>,
    missing: &mut Vec<MissingFact>,
) -> BTreeMap<u32, PerfMap> {
    let known = processes.iter().filter_map(|(pid, _)| Some((*pid, spaces.of(*pid)?)));
    let place = |(pid, space): (u32, &Space)| Jvm {
        pid,
        inner_pid: space.inner_pid.unwrap_or(pid),
        owner: space.owner.unwrap_or(0),
    };
    let jvms = known.clone().filter(|(pid, space)| space.maps(JVM) && is_alive(*pid));
    let jvms: Vec<_> = jvms.map(place).collect();
    for why in jvm::write_perf_maps(&jvms).into_iter().filter_map(Result::err) {
        let why = format!("{why}; -XX:+DumpPerfMapAtExit writes the names when it ends");
        missing.push(fact("java_frames", &why));
    }
    let (mut maps, mut not_unwound) = (BTreeMap::new(), NotUnwound::default());
    for (pid, space) in known {
        let Jvm { inner_pid: inner, owner, .. } = place((pid, space));
        let (is_alive, is_jvm) = (is_alive(pid), space.maps(JVM));
        match perf_map(is_alive.then_some(pid), inner, owner, seen) {
            Ok(Some(map)) => drop(maps.insert(pid, map)),
            // Most processes need none.
            Ok(None) if !is_jvm => not_unwound.note(pid, space),
            Ok(None) => {
                let why = format!("no names of run-time code: there is no /tmp/perf-{inner}.map");
                missing.push(fact("run_time_frames", &why));
            }
            Err(why) => missing.push(fact(
                "run_time_frames",
                &format!("no names of run-time code: /tmp/perf-{inner}.map: {why}"),
            )),
        }
    }
    missing.extend(not_unwound.lines().map(|line| fact("interpreter", &line)));
    maps
}

/// The perf map of a process that runs as `pid`, or has ended; `None` if there is none. Anybody can write to the file's
/// directory: the file is used only if it belongs to the process's user or to root.
fn perf_map(
    pid: Option<u32>,
    inner_pid: u32,
    owner: u32,
    seen: &BTreeSet<u64>,
) -> Result<Option<PerfMap>, String> {
    let world = pid.map_or_else(World::own, World::of).map_err(|error| error.to_string())?;
    let file = match world.file(&format!("tmp/perf-{inner_pid}.map"), Owner::OrRoot(owner)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| error.to_string())?,
    };
    PerfMap::read(file, seen).map(Some)
}

/// Reasons to doubt the stacks.
fn doubts(folded: &Folded, is_jvm: bool) -> Vec<MissingFact> {
    let quality = &folded.quality;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let mut doubts = Vec::new();
    let cut = share(quality.cut_stacks, quality.stacks);
    if cut > CUT_SHARE {
        let fix = if is_jvm {
            "start the JVM with -XX:+PreserveFramePointer"
        } else {
            "compile with -fno-omit-frame-pointer"
        };
        doubts.push(fact(
            "callers",
            &format!("no frame pointers: {:.0} % of the stacks are truncated; {fix}", cut * 100.0),
        ));
    }
    let unknown = share(quality.unknown_frames, quality.frames);
    if unknown > UNKNOWN_SHARE {
        let files: Vec<_> = quality.nameless.iter().take(3).map(|file| file.file.as_str()).collect();
        let files = files.join(", ");
        let why = format!(
            "{:.0} % of the frames have no name ({files}); a stripped binary needs its debug symbols",
            unknown * 100.0
        );
        doubts.push(fact("names", &why));
    }
    if folded.deepest > 0 {
        let why = format!(
            "{} samples are deeper than the kernel's limit of 127 frames: truncated at the root",
            folded.deepest
        );
        doubts.push(fact("callers", &why));
    }
    doubts
}

/// Samples and the scheduler's account measure the same time: if they differ by more than chance, samples are missing.
fn doubt_of_samples(samples: u64, rate: u32, on_cpu_ns: u64) -> Option<MissingFact> {
    let by_samples = sampled(samples, rate);
    let off = by_samples.abs_diff(on_cpu_ns) as f64 / on_cpu_ns.max(1) as f64;
    // Four standard deviations of the count if samples came independently; they come more evenly.
    let chance = 4.0 / (samples.max(1) as f64).sqrt();
    let why = format!(
        "samples represent {} on a CPU, but the scheduler counted {}: this host lost CPU time, or samples were lost",
        Nanos(by_samples).written(),
        Nanos(on_cpu_ns).written()
    );
    (off > chance.max(0.02)).then(|| fact("samples", &why))
}

fn fact(what: &str, why: &str) -> MissingFact {
    MissingFact { what: what.to_owned(), why: why.to_owned() }
}

fn is_process(pid: u32) -> Result<(), ProfileError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    let status = status.map_err(|_| ProfileError::NoProcess(pid))?;
    let leader = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    match leader {
        Some(leader) if leader != pid => Err(ProfileError::Thread(pid, leader)),
        _ if !is_alive(pid) => Err(ProfileError::NoProcess(pid)),
        _ => Ok(()),
    }
}

/// Whether it is running: not a zombie.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name is in parentheses and may itself contain parentheses.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// The processes and all their current descendants.
fn with_children(processes: &[u32]) -> Vec<u32> {
    let mut all = find::with_children(processes).unwrap_or_else(|_| processes.to_vec());
    all.truncate(PROCESSES_MOST);
    all
}

const JVM: &str = "libjvm.so";
/// How often to look for new processes; names of a process that lives shorter are unknown.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// How often all mappings are read: that takes a lock of the server, so not often.
const LOOK_AGAIN: Nanos = Nanos::from_secs(10);
/// Frames of a picture that a record keeps; the collapsed file has all.
const FRAMES_MOST: usize = 50;
const PROCESSES_MOST: usize = 4_096;
/// A stack or two are always caught where a function begins, before it has a frame.
const CUT_SHARE: f64 = 0.1;
const UNKNOWN_SHARE: f64 = 0.05;
