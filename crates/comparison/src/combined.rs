//! Several comparisons of one experiment, at each combination of what else varies, judged together.
//!
//! The primary metric and those named with it: Holm over metrics, arms and combinations. All others: Benjamini and
//! Hochberg, exploratory. Twins: Holm over combinations.

use stats::comparison::{FEWEST_BLOCKS, Family, Word};

use crate::judged::{ArmComparison, Pair, judged, paired, primary, runs_of};
use crate::{Arm, ComparedMetric, ComparedRun, Judged, MetricSettings, Pairing};

/// Arms that are compared with each other, at one combination of the other values.
#[derive(Debug, Clone)]
pub struct Combination {
    /// `concurrency=16`; empty if nothing else varies.
    pub name: String,
    /// The base first.
    pub arms: Vec<Arm>,
    /// A second base.
    pub twin: Option<Arm>,
    /// The planned runs of each arm: those that are not in it are missing.
    pub planned: Vec<usize>,
}

/// All comparisons of an experiment.
#[derive(Debug, Clone)]
pub struct Combined {
    pub primary: ComparedMetric,
    pub combinations: Vec<Combination>,
    /// For each combination, its arms after the base; `None` without usable runs on one side.
    pub compared: Vec<Vec<Option<ArmComparison>>>,
    /// For each combination, its twin with the primary metric.
    pub twins: Vec<Option<ArmComparison>>,
}

impl Combined {
    /// Whether a twin came out better or worse: no verdict of the experiment holds then.
    pub fn is_noisy(&self) -> bool {
        self.twins.iter().flatten().any(|twin| {
            let word = twin.primary.judgement.as_ref().map(|judgement| judgement.word);
            matches!(word, Some(Word::Better | Word::Worse))
        })
    }
}

/// One arm of a combination against its base.
struct Place<'a> {
    combination: usize,
    name: &'a str,
    sample: (Pairing, Vec<Pair<'a>>),
}

/// Compares the arms of each combination with its first one.
///
/// # Errors
///
/// For an unknown metric, and without any usable run.
pub fn compare_combinations(
    combinations: Vec<Combination>,
    settings: &MetricSettings,
) -> Result<Combined, String> {
    let all = || combinations.iter().flat_map(|one| &one.arms);
    let usable: Vec<Vec<&ComparedRun>> =
        all().map(|arm| arm.usable().collect()).filter(|runs: &Vec<_>| !runs.is_empty()).collect();
    if usable.is_empty() {
        return Err("no run has figures".to_owned());
    }
    let primary = settings.with_margin(primary(settings, &usable)?);
    let is_known = |metric: &ComparedMetric| {
        usable.iter().flatten().any(|run| run.value(metric).is_ok_and(|value| value != 0.0))
    };
    let rest = || ComparedMetric::all().filter(|metric| metric.name != primary.name).filter(is_known);
    let (named, explored): (Vec<ComparedMetric>, Vec<ComparedMetric>) =
        rest().map(|metric| settings.with_margin(metric)).partition(|metric| settings.names(metric));
    let confirmed: Vec<ComparedMetric> = std::iter::once(primary).chain(named).collect();

    let places = places(&combinations, |one| one.arms.iter().skip(1).collect());
    let mut first = judge(&places, &confirmed, Family::Primary).into_iter();
    let mut others = judge(&places, &explored, Family::Exploratory).into_iter();
    let mut compared: Vec<Vec<Option<ArmComparison>>> =
        combinations.iter().map(|one| vec![None; one.arms.len().saturating_sub(1)]).collect();
    for place in &places {
        let of_arm = arm_comparison(
            place,
            first.by_ref().take(confirmed.len()).collect(),
            others.by_ref().take(explored.len()).collect(),
        );
        let arms = &combinations[place.combination].arms;
        let at = arms.iter().skip(1).position(|arm| arm.name == place.name);
        compared[place.combination][at.expect("the place is that of an arm")] = Some(of_arm);
    }
    let twin_places = self::places(&combinations, |one| one.twin.iter().collect());
    let mut judged_twins = judge(&twin_places, &[primary], Family::Primary).into_iter();
    let mut twins: Vec<Option<ArmComparison>> = vec![None; combinations.len()];
    for place in &twin_places {
        let judged = judged_twins.by_ref().take(1).collect();
        twins[place.combination] = Some(arm_comparison(place, judged, Vec::new()));
    }
    drop((places, twin_places, usable));
    Ok(Combined { primary, combinations, compared, twins })
}

/// The pairs of each arm with its base, where both have usable runs.
fn places<'a>(
    combinations: &'a [Combination],
    arms: impl Fn(&'a Combination) -> Vec<&'a Arm>,
) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    for (combination, one) in combinations.iter().enumerate() {
        let base: Vec<&ComparedRun> = one.arms.first().into_iter().flat_map(Arm::usable).collect();
        for arm in arms(one) {
            let runs: Vec<&ComparedRun> = arm.usable().collect();
            if !base.is_empty() && !runs.is_empty() {
                let sample = paired(&base, &runs);
                places.push(Place { combination, name: &arm.name, sample });
            }
        }
    }
    places
}

/// All metrics of the first place, then those of the next.
fn judge(places: &[Place<'_>], metrics: &[ComparedMetric], family: Family) -> Vec<Judged> {
    let cells = places.iter().flat_map(|place| metrics.iter().map(|metric| (*metric, &place.sample)));
    judged(cells, family, &[])
}

fn arm_comparison(place: &Place<'_>, mut confirmed: Vec<Judged>, others: Vec<Judged>) -> ArmComparison {
    let (pairing, pairs) = &place.sample;
    let primary = confirmed.remove(0);
    ArmComparison {
        name: place.name.to_owned(),
        pairing: pairing.clone(),
        runs: runs_of(pairs),
        primary,
        named: confirmed,
        others,
        failures_differ: None,
        fewest_for_failures: FEWEST_BLOCKS,
    }
}
