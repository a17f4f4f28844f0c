//! Conditions under which a comparison fails: `response.p99 worse`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use stats::comparison::{Word, fewest_blocks};

use crate::judged::ArmComparison;
use crate::view::word_text;
use crate::{ComparedMetric, Comparison};
use findings::view::{Cell, Outcome, Threshold, Value};

/// `METRIC WORD`: fails if the verdict on the metric is that word, for any arm.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonCondition {
    subject: Subject,
    word: Word,
    text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Subject {
    Metric(ComparedMetric),
    /// The share of failed requests: worse if its 95 % interval is above that of the base.
    Failures,
}

/// The name of the share of failed requests, as in a condition of `drive`.
const FAILURES: &str = "error_share";

/// The words that a condition may have.
const WORDS: [(&str, Word); 5] = [
    ("worse", Word::Worse),
    ("better", Word::Better),
    ("leaning", Word::Leaning),
    ("inconclusive", Word::Inconclusive),
    ("same", Word::Same),
];

impl FromStr for ComparisonCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<ComparisonCondition, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [metric, word] = words[..] else {
            return Err("write METRIC WORD, for example `response.p99 worse`".to_owned());
        };
        let subject = match metric {
            FAILURES => Subject::Failures,
            metric => Subject::Metric(ComparedMetric::from_name(metric)?),
        };
        let known = WORDS.iter().find(|(name, _)| *name == word);
        let (_, word) = known.ok_or_else(|| {
            let names: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
            format!("there is no verdict `{word}`; there are {}", names.join(", "))
        })?;
        if subject == Subject::Failures && !matches!(word, Word::Worse | Word::Better) {
            return Err(format!("`{FAILURES}` has the verdicts worse and better only"));
        }
        let text = format!("{} {}", subject.name(), words[1]);
        Ok(ComparisonCondition { subject, word: *word, text })
    }
}

impl fmt::Display for ComparisonCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Subject {
    fn name(&self) -> &'static str {
        match self {
            Subject::Metric(metric) => metric.name,
            Subject::Failures => FAILURES,
        }
    }
}

/// The fewest blocks in which all `conditions` can be decided for so many arms besides the base. `primary` is the metric
/// that is judged with them in any case, if it is known.
pub fn blocks_for(conditions: &[ComparisonCondition], primary: Option<&str>, arms: usize) -> usize {
    let named = conditions.iter().filter_map(ComparisonCondition::metric).map(str::to_owned);
    let mut names: Vec<String> = named.chain(primary.map(str::to_owned)).collect();
    names.sort_unstable();
    names.dedup();
    let failures = usize::from(conditions.iter().any(ComparisonCondition::is_of_failures));
    let family = arms * (names.len().max(1) + failures);
    let of_metric = |condition: &ComparisonCondition| match &condition.subject {
        Subject::Metric(metric) => metric.fewest_records,
        Subject::Failures => 0,
    };
    let of_metrics = conditions.iter().map(of_metric).max().unwrap_or(0);
    fewest_blocks(family).max(of_metrics)
}

/// The results of the conditions, one for each arm; one without a verdict is undecided.
pub fn judge_conditions(comparison: &Comparison, conditions: &[ComparisonCondition]) -> Vec<Threshold> {
    let each = conditions.iter().flat_map(|condition| {
        let arms = comparison.compared.iter().enumerate();
        arms.map(move |(index, arm)| {
            let mut threshold = match (&condition.subject, comparison.doubt(index)) {
                (_, Some(because)) => condition.undecided(because),
                (Subject::Metric(metric), None) => condition.of_metric(comparison, arm, metric),
                (Subject::Failures, None) => condition.of_failures(comparison, index),
            };
            if comparison.compared.len() > 1 {
                threshold.fail_if = format!("{}:{}", arm.name.replace(' ', "_"), threshold.fail_if);
            }
            threshold
        })
    });
    let mut thresholds: Vec<Threshold> = each.collect();
    thresholds.sort_by_key(|threshold| match threshold.result {
        Outcome::Missed => 0,
        Outcome::Undecided => 1,
        Outcome::Met => 2,
    });
    thresholds
}

impl ComparisonCondition {
    /// The metric that it is about; `None` for the share of failures.
    pub fn metric(&self) -> Option<&'static str> {
        match &self.subject {
            Subject::Metric(metric) => Some(metric.name),
            Subject::Failures => None,
        }
    }

    /// Whether it is about the share of failed requests.
    pub fn is_of_failures(&self) -> bool {
        self.subject == Subject::Failures
    }

    fn of_metric(&self, comparison: &Comparison, arm: &ArmComparison, metric: &ComparedMetric) -> Threshold {
        let judged = arm.all().find(|judged| judged.metric.name == metric.name);
        let Some(judged) = judged else {
            let first = comparison.arms[0].usable().next().map(|run| run.value(metric));
            let because = first.and_then(Result::err);
            return self.undecided(because.unwrap_or_else(|| "no record has this figure".to_owned()));
        };
        let Some(judgement) = &judged.judgement else {
            return self.undecided(judged.absent.clone().unwrap_or_default());
        };
        if judgement.word == Word::LookOnly {
            return self.undecided(format!("a verdict needs {} records per arm", judgement.fewest_blocks));
        }
        let change = judgement.student.map(|evidence| Value::RatioChange(evidence.estimate.exp_m1()));
        let result = if judgement.word == self.word { Outcome::Missed } else { Outcome::Met };
        Threshold {
            limit: Value::RatioChange(judged.metric.metric.margin),
            because: Some(word_text(judged).to_string()),
            ..self.threshold(result, Cell::maybe(change))
        }
    }

    fn of_failures(&self, comparison: &Comparison, index: usize) -> Threshold {
        let fewest = comparison.arms[0].usable().count().min(comparison.arms[index + 1].usable().count());
        let (Some(base), Some(arm)) = (comparison.failures(0), comparison.failures(index + 1)) else {
            return self.undecided("no record has this figure".to_owned());
        };
        let needed = comparison.compared[index].fewest_for_failures;
        if fewest < needed {
            return self.undecided(format!("a verdict needs {needed} records per arm"));
        }
        let wanted = if self.word == Word::Worse { Ordering::Greater } else { Ordering::Less };
        let is_met = comparison.failure_change(index) != Some(wanted);
        let result = if is_met { Outcome::Met } else { Outcome::Missed };
        Threshold {
            limit: Value::Share(base.high),
            because: Some(format!("the base has {}", Value::Share(base.share))),
            ..self.threshold(result, Value::Share(arm.share).into())
        }
    }

    fn undecided(&self, because: String) -> Threshold {
        Threshold { because: Some(because), ..self.threshold(Outcome::Undecided, Cell::absent()) }
    }

    fn threshold(&self, result: Outcome, measured: Cell) -> Threshold {
        let limit = match &self.subject {
            Subject::Metric(metric) => Value::RatioChange(metric.metric.margin),
            Subject::Failures => Value::Share(0.0),
        };
        Threshold { fail_if: self.text.clone(), result, measured, limit, because: None }
    }
}
