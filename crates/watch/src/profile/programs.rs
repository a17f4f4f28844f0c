//! Loads the programs of `bpf/profile.bpf.c`, attaches them, and reads their sums.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramMut};
use units::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{self, Control, Key, Libraries, Rule, SECOND_TABLE, Totals, WALKED, Weight};
use crate::kernel::LoadError;
use crate::kernel::load::{begin, keep_statistics, map, programs_of, refused, word};

/// The loaded programs, attached until dropped.
pub struct Programs {
    object: Object,
    links: Vec<Link>,
    statistics: Option<OwnedFd>,
    began: Nanos,
}

/// The cost of all programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    pub runs: u64,
    pub time: Nanos,
    /// Runs that the kernel skipped.
    pub skipped: u64,
}

impl Programs {
    /// Loads and attaches everything; no process is watched yet.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when the programs cannot be loaded or attached.
    pub fn load(rate: u32) -> Result<Programs, LoadError> {
        begin()?;
        let open =
            ObjectBuilder::default().open_memory(crate::object!("profile")).map_err(|e| refused(&e))?;
        let object = open.load().map_err(|e| refused(&e))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            match program.name().to_str() {
                Some(SAMPLER) => links.extend(sample(&program, rate)?),
                // Runs once, when it is read.
                Some(LAST) => {}
                _ => links.push(program.attach().map_err(|e| refused(&e))?),
            }
        }
        // Without it the cost is absent, and the record states that.
        let statistics = keep_statistics().ok();
        Ok(Programs { object, links, statistics, began: Nanos::ZERO })
    }

    /// Counts from now on what the threads of `processes`, and of processes forked by them, do.
    ///
    /// # Errors
    ///
    /// When the kernel accepts no more processes.
    pub fn watch(&mut self, processes: &[u32], now: Nanos) -> Result<(), LoadError> {
        self.began = now;
        let only_process = if let [only] = processes { *only } else { 0 };
        // First, so that no thread is found before the beginning is set.
        self.control(Control { began: now.0, ended: 0, only_process, pad: 0 })?;
        let known = map(&self.object, "processes");
        for process in processes {
            let nobody = 0_u32.to_ne_bytes();
            known.update(&process.to_ne_bytes(), &nobody, MapFlags::ANY).map_err(|e| refused(&e))?;
        }
        Ok(())
    }

    /// Also counts a process whose fork was not seen. If there is no room, the process is left out.
    pub fn follow(&self, pid: u32) {
        let nobody = 0_u32.to_ne_bytes();
        let known = map(&self.object, "processes").update(&pid.to_ne_bytes(), &nobody, MapFlags::ANY);
        if known.is_ok() {
            let _ = self.control(Control { began: self.began.0, ended: 0, only_process: 0, pad: 0 });
        }
    }

    /// Stops counting: what threads are doing is counted up to now.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to walk its threads.
    pub fn stop(&mut self, now: Nanos) -> Result<(), LoadError> {
        self.control(Control { began: self.began.0, ended: now.0, only_process: 0, pad: 0 })?;
        self.links.clear();
        let program = self.object.progs_mut().find(|program| program.name() == LAST);
        let program = program.expect("the object has the programs that its source declares");
        let link = program.attach().map_err(|e| refused(&e))?;
        let mut walk = Iter::new(&link).map_err(|e| refused(&e))?;
        let mut nothing = [0; 64];
        while walk.read(&mut nothing).map_err(|e| LoadError::Refused(e.to_string()))? > 0 {}
        Ok(())
    }

    fn control(&self, control: Control) -> Result<(), LoadError> {
        let zero = 0_u32.to_ne_bytes();
        map(&self.object, ".bss.control")
            .update(&zero, control.as_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
    }

    /// Puts rules into the kernel's table; `None` when the kernel refuses.
    pub fn set_rules(&self, first: u32, rules: &[Rule]) -> Option<()> {
        let count = u32::try_from(rules.len()).ok()?;
        let places: Vec<u32> = (first..first.checked_add(count)?).collect();
        let table = map(&self.object, "rules");
        let any = MapFlags::ANY;
        table.update_batch(places.as_bytes(), rules.as_bytes(), count, any, any).ok()
    }

    /// Sets the libraries of a process that have rules in the table. Other code is walked by frame pointers.
    pub fn set_libraries(&self, pid: u32, libraries: &Libraries) {
        let _ =
            map(&self.object, "libraries").update(&pid.to_ne_bytes(), libraries.as_bytes(), MapFlags::ANY);
    }

    /// The watched processes, each with the pid of the process that forked it, or 0.
    pub fn processes(&self) -> Vec<(u32, u32)> {
        let processes = map(&self.object, "processes");
        let row = |key: Vec<u8>| {
            let parent = processes.lookup(&key, MapFlags::ANY).ok().flatten()?;
            Some((word(&key)?, word(&parent)?))
        };
        processes.keys().filter_map(row).collect()
    }

    /// The sums over all CPUs so far.
    pub fn totals(&self) -> Totals {
        let zero = 0_u32.to_ne_bytes();
        let values = map(&self.object, "totals").lookup_percpu(&zero, MapFlags::ANY).ok().flatten();
        let mut sum = Totals::default();
        for value in values.unwrap_or_default() {
            if let Ok((totals, _)) = Totals::read_from_prefix(&value) {
                sum.add(&totals);
            }
        }
        sum
    }

    /// All sums, by stack and thread.
    pub fn weights(&self) -> Vec<(Key, Weight)> {
        let weights = map(&self.object, "weights");
        let row = |raw: Vec<u8>| {
            let value = weights.lookup(&raw, MapFlags::ANY).ok().flatten()?;
            Some((Key::read_from_bytes(&raw).ok()?, Weight::read_from_prefix(&value).ok()?.0))
        };
        weights.keys().filter_map(row).collect()
    }

    /// The addresses of each of `stacks`, the leaf first.
    pub fn stacks(&self, stacks: impl Iterator<Item = i64>) -> BTreeMap<i64, Vec<u64>> {
        let tables = [map(&self.object, "stacks"), map(&self.object, "more_stacks")];
        let walked = map(&self.object, "walked_stacks");
        let mut found = BTreeMap::new();
        for stack in stacks.filter(|stack| *stack >= 0) {
            found.entry(stack).or_insert_with(|| {
                let raw = if stack & WALKED != 0 {
                    walked.lookup(&stack.to_ne_bytes(), MapFlags::ANY)
                } else {
                    let table = &tables[usize::from(stack & SECOND_TABLE != 0)];
                    let number =
                        u32::try_from(stack & !SECOND_TABLE).expect("a place in a table has 30 bits");
                    table.lookup(&number.to_ne_bytes(), MapFlags::ANY)
                };
                layout::addresses(&raw.ok().flatten().unwrap_or_default())
            });
        }
        found
    }

    /// The cost of the programs so far; `None` if the kernel does not report it.
    pub fn cost(&self) -> Option<Cost> {
        self.statistics.as_ref()?;
        let mut sum = Cost::default();
        for program in programs_of(&self.object) {
            sum.runs += program.run_cnt;
            sum.time += Nanos(program.run_time_ns);
            sum.skipped += program.recursion_misses;
        }
        Some(sum)
    }
}

