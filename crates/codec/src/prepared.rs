//! Which statements a session has prepared on its server.
//!
//! The state belongs to one [`Session`](crate::Session), and a session to one connection: a reconnect creates a new
//! session, which has prepared nothing.

/// The index of a statement in the run's list.
pub type StatementIndex = u16;

/// How far the preparation of a statement has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preparation {
    /// The server does not know the statement.
    #[default]
    Absent,
    /// Preparing it was requested, and the server has not confirmed yet.
    Requested,
    /// Prepared, with the server's number for it if the protocol has one (MySQL), or 0.
    Ready(u32),
}

/// What a session has prepared. Allocates once, when it is created: 8 bytes per statement of the run.
#[derive(Debug, Clone, Default)]
pub struct PreparedStatements {
    states: Vec<Preparation>,
}

impl PreparedStatements {
    /// Nothing is prepared, for a run with `statements` statements.
    pub fn new(statements: usize) -> PreparedStatements {
        PreparedStatements { states: vec![Preparation::Absent; statements] }
    }

    /// How far the preparation of `statement` has come; [`Preparation::Absent`] if the run has no such statement.
    pub fn get(&self, statement: StatementIndex) -> Preparation {
        self.states.get(usize::from(statement)).copied().unwrap_or_default()
    }

    /// Sets how far the preparation of `statement` has come. If a server drops a statement by itself, it becomes
    /// [`Preparation::Absent`] again.
    ///
    /// # Panics
    ///
    /// If the run has no such statement.
    pub fn set(&mut self, statement: StatementIndex, preparation: Preparation) {
        self.states[usize::from(statement)] = preparation;
    }

    /// How many statements are [`Preparation::Ready`].
    pub fn ready(&self) -> usize {
        self.states.iter().filter(|state| matches!(state, Preparation::Ready(_))).count()
    }
}
