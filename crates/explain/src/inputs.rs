//! The records to join: the client's and its servers'.

use std::fs::File;

use export::RowsError;
use export::requests::{Row, Rows};
use record::document::Document;
use record::observation::ObservationBody;
use record::observation::Observed;
use record::observation::watch::Digest;
use record::{Interval, Recording, Second, Served, TwoClocks};
use units::Nanos;

/// The most requests that are read of one record. Those of a client and a server use at most 1.3 GiB together
/// (`tests/memory.rs`).
pub const MOST_REQUESTS: u64 = 600_000;

/// A record of `drive`.
#[derive(Debug)]
pub struct Client {
    pub document: Document,
    pub seconds: Vec<Second>,
    pub total: Interval,
    /// Its `requests.parquet`, if it has one.
    pub rows: Option<(Rows, Vec<Row>)>,
    /// The directory, for messages.
    pub name: String,
}

impl Client {
    /// A client's record with the requests of its open `requests.parquet`, if it has one; `name` is its directory, for
    /// messages.
    ///
    /// # Errors
    ///
    /// Those of the file, and when it has more than [`MOST_REQUESTS`].
    pub fn read(recording: Recording, requests: Option<File>, name: String) -> Result<Client, RowsError> {
        let rows = requests.map(|file| export::requests::read_all(file, MOST_REQUESTS)).transpose()?;
        Ok(Client::new(recording, rows, name))
    }

    /// A client's record, and its individual requests if it kept any; `name` is its directory, for messages.
    pub fn new(recording: Recording, rows: Option<(Rows, Vec<Row>)>, name: String) -> Client {
        let Recording { document, seconds, total, .. } = recording;
        Client { document, seconds, total, rows, name }
    }

    pub(crate) fn zero(&self) -> u64 {
        self.document.time.started_monotonic_ns
    }

    /// Begin and end of the run on its own monotonic clock.
    pub(crate) fn period(&self) -> (u64, u64) {
        let length = self.seconds.last().map_or(0, |last| last.start_ns.saturating_add(last.length_ns));
        (self.zero(), self.zero().saturating_add(length))
    }
}

/// A record of `watch`.
#[derive(Debug, Clone)]
pub struct Server {
    pub observed: Observed,
    /// Its `served.parquet`; empty if it has none.
    pub served: Vec<Served>,
    /// Its host's clock compared with the client's, if they were compared.
    pub clocks: Option<TwoClocks>,
    pub name: String,
}

impl Server {
    /// A server's record with the requests of its open `served.parquet`, if it has one; `name` is its directory, for
    /// messages.
    ///
    /// # Errors
    ///
    /// Those of the file, and when it has more than [`MOST_REQUESTS`].
    pub fn read(
        observed: Observed,
        served: Option<File>,
        clocks: Option<TwoClocks>,
        name: String,
    ) -> Result<Server, RowsError> {
        let zero = Nanos(observed.document.time.started_monotonic_ns);
        let served = served.map(|file| export::served::read_all(file, MOST_REQUESTS, zero)).transpose()?;
        let served = served.unwrap_or_default();
        Ok(Server { observed, served, clocks, name })
    }

    /// The normalised statements or routes, which its requests refer to by index.
    pub(crate) fn digests(&self) -> &[Digest] {
        match &self.observed.document.body {
            ObservationBody::Watch(results) => &results.digests,
            _ => &[],
        }
    }

    /// Which of its requests can have been found, if it was watched under a budget.
    pub(crate) fn windows_note(&self) -> Option<String> {
        let ObservationBody::Watch(results) = &self.observed.document.body else { return None };
        let windows = results.windows.as_ref().filter(|windows| windows.windows > 0)?;
        let elapsed = self.observed.document.time.elapsed_ns?.max(1);
        Some(format!(
            "{} was watched {} of the time, in {} windows: only requests within these can be found there.",
            self.name,
            units::percent(windows.seen_ns() as f64 / elapsed as f64),
            units::count(windows.windows)
        ))
    }

    /// Whether the requests that were not kept are too few to have delayed others.
    pub(crate) fn kept_all(&self) -> bool {
        let ObservationBody::Watch(results) = &self.observed.document.body else { return false };
        let Some(kept) = results.kept.as_ref().filter(|kept| kept.requests == "all") else { return false };
        let missed = kept.lost.saturating_add(results.losses.of_events());
        u128::from(missed) * MISSED <= u128::from(results.requests)
    }
}

/// A server's record counts as complete if it missed at most one request in this many.
const MISSED: u128 = 100;
