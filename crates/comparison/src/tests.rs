//! Comparisons of records that are made here: the verdicts themselves are tested in `stats`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use record::document::{EffectiveOption, OptionSource, State, VerdictWord};

use crate::*;
use findings::view::{Block, Outcome, View, Word};

/// A run of an open loop with this p95 in microseconds, in this block.
fn run(block: Option<usize>, p95_us: f64) -> ComparedRun {
    let absent = || Err("too few samples: p99.9 needs 3,688".to_owned());
    let mut values: BTreeMap<&'static str, Result<f64, String>> =
        ComparedMetric::all().map(|metric| (metric.name, absent())).collect();
    values.insert("response.p95", Ok(p95_us * 1000.0));
    values.insert("response.p99", Ok(p95_us * 2000.0));
    values.insert("throughput", Ok(500.0));
    ComparedRun {
        folder: PathBuf::from("runs/x"),
        block: block.map(|block| block.to_string()),
        verdict: Some(VerdictWord::Valid),
        invalid_by: None,
        state: State::Finished,
        started: String::new(),
        values,
        failures: Some((1, 1000)),
        options: BTreeMap::from([
            option("rate", "500/s"),
            option("output", "somewhere"),
            option("url", "http://127.0.0.1:8080/"),
        ]),
        url: Some("http://127.0.0.1:8080/".to_owned()),
        host: Some("client-1".to_owned()),
        tool: "parallax 0.1.0".to_owned(),
        is_open_loop: true,
    }
}

fn option(name: &str, value: &str) -> (String, EffectiveOption) {
    (name.to_owned(), EffectiveOption { value: value.to_owned(), source: OptionSource::Given })
}

/// Runs around `p95_us`, in blocks 0, 1, 2, ….
fn arm(name: &str, runs: usize, p95_us: f64) -> Arm {
    let wobble = [0.0, 4.0, -3.0, 2.0, -5.0, 1.0, 3.0, -2.0, -1.0, 5.0];
    let runs =
        (0..runs).map(|block| run(Some(block), p95_us + wobble[block % 10] * ((block + 1) as f64).sqrt()));
    Arm { name: name.to_owned(), command: None, runs: runs.collect() }
}

fn compared(arms: Vec<Arm>) -> Comparison {
    compare_arms(arms, &MetricSettings::default()).unwrap()
}

fn first_line(view: &View) -> String {
    let verdict = view.verdict.as_ref().unwrap();
    format!("{}: {}", verdict.head, verdict.summary)
}

#[test]
fn the_sentence_begins_with_the_verdict_word() {
    let view = comparison_view(&compared(vec![arm("old", 10, 1000.0), arm("new", 10, 1100.0)]));
    assert_eq!(
        first_line(&view),
        "worse: response p95 of new is 10.0 % higher than with old (95 % interval +9.9% to +10.0%, margin 5.0 %, 10 blocks)"
    );
    let view = comparison_view(&compared(vec![arm("old", 10, 1000.0), arm("new", 10, 1001.0)]));
    assert!(
        first_line(&view).starts_with("differs, too small to matter: response p95 of new is < 0.1 % higher"),
        "{}",
        first_line(&view)
    );
    assert_eq!(view.verdict.unwrap().word, Word::Valid);
}

/// If this fails, "100 % higher" stands for any factor.
#[test]
fn a_large_change_is_a_factor() {
    let line =
        |p95_us| first_line(&comparison_view(&compared(vec![arm("old", 8, 1000.0), arm("new", 8, p95_us)])));
    assert!(
        line(3250.0).starts_with("worse: response p95 of new is 3.3 times that of old (95 %"),
        "{}",
        line(3250.0)
    );
    assert!(line(1900.0).contains("is 90.0 % higher than with old"), "{}", line(1900.0));
    assert!(line(300.0).contains("is 70.0 % lower than with old"), "{}", line(300.0));
}

