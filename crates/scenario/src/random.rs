//! Randomness that depends on the seed and on what is drawn, never on which worker draws when: the same run, whatever
//! the number of workers.

/// The draw `id` of unit `n` of a run.
pub(crate) fn draw(seed: u64, n: u64, id: u64) -> u64 {
    mix(mix(mix(seed).wrapping_add(n)).wrapping_add(id))
}

/// A whole number from `low` to `high`, both included.
pub(crate) fn between(draw: u64, low: u64, high: u64) -> u64 {
    let span = u128::from(high - low) + 1;
    // Below `span`, so the conversion loses nothing.
    low + ((u128::from(draw) * span) >> 64) as u64
}

/// A UUID of version 4, in the usual form.
pub(crate) fn uuid(first: u64, second: u64) -> String {
    let high = (first & 0xffff_ffff_ffff_0fff) | 0x4000;
    let low = (second & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
    let text = format!("{high:016x}{low:016x}");
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// The `nth` of the draws derived from one.
pub(crate) fn nth_draw(draw: u64, nth: u64) -> u64 {
    // Odd, so that all draws derived from one differ; another step than the generator's own.
    mix(draw.wrapping_add(nth.wrapping_mul(0xd1b5_4a32_d192_ed03)))
}

/// A bijection that scatters neighbouring inputs.
fn mix(value: u64) -> u64 {
    schedule::splitmix64(value)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_differ() {
        let draws: HashSet<u64> = (0..1_000).flat_map(|n| (0..4).map(move |id| draw(7, n, id))).collect();
        assert_eq!(draws.len(), 4_000);
        let mut counts = [0u32; 6];
        for n in 0..6_000 {
            counts[between(draw(1, n, 0), 1, 6) as usize - 1] += 1;
        }
        // Binomial with mean 1000 and standard deviation 29: five of those.
        assert!(counts.iter().all(|count| (855..=1_145).contains(count)), "{counts:?}");
        assert_eq!(between(u64::MAX, 0, u64::MAX), u64::MAX);
    }

    #[test]
    fn uuids_are_of_version_4() {
        assert_eq!(uuid(0, 0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid(u64::MAX, u64::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
