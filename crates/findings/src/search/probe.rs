//! One probe of a search: what the measured part of its record shows about its rate.

use std::path::Path;

use record::document::{Document, Finding as Blemish, QuantileValue, Results, Subject, VerdictWord};
use record::search::{ProbeFigure, ProbeOutcome, ProbeResult};
use record::{Check, Concern, Interval, RecordError, Second};
use stats::search::{Finding, Fitness, Halves, finding};
use units::Nanos;

use super::objective::Objective;
use crate::condition::{Decision, Figures, reading_text};
use crate::summary::{RunFacts, summarize};

/// Not measured, at the beginning of every probe: connections open, caches and compilers of the server warm up.
pub const WARMUP: Nanos = Nanos::from_secs(1);

/// What was measured after the warm-up.
pub struct ProbeMeasurement {
    whole: Part,
    /// The second half, including responses after the end.
    second: Part,
    mean_s: [f64; 2],
    length: Nanos,
    /// Units of the schedule per request: 1, or less where a journey has several requests.
    units_per_request: f64,
}

struct Part {
    total: Interval,
    seconds: Vec<Second>,
    results: Results,
}

impl ProbeMeasurement {
    /// Reads the measurement from the record of the run in `folder`.
    ///
    /// # Errors
    ///
    /// When the record cannot be read.
    pub fn read(folder: &Path, run: &Document, length: Nanos) -> Result<ProbeMeasurement, RecordError> {
        let middle = WARMUP + Nanos(length.0 / 2);
        let part = |from, to| -> Result<Part, RecordError> {
            let (seconds, total) = record::read_part(folder, from, to)?;
            let facts = RunFacts {
                subject: &run.subject,
                stamps: &run.stamps,
                window: WARMUP + length,
                seconds: &seconds,
            };
            let results = summarize(&total, &facts);
            Ok(Part { total, seconds, results })
        };
        let first = part(WARMUP, middle)?;
        let second = part(middle, Nanos::MAX)?;
        let mean_s = [mean_s(&first), mean_s(&second)];
        let whole = part(WARMUP, Nanos::MAX)?;
        let units_per_request = units_per_request(&whole);
        Ok(ProbeMeasurement { whole, second, mean_s, length, units_per_request })
    }

    /// `ok` per second of the measured time, in the unit of the rate: requests, or journeys.
    pub fn ok_per_s(&self) -> f64 {
        self.per_s(|second| second.ok)
    }

    fn per_s(&self, count: impl Fn(&Second) -> u64) -> f64 {
        let end = (WARMUP + self.length).0;
        let within = self.whole.seconds.iter().filter(|second| second.start_ns + second.length_ns <= end);
        within.map(count).sum::<u64>() as f64 / self.length.as_secs_f64() * self.units_per_request
    }
}

/// Journeys per `ok` request if there are journeys, because the rate is then that of journeys.
fn units_per_request(part: &Part) -> f64 {
    let completed: u64 = part.total.journeys().iter().map(|journey| journey.ok).sum();
    if completed == 0 { 1.0 } else { completed as f64 / part.total.counts.ok.max(1) as f64 }
}

fn mean_s(part: &Part) -> f64 {
    part.results.response.mean_ns.map_or(0.0, |ns| ns as f64 / 1e9)
}

/// What a probe is judged with.
pub struct ProbeJudge<'a> {
    pub objective: &'a Objective,
    pub tolerance: f64,
    /// The names of its requests and journeys.
    pub subject: &'a Subject,
}

