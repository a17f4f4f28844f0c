//! Pairing the records of two arms, and judging each metric.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use stats::comparison::{
    FEWEST_BLOCKS, Family, Judgement, Paired, Sample, Unpaired, Word, fewest_blocks, holm, judge_family_with,
    signed_rank,
};
use stats::{Attempts, ClusteredShare, clustered_share};

use crate::differences::{Difference, differences};
use crate::run::ONLY_OVER;
use crate::{ComparedMetric, ComparedRun, MetricSettings};

/// The records of one arm.
#[derive(Debug, Clone)]
pub struct Arm {
    pub name: String,
    /// What was run; `None` for records that were made elsewhere.
    pub command: Option<String>,
    pub runs: Vec<ComparedRun>,
}

/// How the records of an arm meet those of the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing {
    /// By block; some records may have no counterpart.
    Paired {
        left_over: usize,
    },
    Unpaired {
        because: &'static str,
    },
}

/// One metric of one arm.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub metric: ComparedMetric,
    /// The geometric means of the compared records; `None` without values.
    pub means: Option<(f64, f64)>,
    /// `None` if it cannot be compared.
    pub judgement: Option<Judgement>,
    /// Why it cannot be.
    pub absent: Option<String>,
}

/// One arm against the base.
#[derive(Debug, Clone)]
pub struct ArmComparison {
    pub name: String,
    pub pairing: Pairing,
    /// The compared runs per arm: of the arm that has fewer.
    pub runs: usize,
    pub primary: Judged,
    /// The metrics that a condition names; judged together with the primary one, at 5 % for all of them.
    pub named: Vec<Judged>,
    /// Exploratory: adjusted together, and labelled so.
    pub others: Vec<Judged>,
    /// The p-value of "the share of failures is the same", by the signed-rank test over runs; adjusted together with
    /// the primary and the named metrics if a condition names it. `None` without shares.
    pub failures_differ: Option<f64>,
    /// With fewer runs per arm the share of failures has no verdict.
    pub fewest_for_failures: usize,
}

impl ArmComparison {
    /// Every metric, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = &Judged> {
        std::iter::once(&self.primary).chain(&self.named).chain(&self.others)
    }
}

/// Everything that a report of a comparison shows.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The base first; all records, also those that are not used.
    pub arms: Vec<Arm>,
    pub differences: Vec<Difference>,
    pub compared: Vec<ArmComparison>,
    /// A second base, with the judgement of its primary metric: what this host calls a difference.
    pub twin: Option<ArmComparison>,
}

impl Comparison {
    /// The same with a second base that ran in the same blocks.
    ///
    /// # Errors
    ///
    /// As [`compare_arms`].
    pub fn with_twin(self, twin: Arm, settings: &MetricSettings) -> Result<Comparison, String> {
        let primary = self.compared.first().map(|arm| arm.primary.metric.name.to_owned());
        let settings = MetricSettings { primary, named: Vec::new(), ..settings.clone() };
        let judged = compare_arms(vec![self.arms[0].clone(), twin], &settings)?;
        Ok(Comparison { twin: judged.compared.into_iter().next(), ..self })
    }

    /// Whether the twin, which does not differ, came out better or worse: no verdict of the experiment holds then.
    pub fn is_noisy(&self) -> bool {
        let judgement = self.twin.as_ref().and_then(|twin| twin.primary.judgement.as_ref());
        judgement.is_some_and(|judgement| matches!(judgement.word, Word::Better | Word::Worse))
    }

    /// The share of failed requests of an arm, over its usable records. `None` if no record reports it.
    pub fn failures(&self, arm: usize) -> Option<ClusteredShare> {
        failures(self.arms.get(arm)?)
    }

    /// Whether the share of failures of compared arm `index` is above or below that of the base: their 95 % intervals
    /// do not overlap, and runs differ more often than chance, because failures come in bursts. `None` if not, or if a
    /// share is not known.
    pub fn failure_change(&self, index: usize) -> Option<Ordering> {
        let (base, arm) = (self.failures(0)?, self.failures(index + 1)?);
        let found = if arm.low > base.high {
            Ordering::Greater
        } else if arm.high < base.low {
            Ordering::Less
        } else {
            return None;
        };
        (self.compared.get(index)?.failures_differ? <= LEVEL).then_some(found)
    }

