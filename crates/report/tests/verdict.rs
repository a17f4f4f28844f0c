//! The first line of a report: how much of the audit was made.

mod fixture;

use fixture::{MS, Run, US, book_ok, kept};
use record::document::State;
use report::Style;

/// If this fails, a check that was not made reads as one that held.
#[test]
fn what_was_not_checked_is_in_the_first_line() {
    let mut run = Run::open(100.0, 8, 3);
    for _ in 0..3 {
        run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(US, US, MS))));
    }
    let first = |run: &Run| run.text(Style::PLAIN).lines().next().map(str::to_owned);
    run.finish(State::Finished);
    let not_made = "not made: drift, independence (2 of 8 full seconds)";
    assert_eq!(first(&run), Some(format!("valid: all checks that were made passed; {not_made}")));
    run.total.counts.out_of_descriptors = 1;
    run.finish(State::Finished);
    assert_eq!(first(&run), Some(format!("degraded: one check failed; {not_made}")));
}

/// If this fails, the reasons fill the screen before anything is stated.
#[test]
fn reasons_that_have_no_room_stand_in_the_record_alone() {
    let mut run = Run::open(100.0, 8, 3);
    run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(US, US, MS))));
    run.finish(State::Finished);
    let text = run.text(Style { width: 80, ..Style::PLAIN });
    assert_eq!(
        text.lines().next(),
        Some("valid: all checks that were made passed; not made: drift, independence")
    );
}
