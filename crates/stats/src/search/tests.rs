//! Tests the search against thousands of simulated servers with a known capacity, with realistic noise.

use schedule::next_splitmix64;

use super::*;

const AIM: Aim = Aim { from: 1.0, to: None, probes: 12, tolerance: 0.02 };

/// Runs a search against `probe` with the given estimate; returns the result and how many probes it took.
fn search(
    aim: Aim,
    estimate: Option<f64>,
    mut probe: impl FnMut(f64, Length) -> (Finding, f64),
) -> (SearchResult, usize) {
    let mut search = Search::new(aim);
    for used in 0.. {
        match search.step() {
            Step::Done => return (search.result(), used),
            Step::Estimate => search.note_estimate(estimate),
            Step::Probe { rate, length } => {
                assert!(rate >= aim.from && aim.to.is_none_or(|to| rate <= to), "{rate}");
                let (finding, served) = probe(rate, length);
                search.note(Probed { rate, finding, served });
            }
        }
        assert!(used < aim.probes, "over the budget");
    }
    unreachable!("a search ends within its budget")
}

/// Without noise: holds up to `capacity`, and serves at most that.
fn exact(capacity: f64) -> impl FnMut(f64, Length) -> (Finding, f64) {
    move |rate, _| {
        if rate <= capacity { (Finding::Holds, rate) } else { (Finding::Fails, capacity) }
    }
}

#[test]
fn the_limit_of_a_server_without_noise_is_bracketed_in_a_handful_of_probes() {
    for capacity in [3.7, 512.0, 1_999.0, 2_000.0, 48_123.0] {
        let (result, used) = search(AIM, Some(capacity), exact(capacity));
        let (holds, fails) = (result.holds.unwrap(), result.fails.unwrap());
        assert!(holds <= capacity && capacity < fails && fails / holds <= 1.02, "{capacity}: {result:?}");
        assert!(result.confirmed && result.above == Above::Server && used <= 7, "{capacity}: {used}");
    }
}

#[test]
fn an_estimate_far_off_costs_probes_but_does_not_change_the_result() {
    for factor in [0.3, 0.5, 0.8, 1.3, 2.0, 5.0, 40.0] {
        let (result, used) = search(AIM, Some(1_000.0 * factor), exact(1_000.0));
        assert!(within(result, 1_000.0), "{factor}: {result:?} in {used}");
    }
    // Without the hint of the failed probes' throughput: an objective that fails far below what can be served.
    for factor in [1.3, 2.0, 5.0] {
        let server = |rate, _| if rate <= 1_000.0 { (Finding::Holds, rate) } else { (Finding::Fails, rate) };
        let (result, used) = search(AIM, Some(1_000.0 * factor), server);
        assert!(within(result, 1_000.0), "{factor}: {result:?} in {used}");
    }
}

#[test]
fn no_rate_outside_the_range_is_tried_and_the_range_is_given_as_the_reason() {
    let aim = Aim { to: Some(800.0), ..AIM };
    let (result, used) = search(aim, None, exact(1_000.0));
    assert_eq!((result.holds, result.fails, result.above, used), (Some(800.0), None, Above::Range, 2));
    let aim = Aim { from: 1_500.0, to: Some(3_000.0), ..AIM };
    let (result, _) = search(aim, None, exact(1_000.0));
    assert_eq!((result.holds, result.fails, result.above), (None, Some(1_500.0), Above::Server));
    assert!(result.confirmed);
    let (result, used) = search(Aim { to: Some(5_000.0), ..AIM }, None, exact(1_000.0));
    assert!(within(result, 1_000.0) && used <= 8, "{result:?} in {used}");
}

#[test]
fn a_server_that_serves_nothing_is_not_probed_again() {
    let (result, used) = search(AIM, None, |_, _| unreachable!("there is no rate to try"));
    assert_eq!((result.holds, result.fails, used), (None, None, 1));
}

