//! Slow requests: how many, why, and which were the slowest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use record::observation::watch::{SlowReason, SlowRequest, SlowRequests};
use record::{Part, Served};
use units::Nanos;
use watch::kernel;

/// Individual requests that are kept.
const SLOWEST: usize = 50;

/// Distinct reasons that are kept; all others are one.
const REASONS: usize = 128;

/// Why a request took its time: its largest part, and what that part was spent on.
type Why = (&'static str, Option<Arc<str>>);

/// The requests over a limit.
#[derive(Debug, Default)]
pub struct Slow {
    over: Nanos,
    requests: u64,
    reasons: HashMap<Why, [u64; 3]>,
    /// By response time, then by order of arrival.
    slowest: BTreeMap<(Nanos, Reverse<u64>), (Served, Why)>,
}

impl Slow {
    /// No requests so far; those that take longer than `over` at the server are kept.
    pub fn new(over: Nanos) -> Slow {
        Slow { over, ..Slow::default() }
    }

    /// Adds a request. `target` is the file or address that its longest sleep was for.
    pub fn add(&mut self, served: &Served, target: Option<&Arc<str>>) {
        let response = served.response();
        if response <= self.over {
            return;
        }
        let (part, why) = why(served, target);
        let is_new = !self.reasons.contains_key(&why);
        let key = if is_new && self.reasons.len() >= REASONS { ("others", None) } else { why.clone() };
        let sums = self.reasons.entry(key).or_default();
        for (sum, more) in sums.iter_mut().zip([1, response.0, served.part(part).0]) {
            *sum = sum.saturating_add(more);
        }
        let key = (response, Reverse(self.requests));
        self.requests += 1;
        if self.slowest.len() >= SLOWEST {
            if self.slowest.first_key_value().is_none_or(|(least, _)| *least > key) {
                return;
            }
            self.slowest.pop_first();
        }
        self.slowest.insert(key, (served.clone(), why));
    }

    /// How many requests were over the limit.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The record's form; `zero` is the record's start.
    pub fn results(&self, zero: Nanos) -> SlowRequests {
        let text = |what: &Option<Arc<str>>| what.as_ref().map(ToString::to_string);
        let mut reasons: Vec<SlowReason> = self
            .reasons
            .iter()
            .map(|((part, what), &[requests, sum_ns, part_ns])| SlowReason {
                part: (*part).to_owned(),
                what: text(what),
                requests,
                sum_ns,
                part_ns,
            })
            .collect();
        reasons.sort_by_key(|reason| Reverse((reason.requests, reason.sum_ns)));
        let slowest = self.slowest.values().rev().map(|(served, (part, what))| SlowRequest {
            at_ns: served.read.saturating_sub(zero).0,
            response_ns: served.response().0,
            digest: served.digest,
            session: served.session,
            peer: served.peer.map(|peer| peer.to_string()),
            tid: served.tid,
            parts_ns: served.parts.into(),
            part: (*part).to_owned(),
            what: text(what),
        });
        SlowRequests { over_ns: self.over.0, requests: self.requests, reasons, slowest: slowest.collect() }
    }
}

/// The largest part of a request, and what it was spent on.
fn why(served: &Served, target: Option<&Arc<str>>) -> (Part, Why) {
    let largest = Part::ALL.into_iter().rev().max_by_key(|&part| served.part(part));
    let part = largest.expect("there are parts");
    let what = match part {
        Part::RunQueue => served.culprit.as_ref().map(|culprit| {
            let is_preempted = served.preempted.0.saturating_mul(2) > served.part(part).0;
            let how = if is_preempted { "preempted by" } else { "behind" };
            format!("{how} {}", culprit.comm).into()
        }),
        Part::Disk | Part::Lock | Part::Network | Part::Other => served.sleep.map(|sleep| {
            let call = kernel::call_name(u32::from(sleep.call));
            match target {
                Some(target) => format!("{call} {target}").into(),
                None => call.into(),
            }
        }),
        Part::OnCpu | Part::Stolen | Part::Yielded | Part::Throttled | Part::LoopWait => None,
    };
    (part, (part.name(), what))
}

#[cfg(test)]
mod tests {
    use record::{Culprit, Sleep};

    use super::*;
    use crate::tests::served;

    fn slow(n: u64, part: Part, ms: u64) -> Served {
        let mut served = served(n, Nanos::from_millis(ms));
        served.parts = [Nanos::ZERO; Part::COUNT];
        served.parts[part as usize] = Nanos::from_millis(ms);
        served
    }

    #[test]
    fn each_slow_request_has_one_reason() {
        let mut sums = Slow::new(Nanos::from_millis(5));
        let culprit = |preempted| Served {
            preempted: Nanos::from_millis(preempted),
            culprit: Some(Culprit { pid: 7, comm: "hog".to_owned(), time: Nanos::from_millis(6) }),
            ..slow(0, Part::RunQueue, 6)
        };
        let sleep = Some(Sleep {
            call: u16::try_from(libc::SYS_fsync).unwrap(),
            fd: Some(3),
            time: Nanos::from_millis(8),
        });
        sums.add(&slow(0, Part::OnCpu, 5), None);
        sums.add(&slow(1, Part::OnCpu, 9), None);
        sums.add(&culprit(6), None);
        sums.add(&culprit(6), None);
        sums.add(&culprit(1), None);
        let file: Arc<str> = "/data/log".into();
        sums.add(&Served { sleep, ..slow(2, Part::Disk, 8) }, Some(&file));
        let results = sums.results(Nanos::ZERO);
        let seen: Vec<_> = results
            .reasons
            .iter()
            .map(|reason| (reason.part.as_str(), reason.what.as_deref(), reason.requests))
            .collect();
        let mut expected = [
            ("run_queue", Some("preempted by hog"), 2),
            ("on_cpu", None, 1),
            ("disk", Some("fsync /data/log"), 1),
            ("run_queue", Some("behind hog"), 1),
        ];
        assert_eq!(seen, expected);
        expected.sort_unstable();
        assert_eq!((results.requests, results.slowest[0].response_ns), (5, 9_000_000));
    }

    #[test]
    fn reasons_and_requests_are_bounded() {
        let mut sums = Slow::new(Nanos::ZERO);
        for n in 0..5_000_u64 {
            let comm = format!("hog-{n}");
            let culprit = Some(Culprit { pid: 7, comm, time: Nanos(1) });
            sums.add(&Served { culprit, ..slow(n, Part::RunQueue, n + 1) }, None);
        }
        let results = sums.results(Nanos::ZERO);
        assert_eq!((results.reasons.len(), results.slowest.len()), (REASONS + 1, SLOWEST));
        assert_eq!(results.reasons.iter().map(|reason| reason.requests).sum::<u64>(), 5_000);
        assert_eq!(results.slowest[0].response_ns, 5_000_000_000);
    }
}