#[test]
fn few_records_are_only_looked_at() {
    let comparison = compared(vec![arm("old", 5, 1000.0), arm("new", 5, 1100.0)]);
    let line = first_line(&comparison_view(&comparison));
    assert!(line.starts_with("look only: ") && line.ends_with("; a verdict needs 6 per arm"), "{line}");
    let threshold = judge_conditions(&comparison, &["response.p95 worse".parse().unwrap()]).remove(0);
    assert_eq!(threshold.result, Outcome::Undecided);
    assert_eq!(threshold.because.as_deref(), Some("a verdict needs 6 records per arm"));
}

/// A rare time varies more between runs: eight records carry a verdict on p95, not on p99.
#[test]
fn a_tail_needs_ten_records() {
    let conditions: Vec<ComparisonCondition> =
        ["p95 worse", "p99 worse", "p99.9 worse"].map(|text| text.parse().unwrap()).to_vec();
    let results = |runs| {
        let comparison = compared(vec![arm("old", runs, 1000.0), arm("new", runs, 1300.0)]);
        judge_conditions(&comparison, &conditions)
            .into_iter()
            .map(|one| (one.fail_if, one.result))
            .collect::<Vec<_>>()
    };
    let named = |p95, p99| {
        [
            ("response.p95 worse", p95),
            ("response.p99 worse", p99),
            ("response.p99.9 worse", Outcome::Undecided),
        ]
        .map(|(text, result)| (text.to_owned(), result))
    };
    assert_eq!(results(8), named(Outcome::Missed, Outcome::Undecided));
    assert_eq!(results(10), named(Outcome::Missed, Outcome::Missed));
}

#[test]
fn records_without_a_block_are_unpaired() {
    let mut old = arm("old", 8, 1000.0);
    old.runs[3].block = None;
    let view = comparison_view(&compared(vec![old, arm("new", 8, 1300.0)]));
    let line = first_line(&view);
    assert!(line.starts_with("worse: ") && line.contains("8 records per arm, unpaired"), "{line}");
    assert!(notes(&view)[0].contains("not all records were made with --block"), "{:?}", notes(&view));
}

fn notes(view: &View) -> Vec<String> {
    let blocks = &view.sections.iter().find(|section| section.id == "notes").unwrap().blocks;
    blocks
        .iter()
        .map(|block| if let Block::Line(line) = block { line.text.to_string() } else { String::new() })
        .collect()
}

#[test]
fn records_pair_by_block_and_not_by_order() {
    let mut new = arm("new", 8, 1100.0);
    new.runs.reverse();
    let reversed = compared(vec![arm("old", 8, 1000.0), new]);
    let straight = compared(vec![arm("old", 8, 1000.0), arm("new", 8, 1100.0)]);
    assert_eq!(reversed.compared[0].primary, straight.compared[0].primary);
    let mut new = arm("new", 9, 1100.0);
    new.runs.remove(0);
    let left_over = compared(vec![arm("old", 8, 1000.0), new]);
    assert_eq!(left_over.compared[0].runs, 7);
    assert_eq!(notes(&comparison_view(&left_over)), ["2 records not used: no counterpart in the same block"]);
}

#[test]
fn invalid_records_are_counted_and_not_used() {
    let mut new = arm("new", 8, 1100.0);
    new.runs[0].verdict = Some(VerdictWord::Invalid);
    new.runs[1].state = State::Running;
    let comparison = compared(vec![arm("old", 8, 1000.0), new.clone()]);
    assert_eq!(comparison.compared[0].runs, 6);
    assert_eq!(notes(&comparison_view(&comparison))[0], "2 records of new not used: invalid or unfinished");
    for run in &mut new.runs {
        run.verdict = Some(VerdictWord::Invalid);
    }
    let error = compare_arms(vec![arm("old", 8, 1000.0), new], &MetricSettings::default()).unwrap_err();
    assert_eq!(error, "all 8 records of `new` are invalid or unfinished");
}

