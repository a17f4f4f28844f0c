//! Groups of requests: those near a percentile, the slowest, or all; and the scope to be explained.

use std::collections::BTreeMap;

use serde::Serialize;
use stats::needed_samples;
use units::Nanos;

use crate::ledger::Ledger;
use crate::place::{Place, Segment};

/// Requests with similar response times, and where their time went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// `all`, `p50`, `p95`, `p99` or `slowest`.
    pub name: &'static str,
    /// Which requests these are, in words.
    pub means: String,
    pub rows: u64,
    /// How many of them were found at a server.
    pub joined: u64,
    /// The shortest and the longest response time among them.
    pub from_ns: u64,
    pub to_ns: u64,
    /// The sum of their response times; the segments add up to it.
    pub sum_ns: u64,
    /// Segments by name, without those that are zero.
    pub segments_ns: BTreeMap<&'static str, u64>,
    /// The place with the most time, and its share; it is not necessarily to blame.
    pub most: Option<Place>,
    #[serde(skip)]
    pub(crate) sums: Ledger,
}

/// One request with its ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Explained {
    /// Its index among the client's rows.
    pub(crate) row: usize,
    pub(crate) response: Nanos,
    pub(crate) joined: bool,
    pub(crate) ledger: Ledger,
}

/// The group of a percentile contains requests whose rank differs from it by less than this share of all, or by less
/// than half of the distance to the end.
const HALF_BAND: f64 = 0.025;

/// The number of requests that are shown individually.
pub(crate) const SLOWEST: usize = 10;

impl Group {
    pub(crate) fn of(name: &'static str, means: String, rows: &[Explained]) -> Group {
        let mut sums = Ledger::default();
        for explained in rows {
            for segment in Segment::ALL {
                sums.put(segment, explained.ledger.get(segment));
            }
        }
        Group {
            name,
            means,
            rows: rows.len() as u64,
            joined: rows.iter().filter(|explained| explained.joined).count() as u64,
            from_ns: rows.iter().map(|explained| explained.response.0).min().unwrap_or(0),
            to_ns: rows.iter().map(|explained| explained.response.0).max().unwrap_or(0),
            sum_ns: sums.sum(),
            segments_ns: by_name(&sums),
            most: most(&sums),
            sums,
        }
    }

    /// Mean time per request in this segment.
    pub fn mean(&self, segment: Segment) -> Nanos {
        Nanos(self.sums.get(segment).checked_div(self.rows).unwrap_or(0))
    }
}

pub(crate) fn by_name(sums: &Ledger) -> BTreeMap<&'static str, u64> {
    let there = Segment::ALL.into_iter().filter(|&segment| sums.get(segment) > 0);
    there.map(|segment| (segment.name(), sums.get(segment))).collect()
}

fn most(sums: &Ledger) -> Option<Place> {
    let mut places: BTreeMap<Place, u64> = BTreeMap::new();
    for segment in Segment::ALL {
        let sum = places.entry(segment.place()).or_default();
        *sum = sum.saturating_add(sums.get(segment));
    }
    places.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(_, ns)| *ns).map(|(place, _)| place)
}

/// The groups of `sorted`, which is ordered by response time.
pub(crate) fn groups(sorted: &[Explained]) -> Vec<Group> {
    let mut groups = vec![Group::of("all", "all requests with a response".to_owned(), sorted)];
    for (name, q) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        // Too few requests for this percentile.
        if (sorted.len() as u64) < needed_samples(q) {
            continue;
        }
        let half = HALF_BAND.min((1.0 - q) / 2.0);
        let rows = near(sorted, q, half);
        let percent = |q: f64| (q * 1e4).round() / 1e2;
        let means = format!("ranked {} % to {} %", percent(q - half), percent(q + half));
        groups.push(Group::of(name, means, rows));
    }
    let slowest = &sorted[sorted.len().saturating_sub(SLOWEST)..];
    groups.push(Group::of("slowest", format!("the slowest {}", slowest.len()), slowest));
    groups.retain(|group| group.rows > 0);
    groups
}

fn near(sorted: &[Explained], q: f64, half: f64) -> &[Explained] {
    let rank = |q: f64| ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
    &sorted[rank(q - half)..=rank(q + half)]
}

/// What is to be explained: the time of some requests, or the part of it that exceeds the time of usual requests.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// In words: `the slowest 5 %`.
    pub(crate) over: String,
    pub(crate) rows: Vec<Explained>,
    pub(crate) sums: Ledger,
    /// Waits for a connection in the sums, assigned to what occupied the connections.
    pub(crate) chained: Ledger,
    pub(crate) is_excess: bool,
}

/// A tail is explained separately if it is at least this many times the median.
const HEAVY: u64 = 2;

/// A tail also needs this many requests; with fewer, a chance event could be the cause.
const TAIL_ROWS: usize = 10;

impl Scope {
    /// The slow requests of `sorted`: the tail if it is heavy, otherwise all.
    pub(crate) fn of(sorted: &[Explained], is_whole_run: bool) -> Scope {
        let tails = [(0.95, "the slowest 5 %"), (0.99, "the slowest 1 %")];
        for (q, over) in tails.into_iter().filter(|_| is_whole_run) {
            let first = ((q * sorted.len() as f64).ceil() as usize).min(sorted.len());
            let tail = &sorted[first..];
            if tail.len() < TAIL_ROWS {
                continue;
            }
            let median = sorted[sorted.len() / 2].response;
            if tail[0].response.0 >= median.0.saturating_mul(HEAVY) {
                return Scope::excess(format!("{over} of the requests"), tail, &ordinary(sorted));
            }
        }
        let over = if is_whole_run { "all requests with a response" } else { "the requests that were kept" };
        let rows = sorted.to_vec();
        let sums = Group::of("all", String::new(), &rows).sums;
        Scope { over: over.to_owned(), rows, sums, chained: Ledger::default(), is_excess: false }
    }

