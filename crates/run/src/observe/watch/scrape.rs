//! The Prometheus endpoint of a watch.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use export::prometheus::{Form, StatementNames, StatementSeries, WatchSnapshot, render_watch};
use record::document::MissingFact;
use usage::DigestSums;

use crate::sinks::endpoint::{self, Scraped};
use crate::values::ListenAddress;

/// Serves the figures of a watch until it is dropped.
pub struct ScrapeEndpoint {
    shared: Arc<Shared>,
    named: StatementNames,
    /// When the record began, in nanoseconds since the epoch.
    pub started_unix_ns: u64,
}

#[derive(Default)]
struct Shared {
    latest: Mutex<Option<Arc<WatchSnapshot>>>,
    failure: Mutex<Option<String>>,
    is_over: AtomicBool,
}

impl Scraped for Shared {
    fn text(&self, form: Form) -> Option<String> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest.map(|watch| render_watch(&watch, form))
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn close(&self) {}
}

impl ScrapeEndpoint {
    /// Binds the address, so that a port in use refuses the watch, before anything is attached.
    ///
    /// # Errors
    ///
    /// When the address is in use or is not of this host.
    pub fn bind(address: ListenAddress) -> anyhow::Result<TcpListener> {
        endpoint::bind(address.0)
    }

    /// Serves on a thread; until the first interval has ended it says that there are no figures yet.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started.
    pub fn start(listener: TcpListener, started_unix_ns: u64) -> anyhow::Result<ScrapeEndpoint> {
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        thread::Builder::new()
            .name("prometheus".to_owned())
            .spawn(move || {
                let failure = endpoint::serve(listener, &served).err();
                *served.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            })
            .context("cannot start the thread of --prometheus")?;
        Ok(ScrapeEndpoint { shared, named: StatementNames::default(), started_unix_ns })
    }

    /// Replaces the figures.
    pub fn set(&self, snapshot: WatchSnapshot) {
        *self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
    }

    /// Why nothing is served, if serving has failed.
    pub fn failure(&self) -> Option<MissingFact> {
        let failure = self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        failure.map(|why| MissingFact { what: "prometheus".to_owned(), why })
    }

    /// The series of statements and routes, with one for all that have none of their own.
    pub fn statements<'t>(
        &mut self,
        sums: &DigestSums,
        text: impl Fn(u32) -> &'t str,
    ) -> Vec<StatementSeries> {
        let one = |(id, requests, sum_ns): (u32, u64, u64)| {
            let rows_sent = sums.facts(id).and_then(|(_, rows)| Some(rows?.sent));
            (id, StatementSeries { text: text(id).to_owned(), requests, sum_ns, rows_sent })
        };
        self.named.series(sums.totals().map(one).collect())
    }
}

impl Drop for ScrapeEndpoint {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}
