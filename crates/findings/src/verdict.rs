//! Whether to trust a record, and the results of its thresholds.

use record::document::{self, Document, State, ThresholdResult, Unchecked, VerdictWord};

use crate::view::{Cell, NotMade, Outcome, Phrase, Reason, Threshold, Value, Verdict, Word, phrase};

/// The verdict of a run, finished or not.
pub(crate) fn verdict_so_far(document: &Document) -> Verdict {
    let Some(verdict) = &document.verdict else {
        return Verdict {
            word: Word::Degraded,
            head: Phrase::new("no verdict"),
            summary: Phrase::new("the run has not ended"),
            reasons: Vec::new(),
            not_made: Vec::new(),
        };
    };
    let mut view = verdict_view(verdict);
    if document.state == State::Running {
        view.head = view.head.then(" so far", Phrase::default());
    }
    view
}

/// The verdict with its reasons.
pub(crate) fn verdict_view(verdict: &document::Verdict) -> Verdict {
    let findings = &verdict.findings;
    let notes = findings.iter().filter(|finding| finding.makes == VerdictWord::Valid).count() as u64;
    let not_made = not_made(verdict);
    let every = if not_made.is_empty() { "all checks passed" } else { "all checks that were made passed" };
    let summary = match findings.len() as u64 - notes {
        0 if notes > 0 => {
            Phrase::new(every).then(", with ", phrase!("{notes}", notes = Value::items(notes, "note")))
        }
        0 => Phrase::new(every),
        1 => Phrase::new("one check failed"),
        n => phrase!("{failed} checks failed", failed = Value::Id(n)),
    };
    let reason = |finding: &document::Finding| {
        let measured = finding.measured.trim_end_matches('.');
        Reason {
            check: finding.check.to_string(),
            concern: finding.check.concern().name().to_owned(),
            makes: word(finding.makes),
            finding: phrase!("{measured}", measured = measured),
            limit: finding.limit.clone(),
            advice: Phrase::text(finding.advice.as_str()),
        }
    };
    Verdict {
        word: word(verdict.word),
        head: Phrase::new(word(verdict.word).name()),
        summary,
        reasons: findings.iter().map(reason).collect(),
        not_made,
    }
}

/// Checks that were not made, except the opt-in ones: the first line has no room for those, and the record has them.
fn not_made(verdict: &document::Verdict) -> Vec<NotMade> {
    let shown: Vec<&Unchecked> = verdict.unchecked.iter().filter(|one| !one.check.is_opt_in()).collect();
    let alike = shown.chunk_by(|a, b| a.reason == b.reason);
    let group = |alike: &[&Unchecked]| NotMade {
        checks: alike.iter().map(|one| one.check.to_string()).collect(),
        reason: alike[0].reason.clone(),
    };
    alike.map(group).collect()
}

fn word(word: VerdictWord) -> Word {
    match word {
        VerdictWord::Valid => Word::Valid,
        VerdictWord::Degraded => Word::Degraded,
        VerdictWord::Invalid => Word::Invalid,
    }
}

/// The thresholds of the run, the missed ones first.
pub(crate) fn thresholds_view(thresholds: &[document::Threshold]) -> Vec<Threshold> {
    let of = |result| thresholds.iter().filter(move |threshold| threshold.result == result);
    let results = [
        (ThresholdResult::Missed, Outcome::Missed),
        (ThresholdResult::Undecided, Outcome::Undecided),
        (ThresholdResult::Met, Outcome::Met),
    ];
    let ordered = results.into_iter().flat_map(|(result, outcome)| of(result).map(move |one| (one, outcome)));
    let view = |(threshold, result): (&document::Threshold, Outcome)| Threshold {
        fail_if: threshold.fail_if.clone(),
        result,
        measured: threshold.measured.map_or_else(Cell::absent, Cell::from),
        limit: threshold.limit.into(),
        because: threshold.reason.clone(),
    };
    ordered.map(view).collect()
}
