//! Sums over requests that are not kept individually: counts, times and histograms, by class, part and digest.

use std::collections::BTreeMap;

use record::observation::watch::{
    self, ClassResult, Inexact, Losses, ProtocolCount, WatchLine, WatchQuantiles,
};
use record::{Durations, Part, Protocol, Served};
use units::Nanos;

pub use record::observation::watch::PartsNs;

/// The sums of one interval, or of a whole watch.
///
/// About 5 MiB: a histogram takes 270 KiB, and there is one per part.
#[derive(Debug, Default)]
pub struct Sums {
    /// Requests completed.
    pub requests: u64,
    /// Of these, how many were preempted.
    pub preempted: u64,
    /// Bytes of the requests.
    pub request_bytes: u64,
    /// Bytes of the responses.
    pub response_bytes: u64,
    /// Time by part, summed.
    pub parts_ns: PartsNs,
    response: Durations,
    socket_queue: Durations,
    preempted_response: Durations,
    undisturbed: Durations,
    /// Histograms of requests that had the part; [`Sums::complete`] adds those that did not.
    parts: [Durations; Part::COUNT],
    /// Whether a function classifies requests: those without a class are a class too.
    classifies: bool,
    classes: BTreeMap<i64, ClassSums>,
    protocols: BTreeMap<Protocol, u64>,
}

#[derive(Debug, Default)]
struct ClassSums {
    preempted: u64,
    response: Durations,
    parts_ns: PartsNs,
}

/// The class of all requests beyond the limit of distinct classes.
pub const OTHER_CLASSES: i64 = i64::MIN;

/// The class of requests for which the function was not called.
pub const NOT_CLASSIFIED: i64 = i64::MIN + 1;

/// The most distinct classes: a function that returns a pointer would make one per request.
const CLASSES: usize = 64;

impl Sums {
    /// No requests so far. `classifies`: whether a function of the server classifies them.
    pub fn new(classifies: bool) -> Sums {
        Sums { classifies, ..Sums::default() }
    }