impl ProbeJudge<'_> {
    /// The result of the probe, with everything that goes into the record.
    pub fn judge(
        &self,
        run: &Document,
        measured: &ProbeMeasurement,
        rate: Option<f64>,
    ) -> (Finding, ProbeResult) {
        let verdict = run.verdict.as_ref();
        let against_client = against_client(verdict.map_or(&[], |verdict| &verdict.findings));
        let behind = backlog(run);
        let (held, figures, why_not) = self.holds(&measured.whole, measured.length);
        let halves = Halves {
            held: held && behind.is_none(),
            held_second: self.holds(&measured.second, Nanos(measured.length.0 / 2)).0 && behind.is_none(),
            mean_s: measured.mean_s,
            apart_s: measured.length.as_secs_f64() / 2.0,
            fitness: fitness(&against_client),
        };
        let found = finding(&halves, self.tolerance);
        let why = match found {
            Finding::Holds => String::new(),
            Finding::Fails => why_not.or(behind).unwrap_or_default(),
            Finding::Unsettled => unsettled(measured, held),
            Finding::Doubtful | Finding::Disturbed => cause(&against_client),
        };
        let results = &measured.whole.results;
        let quantile = |q| {
            let found = results.response.quantiles.iter().find(|quantile| quantile.q == q);
            found.map_or(QuantileValue::TooFew { needed: stats::needed_samples(q) }, |found| found.value)
        };
        let ended = measured.whole.total.ended();
        let result = ProbeResult {
            folder: String::new(),
            rate_per_s: rate,
            warmup_ns: WARMUP.0,
            measured_ns: measured.length.0,
            sent_per_s: measured.per_s(|second| second.sent),
            ok_per_s: measured.ok_per_s(),
            error_share: results.totals.failed as f64 / ended.max(1) as f64,
            p50: quantile(0.5),
            p99: quantile(0.99),
            figures,
            client_cpu_share: results.cpu.busiest_worker_share,
            verdict: run.verdict.as_ref().map(|verdict| verdict.word),
            against_client: against_client.iter().map(|blemish| blemish.check.clone()).collect(),
            says: says(found),
            why,
        };
        (found, result)
    }

    /// Whether every condition holds in `part`, its figures, and why the first one that does not hold fails.
    fn holds(&self, part: &Part, window: Nanos) -> (bool, Vec<ProbeFigure>, Option<String>) {
        let on = Figures { total: &part.total, results: &part.results, subject: self.subject, window };
        let mut figures = Vec::new();
        let mut why = None;
        for (condition, _) in &self.objective.conditions {
            let judgement = condition.judge(&on);
            let (held, reason) = match (&judgement.decision, judgement.reading) {
                (Decision::Holds, _) => (Some(true), None),
                (Decision::DoesNotHold, Some(reading)) => {
                    (Some(false), Some(format!("{condition} was {}", reading_text(reading))))
                }
                (Decision::DoesNotHold, None) => (Some(false), Some(format!("not {condition}"))),
                (Decision::Undecided(reason), _) => (None, Some(format!("{condition}: {reason}"))),
            };
            why = why.or(reason);
            figures.push(ProbeFigure { measured: judgement.reading, held });
        }
        (figures.iter().all(|figure| figure.held == Some(true)), figures, why)
    }
}

fn against_client(blemishes: &[Blemish]) -> Vec<&Blemish> {
    let grave = blemishes.iter().filter(|blemish| blemish.makes >= VerdictWord::Degraded);
    grave.filter(|blemish| blemish.check.is_against_client()).collect()
}

fn fitness(against_client: &[&Blemish]) -> Fitness {
    match against_client {
        [] => Fitness::Fit,
        all if all.iter().any(|blemish| is_of_the_host(blemish)) => Fitness::Disturbed,
        _ => Fitness::Unfit,
    }
}

fn is_of_the_host(blemish: &Blemish) -> bool {
    blemish.check.concern() == Concern::Host
}

/// The finding about the host first, because it explains the others.
fn cause(against_client: &[&Blemish]) -> String {
    let host = against_client.iter().find(|blemish| is_of_the_host(blemish));
    host.or(against_client.first()).map(|blemish| because(blemish)).unwrap_or_default()
}

/// Whether the server did not keep up, which fails a probe even if the objective is lax.
fn backlog(run: &Document) -> Option<String> {
    let verdict = run.verdict.as_ref()?;
    verdict.findings.iter().find(|blemish| blemish.check == Check::KeptUp).map(because)
}

fn because(blemish: &Blemish) -> String {
    format!("{}: {}", blemish.check, blemish.measured)
}

fn unsettled(measured: &ProbeMeasurement, held: bool) -> String {
    let [first, second] = measured.mean_s.map(|seconds| Nanos((seconds * 1e9) as u64));
    let what = if held { "response time was still growing" } else { "it was still warming up" };
    format!("{what}: mean {first} in the first half, {second} in the second; again for twice as long")
}

fn says(found: Finding) -> ProbeOutcome {
    match found {
        Finding::Holds => ProbeOutcome::Holds,
        Finding::Fails => ProbeOutcome::Fails,
        Finding::Unsettled => ProbeOutcome::Unsettled,
        Finding::Doubtful | Finding::Disturbed => ProbeOutcome::Client,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a rate is accepted although timestamps were moved, a wall clock was set, or figures contradict
    /// each other.
    #[test]
    fn only_findings_of_the_server_leave_the_client_fit() {
        let fitness_of = |checks: &[&str]| {
            let blemishes: Vec<Blemish> = checks.iter().map(|check| blemish(check)).collect();
            fitness(&against_client(&blemishes))
        };
        assert_eq!(fitness_of(&["kept_up", "drift", "unstamped"]), Fitness::Fit);
        for check in
            ["offered_load", "littles_law", "wall_clock", "stamps_moved", "schedule_lag", "unheard_of"]
        {
            assert_eq!(fitness_of(&["kept_up", check]), Fitness::Unfit, "{check}");
        }
        for check in ["host_stall", "hiccups", "cpu_quota", "run_queue", "steal"] {
            assert_eq!(fitness_of(&["schedule_lag", check]), Fitness::Disturbed, "{check}");
        }
        let both = [blemish("schedule_lag"), blemish("steal")];
        assert_eq!(cause(&against_client(&both)), "steal: much");
    }

    fn blemish(check: &str) -> Blemish {
        let (check, measured) = (Check::from_name(check), "much".to_owned());
        let (limit, advice) = (String::new(), String::new());
        Blemish { check, makes: VerdictWord::Degraded, measured, limit, advice }
    }
}
