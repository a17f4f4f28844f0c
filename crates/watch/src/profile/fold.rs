//! Turns the sums in the kernel into stacks with names, and into the figures of a profile.

use std::collections::{BTreeMap, HashMap, HashSet};

use record::observation::profile::{NamelessFile, Picture, Sleeper, StackQuality};
use record::stacks::{Stacks, clean_frame, waits};

use super::layout::{FRAMES, GUESSED, Key, STACK_BEFORE, STACK_LOST, STACK_NONE, Weight};
use super::symbols::{Meaning, Symbols};

/// The result of naming a profile's stacks.
#[derive(Debug, Default)]
pub struct Folded {
    /// In the order of [`Picture::ALL`]: samples, then microseconds.
    pub stacks: [Stacks; 3],
    pub sums: [Weight; 3],
    pub sleepers: Vec<Sleeper>,
    pub quality: StackQuality,
    /// Samples whose stack is as deep as the kernel walks.
    pub deepest: u64,
}

/// Names every stack and adds it to its picture.
pub fn fold(weights: &[(Key, Weight)], addresses: &BTreeMap<i64, Vec<u64>>, symbols: &mut Symbols) -> Folded {
    let mut folding = Folding {
        addresses,
        symbols,
        nameless: HashMap::new(),
        sleepers: BTreeMap::new(),
        folded: Folded::default(),
    };
    for (key, weight) in weights {
        folding.add(key, *weight);
    }
    folding.end()
}

struct Folding<'p> {
    addresses: &'p BTreeMap<i64, Vec<u64>>,
    symbols: &'p mut Symbols,
    nameless: HashMap<String, u64>,
    sleepers: BTreeMap<(String, Option<&'static str>), Asleep>,
    folded: Folded,
}

#[derive(Default)]
struct Asleep {
    threads: HashSet<(u32, u32)>,
    sleeps: u64,
    ns: u64,
}

