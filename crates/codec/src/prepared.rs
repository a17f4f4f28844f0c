//! Which statements a session has prepared on its server.
//!
//! The state belongs to one [`Session`](crate::Session), and a session to one connection: after a reconnect there is
//! a new session, which has prepared nothing.

/// A statement of the run, by its place in the run's list.
pub type StatementIndex = u16;

/// How far the preparation of a statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preparation {
    /// The server does not know the statement.
    #[default]
    Absent,
    /// The server was asked to prepare it and has not confirmed.
    Requested,
    /// Prepared, under the server's own number where the protocol gives one (MySQL), or 0.
    Ready(u32),
}

/// What a session has prepared. Takes memory once, when it is made: 8 bytes per statement of the run.
#[derive(Debug, Clone, Default)]
pub struct PreparedStatements {
    states: Vec<Preparation>,
}

impl PreparedStatements {
    /// Nothing prepared, of a run with `statements` statements.
    pub fn new(statements: usize) -> PreparedStatements {
        PreparedStatements { states: vec![Preparation::Absent; statements] }
    }

    /// How far `statement` is; [`Preparation::Absent`] for one that the run does not have.
    pub fn get(&self, statement: StatementIndex) -> Preparation {
        self.states.get(usize::from(statement)).copied().unwrap_or_default()
    }

    /// Sets how far `statement` is. A server may drop one by itself: then it is [`Preparation::Absent`] again.
    ///
    /// # Panics
    ///
    /// For a statement that the run does not have.
    pub fn set(&mut self, statement: StatementIndex, preparation: Preparation) {
        self.states[usize::from(statement)] = preparation;
    }

    /// How many statements are [`Preparation::Ready`].
    pub fn ready(&self) -> usize {
        self.states.iter().filter(|state| matches!(state, Preparation::Ready(_))).count()
    }
}
