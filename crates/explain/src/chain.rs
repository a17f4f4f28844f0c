//! What a wait for a connection was really for: what kept the connections busy in the meantime.
//!
//! A stall anywhere makes a queue for the pool, and the queue outlasts it. The part of such a wait for which
//! connections were held longer than usual is attributed to whatever held them; the rest is the pool's own. For a tail,
//! usual is what requests near the median take; for all requests, what the quickest tenth takes. If all requests are
//! alike, the wait is attributed to the pool.

use export::requests::Row;
use record::Phase;

use crate::groups::{Explained, Scope, Usual, ordinary};
use crate::ledger::Ledger;
use crate::place::Segment;

/// Maximum number of holders that count for one wait, and of holders that are examined.
const MOST_HOLDERS: usize = 512;
const MOST_STEPS: usize = 16_384;

/// Segments before a request has its connection.
const BEFORE: [Segment; 3] = [Segment::ScheduleLag, Segment::PoolWait, Segment::PoolAfterLag];

/// The time in which a request had its connection.
struct Holder {
    from: u64,
    to: u64,
    /// The time above the usual, by segment, and the usual time.
    more: Ledger,
    usual: u64,
}

/// Moves the waits for connections in `scope` to what kept the connections busy.
pub(crate) fn chain(scope: &mut Scope, explained: &[Explained], rows: &[Row]) {
    let ordinary = if scope.is_excess { ordinary(explained) } else { quickest(explained) };
    let mut holders: Vec<Holder> =
        explained.iter().map(|one| holder(one, &ordinary, &rows[one.row])).collect();
    holders.sort_by_key(|holder| holder.from);
    let mut last = 0;
    // For each request, when it and all before it were done.
    let until: Vec<u64> = holders
        .iter()
        .map(|holder| {
            last = holder.to.max(last);
            last
        })
        .collect();
    for one in &scope.rows {
        let wait = one.ledger.get(Segment::PoolWait);
        let row = &rows[one.row];
        let (from, to) = (row.end_of(Phase::ScheduleLag).0, row.end_of(Phase::PoolWait).0);
        let first = until.partition_point(|&until| until <= from);
        let during = holders[first..].iter().take(MOST_STEPS).take_while(|holder| holder.from < to);
        let mut held = Ledger::default();
        let mut usual = 0u64;
        for holder in during.filter(|holder| holder.to > from).take(MOST_HOLDERS) {
            let overlap = holder.to.min(to) - holder.from.max(from);
            let share = |ns: u64| portion(ns, overlap, holder.to - holder.from);
            Segment::ALL.into_iter().for_each(|segment| held.put(segment, share(holder.more.get(segment))));
            usual = usual.saturating_add(share(holder.usual));
        }
        let all = held.sum().saturating_add(usual);
        for segment in Segment::ALL {
            // Never more than there is: what ordinary requests wait for the pool has been subtracted already.
            let moved = scope.sums.shift(Segment::PoolWait, segment, portion(wait, held.get(segment), all));
            scope.chained.put(segment, moved);
        }
    }
}

/// The tenth of requests that held a connection for the shortest time.
fn quickest(explained: &[Explained]) -> Usual {
    let mut sorted = explained.to_vec();
    sorted.sort_by_key(|one| {
        one.ledger.sum() - BEFORE.iter().map(|&segment| one.ledger.get(segment)).sum::<u64>()
    });
    sorted.truncate(explained.len().div_ceil(10));
    Usual::of(&sorted)
}

fn portion(ns: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (u128::from(ns) * u128::from(part) / u128::from(whole)) as u64 }
}

fn holder(one: &Explained, ordinary: &Usual, row: &Row) -> Holder {
    let mut more = Ledger::default();
    let mut usual = 0;
    for segment in Segment::ALL.into_iter().filter(|segment| !BEFORE.contains(segment)) {
        let ns = one.ledger.get(segment);
        let as_usual = ns.min(ordinary.mean(one, segment).0);
        usual += as_usual;
        more.put(segment, ns - as_usual);
    }
    Holder { from: row.end_of(Phase::PoolWait).0, to: row.end_of(Phase::ClientLag).0, more, usual }
}
