//! Each distribution compared with its closed form, by a chi-square test over all its values.

use super::*;

const DRAWS: u64 = 100_000;

fn parse(text: &str) -> Result<Distribution, String> {
    Distribution::parse(&text.split_whitespace().collect::<Vec<_>>()).expect("a known name")
}

fn counts(distribution: Distribution) -> Vec<u64> {
    let mut counts = vec![0; (distribution.high - distribution.low) as usize + 1];
    for n in 0..DRAWS {
        counts[(distribution.value(7, n, 2) - distribution.low) as usize] += 1;
    }
    counts
}

/// The statistic of a correct generator exceeds its degrees of freedom k by 2 sqrt(k x) + 2 x with a probability of at
/// most e^-x (Laurent and Massart, 2000): x = 14 is one in a million.
#[track_caller]
fn check(text: &str, probability: impl Fn(f64, f64) -> f64) {
    let distribution = parse(text).unwrap();
    let counts = counts(distribution);
    let count = counts.len() as f64;
    let expected: Vec<f64> = (0..counts.len()).map(|k| probability(k as f64, count) * DRAWS as f64).collect();
    let total: f64 = expected.iter().sum();
    assert!((total - DRAWS as f64).abs() < 1e-6 * DRAWS as f64, "{text}: the closed form sums to {total}");
    assert!(expected.iter().all(|&expected| expected > 5.0), "{text}: chi-square needs 5 in each cell");
    let chi: f64 = counts.iter().zip(&expected).map(|(&n, e)| (n as f64 - e) * (n as f64 - e) / e).sum();
    let (freedom, x) = (count - 1.0, 14.0);
    let limit = freedom + 2.0 * (freedom * x).sqrt() + 2.0 * x;
    assert!(chi < limit, "{text}: chi-square is {chi}, over {limit}: {counts:?}");
}

fn phi(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

#[test]
fn each_shape_is_that_of_its_closed_form() {
    check("uniform 3 22", |_, count| 1.0 / count);
    for s in [0.5, 0.99, 1.0, 1.00000001, 2.0] {
        let weight = move |k: f64| (k + 1.0).powf(-s);
        check(&format!("zipf 1 30 {s}"), |k, count| {
            weight(k) / (0..count as u64).map(|k| weight(k as f64)).sum::<f64>()
        });
    }
    // pgbench's documentation: f(i + 0.5) - f(i - 0.5) of a normal that is cut off.
    for p in [2.0, 2.5, 4.0] {
        check(&format!("gaussian 1 12 {p}"), |k, count| {
            let at = |x: f64| phi(p * (2.0 * x / count - 1.0)) / (2.0 * phi(p) - 1.0);
            at(k + 1.0) - at(k)
        });
    }
    for p in [0.5, 2.5] {
        check(&format!("exponential 5 24 {p}"), |k, count| {
            let at = |x: f64| exp(-p * x / count) / (1.0 - exp(-p));
            at(k) - at(k + 1.0)
        });
    }
    for h in [0.2, 0.4] {
        check(&format!("pareto 1 20 {h}"), |k, count| {
            let at = |x: f64| (x / count).powf((1.0f64 - h).ln() / f64::ln(h));
            at(k + 1.0) - at(k)
        });
    }
}

/// Moments of the mixture: both parts have their mean in the middle; an even draw over a share w of N values has the
/// variance (w N)^2 / 12, the mean of twelve N^2 / 144; rounding down to whole values adds under 1/12 + 1/2 of it.
#[test]
fn special_has_its_middle_and_its_moments() {
    let values: Vec<f64> =
        (0..DRAWS).map(|n| parse("special 1 100000").unwrap().value(7, n, 2) as f64).collect();
    let (n, count) = (DRAWS as f64, 100_000.0f64);
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let expected = 0.75 * (0.01 * count).powi(2) / 12.0 + 0.25 * count.powi(2) / 144.0;
    // Five standard errors of a mean; of a variance, with the fourth moment of the wide part: 0.25 * 2.9 * (N^2/144)^2.
    assert!((mean - (count / 2.0 + 0.5)).abs() < 5.0 * (expected / n).sqrt() + 0.5, "{mean}");
    let fourth = 0.25 * 2.9 * (count.powi(2) / 144.0).powi(2);
    assert!((variance - expected).abs() < 5.0 * (fourth / n).sqrt(), "{variance} for {expected}");
    // 75 %, and of the others those in the middle 1 % of a bell whose density there is at most 5; sqrt(pq) is 0.43.
    let middle = values.iter().filter(|&&x| (49_500.0..=50_501.0).contains(&x)).count() as f64 / n;
    let slack = 5.0 * 0.43 / n.sqrt();
    assert!((0.75 - slack..0.75 + 0.25 * 0.05 + slack).contains(&middle), "{middle}");
}

#[test]
fn a_sequence_goes_round() {
    let sequence = parse("sequence 5 7").unwrap();
    let values: Vec<u64> = (0..7).map(|n| sequence.value(9, n, 2)).collect();
    assert_eq!(values, [5, 6, 7, 5, 6, 7, 5]);
    assert_eq!(parse(&format!("sequence 0 {}", u64::MAX)).unwrap().value(1, 3, 2), 3);
}

/// If this fails, a run requests rows that do not exist, or never the first or the last one.
#[test]
fn bounds_are_kept_and_reached() {
    for name in names() {
        for (low, high) in [(0, 0), (9, 9), (1, 2), (1, 10), (0, u64::MAX)] {
            let distribution = parse(&format!("{name} {low} {high}")).unwrap();
            let values: Vec<u64> = (0..2_000).map(|n| distribution.value(3, n, 2)).collect();
            assert!(values.iter().all(|value| (low..=high).contains(value)), "{name} {low} {high}");
            assert_eq!(values, (0..2_000).map(|n| distribution.value(3, n, 2)).collect::<Vec<_>>());
            if high - low == 1 {
                assert!(values.contains(&low) && values.contains(&high), "{name}");
            }
        }
    }
}

#[test]
fn mistakes_are_refused_with_an_example() {
    for (text, says) in [
        ("zipf 1", "zipf 1 100 0.99"),
        ("zipf 9 1", "needs two bounds"),
        ("zipf 1 9 x", "from 0.01 to 20"),
        ("zipf 1 9 -1", "from 0.01 to 20"),
        ("gaussian 1 9 1.5", "from 2 to 100"),
        ("uniform 1 9 2", "uniform 1 100"),
        ("pareto 1 9 nan", "from 0.01 to 0.5"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    assert!(Distribution::parse(&["random", "1", "2"]).is_none());
}
