//! The loop: where intervals end, and what ends it.

use std::thread;

use super::*;

/// Steps every millisecond, and is over after this many steps.
struct Steps {
    left: u32,
    /// Ignores a request to stop: steps and closings go on.
    is_deaf: bool,
    pause: Nanos,
    intervals: Vec<(Nanos, Nanos, bool)>,
}

impl Steps {
    fn new(left: u32) -> Steps {
        Steps { left, is_deaf: false, pause: Nanos::ZERO, intervals: Vec::new() }
    }

    fn run(&mut self, closing: Closing, until: Nanos, stop: &AtomicBool) -> Nanos {
        let from = clock::now();
        let rhythm =
            Rhythm { from, every: Nanos::from_millis(10), until: from.saturating_add(until), closing };
        let closed = conduct(self, &rhythm, stop).unwrap();
        assert_eq!(self.intervals.first().unwrap().0, from);
        assert!(self.intervals.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", self.intervals);
        let (last, before) = self.intervals.split_last().unwrap();
        assert!(last.2 && last.1 == closed && before.iter().all(|interval| !interval.2));
        closed - from
    }
}

impl Observer for Steps {
    fn due(&mut self, now: Nanos, _: Nanos) -> Nanos {
        now + Nanos::from_millis(1)
    }

    fn step(&mut self, stopped: bool) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0 || stopped && !self.is_deaf
    }

    fn close(&mut self, from: Nanos, to: Nanos, is_last: bool) -> anyhow::Result<()> {
        self.intervals.push((from, to, is_last));
        clock::sleep_until(clock::now() + self.pause);
        Ok(())
    }
}

static GO_ON: AtomicBool = AtomicBool::new(false);

/// If this fails, an interval that is closed late moves or swallows those after it.
#[test]
fn intervals_on_a_grid_end_where_they_were_due() {
    let mut steps = Steps { pause: Nanos::from_millis(15), ..Steps::new(u32::MAX) };
    let length = steps.run(Closing::OnGrid, Nanos::from_millis(35), &GO_ON);
    assert_eq!(length, Nanos::from_millis(35));
    let lengths: Vec<u64> = steps.intervals.iter().map(|(from, to, _)| (*to - *from).0 / 1_000_000).collect();
    assert_eq!(lengths, [10, 10, 10, 5]);
}

#[test]
fn intervals_off_a_grid_end_when_they_are_closed() {
    let mut steps = Steps { pause: Nanos::from_millis(15), ..Steps::new(u32::MAX) };
    let length = steps.run(Closing::Now, Nanos::from_millis(35), &GO_ON);
    assert!(length >= Nanos::from_millis(35));
    assert!(steps.intervals.iter().rev().skip(1).all(|(from, to, _)| *to - *from >= Nanos::from_millis(10)));
}

#[test]
fn an_observer_that_is_over_closes_the_interval_in_progress() {
    let mut steps = Steps::new(3);
    let length = steps.run(Closing::OnGrid, Nanos::MAX, &GO_ON);
    assert!(length >= Nanos::from_millis(3) && steps.left == 0);
}

/// If this fails, Ctrl-C waits for the end of an interval, or a command that does not end keeps a CPU busy.
#[test]
fn a_request_to_stop_wakes_the_loop_once() {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let asks = thread::spawn(move || {
        clock::sleep_until(clock::now() + Nanos::from_millis(5));
        asked.store(true, Ordering::Relaxed);
    });
    assert!(Steps::new(u32::MAX).run(Closing::OnGrid, Nanos::from_secs(60), &stop) < Nanos::from_secs(30));
    asks.join().unwrap();
    let mut deaf = Steps { is_deaf: true, ..Steps::new(20) };
    let length = deaf.run(Closing::Now, Nanos::MAX, &stop);
    assert!(length >= Nanos::from_millis(20), "{length}");
}
