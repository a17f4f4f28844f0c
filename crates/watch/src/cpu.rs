//! User and system time of threads, from the boundaries that they cross: context switches, system calls, interrupts.
//!
//! The programs of `bpf/cpu.bpf.c` keep a clock per thread, which this module reads. Nothing is sampled: a program
//! that works between the kernel's ticks is measured like any other. While the programs are attached, every system
//! call on the host takes the slower path through its tracepoints, so they are attached only during a measurement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{Link, Map, MapCore, MapFlags, Object, ObjectBuilder};
use units::Nanos;

use crate::find::with_children;
use crate::kernel::load::begin;
use crate::kernel::{LoadError, refused, require_host_pids};

/// The threads to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    /// Those of these processes.
    Pids(Vec<u32>),
    /// Those of these processes and their descendants, whenever they begin.
    Trees(Vec<u32>),
    /// All threads of the host.
    Everybody,
}

/// Time on CPUs since the programs were attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Boundaries {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel, system calls and faults.
    pub system: Nanos,
    /// In interrupts that came in user mode; those that came during a system call are in `system`.
    pub interrupt: Nanos,
    /// Time on a CPU that the scheduler did not count: taken by the hypervisor, or by interrupts where the kernel
    /// accounts for them. May be slightly negative, by the difference between the two clocks.
    pub stolen_ns: i64,
    /// System calls.
    pub calls: u64,
    /// Page faults and other exceptions.
    pub faults: u64,
    /// Interrupts that came in user mode.
    pub interrupts: u64,
    /// Context switches for which the kernel ran no program, which happens while others attach to the tracepoint.
    /// Their time is filled in from the scheduler's account, in the mode that the thread was last seen in.
    pub missed: u64,
}

/// All clocks at one instant, each since the programs were attached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The sums per process, ended threads included, by pid; of [`Watched::Trees`] without descendants that ended.
    pub processes: BTreeMap<u32, Boundaries>,
    /// The sums per tree, ended processes included, by the pid of its first process.
    pub trees: BTreeMap<u32, Boundaries>,
    /// Each running thread. Those that have ended since appear in one more reading.
    pub threads: Vec<ThreadClock>,
}

/// The clock of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadClock {
    /// Its process.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Its times since the programs were attached.
    pub time: Boundaries,
}

/// The clocks. They run until dropped.
pub struct ThreadClocks {
    object: Object,
    _links: Vec<Link>,
    /// Sums of ended threads, by process.
    ended: BTreeMap<u32, Boundaries>,
    /// The same, by tree.
    ended_in_trees: BTreeMap<u32, Boundaries>,
    cost: BoundaryCost,
}

/// The part of the kernel's time that is counted as user time because it precedes a visible boundary, as measured on
/// this host when the programs were attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct BoundaryCost {
    call_ps: u64,
    fault_ps: u64,
}

impl ThreadClocks {
    /// Attaches the programs.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the programs cannot be loaded or attached.
    ///
    /// # Cost
    ///
    /// For the whole host: every system call takes the path through its tracepoints, 170 ns more (2026-11-22, a
    /// virtual machine with two cores), while they are attached.
    pub fn start(watched: &Watched) -> Result<ThreadClocks, LoadError> {
        require_host_pids()?;
        begin()?;
        let object = load(watched)?;
        let links: Result<_, _> = object.progs_mut().map(|program| program.attach()).collect();
        let links = links.map_err(|e| refused(&e))?;
        let mut clocks = ThreadClocks {
            object,
            _links: links,
            ended: BTreeMap::new(),
            ended_in_trees: BTreeMap::new(),
            cost: BoundaryCost::default(),
        };
        clocks.calibrate()?;
        match watched {
            Watched::Pids(pids) => pids.iter().try_for_each(|&pid| clocks.want(pid, ALONE))?,
            Watched::Trees(roots) => roots.iter().try_for_each(|&root| clocks.want_tree(root))?,
            Watched::Everybody => {}
        }
        clocks.begin()?;
        Ok(clocks)
    }

    /// All clocks at one instant, that of the call.
    ///
    /// # Cost
    ///
    /// Two system calls per thread that has run since the start.
    pub fn read(&mut self) -> Reading {
        let now = clock::now();
        let clocks = map(&self.object, "clocks");
        let tids: Vec<_> = clocks.keys().collect();
        let mut reading = Reading {
            processes: self.ended.clone(),
            trees: self.ended_in_trees.clone(),
            threads: Vec::with_capacity(tids.len()),
        };
        let roots = self.roots();
        for key in tids {
            let Some(raw) = whole(&clocks, &key) else { continue };
            let tid = u32::from_ne_bytes(key.try_into().expect("a thread's id has 32 bits"));
            let raw = raw.seen_at_rest(tid, now);
            let time = raw.boundaries(now).corrected(self.cost);
            reading.processes.entry(raw.tgid).or_default().add(&time);
            let root = roots.get(&raw.tgid).copied();
            if let Some(root) = root {
                reading.trees.entry(root).or_default().add(&time);
            }
            reading.threads.push(ThreadClock { pid: raw.tgid, tid, time });
            let is_over = raw.ended && raw.at == 0;
            if is_over && clocks.delete(&tid.to_ne_bytes()).is_ok() {
                self.ended.entry(raw.tgid).or_default().add(&time);
                if let Some(root) = root {
                    self.ended_in_trees.entry(root).or_default().add(&time);
                }
            }
        }
        self.forget_ended(&roots, &reading.threads);
        reading
    }