/// If this fails, a rate is reported that was not measured, because the client was unfit there.
#[test]
fn a_rate_beyond_the_client_is_never_reported() {
    for unfit in [Finding::Doubtful, Finding::Disturbed] {
        let client = |rate: f64, _| if rate <= 1_000.0 { (Finding::Holds, rate) } else { (unfit, rate) };
        for estimate in [700.0, 1_000.0, 1_400.0] {
            let (result, _) = search(AIM, Some(estimate), client);
            assert!(
                result.holds.unwrap() <= 1_000.0 && result.above == Above::Client,
                "{unfit:?}: {result:?}"
            );
        }
    }
    let (result, _) = search(AIM, Some(100.0), |rate, _| (Finding::Doubtful, rate));
    assert_eq!((result.holds, result.above), (None, Above::Client));
}

/// If this fails, a search on a host busy with other work uses a dozen probes to find nothing.
#[test]
fn a_host_disturbed_even_at_half_the_load_ends_the_search() {
    for aim in [AIM, Aim { to: Some(5_000.0), ..AIM }, Aim { from: 990.0, ..AIM }] {
        let (result, used) = search(aim, Some(1_000.0), |rate, _| (Finding::Disturbed, rate.min(1_000.0)));
        assert!(
            result.holds.is_none() && result.above == Above::Client && result.given_up,
            "{aim:?}: {result:?}"
        );
        assert!(used <= 5, "{aim:?}: {used}");
    }
}

/// If this fails, a host that is saturated by the load itself seems to be busy with other work.
#[test]
fn a_host_disturbed_by_the_load_itself_is_probed_at_lower_rates() {
    for limit in [0.3, 0.6, 0.8, 0.95] {
        let server = |rate: f64, _| match rate {
            rate if rate <= 1_000.0 * limit => (Finding::Holds, rate),
            rate => (Finding::Disturbed, rate.min(1_000.0)),
        };
        let (result, used) = search(AIM, Some(1_000.0), server);
        match result.holds {
            Some(holds) => {
                assert!(holds <= 1_000.0 * limit && holds >= 900.0 * limit, "{limit}: {result:?}");
                assert_eq!(result.above, Above::Client, "{limit} in {used}");
            }
            // Below half of its throughput: cannot be distinguished from a host busy with other work.
            None => assert!(limit < 0.5 && result.given_up, "{limit}: {result:?}"),
        }
    }
}

#[test]
fn a_host_taken_by_others_during_a_search_ends_it_with_what_is_known() {
    for calm in 1..8 {
        let mut count = 0;
        let (result, used) = search(AIM, Some(900.0), |rate, _| {
            count += 1;
            let finding = if rate <= 1_000.0 { Finding::Holds } else { Finding::Fails };
            (if count > calm { Finding::Disturbed } else { finding }, rate.min(1_000.0))
        });
        assert!(result.holds.is_some_and(|holds| holds <= 1_000.0), "{calm}: {result:?}");
        assert!(result.confirmed || result.given_up || used == AIM.probes, "{calm}: {result:?}");
        // If the server is reported as the limit, a probe really failed there.
        assert!(result.above != Above::Server || result.fails.is_some_and(|fails| fails > 1_000.0));
        // The estimate, the probes without disturbance, and three at each of two rates.
        assert!(calm > 2 || used <= 1 + calm + 6, "{calm}: {used}");
    }
}

/// If this fails, an end that was observed once is reported as confirmed.
#[test]
fn a_probe_with_an_unfit_client_confirms_nothing() {
    for unfit in [Finding::Doubtful, Finding::Disturbed] {
        let mut search = Search::new(Aim { to: Some(100.0), ..AIM });
        let mut note = |finding| {
            search.note(Probed { rate: 100.0, finding, served: 100.0 });
            search.result().confirmed
        };
        assert!(!note(Finding::Holds) && !note(unfit) && note(Finding::Holds), "{unfit:?}");
    }
}

