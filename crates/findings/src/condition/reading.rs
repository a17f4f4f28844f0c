//! The figure of a metric in a run: the value, a lower bound for it, or why there is none.

use record::document::{QuantileValue, Quantity, Reading};
use record::{Durations, Interval, Outcome};
use units::count;

use super::Figures;
use super::metric::{Metric, Of, Statistic};
use crate::distribution;
use crate::words;
use crate::words::quantile_name;

/// The figure of `metric`, in the unit of `limit` if the metric has two units.
pub(super) fn of(metric: Metric, limit: Quantity, figures: &Figures<'_>) -> Result<Reading, String> {
    let totals = &figures.results.totals;
    match metric {
        Metric::Time(of, Statistic::Mean) => time(of, Statistic::Mean, figures),
        Metric::Time(of, statistic) => time(of, statistic, figures).map(|reading| met(reading, limit)),
        Metric::Throughput => rate(totals.throughput_per_s, figures),
        Metric::JourneyRate => {
            rate(totals.journeys_per_s.ok_or("no request of this run follows another")?, figures)
        }
        Metric::SentRate => rate(per_second(totals.sent, figures), figures),
        Metric::ScheduledRate => rate(per_second(totals.scheduled, figures), figures),
        Metric::ErrorShare => share(totals.failed, totals.scheduled),
        Metric::Scheduled => Ok(known(Quantity::Count(totals.scheduled))),
        Metric::Sent => Ok(known(Quantity::Count(totals.sent))),
        Metric::ConnectionsOpened => Ok(known(Quantity::Count(totals.connections_opened))),
        Metric::Failed => counted(totals.failed, limit, figures),
        Metric::Outcome(outcome) => counted(ended_in(figures.total, outcome), limit, figures),
        Metric::Code(code) => counted(answered_with(figures.total, code), limit, figures),
    }
}

/// A histogram gives the upper end of a bucket of three digits: a limit within that bucket is not exceeded.
pub(super) fn met(reading: Reading, limit: Quantity) -> Reading {
    let Quantity::Ns(limit_ns) = limit else { return reading };
    let buckets = Durations::new();
    let snap = |figure| match figure {
        Quantity::Ns(ns) if buckets.histogram().equivalent(ns, limit_ns) => limit,
        figure => figure,
    };
    match reading {
        Reading::Known(figure) => Reading::Known(snap(figure)),
        Reading::Above(bound) => Reading::Above(snap(bound)),
    }
}

fn known(quantity: Quantity) -> Reading {
    Reading::Known(quantity)
}

fn per_second(count: u64, figures: &Figures<'_>) -> f64 {
    count as f64 / figures.window.as_secs_f64()
}

fn rate(per_s: f64, figures: &Figures<'_>) -> Result<Reading, String> {
    if figures.window.0 == 0 {
        return Err("the run has no window to divide by".to_owned());
    }
    Ok(known(Quantity::PerS(per_s)))
}

fn counted(count: u64, limit: Quantity, figures: &Figures<'_>) -> Result<Reading, String> {
    match limit {
        Quantity::Share(_) => share(count, figures.results.totals.scheduled),
        _ => Ok(known(Quantity::Count(count))),
    }
}

fn share(part: u64, scheduled: u64) -> Result<Reading, String> {
    if scheduled == 0 {
        return Err("nothing was scheduled".to_owned());
    }
    Ok(known(Quantity::Share(part as f64 / scheduled as f64)))
}

fn ended_in(total: &Interval, outcome: Outcome) -> u64 {
    if outcome == Outcome::Ok {
        return total.counts.ok;
    }
    let failures = total.failures().iter();
    failures.filter(|(failure, _)| failure.outcome == outcome).map(|(_, count)| count).sum()
}

fn answered_with(total: &Interval, code: u16) -> u64 {
    let code = units::Code::status(code);
    total.codes().iter().filter(|(known, _)| *known == code).map(|(_, count)| count).sum()
}

fn time(of: Of, statistic: Statistic, figures: &Figures<'_>) -> Result<Reading, String> {
    let total = figures.total;
    match (of, statistic) {
        (Of::Response, Statistic::Quantile(q)) => quantile(q, distribution::response_quantile(total, q)),
        (Of::Response, Statistic::Mean) => response_mean(total),
        (Of::Response, Statistic::Max) => response_max(total),
        (Of::Service, _) => sampled(total.service().ok_or("no request ended ok")?, statistic),
        (Of::Phase(phase), _) => {
            let durations = total.phase(phase).ok_or_else(|| {
                let results = words::phase(figures.results, phase);
                let absent = results.and_then(|result| result.absent.as_deref());
                format!("{} is absent: {}", phase.name(), absent.unwrap_or("no ok request passed it"))
            })?;
            sampled(durations, statistic)
        }
    }
}

pub(super) fn sampled(durations: &Durations, statistic: Statistic) -> Result<Reading, String> {
    let value = match statistic {
        Statistic::Quantile(q) => return quantile(q, distribution::plain_quantile(durations, q)),
        Statistic::Mean => durations.mean(),
        Statistic::Max => durations.max(),
    };
    value.map(|value| known(Quantity::Ns(value.0))).ok_or_else(|| "no request ended ok".to_owned())
}

pub(super) fn quantile(q: f64, value: QuantileValue) -> Result<Reading, String> {
    match value {
        QuantileValue::Known { ns, .. } => Ok(known(Quantity::Ns(ns))),
        QuantileValue::Above { ns } => Ok(Reading::Above(Quantity::Ns(ns))),
        QuantileValue::TooFew { needed } => {
            Err(format!("too few samples: {} needs {}", quantile_name(q), count(needed)))
        }
    }
}

/// If a request got no response, the maximum is unknown.
fn response_max(total: &Interval) -> Result<Reading, String> {
    let answered = total.response().and_then(Durations::max);
    let mut given_up = unanswered(total).map(|(_, ages)| ages.and_then(Durations::max)).peekable();
    if given_up.peek().is_none() {
        return answered
            .map(|max| known(Quantity::Ns(max.0)))
            .ok_or_else(|| "no request ended ok".to_owned());
    }
    let longest = given_up.flatten().chain(answered).max();
    Ok(Reading::Above(Quantity::Ns(longest.map_or(0, |longest| longest.0))))
}

/// The mean of requests with a response alone would flatter a server that drops slow ones. With the ages of the others
/// it is a lower bound.
fn response_mean(total: &Interval) -> Result<Reading, String> {
    let of_ok = |durations: &Durations| (durations.count(), durations.sum_ns());
    let (mut requests, mut sum_ns) = total.response().map_or((0, 0), of_ok);
    let answered = requests;
    for (count, ages) in unanswered(total) {
        requests += count;
        sum_ns += ages.map_or(0, Durations::sum_ns);
    }
    let mean = sum_ns.checked_div(u128::from(requests)).ok_or("no request ended ok")?;
    let mean = Quantity::Ns(u64::try_from(mean).unwrap_or(u64::MAX));
    Ok(if requests == answered { known(mean) } else { Reading::Above(mean) })
}

/// The number of requests for each outcome without a response, and their ages if known.
fn unanswered(total: &Interval) -> impl Iterator<Item = (u64, Option<&Durations>)> {
    let outcomes = Outcome::ALL.into_iter().filter(|outcome| outcome.is_unanswered());
    outcomes.map(|outcome| (ended_in(total, outcome), total.failed(outcome))).filter(|(count, _)| *count > 0)
}
