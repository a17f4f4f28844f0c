//! What one worker measures, divided into intervals that are handed over. Nothing is shared while recording.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use host::RunQueue;
use record::{Interval, KeptRequest};
use units::Nanos;

use crate::keeping::Keeper;

/// The boundaries between the intervals of a run: multiples of `every`, and the end of the window, so that responses
/// within the window can be distinguished from those of the drain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boundaries {
    every: Nanos,
    window: Option<Nanos>,
}

impl Boundaries {
    pub(crate) fn new(every: Nanos, window: Option<Nanos>) -> Boundaries {
        // A window that ends on a multiple adds no boundary.
        Boundaries { every, window: window.filter(|window| window.0 % every.0 != 0) }
    }

    /// Where interval `index` begins, as an offset from the run's start.
    pub(crate) fn begin(&self, index: u64) -> Nanos {
        let Some(window) = self.window else { return Nanos(self.every.0 * index) };
        let whole = window.0 / self.every.0;
        match index {
            i if i <= whole => Nanos(self.every.0 * i),
            i if i == whole + 1 => window,
            i => Nanos(self.every.0 * (i - 1)),
        }
    }

    /// The index of the interval that contains `offset`, searching from `from` on.
    pub(crate) fn index_at(&self, offset: Nanos, from: u64) -> u64 {
        let mut index = from.max((offset.0 / self.every.0).saturating_sub(1));
        while self.begin(index + 1) <= offset {
            index += 1;
        }
        index
    }
}

/// One worker's interval on its way to the collector, or the last part of a worker that failed.
#[derive(Debug)]
pub(crate) struct Part {
    pub worker: usize,
    /// `None` in the last part of a worker that failed.
    pub interval: Option<Box<Interval>>,
    /// This worker sends nothing more for intervals before this index.
    pub through: u64,
}

/// The current interval of one worker, and the channels to and from the collector.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub current: Box<Interval>,
    worker: usize,
    boundaries: Boundaries,
    start: Nanos,
    /// The index of the first interval after the current one.
    next: u64,
    cpu_before: Nanos,
    /// `None` if the kernel does not account for it.
    run_queue: Option<RunQueue>,
    waited_before: Option<Nanos>,
    outstanding: Outstanding,
    /// Whether a response came in an interval before the current one.
    answered: bool,
    /// `None` if single requests are not kept.
    keeper: Option<Keeper>,
    /// `None` once the last interval was handed over: the collector waits for the end of all senders.
    parts: Option<SyncSender<Part>>,
    emptied: Receiver<Box<Interval>>,
}

impl Recorder {
    pub(crate) fn new(
        worker: usize,
        boundaries: Boundaries,
        keeper: Option<Keeper>,
        parts: SyncSender<Part>,
        emptied: Receiver<Box<Interval>>,
    ) -> Recorder {
        Recorder {
            current: emptied.try_recv().unwrap_or_default(),
            worker,
            boundaries,
            start: Nanos::ZERO,
            next: 1,
            cpu_before: Nanos::ZERO,
            run_queue: None,
            waited_before: None,
            outstanding: Outstanding::default(),
            answered: false,
            keeper,
            parts: Some(parts),
            emptied,
        }
    }

    /// Begins interval 0 at the run's zero. Must be called on the worker's own thread.
    pub(crate) fn begin(&mut self, start: Nanos, thread_cpu: Nanos) {
        self.start = start;
        self.cpu_before = thread_cpu;
        self.run_queue = RunQueue::of_this_thread().ok();
        self.waited_before = self.run_queue.as_ref().and_then(RunQueue::waited);
        self.outstanding.since = start;
    }

    /// Keeps a request that has ended. `request` is called only if requests are kept.
    ///
    /// # Cost
    ///
    /// One branch in a run that keeps none.
    #[inline]
    pub(crate) fn keep(&mut self, request: impl FnOnce() -> KeptRequest) {
        if let Some(keeper) = &mut self.keeper {
            keeper.offer(&request());
        }
    }

    /// Whether single requests are kept.
    pub(crate) fn keeps(&self) -> bool {
        self.keeper.is_some()
    }

    /// The number in the run of this worker's connection `slot`, given the number of `workers`.
    #[inline]
    pub(crate) fn connection(&self, slot: u32, workers: u64) -> u32 {
        slot * workers as u32 + self.worker as u32
    }

    /// `count` requests were offered to the kernel at `at`.
    ///
    /// # Cost
    ///
    /// A multiplication: the clock has been read already.
    #[inline]
    pub(crate) fn note_offered(&mut self, count: u64, at: Nanos) {
        self.outstanding.change(self.outstanding.count + count, at);
    }

    /// `count` of the requests that were offered ended at `at`.
    #[inline]
    pub(crate) fn note_ended(&mut self, count: u64, at: Nanos) {
        self.outstanding.change(self.outstanding.count.saturating_sub(count), at);
    }

    /// Whether any response has come since the run began.
    pub(crate) fn has_response(&self) -> bool {
        self.answered || self.current.has_response()
    }

    /// When the current interval ends.
    #[inline]
    pub(crate) fn ends_at(&self) -> Nanos {
        self.start + self.boundaries.begin(self.next)
    }

