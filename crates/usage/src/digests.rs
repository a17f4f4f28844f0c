//! Requests by statement or route, summed.

use record::observation::watch::{Digest, PartsNs, RowCounts};
use record::{Compact, Protocol, Served};

use super::tally::{MakeTimes, add_rows};

/// Users and schemas that are listed per statement.
const SESSIONS: usize = 4;

/// Requests by digest. The dissector gives out a bounded number of these: at most 80 MiB, about 20 MiB usually.
#[derive(Debug, Default)]
pub struct DigestSums {
    by_id: Vec<Option<Box<One>>>,
}

#[derive(Debug)]
struct One {
    protocol: Protocol,
    statements: u64,
    times: Compact,
    socket_queue_ns: Option<u64>,
    parts_ns: PartsNs,
    rows: Option<RowCounts>,
    sessions: Vec<u32>,
    more_sessions: bool,
}

impl DigestSums {
    /// Adds one request.
    ///
    /// # Cost
    ///
    /// One histogram; allocates for the first request of a digest, and for its first one of each octave.
    pub fn add(&mut self, served: &Served) {
        let id = served.digest as usize;
        if id >= self.by_id.len() {
            self.by_id.resize_with(id + 1, || None);
        }
        let one = self.by_id[id].get_or_insert_with(|| Box::new(One::new(served.protocol)));
        one.times.record(served.response());
        one.statements += u64::from(served.statements);
        if let Some(queue) = served.socket_queue() {
            one.socket_queue_ns = Some(one.socket_queue_ns.unwrap_or(0).saturating_add(queue.0));
        }
        one.parts_ns.add(&served.parts);
        add_rows(&mut one.rows, served.rows);
        if !one.sessions.contains(&served.session) {
            if one.sessions.len() < SESSIONS {
                one.sessions.push(served.session);
            } else {
                one.more_sessions = true;
            }
        }
    }

    /// Number, requests and summed time of each digest that has a request.
    pub fn totals(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.by_id.iter().enumerate().filter_map(|(id, one)| {
            let times = &one.as_ref()?.times;
            Some((u32::try_from(id).ok()?, times.count(), times.sum_ns()))
        })
    }

    /// The protocol and the rows of a digest; `None` if it has no request.
    pub fn facts(&self, id: u32) -> Option<(Protocol, Option<RowCounts>)> {
        self.by_id.get(id as usize)?.as_ref().map(|one| (one.protocol, one.rows))
    }

    /// One row per digest id, so that a request's digest is its index; rows without a request are empty.
    pub fn rows<'t>(&self, text: impl Fn(u32) -> &'t str, times: MakeTimes<'_>) -> Vec<Digest> {
        let row = |id| {
            let id = u32::try_from(id).expect("ids are 32 bits");
            self.row(id, text(id), times)
        };
        (0..self.by_id.len()).map(row).collect()
    }

    /// The row of a digest.
    pub fn row(&self, id: u32, text: &str, times: MakeTimes<'_>) -> Digest {
        let text = text.to_owned();
        match self.by_id.get(id as usize).and_then(Option::as_ref) {
            Some(one) => Digest {
                count: one.times.count(),
                statements: (one.statements != one.times.count()).then_some(one.statements),
                sum_ns: one.times.sum_ns(),
                socket_queue_ns: one.socket_queue_ns,
                parts_ns: one.parts_ns,
                times: Some(times(&one.times)),
                rows: one.rows,
                sessions: one.sessions.clone(),
                more_sessions: one.more_sessions,
                ..Digest::named(text, one.protocol)
            },
            None => Digest::named(text, Protocol::Turns),
        }
    }
}

impl One {
    fn new(protocol: Protocol) -> One {
        One {
            protocol,
            statements: 0,
            times: Compact::default(),
            socket_queue_ns: None,
            parts_ns: PartsNs::default(),
            rows: None,
            sessions: Vec::new(),
            more_sessions: false,
        }
    }
}
