//! From a folder back to the same document, and the document as JSON.

mod fixture;

use findings::{Condition, Figures, rebuild};
use fixture::{MS, Run, US, book_failure, book_ok, timeline};
use proptest::prelude::*;
use record::document::{Document, JourneyFacts, JourneyResult, Kept, State, ThresholdResult, VerdictWord};
use record::{Check, Failure, FolderWriter, Outcome, Phase};
use units::Nanos;

/// One request: the lengths of its phases in microseconds, or a failure.
type Planted = (Vec<Option<u64>>, bool);

fn planted(requests: &[Planted], state: State) -> Run {
    let mut run = Run::open(100.0, 4, 3);
    for second in requests.chunks(requests.len().div_ceil(3).max(1)) {
        run.second(|interval| {
            for (phases, ok) in second {
                let phases: [Option<u64>; Phase::COUNT] =
                    std::array::from_fn(|i| phases[i].map(|us| us * US));
                if *ok {
                    book_ok(interval, &timeline(phases));
                } else {
                    book_failure(interval, Failure::new(Outcome::RequestTimeout, Phase::Wait), 900 * MS);
                }
            }
        });
    }
    run.finish(state);
    run
}

fn some_requests() -> Vec<Planted> {
    (0..300)
        .map(|i| {
            (
                vec![Some(1), Some(2), None, None, None, None, Some(9), Some(1_000 + i), Some(3), Some(4)],
                i % 50 != 7,
            )
        })
        .collect()
}

/// Writes the run as the engine does: a document in state running, the intervals, and the end if `finish` is true.
fn written(run: &Run, finish: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut running = run.document.clone();
    running.state = State::Running;
    (running.results, running.verdict) = (None, None);
    (running.time.elapsed_ns, running.time.window_ns) = (None, None);
    let mut writer = FolderWriter::create(folder.path(), &running).expect("an empty folder");
    for (interval, second) in run.intervals.iter().zip(&run.seconds) {
        writer.append(interval, second.process_cpu_ns.map(Nanos)).expect("room on the disk");
    }
    if finish {
        writer.finish(&run.document).expect("room on the disk");
    }
    folder
}

#[test]
fn a_finished_run_is_rebuilt_as_it_was() {
    for state in [State::Finished, State::Interrupted] {
        let run = planted(&some_requests(), state);
        let folder = written(&run, true);
        let rebuilt = rebuild(record::read(folder.path()).unwrap());
        assert_eq!(rebuilt.differences, [""; 0]);
        assert_eq!(rebuilt.document.verdict, run.document.verdict);
        assert_eq!(rebuilt.document.results, run.document.results);
    }
}

/// If this fails, differences are reported for a correct record of a scenario, and its journeys are lost.
#[test]
fn what_became_of_journeys_and_of_kept_requests_is_rebuilt() {
    let mut run = Run::closed(1, 1, 0);
    run.document.subject.targets = ["login", "buy", "pay"].map(str::to_owned).into();
    run.document.subject.journeys = vec![JourneyFacts { name: "shop".to_owned(), first: 0, last: 2 }];
    run.second(|interval| {
        for (kind, ok) in [(0, true), (1, true), (2, true), (0, true), (1, false), (0, true)] {
            let request = fixture::kept(0, 0, MS);
            if ok {
                book_ok(interval, &request);
                interval.kind(kind).record_ok(&request);
            } else {
                let failure = Failure::new(Outcome::AppError, Phase::Receive);
                book_failure(interval, failure, MS);
                interval.kind(kind).record_failure(failure, Nanos(MS));
            }
        }
    });
    run.finish(State::Finished);
    let results = run.document.results.as_mut().unwrap();
    let shop = JourneyResult {
        name: "shop".to_owned(),
        started: 3,
        completed: 1,
        cut: 2,
        failed: None,
        retries: 0,
        response: None,
    };
    assert_eq!(results.journeys, [shop]);
    results.kept = Some(Kept { requests: "all".to_owned(), rows: 6, lost: 0 });
    let rebuilt = rebuild(record::read(written(&run, true).path()).unwrap());
    assert_eq!(rebuilt.differences, [""; 0]);
    assert_eq!(rebuilt.document.results, run.document.results);
}

#[test]
fn a_document_that_disagrees_with_its_histograms_is_told_apart() {
    let mut run = planted(&some_requests(), State::Finished);
    run.document.results.as_mut().unwrap().service.sum_ns += 1;
    run.document.verdict.as_mut().unwrap().word = VerdictWord::Invalid;
    let folder = written(&run, true);
    let rebuilt = rebuild(record::read(folder.path()).unwrap());
    assert_eq!(rebuilt.differences, ["results.service.sum_ns", "verdict.word"]);
    assert_ne!(rebuilt.document.results, run.document.results);
}

