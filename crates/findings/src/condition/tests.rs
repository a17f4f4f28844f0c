//! The grammar with its errors, and conditions evaluated on planted runs.

use record::document::{ArrivalStamps, JourneyFacts, QuantileValue, Stamps, Subject};
use record::{Failure, Outcome, Phase, Second, Series, TargetSeries};

use super::*;
use crate::{RunFacts, summarize};

fn condition(text: &str) -> Condition {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_condition_is_a_metric_an_operator_and_a_value() {
    use Quantity::{Count, Ns, PerS, Share};
    let response = |statistic| Metric::Time(Of::Response, statistic);
    for (text, metric, operator, limit) in [
        ("response.p99 > 50ms", response(Statistic::Quantile(0.99)), Operator::Above, Ns(50_000_000)),
        ("p99<20ms", response(Statistic::Quantile(0.99)), Operator::Below, Ns(20_000_000)),
        ("response.p99.9>=1s", response(Statistic::Quantile(0.999)), Operator::AtLeast, Ns(1_000_000_000)),
        ("p5 <= 1us", response(Statistic::Quantile(0.05)), Operator::AtMost, Ns(1_000)),
        ("max > 1s", response(Statistic::Max), Operator::Above, Ns(1_000_000_000)),
        (
            "pool_wait.mean > 1ms",
            Metric::Time(Of::Phase(Phase::PoolWait), Statistic::Mean),
            Operator::Above,
            Ns(1_000_000),
        ),
        ("throughput < 10k/s", Metric::Throughput, Operator::Below, PerS(10_000.0)),
        ("sent_rate > 0", Metric::SentRate, Operator::Above, PerS(0.0)),
        ("error_share > 0.1 %", Metric::ErrorShare, Operator::Above, Share(0.001)),
        ("outcome.reset > 0", Metric::Outcome(Outcome::Reset), Operator::Above, Count(0)),
        ("outcome.reset > 2%", Metric::Outcome(Outcome::Reset), Operator::Above, Share(0.02)),
        ("code.503 > 10", Metric::Code(503), Operator::Above, Count(10)),
        ("scheduled < 1k", Metric::Scheduled, Operator::Below, Count(1_000)),
    ] {
        let found = condition(text);
        assert_eq!((found.metric, found.operator, found.limit), (metric, operator, limit), "{text}");
        assert_eq!(condition(&found.to_string()), found, "{text}");
    }
}

#[test]
fn an_error_names_the_wrong_part_and_what_was_meant() {
    for (text, error) in [
        ("respnse.p99 > 50ms", "`respnse` is no metric; did you mean `response`?"),
        ("pool-wait.p99 > 50ms", "`pool-wait` is no metric; did you mean `pool_wait`?"),
        ("error_rate > 1%", "`error_rate` is no metric; did you mean `error_share`?"),
        ("reset > 1%", "`reset` is no metric; did you mean `outcome.reset`?"),
        (
            "latency.p99 > 1ms",
            "`latency` is no metric; which one: response (from the intended start) or service (from the first byte sent)?",
        ),
        ("response.p999 > 50ms", "`p999` is no statistic; did you mean `p99.9`?"),
        ("p999 > 50ms", "`p999` is no statistic; did you mean `p99.9`?"),
        ("response.p100 > 50ms", "`p100` is no statistic; did you mean `max`?"),
        (
            "response.p0 > 1ms",
            "`p0` is no statistic; write p50, p99, p99.9 or any other percentile, mean or max",
        ),
        ("response.avg > 50ms", "`avg` is no statistic; did you mean `mean`?"),
        (
            "response > 50ms",
            "`response` alone is no figure; write for example response.p99, response.mean or response.max",
        ),
        ("outcome.rest > 0", "`rest` is no outcome; did you mean `reset`?"),
        ("code.teapot > 0", "`code.teapot` is no code; write for example code.503"),
        ("throughput.p99 > 1/s", "`throughput` has no parts; write it without `.p99`"),
        ("response.p99 == 50ms", "`==` is no operator here; use >, >=, < or <="),
        ("response.p99 => 50ms", "`=>` is no operator here; use >, >=, < or <="),
        (
            "response.p99",
            "`response.p99` has no operator; write for example response.p99 > 50ms (--fail-if), response.p99 < 50ms (--search)",
        ),
        ("> 50ms", "there is no metric before `>`; write for example response.p99 > 50ms"),
        ("response.p99 >", "there is no value after `>`; write for example 50ms"),
        ("response.p99 > 50", "`50` has no unit; write for example 2s, 500us or 1.5ms"),
        ("error_share > 1", "`1` is no share from 0% to 100%; write for example 1%"),
        ("error_share > 101%", "`101%` is no share from 0% to 100%; write for example 1%"),
        ("error_share > nan%", "`nan%` is no share from 0% to 100%; write for example 1%"),
        ("scheduled < 1%", "`1%` is no count; write for example 1000"),
        (
            "",
            "`` has no operator; write for example response.p99 > 50ms (--fail-if), response.p99 < 50ms (--search)",
        ),
    ] {
        assert_eq!(text.parse::<Condition>().unwrap_err().to_string(), error, "{text}");
    }
}

/// A second of responses, number `i` taking `i` ms, and of failures at an age of 2 s.
fn run(answers: u64, outcome: Outcome, failures: u64) -> Interval {
    let mut total = Interval::default();
    total.length = Nanos::from_secs(1);
    for i in 1..=answers {
        total.counts.ok += 1;
        total.slot(Series::Response).record(Nanos::from_millis(i));
        total.slot(Series::Service).record(Nanos::from_millis(i));
        total.record_code(units::Code::status(200));
    }
    for _ in 0..failures {
        total.record_failure(Failure::new(outcome, Phase::Wait), Nanos::from_secs(2));
    }
    total.counts.scheduled = answers + failures;
    total.counts.sent = answers;
    total
}

#[track_caller]
fn check(text: &str, total: &Interval, result: ThresholdResult, message: &str) {
    let stamps =
        Stamps { arrival: ArrivalStamps::Kernel, reason: None, pairing_error_ns: None, wall_clock_steps: 0 };
    let subject = Subject {
        url: "http://127.0.0.1/".to_owned(),
        protocol: "http/1.1".to_owned(),
        request_kinds: 2,
        journeys: vec![JourneyFacts { name: "buy".to_owned(), first: 0, last: 1 }],
        targets: vec!["buy: login".to_owned(), "buy: pay v1.2".to_owned()],
        address: None,
    };
    let seconds = [Second::of(total, None)];
    let facts = RunFacts { subject: &subject, stamps: &stamps, window: total.length, seconds: &seconds };
    let results = summarize(total, &facts);
    let figures = Figures { total, results: &results, subject: &subject, window: total.length };
    let threshold = condition(text).threshold(&figures);
    let reason = threshold.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    assert_eq!(
        (
            threshold.result,
            format!("{}{reason}", threshold.measured.map_or("no figure".to_owned(), reading_text)).as_str()
        ),
        (result, message),
        "{text}"
    );
}

#[test]
fn figures_are_compared_as_they_were_measured() {
    use ThresholdResult::{Met, Missed};
    let total = run(1_000, Outcome::AppError, 10);
    for (text, result, message) in [
        ("response.p90 > 900ms", Met, "900 ms"),
        ("response.p90 > 899ms", Missed, "900 ms"),
        ("response.p12.5 >= 126ms", Met, "125 ms"),
        ("response.max >= 2s", Met, "1.00 s"),
        ("response.mean > 500ms", Missed, "500 ms"),
        ("service.p50 < 501ms", Missed, "500 ms"),
        ("throughput < 1000/s", Met, "1000/s"),
        ("sent_rate < 1001/s", Missed, "1000/s"),
        ("error_share > 0.99%", Missed, "0.990099 %"),
        ("error_share > 1%", Met, "0.990099 %"),
        ("outcome.app_error > 9", Missed, "10"),
        ("outcome.reset > 0", Met, "0"),
        ("code.200 < 1000", Met, "1000"),
        ("scheduled < 1010", Met, "1010"),
        ("failed > 1%", Met, "0.990099 %"),
    ] {
        check(text, &total, result, message);
    }
}

/// If this fails, a slow login is hidden by a thousand fast pages.
#[test]
fn one_request_and_one_journey_have_conditions_of_their_own() {
    use ThresholdResult::{Met, Missed, Undecided};
    let mut total = run(1_000, Outcome::AppError, 10);
    for i in 1..=500 {
        for (kind, ms) in [(0, 1), (1, 2)] {
            let kind = total.kind(kind);
            kind.ok += 1;
            let slot = if ms == 1 { 0 } else { 1 };
            for of in [TargetSeries::Response, TargetSeries::Service] {
                total.slot(Series::Target(slot, of)).record(Nanos::from_millis(i * ms));
            }
        }
        total.journey(0).begun += 1;
        total.journey(0).record_ok(Nanos::from_millis(3 * i));
    }
    total.kind(1).add_failures(Failure::new(Outcome::AppError, Phase::Wait), 10);
    total.journey(0).record_failed(Nanos::from_secs(1));
    for (text, result, said) in [
        ("request.login.p90 > 400ms", Missed, "450 ms"),
        ("request.buy: login.max > 500ms", Met, "500 ms"),
        ("request.pay v1.2.p50 > 1s", Met, "500 ms"),
        ("request.pay v1.2.service.mean > 1s", Met, "501 ms"),
        ("request.pay v1.2.failed > 9", Missed, "10"),
        ("request.login.error_share > 0%", Met, "0 %"),
        ("request.login.throughput < 600/s", Missed, "500/s"),
        ("journey.buy.p50 > 700ms", Missed, "750 ms"),
        ("journey.buy.failed > 0", Missed, "1"),
        ("journey_rate > 0", Missed, "500/s"),
    ] {
        let text = text.to_owned();
        check(&text, &total, result, said);
    }
    let none = "no figure: there is no request `logn`; there are buy: login, buy: pay v1.2";
    check("request.logn.p99 > 1s", &total, Undecided, none);
    for text in ["request.login > 1s", "request.login.p999 > 1s", "journey > 1s"] {
        assert!(text.parse::<Condition>().is_err(), "{text}");
    }
    let error = "request.login > 1s".parse::<Condition>().unwrap_err().to_string();
    assert!(
        error.starts_with("`request.login` names no figure; write for example request.NAME.p99"),
        "{error}"
    );
}

/// If this fails, a pipeline continues after a run that was too short to decide anything.
#[test]
fn what_the_sample_cannot_carry_is_not_met() {
    use ThresholdResult::Undecided;
    let total = run(100, Outcome::Ok, 0);
    for (text, message) in [
        ("response.p99 > 50s", "no figure: too few samples: p99 needs 368"),
        ("tls.p50 > 1ms", "no figure: tls is absent: no TLS"),
    ] {
        check(text, &total, Undecided, message);
    }
    check("error_share > 1%", &Interval::default(), Undecided, "no figure: nothing was scheduled");
    check(
        "throughput < 1/s",
        &Interval::default(),
        Undecided,
        "no figure: the run has no window to divide by",
    );
    check("response.max > 1s", &Interval::default(), Undecided, "no figure: no request ended ok");
}

/// If this fails, a server passes that drops requests it cannot respond to in time.
#[test]
fn a_bound_beyond_the_limit_decides_and_one_below_it_does_not() {
    use ThresholdResult::{Met, Missed, Undecided};
    // 5 % were given up after 2 s.
    let total = run(950, Outcome::RequestTimeout, 50);
    let lost = "it is among requests that got no response, so it is only known to be over 2.00 s";
    check("response.p99 > 50ms", &total, Missed, "> 2.00 s");
    check("response.p99 >= 1999ms", &total, Missed, "> 2.00 s");
    check("response.p99 > 3s", &total, Undecided, &format!("> 2.00 s: {lost}"));
    check("response.p99 < 1s", &total, Met, "> 2.00 s");
    check("response.p99 < 3s", &total, Undecided, &format!("> 2.00 s: {lost}"));
    check("response.p50 > 501ms", &total, Met, "500 ms");
    check("response.max > 1s", &total, Missed, "> 2.00 s");
    // (450 · 951 + 50 · 2000) / 1000 ms, except for what a histogram rounds: the sum is exact.
    check("response.mean > 551ms", &total, Missed, "> 552 ms");
    // Service time is that of requests with a response only.
    check("service.max > 950ms", &total, Met, "950 ms");
}

#[test]
fn a_condition_agrees_with_the_printed_quantiles() {
    let total = run(500, Outcome::InFlight, 3);
    for q in crate::QUANTILES {
        let printed = crate::distribution::response_quantile(&total, q);
        let printed_by_summary = crate::distribution::response(&total);
        let of_summary = printed_by_summary.quantiles.iter().find(|quantile| quantile.q == q).unwrap().value;
        assert_eq!(printed, of_summary);
        let name = crate::words::quantile_name(q);
        let Metric::Time(_, Statistic::Quantile(parsed)) = condition(&format!("{name} > 1s")).metric else {
            panic!("{name} is a quantile");
        };
        assert_eq!(parsed, q);
    }
    assert!(matches!(crate::distribution::response_quantile(&total, 0.9999), QuantileValue::TooFew { .. }));
}
