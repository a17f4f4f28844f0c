//! The position of a unit of demand in its journey, and what the texts of its steps are filled in from. Independent of
//! the steps' protocol.

use units::Nanos;

use crate::plan::{Play, Scenario, Step};
use crate::template::Moment;

/// A unit of demand and its current step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    /// The unit's number in the run.
    pub n: u64,
    pub play: u32,
    /// The step's place in the list of all.
    pub step: u16,
}

/// The values that a step's texts are filled in from.
pub(crate) struct Filling<'a> {
    pub scenario: &'a Scenario,
    pub n: u64,
    pub captured: &'a [String],
    pub repetition: Repetition,
}

/// Which repetition of a step it is, and which draws belong to the step alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Repetition {
    /// From 0.
    pub nth: u32,
    /// Draws from this one on belong to the step; earlier ones are those of variables, the same for the whole journey.
    pub own_draws: u64,
}

impl Moment for Filling<'_> {
    fn captured(&self, slot: u16) -> &str {
        self.captured.get(usize::from(slot)).map_or("", String::as_str)
    }

    fn cell(&self, table: u16, column: u16) -> &str {
        let index = usize::from(table);
        let (table, ordinals) = (&self.scenario.tables[index], &self.scenario.ordinals[index]);
        table.cell(table.row(self.scenario.seed, self.n, ordinals.of(self.n)), column)
    }

    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    fn n(&self) -> u64 {
        self.n
    }

    fn draw_id(&self, id: u64) -> u64 {
        let Repetition { nth, own_draws } = self.repetition;
        // Above every number of a draw in a file.
        if id >= own_draws { id + (u64::from(nth) << 40) } else { id }
    }
}

impl Scenario {
    /// The first step of unit `n`.
    pub(crate) fn position(&self, n: u64) -> Position {
        // Below the length of a vector, so the conversion loses nothing.
        let play = self.turns[(n % self.turns.len() as u64) as usize];
        Position { n, play, step: self.plays[play as usize].first }
    }

    pub(crate) fn play(&self, at: Position) -> &Play {
        &self.plays[at.play as usize]
    }

    pub(crate) fn step(&self, at: Position) -> &Step {
        &self.steps[usize::from(at.step)]
    }

    /// Whether the current step is the last one of its journey.
    pub(crate) fn is_last(&self, at: Position) -> bool {
        let play = self.play(at);
        at.step + 1 >= play.first + play.steps
    }

    /// The wait after the current step.
    pub(crate) fn think(&self, at: Position) -> Nanos {
        let step = self.step(at);
        step.think.time(self.seed, at.n, step.think_draw)
    }
}
