//! The records that are joined: those of the client and of its servers.

use export::requests::{Row, Rows};
use record::document::Document;
use record::observation::ObservationBody;
use record::observation::Observed;
use record::observation::watch::Digest;
use record::{Interval, Recording, Second, Served, TwoClocks};

/// A record of `drive`.
#[derive(Debug)]
pub struct Client {
    pub document: Document,
    pub seconds: Vec<Second>,
    pub total: Interval,
    /// Its `requests.parquet`, if it has one.
    pub rows: Option<(Rows, Vec<Row>)>,
    /// For people: the folder.
    pub name: String,
}

impl Client {
    /// A client's record with its requests, where it kept any; `name` is its folder, for people.
    pub fn new(recording: Recording, rows: Option<(Rows, Vec<Row>)>, name: String) -> Client {
        let Recording { document, seconds, total, .. } = recording;
        Client { document, seconds, total, rows, name }
    }

    pub(crate) fn zero(&self) -> u64 {
        self.document.time.started_monotonic_ns
    }

    /// The run on its own monotonic clock.
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
    /// Its host's clock against the client's, where they were compared.
    pub clocks: Option<TwoClocks>,
    pub name: String,
}

impl Server {
    /// The normalised statements or routes that its requests name by their place.
    pub(crate) fn digests(&self) -> &[Digest] {
        match &self.observed.document.body {
            ObservationBody::Watch(results) => &results.digests,
            _ => &[],
        }
    }

    /// Its requests that were not kept are too few to have held up others.
    pub(crate) fn kept_all(&self) -> bool {
        let ObservationBody::Watch(results) = &self.observed.document.body else { return false };
        let Some(kept) = results.kept.as_ref().filter(|kept| kept.requests == "all") else { return false };
        let missed = kept.lost.saturating_add(results.losses.of_events());
        u128::from(missed) * MISSED <= u128::from(results.requests)
    }
}

/// A server's record has all of its requests where it missed no more than one in so many.
const MISSED: u128 = 100;
