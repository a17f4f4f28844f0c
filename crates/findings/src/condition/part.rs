//! Conditions on one request or one journey of a run: `request.login.p99`, `journey.checkout.error_share`.

use record::document::{JourneyFacts, QuantileValue, Quantity, Reading, Subject};
use record::{Durations, Failure, Journey, KindFigures};

use super::metric::{Metric, Of, Statistic};
use super::reading::{met, quantile, sampled};
use super::{ConditionError, Figures};
use crate::distribution;

/// The part of a run that a condition is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A request by its name, with or without that of its journey.
    Request(String),
    Journey(String),
}

/// The figures of a part, whether request or journey.
struct PartFigures<'a> {
    response: Option<&'a Durations>,
    service: Option<&'a Durations>,
    /// Only for a request: includes unanswered ones.
    kind: Option<&'a KindFigures>,
    ok: u64,
    failed: u64,
}

impl Part {
    /// Parses `request.NAME.` or `journey.NAME.` and the metric after it; `None` for a metric of the whole run.
    pub(super) fn parse(name: &str) -> Option<Result<(Part, Metric), ConditionError>> {
        let (what, rest) = name.split_once('.')?;
        let (prefix, part): (_, fn(String) -> Part) = match what {
            "request" => ("request", Part::Request),
            "journey" => ("journey", Part::Journey),
            _ => return None,
        };
        // A name may contain dots: it ends at the first dot that is followed by a metric.
        let dots = rest.match_indices('.').map(|(at, _)| at).filter(|&at| at > 0);
        let mut found = dots.filter_map(|at| Some((&rest[..at], metric(&rest[at + 1..])?)));
        Some(match found.next() {
            Some((name, metric)) => Ok((part(name.to_owned()), metric)),
            None => Err(ConditionError::Part { prefix, name: rest.to_owned() }),
        })
    }

    /// Refuses a name that is not in the run, before the run begins.
    ///
    /// # Errors
    ///
    /// One line with the names that exist.
    pub fn check(&self, requests: &[String], journeys: &[&str]) -> Result<(), String> {
        self.place(requests, journeys).map(|_| ())
    }

    fn place(&self, requests: &[String], journeys: &[&str]) -> Result<usize, String> {
        let (what, name, names) = match self {
            Part::Request(name) => ("request", name, requests.iter().map(String::as_str).collect()),
            Part::Journey(name) => ("journey", name, journeys.to_vec()),
        };
        if names.is_empty() {
            return Err(format!("this run has no {what} with figures; leave out `{what}.{name}.`"));
        }
        let is_whole = |own: &&str| own == name;
        let is_step = |own: &&str| own.rsplit_once(": ").is_some_and(|(_, step)| step == name);
        let of_whole = names.iter().position(is_whole);
        let mut of_step = names.iter().enumerate().filter(|(_, own)| is_step(own)).map(|(at, _)| at);
        match (of_whole, of_step.next(), of_step.next()) {
            (Some(at), ..) | (None, Some(at), None) => Ok(at),
            (None, Some(_), Some(_)) => Err(format!(
                "several journeys have a {what} `{name}`; write its journey, too: `JOURNEY: {name}`"
            )),
            (None, None, _) => {
                let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
                let more = if names.len() > SHOWN { ", ..." } else { "" };
                Err(format!("there is no {what} `{name}`; there are {}{more}", shown.join(", ")))
            }
        }
    }

