//! One direction of one connection: data that has arrived and is not yet due on the other side.

use std::collections::VecDeque;

use schedule::Stream;
use units::Nanos;

use super::{Cut, Effects};

/// The payload of a segment of TCP on Ethernet with timestamps.
const SEGMENT: u64 = 1_448;

/// Maximum number of times a retransmission timeout doubles, as in effect in the kernel.
const MOST_DOUBLINGS: u32 = 6;

/// Maximum bytes in a lane. More would let a sender run far ahead of its receiver; less would limit the rate at long
/// delays: 4 MiB in 100 ms are 40 MiB/s.
const MOST_QUEUED: usize = 4 << 20;

/// With a rate: the time of data that a lane queues, as a router would.
const QUEUED_TIME: Nanos = Nanos::from_millis(50);

/// A chunk as it arrived, and when it may leave. Without bytes it is the end of the stream.
#[derive(Debug)]
pub(super) struct Chunk {
    pub due: Nanos,
    pub bytes: Vec<u8>,
    /// How much of it has left.
    pub left: usize,
}

#[derive(Debug)]
pub(super) struct Lane {
    pub chunks: VecDeque<Chunk>,
    queued: usize,
    /// Nothing leaves before this: the instant at which the previous chunk left.
    last: Nanos,
    random: Stream,
    drawn: u64,
    /// The end of the stream has arrived; and has been passed on.
    pub ended: bool,
    pub shut: bool,
    /// The other side accepts no more for now.
    pub blocked: bool,
}

/// The line that all connections of one direction share: when it becomes free.
pub(super) type Line = Nanos;

impl Lane {
    pub(super) fn new(random: Stream) -> Lane {
        Lane {
            chunks: VecDeque::new(),
            queued: 0,
            last: Nanos::ZERO,
            random,
            drawn: 0,
            ended: false,
            shut: false,
            blocked: false,
        }
    }

    /// Queues a chunk; returns how often it was lost.
    pub(super) fn put(
        &mut self,
        now: Nanos,
        bytes: Vec<u8>,
        effects: Option<&Effects>,
        line: &mut Line,
    ) -> u64 {
        let length = bytes.len() as u64;
        let (due, losses) = effects.map_or((now, 0), |effects| self.due(now, length, effects, line));
        self.last = self.last.max(due);
        self.queued += bytes.len();
        self.ended |= bytes.is_empty();
        self.chunks.push_back(Chunk { due: self.last, bytes, left: 0 });
        losses
    }

    /// When a chunk may leave, apart from those in front of it, and how often it was lost.
    fn due(&mut self, now: Nanos, length: u64, effects: &Effects, line: &mut Line) -> (Nanos, u64) {
        let moved = self.draw(effects.jitter.0.saturating_mul(2));
        let mut due = now
            .saturating_add(effects.delay)
            .saturating_add(Nanos(moved))
            .saturating_sub(effects.jitter)
            .max(now);
        let losses = self.losses(length, effects.loss_ppm);
        for n in 0..losses {
            let doubled = effects.retransmission.0.saturating_mul(1 << n.min(u64::from(MOST_DOUBLINGS)));
            due = due.saturating_add(Nanos(doubled));
        }
        if let Some(rate) = effects.bytes_per_s {
            let takes = u128::from(length) * 1_000_000_000 / u128::from(rate.max(1));
            *line = (*line).max(now).saturating_add(Nanos(u64::try_from(takes).unwrap_or(u64::MAX)));
            due = due.saturating_add(line.saturating_sub(now));
        }
        (due, losses)
    }

    /// How often a chunk is lost: once if any of its segments is, and again with the probability of one.
    fn losses(&mut self, length: u64, loss_ppm: u64) -> u64 {
        if loss_ppm == 0 || length == 0 {
            return 0;
        }
        let mut lost = 0;
        for _ in 0..length.div_ceil(SEGMENT) {
            lost = lost.max(u64::from(self.draw(999_999) < loss_ppm));
        }
        while lost > 0 && lost <= u64::from(MOST_DOUBLINGS) && self.draw(999_999) < loss_ppm {
            lost += 1;
        }
        lost
    }

    fn draw(&mut self, most: u64) -> u64 {
        self.drawn += 1;
        self.random.up_to(self.drawn, most)
    }

