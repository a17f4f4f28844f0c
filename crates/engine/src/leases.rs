//! Leases of journeys that are between two requests: how many there are, and which lost their connection.
//!
//! Which unit has leased a connection is a field of the connection. This has the state that no connection can hold.

use record::Outcome;

/// The leases of one worker whose units are between two requests.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    /// Units that are between two requests and keep their connection.
    paused: u64,
    /// Units whose connection ended while they paused, and its outcome: their next request fails with it. There are at
    /// most as many as connections.
    lost: Vec<(u64, Outcome)>,
}

impl Leases {
    /// How many units pause with a leased connection. Room for the next request of each is reserved.
    #[inline]
    pub(crate) fn paused(&self) -> u64 {
        self.paused
    }

    /// A unit begins to pause and keeps its connection.
    #[inline]
    pub(crate) fn pause(&mut self) {
        self.paused += 1;
    }

    /// A unit that paused continues, or was ended.
    #[inline]
    pub(crate) fn resume(&mut self) {
        self.paused -= 1;
    }

    /// The connection of unit `n`, which pauses, has ended with `outcome`.
    pub(crate) fn lose(&mut self, n: u64, outcome: Outcome) {
        self.lost.push((n, outcome));
    }

    /// How the connection of unit `n` ended while it paused; `None` if it did not.
    pub(crate) fn take_lost(&mut self, n: u64) -> Option<Outcome> {
        let index = self.lost.iter().position(|&(lost, _)| lost == n)?;
        Some(self.lost.swap_remove(index).1)
    }
}
