//! Tables of known results, and planted truth: thousands of simulated experiments with fixed seeds.

use proptest::prelude::*;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::evidence::t_quantile;
use super::power::normal;
use super::*;

const MORE: Direction = Direction::HigherIsBetter;
const TWO_PER_CENT: Metric = Metric { direction: MORE, margin: 0.02 };

fn close(value: f64, expected: f64, error: f64) {
    assert!((value - expected).abs() <= error, "{value} is not {expected} ± {error}");
}

#[test]
fn quantiles_of_student_are_those_of_the_tables() {
    for (p, degrees, expected) in
        [(0.975, 5.0, 2.570_582), (0.975, 9.0, 2.262_157), (0.95, 9.0, 1.833_113), (0.975, 1.0, 12.706_205)]
    {
        close(t_quantile(p, degrees), expected, 1e-5);
    }
}

/// Student's "sleep" data, with the results of R 4.3's `t.test(…, paired = TRUE)` and `t.test(…)`.
#[test]
fn both_forms_of_student_agree_with_r() {
    let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0_f64];
    let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4_f64];
    let (base, arm) = (two.map(f64::exp), one.map(f64::exp));
    let paired = Paired::new(&base, &arm).unwrap().student(0.1).unwrap();
    close(paired.p_differs, 0.002_833, 1e-6);
    close(paired.interval_95.low, -2.459_885_8, 1e-5);
    close(paired.interval_95.high, -0.700_114_2, 1e-5);
    let welch = Unpaired::new(&base, &arm).unwrap().student(0.1);
    close(welch.p_differs, 0.079_39, 1e-5);
    close(welch.interval_95.low, -3.365_483_2, 1e-5);
    close(welch.interval_95.high, 0.205_483_2, 1e-5);
}

/// The depression scores of Hollander and Wolfe, with the result of R's `wilcox.test(…, paired = TRUE)`.
#[test]
#[expect(clippy::approx_constant, reason = "a score of 3.14")]
fn the_signed_rank_test_agrees_with_r() {
    let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.140, 1.29];
    let differences: Vec<f64> = before.iter().zip(after).map(|(before, after)| before - after).collect();
    let evidence = signed_rank(&differences, 0.0).unwrap();
    close(evidence.p_differs, 0.039_06, 1e-5);
    close(evidence.estimate, 0.46, 0.001);
}

#[test]
fn the_smallest_samples_have_the_limits_of_the_exact_test() {
    let all_above = |n: usize| (1..=n).map(|value| value as f64).collect::<Vec<_>>();
    for (n, p) in [(4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.007_812_5), (10, 0.001_953_125)] {
        close(signed_rank(&all_above(n), 0.0).unwrap().p_differs, p, 1e-12);
    }
    let interval = |n| signed_rank(&all_above(n), 0.0).unwrap().interval_95;
    assert_eq!(interval(5).low, f64::NEG_INFINITY);
    assert_eq!((interval(6).low, interval(6).high), (1.0, 6.0));
    // Of ten values, the averages of rank 9 and 47 are the limits, as in R's `wilcox.test(1:10, conf.int = TRUE)`.
    assert_eq!((interval(10).low, interval(10).high), (3.0, 8.0));
}

