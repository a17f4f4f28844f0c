//! When disturbances are due, as a pure function of their number.
//!
//! An episode is one disturbance. The *n*-th begins at start + *n* · every, moved at random by at most ±jitter, so
//! that it does not run in lockstep with what it disturbs; episodes never overlap. Only whole episodes are planned:
//! one that would reach past the end of the run is left out.

use thiserror::Error;
use units::Nanos;

use crate::random::Stream;

/// The options that define a schedule of episodes. Times are offsets from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// Begin of the first episode, before jitter. Default: the value of `every`, or 0 without it.
    pub start: Option<Nanos>,
    /// From one begin to the next. Without it there is one episode.
    pub every: Option<Nanos>,
    /// Length of each episode. Without it the single episode lasts as long as the run.
    pub length: Option<Nanos>,
    /// Each begin is moved by up to this much in either direction.
    pub jitter: Nanos,
    /// Seed of the jitter.
    pub seed: u64,
    /// The maximum number of episodes.
    pub count: Option<u64>,
    /// The end of the run.
    pub until: Option<Nanos>,
}

/// One disturbance. Times are offsets from the start of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episode {
    /// Its number, from 0.
    pub n: u64,
    /// When it begins.
    pub begin: Nanos,
    /// When it ends; `None`: when somebody ends the run.
    pub end: Option<Nanos>,
}

/// Why a [`Timing`] is invalid. Each message is one line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimingError {
    #[error("--every needs the length of each disturbance; add for example --for 50ms")]
    NoLength,
    #[error("--for must be more than 0")]
    NoTime,
    #[error("--every must be more than 0")]
    NoGap,
    #[error("--jitter and a --count over 1 need --every: without it there is one disturbance")]
    OnlyOne,
    #[error(
        "disturbances of {length} moved by up to {jitter} overlap when one is due every {every}; \
         --for plus twice --jitter may be at most --every",
        length = length.written(), jitter = jitter.written(), every = every.written()
    )]
    Overlap { length: Nanos, jitter: Nanos, every: Nanos },
    #[error(
        "no complete disturbance fits: the first one would last until {end}, but the run ends at {until}; raise -d, or start \
         sooner with --start",
        end = end.written(), until = until.written()
    )]
    NoneFits { end: Nanos, until: Nanos },
}

/// A checked schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Episodes {
    timing: Timing,
    start: Nanos,
    stream: Stream,
}

impl Episodes {
    /// Checks `timing`.
    ///
    /// # Errors
    ///
    /// [`TimingError`] if episodes would overlap or have no length, or if no complete one fits into the run.
    pub fn new(timing: Timing) -> Result<Episodes, TimingError> {
        match (timing.every, timing.length) {
            (_, Some(Nanos::ZERO)) => return Err(TimingError::NoTime),
            (Some(Nanos::ZERO), _) => return Err(TimingError::NoGap),
            (Some(_), None) => return Err(TimingError::NoLength),
            (None, _) if timing.jitter > Nanos::ZERO || timing.count.is_some_and(|count| count > 1) => {
                return Err(TimingError::OnlyOne);
            }
            (Some(every), Some(length)) => {
                let twice = timing.jitter.saturating_add(timing.jitter);
                if length.saturating_add(twice) > every {
                    return Err(TimingError::Overlap { length, jitter: timing.jitter, every });
                }
            }
            (None, _) => {}
        }
        let start = timing.start.or(timing.every).unwrap_or(Nanos::ZERO);
        let episodes = Episodes { timing, start, stream: Stream::new(timing.seed, LABEL) };
        if let Some(until) = timing.until
            && episodes.nth(0).is_none()
            && timing.count != Some(0)
        {
            let end = episodes.begin(0).saturating_add(timing.length.unwrap_or(Nanos(1)));
            return Err(TimingError::NoneFits { end, until });
        }
        Ok(episodes)
    }

    /// Episode `n`, or `None` if there are fewer.
    pub fn nth(&self, n: u64) -> Option<Episode> {
        let most = if self.timing.every.is_some() { self.timing.count } else { Some(1) };
        if most.is_some_and(|most| n >= most) || self.timing.count == Some(0) {
            return None;
        }
        let begin = self.begin(n);
        let end = self.timing.length.map(|length| begin.saturating_add(length));
        match self.timing.until {
            Some(until) if end.is_some_and(|end| end > until) || begin >= until => None,
            until => Some(Episode { n, begin, end: end.or(until) }),
        }
    }

    /// The end of the run, if one was set; may be later than the end of the last episode.
    pub fn until(&self) -> Option<Nanos> {
        self.timing.until
    }

