//! The word of a comparison: what two methods support together, measured against a margin.

use super::{Evidence, Paired, Unpaired, benjamini_hochberg, holm, signed_rank};

/// Below six blocks no distribution-free statement at 95 % exists: the smallest p-value of a signed-rank test with
/// five is 0.0625, with six 0.031.
pub const FEWEST_BLOCKS: usize = 6;

/// The fewest blocks with which one of so many comparisons that are judged together at 5 % can have a verdict: Holm's
/// adjustment multiplies the smallest p-value of a signed-rank test, 2 / 2^blocks, by their number. 6 for one, 7 for
/// two, 8 for four.
pub fn fewest_blocks(comparisons: usize) -> usize {
    let smallest = |blocks: usize| comparisons as f64 * 2.0 / 2_f64.powi(blocks as i32);
    (FEWEST_BLOCKS..MOST_BLOCKS).find(|blocks| smallest(*blocks) <= 0.05).unwrap_or(MOST_BLOCKS)
}

/// Two arms, as far as they can be compared.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    Paired(Paired),
    Unpaired(Unpaired),
}

/// Comparisons that are judged together, and how their p-values are adjusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// The comparisons with the primary metric: Holm, at 5 %.
    Primary,
    /// All others: Benjamini and Hochberg, at 10 %; a report says that they are exploratory.
    Exploratory,
}

/// More blocks than this are not proposed: the machine would be another one by then.
const MOST_BLOCKS: usize = 1000;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    HigherIsBetter,
    LowerIsBetter,
}

/// What is compared, and from which difference on it matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub direction: Direction,
    /// The relative difference that matters, for example 0.02 for 2 %; symmetric for logs: 1.02 and 1/1.02.
    pub margin: f64,
}

/// The verdict words, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The difference is real, and at least the margin by the best estimate.
    Better,
    Worse,
    /// The difference is real, and certainly smaller than the margin.
    DiffersTooLittle,
    /// If there is a difference, it is certainly smaller than the margin.
    Same,
    /// The difference is real; whether it reaches the margin is open.
    Leaning,
    /// Nothing is certain, or the two methods conclude different things.
    Inconclusive,
    /// Fewer blocks than a verdict needs ([`fewest_blocks`]): figures only.
    LookOnly,
}

/// A word with the evidence for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    pub word: Word,
    pub student: Option<Evidence>,
    pub signed_rank: Option<Evidence>,
    /// The words of the two methods, if they differ. The word is then [`Word::Inconclusive`].
    pub disagreement: Option<(Word, Word)>,
    /// For an inconclusive comparison, and one to look at only: the blocks from which the word is certain if mean and
    /// deviation remain as they are. `None` if more than 1,000.
    pub blocks_needed: Option<usize>,
    /// With fewer blocks it is [`Word::LookOnly`].
    pub fewest_blocks: usize,
}

impl Metric {
    fn log_margin(self) -> f64 {
        self.margin.ln_1p()
    }
}

impl Sample {
    /// The runs of the arm that has fewer.
    pub fn runs(&self) -> usize {
        match self {
            Sample::Paired(pairs) => pairs.blocks(),
            Sample::Unpaired(values) => values.runs(),
        }
    }

    fn student(&self, margin: f64) -> Option<Evidence> {
        match self {
            Sample::Paired(pairs) => pairs.student(margin),
            Sample::Unpaired(values) => Some(values.student(margin)),
        }
    }

    fn signed_rank(&self, margin: f64) -> Option<Evidence> {
        match self {
            Sample::Paired(pairs) => signed_rank(pairs.log_ratios(), margin),
            Sample::Unpaired(_) => None,
        }
    }

    /// What Student's t would say of `runs` per arm with today's means and deviations.
    fn student_of(&self, runs: usize, margin: f64) -> Option<Evidence> {
        match self {
            Sample::Paired(pairs) => pairs.student_of(runs, margin),
            Sample::Unpaired(values) => Some(values.student_of(runs, margin)),
        }
    }
}

impl Family {
    fn level(self) -> f64 {
        match self {
            Family::Primary => 0.05,
            Family::Exploratory => 0.1,
        }
    }

    /// The level at which one of so many comparisons is certain whatever the others are. Those that are exploratory are
    /// not expected to be found together.
    fn level_of_one(self, comparisons: usize) -> f64 {
        match self {
            Family::Primary => self.level() / comparisons.max(1) as f64,
            Family::Exploratory => self.level(),
        }
    }

    fn adjust(self, p_values: &[f64]) -> Vec<f64> {
        match self {
            Family::Primary => holm(p_values),
            Family::Exploratory => benjamini_hochberg(p_values),
        }
    }
}

/// Judges one comparison.
pub fn judge(pairs: &Paired, metric: Metric) -> Judgement {
    let sample = Sample::Paired(pairs.clone());
    judge_family(&[(sample, metric)], Family::Primary).pop().expect("one comparison has one judgement")
}