    /// The figure of `metric` for this part.
    pub(super) fn reading(
        &self,
        metric: Metric,
        limit: Quantity,
        figures: &Figures<'_>,
    ) -> Result<Reading, String> {
        let of = self.figures(figures)?;
        let counted = |count: u64| match limit {
            Quantity::Share(_) => share(count, of.ok + of.failed),
            _ => Ok(Reading::Known(Quantity::Count(count))),
        };
        match metric {
            Metric::Time(Of::Response, Statistic::Quantile(q)) => {
                let value = match (of.kind, of.response) {
                    (Some(kind), _) => distribution::response_quantile_of(kind, q),
                    (None, Some(response)) => distribution::plain_quantile(response, q),
                    (None, None) => QuantileValue::TooFew { needed: stats::needed_samples(q) },
                };
                quantile(q, value).map(|reading| met(reading, limit))
            }
            Metric::Time(of_what, statistic) => {
                let durations = if of_what == Of::Service { of.service } else { of.response };
                let reading = sampled(durations.ok_or("none ended ok")?, statistic)?;
                let reading = if statistic == Statistic::Mean { reading } else { met(reading, limit) };
                let is_bound = of_what == Of::Response && of.has_unanswered();
                Ok(if is_bound { above(reading) } else { reading })
            }
            Metric::Throughput if figures.window.0 > 0 => {
                Ok(Reading::Known(Quantity::PerS(of.ok as f64 / figures.window.as_secs_f64())))
            }
            Metric::Throughput => Err("the run has no window to divide by".to_owned()),
            Metric::ErrorShare => share(of.failed, of.ok + of.failed),
            Metric::Failed => counted(of.failed),
            _ => counted(of.ok),
        }
    }

    fn figures<'a>(&self, figures: &Figures<'a>) -> Result<PartFigures<'a>, String> {
        let Subject { targets, journeys, .. } = figures.subject;
        let names: Vec<&str> = journeys.iter().map(|journey: &JourneyFacts| journey.name.as_str()).collect();
        let place = self.place(targets, &names)?;
        let none = || "nothing of it ended".to_owned();
        Ok(match self {
            Part::Request(_) => PartFigures::of_request(figures.total.kinds().get(place).ok_or_else(none)?),
            Part::Journey(_) => {
                PartFigures::of_journey(figures.total.journeys().get(place).ok_or_else(none)?)
            }
        })
    }
}

/// Maximum number of names in an error.
const SHOWN: usize = 10;

impl<'a> PartFigures<'a> {
    fn of_request(kind: &'a KindFigures) -> PartFigures<'a> {
        PartFigures {
            response: kind.response(),
            service: kind.service(),
            kind: Some(kind),
            ok: kind.ok,
            failed: kind.failures().iter().map(|(_, count)| count).sum(),
        }
    }

    fn of_journey(journey: &'a Journey) -> PartFigures<'a> {
        PartFigures {
            response: journey.response(),
            service: None,
            kind: None,
            ok: journey.ok,
            failed: journey.failed,
        }
    }

    /// Whether a request without a response may have been slower than all responses.
    fn has_unanswered(&self) -> bool {
        let is_unanswered = |(failure, count): &(Failure, u64)| failure.outcome.is_unanswered() && *count > 0;
        self.kind.is_some_and(|kind| kind.failures().iter().any(is_unanswered))
    }
}

fn above(reading: Reading) -> Reading {
    match reading {
        Reading::Known(figure) | Reading::Above(figure) => Reading::Above(figure),
    }
}

fn share(part: u64, whole: u64) -> Result<Reading, String> {
    if whole == 0 {
        return Err("none ended".to_owned());
    }
    Ok(Reading::Known(Quantity::Share(part as f64 / whole as f64)))
}

/// The metrics that may follow the name of a part.
fn metric(text: &str) -> Option<Metric> {
    let of_time = |of, text| super::parse::statistic(text).ok().map(|statistic| Metric::Time(of, statistic));
    match text {
        "failed" => Some(Metric::Failed),
        "error_share" => Some(Metric::ErrorShare),
        "ok" => Some(Metric::Outcome(record::Outcome::Ok)),
        "throughput" | "ok_rate" => Some(Metric::Throughput),
        _ => match text.split_once('.') {
            Some(("response", rest)) => of_time(Of::Response, rest),
            Some(("service", rest)) => of_time(Of::Service, rest),
            _ => of_time(Of::Response, text),
        },
    }
}
