//! The first lines of a report: the figures, the reasons for the verdict, and how much of the audit was made.

mod fixture;

use findings::view::{Block, Cell, Value};
use fixture::{MS, Run, US, book_failure, book_ok, failing, good, kept};
use record::document::{JourneyFacts, State};
use record::{Failure, Outcome, Phase};
use report::Style;

/// If this fails, a check that was not made looks like one that passed.
#[test]
fn what_was_not_checked_is_below_the_figures() {
    let mut run = Run::open(100.0, 8, 3);
    for _ in 0..3 {
        run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(US, US, MS))));
    }
    let lines = |run: &Run| run.text(Style::PLAIN).lines().map(str::to_owned).collect::<Vec<_>>();
    run.finish(State::Finished);
    let not_made = "  checks not made: drift, independence (2 full seconds, needs 8)";
    let valid = lines(&run);
    assert_eq!((valid[0].as_str(), valid[3].as_str()), ("valid: 100/s ok of 100/s requested", not_made));
    run.total.counts.out_of_descriptors = 1;
    run.finish(State::Finished);
    let degraded = lines(&run);
    assert!(degraded[0].starts_with("degraded: 100/s ok"), "{degraded:?}");
    assert!(degraded[3].starts_with("  descriptors: "), "{degraded:?}");
    assert_eq!(degraded[4], not_made);
}

/// If this fails, readers have to look for the figures, or take them without knowing whether to trust them.
#[test]
fn word_rate_response_and_errors_are_the_first_three_lines() {
    for (run, lines) in [
        (
            good(),
            [
                "valid: 1000/s ok of 1000/s requested",
                "response  p50 1.10 ms   p90 1.78 ms   p99 21.3 ms   max 25.3 ms",
                "errors    0 of 30000 requests",
            ],
        ),
        (
            failing(),
            [
                "valid: 488/s ok of 500/s requested",
                "response  p50 5.55 ms   p90 6.77 ms   p99 > 1.00 s   max > 1.00 s",
                "errors    231 of 10000 requests (2.3 %)",
            ],
        ),
    ] {
        for width in [60, 80, 100] {
            let text = run.text(Style { width, ..Style::PLAIN });
            assert_eq!(text.lines().take(3).collect::<Vec<_>>(), lines);
        }
    }
}

/// If this fails, the reasons fill the screen and push the phases below it.
#[test]
fn reasons_are_one_line_each_and_whole_with_details() {
    let run = good();
    let lines = |style: Style| run.text(style).lines().map(str::to_owned).collect::<Vec<_>>();
    let short = lines(Style::PLAIN);
    assert!(short[3].starts_with("  independence (note): ") && short[3].ends_with('…'), "{short:?}");
    assert_eq!(short[4], "");
    let whole = lines(Style { details: true, ..Style::PLAIN });
    assert!(whole.iter().any(|line| line.contains("run longer,")), "{whole:?}");
    assert!(whole.iter().any(|line| line.contains("limit: 72 for p95")), "{whole:?}");
    assert!(
        whole.iter().any(|line| line.contains("response time with 95 % confidence intervals")),
        "{whole:?}"
    );
}

/// If this fails, the rate of journeys and single requests together is compared with that of one of them.
#[test]
fn a_mixed_scenario_is_not_compared_with_the_rate_of_both() {
    for (last, first_line, chart) in [
        (1, "valid: journeys 33.3/s of 100/s requested; requests 100/s ok", ", 100/s requested"),
        (0, "valid: 100/s ok", "ok per second\n"),
    ] {
        let mut run = Run::open(100.0, 8, 3);
        run.document.subject.request_kinds = 2;
        run.document.subject.targets = ["login", "buy"].map(str::to_owned).into();
        run.document.subject.journeys = vec![JourneyFacts { name: "shop".to_owned(), first: 0, last }];
        for _ in 0..3 {
            run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(US, US, MS))));
        }
        run.finish(State::Finished);
        run.document.results.as_mut().unwrap().totals.journeys_per_s = Some(100.0 / 3.0);
        let text = run.text(Style::PLAIN);
        assert_eq!(text.lines().next(), Some(first_line));
        assert!(text.contains(chart), "{text}");
    }
}

/// If this fails, a mean or a maximum without the requests that got no response looks exact.
#[test]
fn mean_and_maximum_are_lower_bounds_if_a_request_got_no_response() {
    let mut run = Run::open(100.0, 8, 1);
    run.second(|interval| {
        (0..99).for_each(|_| book_ok(interval, &kept(0, 0, 2_000 * MS)));
        book_failure(interval, Failure::new(Outcome::RequestTimeout, Phase::Wait), 1_000 * MS);
    });
    run.finish(State::Finished);
    // 99 requests of 2.00 s and one that was given up after 1.00 s.
    let mean_ns = (99 * run.document.results.as_ref().unwrap().response.mean_ns.unwrap() + 1_000 * MS) / 100;
    let view = findings::run_view(&run.report());
    let mut blocks = view.sections.into_iter().flat_map(|section| section.blocks);
    let response = blocks.find_map(|block| match block {
        Block::Distribution(response) => Some(response),
        _ => None,
    });
    assert_eq!(response.unwrap().mean, Cell::Above(Value::Ns(mean_ns)));
    assert!(run.text(Style::PLAIN).contains("max > 2.00 s"));
}