/// Judges the most certain of several comparisons, whatever the others are.
pub(super) fn judge_among(pairs: &Paired, metric: Metric, comparisons: usize) -> Judgement {
    let sample = Sample::Paired(pairs.clone());
    // One block has no evidence, and counts in the adjustment.
    let other = Sample::Paired(Paired::from_log_ratios(vec![0.0]));
    let others = std::iter::repeat_n((other, metric), comparisons.saturating_sub(1));
    let all: Vec<_> = std::iter::once((sample, metric)).chain(others).collect();
    judge_family(&all, Family::Primary).swap_remove(0)
}

/// Judges several comparisons together: the p-values are adjusted, the intervals are those of each comparison alone.
///
/// Pairs are judged by two methods, and where these disagree nothing is concluded; unpaired runs by Student's t alone.
pub fn judge_family(comparisons: &[(Sample, Metric)], family: Family) -> Vec<Judgement> {
    judge_family_with(comparisons, family, &[])
}

/// The same next to tests of another kind, whose p-values are adjusted together with those of the comparisons.
pub fn judge_family_with(comparisons: &[(Sample, Metric)], family: Family, others: &[f64]) -> Vec<Judgement> {
    let size = comparisons.len() + others.len();
    let student: Vec<_> =
        comparisons.iter().map(|(sample, metric)| sample.student(metric.log_margin())).collect();
    let ranks: Vec<_> =
        comparisons.iter().map(|(sample, metric)| sample.signed_rank(metric.log_margin())).collect();
    let metrics: Vec<Metric> = comparisons.iter().map(|(_, metric)| *metric).collect();
    let student_words = words(&student, &metrics, family, others);
    let rank_words = words(&ranks, &metrics, family, others);
    let level = family.level_of_one(size);
    let judged = comparisons.iter().enumerate().map(|(index, (sample, metric))| {
        let by_student = student_words[index];
        let fewest_blocks = match (sample, family) {
            (Sample::Paired(_), Family::Primary) => fewest_blocks(size),
            _ => FEWEST_BLOCKS,
        };
        let disagreement = match sample {
            Sample::Paired(_) if by_student != rank_words[index] => Some((by_student, rank_words[index])),
            _ => None,
        };
        let (word, disagreement) = match disagreement {
            _ if sample.runs() < fewest_blocks => (Word::LookOnly, None),
            Some(_) => (Word::Inconclusive, disagreement),
            None => (by_student, None),
        };
        let is_open = matches!(word, Word::Inconclusive | Word::LookOnly);
        Judgement {
            word,
            student: student[index],
            signed_rank: ranks[index],
            disagreement,
            blocks_needed: is_open
                .then(|| blocks_needed(sample, metric.log_margin(), level, fewest_blocks))
                .flatten(),
            fewest_blocks,
        }
    });
    judged.collect()
}

/// The word that each evidence supports after the adjustment for the others.
fn words(evidence: &[Option<Evidence>], metrics: &[Metric], family: Family, others: &[f64]) -> Vec<Word> {
    let adjusted = |p: fn(&Evidence) -> f64| {
        let of_comparisons = evidence.iter().map(|evidence| evidence.as_ref().map_or(1.0, p));
        family.adjust(&of_comparisons.chain(others.iter().copied()).collect::<Vec<_>>())
    };
    let differs = adjusted(|evidence| evidence.p_differs);
    let beyond = adjusted(|evidence| evidence.p_beyond_margin);
    let level = family.level();
    let word = |(index, evidence): (usize, &Option<Evidence>)| {
        let Some(evidence) = evidence else { return Word::Inconclusive };
        word(evidence.estimate, differs[index] <= level, beyond[index] <= level, metrics[index])
    };
    evidence.iter().enumerate().map(word).collect()
}

fn word(estimate: f64, differs: bool, is_within_margin: bool, metric: Metric) -> Word {
    let margin = metric.log_margin();
    match (differs, is_within_margin) {
        (true, _) if estimate.abs() > margin => {
            let is_better = (estimate > 0.0) == (metric.direction == Direction::HigherIsBetter);
            if is_better { Word::Better } else { Word::Worse }
        }
        (true, true) => Word::DiffersTooLittle,
        (false, true) => Word::Same,
        (true, false) => Word::Leaning,
        (false, false) => Word::Inconclusive,
    }
}

/// The smallest number of blocks above today's at which Student's t would be conclusive at this level with today's mean
/// and deviation.
fn blocks_needed(sample: &Sample, margin: f64, level: f64, fewest: usize) -> Option<usize> {
    let is_conclusive = |runs: usize| {
        let conclusive =
            |evidence: Evidence| evidence.p_differs <= level || evidence.p_beyond_margin <= level;
        sample.student_of(runs, margin).is_some_and(conclusive)
    };
    // More blocks with the same mean and deviation never make a conclusion less certain: halves find the first.
    let (mut open, mut conclusive) = (fewest.max(sample.runs() + 1), MOST_BLOCKS);
    if !is_conclusive(conclusive) {
        return None;
    }
    while open < conclusive {
        let middle = (open + conclusive) / 2;
        if is_conclusive(middle) { conclusive = middle } else { open = middle + 1 }
    }
    Some(conclusive)
}