/// Figures of different experiments prove nothing, so it is the first line.
#[test]
fn another_load_is_another_experiment() {
    let mut new = arm("new", 8, 1100.0);
    for run in &mut new.runs {
        run.options.extend([option("rate", "1000/s"), option("output", "elsewhere"), option("seed", "7")]);
        run.options.extend([option("url", "http://127.0.0.1:8081/")]);
        run.url = Some("http://127.0.0.1:8081/".to_owned());
    }
    new.runs[0].options.extend([option("rate", "2000/s")]);
    let comparison = compared(vec![arm("old", 8, 1000.0), new]);
    let found: Vec<_> = comparison
        .differences
        .iter()
        .map(|one| (one.what.as_str(), one.matters, one.values.join(" | ")))
        .collect();
    assert_eq!(
        found,
        [
            ("--rate", true, "500/s | 1000/s (7), 2000/s (1)".to_owned()),
            ("url", false, "http://127.0.0.1:8080/ | http://127.0.0.1:8081/".to_owned()),
        ]
    );
    let view = comparison_view(&comparison);
    assert_eq!(first_line(&view), "not the same experiment: --rate differs between the records; see below");
    assert_eq!(view.verdict.unwrap().word, Word::Degraded);
    assert_eq!(view.sections[1].id, "differences");
}

/// A value that is only known as a bound would make the arm that is slower look equal.
#[test]
fn a_metric_that_one_record_lacks_is_not_compared() {
    let mut new = arm("new", 8, 1000.0);
    new.runs[2].values.insert("response.p95", Err("only known to be over 30.0 s".to_owned()));
    let settings = MetricSettings { primary: Some("response.p95".to_owned()), ..MetricSettings::default() };
    let comparison = compare_arms(vec![arm("old", 8, 1000.0), new], &settings).unwrap();
    assert_eq!(comparison.compared[0].primary.absent.as_deref(), Some("only known to be over 30.0 s"));
    assert_eq!(
        first_line(&comparison_view(&comparison)),
        "not compared: response p95 of new: only known to be over 30.0 s"
    );
}

/// A phase that never took time has no ratio; one that did in some records has none either.
#[test]
fn zeros_have_no_ratio() {
    let mut new = arm("new", 8, 1000.0);
    let mut old = arm("old", 8, 1000.0);
    for run in old.runs.iter_mut().chain(&mut new.runs) {
        run.values.extend([("pool_wait.mean", Ok(0.0)), ("receive.mean", Ok(0.0))]);
    }
    new.runs[0].values.insert("receive.mean", Ok(5.0));
    let comparison = compared(vec![old, new]);
    let others = &comparison.compared[0].others;
    let found = |name| others.iter().find(|judged| judged.metric.name == name);
    assert_eq!(found("pool_wait.mean"), None);
    assert_eq!(found("receive.mean").unwrap().absent.as_deref(), Some("0 in some records: no ratio"));
}

#[test]
fn margins_and_the_primary_metric_can_be_chosen() {
    let settings = MetricSettings {
        primary: Some("response.p95".to_owned()),
        margins: vec![("response.p95".to_owned(), 0.2)],
        ..MetricSettings::default()
    };
    let comparison = compare_arms(vec![arm("old", 8, 1000.0), arm("new", 8, 1100.0)], &settings).unwrap();
    let line = first_line(&comparison_view(&comparison));
    assert!(line.starts_with("differs, too small to matter: ") && line.contains("margin 20.0 %"), "{line}");
}

#[test]
fn several_arms_have_a_line_each() {
    let view =
        comparison_view(&compared(vec![arm("old", 8, 1000.0), arm("a", 8, 1100.0), arm("b", 8, 1000.0)]));
    assert_eq!(first_line(&view), "2 arms compared: the base is old");
    assert_eq!(view.sections[0].blocks.len(), 2);
}

/// If this fails, a server that answers with errors at once passes as a faster one.
#[test]
fn failures_belong_to_the_sentence() {
    let mut new = arm("new", 8, 800.0);
    for run in &mut new.runs {
        run.failures = Some((300, 1000));
    }
    let comparison = compared(vec![arm("old", 8, 1000.0), new]);
    let view = comparison_view(&comparison);
    let line = first_line(&view);
    assert!(line.starts_with("better: "), "{line}");
    assert!(line.ends_with("; but 30.0 % of its requests failed, of the base 0.1 %"), "{line}");
    assert_eq!(view.verdict.unwrap().word, Word::Degraded);
    let results = |text: &str| judge_conditions(&comparison, &[text.parse().unwrap()]).remove(0).result;
    assert_eq!(
        [results("error_share worse"), results("error_share better")],
        [Outcome::Missed, Outcome::Met]
    );
}

