//! The faults that a client can request. `responses.rs` has what each one puts on the wire.

use units::Nanos;

units::named_enum! {
    /// A way to fail on purpose. The route of each is `/fault/` and its [`name`](Fault::name).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Fault {
        /// Closes (FIN) without a byte of response.
        Close = "close",
        /// Announces a longer body than it sends, then closes.
        ShortBody = "short-body",
        /// Resets (RST) without a byte of response.
        Reset = "reset",
        /// Sends part of the body, waits until it is acknowledged, then resets.
        ResetBody = "reset-body",
        /// Reads the request and never responds.
        Never = "never",
        /// Sends bytes that are not HTTP, then closes.
        Garbage = "garbage",
        /// Sends header after header without end.
        HeaderFlood = "header-flood",
        /// Sends part of a status line, then closes.
        HalfHead = "half-head",
        /// Sends a chunked body that breaks off with invalid bytes, then closes.
        ChunkGarbage = "chunk-garbage",
        /// The thread stops for a while, then responds: everything else on that thread waits too.
        Freeze = "freeze",
    }
}

impl Fault {
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A fault, and for which of the requests for it it occurs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FaultPlan {
    pub fault: Fault,
    /// `None`: for every request.
    pub share: Option<Share>,
    /// For [`Fault::Freeze`].
    pub length: Nanos,
}

/// A share of requests, drawn by a counter and a seed so that a run can be reproduced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    pub p: f64,
    pub seed: u64,
}

impl Share {
    /// Whether draw number `count` falls within the share.
    pub(crate) fn holds(self, count: u64) -> bool {
        // 53 bits make every float in 0..1 that the generator can produce exact.
        let unit = (draw(self.seed, count) >> 11) as f64 / (1u64 << 53) as f64;
        unit < self.p
    }
}

/// Number `count` of the sequence of `seed`: SplitMix64 (Steele, Lea, Flood 2014), addressable by position. A separate
/// copy, because this crate shares no code with what it is used to test.
pub(crate) fn draw(seed: u64, count: u64) -> u64 {
    let mut z = seed.wrapping_add(count.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_name_at_its_index() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(Fault::from_name(fault.name()), Some(fault));
            assert_eq!(fault.index(), index);
        }
    }

    #[test]
    fn a_share_is_met_and_repeats() {
        let share = Share { p: 0.1, seed: 7 };
        let drawn: Vec<u64> = (0..10_000).filter(|&n| share.holds(n)).collect();
        assert!((900..1_100).contains(&drawn.len()), "{}", drawn.len());
        assert_eq!(drawn, (0..10_000).filter(|&n| share.holds(n)).collect::<Vec<_>>());
        assert!((0..1_000).all(|n| Share { p: 1.0, seed: 3 }.holds(n)));
        assert!(!(0..1_000).any(|n| Share { p: 0.0, seed: 3 }.holds(n)));
    }

    #[test]
    fn the_generator_is_splitmix64() {
        // The published first outputs for seed 1234567.
        assert_eq!(draw(1_234_567, 0), 6_457_827_717_110_365_317);
        assert_eq!(draw(1_234_567, 1), 3_203_168_211_198_807_973);
    }
}
