//! Whether the run counted everything, ended by itself, and measured anything at all.

use super::{Evidence, ended_in};
use record::document::{Finding, State, VerdictWord};
use record::{Check, Outcome};

/// Scheduled = the sum of all outcomes. A law without tolerance: a run that breaks it has lost count.
pub(super) fn conservation(evidence: &Evidence<'_>) -> Option<Finding> {
    let (scheduled, ended) = (evidence.total.counts.scheduled, evidence.total.ended());
    // While a run is in progress, outstanding requests have not ended.
    let holds = scheduled == ended || (evidence.state == State::Running && ended < scheduled);
    if let Some(warmup) = evidence.warmup.filter(|warmup| warmup.scheduled != warmup.ended()) {
        let measured =
            format!("{} requests of the warm-up were scheduled, {} ended", warmup.scheduled, warmup.ended());
        return Some(lost_count(measured));
    }
    (!holds).then(|| lost_count(format!("{scheduled} requests were scheduled, {ended} ended")))
}

fn lost_count(measured: String) -> Finding {
    Finding {
        check: Check::Conservation,
        makes: VerdictWord::Invalid,
        measured,
        limit: "equal".to_owned(),
        advice: "this is a bug in Parallax: report it and attach the results directory".to_owned(),
    }
}

pub(super) fn nothing_measured(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.total.counts.ok == 0 && evidence.state != State::Running).then(|| Finding {
        check: Check::NothingMeasured,
        makes: VerdictWord::Invalid,
        measured: format!("no request succeeded{}", cause(evidence)),
        limit: "at least one ok".to_owned(),
        advice: "see the outcomes below, and fix their cause first".to_owned(),
    })
}

/// The outcome that explains the others, as the rest of a sentence.
fn cause(evidence: &Evidence<'_>) -> String {
    let scheduled = evidence.total.counts.scheduled;
    let count = |outcome| ended_in(evidence, outcome);
    match Outcome::cause(count) {
        Some(outcome) => format!(": {} of {scheduled} ended in {}", count(outcome), outcome.name()),
        None => format!(": {scheduled} were scheduled"),
    }
}

pub(super) fn broken_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Broken).then(|| Finding {
        check: Check::BrokenOff,
        makes: VerdictWord::Invalid,
        measured: "the run ended early because of an error in Parallax or in the host's event facility"
            .to_owned(),
        limit: "a run ends as planned, or is ended by the user".to_owned(),
        advice:
            "run it again; if it happens again, report the error message and attach the results directory"
                .to_owned(),
    })
}

pub(super) fn cut_off(evidence: &Evidence<'_>) -> Option<Finding> {
    (evidence.state == State::Recovered).then(|| Finding {
        check: Check::CutOff,
        makes: VerdictWord::Degraded,
        measured: "the run was not recorded to its end: the process was killed, or could not write"
            .to_owned(),
        limit: "a run ends as planned, or is ended by the user".to_owned(),
        advice: "at most the last second is missing; everything before it is complete".to_owned(),
    })
}

pub(super) fn unknown_outcome(evidence: &Evidence<'_>) -> Option<Finding> {
    let count = ended_in(evidence, Outcome::Unknown);
    (count > 0).then(|| Finding {
        check: Check::UnknownOutcome,
        makes: VerdictWord::Degraded,
        measured: format!("{count} requests ended in an unknown way"),
        limit: "0".to_owned(),
        advice: "this is a bug in Parallax: report it and attach the results directory".to_owned(),
    })
}