/// If this fails, a pipeline with two conditions stops a server that did not change twice as often as it says.
#[test]
fn a_condition_on_failures_is_judged_with_those_on_metrics() {
    let comparison = |runs: usize, failures| {
        let mut new = arm("new", runs, 1000.0);
        for run in &mut new.runs {
            run.failures = Some((300, 1000));
        }
        let settings = MetricSettings { failures, ..MetricSettings::default() };
        compare_arms(vec![arm("old", runs, 1000.0), new], &settings).unwrap()
    };
    // Of six runs that all fail more often, the signed-rank test says 2/2^6; with a metric next to it, twice that.
    let p = |runs, failures| comparison(runs, failures).compared[0].failures_differ.unwrap();
    assert!((p(6, false) - 2.0 / 64.0).abs() < 1e-9 && (p(6, true) - 4.0 / 64.0).abs() < 1e-9);
    let condition: ComparisonCondition = "error_share worse".parse().unwrap();
    let result = |runs| judge_conditions(&comparison(runs, true), std::slice::from_ref(&condition)).remove(0);
    assert_eq!(result(6).because.as_deref(), Some("a verdict needs 7 records per arm"));
    assert_eq!(result(7).result, Outcome::Missed);
}

#[test]
fn the_blocks_that_conditions_need_are_known_before() {
    let needed = |texts: &[&str], arms| {
        let conditions: Vec<ComparisonCondition> = texts.iter().map(|text| text.parse().unwrap()).collect();
        blocks_for(&conditions, None, arms)
    };
    assert_eq!(needed(&["p50 worse"], 1), 6);
    assert_eq!(needed(&["p50 worse", "p50 inconclusive"], 1), 6);
    assert_eq!(needed(&["p50 worse", "error_share worse"], 1), 7);
    assert_eq!(needed(&["p50 worse", "throughput worse"], 2), 8);
    assert_eq!(needed(&["p99 worse"], 1), 10);
}

/// Combinations of what else varies: their comparisons are one family, and what is missing is counted.
#[test]
fn the_combinations_of_an_experiment_are_judged_together() {
    let combination = |name: &str, p95: f64, runs: usize| Combination {
        name: name.to_owned(),
        arms: vec![arm("old", 8, 1000.0), arm("new", runs, p95)],
        twin: Some(arm("old (twin)", 8, 1001.0)),
        planned: vec![8, 8],
    };
    let progress =
        |committed| Progress { name: "x".to_owned(), planned: 48, committed, failures: Vec::new() };
    let all = vec![combination("c=1", 1200.0, 8), combination("c=2", 1000.0, 8)];
    let combined = compare_combinations(all, &MetricSettings::default()).unwrap();
    let view = combined_view(&combined, &progress(48));
    assert_eq!(first_line(&view), "2 comparisons of response p95: 1 same within 5.0 %, 1 worse");
    let judged = |at: usize| combined.compared[at][0].as_ref().unwrap().primary.judgement.clone().unwrap();
    assert_eq!((judged(0).fewest_blocks, judged(1).fewest_blocks), (7, 7));
    assert!(!combined.is_noisy());

    let mut spoiled = combination("c=1", 1200.0, 8);
    spoiled.arms[1].runs[3].verdict = Some(VerdictWord::Invalid);
    spoiled.arms[1].runs[3].invalid_by = Some("hiccups".to_owned());
    let combined = compare_combinations(vec![spoiled], &MetricSettings::default()).unwrap();
    let progress_of_one = Progress { planned: 24, ..progress(24) };
    let shown = format!("{:?}", combined_view(&combined, &progress_of_one).sections[0]);
    assert!(shown.contains("invalid {count}x: {cause}") && shown.contains("hiccups"), "{shown}");

    // An arm without any run does not hide the others.
    let mut all = vec![combination("c=1", 1200.0, 8), combination("c=2", 1000.0, 0)];
    all[0].twin = Some(arm("old (twin)", 8, 1300.0));
    let combined = compare_combinations(all, &MetricSettings::default()).unwrap();
    assert!(combined.compared[1][0].is_none() && combined.is_noisy());
    let view = combined_view(&combined, &progress(40));
    assert!(first_line(&view).starts_with("noise floor exceeded: "), "{}", first_line(&view));
    let shown = format!("{:?}", view.sections[0]);
    assert!(shown.contains("have no figures") && shown.contains("not made yet"), "{shown}");
    // Nor does it look like an experiment without a comparison.
    let combined =
        compare_combinations(vec![combination("", 1000.0, 0)], &MetricSettings::default()).unwrap();
    let view = combined_view(&combined, &Progress { planned: 24, ..progress(16) });
    assert!(first_line(&view).starts_with("not compared: 16 of 24 runs"), "{}", first_line(&view));
    assert!(compare_combinations(Vec::new(), &MetricSettings::default()).is_err());
}