const SAMPLER: &str = "on_sample";
const LAST: &str = "at_end";

/// The sampler on every CPU that is online. A CPU that comes online later has none.
fn sample(program: &ProgramMut<'_>, rate: u32) -> Result<Vec<Link>, LoadError> {
    let cpus = online().map_err(|e| LoadError::Refused(format!("which CPUs are online: {e}")))?;
    let attach = |cpu: u32| {
        let event = open_event(cpu, rate).map_err(|error| match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => LoadError::Privilege,
            _ => LoadError::Refused(format!("a perf event on CPU {cpu}: {error}")),
        })?;
        let link = program.attach_perf_event(event.as_raw_fd()).map_err(|e| refused(&e))?;
        // The link closes it.
        let _ = event.into_raw_fd();
        Ok(link)
    };
    cpus.into_iter().map(attach).collect()
}

/// The first 64 bytes of `struct perf_event_attr` of linux/perf_event.h, its first published version.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    frequency: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// The CPU's own clock rather than its cycle counter: each sample stands for the same time on every machine.
fn open_event(cpu: u32, rate: u32) -> io::Result<OwnedFd> {
    const SOFTWARE: u32 = 1;
    const CPU_CLOCK: u64 = 0;
    const EXCLUDE_IDLE: u64 = 1 << 7;
    const FREQUENCY: u64 = 1 << 10;
    const CLOSE_ON_EXEC: libc::c_ulong = 8;
    let attributes = Attributes {
        kind: SOFTWARE,
        size: 64,
        config: CPU_CLOCK,
        frequency: u64::from(rate),
        sample_type: 0,
        read_format: 0,
        flags: EXCLUDE_IDLE | FREQUENCY,
        wakeup: 0,
        breakpoint: 0,
        config1: 0,
    };
    let cpu = libc::c_int::try_from(cpu).map_err(io::Error::other)?;
    // SAFETY: the attributes live through the call and have the length they state; any process, this CPU, no group.
    #[expect(unsafe_code, reason = "perf_event_open has no safe wrapper")]
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1 as libc::c_int,
            cpu,
            -1 as libc::c_int,
            CLOSE_ON_EXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    let event = i32::try_from(event).map_err(io::Error::other)?;
    // SAFETY: just made, and nothing else owns it.
    #[expect(unsafe_code, reason = "a descriptor of a raw system call")]
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online")?;
    cpus(text.trim()).ok_or_else(|| io::Error::other(format!("`{}` is no list of CPUs", text.trim())))
}

/// Parses `0-3,8`: never more than the kernel can have.
fn cpus(text: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 8_192;
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if last >= MOST {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_read() {
        assert_eq!(cpus("0-2,5").unwrap(), [0, 1, 2, 5]);
        assert_eq!(cpus("0").unwrap(), [0]);
        assert!(cpus("0-4294967295").is_none());
        assert!(cpus("").is_none());
    }
}
