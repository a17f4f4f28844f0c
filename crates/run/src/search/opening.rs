//! What is known of a search before its first probe.

use record::document::{Envelope, OptionSource, RecordKind, Time};
use record::search::{Demanded, SearchDocument};

use super::plan::{SearchConduct, SearchPlan};
use crate::conduct::opening_document;
use crate::date::timestamp;
use crate::effective::effective;
use crate::prepare::PreparedRun;

/// The document of a search that begins now; `prepared` is its first run, `seed` that of its random arrivals.
pub fn document(
    plan: &SearchPlan,
    prepared: &PreparedRun,
    seed: Option<u64>,
    with: &SearchConduct<'_>,
) -> SearchDocument {
    let mut options = effective(prepared, with.folder);
    for (name, value) in [
        ("duration", "as the objective needs".to_owned()),
        ("seed", seed.map_or("none: nothing is random".to_owned(), |seed| seed.to_string())),
    ] {
        let is_given = with.given.has(name);
        options.entry(name.to_owned()).and_modify(|option| {
            if !is_given {
                (option.value, option.source) = (value, OptionSource::Derived);
            }
        });
    }
    for name in ["arrivals", "jitter", "max-in-flight", "seed"] {
        let texts = with.given.0.get(name).and_then(|given| given.texts.first());
        if let (Some(text), Some(option)) = (texts, options.get_mut(name)) {
            (option.value, option.source) = (text.clone(), OptionSource::Given);
        }
    }
    options.extend(with.options.clone());
    let run = opening_document(prepared, options, with.environment);
    let demanded = |(condition, implied): &(findings::Condition, bool)| Demanded {
        condition: condition.to_string(),
        implied: *implied,
    };
    let time = Time {
        started: timestamp(clock::wall()).to_string(),
        started_monotonic_ns: clock::now().0,
        elapsed_ns: Some(0),
        window_ns: None,
    };
    SearchDocument {
        envelope: Envelope { kind: RecordKind::Search, time, ..run.envelope },
        answer: None,
        subject: run.subject,
        objective: plan.objective.conditions.iter().map(demanded).collect(),
        tolerance: plan.aim.tolerance,
        probes_allowed: plan.aim.probes as u64,
        probes: Vec::new(),
    }
}
