//! Planted courses, changes, trends and dependence.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::*;
use crate::comparison::{Direction, normal};

const MORE: Direction = Direction::HigherIsBetter;

/// `n` values around what `center` gives for each index, with a standard deviation of `spread`.
fn noisy(n: usize, seed: u64, spread: f64, center: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n).map(|index| center(index) + spread * normal(&mut generator)).collect()
}

fn warming(index: usize) -> f64 {
    100.0 - 40.0 * (-(index as f64) / 15.0).exp()
}

#[test]
fn a_flat_series_loses_little_to_truncation() {
    let kept =
        |seed| matches!(mser5(&noisy(300, seed, 1.0, |_| 100.0)), Truncation::LeaveOut(left) if left <= 75);
    let kept = (0..20).filter(|seed| kept(*seed)).count();
    assert!(kept >= 18, "{kept} of 20");
}

/// The cut is a minimum of a noisy curve that is flat after the warm-up: two in twenty may be later.
#[test]
fn truncation_leaves_out_the_warmup() {
    let cut = |seed| match mser5(&noisy(300, seed, 1.0, warming)) {
        Truncation::LeaveOut(left) => left,
        other => panic!("seed {seed}: {other:?}"),
    };
    let cuts: Vec<usize> = (0..20).map(cut).collect();
    assert!(cuts.iter().all(|cut| *cut >= 30), "{cuts:?}");
    assert!(cuts.iter().filter(|cut| **cut <= 120).count() >= 18, "{cuts:?}");
}

#[test]
fn a_series_that_never_settles_has_no_steady_state() {
    assert_eq!(mser5(&noisy(300, 1, 1.0, |index| index as f64)), Truncation::NoSteadyState);
    assert_eq!(mser5(&noisy(49, 1, 1.0, |_| 1.0)), Truncation::TooShort);
}

#[test]
fn segments_begin_where_mean_or_variance_changes() {
    let step = segments(&noisy(300, 3, 1.0, |index| if index < 100 { 90.0 } else { 100.0 }));
    assert_eq!(step.len(), 2, "{step:?}");
    assert!(step[1].start.abs_diff(100) <= 2 && step[1].end == 300, "{step:?}");
    let mut louder = noisy(200, 4, 1.0, |_| 100.0);
    louder.extend(noisy(200, 5, 8.0, |_| 100.0));
    let louder = segments(&louder);
    assert!(louder.len() == 2 && louder[1].start.abs_diff(200) <= 5, "{louder:?}");
}

/// Like a collection or a hiccup: one slow second does not divide a series.
#[test]
fn a_pause_is_no_new_state() {
    let mut values = noisy(300, 6, 1.0, |_| 100.0);
    values[120] = 5.0;
    values[121] = 20.0;
    assert_eq!(segments(&values).len(), 1);
}

#[test]
fn constant_series_are_one_segment_and_flat() {
    assert_eq!(segments(&[5.0; 60]).len(), 1);
    let flat = warmup(&[5.0; 60], MORE);
    assert_eq!((flat.course, flat.values), (Course::Flat, Some(0)));
    assert!(segments(&[]).is_empty() && segments(&[1.0; 3]).is_empty());
}

#[test]
fn courses_have_their_names() {
    let course = |n, center: fn(usize) -> f64, direction| warmup(&noisy(n, 8, 0.5, center), direction).course;
    assert_eq!(course(300, warming, MORE), Course::WarmsUp);
    assert_eq!(course(300, warming, Direction::LowerIsBetter), Course::SlowsDown);
    assert_eq!(course(300, |index| if index < 220 { 90.0 } else { 100.0 }, MORE), Course::NoSteadyState);
    assert_eq!(course(40, warming, MORE), Course::TooShort);
    assert_eq!(course_of_all(&[Course::Flat, Course::WarmsUp]), Some(Course::Inconsistent));
    assert_eq!(course_of_all(&[Course::Flat, Course::Flat]), Some(Course::Flat));
    assert_eq!(course_of_all(&[]), None);
}

#[test]
fn steady_windows_rarely_drift_and_trends_do() {
    let is_drifting = |seed, growth: f64| {
        let values = noisy(60, seed, 2.0, |index| 100.0 * (1.0 + growth * index as f64 / 60.0));
        drift(&values, 0.025).unwrap().is_drifting
    };
    // The test of a trend alone is wrong in 1 %.
    let wrong = (0..1000).filter(|seed| is_drifting(*seed, 0.0)).count();
    assert!(wrong <= 20, "{wrong} of 1000");
    assert_eq!((0..100).filter(|seed| is_drifting(*seed, 0.06)).count(), 100);
    assert_eq!(drift(&[0.0; 10], 0.1), None);
}

/// R: `Kendall::MannKendall(c(1, 3, 2, 4, 5, 5, 7, 6, 9, 8))` has S = 38 with one tie.
#[test]
fn trends_have_the_p_value_of_mann_and_kendall() {
    let p = trend_p(&[1.0, 3.0, 2.0, 4.0, 5.0, 5.0, 7.0, 6.0, 9.0, 8.0]);
    let variance = (10.0 * 9.0 * 25.0 - 2.0 * 1.0 * 9.0) / 18.0_f64;
    let z = 37.0 / variance.sqrt();
    assert!((3.3..3.4).contains(&z) && (0.000_8..0.000_95).contains(&p), "{z} {p}");
    assert_eq!(trend_p(&[1.0; 20]), 1.0);
}

/// Values that each keep 80 % of the one before are worth (1 − 0.8)/(1 + 0.8) = one ninth.
#[test]
fn dependent_values_are_worth_less() {
    let worth = |seed| {
        let mut state = 0.0;
        let dependent: Vec<f64> = noisy(3600, seed, 1.0, |_| 0.0)
            .into_iter()
            .map(|step| {
                state = 0.8 * state + step;
                state
            })
            .collect();
        effective_samples(&dependent).unwrap() / 3600.0
    };
    let mean: f64 = (0..50).map(worth).sum::<f64>() / 50.0;
    assert!((0.09..0.15).contains(&mean), "{mean}");
    let independent: f64 =
        (0..50).map(|seed| effective_samples(&noisy(3600, seed, 1.0, |_| 0.0)).unwrap()).sum();
    assert!(independent / 50.0 > 0.85 * 3600.0, "{independent}");
    assert_eq!(effective_samples(&[1.0; 39]), None);
}

#[test]
fn slopes_are_found_with_their_interval() {
    let covers = |seed| {
        let slope = slope(&noisy(120, seed, 5.0, |index| 0.3 * index as f64)).unwrap();
        slope.low <= 0.3 && 0.3 <= slope.high && (slope.per_step - 0.3).abs() < 0.05
    };
    let covered = (0..400).filter(|seed| covers(*seed)).count();
    assert!((368..=396).contains(&covered), "{covered} of 400");
    // A restart in the middle of a long series changes little; a mean of differences would be off by it.
    let long = slope(&noisy(5000, 1, 1.0, |index| 0.01 * index as f64)).unwrap();
    assert!((long.per_step - 0.01).abs() < 0.001, "{long:?}");
    assert_eq!(slope(&[1.0; 9]), None);
}
