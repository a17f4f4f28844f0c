//! Requests that were not seen because their events were lost: how many, from what was read of their connections.
//!
//! The kernel's programs count the bytes that are read of each connection, and its turns: how often it is read after it
//! was written to. So the size of each hole in what was seen is known, in both. How many requests are in a hole follows
//! from how many there are in the turns that were seen. Where each turn has one request, or all requests have one length,
//! that is exact.

use record::observation::watch::MissedRequests;

use crate::kernel::{SoFar, Unseen};

/// What is known about missed requests.
#[derive(Debug, Clone, Default)]
pub struct Missed {
    /// How many requests there are in the first turns of all connections.
    density: Both<Density>,
    holes: Estimate,
    /// Holes of connections of which too little was seen.
    others: Both<u64>,
    /// Requests without a response at the end of the watch: they were in progress, or their responses were lost.
    under_way: u64,
    /// What lost events would have added, as far as it is in known holes.
    attributed: Unseen,
}

/// By turns and by bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Both<T> {
    turns: T,
    bytes: T,
}

/// How many requests there are in what is read, from samples of a turn each: of about the latest thousand.
#[derive(Debug, Clone, Copy, Default)]
struct Density {
    samples: f64,
    requests: f64,
    passed: f64,
    /// Sums of squares and of products, for the errors of a ratio (Cochran 1977, chapter 6).
    requests_squared: f64,
    passed_squared: f64,
    product: f64,
}

/// A number of requests, and its errors.
#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    requests: f64,
    /// Because turns differ.
    variance: f64,
    /// Because the density is that of a sample: a standard error that holes have in common.
    common: f64,
}

/// How far one connection was read, and how far its requests were served.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// What was read of it so far.
    read: SoFar,
    /// What had been read when the request that was served last was complete.
    complete: Option<SoFar>,
    /// Requests were missed since then.
    has_hole: bool,
    /// How many requests of the latest turn were served, and where it began: after the last request of the turn before.
    served: u64,
    turn_began: SoFar,
    density: Both<Density>,
}

impl Progress {
    /// An event of the connection, which moved `length` bytes of the client. Returns how many bytes of the client were
    /// lost before it, if events were.
    pub fn moved(
        &mut self,
        begins_turn: bool,
        length: u64,
        so_far: Option<SoFar>,
        missed: &mut Missed,
    ) -> Option<u64> {
        let turns = self.read.turns.wrapping_add(u32::from(begins_turn));
        let next = SoFar { turns, bytes: self.read.bytes + length };
        self.read = so_far.unwrap_or(next);
        so_far.map(|so_far| self.lost(so_far, next, missed))
    }

    fn lost(&mut self, so_far: SoFar, expected: SoFar, missed: &mut Missed) -> u64 {
        let bytes = so_far.bytes.saturating_sub(expected.bytes);
        missed.attributed.turns += u64::from(so_far.turns.saturating_sub(expected.turns));
        missed.attributed.bytes += bytes;
        self.has_hole = true;
        bytes
    }

    /// How much has been read.
    pub fn read(&self) -> SoFar {
        self.read
    }

    /// A request that was read will not be served.
    pub fn dropped(&mut self) {
        self.has_hole = true;
    }

    /// A request is served whose first byte was at `began`, and that was complete with `complete`.
    pub fn served(&mut self, began: u64, complete: SoFar, missed: &mut Missed) {
        let before = self.complete.replace(complete);
        let latest = before.unwrap_or_default();
        if std::mem::take(&mut self.has_hole) {
            // The turn that it is in was seen.
            let turns = complete.turns.saturating_sub(1);
            missed.add_hole(&self.density, SoFar { turns, bytes: began }.since(latest));
            // The rest of this turn is no sample.
            (self.served, self.turn_began) = (0, complete);
            return;
        }
        if before.is_some() && complete.turns != latest.turns {
            let passed = latest.since(self.turn_began);
            if self.served > 0 && passed.turns > 0 {
                self.density.add(self.served, passed);
                if self.density.turns.samples <= LEAST {
                    missed.sample(self.served, passed);
                }
            }
            (self.served, self.turn_began) = (0, latest);
        }
        self.served += 1;
    }

