//! What must hold for every schedule: the same sequence for any number of workers, never backwards, nothing lost.

#![expect(clippy::unwrap_used, reason = "a panic in a test is the test failing")]

use std::sync::Arc;

use proptest::prelude::*;
use schedule::{Arrivals, Cursor, Residue, Stage, Stages, parse_stage};
use units::Nanos;

fn staged(texts: &[String], seed: u64) -> Arrivals {
    let stages: Vec<Stage> = texts.iter().flat_map(|text| parse_stage(text).unwrap()).collect();
    Arrivals::Staged(Arc::new(Stages::new(stages, seed).unwrap()))
}

fn whole(texts: &[&str], seed: u64) -> Arrivals {
    staged(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), seed)
}

/// Everything that one worker sends, with the numbers.
fn share(arrivals: &Arrivals, index: u64, of: u64) -> Vec<(u64, Nanos)> {
    let mut cursor = Cursor::new(arrivals.clone(), Residue::new(index, of));
    let mut sent = Vec::new();
    while cursor.due() < Nanos::MAX {
        sent.push((cursor.number(), cursor.due()));
        cursor.advance();
    }
    sent
}

fn stage() -> impl Strategy<Value = String> {
    let shape = prop_oneof![
        (1u32..900).prop_map(|rate| format!("constant {rate}/s")),
        (1u32..900, 0u32..900).prop_map(|(from, to)| format!("ramp {from}/s..{to}/s")),
        (0u32..900, 1u32..900).prop_map(|(from, to)| format!("ramp {from}/s..{to}/s")),
        (1u32..900, 0u32..=100, 20u32..900).prop_map(|(mean, share, period)| {
            format!("sine {mean}/s amplitude {}/s period {period}ms", mean * share / 100)
        }),
        (0u32..300, 1u32..2_000, 1u32..99, 100u32..900).prop_map(|(base, peak, width, period)| {
            format!("spikes {base}/s peak {peak}/s width {width}ms period {period}ms")
        }),
        Just("pause".to_owned()),
        (1u32..300, 1u32..300).prop_map(|(a, b)| format!("steps {a}/s,{b}/s")),
    ];
    let process = prop_oneof![
        Just(String::new()),
        Just(" poisson".to_owned()),
        (1u32..=100).prop_map(|percent| format!(" jitter {percent}%")),
        (1u32..60_000).prop_map(|us| format!(" jitter {us}us")),
    ];
    (shape, 1u32..1_500, process).prop_map(|(shape, ms, process)| format!("{shape} {ms}ms{process}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// If this fails, workers send a request twice or never, or the load depends on the number of workers.
    #[test]
    fn the_union_over_workers_is_the_schedule(
        texts in prop::collection::vec(stage(), 1..4), seed: u64, of in 1u64..5
    ) {
        // Whatever the other stages contain, there is something to send.
        let texts = [texts, vec!["constant 50/s 200ms".to_owned()]].concat();
        let arrivals = staged(&texts, seed);
        let mut union: Vec<(u64, Nanos)> = (0..of).flat_map(|index| share(&arrivals, index, of)).collect();
        union.sort_unstable_by_key(|(n, _)| *n);
        let total = arrivals.total().unwrap();
        prop_assert_eq!(union.len() as u64, total);
        let end = arrivals.end().unwrap();
        let mut last = Nanos::ZERO;
        for (n, &(number, due)) in (0..).zip(&union) {
            prop_assert_eq!(number, n);
            prop_assert!(due >= last && due < end, "{} at {:?} after {:?}", n, due, last);
            prop_assert_eq!(due, arrivals.due(n), "request {}", n);
            last = due;
        }
        prop_assert_eq!(arrivals.due(total), Nanos::MAX);
    }

    /// If this fails, a run that is cut short has one request too many or too few.
    #[test]
    fn count_before_agrees_with_due(
        texts in prop::collection::vec(stage(), 1..4), seed: u64, share_of_end in 0u64..=1_000
    ) {
        let texts = [texts, vec!["constant 50/s 200ms".to_owned()]].concat();
        let arrivals = staged(&texts, seed);
        let end = Nanos(arrivals.end().unwrap().0 / 1_000 * share_of_end);
        let count = arrivals.count_before(end);
        prop_assert!(count == 0 || arrivals.due(count - 1) < end);
        prop_assert!(arrivals.due(count) >= end);
        prop_assert_eq!(arrivals.count_before(arrivals.end().unwrap()), arrivals.total().unwrap());
    }
}

#[test]
fn a_constant_rate_does_not_drift() {
    let arrivals = Arrivals::Constant("3/s".parse().unwrap());
    assert_eq!(arrivals.due(0), Nanos(0));
    assert_eq!(arrivals.due(1), Nanos(333_333_333));
    // With a rounded gap of 333_333_333 ns this would be off by one second; it is not.
    assert_eq!(arrivals.due(3_000_000_000), Nanos::from_secs(1_000_000_000));
}

/// 10^9 requests at a mean of 10k/s, which is 27.8 hours: except for random processes, all are where the formula says.
#[test]
fn no_process_drifts_over_a_billion_requests() {
    let n = 1_000_000_000;
    let even = Nanos::from_secs(100_000);
    let jittered = whole(&["constant 10k/s 200000s jitter 1ms"], 5);
    assert!(jittered.due(n).0.abs_diff(even.0) <= 1_000_000);
    // A sine returns to its mean at every period: 10^9 requests end with period 10,000.
    let sine = whole(&["sine 10k/s amplitude 5k/s period 10s 200000s"], 0);
    assert!(sine.due(n).0.abs_diff(even.0) <= 1, "{:?}", sine.due(n));
    let spikes = whole(&["spikes 5k/s peak 55k/s width 1s period 10s 200000s"], 0);
    assert!(spikes.due(n).0.abs_diff(even.0) <= 1, "{:?}", spikes.due(n));
    // n = 50 t^2 / 1000 s: 10^9 at sqrt(2 * 10^10) s.
    let ramp = whole(&["ramp 0/s..20k/s 200000s"], 0);
    assert!(ramp.due(n).0.abs_diff(141_421_356_237_309) <= 1, "{:?}", ramp.due(n));
}

/// The sum of that many gaps has a standard error of their square root: the deviation must not grow faster.
#[test]
fn poisson_does_not_drift_over_a_hundred_million_requests() {
    let stage = parse_stage("constant 10k/s 1s poisson").unwrap().remove(0);
    let Stage::Shaped { shape, process, .. } = stage else { panic!("a shaped stage") };
    let endless = Stage::Shaped { shape, process, length: None };
    let arrivals = Arrivals::Staged(Arc::new(Stages::new(vec![endless], 5).unwrap()));
    let n = 100_000_000;
    // 10,000 s, and four standard errors of sqrt(10^8) gaps of 100 us.
    let due = arrivals.due(n);
    assert!(due.0.abs_diff(10_000_000_000_000) < 4_000_000_000, "{due:?}");
    assert_eq!(arrivals.count_before(due), n);
    assert_eq!(arrivals.end(), None);
}

#[test]
fn stages_join_without_a_gap_or_a_double() {
    // 3/s for 1.1 s: 0, 1/3, 2/3 and 1; the next whole request is 0.7 of a request into the next stage.
    let arrivals = whole(&["constant 3/s 1100ms", "constant 10/s 1s"], 0);
    let due: Vec<u64> = (0..6).map(|n| arrivals.due(n).0 / 1_000_000).collect();
    assert_eq!(due, [0, 333, 666, 1_000, 1_170, 1_270]);
    // 13.3 requests in all: the first at 0, so 14.
    assert_eq!(arrivals.total(), Some(14));
    // A pause keeps the rest of the gap for the stage after it.
    let paused = whole(&["constant 10/s 1s", "pause 5s", "constant 10/s 1s"], 0);
    assert_eq!(paused.due(9), Nanos::from_millis(900));
    assert_eq!(paused.due(10), Nanos::from_secs(6));
    assert_eq!(paused.total(), Some(20));
    // Two halves of one ramp are the same as the ramp.
    let halves = whole(&["ramp 0/s..500/s 5s", "ramp 500/s..1k/s 5s"], 0);
    let ramp = whole(&["ramp 0/s..1k/s 10s"], 0);
    assert_eq!(halves.total(), ramp.total());
    for n in 0..5_000 {
        // 2^-20 of a request at the join is 2 ns there.
        assert!(halves.due(n).0.abs_diff(ramp.due(n).0) <= 3, "request {n}");
    }
}

/// Jitter of four times the gap: requests change places, and the schedule is in the order of time.
#[test]
fn a_jitter_wider_than_the_gap_moves_each_request_by_at_most_itself() {
    let arrivals = whole(&["constant 1k/s 2s jitter 4ms"], 9);
    let mut stays = 0;
    for n in 0..2_000 {
        let moved = arrivals.due(n).0.abs_diff(n * 1_000_000);
        assert!(moved <= 4_000_000, "request {n} moved by {moved}");
        stays += u32::from(moved == 0);
    }
    assert!(stays < 5, "{stays} of 2000 did not move");
    // The same seed gives the same schedule.
    assert_eq!(arrivals, whole(&["constant 1k/s 2s jitter 4ms"], 9));
    assert_ne!(arrivals.due(700), whole(&["constant 1k/s 2s jitter 4ms"], 10).due(700));
}

/// Uniform over ±10 % of the gap: the variance of a time is (2 j)^2 / 12, and over 10,000 draws its estimate has a
/// standard error of sqrt(0.8 / 10,000) = 0.9 % of it. The limits are four of them.
#[test]
fn a_jitter_is_even_over_its_range_and_no_wider() {
    let arrivals = whole(&["constant 1k/s 10s jitter 10%"], 2);
    let moves: Vec<f64> =
        (0..10_000u32).map(|n| arrivals.due(u64::from(n)).0 as f64 - f64::from(n) * 1e6).collect();
    // The first is mirrored at zero; a step of position is a nanosecond here.
    assert!(moves.iter().all(|moved| moved.abs() <= 100_001.0));
    let variance = moves.iter().map(|moved| moved * moved).sum::<f64>() / 10_000.0;
    let wanted = 200_000.0_f64.powi(2) / 12.0;
    assert!((variance / wanted - 1.0).abs() < 4.0 * 0.009, "{}", variance / wanted);
}

/// If this fails, the client allocates in the middle of a run, and its memory grows with the schedule.
#[test]
fn a_walk_does_not_allocate() {
    let texts =
        ["constant 5k/s 1s poisson", "ramp 0/s..9k/s 1s jitter 5ms", "sine 5k/s amplitude 5k/s period 1s 1s"];
    let mut cursor = Cursor::new(whole(&texts, 1), Residue::new(1, 2));
    let taken = allocation_counter::measure(|| {
        while cursor.due() < Nanos::MAX {
            cursor.advance();
        }
    });
    assert!(cursor.passed() > 7_000);
    assert_eq!(taken.count_total, 0);
}

#[test]
fn stages_that_make_no_schedule_are_refused() {
    let stages = |texts: &[&str]| {
        let parsed = texts.iter().flat_map(|text| parse_stage(text).unwrap()).collect();
        Stages::new(parsed, 0).unwrap_err().to_string()
    };
    assert_eq!(stages(&[]), "a schedule needs at least one stage");
    assert_eq!(
        stages(&["pause 3s"]),
        "no request is due in the whole schedule; raise the rate or the duration"
    );
    assert_eq!(
        stages(&["pause 3s", "constant 100k/s 3s jitter 1s"]),
        "stage 2: a jitter of 1s mixes up to 200002 requests; at most 65536 may change places: use a smaller \
         jitter, or poisson"
    );
    assert_eq!(
        stages(&["constant 1G/s 2000s"]),
        "stage 1 has more than 10^12 requests; use a lower rate or a shorter time"
    );
}
