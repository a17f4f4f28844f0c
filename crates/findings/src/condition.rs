//! A condition on the figures of a run, such as `response.p99 > 50ms`: parsed from text, evaluated on results.
//!
//! One grammar for thresholds (`--fail-if`: the run fails if the condition is true) and for objectives (which must be
//! true). METRIC OP VALUE: names are in `metric`, text to values in `parse`, figures in `reading`.
//! A condition that the sample cannot decide is neither true nor false, and states why.

mod metric;
mod parse;
mod part;
mod reading;

use std::fmt;

use record::Interval;
use record::document::{Quantity, Reading, Results, Subject, Threshold, ThresholdResult};
use units::{Nanos, count, rate};

pub use metric::{Metric, Of, Statistic};
pub use parse::ConditionError;
pub(crate) use parse::nearest;
pub use part::Part;

/// `METRIC OP VALUE`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The request or journey it applies to; `None` for the whole run.
    pub part: Option<Part>,
    pub metric: Metric,
    pub operator: Operator,
    /// The value, in the unit of the metric.
    pub limit: Quantity,
    /// The condition as given, with single spaces.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What a condition is evaluated on: a run, or a part of one.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    pub total: &'a Interval,
    /// The results of `total`.
    pub results: &'a Results,
    /// The names of its requests and journeys.
    pub subject: &'a Subject,
    /// The time by which counts are divided to get rates.
    pub window: Nanos,
}

/// The result of a condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The figure; `None` if there is none.
    pub reading: Option<Reading>,
    pub decision: Decision,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Holds,
    DoesNotHold,
    /// The sample cannot decide it, for this reason.
    Undecided(String),
}

impl Condition {
    /// Evaluates the condition on the figure itself, not on its confidence interval.
    pub fn judge(&self, figures: &Figures<'_>) -> Judgement {
        let reading = match &self.part {
            Some(part) => part.reading(self.metric, self.limit, figures),
            None => reading::of(self.metric, self.limit, figures),
        };
        let reading = match reading {
            Ok(reading) => reading,
            Err(reason) => return Judgement { reading: None, decision: Decision::Undecided(reason) },
        };
        self.judge_reading(reading)
    }

    pub(crate) fn judge_reading(&self, reading: Reading) -> Judgement {
        let decision = match (reading, self.operator) {
            (Reading::Known(figure), operator) => Decision::from(operator.holds(figure, self.limit)),
            // The true figure is at or above the bound, with no upper end.
            (Reading::Above(bound), Operator::Above) if order(bound, self.limit).is_ge() => Decision::Holds,
            (Reading::Above(bound), Operator::AtLeast) if order(bound, self.limit).is_ge() => Decision::Holds,
            (Reading::Above(bound), Operator::Below) if order(bound, self.limit).is_ge() => {
                Decision::DoesNotHold
            }
            (Reading::Above(bound), Operator::AtMost) if order(bound, self.limit).is_gt() => {
                Decision::DoesNotHold
            }
            (Reading::Above(bound), _) => Decision::Undecided(format!(
                "it is among requests that got no response, so it is only known to be over {}",
                quantity_text(bound)
            )),
        };
        Judgement { reading: Some(reading), decision }
    }

    /// The condition as a threshold: missed if it is true, and also if it is undecided.
    pub fn threshold(&self, figures: &Figures<'_>) -> Threshold {
        self.to_threshold(self.judge(figures))
    }

    pub(crate) fn to_threshold(&self, judgement: Judgement) -> Threshold {
        let Judgement { reading, decision } = judgement;
        let (result, reason) = match decision {
            Decision::Holds => (ThresholdResult::Missed, None),
            Decision::DoesNotHold => (ThresholdResult::Met, None),
            Decision::Undecided(reason) => (ThresholdResult::Undecided, Some(reason)),
        };
        Threshold { fail_if: self.text.clone(), measured: reading, limit: self.limit, result, reason }
    }
}

impl Condition {
    /// The condition as given.
    pub(crate) fn metric_name(&self) -> &str {
        // The name of a request may have spaces.
        self.text.split(&['<', '>'][..]).next().unwrap_or(&self.text).trim_end()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Operator {
    /// The operator as written in a condition.
    pub fn sign(self) -> &'static str {
        match self {
            Operator::Above => ">",
            Operator::AtLeast => ">=",
            Operator::Below => "<",
            Operator::AtMost => "<=",
        }
    }

    fn holds(self, figure: Quantity, limit: Quantity) -> bool {
        let order = order(figure, limit);
        match self {
            Operator::Above => order.is_gt(),
            Operator::AtLeast => order.is_ge(),
            Operator::Below => order.is_lt(),
            Operator::AtMost => order.is_le(),
        }
    }
}

impl From<bool> for Decision {
    fn from(holds: bool) -> Decision {
        if holds { Decision::Holds } else { Decision::DoesNotHold }
    }
}

/// Compares two quantities of one unit; the parser guarantees that the units agree.
fn order(figure: Quantity, limit: Quantity) -> std::cmp::Ordering {
    match (figure, limit) {
        (Quantity::Ns(a), Quantity::Ns(b)) | (Quantity::Count(a), Quantity::Count(b)) => a.cmp(&b),
        (Quantity::PerS(a), Quantity::PerS(b)) | (Quantity::Share(a), Quantity::Share(b)) => a.total_cmp(&b),
        (figure, limit) => unreachable!("{figure:?} is never compared with {limit:?}"),
    }
}

/// A figure with its unit. A share keeps enough digits to differ visibly from a limit that it barely exceeds.
pub fn quantity_text(quantity: Quantity) -> String {
    match quantity {
        Quantity::Ns(ns) => Nanos(ns).to_string(),
        Quantity::PerS(per_s) => rate(per_s),
        // Enough digits to distinguish a figure from a limit that it barely exceeds.
        Quantity::Share(share) => format!("{} %", (share * 1e8).round() / 1e6),
        Quantity::Count(n) => count(n),
    }
}

/// A figure with its unit; a lower bound as `> 50.0 ms`.
pub fn reading_text(reading: Reading) -> String {
    match reading {
        Reading::Known(figure) => quantity_text(figure),
        Reading::Above(bound) => format!("> {}", quantity_text(bound)),
    }
}

#[cfg(test)]
mod tests;