    /// Why no condition about compared arm `index` can be decided; `None` if it can.
    pub fn doubt(&self, index: usize) -> Option<String> {
        let (base, arm) = (&self.arms[0], &self.arms[index + 1]);
        let invalid = |arm: &Arm| arm.runs.len() - arm.usable().count();
        let (of_base, of_arm) = (invalid(base), invalid(arm));
        // A host that stalls spoils a record of a load test now and then; a program that fails is not measured.
        let allowed = if arm.runs.iter().any(ComparedRun::is_of_program) { 0 } else { 1 };
        if self.differences.iter().any(|difference| difference.matters) {
            Some("not the same experiment".to_owned())
        } else if self.is_noisy() {
            Some("noise floor exceeded".to_owned())
        } else if of_arm > of_base + allowed {
            Some(format!(
                "{of_arm} of {} runs of {} are invalid, and {of_base} of {} of {}: those that are left prove nothing",
                arm.runs.len(),
                arm.name,
                base.runs.len(),
                base.name
            ))
        } else if is_one_after_the_other(base, arm) {
            Some("the arms did not take turns".to_owned())
        } else {
            None
        }
    }
}

/// The highest chance of a change of shares that is none.
const LEVEL: f64 = 0.05;

/// The p-value of "the share of failures is the same", of these arms alone.
fn share_evidence(base: &Arm, arm: &Arm) -> Option<f64> {
    signed_rank(&share_changes(base, arm), 0.0).map(|evidence| evidence.p_differs)
}

/// The p-values of shares, by Holm next to those of the metrics that are judged with them.
fn adjusted_shares(judged: &[Judged], shares: &[f64]) -> Vec<f64> {
    let of_metric = |judged: &Judged| judged.judgement.as_ref()?.student.map(|evidence| evidence.p_differs);
    let all: Vec<f64> = shares.iter().copied().chain(judged.iter().filter_map(of_metric)).collect();
    let mut adjusted = holm(&all);
    adjusted.truncate(shares.len());
    adjusted
}

/// The change of the share of failures from run to run: by block, or in the order of the arms.
fn share_changes(base: &Arm, arm: &Arm) -> Vec<f64> {
    let share = |run: &ComparedRun| {
        let (failed, attempts) = run.failures.filter(|(_, attempts)| *attempts > 0)?;
        Some(failed as f64 / attempts as f64)
    };
    let (base, arm): (Vec<_>, Vec<_>) = (base.usable().collect(), arm.usable().collect());
    let pairs = match paired(&base, &arm) {
        (Pairing::Paired { .. }, pairs) => pairs,
        _ => base.iter().zip(&arm).map(|(base, arm)| Pair { base: Some(base), arm: Some(arm) }).collect(),
    };
    pairs.iter().filter_map(|pair| Some(share(pair.arm?)? - share(pair.base?)?)).collect()
}

/// Whether no record of one arm began between two of the other. Unknown times are not judged.
pub(crate) fn is_one_after_the_other(base: &Arm, arm: &Arm) -> bool {
    let times = |arm: &Arm| -> Vec<String> { arm.usable().map(|run| run.started.clone()).collect() };
    let (base, arm) = (times(base), times(arm));
    let is_before = |one: &[String], other: &[String]| one.iter().max() < other.iter().min();
    let are_several = base.len() > 1 && arm.len() > 1;
    are_several
        && !base.iter().chain(&arm).any(String::is_empty)
        && (is_before(&base, &arm) || is_before(&arm, &base))
}

/// The share of failed requests of an arm, over its usable records.
pub(super) fn failures(arm: &Arm) -> Option<ClusteredShare> {
    let counts = arm.usable().filter_map(|run| run.failures);
    let runs: Vec<Attempts> = counts.map(|(failed, attempts)| Attempts { failed, attempts }).collect();
    clustered_share(&runs)
}

impl Arm {
    /// The records whose figures may be used.
    pub fn usable(&self) -> impl Iterator<Item = &ComparedRun> {
        self.runs.iter().filter(|run| run.is_valid())
    }
}

/// The metrics that are tried as the primary one: what the load leaves free comes first.
const OF_OPEN_LOOP: [&str; 5] = ["response.p95", "request.p95", "response.p50", "request.p50", "throughput"];
const OF_CLOSED_LOOP: [&str; 5] = ["throughput", "response.p50", "request.p50", "service.p50", "wall_time"];

