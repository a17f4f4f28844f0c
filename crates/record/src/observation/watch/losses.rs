//! What a watch did not see although it happened, and what it saw but cannot report exactly: a count per cause.

use serde::{Deserialize, Serialize};

/// What happened and was not seen, each a count. A figure of the record may be too small by as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Losses {
    /// Events for which the way to user space had no room.
    pub ring_full: u64,
    /// Threads, connections or requests for which a table of the kernel's programs had no room.
    pub map_full: u64,
    /// Events that the kernel left out because one of the programs ran already on that CPU.
    pub recursion: u64,
    /// Requests on connections that are older than the watch, before their first certain boundary.
    pub mid_connection: u64,
    /// Requests whose bytes were not understood; they are timed as turns where that is possible.
    pub unparsed: u64,
}

/// What was seen and cannot be reported exactly, each a count. No request is missing for it, and no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Inexact {
    /// Waits for a CPU in which more others ran than are remembered: who ran first is not among the preemptors.
    pub forgotten_slices: u64,
    /// Lots of arrived bytes that were joined with later ones and have their stamp: the socket queue of their
    /// requests is too short.
    pub joined_arrivals: u64,
    /// Switches and wake-ups of a thread that no eBPF program saw: its time is the scheduler's, and who ran instead is not
    /// known.
    pub missed_switches: u64,
}

impl Losses {
    /// Adds the losses of another interval.
    pub fn add(&mut self, other: &Losses) {
        *self = self.with(other, u64::saturating_add);
    }

    /// What was added since `before`; 0 for a count that is less than before.
    pub fn since(&self, before: &Losses) -> Losses {
        self.with(before, u64::saturating_sub)
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        *self == Losses::default()
    }

    /// Events and requests that were not recorded at all: what happened to the requests around them is not fully known.
    pub fn of_events(&self) -> u64 {
        self.ring_full.saturating_add(self.map_full).saturating_add(self.recursion)
    }

    fn with(&self, other: &Losses, each: fn(u64, u64) -> u64) -> Losses {
        Losses {
            ring_full: each(self.ring_full, other.ring_full),
            map_full: each(self.map_full, other.map_full),
            recursion: each(self.recursion, other.recursion),
            mid_connection: each(self.mid_connection, other.mid_connection),
            unparsed: each(self.unparsed, other.unparsed),
        }
    }
}

impl Inexact {
    /// Adds the counts of another interval.
    pub fn add(&mut self, other: &Inexact) {
        *self = self.with(other, u64::saturating_add);
    }

    /// Like [`Losses::since`].
    pub fn since(&self, before: &Inexact) -> Inexact {
        self.with(before, u64::saturating_sub)
    }

    /// Whether everything was exact.
    pub fn is_empty(&self) -> bool {
        *self == Inexact::default()
    }

    fn with(&self, other: &Inexact, each: fn(u64, u64) -> u64) -> Inexact {
        Inexact {
            forgotten_slices: each(self.forgotten_slices, other.forgotten_slices),
            joined_arrivals: each(self.joined_arrivals, other.joined_arrivals),
            missed_switches: each(self.missed_switches, other.missed_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_add() {
        let one = Losses { ring_full: 1, map_full: 2, recursion: 3, mid_connection: 4, unparsed: u64::MAX };
        let mut sum = one;
        sum.add(&one);
        let expected =
            Losses { ring_full: 2, map_full: 4, recursion: 6, mid_connection: 8, unparsed: u64::MAX };
        assert_eq!((sum, sum.is_empty(), Losses::default().is_empty()), (expected, false, true));
    }

    /// If this fails, the lines of a series do not sum to its totals, or a count that temporarily cannot be read causes
    /// a panic.
    #[test]
    fn what_came_since_sums_to_the_whole() {
        let inexact = |n| Inexact { forgotten_slices: n, joined_arrivals: 2 * n, missed_switches: 3 * n };
        let mut sum = Inexact::default();
        for now in [inexact(1), inexact(0), inexact(7), inexact(7)] {
            sum.add(&now.since(&sum.clone()));
        }
        assert_eq!(sum, inexact(7));
        let lost = |n| Losses { ring_full: n, map_full: n, recursion: 0, mid_connection: n, unparsed: n };
        assert_eq!((lost(5).since(&lost(3)), lost(3).since(&lost(5))), (lost(2), Losses::default()));
    }
}
