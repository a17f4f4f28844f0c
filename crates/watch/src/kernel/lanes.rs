//! The lanes of events, two per CPU, written by the kernel's programs and emptied here: `bpf/watch_lane.h`.
//!
//! Each lane is in order for its own CPU only. A round copies what has arrived, and is complete up to the latest event
//! of the previous round, which is at least a millisecond ago, so every program that had to report something from that
//! time has done so. `backlog.rs` passes events on in the order of time across all CPUs, by their own clock, which in a
//! time namespace is not this process's clock. An event that a program writes late, because a hypervisor took its CPU,
//! comes after later events of other CPUs, but in order among those of its own CPU.

use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use libbpf_rs::Map;
use memmap2::{MmapOptions, MmapRaw};
use units::Nanos;
use zerocopy::FromBytes;

use super::backlog::Batch;
use super::event::Head;

/// Where a lane's events begin.
const HEAD: usize = 4096;

/// The space after the end of a lane: an event that begins before the end continues there.
const SLACK: usize = 65_536;

/// The length of a CPU's first lane: small enough to stay in the CPU's cache.
const FIRST: usize = 1 << 18;

/// Minimum size of a second lane: it must hold what arrives while this process has no CPU.
const LEAST: usize = 1 << 20;

/// The time between rounds: each costs the host a wake-up, and gives programs at least this much time to report.
const LONGEST: Nanos = Nanos::from_millis(10);
const SHORTEST: Nanos = Nanos::from_millis(1);

/// The part of a first lane that may fill between rounds: two rounds' events are in it, and a quarter is reserved for
/// the longest.
const PART: u64 = 4;

/// `struct lane`: positions that only grow.
#[repr(C)]
struct Marks {
    reserved: AtomicU64,
    pad: [u64; 7],
    taken: AtomicU64,
}

/// The size of second lanes that share `all` bytes, without their heads: a power of two.
pub fn overflow_bytes(all: usize, cpus: usize) -> usize {
    (all / cpus.max(1)).next_power_of_two().max(LEAST)
}

/// The size of the map value that holds a lane.
pub fn value_bytes(lane_bytes: usize) -> usize {
    HEAD + lane_bytes + SLACK
}

/// The reading side of all lanes.
pub struct Lanes {
    /// The first lanes of all CPUs, then the second ones; numbered in that order.
    rows: [Row; 2],
    secret: u64,
    /// Up to where each lane was read, and the time of the last event there.
    seen: Vec<u64>,
    last: Vec<u64>,
    /// The time of the latest event that was read.
    latest: u64,
    /// How long the lanes can wait for the next round.
    patience: Nanos,
}

/// Lanes of one length, one per CPU.
struct Row {
    memory: MmapRaw,
    lane_bytes: usize,
}