/// Compares each arm with the first one.
///
/// # Errors
///
/// One line, for fewer than two arms, an arm without a usable record, and an unknown metric.
pub fn compare_arms(arms: Vec<Arm>, settings: &MetricSettings) -> Result<Comparison, String> {
    let usable: Vec<Vec<&ComparedRun>> = arms.iter().map(|arm| arm.usable().collect()).collect();
    if let Some(empty) = usable.iter().position(Vec::is_empty) {
        return Err(format!(
            "all {} records of `{}` are invalid or unfinished",
            arms[empty].runs.len(),
            arms[empty].name
        ));
    }
    let [base, others @ ..] = usable.as_slice() else { return Err("a comparison needs a base".to_owned()) };
    let primary = settings.with_margin(primary(settings, &usable)?);
    let samples: Vec<(Pairing, Vec<Pair<'_>>)> = others.iter().map(|arm| paired(base, arm)).collect();
    let is_known = |metric: &ComparedMetric| {
        usable.iter().flatten().any(|run| run.value(metric).is_ok_and(|value| value != 0.0))
    };
    let rest = || ComparedMetric::all().filter(|metric| metric.name != primary.name).filter(is_known);
    let (named, explored): (Vec<ComparedMetric>, Vec<ComparedMetric>) =
        rest().map(|metric| settings.with_margin(metric)).partition(|metric| settings.names(metric));
    let confirmed = || std::iter::once(&primary).chain(&named);
    let cells = samples.iter().flat_map(|sample| confirmed().map(move |metric| (*metric, sample)));
    let shares: Vec<Option<f64>> = arms[1..].iter().map(|arm| share_evidence(&arms[0], arm)).collect();
    let named_shares: Vec<f64> =
        shares.iter().filter(|_| settings.failures).map(|p| p.unwrap_or(1.0)).collect();
    let first = judged(cells, Family::Primary, &named_shares);
    let fewest_for_failures =
        if settings.failures { fewest_blocks(first.len() + named_shares.len()) } else { FEWEST_BLOCKS };
    let adjusted = adjusted_shares(&first, &named_shares);
    let mut shares = shares.into_iter().zip(adjusted.into_iter().map(Some).chain(std::iter::repeat(None)));
    let mut judged_first = first.into_iter();
    let cells = samples.iter().flat_map(|sample| explored.iter().map(move |metric| (*metric, sample)));
    let mut judged_others = judged(cells, Family::Exploratory, &[]).into_iter();
    let compared = arms[1..].iter().zip(&samples).map(|(arm, (pairing, pairs))| ArmComparison {
        failures_differ: shares.next().and_then(|(alone, adjusted)| alone.map(|p| adjusted.unwrap_or(p))),
        fewest_for_failures,
        name: arm.name.clone(),
        pairing: pairing.clone(),
        runs: runs_of(pairs),
        primary: judged_first.next().expect("each arm has its judgement"),
        named: judged_first.by_ref().take(named.len()).collect(),
        others: judged_others.by_ref().take(explored.len()).collect(),
    });
    let compared = compared.collect();
    let mut differences = differences(&arms);
    if settings.differences_are_meant {
        differences.iter_mut().for_each(|one| one.matters = false);
    }
    Ok(Comparison { differences, arms, compared, twin: None })
}

pub(crate) fn primary(
    settings: &MetricSettings,
    usable: &[Vec<&ComparedRun>],
) -> Result<ComparedMetric, String> {
    if let Some(name) = &settings.primary {
        return ComparedMetric::from_name(name);
    }
    let runs = || usable.iter().flatten();
    let names: &[&str] = if runs().all(|run| run.is_open_loop) { &OF_OPEN_LOOP } else { &OF_CLOSED_LOOP };
    // A figure that is only known to be high stays: to pass over it would hide the very change.
    let is_measured = |value: &Result<f64, String>| match value {
        Ok(_) => true,
        Err(because) => because.starts_with(ONLY_OVER),
    };
    let is_known = |name: &&&str| runs().all(|run| run.values.get(**name).is_some_and(is_measured));
    ComparedMetric::from_name(names.iter().find(is_known).unwrap_or(&names[0]))
}

/// A record of each arm; without blocks, each pair has one side only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    base: Option<&'a ComparedRun>,
    arm: Option<&'a ComparedRun>,
}

