//! The schedule's time relative to the run's: the same until somebody pauses the run or changes its tempo.
//!
//! A schedule defines when request *n* is due if nobody interferes. A [`ScheduleClock`] maps that time to the run's,
//! piecewise linearly: at half tempo, one second of schedule takes two seconds of the run; during a pause, it is
//! stopped. No part of the schedule is skipped, so the union of the workers' shares remains the exact schedule. Pure;
//! `Controls` shares it.

use units::Nanos;

/// How fast the schedule's time passes, in millionths of the run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tempo(u32);

impl Tempo {
    /// The schedule's time is the run's.
    pub const AS_PLANNED: Tempo = Tempo(ONE);

    /// The schedule is stopped.
    pub const STILL: Tempo = Tempo(0);

    /// `steps` of 10 % up or, if negative, down; a step down undoes a step up. Limited to 50 either way, a factor of
    /// 117.
    pub fn of_steps(steps: i32) -> Tempo {
        let factor = 1.1f64.powi(steps.clamp(-50, 50));
        Tempo((factor * f64::from(ONE)).round() as u32)
    }

    /// The factor that multiplies the rate.
    pub fn factor(self) -> f64 {
        f64::from(self.0) / f64::from(ONE)
    }
}

const ONE: u32 = 1_000_000;

/// Maps time of the schedule to time of the run, both as offsets from the run's zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScheduleClock {
    /// In order of time; before the first one, the schedule's time is the run's.
    pieces: Vec<Piece>,
}

/// From the instant `at` on, when the schedule is at `schedule`, it passes at `tempo`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    at: Nanos,
    schedule: Nanos,
    tempo: Tempo,
}

const UNBENT: Piece = Piece { at: Nanos::ZERO, schedule: Nanos::ZERO, tempo: Tempo::AS_PLANNED };

impl ScheduleClock {
    /// From `at` on, the schedule passes at `tempo`. An `at` before the last change counts as the time of that change.
    pub(crate) fn change(&mut self, at: Nanos, tempo: Tempo) {
        let at = self.pieces.last().map_or(at, |last| at.max(last.at));
        self.pieces.push(Piece { at, schedule: self.schedule_at(at), tempo });
    }

    /// When a request is due that the schedule places at `schedule`; `None` if the schedule is stopped before that.
    #[inline]
    pub(crate) fn run_at(&self, schedule: Nanos) -> Option<Nanos> {
        if self.pieces.is_empty() {
            return Some(schedule);
        }
        // Changes are made by hand: there are few, and the last one nearly always applies. A pause begins and ends at
        // the same instant of the schedule, and what is due exactly then is due when the pause ends.
        let piece = self.pieces.iter().rev().find(|piece| piece.schedule <= schedule).unwrap_or(&UNBENT);
        let ahead = u128::from((schedule - piece.schedule).0) * u128::from(ONE);
        let took = match piece.tempo.0 {
            0 => return None,
            tempo => ahead.div_ceil(u128::from(tempo)),
        };
        Some(piece.at.saturating_add(Nanos(u64::try_from(took).unwrap_or(u64::MAX))))
    }

    /// The schedule's time at `run`.
    pub(crate) fn schedule_at(&self, run: Nanos) -> Nanos {
        let piece = self.pieces.iter().rev().find(|piece| piece.at <= run).unwrap_or(&UNBENT);
        let passed = u128::from((run - piece.at).0) * u128::from(piece.tempo.0) / u128::from(ONE);
        piece.schedule.saturating_add(Nanos(u64::try_from(passed).unwrap_or(u64::MAX)))
    }

