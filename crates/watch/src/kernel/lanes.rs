//! The lanes of events, one a CPU, that the kernel's side writes and this reads: `bpf/watch_lane.h`.
//!
//! Each lane is in order of its CPU alone. A round takes what has come by now, and hands over what is not later than
//! the latest of the round before: milliseconds ago, so every program that was to tell of that time has done so. Thus
//! events come out in the order of their time, whatever CPUs they are of; and by no clock but their own, which in a
//! time namespace is not this process's.

use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Map;
use memmap2::{MmapOptions, MmapRaw};
use zerocopy::FromBytes;

use super::event::Head;

/// Where a lane's events begin.
const HEAD: usize = 4096;

/// What may lie behind its end: an event that begins before it goes on there.
const SLACK: usize = 65_536;

/// No lane is smaller: it has to take what comes while this process is kept off its CPU.
const LEAST: usize = 512 << 10;

/// `struct lane`: positions that only grow.
#[repr(C)]
struct Marks {
    reserved: AtomicU64,
    pad: [u64; 7],
    taken: AtomicU64,
}

/// How large lanes are that share so much memory, without their heads: a power of two.
pub fn lane_bytes(all: usize, cpus: usize) -> usize {
    (all / cpus.max(1)).next_power_of_two().max(LEAST)
}

/// How large the value of the map is that is a lane.
pub fn value_bytes(lane_bytes: usize) -> usize {
    HEAD + lane_bytes + SLACK
}

/// Events, as they come.
pub struct Lanes {
    memory: MmapRaw,
    secret: u64,
    lane_bytes: usize,
    /// Up to where each lane was looked through.
    seen: Vec<u64>,
    /// What was seen and not handed over, in the order of its time.
    waiting: Vec<Waiting>,
    /// When the latest event was that the previous round saw.
    latest: u64,
}

/// An event that still lies in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: u64,
    lane: u32,
    position: u64,
    size: u32,
}

impl Lanes {
    /// Maps the lanes. `secret` is what the programs were told.
    ///
    /// # Errors
    ///
    /// When the kernel does not let this process map them.
    pub fn map(map: &Map<'_>, secret: u64, lane_bytes: usize, cpus: usize) -> std::io::Result<Lanes> {
        let length = value_bytes(lane_bytes) * cpus;
        let memory = MmapOptions::new().len(length).map_raw(map.as_fd().as_raw_fd())?;
        Ok(Lanes { memory, secret, lane_bytes, seen: vec![0; cpus], waiting: Vec::new(), latest: 0 })
    }

    /// Hands over what is not later than what the round before saw. Called every few milliseconds.
    ///
    /// # Cost
    ///
    /// A sort of what came since, which is in order but for the CPUs.
    pub fn round(&mut self, tell: impl FnMut(&[u8])) {
        let until = self.look().min(self.latest);
        self.latest = self.waiting.last().map_or(self.latest, |last| last.at);
        self.hand_over(until, tell);
    }

    /// Hands over all that has been told.
    pub fn rest(&mut self, tell: impl FnMut(&[u8])) {
        self.look();
        self.hand_over(u64::MAX, tell);
    }

    /// Sees what is new; the time up to which all of it is there.
    fn look(&mut self) -> u64 {
        let mut all_until = u64::MAX;
        for lane in 0..self.seen.len() {
            let reserved = self.marks(lane).reserved.load(Ordering::Acquire);
            let mut last = None;
            while self.seen[lane] < reserved {
                let position = self.seen[lane];
                let Some((at, size)) = self.whole_event(lane, position) else {
                    // Its program was interrupted while it wrote. Nothing later than what came before it is sure.
                    all_until = all_until.min(last.unwrap_or(0));
                    break;
                };
                last = Some(at);
                self.seen[lane] += u64::from(size);
                let lane = u32::try_from(lane).expect("CPUs are counted in 32 bits");
                self.waiting.push(Waiting { at, lane, position, size });
            }
        }
        self.waiting.sort();
        all_until
    }

    fn hand_over(&mut self, until: u64, mut tell: impl FnMut(&[u8])) {
        let told = self.waiting.partition_point(|waiting| waiting.at <= until);
        for &waiting in &self.waiting[..told] {
            tell(self.bytes(waiting));
        }
        self.waiting.drain(..told);
        if told > 0 {
            self.give_back();
        }
    }

    /// Lets the kernel's side have what was handed over.
    fn give_back(&mut self) {
        let mut free = self.seen.clone();
        for waiting in &self.waiting {
            let free = &mut free[waiting.lane as usize];
            *free = waiting.position.min(*free);
        }
        for (lane, free) in free.into_iter().enumerate() {
            self.marks(lane).taken.store(free, Ordering::Release);
        }
    }

    /// When the event at a position was, and its size; `None` as long as it is not whole.
    fn whole_event(&self, lane: usize, position: u64) -> Option<(u64, u32)> {
        let head = self.at(lane, position);
        // SAFETY: a multiple of eight within a mapping that is page-aligned and lives as long as `self`; the programs
        // write it as one word.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let stamp = unsafe { &*head.cast::<AtomicU64>() };
        if stamp.load(Ordering::Acquire) != position.wrapping_add(self.secret) {
            return None;
        }
        // SAFETY: as above; a whole event is not written again before it is given back.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let head = unsafe { std::slice::from_raw_parts(head, size_of::<Head>()) };
        let head = Head::ref_from_bytes(head).ok()?;
        let fits = (size_of::<Head>()..=SLACK).contains(&(head.size as usize));
        assert!(fits && head.size % 8 == 0, "the programs and this agree on how large an event is");
        Some((head.at, head.size))
    }

    fn bytes(&self, waiting: Waiting) -> &[u8] {
        let event = self.at(waiting.lane as usize, waiting.position);
        // SAFETY: it is whole, so its program has left it, and it was not given back; its size was checked, and what
        // begins within a lane ends within its slack.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let bytes = unsafe { std::slice::from_raw_parts(event, waiting.size as usize) };
        bytes
    }

    fn marks(&self, lane: usize) -> &Marks {
        // SAFETY: the head of a lane of the mapping, page-aligned; both sides only ever read and write whole words.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let marks = unsafe { &*self.lane(lane).cast::<Marks>() };
        marks
    }

    fn at(&self, lane: usize, position: u64) -> *const u8 {
        let offset =
            usize::try_from(position & (self.lane_bytes as u64 - 1)).expect("a lane fits into memory");
        self.lane(lane).wrapping_add(HEAD + offset)
    }

    fn lane(&self, lane: usize) -> *const u8 {
        assert!(lane < self.seen.len(), "there is a lane for each CPU");
        self.memory.as_ptr().wrapping_add(lane * value_bytes(self.lane_bytes))
    }
}

const _: () = assert!(offset_of!(Marks, taken) == 64);
