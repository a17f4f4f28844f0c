//! Individual arrival times of requests, for tests of a pacer. Kept only on request.

use units::Nanos;

/// Instants of arrival in the kernel, as many as there is room for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals {
    at: Vec<Nanos>,
    room: usize,
    /// Arrivals for which there was no room.
    beyond: u64,
}

/// The summary printed in the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Summary {
    kept: usize,
    beyond: u64,
    /// The most that arrived within one millisecond of the monotonic clock.
    most_in_1ms: u64,
}

impl Arrivals {
    pub(crate) fn with_room(room: usize) -> Arrivals {
        Arrivals { at: Vec::with_capacity(room), room, beyond: 0 }
    }

    #[inline]
    pub(crate) fn add(&mut self, arrival: Nanos) {
        if self.at.len() < self.room {
            self.at.push(arrival);
        } else {
            self.beyond += 1;
        }
    }

    /// The same capacity, with nothing in it.
    pub(crate) fn emptied(mut self) -> Arrivals {
        self.at.clear();
        self.beyond = 0;
        self
    }

    pub(crate) fn merge(&mut self, other: &Arrivals) {
        self.at.extend_from_slice(&other.at);
        self.room += other.room;
        self.beyond += other.beyond;
    }

    /// Needed because connections are read in any order, and threads are merged one after the other.
    pub(crate) fn sort(&mut self) {
        self.at.sort_unstable();
    }

    pub(crate) fn kept(&self) -> &[Nanos] {
        &self.at
    }

    /// `None` if there was no room for any. The arrivals must be sorted.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let in_one = |one: &[Nanos]| one.len() as u64;
        let most = self.at.chunk_by(|a, b| millisecond(*a) == millisecond(*b)).map(in_one).max();
        (self.room > 0).then(|| Summary {
            kept: self.at.len(),
            beyond: self.beyond,
            most_in_1ms: most.unwrap_or(0),
        })
    }
}

fn millisecond(at: Nanos) -> u64 {
    at.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a burst looks even.
    #[test]
    fn the_fullest_millisecond_is_found_over_all_threads() {
        let mut all = Arrivals::default();
        for thread in [&[1_100_000, 2_999_999, 5_000_000][..], &[2_000_000, 1_999_999]] {
            let mut arrivals = Arrivals::with_room(3);
            thread.iter().for_each(|&at| arrivals.add(Nanos(at)));
            all.merge(&arrivals);
        }
        all.sort();
        assert!(all.kept().is_sorted());
        assert_eq!(all.summary(), Some(Summary { kept: 5, beyond: 0, most_in_1ms: 2 }));
    }

    #[test]
    fn arrivals_beyond_the_room_are_counted() {
        let mut arrivals = Arrivals::with_room(1);
        (0..3).for_each(|at| arrivals.add(Nanos(at)));
        assert_eq!(arrivals.summary(), Some(Summary { kept: 1, beyond: 2, most_in_1ms: 1 }));
        assert_eq!(Arrivals::default().summary(), None);
    }
}
