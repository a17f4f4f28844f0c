//! The lanes of events, two a CPU, that the kernel's side writes and this reads: `bpf/watch_lane.h`.
//!
//! Each lane is in order of its CPU alone. A round takes what has come by now, and hands over what is not later than
//! the latest of the round before: a millisecond ago or more, so every program that was to tell of that time has done
//! so. Thus events come out in the order of their time, whatever CPUs they are of; and by no clock but their own, which
//! in a time namespace is not this process's. What a program tells late, since a hypervisor took its CPU just then,
//! comes out after what is later on other CPUs, and in its place among that of its own.

use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Map;
use memmap2::{MmapOptions, MmapRaw};
use units::Nanos;
use zerocopy::FromBytes;

use super::event::Head;

/// Where a lane's events begin.
const HEAD: usize = 4096;

/// What may lie behind its end: an event that begins before it goes on there.
const SLACK: usize = 65_536;

/// How long a CPU's first lane is: it stays in the CPU's cache.
const FIRST: usize = 1 << 18;

/// No second lane is smaller: it has to take what comes while this process is kept off its CPU.
const LEAST: usize = 1 << 20;

/// From round to round: each costs the host a wake-up, and programs are given so much time at least to tell.
const LONGEST: Nanos = Nanos::from_millis(10);
const SHORTEST: Nanos = Nanos::from_millis(1);

/// The part of a first lane that is to fill from round to round: two rounds' events lie there, and a quarter is kept
/// for the longest.
const PART: u64 = 4;

/// `struct lane`: positions that only grow.
#[repr(C)]
struct Marks {
    reserved: AtomicU64,
    pad: [u64; 7],
    taken: AtomicU64,
}

/// How large second lanes are that share so much memory, without their heads: a power of two.
pub fn overflow_bytes(all: usize, cpus: usize) -> usize {
    (all / cpus.max(1)).next_power_of_two().max(LEAST)
}

/// How large the value of the map is that is a lane.
pub fn value_bytes(lane_bytes: usize) -> usize {
    HEAD + lane_bytes + SLACK
}

/// Events, as they come.
pub struct Lanes {
    /// The first lanes of all CPUs, then the second ones; numbered in that order.
    rows: [Row; 2],
    secret: u64,
    /// Up to where each lane was looked through, and when the last event there was.
    seen: Vec<u64>,
    last: Vec<u64>,
    /// What was seen and not handed over, in the order of its time.
    waiting: Vec<Waiting>,
    /// When the latest event was that the previous round saw.
    latest: u64,
    /// How long the lanes can wait for the next round.
    patience: Nanos,
}

/// Lanes of one length, one a CPU.
struct Row {
    memory: MmapRaw,
    lane_bytes: usize,
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
    /// Maps the first and the second lanes. `secret` is what the programs were told.
    ///
    /// # Errors
    ///
    /// When the kernel does not let this process map them.
    pub fn map(
        maps: (&Map<'_>, &Map<'_>),
        secret: u64,
        overflow_bytes: usize,
        cpus: usize,
    ) -> std::io::Result<Lanes> {
        let row = |map: &Map<'_>, lane_bytes| {
            let length = value_bytes(lane_bytes) * cpus;
            let memory = MmapOptions::new().len(length).map_raw(map.as_fd().as_raw_fd())?;
            Ok::<_, std::io::Error>(Row { memory, lane_bytes })
        };
        Ok(Lanes::in_memory([row(maps.0, FIRST)?, row(maps.1, overflow_bytes)?], secret, cpus))
    }

    fn in_memory(rows: [Row; 2], secret: u64, cpus: usize) -> Lanes {
        for row in &rows {
            assert!(row.memory.len() >= value_bytes(row.lane_bytes) * cpus, "all lanes are mapped");
        }
        let (seen, last) = (vec![0; 2 * cpus], vec![0; 2 * cpus]);
        Lanes { rows, secret, seen, last, waiting: Vec::new(), latest: 0, patience: LONGEST }
    }

    /// How long the lanes can wait for the next round, by what came in the last.
    pub fn patience(&self) -> Nanos {
        self.patience
    }

    /// Hands over what is not later than what the round before saw. Called as often as [`Lanes::patience`] says.
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
        let mut most = 0;
        for lane in 0..self.seen.len() {
            let reserved = self.marks(lane).reserved.load(Ordering::Acquire);
            most = most.max(reserved - self.seen[lane]);
            while self.seen[lane] < reserved {
                let position = self.seen[lane];
                let Some((at, size)) = self.whole_event(lane, position) else {
                    // Its program was interrupted while it wrote. Nothing later than what came before it is sure.
                    all_until = all_until.min(self.last[lane]);
                    break;
                };
                self.last[lane] = at;
                self.seen[lane] += u64::from(size);
                let lane = u32::try_from(lane).expect("CPUs are counted in 32 bits");
                self.waiting.push(Waiting { at, lane, position, size });
            }
        }
        self.patience = patience(self.patience, most, self.rows[0].lane_bytes as u64 / PART);
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
        let size = u32::from(head.words) * 8;
        let fits = (size_of::<Head>()..=SLACK).contains(&(size as usize));
        assert!(fits, "the programs and this agree on how large an event is");
        Some((head.at, size))
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
        let (row, _) = self.row_of(lane);
        let offset =
            usize::try_from(position & (row.lane_bytes as u64 - 1)).expect("a lane fits into memory");
        self.lane(lane).wrapping_add(HEAD + offset)
    }

    fn lane(&self, lane: usize) -> *const u8 {
        let (row, cpu) = self.row_of(lane);
        row.memory.as_ptr().wrapping_add(cpu * value_bytes(row.lane_bytes))
    }

    /// The row of a lane, and its CPU.
    fn row_of(&self, lane: usize) -> (&Row, usize) {
        let cpus = self.seen.len() / 2;
        (&self.rows[lane / cpus], lane % cpus)
    }
}

