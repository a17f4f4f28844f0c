//! Exit codes: documented, stable, and never 0 for an invalid run.

use std::process::ExitCode;

use record::document::{Document, State, Threshold, ThresholdResult, VerdictWord};
use record::import::Import;
use record::search::{Limit, SearchDocument};

/// The exit status of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done and valid.
    Done,
    /// Wrong usage or a problem of this host: the request could not be carried out.
    Refused,
    /// A `--fail-if` condition is true or undecided.
    Missed,
    /// The measurement is invalid.
    Invalid,
    /// The server could not be reached.
    Unreachable,
    /// Ended by the user; the partial record is kept.
    Interrupted,
    /// The exit code of the command that `hiccup` ran.
    Command(u8),
}

impl Exit {
    /// The exit status for a finished run.
    pub fn of(document: &Document) -> Exit {
        if document.state == State::Interrupted {
            return Exit::Interrupted;
        }
        if document.state == State::Broken {
            return Exit::Invalid;
        }
        if findings::nothing_reached(document) {
            return Exit::Unreachable;
        }
        match document.verdict.as_ref().map(|verdict| verdict.word) {
            // An invalid measurement proves neither a miss nor a hit, so the thresholds come last.
            Some(VerdictWord::Valid | VerdictWord::Degraded) if missed(&document.thresholds) => Exit::Missed,
            Some(VerdictWord::Valid | VerdictWord::Degraded) => Exit::Done,
            Some(VerdictWord::Invalid) | None => Exit::Invalid,
        }
    }

    /// The same with `--on-invalid warn`: an invalid measurement is accepted.
    pub fn of_believed(document: &Document) -> Exit {
        match Exit::of(document) {
            Exit::Invalid if document.state == State::Finished && missed(&document.thresholds) => {
                Exit::Missed
            }
            Exit::Invalid if document.state == State::Finished => Exit::Done,
            exit => exit,
        }
    }

    /// The exit status for the result of a search.
    pub fn of_search(document: &SearchDocument) -> Exit {
        match (&document.answer, document.state) {
            (_, State::Interrupted) => Exit::Interrupted,
            (_, State::Broken) => Exit::Invalid,
            (Some(answer), _) if answer.holds_per_s.is_some() => Exit::Done,
            (Some(answer), _) if answer.limit == Limit::Server => Exit::Missed,
            _ => Exit::Invalid,
        }
    }

    /// The exit status for an observer: Ctrl-C is the usual end of one without a given end.
    pub fn of_observer(has_end: bool, is_stopped: bool) -> Exit {
        if has_end && is_stopped { Exit::Interrupted } else { Exit::Done }
    }

    /// The exit status for an import.
    pub fn of_import(import: &Import) -> Exit {
        match import.verdict.as_ref().map_or(VerdictWord::Invalid, |verdict| verdict.word) {
            VerdictWord::Invalid => Exit::Invalid,
            _ if missed(&import.thresholds) => Exit::Missed,
            _ => Exit::Done,
        }
    }
}

/// An undecided threshold counts as missed, because it is not known to be met.
fn missed(thresholds: &[Threshold]) -> bool {
    thresholds.iter().any(|threshold| threshold.result != ThresholdResult::Met)
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Missed => 2,
            Exit::Invalid => 3,
            Exit::Unreachable => 4,
            Exit::Interrupted => crate::signals::interrupted_code(),
            Exit::Command(code) => code,
        })
    }
}

#[cfg(test)]
mod tests {
    use record::document::{Quantity, Verdict};

    use super::*;

    fn document(state: State, word: VerdictWord, result: ThresholdResult) -> Document {
        // The golden run, which any version can read.
        let golden = include_str!("../../../formats/golden/run/run.json");
        let mut document: Document = serde_json::from_str(golden).unwrap();
        document.state = state;
        document.verdict = Some(Verdict { word, findings: Vec::new(), unchecked: Vec::new() });
        document.thresholds = vec![Threshold {
            fail_if: "error_share > 1%".to_owned(),
            measured: None,
            limit: Quantity::Share(0.01),
            result,
            reason: None,
        }];
        document
    }

    /// If this fails, a script takes half of a measurement for the whole.
    #[test]
    fn an_observer_that_is_stopped_before_its_end_is_interrupted() {
        assert_eq!(Exit::of_observer(true, true), Exit::Interrupted);
        assert_eq!(Exit::of_observer(true, false), Exit::Done);
        assert_eq!(Exit::of_observer(false, true), Exit::Done);
    }

    /// If this fails, a CI job mistakes an invalid measurement for a slow server.
    #[test]
    fn a_missed_threshold_counts_only_where_the_measurement_does() {
        use ThresholdResult::{Met, Missed, Undecided};
        use VerdictWord::{Degraded, Invalid, Valid};
        for (state, word, result, exit) in [
            (State::Finished, Valid, Met, Exit::Done),
            (State::Finished, Valid, Missed, Exit::Missed),
            (State::Finished, Degraded, Undecided, Exit::Missed),
            (State::Finished, Invalid, Missed, Exit::Invalid),
            (State::Broken, Valid, Missed, Exit::Invalid),
            (State::Interrupted, Valid, Missed, Exit::Interrupted),
        ] {
            assert_eq!(Exit::of(&document(state, word, result)), exit, "{state:?} {word:?} {result:?}");
        }
        for (state, result, exit) in [
            (State::Finished, Missed, Exit::Missed),
            (State::Finished, Met, Exit::Done),
            (State::Broken, Met, Exit::Invalid),
            (State::Interrupted, Met, Exit::Interrupted),
        ] {
            assert_eq!(Exit::of_believed(&document(state, Invalid, result)), exit, "{state:?} {result:?}");
        }
    }
}