/// If this fails, a record that somebody edited passes a pipeline, or its limits are lost with the process.
#[test]
fn thresholds_are_judged_again_from_the_histograms() {
    let mut run = planted(&some_requests(), State::Finished);
    let conditions: Vec<Condition> =
        ["response.p50 > 1ms", "error_share > 1%"].map(|text| text.parse().unwrap()).into();
    let results = run.document.results.clone().unwrap();
    let window = Nanos(run.document.time.window_ns.unwrap());
    let subject = run.document.subject.clone();
    let figures = Figures { total: &run.total, results: &results, subject: &subject, window };
    run.document.thresholds = conditions.iter().map(|condition| condition.threshold(&figures)).collect();
    assert!(run.document.thresholds.iter().all(|threshold| threshold.result == ThresholdResult::Missed));
    let folder = written(&run, true);
    let mut rebuilt = rebuild(record::read(folder.path()).unwrap());
    assert_eq!((rebuilt.differences.len(), &rebuilt.document.thresholds), (0, &run.document.thresholds));
    rebuilt.judge(&["response.p50 > 1s".parse().unwrap()]);
    let results: Vec<_> = rebuilt.document.thresholds.iter().map(|threshold| threshold.result).collect();
    assert_eq!(results, [ThresholdResult::Met]);

    run.document.thresholds[0].result = ThresholdResult::Met;
    let folder = written(&run, true);
    let rebuilt = rebuild(record::read(folder.path()).unwrap());
    assert_eq!(rebuilt.differences, ["thresholds[0].result"]);
    assert_eq!(rebuilt.document.thresholds[0].result, ThresholdResult::Missed);
}

#[test]
fn a_cut_off_run_is_settled_and_judged() {
    let mut run = planted(&some_requests(), State::Finished);
    // Three more became due in the last second, and nothing is known about them.
    let last = run.intervals.len() - 1;
    run.intervals[last].counts.scheduled += 3;
    run.seconds[last].scheduled += 3;
    let folder = written(&run, false);
    let rebuilt = rebuild(record::read(folder.path()).unwrap());
    let document = rebuilt.document;
    assert_eq!(document.state, State::Recovered);
    let verdict = document.verdict.clone().unwrap();
    assert_eq!(verdict.word, VerdictWord::Degraded);
    assert!(verdict.findings.iter().any(|finding| finding.check == Check::CutOff), "{verdict:?}");
    let results = document.results.clone().unwrap();
    assert_eq!(results.totals.scheduled, results.totals.ok + results.totals.failed);
    assert!(results.outcomes.iter().any(|row| row.outcome == "in_flight" && row.count == 3));
    assert_eq!(document.time.window_ns, Some(3_000 * MS));
}

#[test]
fn json_is_the_document_and_fits_its_schema() {
    let schema = serde_json::to_value(schemars::schema_for!(Document)).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut empty = Run::closed(1, 1, 0);
    empty.finish(State::Interrupted);
    for run in [planted(&some_requests(), State::Finished), empty, Run::open(1.0, 1, 1)] {
        let mut out = Vec::new();
        report::json(&run.document, &mut out).unwrap();
        let value = serde_json::from_slice(&out).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0]);
        assert!(out.ends_with(b"}\n"));
        assert_eq!(serde_json::from_value::<Document>(value).unwrap(), run.document);
    }
}

fn requests() -> impl Strategy<Value = Vec<Planted>> {
    let phase = proptest::option::of(0u64..2_000_000);
    let request = (proptest::collection::vec(phase, Phase::COUNT), proptest::bool::weighted(0.9));
    proptest::collection::vec(request, 1..80)
}

proptest! {
    // Each case writes or adds dozens of histograms.
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// If this fails, the table of phases does not add up to the response time.
    #[test]
    fn phase_shares_sum_to_one(requests in requests()) {
        let results = planted(&requests, State::Finished).document.results.unwrap();
        let shares: Vec<f64> = results.phases.iter().filter_map(|phase| phase.share).collect();
        if results.response.sum_ns > 0 {
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        }
        for phase in &results.phases {
            prop_assert_eq!(phase.distribution.is_some(), phase.absent.is_none());
        }
        prop_assert_eq!(results.totals.scheduled, results.outcomes.iter().map(|row| row.count).sum::<u64>());
    }

    /// If this fails, a folder does not contain what was printed.
    #[test]
    fn whatever_was_measured_is_rebuilt(requests in requests()) {
        let run = planted(&requests, State::Finished);
        let folder = written(&run, true);
        let rebuilt = rebuild(record::read(folder.path()).unwrap());
        prop_assert_eq!(rebuilt.differences, [""; 0]);
        prop_assert_eq!(rebuilt.document.results.unwrap().response, run.document.results.unwrap().response);
    }
}
