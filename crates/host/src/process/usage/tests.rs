//! Usage between made-up readings: sums, threads that come and go, splits.

use proptest::prelude::*;

use super::*;
use crate::process::group::{Faults, Memory};
use crate::process::text::Reaped;

fn at(ns: u64) -> Moment {
    Moment { before: Nanos(ns), after: Nanos(ns + 2) }
}

fn thread(run: u64, wait: u64, slices: u64) -> ThreadReading {
    let switches = Some(Switches { voluntary: slices, involuntary: 0 });
    let (run, wait) = (Nanos(run), Nanos(wait));
    ThreadReading { at: at(0), run, hidden: Nanos::ZERO, wait, slices, switches, named: None }
}

fn process<const N: usize>(at: Moment, run: u64, threads: [(u32, ThreadReading); N]) -> ProcessReading {
    ProcessReading {
        discards_children: false,
        pid: 7,
        started: 1,
        parent: 1,
        name: "server".to_owned(),
        uid: 0,
        at,
        run: Nanos(run),
        hidden: Nanos::ZERO,
        running: 0,
        late: Nanos::ZERO,
        has_ended: false,
        ticks: Ticks::default(),
        faults: Faults::default(),
        reaped: Reaped::default(),
        memory: Memory::NONE,
        storage: None,
        threads: threads.into_iter().collect(),
    }
}

/// If this fails, a server that starts a thread per connection seems to use next to nothing.
#[test]
fn threads_that_come_and_go_are_in_the_total() {
    let first = process(at(0), 1_000, [(7, thread(600, 10, 1)), (8, thread(400, 10, 1))]);
    // 8 ended after 50 more, 9 began and ended unseen with 200, 10 began and used 30.
    let last = process(at(100), 1_380, [(7, thread(700, 15, 3)), (10, thread(30, 2, 1))]);
    let mut used = ProcessUse::from(&first);
    used.add(&first, &last);
    assert_eq!((used.usage.run, used.unseen()), (Nanos(380), Nanos(250)));
    assert_eq!((used.usage.wait, used.usage.slices), (Nanos(7), 3));
    assert!(used.threads[&8].ended && used.threads[&10].began && !used.counts_all());
    assert_eq!(used.usage.elapsed(), Nanos(100));
}

#[test]
fn a_reused_thread_id_is_another_thread() {
    let first = process(at(0), 1_000, [(7, thread(900, 0, 1)), (8, thread(100, 9, 5))]);
    let last = process(at(100), 1_020, [(7, thread(900, 0, 1)), (8, thread(20, 1, 1))]);
    let mut used = ProcessUse::from(&first);
    used.add(&first, &last);
    assert_eq!((used.threads[&8].usage.run, used.replaced.len()), (Nanos(20), 1));
    assert_eq!((used.usage.run, used.unseen(), used.usage.wait), (Nanos(20), Nanos::ZERO, Nanos(1)));
}

#[test]
fn a_process_that_begins_within_a_span_used_everything_in_it() {
    let used = ProcessUse::of_new(&process(at(60), 40, [(7, thread(40, 3, 2))]), at(0));
    assert!(used.began && used.counts_all());
    assert_eq!((used.usage.run, used.usage.elapsed(), used.usage.wait), (Nanos(40), Nanos(60), Nanos(3)));
}

/// What a running thread hides at the ends of a span is in the error; in between it is counted.
#[test]
fn only_the_ends_of_a_span_hide_anything() {
    let hides = |at: Moment, run, hidden| ProcessReading { hidden: Nanos(hidden), ..process(at, run, []) };
    let readings = [hides(at(0), 0, 3), hides(at(50), 40, 9), hides(at(100), 90, 4)];
    let mut used = ProcessUse::from(&readings[0]);
    used.add(&readings[0], &readings[1]);
    assert_eq!(used.usage.error, Nanos(9));
    used.add(&readings[1], &readings[2]);
    assert_eq!(
        (used.usage.run, used.usage.error, used.usage.elapsed_error()),
        (Nanos(90), Nanos(4), Nanos(2))
    );
}

const TICK: Nanos = Nanos::from_millis(4);

#[test]
fn a_split_is_as_good_as_its_ticks() {
    let split = |ms, user, system| Split::of(Nanos::from_millis(ms), Ticks { user, system }, TICK);
    assert_eq!(split(8, 0, 0), None);
    let few = split(8, 1, 0).unwrap();
    assert_eq!((few.user, few.system, few.ticks), (Nanos::from_millis(8), Nanos::ZERO, 2));
    assert!(!few.is_reliable(), "{few:?}");
    let many = split(10_000, 600, 400).unwrap();
    assert_eq!((many.user, many.ticks), (Nanos::from_secs(6), 2_500));
    // 1.96 · sqrt(0.6 · 0.4 / 2500) = 1.92 %, and 0.1 % for whole hundredths of a second.
    assert!((195..=205).contains(&(many.error.0 / 1_000_000)), "{many:?}");
    assert!(many.is_reliable());
}

proptest! {
    #[test]
    fn a_split_sums_to_its_total(run in 0..u64::MAX / 2, user in 0u64..1 << 40, system in 0u64..1 << 40) {
        if let Some(split) = Split::of(Nanos(run), Ticks { user, system }, TICK) {
            prop_assert_eq!(split.user.0 + split.system.0, run);
            prop_assert!(split.error.0 <= run);
        }
    }

    /// Cutting a span into pieces loses nothing and adds nothing.
    #[test]
    fn pieces_sum_to_the_whole(steps in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40, 0u64..100), 1..20)) {
        let mut sum = (0, 0, 0);
        let readings: Vec<_> = steps.iter().map(|&(run, wait, slices)| {
            sum = (sum.0 + run, sum.1 + wait, sum.2 + slices);
            process(at(sum.0), sum.0, [(7, thread(sum.0, sum.1, sum.2))])
        }).collect();
        let whole = |parts: &[ProcessReading]| {
            let mut used = ProcessUse::from(&parts[0]);
            parts.windows(2).for_each(|pair| used.add(&pair[0], &pair[1]));
            (used.usage.run, used.usage.wait, used.usage.slices, used.unseen())
        };
        let ends = [readings[0].clone(), readings[readings.len() - 1].clone()];
        prop_assert_eq!(whole(&readings), whole(&ends));
        let mut joined = ProcessUse::from(&readings[0]);
        for pair in readings.windows(2) {
            let mut span = ProcessUse::from(&pair[0]);
            span.add(&pair[0], &pair[1]);
            joined.join(span);
        }
        let joined = (joined.usage.run, joined.usage.wait, joined.usage.slices, joined.unseen());
        prop_assert_eq!(whole(&readings), joined);
    }
}
