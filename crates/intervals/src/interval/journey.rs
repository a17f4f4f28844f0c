//! The figures of one journey of a run: requests that follow each other, measured as a whole.

use units::Nanos;

use super::lazy::Lazy;
use crate::durations::Durations;

/// How the units of one journey ended. Begun = ok + failed + cut, once the run is over.
#[derive(Debug, Clone, Default)]
pub struct Journey {
    /// Units whose first request became due.
    pub begun: u64,
    /// Units whose last request ended `ok`.
    pub ok: u64,
    /// Units that ended with a request which was not `ok` and was not retried.
    pub failed: u64,
    /// Units that the end of the run ended.
    pub cut: u64,
    /// How often a unit was tried again.
    pub retries: u64,
    pub(super) response: Lazy,
    pub(super) failed_ages: Lazy,
}

impl Journey {
    /// Counts a unit whose last request ended `ok`, `response` after the intended start of its first request; if there
    /// were retries, of the first try.
    pub fn record_ok(&mut self, response: Nanos) {
        self.ok += 1;
        self.response.record(response);
    }

    /// Counts a unit that failed, `age` after the intended start of its first request.
    pub fn record_failed(&mut self, age: Nanos) {
        self.failed += 1;
        self.failed_ages.record(age);
    }

    /// From the intended start of the first request to the last response read, for the `ok` units; `None` if there were
    /// none.
    pub fn response(&self) -> Option<&Durations> {
        self.response.get()
    }

    /// Ages of the units that failed, or `None` if there were none.
    pub fn failed_ages(&self) -> Option<&Durations> {
        self.failed_ages.get()
    }

    pub(super) fn merge(&mut self, other: &Journey) {
        self.begun += other.begun;
        self.ok += other.ok;
        self.failed += other.failed;
        self.cut += other.cut;
        self.retries += other.retries;
        self.response.merge(&other.response);
        self.failed_ages.merge(&other.failed_ages);
    }

    pub(super) fn clear(&mut self) {
        (self.begun, self.ok, self.failed, self.cut, self.retries) = (0, 0, 0, 0, 0);
        self.response.clear();
        self.failed_ages.clear();
    }
}