    /// The watch ends. `requests` have no response, and were dropped: if nothing else was missed, it is not known whether
    /// their responses were lost. Those in bytes that were not captured are known by these bytes alone.
    pub fn finish(&mut self, had_hole: bool, requests: u64, missed: &mut Missed) {
        if !had_hole {
            self.has_hole = false;
            let read = self.read.since(self.complete.unwrap_or_default());
            let of = |density: &Both<Density>| density.estimate(u64::from(read.turns), read.bytes);
            let estimate = of(&self.density).or_else(|| of(&missed.density));
            let estimated = estimate.map_or(0, |estimate| estimate.requests.ceil() as u64);
            missed.under_way += requests.max(estimated);
        }
    }

    /// What is read from here on until the next event is not counted by the kernel either: no hole.
    pub fn pause(&mut self) {
        let Progress { read, density, .. } = *self;
        *self = Progress { read, density, complete: Some(read), turn_began: read, ..Progress::default() };
    }

    /// Whether requests were missed since the last one that was served.
    pub fn has_hole(&self) -> bool {
        self.has_hole
    }

    /// The connection has ended, or is not followed any more. `so_far`: what was read of it until then, if that is
    /// known.
    pub fn end(&mut self, so_far: Option<SoFar>, missed: &mut Missed) {
        if let Some(so_far) = so_far.filter(|so_far| *so_far != self.read) {
            let expected = self.read;
            self.read = so_far;
            self.lost(so_far, expected, missed);
        }
        let latest = self.complete.unwrap_or_default();
        if std::mem::take(&mut self.has_hole) {
            missed.add_hole(&self.density, self.read.since(latest));
        } else if self.density.turns.samples <= LEAST {
            missed.sample(self.served, latest.since(self.turn_began));
        }
    }
}

impl Missed {
    /// How many requests were missed; `unseen` is what all lost events would have added. `None` if none were, or too
    /// few were seen to tell.
    pub fn estimate(&self, unseen: Unseen) -> Option<MissedRequests> {
        if unseen.events == 0 {
            return None;
        }
        let rest = unseen.since(&self.attributed);
        let mut all = self.holes;
        let (turns, bytes) = (rest.turns + self.others.turns, rest.bytes + self.others.bytes);
        all.add(&self.density.estimate(turns, bytes)?);
        let margin = SIGMAS * all.error() + self.under_way as f64;
        let requests = all.requests.max(0.0).round() as u64;
        Some(MissedRequests { requests, margin: margin.ceil() as u64 })
    }

    fn sample(&mut self, served: u64, passed: SoFar) {
        if served > 0 && passed.turns > 0 {
            self.density.add(served, passed);
        }
    }

    fn add_hole(&mut self, density: &Both<Density>, passed: SoFar) {
        let of = |density: &Both<Density>| density.estimate(u64::from(passed.turns), passed.bytes);
        match of(density) {
            Some(hole) => self.holes.add(&hole),
            None => {
                self.others.turns += u64::from(passed.turns);
                self.others.bytes += passed.bytes;
            }
        }
    }
}

/// Fewer turns are no sample.
const LEAST: f64 = 30.0;

/// The margin, in standard errors.
const SIGMAS: f64 = 4.0;

/// So many turns are remembered, at most.
const MEMORY: f64 = 1_024.0;

impl Both<Density> {
    fn add(&mut self, requests: u64, passed: SoFar) {
        self.turns.add(requests as f64, f64::from(passed.turns));
        self.bytes.add(requests as f64, passed.bytes as f64);
    }

    /// How many requests so many turns and bytes have, by what is more certain.
    fn estimate(&self, turns: u64, bytes: u64) -> Option<Estimate> {
        let by = [self.bytes.estimate(bytes), self.turns.estimate(turns)];
        by.into_iter().flatten().min_by(|a, b| a.error().total_cmp(&b.error()))
    }
}

impl Density {
    fn add(&mut self, requests: f64, passed: f64) {
        if self.samples >= MEMORY {
            let Density { samples, requests, passed, requests_squared, passed_squared, product } = self;
            for sum in [samples, requests, passed, requests_squared, passed_squared, product] {
                *sum /= 2.0;
            }
        }
        self.samples += 1.0;
        self.requests += requests;
        self.passed += passed;
        self.requests_squared += requests * requests;
        self.passed_squared += passed * passed;
        self.product += requests * passed;
    }