    /// By pid: the root process of the tree that a process is in.
    fn roots(&self) -> BTreeMap<u32, u32> {
        let wanted = map(&self.object, "wanted");
        let root = |key: Vec<u8>| {
            let root = wanted.lookup(&key, MapFlags::ANY).ok()??;
            let [pid, root] = [key, root].map(|raw| raw.try_into().map(u32::from_ne_bytes).ok());
            Some((pid?, root.filter(|&root| root != ALONE)?))
        };
        wanted.keys().filter_map(root).collect()
    }

    /// Frees room for other threads: descendants that ended are in the sum of their tree.
    fn forget_ended(&mut self, roots: &BTreeMap<u32, u32>, threads: &[ThreadClock]) {
        let seen: BTreeSet<u32> = threads.iter().map(|thread| thread.pid).collect();
        for (pid, root) in roots {
            let is_there = seen.contains(pid) || Path::new(&format!("/proc/{pid}")).exists();
            if pid != root && !is_there {
                let _ = map(&self.object, "wanted").delete(&pid.to_ne_bytes());
                self.ended.remove(pid);
            }
        }
    }

    /// The possible error of user and system time: as if each boundary took up to twice what it took here.
    pub fn error(&self, time: &Boundaries) -> Nanos {
        time.hidden(self.cost)
    }

    /// Threads for which there was no room: their time is missing.
    pub fn lost(&self) -> u64 {
        let zero = 0_u32.to_ne_bytes();
        let raw = map(&self.object, ".bss.lost").lookup(&zero, MapFlags::ANY).ok().flatten();
        raw.and_then(|raw| raw.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }

    /// Measures how much of a call and a fault is counted as user time, on this thread, which does nothing else
    /// in the meantime.
    fn calibrate(&mut self) -> Result<(), LoadError> {
        let own = std::process::id();
        self.want(own, ALONE)?;
        self.begin()?;
        // The minimum: anything else that happens in a batch makes it longer.
        let call_ps = self.least_each(|| (0..CALLS).for_each(|_| call()), |seen| (seen.user, seen.calls));
        let touch = || {
            let mut pages = vec![0_u8; PAGES * PAGE];
            pages.chunks_mut(PAGE).for_each(|page| page[0] = std::hint::black_box(1));
        };
        let fault_ps = self.least_each(touch, |seen| {
            let of_calls = Nanos(seen.calls * call_ps / 1_000);
            (seen.user.saturating_sub(of_calls), seen.faults)
        });
        self.cost = BoundaryCost { call_ps, fault_ps };
        self.set_begin(0)?;
        let _ = map(&self.object, "wanted").delete(&own.to_ne_bytes());
        let clocks = map(&self.object, "clocks");
        let keys: Vec<_> = clocks.keys().collect();
        keys.iter().for_each(|key| {
            let _ = clocks.delete(key);
        });
        self.ended.clear();
        Ok(())
    }

    /// In picoseconds.
    fn least_each(&mut self, batch: impl Fn(), of: impl Fn(&Boundaries) -> (Nanos, u64)) -> u64 {
        let each = (0..BATCHES).filter_map(|_| {
            let before = self.own();
            batch();
            let (time, count) = of(&self.own().since(&before));
            time.0.saturating_mul(1_000).checked_div(count)
        });
        each.min().unwrap_or(0)
    }

    fn own(&mut self) -> Boundaries {
        self.read().processes.get(&std::process::id()).copied().unwrap_or_default()
    }

    fn want(&self, pid: u32, root: u32) -> Result<(), LoadError> {
        map(&self.object, "wanted")
            .update(&pid.to_ne_bytes(), &root.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
    }

    /// The programs add the children of wanted processes from now on; those that exist are added until no new one is
    /// found.
    fn want_tree(&self, root: u32) -> Result<(), LoadError> {
        let mut known = BTreeSet::new();
        loop {
            let family = with_children(&[root]).unwrap_or_else(|_| vec![root]);
            let new: Vec<u32> = family.into_iter().filter(|&pid| known.insert(pid)).collect();
            if new.is_empty() {
                return Ok(());
            }
            new.into_iter().try_for_each(|pid| self.want(pid, root))?;
        }
    }

    fn begin(&self) -> Result<(), LoadError> {
        self.set_begin(clock::now().0)
    }

    fn set_begin(&self, at: u64) -> Result<(), LoadError> {
        let zero = 0_u32.to_ne_bytes();
        map(&self.object, ".bss.begin")
            .update(&zero, &at.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
    }
}

/// A process that is in no tree.
const ALONE: u32 = 0;

const BATCHES: usize = 20;
const CALLS: usize = 200;
/// More than the allocator keeps: each batch gets new pages.
const PAGES: usize = 64;
const PAGE: usize = 4_096;

/// The shortest system call.
fn call() {
    // SAFETY: it has no argument, and cannot fail.
    #[expect(unsafe_code, reason = "a system call without side effects has no safe wrapper")]
    unsafe {
        libc::syscall(libc::SYS_getppid);
    }
}

fn load(watched: &Watched) -> Result<Object, LoadError> {
    let mut open = ObjectBuilder::default().open_memory(crate::object!("cpu")).map_err(|e| refused(&e))?;
    for mut map in open.maps_mut() {
        if map.name() == ".rodata.everybody" {
            let everybody = [u8::from(*watched == Watched::Everybody)];
            map.set_initial_value(&everybody).map_err(|e| refused(&e))?;
        }
    }
    let types = Btf::from_vmlinux().map_err(|_| LoadError::NoTypes)?;
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let tracepoint = section.strip_prefix("tp_btf/").expect("all programs are at tracepoints");
        // Some exist on one machine type only.
        let is_there = types.type_by_name::<BtfType<'_>>(&format!("btf_trace_{tracepoint}")).is_some();
        program.set_autoload(is_there || !OPTIONAL.contains(&tracepoint));
    }
    open.load().map_err(|e| refused(&e))
}

const OPTIONAL: [&str; 3] = ["local_timer_entry", "local_timer_exit", "page_fault_user"];

fn map<'o>(object: &'o Object, name: &str) -> Map<'o> {
    object.maps().find(|map| map.name() == name).expect("the object has the maps that its source declares")
}

