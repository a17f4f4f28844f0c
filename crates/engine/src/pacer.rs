//! When a worker wakes for requests that are due: punctuality traded against CPU time, as a value.
//!
//! A wake-up costs some 25 µs of CPU time on a virtual machine, and is late by as much. So there are three
//! trade-offs. None of them moves the schedule: a request that is sent late keeps its intended start, and the delay
//! shows in `schedule_lag`.

use reactor::WaitMode;
use units::Nanos;

units::named_enum! {
    /// How closely a worker follows its schedule.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum Pace {
        /// Stays awake before a request is due: late by about a microsecond, at the cost of a whole core.
        Precise = "precise",
        /// Wakes at most every 250 µs, for requests and responses alike, while the schedule is denser than that.
        #[default]
        Balanced = "balanced",
        /// The same, at most every millisecond.
        Efficient = "efficient",
    }
}

impl Pace {
    /// Requests that become due within this time are sent together, so a request can be late by this much on purpose.
    pub fn batch(self) -> Nanos {
        match self {
            Pace::Precise => Nanos::ZERO,
            Pace::Balanced => Nanos::from_micros(250),
            Pace::Efficient => Nanos::from_millis(1),
        }
    }
}

/// On a virtual machine, one sleep in a hundred ends 0.1 to 0.7 ms late. Staying awake from 1 ms before keeps that out
/// of the schedule.
const AWAKE_BEFORE: Nanos = Nanos::from_millis(1);

/// The state of one worker's pace.
#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    /// The instant of the last planned wake-up for a due request.
    planned: Option<Nanos>,
    /// Wake-ups for due requests are planned for this instant or later.
    not_before: Nanos,
    /// How late a sleep usually ends here. A sleep that ends for a batch is planned to end this much earlier.
    late: Nanos,
    /// When the last request taken from the schedule was due, and when it was taken.
    taken: Option<(Nanos, Nanos)>,
}

/// After a stall, overdue requests leave with their gaps shortened to two fifths, not all at once: a burst would be a
/// load that nobody asked for, and its latency would be blamed on the server.
const SHORTENED: (u64, u64) = (2, 5);

/// A sleep that ends later than this was held up; it predicts nothing about later ones and is ignored.
const USUAL_LATENESS: Nanos = Nanos::from_micros(100);

/// Until when to wait, and in which mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    pub until: Nanos,
    pub mode: WaitMode,
}