pub(crate) fn runs_of(pairs: &[Pair<'_>]) -> usize {
    let bases = pairs.iter().filter(|pair| pair.base.is_some()).count();
    bases.min(pairs.iter().filter(|pair| pair.arm.is_some()).count())
}

/// Records pair if both arms have exactly one of a block.
pub(crate) fn paired<'a>(base: &[&'a ComparedRun], arm: &[&'a ComparedRun]) -> (Pairing, Vec<Pair<'a>>) {
    let (by_base, by_arm) = (by_block(base), by_block(arm));
    let apart = |because| {
        let bases = base.iter().map(|run| Pair { base: Some(run), arm: None });
        let arms = arm.iter().map(|run| Pair { base: None, arm: Some(run) });
        (Pairing::Unpaired { because }, bases.chain(arms).collect())
    };
    let (Some(by_base), Some(by_arm)) = (by_base, by_arm) else {
        return apart("their blocks are not distinct");
    };
    if by_base.is_empty() || by_arm.is_empty() {
        return apart("not all records were made with --block");
    }
    let pairs: Vec<Pair<'_>> = by_base
        .iter()
        .filter_map(|(block, base)| Some(Pair { base: Some(base), arm: Some(by_arm.get(block)?) }))
        .collect();
    if pairs.is_empty() {
        return apart("they have no block in common");
    }
    if overlap(&pairs) {
        return apart("their blocks overlap in time");
    }
    let left_over = base.len() + arm.len() - 2 * pairs.len();
    (Pairing::Paired { left_over }, pairs)
}

/// Whether a record of one block began between those of another: blocks of two experiments may have the same names.
fn overlap(pairs: &[Pair<'_>]) -> bool {
    let times = |pair: &Pair<'_>| {
        let [base, arm] = [pair.base, pair.arm].map(|run| run.map_or("", |run| run.started.as_str()));
        (!base.is_empty() && !arm.is_empty()).then(|| (base.min(arm).to_owned(), base.max(arm).to_owned()))
    };
    let mut spans: Vec<(String, String)> = pairs.iter().filter_map(times).collect();
    spans.sort();
    spans.windows(2).any(|two| two[1].0 < two[0].1)
}

/// `None` if two records have the same block; empty if one has none.
fn by_block<'a>(runs: &[&'a ComparedRun]) -> Option<BTreeMap<&'a str, &'a ComparedRun>> {
    let mut found = BTreeMap::new();
    for run in runs {
        let Some(block) = run.block.as_deref() else { return Some(BTreeMap::new()) };
        if found.insert(block, *run).is_some() {
            return None;
        }
    }
    Some(found)
}

/// Judges cells together.
pub(crate) fn judged<'a, 'b: 'a>(
    cells: impl Iterator<Item = (ComparedMetric, &'a (Pairing, Vec<Pair<'b>>))>,
    family: Family,
    others: &[f64],
) -> Vec<Judged> {
    let samples: Vec<(ComparedMetric, Result<Measured, String>)> =
        cells.map(|(metric, (_, pairs))| (metric, measured(metric, pairs))).collect();
    let comparable: Vec<_> = samples
        .iter()
        .filter_map(|(metric, measured)| Some((measured.as_ref().ok()?.sample.clone(), metric.metric)))
        .collect();
    let mut judgements = judge_family_with(&comparable, family, others).into_iter();
    let judged = samples.into_iter().map(|(metric, measured)| match measured {
        Err(absent) => Judged { metric, means: None, judgement: None, absent: Some(absent) },
        Ok(measured) => {
            let mut judgement = judgements.next().expect("each comparable cell was judged");
            judgement.fewest_blocks = judgement.fewest_blocks.max(metric.fewest_records);
            if measured.sample.runs() < judgement.fewest_blocks {
                judgement.word = Word::LookOnly;
                judgement.disagreement = None;
                judgement.blocks_needed =
                    Some(judgement.blocks_needed.unwrap_or(0).max(judgement.fewest_blocks));
            }
            Judged { metric, means: Some(measured.means), judgement: Some(judgement), absent: None }
        }
    });
    judged.collect()
}

struct Measured {
    sample: Sample,
    means: (f64, f64),
}

/// The values of a metric; an error if one record lacks it, because leaving out the slow ones would flatter.
fn measured(metric: ComparedMetric, pairs: &[Pair<'_>]) -> Result<Measured, String> {
    let of = |runs: Vec<&ComparedRun>| -> Result<Vec<f64>, String> {
        runs.iter().map(|run| run.value(&metric)).collect()
    };
    let base = of(pairs.iter().filter_map(|pair| pair.base).collect())?;
    let arm = of(pairs.iter().filter_map(|pair| pair.arm).collect())?;
    if base.iter().chain(&arm).any(|value| *value == 0.0) {
        return Err("0 in some records: no ratio".to_owned());
    }
    let is_paired = pairs.iter().all(|pair| pair.base.is_some() && pair.arm.is_some());
    let sample = if is_paired {
        Sample::Paired(Paired::new(&base, &arm).map_err(|error| error.to_string())?)
    } else {
        Sample::Unpaired(Unpaired::new(&base, &arm).map_err(|error| error.to_string())?)
    };
    Ok(Measured { sample, means: (geometric_mean(&base), geometric_mean(&arm)) })
}

pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