    /// When a virtual user that is free at `run` can send: at once, or when the pause ends; `None` while that is
    /// unknown.
    #[inline]
    pub(crate) fn released_at(&self, run: Nanos) -> Option<Nanos> {
        if self.pieces.is_empty() {
            return Some(run);
        }
        let holding = self.pieces.iter().rposition(|piece| piece.at <= run);
        let Some(from) = holding.filter(|&index| self.pieces[index].tempo == Tempo::STILL) else {
            return Some(run);
        };
        self.pieces[from..].iter().find(|piece| piece.tempo != Tempo::STILL).map(|piece| piece.at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn an_unbent_schedule_is_the_runs_time() {
        let clock = ScheduleClock::default();
        assert_eq!(clock.run_at(ms(7)), Some(ms(7)));
        assert_eq!(clock.released_at(ms(7)), Some(ms(7)));
    }

    /// If this fails, requests due in a pause are sent in a burst at its end, or never.
    #[test]
    fn a_pause_moves_what_comes_after_it_by_its_length() {
        let mut clock = ScheduleClock::default();
        clock.change(ms(1_000), Tempo::STILL);
        assert_eq!(clock.run_at(ms(999)), Some(ms(999)));
        assert_eq!(clock.run_at(ms(1_000)), None);
        assert_eq!(clock.run_at(ms(5_000)), None);
        clock.change(ms(4_000), Tempo::AS_PLANNED);
        assert_eq!(clock.run_at(ms(999)), Some(ms(999)));
        assert_eq!(clock.run_at(ms(1_000)), Some(ms(4_000)));
        assert_eq!(clock.run_at(ms(5_000)), Some(ms(8_000)));
    }

    #[test]
    fn at_another_pace_the_schedule_passes_faster_or_slower() {
        let mut clock = ScheduleClock::default();
        clock.change(ms(1_000), Tempo::of_steps(1));
        assert_eq!(clock.run_at(ms(2_100)), Some(ms(2_000)));
        clock.change(ms(2_000), Tempo::of_steps(0));
        assert_eq!(clock.run_at(ms(3_100)), Some(ms(3_000)));
        assert_eq!(clock.schedule_at(ms(3_000)), ms(3_100));
        assert_eq!(clock.run_at(ms(1_550)), Some(ms(1_500)));
    }

    #[test]
    fn a_caller_who_is_free_in_a_pause_goes_at_its_end() {
        let mut clock = ScheduleClock::default();
        clock.change(ms(1_000), Tempo::STILL);
        assert_eq!(clock.released_at(ms(999)), Some(ms(999)));
        assert_eq!(clock.released_at(ms(1_500)), None);
        clock.change(ms(4_000), Tempo::AS_PLANNED);
        assert_eq!(clock.released_at(ms(1_500)), Some(ms(4_000)));
        assert_eq!(clock.released_at(ms(4_500)), Some(ms(4_500)));
    }

    #[test]
    fn a_step_down_takes_back_a_step_up() {
        assert_eq!(Tempo::of_steps(0), Tempo::AS_PLANNED);
        assert!((Tempo::of_steps(3).factor() - 1.331).abs() < 1e-9);
        assert!((Tempo::of_steps(-1).factor() - 0.909_091).abs() < 1e-9);
        assert_eq!(Tempo::of_steps(9_000), Tempo::of_steps(50));
    }

    proptest! {
        /// If this fails, a request is due before one with a smaller number, or time goes backwards at a change.
        #[test]
        fn a_bent_schedule_never_goes_back(
            changes in proptest::collection::vec((0u64..2_000_000, -60i32..60), 0..8),
            mut schedule in proptest::collection::vec(0u64..20_000_000, 2..50),
        ) {
            let mut clock = ScheduleClock::default();
            let mut at = 0;
            for (gap, steps) in changes {
                at += gap;
                // More steps than can be made by hand: used here for a pause.
                let tempo = if steps > 50 { Tempo::STILL } else { Tempo::of_steps(steps) };
                clock.change(Nanos(at), tempo);
            }
            schedule.sort_unstable();
            let runs: Vec<_> = schedule.iter().map(|&at| clock.run_at(Nanos(at)).unwrap_or(Nanos::MAX)).collect();
            prop_assert!(runs.is_sorted(), "{:?}", runs);
            for (&schedule, &run) in schedule.iter().zip(&runs) {
                if run != Nanos::MAX {
                    // The first instant of the run at which the schedule has reached this point.
                    prop_assert!(clock.schedule_at(run) >= Nanos(schedule));
                }
            }
        }
    }
}