    /// When the first chunk may leave.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.chunks.front().map(|chunk| chunk.due)
    }

    /// Removes the first chunk, which has left.
    pub(super) fn pop(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.queued -= chunk.bytes.len();
            self.shut |= chunk.bytes.is_empty();
        }
    }

    /// Whether more may be read for this lane.
    pub(super) fn has_room(&self, effects: Option<&Effects>) -> bool {
        let most = match effects.and_then(|effects| Some((effects.bytes_per_s?, effects.delay))) {
            Some((rate, delay)) => {
                let bytes = u128::from(rate) * u128::from((delay + QUEUED_TIME).0) / 1_000_000_000;
                usize::try_from(bytes).unwrap_or(MOST_QUEUED).clamp(4 * SEGMENT as usize, MOST_QUEUED)
            }
            None => MOST_QUEUED,
        };
        !self.ended && self.queued < most
    }
}

/// How much to read at once: less on a slow line, so that data flows evenly.
pub(super) fn most_read(effects: Option<&Effects>) -> usize {
    const MOST: usize = 16 << 10;
    let rate = effects.filter(|effects| effects.cut == Cut::None).and_then(|effects| effects.bytes_per_s);
    rate.map_or(MOST, |rate| usize::try_from(rate / 50).unwrap_or(MOST).clamp(SEGMENT as usize, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn dues(effects: Effects, arrivals: &[(u64, usize)]) -> Vec<Nanos> {
        let mut lane = Lane::new(Stream::new(1, 0));
        let mut line = Nanos::ZERO;
        for &(at, length) in arrivals {
            lane.put(ms(at), vec![0; length], Some(&effects), &mut line);
        }
        lane.chunks.iter().map(|chunk| chunk.due).collect()
    }

    #[test]
    fn a_delay_applies_to_every_chunk_alike() {
        let effects = Effects { delay: ms(20), ..Effects::default() };
        assert_eq!(dues(effects, &[(0, 1), (7, 1_000)]), [ms(20), ms(27)]);
    }

    /// If this fails, a receiver gets bytes in another order than they were sent.
    #[test]
    fn chunks_never_overtake_each_other() {
        let effects = Effects {
            delay: ms(20),
            jitter: ms(20),
            loss_ppm: 100_000,
            retransmission: ms(200),
            bytes_per_s: Some(1 << 20),
            ..Effects::default()
        };
        let arrivals: Vec<(u64, usize)> = (0..500).map(|n| (n, 1 + 13 * n as usize)).collect();
        let dues = dues(effects, &arrivals);
        assert!(dues.windows(2).all(|two| two[0] <= two[1]));
        assert!(dues.iter().zip(&arrivals).all(|(due, &(at, _))| *due >= ms(at)));
    }

    /// Ten chunks of 1000 bytes on a line of 10 kB/s leave every 100 ms, however they arrive.
    #[test]
    fn a_rate_is_kept() {
        let effects = Effects { bytes_per_s: Some(10_000), ..Effects::default() };
        let dues = dues(effects, &[(0, 1_000); 10]);
        assert_eq!(
            dues.iter().map(|due| due.0 / 1_000_000).collect::<Vec<_>>(),
            [100, 200, 300, 400, 500, 600, 700, 800, 900, 1_000]
        );
    }

    /// Of 20,000 segments with a probability of 5 %, 1,000 are lost; the standard deviation is sqrt(950) = 31: five
    /// of it.
    #[test]
    fn losses_occur_with_their_probability_and_stall() {
        let effects = Effects { loss_ppm: 50_000, retransmission: ms(200), ..Effects::default() };
        let mut lane = Lane::new(Stream::new(7, 0));
        let (mut stalled, mut line) = (0, Nanos::ZERO);
        for n in 0..20_000 {
            let at = ms(n * 100_000);
            let lost = lane.put(at, vec![0], Some(&effects), &mut line);
            let due = lane.chunks.back().unwrap().due;
            assert_eq!(due - at, Nanos(ms(200).0 * ((1 << lost) - 1)));
            stalled += u64::from(lost > 0);
        }
        assert!(stalled.abs_diff(1_000) < 5 * 31, "{stalled}");
    }

    #[test]
    fn without_effects_everything_is_due_at_once_and_memory_is_bounded() {
        let mut lane = Lane::new(Stream::new(1, 0));
        let mut line = Nanos::ZERO;
        lane.put(ms(3), vec![0; MOST_QUEUED - 1], None, &mut line);
        assert_eq!(lane.next_due(), Some(ms(3)));
        assert!(lane.has_room(None));
        lane.put(ms(3), vec![0; 1], None, &mut line);
        assert!(!lane.has_room(None));
        lane.pop();
        assert!(lane.has_room(None));
        lane.put(ms(4), Vec::new(), None, &mut line);
        assert!(!lane.has_room(None), "the stream has ended");
    }
}
