//! How often a worker may begin to open a connection.

use units::Nanos;

/// Permits to open connections, one after another. A permit that nobody takes does not accumulate.
#[derive(Debug)]
pub(crate) struct Permits {
    gap: Nanos,
    next: Nanos,
}

impl Permits {
    /// Permits of one of `workers` workers, whose first one is due at `first`; together they give one per `gap`.
    pub(crate) fn new(gap: Nanos, workers: u64, first: Nanos) -> Permits {
        Permits { gap: Nanos(gap.0.saturating_mul(workers)), next: first }
    }

    /// Whether every attempt is permitted at once.
    #[inline]
    pub(crate) fn are_unlimited(&self) -> bool {
        self.gap == Nanos::ZERO
    }

    /// When the next permit is due.
    pub(crate) fn next_at(&self) -> Nanos {
        self.next
    }

    /// Whether there is a permit at `now`.
    #[inline]
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        self.are_unlimited() || self.next <= now
    }

    /// Takes the permit that is due at `now`. The next one is due a gap after this one was, even if it is taken late,
    /// but not if it is taken more than a gap late.
    pub(crate) fn take(&mut self, now: Nanos) {
        debug_assert!(self.is_due(now), "a permit is taken when it is due");
        if !self.are_unlimited() {
            let late = now.saturating_sub(self.next);
            let from = if late < self.gap { self.next } else { now };
            self.next = from.saturating_add(self.gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(permits: &mut Permits, looks: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut take = |at: &u64| {
            let is_due = permits.is_due(Nanos(*at));
            if is_due {
                permits.take(Nanos(*at));
            }
            is_due
        };
        looks.into_iter().filter(|at| take(at)).collect()
    }

    #[test]
    fn permits_keep_their_rate_when_they_are_taken_late() {
        let mut permits = Permits::new(Nanos(10), 1, Nanos(0));
        assert_eq!(taken(&mut permits, (3..60).step_by(7)), [3, 10, 24, 31, 45, 52]);
    }

    /// If this fails, a client that needed no connection for a while opens a storm of them.
    #[test]
    fn permits_do_not_accumulate() {
        let mut permits = Permits::new(Nanos(10), 2, Nanos(0));
        assert_eq!(taken(&mut permits, [100, 100, 101, 119, 120, 121]), [100, 120]);
    }
}