/// Another tenant takes the host in one of ten probes.
#[test]
fn a_queue_on_an_occasionally_disturbed_host_is_found_within_3_percent() {
    let mut good = 0;
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let capacity = 500.0 * 10f64.powf(random.unit());
        let estimate = capacity * (1.0 - 0.02 * random.unit());
        let (result, _) = search(AIM, Some(estimate), |rate, length| {
            let (finding, served) = queue(&mut random, capacity, rate, length);
            (if random.unit() < 0.1 { Finding::Disturbed } else { finding }, served)
        });
        good += u64::from(within(result, capacity));
    }
    assert!(good * 100 >= SEEDS * 95, "{good} of {SEEDS}");
}

#[test]
fn one_wrong_probe_does_not_decide() {
    for wrong in 1..8 {
        let mut count = 0;
        let (result, used) = search(AIM, Some(1_000.0), |rate, _| {
            count += 1;
            let holds = (rate <= 1_000.0) != (count == wrong);
            (if holds { Finding::Holds } else { Finding::Fails }, rate.min(1_000.0))
        });
        assert!(within(result, 1_000.0), "probe {wrong} wrong: {result:?} in {used}");
    }
}

#[test]
fn an_unsettled_rate_is_probed_for_longer_and_fails_if_it_never_settles() {
    let mut lengths = Vec::new();
    let (result, _) = search(AIM, Some(1_000.0), |rate, length| {
        lengths.push(length);
        let finding = match length {
            Length::Usual if (900.0..=1_000.0).contains(&rate) => Finding::Unsettled,
            _ if rate <= 1_000.0 => Finding::Holds,
            _ => Finding::Fails,
        };
        (finding, rate.min(1_000.0))
    });
    assert_eq!(lengths[..2], [Length::Usual, Length::Twice]);
    assert!(within(result, 1_000.0), "{result:?}");
    let never =
        |rate: f64, _| if rate <= 600.0 { (Finding::Holds, rate) } else { (Finding::Unsettled, rate) };
    let (result, _) = search(AIM, Some(650.0), never);
    assert!(within(result, 600.0), "{result:?}");
}

#[test]
fn rates_have_four_digits() {
    for (rate, kept) in [(1_234.56, 1_235.0), (0.123_456, 0.1235), (98_765.4, 98_770.0), (7.0, 7.0)] {
        assert!((rounded(rate) - kept).abs() < 1e-9, "{rate}");
    }
}

#[test]
fn the_halves_of_a_probe_distinguish_a_backlog_from_a_warm_up() {
    let steady =
        Halves { held: true, held_second: true, mean_s: [0.002, 0.002], apart_s: 2.0, fitness: Fitness::Fit };
    for (halves, found) in [
        (steady, Finding::Holds),
        // 0.6 % over capacity: 12 ms in the 2 s from middle to middle, while p99 still holds.
        (Halves { mean_s: [0.002, 0.014], ..steady }, Finding::Unsettled),
        // The halves of a slow server differ by more than that without any backlog.
        (Halves { mean_s: [0.5, 0.52], ..steady }, Finding::Holds),
        (Halves { held: false, mean_s: [0.3, 0.002], ..steady }, Finding::Unsettled),
        (Halves { held: false, held_second: false, ..steady }, Finding::Fails),
        (Halves { held: false, mean_s: [0.002, 0.05], ..steady }, Finding::Fails),
        (Halves { fitness: Fitness::Unfit, ..steady }, Finding::Doubtful),
        (Halves { fitness: Fitness::Unfit, held: false, ..steady }, Finding::Doubtful),
        (Halves { fitness: Fitness::Disturbed, ..steady }, Finding::Disturbed),
    ] {
        assert_eq!(finding(&halves, 0.02), found, "{halves:?}");
    }
}

/// If this fails, the error of the reported capacity is larger than documented.
#[test]
fn a_queue_behind_a_client_that_stalls_is_found_within_3_percent() {
    let mut good = 0;
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let capacity = 500.0 * 10f64.powf(random.unit());
        // What a closed loop of two seconds measures: the capacity, minus the cost of its stalls.
        let estimate = capacity * (1.0 - 0.02 * random.unit());
        let (result, _) =
            search(AIM, Some(estimate), |rate, length| queue(&mut random, capacity, rate, length));
        good += u64::from(within(result, capacity));
    }
    assert!(good * 100 >= SEEDS * 95, "{good} of {SEEDS}");
}