    /// The time by which `tail` exceeds usual requests.
    fn excess(over: String, tail: &[Explained], ordinary: &Usual) -> Scope {
        let rows = tail.to_vec();
        let mut sums = Group::of("tail", String::new(), &rows).sums;
        for segment in Segment::ALL {
            let usual = rows.iter().map(|one| ordinary.mean(one, segment).0).fold(0, u64::saturating_add);
            let sum = &mut sums.0[segment as usize];
            *sum = sum.saturating_sub(usual);
        }
        Scope { over, rows, sums, chained: Ledger::default(), is_excess: true }
    }

    /// A scope of sums over all requests.
    pub(crate) fn of_sums(sums: Ledger) -> Scope {
        Scope {
            over: "all ok requests".to_owned(),
            rows: Vec::new(),
            sums,
            chained: Ledger::default(),
            is_excess: false,
        }
    }
}

/// The usual time by segment: requests found at a server are compared with others that were found, because a request
/// that was not found has in one segment what others have in several.
#[derive(Debug)]
pub(crate) struct Usual {
    found: Group,
    /// The usual time of all of them, as if none had been found.
    undivided: Group,
}

impl Usual {
    pub(crate) fn of(rows: &[Explained]) -> Usual {
        let found: Vec<_> = rows.iter().copied().filter(|one| one.joined).collect();
        let undivided = |one: &Explained| Explained { ledger: one.ledger.undivided(), ..*one };
        let undivided: Vec<_> = rows.iter().map(undivided).collect();
        Usual {
            found: Group::of("found", String::new(), if found.is_empty() { rows } else { &found }),
            undivided: Group::of("undivided", String::new(), &undivided),
        }
    }

    /// The usual time of a request like `one`.
    pub(crate) fn mean(&self, one: &Explained, segment: Segment) -> Nanos {
        if one.joined { self.found.mean(segment) } else { self.undivided.mean(segment) }
    }
}

/// The requests near the median: what is usual.
pub(crate) fn ordinary(sorted: &[Explained]) -> Usual {
    Usual::of(if sorted.is_empty() { sorted } else { near(sorted, 0.5, HALF_BAND) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(responses: impl IntoIterator<Item = u64>) -> Vec<Explained> {
        let row = |(row, ns)| {
            let mut ledger = Ledger::default();
            ledger.put(Segment::OnCpu, 100);
            ledger.put(Segment::ClientLag, ns - 100);
            Explained { row, response: Nanos(ns), joined: true, ledger }
        };
        responses.into_iter().enumerate().map(row).collect()
    }

    #[test]
    fn bands_are_the_requests_near_a_percentile() {
        let groups = groups(&rows(1_001..=2_000));
        let reported: Vec<_> =
            groups.iter().map(|group| (group.name, group.rows, group.from_ns, group.to_ns)).collect();
        assert_eq!(
            reported,
            [
                ("all", 1_000, 1_001, 2_000),
                ("p50", 51, 1_475, 1_525),
                ("p95", 51, 1_925, 1_975),
                ("p99", 11, 1_985, 1_995),
                ("slowest", 10, 1_991, 2_000),
            ]
        );
        for group in &groups {
            assert_eq!(group.segments_ns.values().sum::<u64>(), group.sum_ns);
        }
        let few = |count: u64| super::groups(&rows(1_001..=1_000 + count)).len();
        // `all` and `slowest`, and the percentiles that this many requests carry.
        assert_eq!([2, 5, 6, 71, 72, 367, 368].map(few), [2, 2, 3, 3, 4, 4, 5]);
        assert!(super::groups(&[]).is_empty());
    }

    /// If this fails, requests whose server side is unknown are missing from what is stated about all requests.
    #[test]
    fn requests_that_were_not_found_are_explained_with_the_others() {
        let mut tail = rows((0..900).map(|_| 1_000).chain((0..100).map(|_| 9_000)));
        for one in tail.iter_mut().filter(|one| one.row % 2 == 0) {
            one.joined = false;
            one.ledger = one.ledger.undivided();
        }
        let of_all = Scope::of(&tail, false);
        assert_eq!((of_all.rows.len(), of_all.sums.sum()), (1_000, 900 * 1_000 + 100 * 9_000));
        // The usual time of one kind is not subtracted from the other.
        let heavy = Scope::of(&tail, true);
        assert_eq!((heavy.rows.len(), heavy.is_excess), (50, true));
        assert_eq!(by_name(&heavy.sums), BTreeMap::from([("client_lag", 50 * 8_000)]));
    }

    #[test]
    fn a_heavy_tail_is_explained_by_what_it_has_more() {
        let even = Scope::of(&rows(1_001..=2_000), true);
        assert_eq!((even.rows.len(), even.is_excess), (1_000, false));
        let tail = rows((0..900).map(|_| 1_000).chain((0..100).map(|_| 9_000)));
        let heavy = Scope::of(&tail, true);
        assert_eq!((heavy.rows.len(), heavy.is_excess), (50, true));
        assert_eq!(by_name(&heavy.sums), BTreeMap::from([("client_lag", 50 * 8_000)]));
        assert_eq!(Scope::of(&tail, false).rows.len(), 1_000);
    }
}
