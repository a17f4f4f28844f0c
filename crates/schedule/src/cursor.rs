//! One worker's walk along the schedule: the numbers of its own requests in order, without allocations.

use units::Nanos;

use crate::Arrivals;
use crate::jitter::{Jittered, Sorter};
use crate::poisson::Points;
use crate::residue::Residue;
use crate::shape::Shape;
use crate::stage::{Process, Stage};
use crate::stages::{Placed, Stages};

/// A walk along one worker's share of a schedule.
///
/// A random process is walked number by number, those of other workers included, so that all workers agree on one
/// sequence.
#[derive(Debug, Clone)]
pub struct Cursor {
    arrivals: Arrivals,
    residue: Residue,
    /// How many of its requests it has passed.
    passed: u64,
    next: Nanos,
    /// The index of the stage that the walk is in.
    stage: usize,
    /// Allocated once, for all stages that need it.
    points: Option<Points>,
    sorter: Option<Sorter>,
}

impl Cursor {
    /// A walk that begins at the first number of `residue`. Allocates everything that the whole walk needs.
    pub fn new(arrivals: Arrivals, residue: Residue) -> Cursor {
        let (mut points, mut sorter) = (None, None);
        if let Arrivals::Staged(stages) = &arrivals {
            let is_poisson =
                |placed: &&Placed| matches!(placed.stage, Stage::Shaped { process: Process::Poisson, .. });
            points = stages.placed().iter().find(is_poisson).map(Placed::points);
            let jittered = stages.placed().iter().filter_map(Placed::jittered);
            let widest: Option<(Jittered, u64)> = jittered.max_by_key(|(_, mixed)| *mixed);
            sorter = widest.map(|(jittered, mixed)| Sorter::new(jittered, mixed));
        }
        let mut cursor = Cursor { arrivals, residue, passed: 0, next: Nanos::ZERO, stage: 0, points, sorter };
        cursor.enter(0);
        cursor.look();
        cursor
    }

    /// When the worker's next request is due; [`Nanos::MAX`] if there is none left.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.next
    }

    /// The global number of the next request.
    #[inline]
    pub fn number(&self) -> u64 {
        self.residue.nth(self.passed)
    }

    /// How many of the worker's requests the walk has passed.
    #[inline]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Moves on to the worker's next request.
    #[inline]
    pub fn advance(&mut self) {
        self.passed += 1;
        self.look();
    }

    #[inline]
    fn look(&mut self) {
        let n = self.number();
        let due = match &self.arrivals {
            Arrivals::Constant(rate) => rate.due(n),
            Arrivals::Staged(_) => self.staged(n),
        };
        // Never backwards: two neighbouring floats may differ by less than their error.
        self.next = self.next.max(due);
    }

    fn staged(&mut self, n: u64) -> Nanos {
        let Arrivals::Staged(stages) = &self.arrivals else { return Nanos::MAX };
        let last = stages.placed().len() - 1;
        let mut stage = self.stage;
        let is_past = |placed: &Placed| n - placed.first >= placed.count;
        while stage < last && is_past(&stages.placed()[stage]) {
            stage += 1;
        }
        if stage != self.stage {
            self.enter(stage);
        }
        let Arrivals::Staged(stages) = &self.arrivals else { return Nanos::MAX };
        walked(stages, self.stage, n, self.points.as_mut(), self.sorter.as_mut())
    }

    fn enter(&mut self, stage: usize) {
        self.stage = stage;
        let Arrivals::Staged(stages) = &self.arrivals else { return };
        let placed = &stages.placed()[stage];
        if let Some(points) = &mut self.points {
            points.restart(placed.stream());
        }
        if let (Some(sorter), Some((jittered, _))) = (&mut self.sorter, placed.jittered()) {
            sorter.restart(jittered);
        }
    }
}

#[inline]
fn walked(
    stages: &Stages,
    stage: usize,
    n: u64,
    points: Option<&mut Points>,
    sorter: Option<&mut Sorter>,
) -> Nanos {
    let placed = &stages.placed()[stage];
    let i = n - placed.first;
    if i >= placed.count {
        return Nanos::MAX;
    }
    let along = |shape: &Shape, points: &mut Points| shape.due(points.position(i), placed.over);
    let due = match (&placed.stage, points, sorter) {
        (Stage::Shaped { shape, process: Process::Poisson, .. }, Some(points), _) => along(shape, points),
        (Stage::Shaped { process: Process::Jittered(_), .. }, _, Some(sorter)) => sorter.due(i),
        _ => placed.due(i),
    };
    placed.begin.saturating_add(due)
}