/// An objective that is met more or less often around its limit: 5 % of the probes are wrong at 1.2 % from it.
#[test]
fn a_blurred_limit_is_found_within_3_percent() {
    let mut good = 0;
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let limit = 500.0 * 10f64.powf(random.unit());
        // The estimate is the total throughput: about half more than the rate that holds.
        let estimate = limit * (1.0 + 0.5 * random.unit());
        let (result, _) = search(AIM, Some(estimate), |rate, _| {
            let share = 1.0 / (1.0 + ((rate / limit - 1.0) / 0.004).exp());
            let held = random.unit() < share;
            let finding = match random.unit() < 0.05 {
                true => Finding::Doubtful,
                false if held => Finding::Holds,
                false => Finding::Fails,
            };
            (finding, rate.min(estimate))
        });
        good += u64::from(within(result, limit));
    }
    assert!(good * 100 >= SEEDS * 95, "{good} of {SEEDS}");
}

/// A server that refuses requests beyond its capacity, with `error_share < 1%`.
#[test]
fn a_refusal_is_found_within_3_percent() {
    let mut good = 0;
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let capacity = 500.0 * 10f64.powf(random.unit());
        let (result, _) = search(AIM, Some(capacity * (0.99 + 0.02 * random.unit())), |rate, _| {
            let refused = (1.0 - capacity / rate).max(0.0) + 0.001 * random.normal();
            (if refused < 0.01 { Finding::Holds } else { Finding::Fails }, rate.min(capacity))
        });
        good += u64::from(within(result, capacity / 0.99));
    }
    assert!(good * 100 >= SEEDS * 95, "{good} of {SEEDS}");
}

fn within(result: SearchResult, truth: f64) -> bool {
    result.holds.is_some_and(|holds| (holds / truth - 1.0).abs() <= 0.03)
}

/// One probe of a queue that serves exactly `capacity`, by a client that is stalled now and then and afterwards sends
/// everything that was due, in steps of a millisecond; p99 < 20 ms. The client counts as fit by the audit's rule: at
/// most 1 % of the requests more than a millisecond late.
fn queue(random: &mut Random, capacity: f64, rate: f64, length: Length) -> (Finding, f64) {
    let steps = if length == Length::Twice { 8_000 } else { 4_000 };
    let (mut backlog, mut served, mut stalled_until) = (0.0, 0.0, 0);
    let (mut late, mut slow, mut sums) = (0, [0, 0], [0.0, 0.0]);
    let mut held_back = Vec::new();
    for now in 0..steps {
        // Once in five seconds, for 10 ms on average.
        if stalled_until <= now && random.unit() < 0.2e-3 {
            stalled_until = now + (-10.0 * random.unit().ln()) as usize;
        }
        held_back.push(now);
        if now >= stalled_until {
            for due in held_back.drain(..) {
                let response = (now - due) as f64 * 1e-3 + backlog / capacity;
                backlog += rate * 1e-3;
                late += usize::from(now - due > 1);
                let half = due * 2 / steps;
                slow[half] += usize::from(response > 0.02);
                sums[half] += response;
            }
        }
        let done = f64::min(backlog, capacity * 1e-3);
        backlog -= done;
        served += done;
    }
    let half = steps / 2;
    let halves = Halves {
        held: slow[0] + slow[1] <= steps / 100,
        held_second: slow[1] <= half / 100,
        mean_s: sums.map(|sum| sum / half as f64),
        apart_s: half as f64 * 1e-3,
        fitness: if late <= steps / 100 { Fitness::Fit } else { Fitness::Unfit },
    };
    (finding(&halves, AIM.tolerance), served / (steps as f64 * 1e-3))
}

const SEEDS: u64 = 1_000;

struct Random(u64);

impl Random {
    /// Above 0, below 1.
    fn unit(&mut self) -> f64 {
        ((next_splitmix64(&mut self.0) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
