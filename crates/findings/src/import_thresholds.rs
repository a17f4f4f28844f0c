//! Conditions evaluated on what another tool reported about its run.

use record::document::{Quantity, Reading, Threshold};
use record::import::{ImportedResults, ImportedTime};

use crate::condition::{Condition, Decision, Judgement, Metric, Of, Statistic};

/// Evaluates conditions on an import; a figure that the tool did not report makes a condition undecided.
pub fn import_thresholds(conditions: &[Condition], results: &ImportedResults) -> Vec<Threshold> {
    let judged = conditions.iter().map(|condition| {
        let judgement = match reading(condition, results) {
            Ok(figure) => condition.judge_reading(Reading::Known(figure)),
            Err(reason) => Judgement { reading: None, decision: Decision::Undecided(reason) },
        };
        condition.to_threshold(judgement)
    });
    judged.collect()
}

fn reading(condition: &Condition, results: &ImportedResults) -> Result<Quantity, String> {
    let absent = || format!("the import states no {}", condition.metric_name());
    let counted = |part: Option<u64>| match condition.limit {
        Quantity::Share(_) => share(part, results.requests).ok_or_else(absent),
        _ => part.map(Quantity::Count).ok_or_else(absent),
    };
    match condition.metric {
        _ if condition.part.is_some() => Err(absent()),
        Metric::Time(of, statistic) => time(of, statistic, results).map(Quantity::Ns).ok_or_else(absent),
        Metric::Throughput => results.throughput_per_s.map(Quantity::PerS).ok_or_else(absent),
        Metric::ErrorShare => share(results.failed, results.requests).ok_or_else(absent),
        Metric::Failed => counted(results.failed),
        Metric::Outcome(record::Outcome::Ok) => counted(results.ok),
        Metric::Code(code) if !results.codes.is_empty() => {
            let found = results.codes.iter().find(|row| row.code == code);
            counted(Some(found.map_or(0, |row| row.count)))
        }
        _ => Err(absent()),
    }
}

fn share(part: Option<u64>, whole: Option<u64>) -> Option<Quantity> {
    let (part, whole) = part.zip(whole.filter(|&whole| whole > 0))?;
    Some(Quantity::Share(part as f64 / whole as f64))
}

fn time(of: Of, statistic: Statistic, results: &ImportedResults) -> Option<u64> {
    let name = match of {
        Of::Response => "response".to_owned(),
        Of::Service => "service".to_owned(),
        Of::Phase(phase) => format!("phase-{}", phase.name()),
    };
    let time: &ImportedTime = results.times.iter().find(|time| time.name == name)?;
    match statistic {
        Statistic::Quantile(q) => time.quantiles.iter().find(|found| found.q == q).map(|found| found.ns),
        Statistic::Mean => time.mean_ns,
        Statistic::Max => time.max_ns,
    }
}
