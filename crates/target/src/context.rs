//! What the connections of one thread share: its tally, its time, its buffer, its freezes.

use std::num::NonZeroU64;
use std::sync::Arc;

use clock::{Pairing, Shift};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

use crate::arrivals::Arrivals;
use crate::freeze::FreezeRecord;
use crate::mailbox::Shared;
use crate::tally::Tally;

pub(crate) struct Context {
    pub thread: usize,
    pub shared: Arc<Shared>,
    pub tally: Tally,
    /// The loop's last reading of the clock: after each wake-up and each write.
    pub now: Nanos,
    /// The buffer for every read of this thread.
    pub scratch: Box<[u8]>,
    pub date: Box<[u8]>,
    /// Letters may have arrived while the thread was frozen.
    pub mail: bool,
    pairing: Pairing,
    chores_due: Nanos,
    /// The next freeze of the schedule, its begin and end.
    next_freeze: u64,
    planned: Option<(Nanos, Nanos)>,
}

impl Context {
    /// Call on the thread that will use it: this sets the precision of the thread's timers.
    pub(crate) fn new(thread: usize, shared: Arc<Shared>) -> Context {
        // By default Linux may fire a timer 50 us late to save wake-ups. A kernel that refuses this makes the server
        // that much less precise, which the lateness in the truth shows.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let kept = shared.options.arrivals_kept / shared.options.threads;
        Context {
            thread,
            tally: Tally { arrivals: Arrivals::with_room(kept), ..Tally::new(shared.schedule.start) },
            now: clock::now(),
            scratch: vec![0; READ_BYTES].into_boxed_slice(),
            date: date(),
            mail: false,
            pairing: Pairing::measure(),
            chores_due: Nanos::ZERO,
            next_freeze: 0,
            planned: shared.schedule.nth(0),
            shared,
        }
    }

    /// Reads the clock; once per second also updates the date and the difference between the clocks.
    #[inline]
    pub(crate) fn tick(&mut self) {
        self.now = clock::now();
        if self.now >= self.chores_due {
            self.chores_due = self.now + Nanos::from_secs(1);
            if self.pairing.remeasure() != Shift::None {
                self.tally.clock_steps += 1;
            }
            self.date = date();
        }
    }

    /// The monotonic instant of a kernel timestamp.
    #[inline]
    pub(crate) fn to_monotonic(&self, realtime_ns: u64) -> Nanos {
        self.pairing.to_monotonic(realtime_ns)
    }

    /// When the loop must be awake for the next freeze.
    pub(crate) fn freeze_due(&self) -> Option<Nanos> {
        self.planned.map(|(begin, _)| begin)
    }

    /// Freezes if the schedule requires it.
    #[inline]
    pub(crate) fn freeze_if_due(&mut self) {
        while let Some((begin, end)) = self.planned
            && begin <= self.now
        {
            let index = self.next_freeze;
            self.next_freeze += 1;
            self.planned = self.shared.schedule.nth(self.next_freeze);
            self.freeze(Some(index), begin, end);
        }
    }

    /// Stops this thread until `end`, unless the server is stopped earlier.
    pub(crate) fn freeze(&mut self, index: Option<u64>, planned_begin: Nanos, planned_end: Nanos) {
        let begin = clock::now();
        self.sleep_until(planned_end);
        self.tick();
        let thread = self.thread;
        let record = FreezeRecord { index, thread, planned_begin, planned_end, begin, end: self.now };
        self.tally.record_freeze(record);
    }

    fn sleep_until(&mut self, end: Nanos) {
        loop {
            let left = end.saturating_sub(clock::now());
            // A poll may last 0.1 % longer than requested (`select_estimate_accuracy` in the kernel), so the end is
            // left to the precise sleep.
            let rough = left.saturating_sub(Nanos(left.0 / 500)).saturating_sub(Nanos::from_millis(1));
            if rough == Nanos::ZERO {
                return clock::sleep_until(end);
            }
            let shared = Arc::clone(&self.shared);
            let waker = shared.waker(self.thread);
            let mut waker = [PollFd::from_borrowed_fd(waker, PollFlags::IN)];
            // An interruption only makes the next round come earlier.
            let woken = poll(&mut waker, Some(&timespec(rough))).unwrap_or(0) > 0;
            if shared.is_stopping() {
                return;
            }
            if woken {
                shared.clear_waker(self.thread);
                self.mail = true;
            }
        }
    }
}

pub(crate) fn timespec(length: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (length.0 % 1_000_000_000) as _,
    }
}

fn date() -> Box<[u8]> {
    let seconds = i64::try_from(clock::wall().0 / 1_000_000_000).unwrap_or(0);
    let text = jiff::Timestamp::from_second(seconds)
        .and_then(|now| jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&now))
        .expect("64 bits of nanoseconds since 1970 end in 2554, which jiff can print");
    text.into_bytes().into_boxed_slice()
}

/// Reads a pipeline of several hundred requests at once.
const READ_BYTES: usize = 64 << 10;
