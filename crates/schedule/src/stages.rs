//! A sequence of stages as one schedule with one numbering.

use thiserror::Error;
use units::Nanos;

use crate::jitter::{Jittered, MOST_MIXED, partition};
use crate::poisson::Points;
use crate::random::Stream;
use crate::shape::{ONE, Shape};
use crate::stage::{Process, Stage};

/// Several stages as one schedule: a pure function of the stages and the seed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages {
    placed: Vec<Placed>,
    seed: u64,
}

/// Why stages are not a valid schedule. Messages count stages from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StagesError {
    #[error("a schedule needs at least one stage")]
    None,
    #[error("stage {0} has no length; only the last stage may be endless, and only at a constant rate")]
    Endless(usize),
    #[error("stage {0} has length 0; leave it out")]
    Empty(usize),
    #[error(
        "stage {stage}: a jitter of {jitter} mixes up to {mixed} requests; at most {MOST_MIXED} may change \
             places: use a smaller jitter, or poisson"
    )]
    Mixed { stage: usize, jitter: String, mixed: u64 },
    #[error("stage {0} has more than 10^12 requests; use a lower rate or a shorter time")]
    TooMany(usize),
    #[error("no request is due in the whole schedule; raise the rate or the duration")]
    Nothing,
}

/// The maximum number of requests in one stage: positions have room for ten times as many.
const MOST_REQUESTS: f64 = 1e12;

/// One stage with its place in the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub stage: Stage,
    pub begin: Nanos,
    /// Its length; [`Nanos::MAX`] if it has no end.
    pub over: Nanos,
    /// The number of its first request, and how many it has; `u64::MAX` if it has no end.
    pub first: u64,
    pub count: u64,
    /// The position of its first evenly spaced request: the part of a gap left over by the previous stage.
    phase: u64,
    stream: Stream,
}

impl Stages {
    /// A schedule of `stages`, one after another. `seed` is used for all randomness in them.
    ///
    /// # Errors
    ///
    /// [`StagesError`], which names the stage.
    pub fn new(stages: Vec<Stage>, seed: u64) -> Result<Stages, StagesError> {
        let mut placed: Vec<Placed> = Vec::with_capacity(stages.len());
        let (mut begin, mut first, mut phase) = (Nanos::ZERO, 0u64, 0);
        let number_of_stages = stages.len();
        for (index, stage) in stages.into_iter().enumerate() {
            refuse(&stage, index + 1, number_of_stages)?;
            let next = Placed::new(stage, begin, first, phase, Stream::new(seed, index as u64));
            begin = begin.saturating_add(next.over);
            first = first.saturating_add(next.count);
            phase = next.left_over();
            placed.push(next);
        }
        match first {
            _ if placed.is_empty() => Err(StagesError::None),
            0 => Err(StagesError::Nothing),
            _ => Ok(Stages { placed, seed }),
        }
    }

    /// The seed of all randomness in the schedule.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Each stage with its begin and its number of requests; `None` for a stage without end.
    pub fn iter(&self) -> impl Iterator<Item = (&Stage, Nanos, Option<u64>)> {
        self.placed
            .iter()
            .map(|placed| (&placed.stage, placed.begin, (placed.count < u64::MAX).then_some(placed.count)))
    }

    pub(crate) fn placed(&self) -> &[Placed] {
        &self.placed
    }

    /// When request `n` is due; [`Nanos::MAX`] if the schedule has fewer requests.
    pub(crate) fn due(&self, n: u64) -> Nanos {
        let after = self.placed.partition_point(|placed| placed.first <= n);
        let placed = &self.placed[after - 1];
        let due = placed.due(n - placed.first);
        if due == Nanos::MAX { due } else { placed.begin + due }
    }

    pub(crate) fn count_before(&self, end: Nanos) -> u64 {
        // A stage without requests has the same first number as the next one.
        let after = self.placed.partition_point(|placed| placed.begin < end);
        let Some(placed) = after.checked_sub(1).map(|last| &self.placed[last]) else { return 0 };
        placed.first + placed.count_before(end - placed.begin)
    }

    /// The total number of requests; `u64::MAX` if there is no end.
    pub(crate) fn total(&self) -> u64 {
        self.placed.last().map_or(0, |last| last.first.saturating_add(last.count))
    }

    /// When the last stage ends; `None` if it has no end.
    pub(crate) fn end(&self) -> Option<Nanos> {
        let last = self.placed.last()?;
        (last.over < Nanos::MAX).then(|| last.begin + last.over)
    }
}