const _: () = assert!(offset_of!(Marks, taken) == 64);

/// As long as the part of a lane that is to fill takes, when `most` bytes took so long as was waited.
fn patience(waited: Nanos, most: u64, part: u64) -> Nanos {
    let fills = waited.0.saturating_mul(part) / most.max(1);
    Nanos(fills.clamp(SHORTEST.0, LONGEST.0))
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;
    use proptest::prelude::*;

    use super::*;

    const SECRET: u64 = 0x5eed_0000_0000_0001;
    const LANE: usize = 4096;
    const NOTHING: [u64; 0] = [];
    const BARE: usize = size_of::<Head>();

    /// Lanes that nobody shares, and what the kernel's side would write.
    struct Planted(Lanes);

    impl Planted {
        fn new(cpus: usize) -> Planted {
            let row = || {
                let memory = MmapMut::map_anon(value_bytes(LANE) * cpus).unwrap();
                Row { memory: memory.into(), lane_bytes: LANE }
            };
            Planted(Lanes::in_memory([row(), row()], SECRET, cpus))
        }

        /// Takes a place, as far as there is room, and writes all but the stamp.
        fn begin(&mut self, lane: usize, at: u64, bytes: &[u8]) -> Option<u64> {
            let size = (BARE + bytes.len()).next_multiple_of(8);
            let marks = self.0.marks(lane);
            let position = marks.reserved.load(Ordering::Relaxed);
            if position + size as u64 - marks.taken.load(Ordering::Relaxed) > LANE as u64 {
                return None;
            }
            marks.reserved.store(position + size as u64, Ordering::Relaxed);
            self.write(lane, position, offset_of!(Head, at), &at.to_ne_bytes());
            self.write(lane, position, offset_of!(Head, words), &((size / 8) as u16).to_ne_bytes());
            self.write(lane, position, BARE, bytes);
            Some(position)
        }

        fn end(&mut self, lane: usize, position: u64) {
            self.write(lane, position, 0, &(position + SECRET).to_ne_bytes());
        }

        fn tell(&mut self, lane: usize, at: u64, bytes: &[u8]) -> bool {
            let position = self.begin(lane, at, bytes);
            position.inspect(|&position| self.end(lane, position)).is_some()
        }

        fn write(&mut self, lane: usize, position: u64, offset: usize, bytes: &[u8]) {
            let at = self.0.at(lane, position).wrapping_add(offset).cast_mut();
            // SAFETY: within the mapping: an event that begins in a lane ends in its slack at the latest. Nobody else
            // has it.
            #[expect(unsafe_code, reason = "what the kernel's side does")]
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            }
        }

        fn round(&mut self) -> Vec<u64> {
            let mut told = Vec::new();
            self.0.round(|raw| told.push(at_of(raw)));
            told
        }
    }

    fn at_of(raw: &[u8]) -> u64 {
        Head::ref_from_prefix(raw).unwrap().0.at
    }

    #[test]
    fn all_lanes_come_in_the_order_of_their_time() {
        let mut planted = Planted::new(3);
        for (lane, at) in [(0, 10), (0, 30), (1, 20), (2, 5), (1, 40)] {
            assert!(planted.tell(lane, at, b""));
        }
        assert_eq!(planted.round(), NOTHING, "another lane may still be about to tell of then");
        assert!(planted.tell(2, 15, b""));
        assert_eq!(planted.round(), [5, 10, 15, 20, 30, 40]);
    }

    /// If this fails, half an event is read, or what came after it is told before it.
    #[test]
    fn an_event_that_is_being_written_holds_back_what_came_later() {
        let mut planted = Planted::new(2);
        assert!(planted.tell(0, 10, b""));
        let position = planted.begin(0, 12, b"half").unwrap();
        for (lane, at) in [(0, 14), (1, 5), (1, 20)] {
            assert!(planted.tell(lane, at, b""));
        }
        assert_eq!(planted.round(), NOTHING);
        assert_eq!(planted.round(), [5, 10]);
        planted.end(0, position);
        assert_eq!(planted.round(), [12, 14, 20]);
    }

    /// If this fails, a burst that fills a CPU's first lane comes out of order, or not at all.
    #[test]
    fn what_a_full_lane_left_to_the_second_comes_in_its_place() {
        let mut planted = Planted::new(2);
        for (lane, at) in [(1, 10), (3, 20), (3, 30), (1, 40), (0, 25)] {
            assert!(planted.tell(lane, at, b""));
        }
        planted.round();
        assert_eq!(planted.round(), [10, 20, 25, 30, 40]);
        let second = planted.0.marks(3);
        assert_eq!(second.taken.load(Ordering::Relaxed), second.reserved.load(Ordering::Relaxed));
    }

    #[test]
    fn rounds_follow_each_other_as_fast_as_a_lane_fills() {
        let part = 64 << 10;
        assert_eq!(patience(LONGEST, 0, part), LONGEST);
        assert_eq!(patience(LONGEST, part * 2, part), Nanos::from_millis(5));
        assert_eq!(patience(Nanos::from_millis(5), part, part), Nanos::from_millis(5), "as it should be");
        assert_eq!(patience(Nanos::from_millis(5), part / 4, part), LONGEST);
        assert_eq!(patience(LONGEST, part * 1000, part), SHORTEST);
    }

    #[test]
    fn what_lay_there_a_lap_ago_is_no_event() {
        let mut planted = Planted::new(1);
        // Each lap begins at the same place, and all that is there looks like the stamps of the lap before.
        for lap in 0..5_u64 {
            let stamp = (lap * LANE as u64 + SECRET).to_ne_bytes();
            assert!(planted.tell(0, lap * 10 + 1, &stamp.repeat((LANE - BARE) / 8)));
            assert!(planted.begin(0, 0, b"").is_none(), "it is full");
            planted.round();
            assert_eq!(planted.round(), [lap * 10 + 1]);
        }
        let position = planted.begin(0, 99, b"").unwrap();
        assert_eq!((planted.round(), planted.round()), (vec![], vec![]));
        planted.end(0, position);
        planted.round();
        assert_eq!(planted.round(), [99]);
    }

    proptest! {
        /// Whatever is told is handed over once, in order, and its room is given back.
        #[test]
        fn nothing_is_lost_and_nothing_comes_twice(
            steps in proptest::collection::vec((0_usize..6, 0_usize..900, any::<bool>()), 1..300)
        ) {
            let mut planted = Planted::new(3);
            let (mut told, mut came) = (Vec::new(), Vec::new());
            for (at, (lane, length, round)) in steps.into_iter().enumerate() {
                if planted.tell(lane, at as u64, &vec![at as u8; length]) {
                    told.push((at as u64, length));
                }
                if round {
                    planted.0.round(|raw| came.push(told_by(raw)));
                }
            }
            planted.0.rest(|raw| came.push(told_by(raw)));
            prop_assert_eq!(came.iter().map(|one| one.0).collect::<Vec<_>>(), told.iter().map(|one| one.0).collect::<Vec<_>>());
            for (&(_, length), (_, bytes)) in told.iter().zip(&came) {
                prop_assert_eq!(length.next_multiple_of(8), bytes.len());
            }
            for lane in 0..6 {
                let marks = planted.0.marks(lane);
                prop_assert_eq!(marks.taken.load(Ordering::Relaxed), marks.reserved.load(Ordering::Relaxed));
            }
        }
    }

    fn told_by(raw: &[u8]) -> (u64, Vec<u8>) {
        let bytes = raw[BARE..].to_vec();
        let at = at_of(raw);
        assert!(bytes.iter().rev().skip(7).all(|&byte| byte == at as u8), "the bytes are its own");
        (at, bytes)
    }
}