impl Lanes {
    /// Maps the first and the second lanes. `secret` is the one that the programs use.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to map them.
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
        Lanes { rows, secret, seen, last, latest: 0, patience: LONGEST }
    }

    /// How long the lanes can wait for the next round, estimated from the last.
    pub fn patience(&self) -> Nanos {
        self.patience
    }

    /// Moves what is new to `batch`, which is empty, and returns its space to the kernel's programs. Call as often as
    /// [`Lanes::patience`] returns.
    ///
    /// # Cost
    ///
    /// One copy of the new bytes.
    pub fn collect(&mut self, batch: &mut Batch) {
        let complete = self.latest;
        let until = self.move_new(batch);
        batch.complete_until(until.min(complete));
    }

    /// Moves what is new; returns the time up to which it is complete, as far as programs have begun to write.
    fn move_new(&mut self, batch: &mut Batch) -> u64 {
        let mut all_until = u64::MAX;
        let mut most = 0;
        for lane in 0..self.seen.len() {
            let reserved = self.marks(lane).reserved.load(Ordering::Acquire);
            most = most.max(reserved - self.seen[lane]);
            while self.seen[lane] < reserved {
                let position = self.seen[lane];
                let Some((at, event)) = self.whole_event(lane, position) else {
                    // A program was interrupted while it wrote. Nothing later than the event before it is certain.
                    all_until = all_until.min(self.last[lane]);
                    break;
                };
                batch.push(at, u32::try_from(lane).expect("CPUs are counted in 32 bits"), event);
                let size = event.len() as u64;
                self.last[lane] = at;
                self.latest = self.latest.max(at);
                self.seen[lane] += size;
            }
            self.marks(lane).taken.store(self.seen[lane], Ordering::Release);
        }
        self.patience = patience(self.patience, most, self.rows[0].lane_bytes as u64 / PART);
        all_until
    }

    /// The time of the event at a position, and the event; `None` as long as it is incomplete.
    fn whole_event(&self, lane: usize, position: u64) -> Option<(u64, &[u8])> {
        let place = self.at(lane, position);
        // SAFETY: a multiple of eight within a mapping that is page-aligned and lives as long as `self`; the programs
        // write it as one word.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let stamp = unsafe { &*place.cast::<AtomicU64>() };
        if stamp.load(Ordering::Acquire) != position.wrapping_add(self.secret) {
            return None;
        }
        // SAFETY: as above; a complete event is not overwritten before its space is returned.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let head = unsafe { std::slice::from_raw_parts(place, size_of::<Head>()) };
        let head = Head::ref_from_bytes(head).ok()?;
        let size = usize::from(head.words) * 8;
        let fits = (size_of::<Head>()..=SLACK).contains(&size);
        assert!(fits, "the programs and this agree on how large an event is");
        // SAFETY: as above; its size was checked, and what begins within a lane ends within its slack.
        #[expect(unsafe_code, reason = "memory that the kernel writes")]
        let event = unsafe { std::slice::from_raw_parts(place, size) };
        Some((head.at, event))
    }

    fn marks(&self, lane: usize) -> &Marks {
        // SAFETY: the head of a lane of the mapping, page-aligned; both sides read and write whole words only.
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

/// How long the usable part of a lane takes to fill, when `most` bytes came in the time that was waited.
fn patience(waited: Nanos, most: u64, part: u64) -> Nanos {
    let fills = waited.0.saturating_mul(part) / most.max(1);
    Nanos(fills.clamp(SHORTEST.0, LONGEST.0))
}

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;
    use proptest::prelude::*;

    use super::super::backlog::Order;
    use super::*;

    const SECRET: u64 = 0x5eed_0000_0000_0001;
    const LANE: usize = 4096;
    const NOTHING: [u64; 0] = [];
    const BARE: usize = size_of::<Head>();

    /// Unshared lanes, and what the kernel's programs would write into them.
    struct Planted(Lanes, Order);

    impl Planted {
        fn new(cpus: usize) -> Planted {
            let row = || {
                let memory = MmapMut::map_anon(value_bytes(LANE) * cpus).unwrap();
                Row { memory: memory.into(), lane_bytes: LANE }
            };
            Planted(Lanes::in_memory([row(), row()], SECRET, cpus), Order::default())
        }

        /// Reserves space, if there is any, and writes everything but the stamp.
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

        fn write_event(&mut self, lane: usize, at: u64, bytes: &[u8]) -> bool {
            let position = self.begin(lane, at, bytes);
            position.inspect(|&position| self.end(lane, position)).is_some()
        }

        fn write(&mut self, lane: usize, position: u64, offset: usize, bytes: &[u8]) {
            let at = self.0.at(lane, position).wrapping_add(offset).cast_mut();
            // SAFETY: within the mapping: an event that begins in a lane ends in its slack at the latest. Nothing
            // else accesses it.
            #[expect(unsafe_code, reason = "what the kernel's side does")]
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            }
        }

        fn round(&mut self) -> Vec<u64> {
            let mut given = Vec::new();
            self.collect(|raw| given.push(at_of(raw)));
            given
        }

        fn collect(&mut self, give: impl FnMut(&[u8])) {
            let mut batch = Batch::default();
            self.0.collect(&mut batch);
            self.1.add(batch);
            self.1.give_complete(give);
        }
    }

    fn at_of(raw: &[u8]) -> u64 {
        Head::ref_from_prefix(raw).unwrap().0.at
    }

    #[test]
    fn all_lanes_come_in_the_order_of_their_time() {
        let mut planted = Planted::new(3);
        for (lane, at) in [(0, 10), (0, 30), (1, 20), (2, 5), (1, 40)] {
            assert!(planted.write_event(lane, at, b""));
        }
        assert_eq!(planted.round(), NOTHING, "another lane may still report something from that time");
        assert!(planted.write_event(2, 15, b""));
        assert_eq!(planted.round(), [5, 10, 15, 20, 30, 40]);
    }

    /// If this fails, half an event is read, or later events are passed on before it.
    #[test]
    fn an_event_that_is_being_written_holds_back_what_came_later() {
        let mut planted = Planted::new(2);
        assert!(planted.write_event(0, 10, b""));
        let position = planted.begin(0, 12, b"half").unwrap();
        for (lane, at) in [(0, 14), (1, 5), (1, 20)] {
            assert!(planted.write_event(lane, at, b""));
        }
        assert_eq!(planted.round(), NOTHING);
        assert_eq!(planted.round(), [5, 10]);
        planted.end(0, position);
        assert_eq!(planted.round(), [12, 14, 20]);
    }

    /// If this fails, a burst that fills a CPU's first lane comes out of order, or not at all.
    #[test]
    fn events_in_the_second_lane_come_out_in_order() {
        let mut planted = Planted::new(2);
        for (lane, at) in [(1, 10), (3, 20), (3, 30), (1, 40), (0, 25)] {
            assert!(planted.write_event(lane, at, b""));
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
        assert_eq!(patience(Nanos::from_millis(5), part, part), Nanos::from_millis(5), "unchanged");
        assert_eq!(patience(Nanos::from_millis(5), part / 4, part), LONGEST);
        assert_eq!(patience(LONGEST, part * 1000, part), SHORTEST);
    }

    #[test]
    fn bytes_of_an_earlier_lap_are_not_an_event() {
        let mut planted = Planted::new(1);
        // Each lap begins at the same position, and everything there looks like the stamps of the lap before.
        for lap in 0..5_u64 {
            let stamp = (lap * LANE as u64 + SECRET).to_ne_bytes();
            assert!(planted.write_event(0, lap * 10 + 1, &stamp.repeat((LANE - BARE) / 8)));
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
        /// Everything written is passed on once, in order, and its space is returned.
        #[test]
        fn nothing_is_lost_and_nothing_comes_twice(
            steps in proptest::collection::vec((0_usize..6, 0_usize..900, any::<bool>()), 1..300)
        ) {
            let mut planted = Planted::new(3);
            let (mut written, mut came) = (Vec::new(), Vec::new());
            for (at, (lane, length, round)) in steps.into_iter().enumerate() {
                if planted.write_event(lane, at as u64, &vec![at as u8; length]) {
                    written.push((at as u64, length));
                }
                if round {
                    planted.collect(|raw| came.push(parsed(raw)));
                }
            }
            planted.collect(|raw| came.push(parsed(raw)));
            planted.1.give_all(|raw| came.push(parsed(raw)));
            prop_assert_eq!(came.iter().map(|one| one.0).collect::<Vec<_>>(), written.iter().map(|one| one.0).collect::<Vec<_>>());
            for (&(_, length), (_, bytes)) in written.iter().zip(&came) {
                prop_assert_eq!(length.next_multiple_of(8), bytes.len());
            }
            for lane in 0..6 {
                let marks = planted.0.marks(lane);
                prop_assert_eq!(marks.taken.load(Ordering::Relaxed), marks.reserved.load(Ordering::Relaxed));
            }
        }
    }

    fn parsed(raw: &[u8]) -> (u64, Vec<u8>) {
        let bytes = raw[BARE..].to_vec();
        let at = at_of(raw);
        assert!(bytes.iter().rev().skip(7).all(|&byte| byte == at as u8), "the bytes are its own");
        (at, bytes)
    }
}
