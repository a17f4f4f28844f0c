//! The points of a Poisson process with one request per unit, by number, without computing the earlier ones.
//!
//! Gaps are drawn in blocks. The length of a block, a sum of exponentials, is drawn at once as a gamma; the gaps within
//! it are exponentials scaled to that length. This is the same process, because the sum of independent exponentials is
//! independent of their proportions (Devroye, Non-Uniform Random Variate Generation, 1986, V.2). So reaching a distant
//! point costs one draw per block on the way, and every worker gets the same points.

use crate::random::Stream;
use crate::shape::ONE;

/// Points per block. Computing a block takes some 3 us, which a worker spends between two requests; skipping one, 50
/// ns.
pub(crate) const BLOCK: u64 = 256;

/// A block's length uses the draws of its stream from this position on; its gaps use those before it.
const LENGTH_DRAWS: u64 = BLOCK;

/// The block of points that a walk has reached. Walks forward only.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Points {
    stream: Stream,
    block: u64,
    /// The position at which the block begins: the last point of the block before.
    base: u64,
    length: u64,
    /// Whether `positions` are those of this block.
    filled: bool,
    positions: Box<[u64; BLOCK as usize]>,
}

impl Points {
    pub(crate) fn new(stream: Stream) -> Points {
        Points {
            stream,
            block: 0,
            base: 0,
            length: length(stream, 0),
            filled: false,
            positions: Box::new([0; BLOCK as usize]),
        }
    }

    /// Restarts with another stream, in the same memory.
    pub(crate) fn restart(&mut self, stream: Stream) {
        (self.stream, self.block, self.base, self.filled) = (stream, 0, 0, false);
        self.length = length(stream, 0);
    }

    /// The position of point `n`, which must be in this block or a later one.
    pub(crate) fn position(&mut self, n: u64) -> u64 {
        while self.block < n / BLOCK {
            self.next_block();
        }
        debug_assert_eq!(self.block, n / BLOCK, "a walk along the points goes forward");
        if !self.filled {
            self.fill();
        }
        self.positions[usize::try_from(n % BLOCK).expect("a place within a block is small")]
    }

    /// How many points come before the first one for which `before` is false; `before` must be monotone.
    pub(crate) fn count_while(&mut self, before: impl Fn(u64) -> bool) -> u64 {
        while before(self.base + self.length) {
            self.next_block();
        }
        self.fill();
        self.block * BLOCK + self.positions.partition_point(|&position| before(position)) as u64
    }

    fn next_block(&mut self) {
        self.base += self.length;
        self.block += 1;
        self.length = length(self.stream, self.block);
        self.filled = false;
    }

    fn fill(&mut self) {
        let gaps = self.stream.substream(self.block);
        let mut places = [0.0; BLOCK as usize];
        let mut sum = 0.0;
        for (n, place) in (0..).zip(&mut places) {
            sum += gaps.exponential(n);
            *place = sum;
        }
        let scale = self.length as f64 / sum;
        for (position, place) in self.positions.iter_mut().zip(places) {
            // Rounding must not go beyond the begin of the next block.
            *position = self.base + ((place * scale) as u64).min(self.length);
        }
        self.filled = true;
    }
}

fn length(stream: Stream, block: u64) -> u64 {
    (stream.substream(block).gamma(BLOCK as f64, LENGTH_DRAWS) * ONE as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_the_same_however_it_is_reached() {
        let stream = Stream::new(3, 0);
        let mut walk = Points::new(stream);
        let walked: Vec<u64> = (0..2_000).map(|n| walk.position(n)).collect();
        assert!(walked.is_sorted());
        for n in [0, 1, 255, 256, 511, 1_500, 1_999] {
            assert_eq!(Points::new(stream).position(n), walked[usize::try_from(n).unwrap()]);
        }
        assert_eq!(Points::new(stream).count_while(|position| position < walked[700]), 700);
        walk.restart(stream);
        assert_eq!(walk.position(5), walked[5]);
    }
}
