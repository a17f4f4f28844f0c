//! Leases between two requests: how many connections are kept for journeys that pause, and which of them were lost.
//!
//! Which unit has leased a connection is a field of the connection; this is what no connection can hold.

use record::Outcome;

/// The leases of one worker that are between two requests.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Units that pause with a connection of their own.
    paused: u64,
    /// Units whose connection ended while they paused, and how: their next request fails by it. As many at most as
    /// there are connections.
    lost: Vec<(u64, Outcome)>,
}

impl Leases {
    /// How many units pause with a connection. Each has a place for its next request.
    #[inline]
    pub(crate) fn paused(&self) -> u64 {
        self.paused
    }

    /// A unit begins to pause and keeps its connection.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.paused += 1;
    }

    /// A unit that paused goes on, or was ended.
    #[inline]
    pub(crate) fn resume(&mut self) {
        self.paused -= 1;
    }

    /// The connection of unit `n`, which pauses, has ended by `outcome`.
    pub(crate) fn lose(&mut self, n: u64, outcome: Outcome) {
        self.lost.push((n, outcome));
    }

    /// How the connection of unit `n` ended while it paused; `None` where it did not.
    pub(crate) fn take_lost(&mut self, n: u64) -> Option<Outcome> {
        let index = self.lost.iter().position(|&(lost, _)| lost == n)?;
        Some(self.lost.swap_remove(index).1)
    }
}
