//! The figures of one kind of requests, in a run that distinguishes several.

use units::Nanos;

use super::lazy::{Lazy, add_to};
use super::series::target_digits;
use crate::durations::Durations;
use crate::outcome::Failure;
use crate::timeline::Timeline;

/// The figures of one kind of requests.
#[derive(Debug, Clone)]
pub struct KindFigures {
    /// Significant digits of its histograms.
    digits: u8,
    pub ok: u64,
    pub(super) response: Lazy,
    pub(super) service: Lazy,
    /// Ages of the requests with another outcome.
    pub(super) failed: Lazy,
    failures: Vec<(Failure, u64)>,
}

impl KindFigures {
    /// Empty figures for the kind with this number.
    pub(super) fn of(number: usize) -> KindFigures {
        KindFigures {
            digits: target_digits(number),
            ok: 0,
            response: Lazy::default(),
            service: Lazy::default(),
            failed: Lazy::default(),
            failures: Vec::new(),
        }
    }

    /// See [`Interval::record_ok`].
    #[inline]
    pub fn record_ok(&mut self, timeline: &Timeline) {
        self.ok += 1;
        self.response.get_or_make_with(self.digits).record(timeline.response());
        self.service.get_or_make_with(self.digits).record(timeline.service());
    }

    /// See [`Interval::record_failure`].
    pub fn record_failure(&mut self, failure: Failure, age: Nanos) {
        self.failed.get_or_make_with(self.digits).record(age);
        add_to(&mut self.failures, failure, 1);
    }

    /// Response time of the `ok` requests, or `None` if there were none.
    pub fn response(&self) -> Option<&Durations> {
        self.response.get()
    }

    /// Service time of the `ok` requests, or `None` if there were none.
    pub fn service(&self) -> Option<&Durations> {
        self.service.get()
    }

    /// Ages of the failed requests, or `None` if there were none.
    pub fn failed(&self) -> Option<&Durations> {
        self.failed.get()
    }

    /// Every failure that occurred, with its count, in the order of first occurrence.
    pub fn failures(&self) -> &[(Failure, u64)] {
        &self.failures
    }

    /// Adds `count` requests that ended in `failure`, without their ages. For readers of files.
    pub fn add_failures(&mut self, failure: Failure, count: u64) {
        add_to(&mut self.failures, failure, count);
    }

    pub(super) fn merge(&mut self, other: &KindFigures) {
        self.ok += other.ok;
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.failed.merge(&other.failed);
        for &(failure, count) in &other.failures {
            add_to(&mut self.failures, failure, count);
        }
    }

    pub(super) fn clear(&mut self) {
        self.ok = 0;
        self.response.clear();
        self.service.clear();
        self.failed.clear();
        self.failures.clear();
    }
}