/// Whether a worker's connections wait for the peer or for this client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// All wait for responses or for requests.
    Quiet,
    /// One is being opened, has bytes to write, or has received part of a response: the next step is this client's.
    Engaged,
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Pacer {
        Pacer { pace, planned: None, not_before: Nanos::ZERO, late: Nanos::ZERO, taken: None }
    }

    /// How to wait at `now`, when everything due by then has been sent. The next request is due at `due`; `other` is
    /// when there is something else to do.
    #[inline]
    pub(crate) fn plan(&mut self, now: Nanos, due: Option<Nanos>, other: Nanos, sockets: Sockets) -> Rest {
        if let Some(planned) = self.planned.take_if(|planned| planned.saturating_sub(self.late) <= now) {
            // From the planned instant, not from the actual one, so that late wake-ups do not accumulate.
            self.not_before = planned + self.pace.batch();
        }
        let asleep = |until| Rest { until, mode: WaitMode::Asleep };
        let Some(due) = due else { return asleep(other) };
        let wake = due.max(self.not_before);
        self.planned = Some(wake);
        match self.pace {
            Pace::Precise if wake.min(other).saturating_sub(now) <= AWAKE_BEFORE => {
                Rest { until: wake.min(other), mode: WaitMode::Awake }
            }
            Pace::Precise => asleep(wake.saturating_sub(AWAKE_BEFORE).min(other)),
            // While the schedule is denser than the batches, no single response needs a wake-up.
            Pace::Balanced | Pace::Efficient if due < self.not_before && sockets == Sockets::Quiet => {
                let until = wake.saturating_sub(self.late).min(other);
                Rest { until, mode: WaitMode::Undisturbed }
            }
            Pace::Balanced | Pace::Efficient => asleep(wake.min(other)),
        }
    }

    /// When a request that is due at `due` may be taken, with [`Pace::Precise`]: at once, or later after a stall.
    #[inline]
    pub(crate) fn earliest(&self, due: Nanos) -> Nanos {
        match self.taken {
            Some((before, taken)) => {
                let gap = due.saturating_sub(before).0 / SHORTENED.1 * SHORTENED.0;
                due.max(taken.saturating_add(Nanos(gap)))
            }
            None => due,
        }
    }

    /// A request that was due at `due` was taken from the schedule at `now`.
    #[inline]
    pub(crate) fn note_taken(&mut self, due: Nanos, now: Nanos) {
        self.taken = Some((due, now));
    }

    /// A sleep that should have ended at `until` ended at `now`.
    #[inline]
    pub(crate) fn note_wake(&mut self, until: Nanos, now: Nanos) {
        let late = now.saturating_sub(until);
        if late <= USUAL_LATENESS {
            // A moving average over about the last eight.
            self.late = Nanos(self.late.0 - self.late.0 / 8 + late.0 / 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Nanos = Nanos::from_secs(9);

    fn us(us: u64) -> Nanos {
        Nanos::from_micros(us)
    }

    /// When wake-ups happen if each is `late` after the planned instant and requests are `period` apart.
    fn wakes(pace: Pace, period: Nanos, late: Nanos) -> Vec<(u64, WaitMode)> {
        let mut pacer = Pacer::new(pace);
        let mut now = Nanos::ZERO;
        let mut due = Nanos::ZERO;
        (0..5)
            .map(|_| {
                while due <= now {
                    due += period;
                }
                let Rest { until, mode } = pacer.plan(now, Some(due), FAR, Sockets::Quiet);
                now = until + late;
                (until.0 / 1_000, mode)
            })
            .collect()
    }

    #[test]
    fn a_dense_schedule_is_sent_in_batches_that_do_not_drift() {
        use WaitMode::{Asleep, Undisturbed};
        let balanced = wakes(Pace::Balanced, us(100), us(30));
        assert_eq!(balanced[0], (100, Asleep));
        assert_eq!(balanced[1..], [350, 600, 850, 1_100].map(|at| (at, Undisturbed)));
        let efficient = wakes(Pace::Efficient, us(100), us(30));
        assert_eq!(efficient[0], (100, Asleep));
        assert_eq!(efficient[1..], [1_100, 2_100, 3_100, 4_100].map(|at| (at, Undisturbed)));
    }

    /// If this fails, requests of a slow schedule are late because of batches that have one request each.
    #[test]
    fn a_thin_schedule_is_kept_to_the_instant_and_answers_wake() {
        for pace in [Pace::Balanced, Pace::Efficient] {
            let thin = wakes(pace, us(2_000), us(30));
            assert_eq!(
                thin,
                [2_000, 4_000, 6_000, 8_000, 10_000].map(|at| (at, WaitMode::Asleep)),
                "{pace:?}"
            );
        }
    }

    #[test]
    fn precise_sleeps_only_where_it_can_wake_in_time() {
        let mut pacer = Pacer::new(Pace::Precise);
        let rest = |until, mode| Rest { until, mode };
        assert_eq!(
            pacer.plan(us(0), Some(us(5_000)), FAR, Sockets::Quiet),
            rest(us(4_000), WaitMode::Asleep)
        );
        assert_eq!(
            pacer.plan(us(4_100), Some(us(5_000)), FAR, Sockets::Quiet),
            rest(us(5_000), WaitMode::Awake)
        );
        // Nothing else keeps it awake.
        assert_eq!(pacer.plan(us(6_000), None, us(6_500), Sockets::Quiet), rest(us(6_500), WaitMode::Asleep));
    }

    /// If this fails, a client that was stalled catches up in additional batches, and nobody sees why.
    #[test]
    fn after_a_stall_nothing_is_held_back() {
        let mut pacer = Pacer::new(Pace::Efficient);
        pacer.plan(us(0), Some(us(100)), FAR, Sockets::Quiet);
        let rest = pacer.plan(us(50_000), Some(us(50_100)), FAR, Sockets::Quiet);
        assert_eq!(rest, Rest { until: us(50_100), mode: WaitMode::Asleep });
    }

    /// If this fails, waking for a response postpones requests that are due.
    #[test]
    fn a_wake_for_something_else_does_not_count() {
        let mut pacer = Pacer::new(Pace::Balanced);
        pacer.plan(us(0), Some(us(100)), FAR, Sockets::Quiet);
        pacer.plan(us(110), Some(us(200)), FAR, Sockets::Quiet);
        assert_eq!(pacer.plan(us(220), Some(us(300)), FAR, Sockets::Quiet).until, us(350));
        assert_eq!(pacer.plan(us(340), Some(us(400)), FAR, Sockets::Quiet).until, us(400));
    }

    /// If this fails, a client that was stalled sends the server a burst.
    #[test]
    fn precise_catches_up_without_a_burst() {
        let mut pacer = Pacer::new(Pace::Precise);
        assert_eq!(pacer.earliest(us(100)), us(100));
        // It was stalled until 5 ms; requests were due every 100 us.
        pacer.note_taken(us(100), us(5_000));
        assert_eq!(pacer.earliest(us(200)), us(5_040));
        pacer.note_taken(us(200), us(5_040));
        assert_eq!(pacer.earliest(us(300)), us(5_080));
        // Where requests are far apart, none is delayed by another.
        assert_eq!(pacer.earliest(us(9_000)), us(9_000));
    }

    /// If this fails, batches slow down connections, large requests and large responses, and the server is blamed.
    #[test]
    fn what_waits_for_this_client_wakes_it() {
        for pace in [Pace::Balanced, Pace::Efficient] {
            let mut pacer = Pacer::new(pace);
            pacer.plan(us(0), Some(us(100)), FAR, Sockets::Quiet);
            let rest = pacer.plan(us(110), Some(us(200)), FAR, Sockets::Engaged);
            assert_eq!(rest.mode, WaitMode::Asleep, "{pace:?}");
        }
    }

    /// If this fails, each batch is late by a wake-up in addition to its sharing.
    #[test]
    fn a_batch_is_asked_for_as_much_earlier_as_sleeps_end_late() {
        let mut pacer = Pacer::new(Pace::Balanced);
        for _ in 0..100 {
            pacer.note_wake(us(1_000), us(1_030));
        }
        // A host that was stalled is no guide to later sleeps.
        pacer.note_wake(us(1_000), us(9_000));
        pacer.plan(us(0), Some(us(100)), FAR, Sockets::Quiet);
        let rest = pacer.plan(us(110), Some(us(200)), FAR, Sockets::Quiet);
        let lead = us(350).saturating_sub(rest.until);
        assert!((us(25)..=us(30)).contains(&lead), "{lead}");
    }
}