/// `struct clock` of `bpf/cpu.h`.
#[derive(Debug, Clone, Copy)]
struct Raw {
    at: u64,
    user: u64,
    system: u64,
    interrupt: u64,
    wall: u64,
    booked: u64,
    calls: u64,
    faults: u64,
    interrupts: u64,
    missed: u64,
    tgid: u32,
    mode: u32,
    ended: bool,
    is_whole: bool,
}

const MODE_USER: u32 = 1;

/// A consistent copy of a thread's clock. `None` when it is gone, or changes faster than it can be read: its owner
/// was stopped in the middle of a change, which lasts nanoseconds.
fn whole(clocks: &Map<'_>, key: &[u8]) -> Option<Raw> {
    for _ in 0..TRIES {
        let raw = Raw::parse(&clocks.lookup(key, MapFlags::ANY).ok()??)?;
        if raw.is_whole {
            return Some(raw);
        }
    }
    None
}

const TRIES: usize = 1_000;

/// `None` if /proc no longer lists the thread.
fn wants_to_run(pid: u32, tid: u32) -> Option<bool> {
    let stat = std::fs::read(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    Some(*stat.get(name_end + 2)? == b'R')
}

/// An exiting thread is on its CPU until the end, and no longer in /proc: that takes microseconds, and the ticks show
/// whether it is still running.
const LAST_WAY: Nanos = Nanos::from_secs(1);

impl Raw {
    fn parse(bytes: &[u8]) -> Option<Raw> {
        let long = |n: usize| Some(u64::from_ne_bytes(bytes.get(n * 8..n * 8 + 8)?.try_into().ok()?));
        let word = |n: usize| Some(u32::from_ne_bytes(bytes.get(112 + n * 4..116 + n * 4)?.try_into().ok()?));
        Some(Raw {
            at: long(1)?,
            user: long(2)?,
            system: long(3)?,
            interrupt: long(4)?,
            wall: long(7)?.wrapping_sub(long(5)?),
            booked: long(8)?.wrapping_sub(long(6)?),
            calls: long(9)?,
            faults: long(10)?,
            interrupts: long(11)?,
            missed: long(12)?,
            tgid: word(0)?,
            mode: word(1)?,
            ended: word(2)? != 0,
            is_whole: long(0)? == long(18)?,
        })
    }

    /// If its switch off a CPU was missed, a sleeping thread would seem to run until it wakes, and an ended one for
    /// ever. How long it ran before it slept is known once it wakes.
    fn seen_at_rest(self, tid: u32, now: Nanos) -> Raw {
        if self.at == 0 {
            return self;
        }
        match wants_to_run(self.tgid, tid) {
            Some(true) => self,
            Some(false) => Raw { at: 0, ..self },
            None if now.0.saturating_sub(self.at) < LAST_WAY.0 => self,
            None => Raw { at: 0, ended: true, missed: self.missed + 1, ..self },
        }
    }

    /// The times at the instant `now`: a thread on a CPU has been in its mode since its last boundary.
    fn boundaries(&self, now: Nanos) -> Boundaries {
        let open = if self.at == 0 { 0 } else { now.0.saturating_sub(self.at) };
        let is_user = self.mode == MODE_USER;
        Boundaries {
            user: Nanos(self.user + if is_user { open } else { 0 }),
            system: Nanos(self.system + if is_user { 0 } else { open }),
            interrupt: Nanos(self.interrupt),
            stolen_ns: self.wall.wrapping_sub(self.booked).cast_signed(),
            calls: self.calls,
            faults: self.faults,
            interrupts: self.interrupts,
            missed: self.missed,
        }
    }
}

impl Boundaries {
    /// Total time on a CPU, switch to switch.
    pub fn wall(&self) -> Nanos {
        self.user + self.system + self.interrupt
    }

    /// The difference to `before`, an earlier reading of the same.
    pub fn since(&self, before: &Boundaries) -> Boundaries {
        Boundaries {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            interrupt: self.interrupt.saturating_sub(before.interrupt),
            stolen_ns: self.stolen_ns - before.stolen_ns,
            calls: self.calls.saturating_sub(before.calls),
            faults: self.faults.saturating_sub(before.faults),
            interrupts: self.interrupts.saturating_sub(before.interrupts),
            missed: self.missed.saturating_sub(before.missed),
        }
    }

    fn add(&mut self, more: &Boundaries) {
        self.user += more.user;
        self.system += more.system;
        self.interrupt += more.interrupt;
        self.stolen_ns += more.stolen_ns;
        self.calls += more.calls;
        self.faults += more.faults;
        self.interrupts += more.interrupts;
        self.missed += more.missed;
    }

    /// An estimate of the kernel's time that was counted as user time. An interrupt costs as much as a call on its
    /// way in.
    fn hidden(&self, cost: BoundaryCost) -> Nanos {
        let calls = (self.calls + self.interrupts).saturating_mul(cost.call_ps);
        Nanos(calls.saturating_add(self.faults.saturating_mul(cost.fault_ps)) / 1_000)
    }

    fn corrected(mut self, cost: BoundaryCost) -> Boundaries {
        let hidden = self.hidden(cost).min(self.user);
        self.user = self.user - hidden;
        self.system += hidden;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(at: u64, mode: u32) -> Raw {
        let mut bytes = [0_u8; 152];
        for (n, value) in [7, at, 100, 200, 10, 50, 1_050, 350, 1_310, 3, 2, 1, 0, 5].into_iter().enumerate()
        {
            bytes[n * 8..n * 8 + 8].copy_from_slice(&u64::to_ne_bytes(value));
        }
        bytes[112..116].copy_from_slice(&u32::to_ne_bytes(42));
        bytes[116..120].copy_from_slice(&u32::to_ne_bytes(mode));
        bytes[144..].copy_from_slice(&u64::to_ne_bytes(7));
        Raw::parse(&bytes).unwrap()
    }

    #[test]
    fn time_since_the_last_boundary_belongs_to_the_current_mode() {
        let at_rest = raw(0, MODE_USER).boundaries(Nanos(1_000));
        assert_eq!((at_rest.user, at_rest.system, at_rest.interrupt), (Nanos(100), Nanos(200), Nanos(10)));
        // 300 on the wall clock, of which the scheduler counted 260.
        assert_eq!((at_rest.stolen_ns, at_rest.calls, at_rest.wall()), (40, 3, Nanos(310)));
        assert_eq!(raw(900, MODE_USER).boundaries(Nanos(1_000)).user, Nanos(200));
        assert_eq!(raw(900, 2).boundaries(Nanos(1_000)).system, Nanos(300));
        assert_eq!(raw(1_100, 2).boundaries(Nanos(1_000)).system, Nanos(200), "it went on after the instant");
    }

    #[test]
    fn time_before_a_visible_boundary_is_moved_to_the_kernel() {
        let time =
            Boundaries { user: Nanos(10_000), calls: 9, interrupts: 1, faults: 2, ..Boundaries::default() };
        let cost = BoundaryCost { call_ps: 200_000, fault_ps: 500_000 };
        assert_eq!(time.hidden(cost), Nanos(3_000));
        let corrected = time.corrected(cost);
        assert_eq!(
            (corrected.user, corrected.system, corrected.wall()),
            (Nanos(7_000), Nanos(3_000), time.wall())
        );
        let all = Boundaries { user: Nanos(100), ..time }.corrected(cost);
        assert_eq!((all.user, all.system), (Nanos::ZERO, Nanos(100)));
    }
}