impl Folding<'_> {
    fn add(&mut self, key: &Key, weight: Weight) {
        let Some(picture) = key.picture() else { return };
        let mut frames = vec![clean_frame(&key.name())];
        self.user_frames(key, weight, picture, &mut frames);
        self.kernel_frames(key, picture, &mut frames);
        let n = key.picture as usize;
        let amount = if picture == Picture::OnCpu { weight.count } else { weight.ns };
        self.folded.stacks[n].add(frames.iter().map(String::as_str), amount);
        self.folded.sums[n].count += weight.count;
        self.folded.sums[n].ns += weight.ns;
        if picture == Picture::OffCpu {
            let reason = waits::rule_of(&frames[1..]).map(|rule| rule.what);
            let asleep = self.sleepers.entry((clean_frame(&key.name()), reason)).or_default();
            asleep.threads.insert((key.pid, key.tid));
            asleep.sleeps += weight.count;
            asleep.ns += weight.ns;
        }
    }

    fn user_frames(&mut self, key: &Key, weight: Weight, picture: Picture, frames: &mut Vec<String>) {
        let all = self.addresses;
        let Some(addresses) = all.get(&key.user) else {
            match key.user {
                STACK_BEFORE if picture == Picture::OffCpu => {
                    frames.push("[asleep since before the profile]".to_owned())
                }
                STACK_BEFORE => frames.push("[since before the profile]".to_owned()),
                STACK_NONE if key.kernel() == STACK_NONE => frames.push("[begins]".to_owned()),
                STACK_LOST => frames.push("[stack lost]".to_owned()),
                _ => {}
            }
            return;
        };
        let is_mended = key.user > 0 && key.user & GUESSED != 0;
        let trusted = if is_mended { self.trusted(key.pid, addresses) } else { addresses.clone() };
        let mut reaches = false;
        let last = trusted.len().saturating_sub(1);
        for (n, address) in trusted.iter().enumerate().rev() {
            let meaning = self.symbols.user(key.pid, *address, n > 0);
            reaches |= last - n < 4 && meaning.frames.iter().any(|frame| is_root(frame));
            // The C library's own entry point of a thread has no name if it is stripped.
            let is_begin = meaning.in_libc && n == last && n > 0;
            reaches |= is_begin;
            if picture == Picture::OnCpu {
                self.count_frame(&meaning, is_begin, weight.count);
            }
            frames.extend(meaning.frames.iter().cloned());
        }
        let quality = &mut self.folded.quality;
        let cut = if reaches { 0 } else { weight.count };
        let mended = if is_mended && last > 0 { weight.count } else { 0 };
        match picture {
            Picture::OnCpu => {
                quality.stacks += weight.count;
                quality.cut_stacks += cut;
                quality.mended_stacks += mended;
                self.folded.deepest += if addresses.len() >= FRAMES { weight.count } else { 0 };
            }
            Picture::OffCpu => {
                quality.sleeps += weight.count;
                quality.cut_sleeps += cut;
                quality.mended_sleeps += mended;
            }
            Picture::RunQueue => {}
        }
    }

    fn count_frame(&mut self, meaning: &Meaning, is_begin: bool, count: u64) {
        self.folded.quality.frames += count;
        if let Some(file) = meaning.nameless.as_ref().filter(|_| !is_begin) {
            self.folded.quality.unknown_frames += count;
            *self.nameless.entry(file.clone()).or_default() += count;
        }
    }

    /// The plausible frames of a repaired stack: all must be code, and it must have been repaired in a function of
    /// the C library.
    fn trusted(&mut self, pid: u32, addresses: &[u64]) -> Vec<u64> {
        let Some((leaf, callers)) = addresses.split_first() else { return Vec::new() };
        let mut trusted = vec![*leaf];
        if self.symbols.user(pid, *leaf, false).in_libc {
            let space = self.symbols.spaces().of(pid);
            let is_code = |address: &&u64| space.is_some_and(|space| space.find(**address).is_some());
            trusted.extend(callers.iter().take_while(is_code));
        }
        trusted
    }

    fn kernel_frames(&mut self, key: &Key, picture: Picture, frames: &mut Vec<String>) {
        let Some(addresses) = self.addresses.get(&key.kernel()) else {
            if key.kernel() == STACK_LOST {
                frames.push("[kernel stack lost]_[k]".to_owned());
            }
            return;
        };
        let named: Vec<_> = addresses.iter().map(|address| self.symbols.kernel(*address)).collect();
        // The frames from the switch to the program that reports it are not the thread's.
        let ours =
            if picture == Picture::OnCpu { 0 } else { ours(named.iter().map(|m| m.frames[0].as_str())) };
        for meaning in named[ours..].iter().rev() {
            frames.extend(meaning.frames.iter().cloned());
        }
    }

    fn end(mut self) -> Folded {
        let [on, off, queue] = std::mem::take(&mut self.folded.stacks);
        self.folded.stacks = [on, off.scaled_down(1_000), queue.scaled_down(1_000)];
        let mut files: Vec<_> =
            self.nameless.into_iter().map(|(file, frames)| NamelessFile { file, frames }).collect();
        files.sort_by(|a, b| (b.frames, &a.file).cmp(&(a.frames, &b.file)));
        files.truncate(NAMELESS_MOST);
        self.folded.quality.nameless = files;
        let sleeper = |((thread, what), asleep): ((String, Option<&str>), Asleep)| Sleeper {
            thread,
            threads: asleep.threads.len() as u64,
            sleeps: asleep.sleeps,
            asleep_ns: asleep.ns,
            what: what.map(str::to_owned),
        };
        let mut sleepers: Vec<_> = self.sleepers.into_iter().map(sleeper).collect();
        sleepers.sort_by_key(|sleeper| std::cmp::Reverse(sleeper.asleep_ns));
        sleepers.truncate(SLEEPERS_MOST);
        self.folded.sleepers = sleepers;
        self.folded
    }
}

/// How many frames at the leaf belong to the context switch and to the program that reports it.
fn ours<'n>(mut leaf_first: impl Iterator<Item = &'n str>) -> usize {
    const SWITCH: &str = "__schedule_[k]";
    const WITHIN: usize = 10;
    leaf_first.by_ref().take(WITHIN).position(|name| name == SWITCH).map_or(0, |at| at + 1)
}

fn is_root(frame: &str) -> bool {
    ROOTS.contains(&waits::plain(frame)) || frame.starts_with("std::rt::lang_start")
}

/// Functions that threads begin in: a stack that reaches one is complete.
const ROOTS: [&str; 12] = [
    "_start",
    "main",
    "start_thread",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__libc_start_main",
    "__libc_start_call_main",
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
];
/// As many as a reader will look at.
const NAMELESS_MOST: usize = 8;
const SLEEPERS_MOST: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_the_program_itself_are_not_part_of_the_stack() {
        let names =
            ["bpf_prog_1_on_switch_[k]", "__traceiter_sched_switch_[k]", "__schedule_[k]", "schedule_[k]"];
        assert_eq!(ours(names.into_iter()), 3);
        assert_eq!(ours(["schedule_[k]"].into_iter()), 0);
    }
}
