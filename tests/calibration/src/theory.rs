//! What a run against a freezing server must measure: a queue, calculated request by request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Nanos;

/// A steady open loop over a pool, against a server that responds after `delay`, any number at once, but sends
/// nothing while it is frozen. Offsets are from the start of the run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub rate_per_s: u64,
    pub requests: u64,
    pub connections: usize,
    pub delay: Nanos,
    /// How long a request holds its connection while others wait for one: the delay, or longer if the hosts limit the
    /// pool.
    pub turn: Nanos,
    pub freeze: (Nanos, Nanos),
}

impl Plan {
    /// The response times of all requests, sorted.
    pub fn responses(&self) -> Vec<Nanos> {
        let mut responses: Vec<Nanos> = self.lives().map(|(due, answered)| answered - due).collect();
        responses.sort_unstable();
        responses
    }

    /// From the end of the freeze until no request waits for a connection any more: how long it takes to clear the
    /// backlog.
    pub fn drain(&self) -> Nanos {
        let (begin, end) = self.freeze;
        let held = self.lives().filter(|&(due, answered)| due >= begin && answered > due + self.delay);
        held.map(|(_, answered)| answered).max().map_or(Nanos::ZERO, |last| last.saturating_sub(end))
    }

    /// When each request is due and when its response arrives, in order.
    fn lives(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let mut free: BinaryHeap<_> = (0..self.connections).map(|_| Reverse(Nanos::ZERO)).collect();
        (0..self.requests).map(move |n| {
            let due = Nanos(n * 1_000_000_000 / self.rate_per_s);
            // First come, first served: it takes the connection that becomes free first.
            let Reverse(connection) = free.pop().unwrap();
            let answered = if connection > due {
                self.response_at(connection, self.turn)
            } else {
                self.response_at(due, self.delay)
            };
            free.push(Reverse(answered));
            (due, answered)
        })
    }

    /// When a request that arrives at `at` gets its response.
    fn response_at(&self, at: Nanos, after: Nanos) -> Nanos {
        let ready = at + after;
        let (begin, end) = self.freeze;
        if ready >= begin && ready < end { end } else { ready }
    }
}

/// The smallest of the sorted values with at least the share `per_mille` of all at or below it.
pub fn quantile(sorted: &[Nanos], per_mille: usize) -> Nanos {
    sorted[(sorted.len() * per_mille).div_ceil(1_000) - 1]
}

/// The calculation agrees with the plain formula if every request has a connection.
#[test]
fn one_second_in_ten_holds_back_a_tenth_evenly() {
    let freeze = (Nanos::from_secs(4), Nanos::from_secs(5));
    let delay = Nanos::from_millis(1);
    let plan = Plan { rate_per_s: 1_000, requests: 10_000, connections: 10_000, delay, turn: delay, freeze };
    let responses = plan.responses();
    for (per_mille, ms) in [(500, 1), (900, 1), (950, 500), (990, 900), (999, 990)] {
        let (seen, plain) = (quantile(&responses, per_mille), Nanos::from_millis(ms));
        assert!(seen >= plain && seen <= plain + Nanos::from_millis(2), "{per_mille}: {seen}");
    }
    assert!(plan.drain() <= delay);
}

#[test]
fn a_small_pool_drains_at_its_capacity() {
    let freeze = (Nanos::from_secs(4), Nanos::from_secs(5));
    let delay = Nanos::from_millis(1);
    let plan = Plan { rate_per_s: 1_000, requests: 10_000, connections: 2, delay, turn: delay, freeze };
    // A backlog of 1,000 at 2,000 per second, while 1,000 per second arrive.
    let drain = plan.drain();
    assert!(drain > Nanos::from_millis(990) && drain < Nanos::from_millis(1_010), "{drain}");
}
