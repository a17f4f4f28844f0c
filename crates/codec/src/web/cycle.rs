//! The order in which weighted requests take turns: a cycle computed once, so that turn `n` is one lookup.
//!
//! The order is Sainte-Laguë's: turn `k` of a request of weight `w` is at position `(2k + 1) / 2w` of the cycle, and
//! the turns are taken in order of their positions. Every part of the cycle is close to the requested mix, and equal
//! weights give the order of the list. The usual round-robin with running credits was rejected because its cost grows
//! with the product of requests and turns.

use super::request::RequestError;

/// The maximum number of turns in one cycle: 4 MiB of indexes, shared by all workers.
pub(crate) const TURNS_MAX: u64 = 1 << 20;

/// The request of each turn, as an index into `weights`.
///
/// # Errors
///
/// [`RequestError::NoWeight`] if a weight is 0, and [`RequestError::WeightsTooFine`] if the cycle is too long.
pub fn turns(weights: &[u32]) -> Result<Vec<u32>, RequestError> {
    if let Some(index) = weights.iter().position(|weight| *weight == 0) {
        return Err(RequestError::NoWeight { number: index + 1 });
    }
    let divisor = u64::from(weights.iter().copied().fold(0, greatest_common_divisor)).max(1);
    let total: u64 = weights.iter().map(|weight| u64::from(*weight) / divisor).sum();
    if total > TURNS_MAX {
        return Err(RequestError::WeightsTooFine { turns: total, limit: TURNS_MAX });
    }
    let mut turns = Vec::new();
    for (request, weight) in (0u32..).zip(weights) {
        let weight = u64::from(*weight) / divisor;
        turns.extend((0..weight).map(|turn| Turn { odd: 2 * turn + 1, weight, request }));
    }
    // Each is below 2^21, so the products do not overflow.
    turns.sort_by(|a, b| (a.odd * b.weight).cmp(&(b.odd * a.weight)).then(a.request.cmp(&b.request)));
    Ok(turns.into_iter().map(|turn| turn.request).collect())
}

struct Turn {
    odd: u64,
    weight: u64,
    request: u32,
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turns_are_spread_over_the_cycle() {
        for (weights, expected) in [
            (vec![1], vec![0]),
            (vec![7, 7, 7], vec![0, 1, 2]),
            (vec![1, 3], vec![1, 0, 1, 1]),
            (vec![20, 40], vec![1, 0, 1]),
        ] {
            assert_eq!(turns(&weights).unwrap(), expected, "{weights:?}");
        }
    }

    #[test]
    fn weights_without_a_short_cycle_are_refused() {
        assert_eq!(turns(&[1, 0]), Err(RequestError::NoWeight { number: 2 }));
        let error = turns(&[1, 2_000_000]);
        assert_eq!(error, Err(RequestError::WeightsTooFine { turns: 2_000_001, limit: TURNS_MAX }));
        assert!(turns(&[u32::MAX, u32::MAX]).is_ok());
    }

    proptest! {
        #[test]
        fn every_beginning_of_the_cycle_is_near_the_mix(weights in prop::collection::vec(1u32..50, 1..8)) {
            let turns = turns(&weights).unwrap();
            for (request, weight) in weights.iter().enumerate() {
                let share = f64::from(*weight) / f64::from(weights.iter().sum::<u32>());
                let mut count = 0.0;
                for (taken, turn) in turns.iter().enumerate() {
                    count += f64::from(u8::from(*turn as usize == request));
                    let wanted = share * (taken + 1) as f64;
                    // Up to half a turn of each request may come before its position.
                    let slack = 1.0 + share * weights.len() as f64;
                    prop_assert!((count - wanted).abs() <= slack, "{request}: {count} for {wanted}");
                }
                let whole = share * turns.len() as f64;
                prop_assert!((count - whole).abs() < 1e-6);
            }
        }
    }
}