#[test]
fn families_are_adjusted_as_their_authors_say() {
    let rounded = |values: Vec<f64>| values.iter().map(|p| (p * 1e6).round() / 1e6).collect::<Vec<_>>();
    assert_eq!(rounded(holm(&[0.03, 0.01, 0.04, 0.02])), [0.06, 0.04, 0.06, 0.06]);
    assert_eq!(rounded(benjamini_hochberg(&[0.03, 0.01, 0.04, 0.02])), [0.04; 4]);
    assert_eq!(rounded(benjamini_hochberg(&[0.5, 0.01])), [0.5, 0.02]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn values_that_have_no_ratio_are_refused() {
    let message = |base: &[f64], arm: &[f64]| Paired::new(base, arm).unwrap_err().to_string();
    assert_eq!(
        message(&[1.0, 0.0], &[1.0, 1.0]),
        "a ratio needs positive values, and 0 in block 2 is not one"
    );
    assert_eq!(message(&[1.0], &[]), "1 values of one arm and 0 of the other cannot be paired");
    assert!(Paired::new(&[1.0], &[f64::NAN]).is_err());
    assert!(Unpaired::new(&[1.0], &[1.0, 1.0]).is_err());
}

#[test]
fn words_are_tried_in_their_order() {
    // Eight blocks around a mean, with a spread of about one half of `spread`.
    let around = |mean: f64, spread: f64| {
        let offsets = [-0.7, 0.6, -0.4, 0.3, -0.2, 0.1, -0.5, 0.8];
        Paired::from_log_ratios(offsets.iter().map(|offset| mean + offset * spread).collect())
    };
    let word =
        |mean, spread, direction| judge(&around(mean, spread), Metric { direction, margin: 0.02 }).word;
    for (mean, spread, expected) in [
        (0.05, 0.01, Word::Better),
        (-0.05, 0.01, Word::Worse),
        (0.01, 0.005, Word::DiffersTooLittle),
        (0.0, 0.02, Word::Same),
        (0.018, 0.02, Word::Leaning),
        (0.0, 0.2, Word::Inconclusive),
    ] {
        assert_eq!(word(mean, spread, MORE), expected, "mean {mean}, spread {spread}");
    }
    assert_eq!(word(0.05, 0.01, Direction::LowerIsBetter), Word::Worse);
}

#[test]
fn five_blocks_have_no_verdict() {
    let judgement = judge(&Paired::from_log_ratios(vec![0.1, 0.11, 0.1, 0.09, 0.1]), TWO_PER_CENT);
    assert_eq!((judgement.word, judgement.blocks_needed), (Word::LookOnly, Some(6)));
    assert_eq!(judge(&Paired::from_log_ratios(vec![]), TWO_PER_CENT).word, Word::LookOnly);
}

/// If this fails, a family is judged that no result could decide: it would read "inconclusive" for ever.
#[test]
fn more_comparisons_need_more_blocks() {
    assert_eq!([1, 2, 3, 4, 6, 7].map(fewest_blocks), [6, 7, 7, 8, 8, 9]);
    let clear = |blocks: usize| {
        let log_ratios = (0..blocks).map(|block| 0.1 + 0.001 * block as f64).collect();
        (Sample::Paired(Paired::from_log_ratios(log_ratios)), TWO_PER_CENT)
    };
    for comparisons in 1..8 {
        let fewest = fewest_blocks(comparisons);
        let words = |blocks| {
            judge_family(&vec![clear(blocks); comparisons], Family::Primary)
                .into_iter()
                .map(|judgement| judgement.word)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(fewest), vec![Word::Better; comparisons]);
        assert_eq!(words(fewest - 1), vec![Word::LookOnly; comparisons]);
    }
}

/// One wild block: Student's t sees no difference any more, the ranks still do.
#[test]
fn where_the_methods_disagree_nothing_is_concluded() {
    let judgement = judge(
        &Paired::from_log_ratios(vec![0.03, 0.032, 0.034, 0.031, 0.033, 0.035, 0.03, 0.9]),
        TWO_PER_CENT,
    );
    assert_eq!(judgement.word, Word::Inconclusive);
    assert_eq!(judgement.disagreement, Some((Word::Inconclusive, Word::Better)));
}

/// Runs without blocks in common: the drift of the machine is in the difference, so it takes more of it.
#[test]
fn unpaired_runs_are_judged_by_student_alone() {
    let judged = |arm: [f64; 6]| {
        let sample = Unpaired::new(&[100.0, 101.0, 99.0, 100.5, 99.5, 100.0], &arm).unwrap();
        judge_family(&[(Sample::Unpaired(sample), TWO_PER_CENT)], Family::Primary).remove(0)
    };
    let better = judged([110.0, 111.0, 109.0, 110.5, 109.5, 110.0]);
    assert_eq!((better.word, better.signed_rank), (Word::Better, None));
    let open = judged([90.0, 115.0, 104.0, 97.0, 108.0, 93.0]);
    assert_eq!(open.word, Word::Inconclusive);
    assert!(open.blocks_needed.is_some_and(|blocks| blocks > 6), "{open:?}");
}

#[test]
fn the_blocks_that_are_needed_make_the_word_certain() {
    let pairs = Paired::from_log_ratios(vec![-0.04, 0.05, -0.03, 0.02, 0.03, -0.02]);
    let judgement = judge(&pairs, TWO_PER_CENT);
    assert_eq!(judgement.word, Word::Inconclusive);
    let needed = judgement.blocks_needed.unwrap();
    let student = |blocks: usize| {
        evidence::student(
            pairs.mean(),
            pairs.deviation() / (blocks as f64).sqrt(),
            (blocks - 1) as f64,
            0.02_f64.ln_1p(),
        )
    };
    assert!(student(needed).p_beyond_margin <= 0.05 && student(needed - 1).p_beyond_margin > 0.05);
}

/// Holm: with four arms that do not differ, some arm differs in at most 5 % of the experiments.
#[test]
fn a_family_of_arms_is_wrong_as_rarely_as_one() {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(7);
    let metric = Metric { direction: MORE, margin: 0.001 };
    let wrong = (0..2000).filter(|_| {
        let mut arm = || {
            let log_ratios = (0..10).map(|_| 0.02 * normal(&mut generator)).collect();
            (Sample::Paired(Paired::from_log_ratios(log_ratios)), metric)
        };
        let arms = [arm(), arm(), arm(), arm()];
        judge_family(&arms, Family::Primary)
            .iter()
            .any(|judgement| matches!(judgement.word, Word::Better | Word::Worse))
    });
    // 5 % of 2,000 and two standard errors.
    let wrong = wrong.count();
    assert!(wrong <= 120, "{wrong} of 2000");
}

/// A machine that becomes 5 % slower over the experiment and wanders, runs that vary by 3 %; each block runs both
/// arms next to each other in a random order.
fn block_pairs(generator: &mut Xoshiro256PlusPlus, blocks: usize, effect: f64, run_deviation: f64) -> Paired {
    let mut wander = 0.0;
    let runs = (2 * blocks) as f64;
    let mut run = |position: usize, effect: f64| {
        wander = 0.9 * wander + 0.005 * normal(generator);
        effect - 0.05 * position as f64 / runs + wander + run_deviation * normal(generator)
    };
    let mut log_ratios = Vec::new();
    let mut order = Xoshiro256PlusPlus::seed_from_u64(blocks as u64);
    for block in 0..blocks {
        let arm_first = order.next_u64() % 2 == 0;
        let (first, second) = if arm_first { (effect, 0.0) } else { (0.0, effect) };
        let (first, second) = (run(2 * block, first), run(2 * block + 1, second));
        log_ratios.push(if arm_first { first - second } else { second - first });
    }
    Paired::from_log_ratios(log_ratios)
}

#[test]
fn equal_arms_on_a_drifting_machine_rarely_differ_and_intervals_cover() {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(20_261_125);
    let (mut wrong, mut student, mut ranks) = (0, 0, 0);
    const EXPERIMENTS: usize = 4000;
    for _ in 0..EXPERIMENTS {
        let judgement = judge(&block_pairs(&mut generator, 10, 0.0, 0.03), TWO_PER_CENT);
        wrong += usize::from(matches!(judgement.word, Word::Better | Word::Worse));
        let covers =
            |evidence: &Evidence| evidence.interval_95.low <= 0.0 && evidence.interval_95.high >= 0.0;
        student += usize::from(judgement.student.as_ref().is_some_and(covers));
        ranks += usize::from(judgement.signed_rank.as_ref().is_some_and(covers));
    }
    let share = |count: usize| count as f64 / EXPERIMENTS as f64;
    assert!(share(wrong) <= 0.057, "{}", share(wrong));
    assert!((0.93..=0.97).contains(&share(student)), "{}", share(student));
    assert!((0.93..=0.97).contains(&share(ranks)), "{}", share(ranks));
}

#[test]
fn three_per_cent_more_is_found() {
    let plan = Plan { blocks: 10, deviation: 0.015, margin: 0.02, effect: 0.03, comparisons: 1 };
    let found = chances(plan, 4000, 3);
    assert!(found.right >= 0.9 && found.wrong == 0.0, "{found:?}");
}

/// The chance in per cent of "same" or "differs too little" without an effect, and of "better" with 3 %, for a margin
/// of 2 %. METHODOLOGY prints this table.
const POWER: [(usize, f64, f64, f64); 12] = [
    (6, 0.01, 95.0, 98.0),
    (6, 0.015, 67.0, 83.0),
    (6, 0.02, 34.0, 60.0),
    (6, 0.03, 7.0, 31.0),
    (10, 0.01, 99.0, 100.0),
    (10, 0.015, 94.0, 98.0),
    (10, 0.02, 71.0, 92.0),
    (10, 0.03, 20.0, 73.0),
    (20, 0.01, 98.0, 100.0),
    (20, 0.015, 98.0, 100.0),
    (20, 0.02, 96.0, 98.0),
    (20, 0.03, 71.0, 90.0),
];

#[test]
fn the_printed_power_is_that_of_the_whole_rule() {
    const EXPERIMENTS: usize = 2000;
    let mut off = Vec::new();
    for (row, (blocks, deviation, same, better)) in POWER.into_iter().enumerate() {
        let of = |effect: f64| {
            chances(
                Plan { blocks, deviation, margin: 0.02, effect, comparisons: 1 },
                EXPERIMENTS,
                row as u64 + 100,
            )
        };
        let (equal, more) = (of(0.0), of(0.03));
        for (seen, printed) in [(equal.too_small, same), (more.right, better)] {
            // Three standard errors of the count, and half of the last printed digit.
            let printed = printed / 100.0;
            let error = 3.0 * (printed * (1.0 - printed) / EXPERIMENTS as f64).sqrt() + 0.005;
            if (seen - printed).abs() > error {
                off.push(format!("{blocks} blocks, deviation {deviation}: {seen}, not {printed}"));
            }
        }
    }
    assert!(off.is_empty(), "{off:#?}");
}

#[test]
fn more_blocks_find_smaller_differences() {
    let smallest = |blocks| {
        smallest_detectable(Plan { blocks, deviation: 0.02, margin: 0.02, effect: 0.0, comparisons: 1 }, 0.8)
    };
    let (few, many) = (smallest(6).unwrap(), smallest(20).unwrap());
    assert!(0.02 < many && many < few && few < 0.06, "{few} {many}");
    assert_eq!(smallest(5), None);
}

/// If this fails, a plan of many comparisons promises what only one alone would find.
#[test]
fn comparisons_that_are_judged_together_need_more() {
    let plan = |comparisons| Plan { blocks: 10, deviation: 0.02, margin: 0.02, effect: 0.0, comparisons };
    let (one, eight) =
        (smallest_detectable(plan(1), 0.8).unwrap(), smallest_detectable(plan(8), 0.8).unwrap());
    assert!(eight > one * 1.1, "{one} {eight}");
    // Eight comparisons of six blocks cannot have a verdict at all.
    assert_eq!(smallest_detectable(Plan { blocks: 6, ..plan(8) }, 0.8), None);

    let ratios = [0.022, -0.026, 0.040, -0.004, 0.030, 0.008, -0.016, 0.034];
    let sample = || (Sample::Paired(Paired::from_log_ratios(ratios.to_vec())), TWO_PER_CENT);
    let needed =
        |others: &[f64]| judge_family_with(&[sample()], Family::Primary, others)[0].blocks_needed.unwrap();
    let (alone, together) = (needed(&[]), needed(&[0.5; 7]));
    assert!(together > alone, "{alone} {together}");
    assert_eq!(together, {
        let all: Vec<_> = (0..8).map(|_| sample()).collect();
        judge_family(&all, Family::Primary)[0].blocks_needed.unwrap()
    });
}

proptest! {
    #[test]
    fn a_comparison_reads_the_same_from_both_sides(values in prop::collection::vec((0.5_f64..2.0, 0.5_f64..2.0), 6..14)) {
        let (base, arm): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
        let there = judge(&Paired::new(&base, &arm).unwrap(), TWO_PER_CENT);
        let back = judge(&Paired::new(&arm, &base).unwrap(), TWO_PER_CENT);
        let mirrored = match there.word {
            Word::Better => Word::Worse,
            Word::Worse => Word::Better,
            word => word,
        };
        prop_assert_eq!(back.word, mirrored);
        prop_assert!((there.student.unwrap().estimate + back.student.unwrap().estimate).abs() < 1e-12);
    }

    #[test]
    fn the_same_input_gives_the_same_result(values in prop::collection::vec(-0.1_f64..0.1, 0..20)) {
        let judged = || format!("{:?}", judge(&Paired::from_log_ratios(values.clone()), TWO_PER_CENT));
        prop_assert_eq!(judged(), judged());
    }
}
