//! Running sums of threads' time, so that the time between two instants is a subtraction.

use record::{Culprit, Part};
use units::Nanos;

use crate::kernel::{self, Event, IDLE};

/// The number of parts that a thread's account and a request have in common: all but the last of each.
pub const WORKED: usize = Part::COUNT - 1;

/// Time that threads spent on a connection, by part, in nanoseconds. Polling belongs to no connection and is not
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worked {
    pub parts: [u64; WORKED],
    pub preempted: u64,
    pub preemptions: u32,
    /// How long other processes ran while it waited for a CPU.
    pub contended: u64,
}

impl Worked {
    /// The whole account of an event.
    pub fn of(event: &Event<'_>) -> Worked {
        let mut worked = Worked {
            preempted: event.preempted.0,
            preemptions: event.preemptions,
            contended: event.contended.0,
            ..Worked::default()
        };
        worked.parts.copy_from_slice(&event.parts[..WORKED]);
        worked
    }

    /// Adds another sum, part by part.
    pub fn add(&mut self, more: &Worked) {
        for (part, more) in self.parts.iter_mut().zip(more.parts) {
            *part += more;
        }
        self.preempted += more.preempted;
        self.preemptions += more.preemptions;
        self.contended += more.contended;
    }

    /// What was added since `before`, an earlier state of this sum.
    pub fn since(&self, before: &Worked) -> Worked {
        let mut since = *self;
        for (part, before) in since.parts.iter_mut().zip(before.parts) {
            *part = part.saturating_sub(before);
        }
        since.preempted = self.preempted.saturating_sub(before.preempted);
        since.preemptions = self.preemptions.saturating_sub(before.preemptions);
        since.contended = self.contended.saturating_sub(before.contended);
        since
    }

    /// All parts together, in nanoseconds.
    pub fn total(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// The `share`th of `among` equal shares: the shares sum to the whole to the nanosecond.
    pub fn share(&self, share: u64, among: u64) -> Worked {
        let part_of = |whole: u64| whole / among + u64::from(share < whole % among);
        let mut one = *self;
        one.parts = self.parts.map(part_of);
        one.preempted = part_of(self.preempted);
        one.contended = part_of(self.contended);
        one
    }

    /// As much of it as fits into `most`, with all parts reduced by the same ratio.
    pub fn at_most(&self, most: u64) -> Worked {
        let total = self.total();
        if total <= most {
            return *self;
        }
        let scale = |part: u64| {
            let scaled = u128::from(part) * u128::from(most) / u128::from(total);
            u64::try_from(scaled).expect("no part is larger than the total")
        };
        Worked {
            parts: self.parts.map(scale),
            preempted: scale(self.preempted.min(total)),
            preemptions: self.preemptions,
            contended: scale(self.contended.min(total)),
        }
    }
}

/// The culprit that took the CPU from a connection for longer, of two.
pub fn worse(a: Option<kernel::Culprit>, b: Option<kernel::Culprit>) -> Option<kernel::Culprit> {
    match (a, b) {
        (Some(a), Some(b)) if a.pid == b.pid => Some(kernel::Culprit { time: a.time + b.time, ..a }),
        (Some(a), Some(b)) => Some(if b.time > a.time { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The culprit in the record's type.
pub fn culprit(culprit: &kernel::Culprit) -> Culprit {
    Culprit { pid: culprit.pid, comm: comm(&culprit.comm), time: culprit.time }
}

/// A thread's name as the kernel stores it: up to the first zero byte.
pub fn comm(raw: &[u8; 16]) -> String {
    let end = raw.iter().position(|&byte| byte == 0).unwrap_or(raw.len());
    String::from_utf8_lossy(&raw[..end]).into_owned()
}

/// The time that an event's thread polled.
pub fn polled(event: &Event<'_>) -> Nanos {
    Nanos(event.parts[IDLE])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_whole() {
        let worked = Worked { parts: [7, 0, 1, 2, 3, 100, 5, 64, 9], ..Worked::default() };
        let mut sum = Worked::default();
        (0..64).for_each(|share| sum.add(&worked.share(share, 64)));
        assert_eq!(sum.parts, worked.parts);
    }

    #[test]
    fn an_excess_is_cut_from_all_parts_by_the_same_ratio() {
        let worked = Worked { parts: [300, 0, 100, 0, 0, 0, 0, 0, 0], ..Worked::default() };
        let half = worked.at_most(200);
        assert_eq!((half.parts[0], half.parts[2]), (150, 50));
        assert_eq!(worked.at_most(400), worked);
    }
}