    /// Whether the run continues until somebody ends it.
    pub fn is_endless(&self) -> bool {
        let timing = &self.timing;
        timing.until.is_none()
            && match timing.every {
                Some(_) => timing.count.is_none(),
                None => timing.length.is_none(),
            }
    }

    fn begin(&self, n: u64) -> Nanos {
        let even = n.saturating_mul(self.timing.every.map_or(0, |every| every.0));
        let centre = self.start.saturating_add(Nanos(even));
        let moved = self.stream.up_to(n, self.timing.jitter.0.saturating_mul(2));
        // A first episode that would begin before the run begins with the run.
        centre.saturating_add(Nanos(moved)).saturating_sub(self.timing.jitter)
    }
}

/// Different from the labels of arrivals: a run and its disturbance may have the same seed.
const LABEL: u64 = 0xd157;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn all(timing: Timing) -> Vec<Episode> {
        let episodes = Episodes::new(timing).unwrap();
        assert!(!episodes.is_endless());
        (0..).map_while(|n| episodes.nth(n)).collect()
    }

    #[test]
    fn episodes_follow_each_other_evenly_and_whole() {
        let timing =
            Timing { every: Some(ms(100)), length: Some(ms(30)), until: Some(ms(420)), ..Timing::default() };
        let begins: Vec<u64> = all(timing).iter().map(|episode| episode.begin.0 / 1_000_000).collect();
        // The one at 400 ms would last until 430 ms.
        assert_eq!(begins, [100, 200, 300]);
        let from_zero = Timing { start: Some(Nanos::ZERO), count: Some(2), ..timing };
        let ends: Vec<Option<Nanos>> = all(from_zero).iter().map(|episode| episode.end).collect();
        assert_eq!(ends, [Some(ms(30)), Some(ms(130))]);
    }

    #[test]
    fn without_every_there_is_one_episode_as_long_as_the_run() {
        let timing = Timing { until: Some(ms(500)), start: Some(ms(20)), ..Timing::default() };
        assert_eq!(all(timing), [Episode { n: 0, begin: ms(20), end: Some(ms(500)) }]);
        let by_hand = Episodes::new(Timing::default()).unwrap();
        assert!(by_hand.is_endless());
        assert_eq!(by_hand.nth(0), Some(Episode { n: 0, begin: Nanos::ZERO, end: None }));
        assert_eq!(by_hand.nth(1), None);
    }

    #[test]
    fn impossible_timings_are_refused_in_one_line() {
        let even = Timing { every: Some(ms(100)), length: Some(ms(80)), ..Timing::default() };
        for (timing, error) in [
            (Timing { length: None, ..even }, TimingError::NoLength),
            (Timing { length: Some(Nanos::ZERO), ..even }, TimingError::NoTime),
            (Timing { every: Some(Nanos::ZERO), ..even }, TimingError::NoGap),
            (Timing { every: None, jitter: ms(1), ..even }, TimingError::OnlyOne),
            (Timing { every: None, count: Some(2), ..even }, TimingError::OnlyOne),
            (Timing { until: Some(ms(150)), ..even }, TimingError::NoneFits { end: ms(180), until: ms(150) }),
            (
                Timing { jitter: ms(11), ..even },
                TimingError::Overlap { length: ms(80), jitter: ms(11), every: ms(100) },
            ),
        ] {
            assert_eq!(Episodes::new(timing).unwrap_err(), error, "{timing:?}");
        }
    }

    proptest::proptest! {
        /// If this fails, a process is frozen twice at the same time, or a seed does not reproduce the same
        /// disturbances.
        #[test]
        fn moved_episodes_never_overlap_and_depend_on_the_seed_alone(
            seed in proptest::prelude::any::<u64>(), every in 10u64..1_000, length in 1u64..10, part in 0u64..=100
        ) {
            let jitter = Nanos((ms(every).0 - ms(length).0) / 2 * part / 100);
            let timing = Timing {
                every: Some(ms(every)), length: Some(ms(length)), jitter, seed, count: Some(50), ..Timing::default()
            };
            let episodes = all(timing);
            proptest::prop_assert_eq!(episodes.len(), 50);
            proptest::prop_assert!(episodes.windows(2).all(|two| two[0].end.unwrap() <= two[1].begin));
            for episode in &episodes {
                let centre = ms(every * (episode.n + 1));
                proptest::prop_assert!(episode.begin.0.abs_diff(centre.0) <= jitter.0);
            }
            proptest::prop_assert_eq!(&episodes, &all(timing));
        }
    }
}
