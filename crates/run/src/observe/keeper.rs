//! Writes the record of an observation while it is in progress.

use std::path::Path;

use record::document::{MissingFact, State};
use record::observation::{Observation, ObservationBody, ObservationWriter};
use record::{Durations, Event, RecordError};
use serde::Serialize;
use units::Nanos;

use super::Setting;
use crate::record_lock::RecordLock;

/// Writes the record. A failed write does not end the observation: the first error is reported at the end, and in the
/// record if that can be written again.
pub struct Keeper {
    /// The document so far; its body is that of the beginning.
    pub document: Observation,
    /// `None` if no record is kept.
    folder: Option<(ObservationWriter, Option<RecordLock>)>,
    /// The first error, and the offset from which data is missing.
    damage: Option<(RecordError, Nanos)>,
}

/// An observation that is over.
pub struct Observed {
    /// Complete, whether or not it could be written.
    pub document: Observation,
    /// The first error when writing the record.
    pub damage: Option<anyhow::Error>,
}

impl Observed {
    /// Reports the first write error; call it after everything is printed.
    ///
    /// # Errors
    ///
    /// When the record is incomplete, and why.
    pub fn check_record(self) -> anyhow::Result<()> {
        self.damage.map_or(Ok(()), |error| Err(error.context("the record is incomplete")))
    }
}

impl Keeper {
    /// Begins the record of an observation that started at `started` on the monotonic clock.
    ///
    /// # Errors
    ///
    /// When the record cannot be created.
    pub fn begin(
        setting: &Setting<'_>,
        body: ObservationBody,
        missing: Vec<MissingFact>,
        started: Nanos,
    ) -> Result<Keeper, RecordError> {
        // Subtracts the time since `started`: the wall clock is read later than the monotonic one.
        let wall = clock::wall().saturating_sub(clock::now().saturating_sub(started));
        let mut document = Observation::new(env!("CARGO_PKG_VERSION"), body);
        document.command.clone_from(&setting.environment.command);
        document.options.clone_from(&setting.options);
        document.time.started = crate::date::timestamp(wall).to_string();
        document.time.started_monotonic_ns = started.0;
        document.host = crate::conduct::host_facts();
        document.missing = missing;
        let create = |folder: &Path| {
            let writer = ObservationWriter::create(folder, &document)?;
            let lock = RecordLock::acquire(folder);
            Ok((writer, lock))
        };
        let folder = setting.folder.map(create).transpose()?;
        Ok(Keeper { document, folder, damage: None })
    }

    /// The record's zero on the monotonic clock.
    pub fn zero(&self) -> Nanos {
        Nanos(self.document.time.started_monotonic_ns)
    }

    /// Adds an interval that began at the offset `start`, and its histograms by name.
    pub fn append(
        &mut self,
        line: &impl Serialize,
        start: Nanos,
        length: Nanos,
        logs: &[(&str, &Durations)],
    ) {
        self.write(start, |writer| writer.append(line, start, length, logs));
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) {
        self.write(Nanos(event.at_ns), |writer| writer.event(event));
    }

    /// Whether a record is kept.
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    /// Replaces the document's results while the observation is in progress; `at` is on the monotonic clock.
    pub fn save(&mut self, at: Nanos, body: ObservationBody) {
        let document = Observation { envelope: self.document.envelope.clone(), body };
        let offset = at.saturating_sub(self.zero());
        self.write(offset, |writer| writer.finish(&document));
    }

    /// Closes the record; the last interval ended at the offset `elapsed`.
    pub fn finish(mut self, state: State, elapsed: Nanos, body: ObservationBody) -> Observed {
        self.document.state = state;
        self.document.time.elapsed_ns = Some(elapsed.0);
        self.document.body = body;
        // The document first: on a full disk it is worth more than the event.
        let document = self.document.clone();
        self.write(elapsed, |writer| writer.finish(&document));
        if let (Some((writer, _)), Some((error, at))) = (&mut self.folder, &self.damage) {
            // The caller reports the error in any case.
            let _ = writer.event(&Event::new(at.0, "record_damage", error.to_string()));
        }
        Observed { document, damage: self.damage.map(|(error, _)| error.into()) }
    }

    fn write(&mut self, at: Nanos, write: impl FnOnce(&mut ObservationWriter) -> Result<(), RecordError>) {
        let Some((writer, _)) = &mut self.folder else { return };
        if let Err(error) = write(writer) {
            self.damage.get_or_insert((error, at));
        }
    }
}
