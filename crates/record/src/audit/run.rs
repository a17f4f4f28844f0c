//! Whether the run counted everything, ended by itself, and measured anything at all.

use super::{Evidence, ended_in};
use crate::check::Check;
use crate::document::{Finding, State, VerdictWord};
use crate::outcome::Outcome;

/// Scheduled = the sum of all outcomes. Not a limit but a law: a run that breaks it has lost count.
pub(super) fn conservation(evidence: &Evidence<'_>) -> Option<Finding> {
    let (scheduled, ended) = (evidence.total.counts.scheduled, evidence.total.ended());
    // While a run goes on, what is under way has not ended.
    let holds = scheduled == ended || (evidence.state == State::Running && ended < scheduled);
    (!holds).then(|| Finding {
        check: Check::Conservation,
        makes: VerdictWord::Invalid,
        measured: format!("{scheduled} requests were scheduled, {ended} ended"),
        limit: "both are equal".to_owned(),
        advice: "a defect of this program: report it, with the run folder".to_owned(),
    })
}

pub(super) fn nothing_measured(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.total.counts.ok == 0 && evidence.state != State::Running).then(|| Finding {
        check: Check::NothingMeasured,
        makes: VerdictWord::Invalid,
        measured: format!(
            "none of {} requests was answered well{}",
            evidence.total.counts.scheduled,
            what_happened_instead(evidence)
        ),
        limit: "at least one ok".to_owned(),
        advice: "see the outcomes for what happened instead, and mend that first".to_owned(),
    })
}

/// The most frequent end of the requests.
fn what_happened_instead(evidence: &Evidence<'_>) -> String {
    let counts = Outcome::ALL.map(|outcome| (ended_in(evidence, outcome), outcome));
    match counts.into_iter().max_by_key(|(count, _)| *count) {
        Some((count, outcome)) if count > 0 => format!(": {count} ended in {}", outcome.name()),
        _ => String::new(),
    }
}

pub(super) fn broken_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Broken).then(|| Finding {
        check: Check::BrokenOff,
        makes: VerdictWord::Invalid,
        measured: "the run broke off through a fault of this program or of the host's event facility"
            .to_owned(),
        limit: "a run ends by itself or by the user".to_owned(),
        advice: "run again; should it recur, report the error message, with the run folder".to_owned(),
    })
}

pub(super) fn cut_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Recovered).then(|| Finding {
        check: Check::CutOff,
        makes: VerdictWord::Degraded,
        measured: "the run's process ended before the run did".to_owned(),
        limit: "a run ends by itself or by the user".to_owned(),
        advice: "at most the last second is missing; what came before it holds".to_owned(),
    })
}

pub(super) fn unknown_outcome(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = ended_in(evidence, Outcome::Unknown);
    (count > 0).then(|| Finding {
        check: Check::UnknownOutcome,
        makes: VerdictWord::Degraded,
        measured: format!("{count} requests ended in a way that has no name"),
        limit: "0".to_owned(),
        advice: "a gap in this program: report it, with the run folder".to_owned(),
    })
}