/// A pipeline that stops for p99 has the false alarms of that metric, not those of a table of twenty.
#[test]
fn a_metric_of_a_condition_is_judged_like_the_primary_one() {
    let named = vec!["response.p99".to_owned()];
    let settings = MetricSettings { named, ..MetricSettings::default() };
    let comparison = compare_arms(vec![arm("old", 10, 1000.0), arm("new", 10, 1100.0)], &settings).unwrap();
    let names = |judged: &[Judged]| judged.iter().map(|one| one.metric.name).collect::<Vec<_>>();
    assert_eq!(comparison.compared[0].primary.metric.name, "response.p95");
    assert_eq!(names(&comparison.compared[0].named), ["response.p99"]);
    assert_eq!(names(&comparison.compared[0].others), ["throughput"]);
}

#[test]
fn arms_that_did_not_take_turns_are_reported() {
    let at = |arm: &mut Arm, times: [&str; 2]| {
        for (run, time) in arm.runs.iter_mut().zip(times) {
            run.started = format!("2026-11-25T{time}Z");
        }
    };
    let noted = |base: [&str; 2], others: [&str; 2]| {
        let (mut old, mut new) = (arm("old", 2, 1000.0), arm("new", 2, 1000.0));
        at(&mut old, base);
        at(&mut new, others);
        notes(&comparison_view(&compared(vec![old, new]))).iter().any(|note| note.contains("take turns"))
    };
    assert!(noted(["10:00:00", "10:01:00"], ["10:02:00", "10:03:00"]));
    assert!(noted(["10:02:00", "10:03:00"], ["10:00:00", "10:01:00"]));
    assert!(!noted(["10:00:00", "10:02:00"], ["10:01:00", "10:03:00"]));
}

/// If this fails, a host that finds differences where there are none is believed.
#[test]
fn a_twin_that_differs_stamps_the_whole_experiment() {
    let settings = MetricSettings::default();
    let judged = |twin_us: f64| {
        let comparison = compared(vec![arm("A", 8, 1000.0), arm("B", 8, 1200.0)]);
        let comparison = comparison.with_twin(arm("A (twin)", 8, twin_us), &settings).unwrap();
        let threshold = judge_conditions(&comparison, &["p95 worse".parse().unwrap()]).remove(0);
        (first_line(&comparison_view(&comparison)), threshold.result)
    };
    let (line, result) = judged(1002.0);
    assert!(line.starts_with("worse: response p95 of B is 20.0 % higher than with A"), "{line}");
    assert_eq!(result, Outcome::Missed);
    let (line, result) = judged(1100.0);
    assert!(
        line.starts_with("noise floor exceeded: response p95 of a second, identical A is 10.0 % higher"),
        "{line}"
    );
    assert_eq!(result, Outcome::Undecided);
}

#[test]
fn conditions_have_a_metric_and_a_word() {
    let error = |text: &str| text.parse::<ComparisonCondition>().unwrap_err();
    assert_eq!(error("worse"), "write METRIC WORD, for example `response.p99 worse`");
    assert_eq!(
        error("p99 slower"),
        "there is no verdict `slower`; there are worse, better, leaning, inconclusive, same"
    );
    assert!(error("p98 worse").starts_with("there is no metric `p98`; there are throughput, "));
    assert_eq!("p99  worse".parse::<ComparisonCondition>().unwrap().to_string(), "response.p99 worse");
}

