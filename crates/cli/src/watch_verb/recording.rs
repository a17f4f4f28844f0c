//! Writes the record of a watch. A failed write does not end the watch, because the figures are worth more than the
//! record. The error is reported at the end, and in the record if it can still be written.

use std::path::Path;

use record::document::{Kept, MissingFact};
use record::observation::watch::WatchLine;
use record::observation::{Observation, ObservationWriter};
use record::{Durations, Event, RecordError, Served};
use units::Nanos;

use super::keep::{KeepRequests, ServedFile};
use run::record_lock::RecordLock;

pub struct Recording {
    writer: ObservationWriter,
    /// `None` after a failed write.
    served: Option<ServedFile>,
    _mark: Option<RecordLock>,
    /// The first error, and the offset from which on data is missing.
    damage: Option<(RecordError, Nanos)>,
    /// What the record lacks apart from intervals.
    missing: Vec<MissingFact>,
}

impl Recording {
    /// Begins the record. `zero` is its beginning on the clock that timestamps requests.
    ///
    /// # Errors
    ///
    /// When the record cannot be created.
    pub fn begin(
        folder: &Path,
        document: &Observation,
        keep: KeepRequests,
        zero: Nanos,
    ) -> Result<Recording, RecordError> {
        let writer = ObservationWriter::create(folder, document)?;
        let mark = RecordLock::acquire(folder);
        let mut recording =
            Recording { writer, served: None, _mark: mark, damage: None, missing: Vec::new() };
        match ServedFile::begin(keep, folder, zero, &document.time.started) {
            Ok(file) => recording.served = Some(file),
            Err(error) => recording.note_unkept(&error),
        }
        Ok(recording)
    }

    /// Keeps this request if `--requests` selects it.
    pub fn keep(&mut self, served: Served) {
        let Some(file) = &mut self.served else { return };
        if let Err(error) = file.take(served) {
            self.note_unkept(&error);
            self.served.take().into_iter().for_each(ServedFile::abandon);
        }
    }

    /// Adds an interval that began at the offset `start`.
    pub fn append(&mut self, line: &WatchLine, start: Nanos, length: Nanos, logs: &[(&str, &Durations)]) {
        if let Err(error) = self.writer.append(line, start, length, logs) {
            self.note_damage(error, start);
        }
    }

    /// Writes an event; after a failed write, does nothing.
    pub fn event(&mut self, event: &Event) {
        if let Err(error) = self.writer.event(event) {
            self.note_damage(error, Nanos(event.at_ns));
        }
    }

    /// Closes the file of requests; returns what it contains, if it is readable, and what the record lacks.
    pub fn finish_served(&mut self) -> (Option<Kept>, Vec<MissingFact>) {
        let kept = match self.served.take().map(ServedFile::finish) {
            Some(Ok(kept)) => Some(kept),
            Some(Err(error)) => {
                self.note_unkept(&error);
                None
            }
            None => None,
        };
        (kept, std::mem::take(&mut self.missing))
    }

    /// Closes the record; returns the first error when writing it, if any.
    pub fn finish(mut self, document: &Observation) -> Option<RecordError> {
        // The document first: on a full disk it is worth more than the event.
        if let Err(error) = self.writer.finish(document) {
            self.note_damage(error, Nanos(document.time.elapsed_ns.unwrap_or(0)));
        }
        let (error, at) = self.damage?;
        let event = Event::new(at.0, "record_damage", error.to_string());
        // The error is printed on standard error in any case.
        let _ = self.writer.event(&event);
        Some(error)
    }

    fn note_damage(&mut self, error: RecordError, at: Nanos) {
        self.damage.get_or_insert((error, at));
    }

    fn note_unkept(&mut self, error: &anyhow::Error) {
        self.missing.push(MissingFact { what: "served.parquet".to_owned(), why: format!("{error:#}") });
    }
}