fn refuse(stage: &Stage, number: usize, of: usize) -> Result<(), StagesError> {
    let Stage::Shaped { shape, process, length } = stage else { return Ok(()) };
    match length {
        None if number < of || !matches!(shape, Shape::Constant(Some(_))) => {
            return Err(StagesError::Endless(number));
        }
        Some(Nanos::ZERO) => return Err(StagesError::Empty(number)),
        Some(over) if shape.integral(*over, *over) > MOST_REQUESTS => {
            return Err(StagesError::TooMany(number));
        }
        _ => {}
    }
    if let Process::Jittered(jitter) = process {
        let mixed = Jittered::mixed(shape, *jitter);
        if mixed > MOST_MIXED {
            return Err(StagesError::Mixed { stage: number, jitter: jitter.to_string(), mixed });
        }
    }
    Ok(())
}

impl Placed {
    fn new(stage: Stage, begin: Nanos, first: u64, phase: u64, stream: Stream) -> Placed {
        let over = stage.length().unwrap_or(Nanos::MAX);
        let mut placed = Placed { stage, begin, over, first, count: u64::MAX, phase, stream };
        placed.count = match &placed.stage {
            Stage::Recorded(recorded) => recorded.instants().len() as u64,
            Stage::Shaped { length: None, .. } => u64::MAX,
            Stage::Shaped { process: Process::Poisson, .. } => placed.count_before(over),
            // Jitter never moves a request out of its stage.
            Stage::Shaped { shape, .. } => {
                let most = (shape.integral(over, over) + 2.0) as u64;
                partition(most, |i| placed.even(shape, i) < over)
            }
        };
        placed
    }

    #[inline]
    fn even(&self, shape: &Shape, i: u64) -> Nanos {
        shape.due(self.phase.saturating_add(i.saturating_mul(ONE)), self.over)
    }

    /// The part of a gap that is left when the stage ends, used by an evenly spaced stage after it.
    fn left_over(&self) -> u64 {
        match &self.stage {
            // A Poisson process has no memory, and a recording has no rate.
            Stage::Recorded(_) | Stage::Shaped { process: Process::Poisson, .. } => 0,
            Stage::Shaped { shape, .. } => {
                let next = self.phase.saturating_add(self.count.saturating_mul(ONE));
                next.saturating_sub(shape.position(self.over, self.over)).min(ONE - 1)
            }
        }
    }

    pub(crate) fn points(&self) -> Points {
        Points::new(self.stream)
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }

    /// The jittered requests of this stage, and how many of them may change places; `None` without jitter.
    pub(crate) fn jittered(&self) -> Option<(Jittered, u64)> {
        match &self.stage {
            Stage::Shaped { shape, process: Process::Jittered(jitter), .. } => {
                let places = (self.phase, self.count);
                let jittered = Jittered::new(*shape, self.over, places, *jitter, self.stream);
                Some((jittered, Jittered::mixed(shape, *jitter)))
            }
            _ => None,
        }
    }

    /// When its `i`-th request is due, from the stage's begin. Stateless: to walk along the stage, use the cursor.
    pub(crate) fn due(&self, i: u64) -> Nanos {
        if i >= self.count {
            return Nanos::MAX;
        }
        match &self.stage {
            Stage::Recorded(recorded) => recorded.due(i),
            Stage::Shaped { shape, process, .. } => match process {
                Process::Even => self.even(shape, i),
                Process::Poisson => shape.due(self.points().position(i), self.over),
                Process::Jittered(_) => self.jittered().map_or(Nanos::MAX, |(jittered, _)| jittered.due(i)),
            },
        }
    }

    /// How many of its requests are due before `end`, which is relative to the stage's begin.
    fn count_before(&self, end: Nanos) -> u64 {
        match &self.stage {
            Stage::Recorded(recorded) => recorded.instants().partition_point(|&instant| instant < end) as u64,
            Stage::Shaped { shape, process, .. } => match process {
                _ if end >= self.over && self.count < u64::MAX => self.count,
                Process::Even => partition(self.count, |i| self.even(shape, i) < end),
                Process::Poisson => {
                    let end = end.min(self.over);
                    self.points().count_while(|position| shape.due(position, self.over) < end)
                }
                Process::Jittered(_) => self.jittered().map_or(0, |(jittered, _)| jittered.count_before(end)),
            },
        }
    }
}
