//! Exit codes: documented, stable, and never 0 for a run that should not be believed.

use std::process::ExitCode;

use record::Outcome;
use record::document::{Document, State, VerdictWord};

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done and valid.
    Done,
    /// Usage or environment: we could not do what was asked.
    Refused,
    /// The measurement is invalid.
    Invalid,
    /// Nothing could be reached.
    Unreachable,
    /// Ended by the user; the partial record is kept.
    Interrupted,
}

impl Exit {
    /// What a finished run's document means for the exit code.
    pub fn of(document: &Document) -> Exit {
        if document.state == State::Interrupted {
            return Exit::Interrupted;
        }
        if document.state == State::Broken {
            return Exit::Invalid;
        }
        if nothing_reached(document) {
            return Exit::Unreachable;
        }
        match document.verdict.as_ref().map(|verdict| verdict.word) {
            Some(VerdictWord::Valid | VerdictWord::Degraded) => Exit::Done,
            Some(VerdictWord::Invalid) | None => Exit::Invalid,
        }
    }
}

fn nothing_reached(document: &Document) -> bool {
    const UNREACHED: [Outcome; 4] =
        [Outcome::ResolveFailed, Outcome::ConnectRefused, Outcome::ConnectTimeout, Outcome::ConnectFailed];
    document.results.as_ref().is_some_and(|results| {
        let tried = results.outcomes.iter().any(|row| is_one_of(&row.outcome, &UNREACHED));
        tried && results.totals.connections_opened == 0
    })
}

fn is_one_of(name: &str, outcomes: &[Outcome]) -> bool {
    Outcome::from_name(name).is_some_and(|outcome| outcomes.contains(&outcome))
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Invalid => 3,
            Exit::Unreachable => 4,
            Exit::Interrupted => 130,
        })
    }
}