    /// Hands the current interval over and begins the one that contains `now`.
    ///
    /// If the collector is behind, the current interval is extended instead: a worker never waits, and nothing is lost.
    pub(crate) fn roll(&mut self, now: Nanos, outstanding: u64, thread_cpu: Nanos) {
        let next = self.boundaries.index_at(now.saturating_sub(self.start), self.current.index);
        self.close(next, outstanding, thread_cpu, self.start + self.boundaries.begin(next));
        // Also set if the interval cannot be handed over: trying again in every turn would waste the core.
        self.next = next + 1;
        let mut fresh = self.emptied.try_recv().unwrap_or_default();
        fresh.index = next;
        fresh.start = self.boundaries.begin(next);
        let interval = mem::replace(&mut self.current, fresh);
        let part = Part { worker: self.worker, interval: Some(interval), through: next };
        let Some(parts) = &self.parts else { return };
        if let Err(TrySendError::Full(part) | TrySendError::Disconnected(part)) = parts.try_send(part) {
            self.current = part.interval.unwrap_or_default();
        }
    }

    /// Hands over the last interval and the last requests kept, waiting for their readers if necessary. Returns how
    /// many requests were dropped for lack of room.
    pub(crate) fn finish(&mut self, now: Nanos, thread_cpu: Nanos) -> u64 {
        let next = self.boundaries.index_at(now.saturating_sub(self.start), self.current.index) + 1;
        self.close(next, 0, thread_cpu, now);
        self.current.length = now.saturating_sub(self.start + self.current.start);
        let interval = Some(mem::take(&mut self.current));
        let part = Part { worker: self.worker, interval, through: u64::MAX };
        if let Some(parts) = self.parts.take() {
            // A collector that is gone has failed and reports that itself.
            let _ = parts.send(part);
        }
        self.keeper.take().map_or(0, Keeper::finish)
    }

    fn close(&mut self, next: u64, outstanding: u64, thread_cpu: Nanos, end: Nanos) {
        let current = &mut self.current;
        self.answered |= current.has_response();
        current.length = self.boundaries.begin(next) - current.start;
        current.counts.outstanding = outstanding;
        current.worker_cpu += thread_cpu.saturating_sub(self.cpu_before);
        current.worker_cpu_max = current.worker_cpu.saturating_sub(current.worker_spin);
        self.cpu_before = thread_cpu;
        let waited = self.run_queue.as_ref().and_then(RunQueue::waited);
        if let Some((now, before)) = waited.zip(self.waited_before) {
            current.run_queue = Some(current.run_queue.unwrap_or_default() + now.saturating_sub(before));
        }
        self.waited_before = waited;
        let spent = self.outstanding.take(end);
        current.outstanding_time = Some(current.outstanding_time.unwrap_or(0) + spent);
    }
}

/// The number of requests offered to the kernel and not ended, integrated over time.
#[derive(Debug, Default)]
struct Outstanding {
    count: u64,
    since: Nanos,
    /// Signed, since instants do not always increase: the end of a response can be reported after the begin of a later
    /// request, and then subtracts the excess.
    time: i128,
}

impl Outstanding {
    #[inline]
    fn change(&mut self, count: u64, at: Nanos) {
        self.time += i128::from(self.count) * (i128::from(at.0) - i128::from(self.since.0));
        (self.count, self.since) = (count, at);
    }

    /// Returns the integral up to `at` and restarts it there.
    fn take(&mut self, at: Nanos) -> u128 {
        self.change(self.count, at);
        u128::try_from(std::mem::take(&mut self.time)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_end_is_a_boundary() {
        let boundaries = Boundaries::new(Nanos::from_secs(1), Some(Nanos::from_millis(2_500)));
        let begins: Vec<_> = (0..6).map(|index| boundaries.begin(index).0 / 1_000_000).collect();
        assert_eq!(begins, [0, 1_000, 2_000, 2_500, 3_000, 4_000]);
        for (ms, index) in [(0, 0), (999, 0), (1_000, 1), (2_499, 2), (2_500, 3), (2_999, 3), (3_000, 4)] {
            assert_eq!(boundaries.index_at(Nanos::from_millis(ms), 0), index, "{ms} ms");
        }
    }

    #[test]
    fn outstanding_requests_are_counted_by_the_time_they_were() {
        let mut outstanding = Outstanding { since: Nanos(100), ..Outstanding::default() };
        for (count, at) in [(1, 110), (2, 120), (1, 150)] {
            outstanding.change(count, Nanos(at));
        }
        assert_eq!(outstanding.take(Nanos(200)), 10 + 2 * 30 + 50);
        // A second request begins at 210; the end of the first, at 205, is reported after that.
        outstanding.change(2, Nanos(210));
        outstanding.change(1, Nanos(205));
        assert_eq!(outstanding.take(Nanos(300)), 5 + 90 + 5 - 5);
    }

    #[test]
    fn a_whole_window_adds_no_boundary() {
        let boundaries = Boundaries::new(Nanos::from_secs(1), Some(Nanos::from_secs(2)));
        assert_eq!(boundaries.begin(3), Nanos::from_secs(3));
        assert_eq!(boundaries.index_at(Nanos::from_secs(7), 2), 7);
    }
}
