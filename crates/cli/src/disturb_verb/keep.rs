//! Writes the record of `disturb`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use host::disturb::{Done, EpisodeReport, Fact, Over};
use record::document::{EffectiveOption, State};
use record::observation::disturb::{DisturbResults, EVENT, Episode, Over as WireOver, Span};
use record::observation::{Observation, ObservationBody, ObservationWriter};
use record::{Event, RecordError};
use units::{Bytes, Nanos};

use super::plan::DisturbPlan;
use crate::observing;
use run::record_lock::RecordLock;

/// Writes each episode to the record when it ends.
pub struct Keeper {
    writer: ObservationWriter,
    document: Observation,
    results: DisturbResults,
    zero: Nanos,
    /// The first error when writing the record; reported at the end.
    damage: Option<RecordError>,
    _under_way: Option<RecordLock>,
}

/// What is known before the first disturbance.
pub fn opening(plan: &DisturbPlan) -> DisturbResults {
    DisturbResults {
        means: plan.means.to_owned(),
        what: plan.what.clone(),
        pid: plan.pid,
        seed: plan.seed,
        ..DisturbResults::default()
    }
}

impl Keeper {
    /// Creates the record in `folder`.
    ///
    /// # Errors
    ///
    /// When the record cannot be created.
    pub fn open(
        folder: &Path,
        results: DisturbResults,
        options: BTreeMap<String, EffectiveOption>,
        zero: Nanos,
    ) -> anyhow::Result<Keeper> {
        let document = observing::opening(ObservationBody::Disturb(results.clone()), options, zero);
        let writer = ObservationWriter::create(folder, &document)?;
        let under_way = RecordLock::acquire(writer.path());
        Ok(Keeper { writer, document, results, zero, damage: None, _under_way: under_way })
    }

    /// Adds an episode that has ended. `zero` is the record's zero on the monotonic clock.
    pub fn keep(&mut self, report: &EpisodeReport, zero: Nanos) {
        let offset = |at: Nanos| at.saturating_sub(zero).0;
        let real = report
            .done
            .as_ref()
            .map(|done| Span { begin_ns: offset(done.begin), end_ns: done.end.map(offset) });
        let facts = report.done.iter().flat_map(|done| &done.facts);
        let episode = Episode {
            n: report.episode.n,
            intended: Span { begin_ns: report.episode.begin.0, end_ns: report.episode.end.map(|end| end.0) },
            real,
            facts: facts.map(|fact| (fact.name.clone(), fact.value)).collect(),
            note: report.note.clone(),
        };
        let length = report.done.as_ref().and_then(length);
        self.results.episodes += 1;
        self.results.skipped += u64::from(real.is_none());
        self.results.disturbed_ns = self.results.disturbed_ns.saturating_add(length.unwrap_or_default().0);
        let text = match real {
            Some(_) => format!("{} for {}", self.results.means, length_text(length)),
            None => {
                format!("{} not done: {}", self.results.means, report.note.as_deref().unwrap_or("unknown"))
            }
        };
        let at_ns = real.unwrap_or(episode.intended).begin_ns;
        self.event(&Event { disturbance: Some(episode), ..Event::new(at_ns, EVENT, text) });
    }

    fn event(&mut self, event: &Event) {
        if let Err(error) = self.writer.event(event) {
            self.damage.get_or_insert(error);
        }
    }

    /// # Errors
    ///
    /// The first error when writing the record.
    pub fn finish(mut self, over: Over, wrong: Vec<String>) -> anyhow::Result<Observation> {
        let elapsed = clock::now().saturating_sub(self.zero);
        let broken = !wrong.is_empty();
        for text in wrong {
            self.event(&Event::new(elapsed.0, "warning", text));
        }
        (self.results.over, self.document.state) = match (broken, over) {
            (true, _) => (Some(WireOver::Broken), State::Broken),
            (false, Over::Schedule) => (Some(WireOver::Schedule), State::Finished),
            (false, Over::VictimGone) => (Some(WireOver::VictimGone), State::Finished),
            (false, Over::Stopped) => (Some(WireOver::Stopped), State::Interrupted),
        };
        self.document.time.elapsed_ns = Some(elapsed.0);
        self.document.body = ObservationBody::Disturb(self.results);
        self.writer.finish(&self.document)?;
        match self.damage {
            Some(error) => Err(error).context("the record is incomplete"),
            None => Ok(self.document),
        }
    }
}

/// How long it was in effect, if that is known.
pub fn length(done: &Done) -> Option<Nanos> {
    Some(done.end?.saturating_sub(done.begin))
}

/// A length for people; `an unknown time` if it is not known.
pub fn length_text(length: Option<Nanos>) -> String {
    length.map_or("an unknown time".to_owned(), |length| length.to_string())
}

/// A figure for people: its name without the unit, and its value with one.
pub fn fact_text(fact: &Fact) -> String {
    if let Some(name) = fact.name.strip_suffix("_ns") {
        return format!("{name} {}", Nanos(fact.value));
    }
    if let Some(name) = fact.name.strip_suffix("_bytes") {
        return format!("{name} {}", Bytes(fact.value));
    }
    format!("{} {}", fact.name, fact.value)
}