    /// Adds one request.
    ///
    /// # Cost
    ///
    /// Four histograms and one per part that the request had; parts of zero cost nothing.
    pub fn add(&mut self, served: &Served) {
        let response = served.response();
        self.requests += 1;
        self.request_bytes = self.request_bytes.saturating_add(served.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(served.response_bytes);
        self.parts_ns.add(&served.parts);
        self.response.record(response);
        if let Some(queue) = served.socket_queue() {
            self.socket_queue.record(queue);
        }
        if served.preemptions > 0 {
            self.preempted += 1;
            self.preempted_response.record(response);
        } else {
            self.undisturbed.record(response);
        }
        for (durations, part) in self.parts.iter_mut().zip(served.parts) {
            if part > Nanos::ZERO {
                durations.record(part);
            }
        }
        *self.protocols.entry(served.protocol).or_default() += 1;
        if let Some(class) = served.class.or(self.classifies.then_some(NOT_CLASSIFIED)) {
            let is_new = !self.classes.contains_key(&class);
            let class = if is_new && self.classes.len() >= CLASSES { OTHER_CLASSES } else { class };
            let sums = self.classes.entry(class).or_default();
            sums.preempted += u64::from(served.preemptions > 0);
            sums.response.record(response);
            sums.parts_ns.add(&served.parts);
        }
    }

    /// Most parts of most requests are zero; they are counted all at once.
    fn complete(&mut self) {
        for durations in &mut self.parts {
            durations.record_zeros(self.requests - durations.count());
        }
    }

    /// Adds the sums of an interval.
    pub fn merge(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.preempted += other.preempted;
        self.request_bytes = self.request_bytes.saturating_add(other.request_bytes);
        self.response_bytes = self.response_bytes.saturating_add(other.response_bytes);
        self.parts_ns.add(&other.parts_ns.into());
        self.response.merge(&other.response);
        self.socket_queue.merge(&other.socket_queue);
        self.preempted_response.merge(&other.preempted_response);
        self.undisturbed.merge(&other.undisturbed);
        for (durations, other) in self.parts.iter_mut().zip(&other.parts) {
            durations.merge(other);
        }
        for (&class, other) in &other.classes {
            let sums = self.classes.entry(class).or_default();
            sums.preempted += other.preempted;
            sums.response.merge(&other.response);
            sums.parts_ns.add(&other.parts_ns.into());
        }
        for (&protocol, count) in &other.protocols {
            *self.protocols.entry(protocol).or_default() += count;
        }
    }

    /// Resets all sums, keeping the memory.
    pub fn clear(&mut self) {
        let Sums { requests, preempted, request_bytes, response_bytes, .. } = self;
        [requests, preempted, request_bytes, response_bytes].into_iter().for_each(|count| *count = 0);
        self.parts_ns = PartsNs::default();
        self.response.clear();
        self.socket_queue.clear();
        self.preempted_response.clear();
        self.undisturbed.clear();
        self.parts.iter_mut().for_each(Durations::clear);
        self.classes.clear();
        self.protocols.clear();
    }

    /// The histograms by the names of their logs.
    pub fn logs(&mut self, class_name: impl Fn(i64) -> String) -> BTreeMap<String, &Durations> {
        self.complete();
        let mut logs = BTreeMap::from([
            (watch::RESPONSE.to_owned(), &self.response),
            (watch::SOCKET_QUEUE.to_owned(), &self.socket_queue),
            (watch::PREEMPTED.to_owned(), &self.preempted_response),
            (watch::UNDISTURBED.to_owned(), &self.undisturbed),
        ]);
        for (part, durations) in Part::ALL.into_iter().zip(&self.parts) {
            logs.insert(watch::part_log(part), durations);
        }
        for (&class, sums) in &self.classes {
            logs.insert(watch::class_log(&class_name(class)), &sums.response);
        }
        logs
    }

    /// The record's line for this interval, without its connections.
    pub fn line(
        &self,
        (losses, inexact): (Losses, Inexact),
        class_name: impl Fn(i64) -> String,
    ) -> WatchLine {
        let has_stamps = !self.socket_queue.is_empty();
        WatchLine {
            requests: self.requests,
            seen_ns: None,
            seen: Vec::new(),
            response_ns: self.quantiles(),
            preempted: self.preempted,
            parts_ns: self.parts_ns,
            socket_queue_ns: has_stamps.then(|| whole(self.socket_queue.sum_ns())),
            losses,
            inexact,
            classes: self
                .classes
                .iter()
                .map(|(&class, sums)| (class_name(class), sums.response.count()))
                .collect(),
            connections: 0,
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
        }
    }

    /// The server-side response time of all requests.
    pub fn response(&self) -> &Durations {
        &self.response
    }

    /// Quantiles for plots and live lines; `None` without a request.
    pub fn quantiles(&self) -> Option<WatchQuantiles> {
        let count = self.response.count();
        let at =
            |percent: u64| self.response.at_rank((count * percent).div_ceil(100).max(1)).map(|value| value.0);
        Some(WatchQuantiles { p50: at(50)?, p95: at(95)?, p99: at(99)?, max: self.response.max()?.0 })
    }

    /// The sums per class, named by `name`.
    pub fn classes(&self, name: impl Fn(i64) -> String) -> Vec<ClassResult> {
        let result = |(&class, sums): (&i64, &ClassSums)| ClassResult {
            class: name(class),
            requests: sums.response.count(),
            preempted: sums.preempted,
            response: None,
            parts_ns: sums.parts_ns,
        };
        self.classes.iter().map(result).collect()
    }

    /// Requests by protocol, the most frequent first.
    pub fn protocols(&self) -> Vec<ProtocolCount> {
        let count = |(&protocol, &requests): (&Protocol, &u64)| ProtocolCount { protocol, requests };
        let mut counts: Vec<ProtocolCount> = self.protocols.iter().map(count).collect();
        counts.sort_by_key(|count| std::cmp::Reverse(count.requests));
        counts
    }
}

/// 2^64 ns of summed time are 584 years of waiting.
fn whole(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
