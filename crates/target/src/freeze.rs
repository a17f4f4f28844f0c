//! When the whole server stops, as a pure function of its start. The loop does the sleeping.

use units::Nanos;

/// Freezes on a schedule: freeze `k` lasts from `start + first + k * every` for `length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freeze {
    /// How long each freeze lasts.
    pub length: Nanos,
    /// From the begin of one freeze to the begin of the next; must be longer than `length`.
    pub every: Nanos,
    /// From the start of the server to the first freeze.
    pub first: Nanos,
    /// The number of freezes; `None`: unlimited.
    pub count: Option<u64>,
}

/// One freeze of one thread, as planned and as it happened. Instants are on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreezeRecord {
    /// Its number in the schedule, from 0; `None` for one that a request to `/fault/freeze` caused.
    pub index: Option<u64>,
    /// The thread that froze, from 0.
    pub thread: usize,
    /// When it was planned to stop.
    pub planned_begin: Nanos,
    /// When it was planned to continue.
    pub planned_end: Nanos,
    /// When this thread actually stopped.
    pub begin: Nanos,
    /// When it actually continued.
    pub end: Nanos,
}

/// A [`Freeze`] tied to the start of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    pub start: Nanos,
    pub freeze: Option<Freeze>,
}

impl Schedule {
    /// Begin and end of freeze `index`, or `None` when the schedule has fewer.
    pub(crate) fn nth(&self, index: u64) -> Option<(Nanos, Nanos)> {
        let freeze = self.freeze?;
        if freeze.count.is_some_and(|count| index >= count) {
            return None;
        }
        let offset = freeze.every.0.checked_mul(index)?.checked_add(freeze.first.0)?;
        let begin = self.start.0.checked_add(offset)?;
        Some((Nanos(begin), Nanos(begin.checked_add(freeze.length.0)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freezes_come_at_whole_multiples_from_the_start() {
        let freeze = Freeze { length: Nanos(5), every: Nanos(100), first: Nanos(30), count: Some(3) };
        let schedule = Schedule { start: Nanos(1_000), freeze: Some(freeze) };
        let planned: Vec<_> = (0..).map_while(|k| schedule.nth(k)).map(|(a, b)| (a.0, b.0)).collect();
        assert_eq!(planned, [(1_030, 1_035), (1_130, 1_135), (1_230, 1_235)]);
    }

    #[test]
    fn a_schedule_past_the_end_of_time_ends() {
        let freeze = Freeze { length: Nanos(1), every: Nanos(u64::MAX), first: Nanos(0), count: None };
        let schedule = Schedule { start: Nanos(1), freeze: Some(freeze) };
        assert!(schedule.nth(0).is_some());
        assert_eq!(schedule.nth(1), None);
    }
}