/// If this fails, a version that crashes in every third run passes because of the runs that it survived.
#[test]
fn an_arm_that_lost_runs_decides_no_condition() {
    let judged = |invalid: usize, of_program: bool| {
        let mut new = arm("new", 12, 1000.0);
        for run in &mut new.runs[..invalid] {
            run.verdict = Some(VerdictWord::Invalid);
        }
        for run in &mut new.runs {
            run.folder = if of_program { PathBuf::new() } else { PathBuf::from("runs/x") };
        }
        let comparison = compared(vec![arm("old", 12, 1000.0), new]);
        let threshold = judge_conditions(&comparison, &["p95 worse".parse().unwrap()]).remove(0);
        (threshold.result, threshold.because.unwrap_or_default())
    };
    assert_eq!(judged(0, true).0, Outcome::Met);
    // A busy host spoils a record now and then.
    assert_eq!(judged(1, false).0, Outcome::Met);
    for (invalid, of_program) in [(1, true), (2, false)] {
        let (result, because) = judged(invalid, of_program);
        assert_eq!(result, Outcome::Undecided);
        assert!(because.contains(&format!("{invalid} of 12 runs of new are invalid")), "{because}");
    }
}

/// If this fails, a burst of failures in one run is a verdict on the version that happened to run then.
#[test]
fn failures_in_one_run_are_no_change() {
    let change = |failures: [u64; 6]| {
        let (mut old, mut new) = (arm("old", 6, 1000.0), arm("new", 6, 1000.0));
        old.runs.iter_mut().for_each(|run| run.failures = Some((0, 30_000)));
        for (run, failed) in new.runs.iter_mut().zip(failures) {
            run.failures = Some((failed, 30_000));
        }
        compared(vec![old, new]).failure_change(0)
    };
    assert_eq!(change([1_000, 0, 0, 0, 0, 0]), None);
    assert_eq!(change([160, 170, 150, 180, 165, 175]), Some(std::cmp::Ordering::Greater));
}

/// If this fails, Monday's block 1 of the old version pairs with Tuesday's block 1 of the new one.
#[test]
fn blocks_of_two_experiments_do_not_pair() {
    let pairing = |day: u32| {
        let (mut old, mut new) = (arm("old", 8, 1000.0), arm("new", 8, 1100.0));
        for (arm, day) in [(&mut old, 1), (&mut new, day)] {
            for (minute, run) in arm.runs.iter_mut().enumerate() {
                run.started = format!("2026-11-{day:02}T10:{minute:02}:{:02}Z", day % 60);
            }
        }
        compared(vec![old, new]).compared.remove(0).pairing
    };
    assert_eq!(pairing(1), Pairing::Paired { left_over: 0 });
    assert_eq!(pairing(2), Pairing::Unpaired { because: "their blocks overlap in time" });
}

/// If this fails, requests that were never answered choose a metric that does not show them.
#[test]
fn a_figure_that_is_only_known_to_be_high_is_not_passed_over() {
    let mut new = arm("new", 8, 1000.0);
    for run in &mut new.runs {
        run.values.insert("response.p50", Ok(1.0e6));
    }
    new.runs[0].values.insert("response.p95", Err("only known to be over 1.00 s".to_owned()));
    let line = first_line(&comparison_view(&compared(vec![arm("old", 8, 1000.0), new])));
    assert!(line.starts_with("not compared: response p95 of new: only known to be over"), "{line}");
}

/// If this fails, a version that was watched looks slower than one that was not.
#[test]
fn observers_of_one_arm_make_another_experiment() {
    let mut new = arm("new", 8, 1000.0);
    for (run, pid) in new.runs.iter_mut().zip(100..) {
        run.options.extend([option("watch", &pid.to_string())]);
    }
    let comparison = compared(vec![arm("old", 8, 1000.0), new.clone()]);
    assert!(comparison.differences.iter().any(|one| one.matters && one.what == "--watch"));
    let comparison = compared(vec![new.clone(), new]);
    assert!(!comparison.differences.iter().any(|one| one.matters), "the process is another each time");
}