    fn estimate(&self, passed: u64) -> Option<Estimate> {
        if self.samples < LEAST || self.passed <= 0.0 {
            return None;
        }
        let ratio = self.requests / self.passed;
        let requests = passed as f64 * ratio;
        let off = self.requests_squared - 2.0 * ratio * self.product + ratio * ratio * self.passed_squared;
        // Of a turn. What is left of rounding is no error.
        let variance = if off > ROUNDING * self.requests_squared { off / self.samples } else { 0.0 };
        let turns = passed as f64 * self.samples / self.passed;
        let common = turns * (variance / self.samples).sqrt();
        Some(Estimate { requests, variance: turns * variance, common })
    }
}

/// Sums of squares have this relative error.
const ROUNDING: f64 = 1e-9;

impl Estimate {
    /// One standard error, in requests.
    fn error(&self) -> f64 {
        self.variance.sqrt() + self.common
    }

    fn add(&mut self, other: &Estimate) {
        self.requests += other.requests;
        self.variance += other.variance;
        self.common += other.common;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection with this many requests in each turn, of these lengths; events of some turns are lost.
    fn connection(turns: &[&[u64]], is_lost: impl Fn(usize) -> bool) -> (u64, Missed, Unseen) {
        let (mut missed, mut progress, mut unseen) =
            (Missed::default(), Progress::default(), Unseen::default());
        let (mut so_far, mut seen, mut after_loss) = (SoFar::default(), 0, false);
        for (n, requests) in turns.iter().enumerate() {
            let length = requests.iter().sum();
            let began = so_far.bytes;
            so_far = SoFar { turns: so_far.turns + 1, bytes: so_far.bytes + length };
            if is_lost(n) {
                unseen = Unseen {
                    events: unseen.events + 1,
                    turns: unseen.turns + 1,
                    bytes: unseen.bytes + length,
                };
                after_loss = true;
                continue;
            }
            let reported = std::mem::take(&mut after_loss).then_some(so_far);
            let gap = progress.moved(true, length, reported, &mut missed);
            assert_eq!(gap.is_some(), reported.is_some());
            let mut complete = SoFar { bytes: began, ..so_far };
            for length in *requests {
                let began = complete.bytes;
                complete.bytes += length;
                progress.served(began, complete, &mut missed);
                seen += 1;
            }
        }
        progress.end(None, &mut missed);
        (seen, missed, unseen)
    }

    #[test]
    fn one_request_per_turn_is_counted_exactly() {
        let turns: Vec<&[u64]> =
            (0..1_000).map(|n| if n % 3 == 0 { &[40_u64][..] } else { &[900] }).collect();
        let (seen, missed, unseen) = connection(&turns, |n| n > 100 && (n / 50) % 2 == 0);
        assert_eq!(missed.estimate(unseen), Some(MissedRequests { requests: 1_000 - seen, margin: 0 }));
    }

    #[test]
    fn requests_of_one_length_are_counted_exactly() {
        let turns: Vec<&[u64]> = (0..1_000).map(|n| &[36_u64; 64][..1 + n % 64]).collect();
        let all: u64 = turns.iter().map(|turn| turn.len() as u64).sum();
        let (seen, missed, unseen) = connection(&turns, |n| n > 100 && (n / 50) % 2 == 0);
        assert_eq!(missed.estimate(unseen), Some(MissedRequests { requests: all - seen, margin: 0 }));
    }

    /// If this fails, the margin is too narrow when the last responses of a connection are lost and its last requests were
    /// longer than what is captured of a read.
    #[test]
    fn requests_under_way_are_known_by_their_bytes() {
        let turns = [&[36_u64; 512][..]; 100];
        let (mut missed, mut progress) = (Missed::default(), Progress::default());
        let mut so_far = SoFar::default();
        for requests in turns {
            progress.moved(true, requests.iter().sum(), None, &mut missed);
            so_far.turns += 1;
            for length in requests {
                let began = so_far.bytes;
                so_far.bytes += length;
                progress.served(began, so_far, &mut missed);
            }
        }
        progress.moved(true, 512 * 36, None, &mut missed);
        // Of the last turn, 28 requests were captured.
        progress.finish(false, 28, &mut missed);
        assert_eq!(missed.under_way, 512);
        progress.end(None, &mut missed);
        let unseen = Unseen { events: 1, turns: 0, bytes: 0 };
        assert_eq!(missed.estimate(unseen), Some(MissedRequests { requests: 0, margin: 512 }));
    }

    #[test]
    fn nothing_is_missed_without_a_loss() {
        let (_, missed, unseen) = connection(&[&[10; 3][..]; 100], |_| false);
        assert_eq!(missed.estimate(unseen), None);
    }
}
