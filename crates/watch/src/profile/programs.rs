//! Loads the programs of `bpf/profile.bpf.c`, attaches them, and reads their sums.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::OwnedFd;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder};
use units::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{self, Control, Key, Libraries, Rule, SECOND_TABLE, Totals, WALKED, Weight};
use super::sampler::Sampler;
use crate::kernel::LoadError;
use crate::kernel::load::{begin, keep_statistics, map, programs_of, refused, word};

/// The loaded programs, attached until dropped.
pub struct Programs {
    object: Object,
    links: Vec<Link>,
    sampler: Sampler,
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
        let (mut links, mut sampler) = (Vec::new(), Sampler::new(rate, clock::now()));
        for program in object.progs_mut() {
            match program.name().to_str() {
                Some(SAMPLER) => sampler.attach(&program)?,
                // Runs once, when it is read.
                Some(LAST) => {}
                _ => links.push(program.attach().map_err(|e| refused(&e))?),
            }
        }
        // Without it the cost is absent, and the record states that.
        let statistics = keep_statistics().ok();
        Ok(Programs { object, links, sampler, statistics, began: Nanos::ZERO })
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

    /// Draws new times between samples, if that is due; returns when it is due next.
    ///
    /// # Cost
    ///
    /// A system call and an interrupt per CPU.
    pub fn vary(&mut self, now: Nanos) -> Nanos {
        self.sampler.vary(now)
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
        self.sampler.stop();
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
