//! The script of a run: which statement is next, with which values, and what follows.

use std::convert::Infallible;

use super::parameters::Parameters;
use super::rows::Rows;
use codec::{FailedCheck, Next, Route, StatementIndex};

/// Decides what is sent. Shared, read-only, by all workers.
pub trait Script: Send + Sync {
    /// What one unit of the load sends next; see [`Protocol::Journey`](codec::Protocol::Journey).
    type Journey: Send;
    /// What the script takes from a response for the statements that follow.
    type Taken;

    /// The first statement of unit `n`; depends on `n` alone.
    fn begin(&self, n: u64) -> Self::Journey;

    /// As [`Protocol::route`](codec::Protocol::route).
    fn route(&self, journey: &Self::Journey) -> Route;

    /// As [`Protocol::kinds`](codec::Protocol::kinds).
    fn kinds(&self) -> usize;

    /// As [`Protocol::journeys`](codec::Protocol::journeys).
    fn journeys(&self) -> usize {
        0
    }

    /// The current statement of `journey`; adds the values of its parameters to `parameters`, which is empty.
    ///
    /// # Cost
    ///
    /// Hot path: once per statement.
    fn ask(&self, journey: &Self::Journey, parameters: &mut Parameters) -> Ask;

    /// Checks a response that the server did not refuse, and takes what later statements need. Called only if
    /// [`Ask::keep`] asked for it. `step` is that of [`Ask`].
    ///
    /// # Errors
    ///
    /// The check that the response failed.
    fn take(&self, step: u16, rows: &Rows) -> Result<Self::Taken, FailedCheck>;

    /// What follows the current statement of `journey`.
    fn advance(&self, journey: Self::Journey, after: After<Self::Taken>) -> Next<Self::Journey>;
}

/// A statement to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub statement: StatementIndex,
    /// The step that checks the response.
    pub step: u16,
    pub keep: Keep,
}

/// What the script needs of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    /// The number of rows.
    Counts,
    /// That, and the first row.
    FirstRow,
}

/// How a statement ended, for its script.
#[derive(Debug)]
pub enum After<T> {
    /// As expected, with what the script took from the response.
    Good(Option<T>),
    /// The server or a check refused it.
    Failed,
    /// The server rolled back the transaction, or refused to wait any longer: a retry may succeed. `has_ended`: the
    /// server has rolled back the whole transaction.
    Retryable { has_ended: bool },
    /// Without a response.
    Unanswered,
}

/// Statements without parameters that take turns.
#[derive(Debug, Clone)]
pub struct StatementTurns {
    /// The kind of each statement.
    kinds: Vec<u16>,
}

impl StatementTurns {
    /// Statements by index, each of the kind at its index. `None` if there are none, or more than an index can name.
    pub fn new(kinds: Vec<u16>) -> Option<StatementTurns> {
        let count = StatementIndex::try_from(kinds.len()).ok()?;
        (count > 0).then_some(StatementTurns { kinds })
    }
}

impl Script for StatementTurns {
    type Journey = StatementIndex;
    type Taken = Infallible;

    #[inline]
    fn begin(&self, n: u64) -> StatementIndex {
        // Lossless: the remainder is below the number of statements.
        (n % self.kinds.len() as u64) as StatementIndex
    }

    #[inline]
    fn route(&self, statement: &StatementIndex) -> Route {
        Route { kind: self.kinds[usize::from(*statement)], ..Route::default() }
    }

    fn kinds(&self) -> usize {
        self.kinds.iter().max().map_or(0, |kind| usize::from(*kind) + 1)
    }

    #[inline]
    fn ask(&self, statement: &StatementIndex, _: &mut Parameters) -> Ask {
        Ask { statement: *statement, step: *statement, keep: Keep::Nothing }
    }

    fn take(&self, _: u16, _: &Rows) -> Result<Infallible, FailedCheck> {
        unreachable!("nothing of a response is kept, so nothing is taken from it")
    }

    fn advance(&self, _: StatementIndex, _: After<Infallible>) -> Next<StatementIndex> {
        Next::End
    }
}
