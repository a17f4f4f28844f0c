//! Stages that share a given time: each gets a part of it by its weight.

use std::num::NonZeroU32;

use thiserror::Error;
use units::Nanos;

use crate::stage::Stage;

/// A stage as it was written, with a length or with a weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Has no length if there is a weight.
    pub stage: Stage,
    /// Its share of the whole time, relative to the weights of the other stages.
    pub weight: Option<NonZeroU32>,
}

/// Why lengths cannot be assigned to stages. Messages count stages from 1.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShareError {
    #[error(
        "stage {weighted} has a weight but stage {timed} has a length; give all stages weights, or all lengths"
    )]
    Mixed { weighted: usize, timed: usize },
    #[error("stages with weights need a total duration to share; add for example -d 60s")]
    NoWhole,
    #[error(
        "a total duration cannot be combined with stages that have lengths; leave it out, or give every stage a weight"
    )]
    TwoWholes,
}

/// Assigns each stage its length: its own, or its share of `whole`. The shares add up to `whole` to the nanosecond.
///
/// # Errors
///
/// [`ShareError`] if weights and lengths are mixed, or if the total duration is given twice or not at all.
pub fn share_out(stages: Vec<Written>, whole: Option<Nanos>) -> Result<Vec<Stage>, ShareError> {
    let place_of = |weighted: bool| stages.iter().position(|written| written.weight.is_some() == weighted);
    match (place_of(true), place_of(false), whole) {
        (Some(weighted), Some(timed), _) => {
            Err(ShareError::Mixed { weighted: weighted + 1, timed: timed + 1 })
        }
        (Some(_), None, None) => Err(ShareError::NoWhole),
        (None, Some(_), Some(_)) => Err(ShareError::TwoWholes),
        (Some(_), None, Some(whole)) => Ok(shares(stages, whole)),
        (None, _, _) => Ok(stages.into_iter().map(|written| written.stage).collect()),
    }
}

/// Each share is from the end of the previous stages to its own end, both rounded down, so nothing is lost in between.
fn shares(stages: Vec<Written>, whole: Nanos) -> Vec<Stage> {
    let weight = |written: &Written| u128::from(written.weight.map_or(0, NonZeroU32::get));
    let all: u128 = stages.iter().map(weight).sum();
    let (mut weights, mut begin) = (0, Nanos::ZERO);
    let share = |written: Written| {
        weights += weight(&written);
        // At most the whole, so it fits.
        let end = Nanos((u128::from(whole.0) * weights / all) as u64);
        let length = Some(end - begin);
        begin = end;
        match written.stage {
            Stage::Shaped { shape, process, .. } => Stage::Shaped { shape, process, length },
            recorded @ Stage::Recorded(_) => recorded,
        }
    };
    stages.into_iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse_written;

    fn written(texts: &[&str]) -> Vec<Written> {
        texts.iter().flat_map(|text| parse_written(text).unwrap()).collect()
    }

    #[track_caller]
    fn check(texts: &[&str], whole: u64, lengths: &[u64]) {
        let stages = share_out(written(texts), Some(Nanos(whole))).unwrap();
        assert_eq!(stages.iter().map(|stage| stage.length().unwrap().0).collect::<Vec<_>>(), lengths);
    }

    #[test]
    fn a_weight_is_a_share_of_the_whole() {
        let minute = 60_000_000_000;
        check(
            &["constant 500/s weight 1", "ramp 500/s..1k/s weight 3"],
            minute,
            &[15_000_000_000, 45_000_000_000],
        );
        check(&["pause weight 7"], minute, &[minute]);
        // Each step has the weight, as each step would have the length.
        check(&["steps 1/s,2/s weight 1", "pause weight 2"], 8, &[2, 2, 4]);
        check(&["pause weight 1", "pause weight 1", "pause weight 1"], 10, &[3, 3, 4]);
        check(&["pause weight 4294967295", "pause weight 1"], u64::MAX, &[u64::MAX - (1 << 32), 1 << 32]);
    }

    #[test]
    fn mixed_forms_and_a_duration_given_twice_or_not_at_all_are_refused() {
        let refused = |texts: &[&str], whole| share_out(written(texts), whole).unwrap_err();
        let whole = Some(Nanos::from_secs(9));
        let mixed = ["pause 1s", "pause weight 2"];
        assert_eq!(refused(&mixed, whole), ShareError::Mixed { weighted: 2, timed: 1 });
        assert_eq!(refused(&mixed, None), ShareError::Mixed { weighted: 2, timed: 1 });
        assert_eq!(refused(&mixed[1..], None), ShareError::NoWhole);
        assert_eq!(refused(&mixed[..1], whole), ShareError::TwoWholes);
        assert!(share_out(written(&mixed[..1]), None).is_ok());
    }

    proptest::proptest! {
        /// If this fails, a run is shorter or longer than requested.
        #[test]
        fn shares_sum_to_the_whole_and_are_fair_to_a_nanosecond(
            weights in proptest::collection::vec(1u32.., 1..20), whole: u64
        ) {
            let texts: Vec<String> = weights.iter().map(|weight| format!("pause weight {weight}")).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let stages = share_out(written(&texts), Some(Nanos(whole))).unwrap();
            let lengths: Vec<u64> = stages.iter().map(|stage| stage.length().unwrap().0).collect();
            proptest::prop_assert_eq!(lengths.iter().sum::<u64>(), whole);
            let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            for (length, weight) in lengths.iter().zip(weights) {
                let fair = u128::from(whole) * u128::from(weight) / all;
                proptest::prop_assert!(u128::from(*length).abs_diff(fair) <= 1, "{length} for {fair}");
            }
        }
    }
}
