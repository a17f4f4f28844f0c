//! What was seen of a server under a budget, and the estimates that follow for the whole time.

use record::observation::watch::{EstimatedRange, SeenSpan, WatchLine, Windows};
use record::{Durations, Served};
use stats::{Estimate, SeenTime, WindowSample};
use units::Nanos;

/// A window that has ended, by the kernel's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenWindow {
    pub from: Nanos,
    pub until: Nanos,
    /// The time that it stands for.
    pub stands_for: Nanos,
    /// Requests without a response.
    pub unanswered: u64,
    /// Bytes that the server read in it, by the kernel's counters.
    pub bytes: u64,
}

/// Times at the server, by the windows that they were seen in.
pub struct SeenTimes {
    sample: WindowSample,
    /// Of the requests since the last window, or since [`SeenTimes::add_everything`].
    latest: Durations,
    /// How much of what was seen is in `sample`, and how much of that was in an interval.
    everything: Nanos,
    in_windows: Nanos,
    reported: Nanos,
    /// Bytes that the server read while not everything was counted, and the length of that time.
    bytes: (u64, Nanos),
    bytes_in_windows: u64,
    /// Why these are not all that it read.
    flaw: Option<String>,
    /// Requests that came over no TCP connection.
    local: u64,
    /// The times that were seen since [`SeenTimes::take_interval`].
    spans: Vec<SeenSpan>,
    /// The record's zero by the kernel's clock.
    zero: Nanos,
}

impl SeenTimes {
    /// Nothing was seen so far. `zero`: the record's, by the kernel's clock.
    pub fn new(zero: Nanos) -> SeenTimes {
        SeenTimes {
            sample: WindowSample::default(),
            latest: Durations::new(),
            everything: Nanos::ZERO,
            in_windows: Nanos::ZERO,
            reported: Nanos::ZERO,
            bytes: (0, Nanos::ZERO),
            bytes_in_windows: 0,
            flaw: None,
            local: 0,
            spans: Vec::new(),
            zero,
        }
    }

    /// Adds a request.
    pub fn add(&mut self, served: &Served) {
        self.local += u64::from(served.peer.is_none());
        self.latest.record(served.response());
    }

    /// The requests that were added are those of a window. `counts_all`: those without a response are among those that
    /// are counted.
    pub fn add_window(&mut self, window: &SeenWindow, counts_all: bool) {
        let length = window.until - window.from;
        let mut seen = self.take(length, window.stands_for);
        seen.amount = window.bytes as f64;
        if counts_all && window.unanswered > 0 {
            seen.values.push((u64::MAX, window.unanswered));
        }
        self.sample.add_window(&seen);
        self.in_windows += length;
        self.bytes_in_windows += window.bytes;
        self.add_span(window.from, window.until);
    }

    /// The requests that were added are those of the time in which everything was counted: `everything` so far, and until
    /// `until`.
    pub fn add_everything(&mut self, everything: Nanos, until: Nanos) {
        let length = everything.saturating_sub(self.everything);
        if length == Nanos::ZERO && self.latest.is_empty() {
            return;
        }
        let seen = self.take(length, length);
        self.sample.add_everything(&seen);
        self.everything += length;
        self.add_span(until - length, until);
    }

    /// Adds bytes that the server read in a time while not everything was counted, in windows and between them.
    pub fn add_bytes(&mut self, bytes: u64, time: Nanos) {
        self.bytes.0 += bytes;
        self.bytes.1 += time;
    }

    /// What the server read outside of all windows, with the length of that time; or why the bytes are not all that it
    /// read: then the rate follows from time.
    pub fn add_outside(&mut self, read: Result<(u64, Nanos), String>) {
        match read {
            Ok((bytes, time)) => self.add_bytes(bytes, time),
            Err(why) => self.flaw = Some(why),
        }
    }

    fn add_span(&mut self, from: Nanos, until: Nanos) {
        let of_record = |at: Nanos| at.saturating_sub(self.zero).0;
        if from < until {
            self.spans.push(SeenSpan { from_ns: of_record(from), until_ns: of_record(until) });
        }
    }

    /// Adds how much was seen since the last call.
    pub fn take_interval(&mut self, line: &mut WatchLine) {
        let seen = self.everything + self.in_windows;
        let before = std::mem::replace(&mut self.reported, seen);
        line.seen_ns = Some((seen - before).0);
        line.seen = std::mem::take(&mut self.spans);
    }

    /// Sets the estimates.
    pub fn estimate(&self, windows: &mut Windows) {
        let range = |estimate: Option<Estimate>, scale: f64, least: f64| {
            let finite = |value: f64| value.is_finite().then_some(value * scale);
            estimate.map(|estimate| EstimatedRange {
                value: finite(estimate.value),
                low: finite(estimate.low.max(least)),
                high: finite(estimate.high),
            })
        };
        let flaw = match self.local {
            0 => self.flaw.clone(),
            n => Some(format!("{n} requests came over Unix domain sockets")),
        };
        let (bytes, time) = (self.bytes.0 as f64, self.bytes.1.0 as f64);
        let by_bytes = if flaw.is_none() { self.sample.rate_by_amount(bytes, time) } else { None };
        windows.bytes_read = by_bytes.map(|_| self.bytes.0);
        let outside = (bytes - self.bytes_in_windows as f64) / (time - self.in_windows.0 as f64).max(1.0);
        windows.slowdown = range(by_bytes.and_then(|_| self.sample.slowdown(outside)), 1.0, f64::MIN);
        windows.rate_by_time = flaw;
        windows.rate_per_s = range(by_bytes.or_else(|| self.sample.rate()), 1e9, 0.0);
        windows.mean_ns = range(self.sample.mean(), 1.0, 0.0);
        windows.p50_ns = range(self.sample.quantile(0.5), 1.0, 0.0);
        windows.p99_ns = range(self.sample.quantile(0.99), 1.0, 0.0);
    }

    fn take(&mut self, length: Nanos, stands_for: Nanos) -> SeenTime {
        let recorded = self.latest.histogram().iter_recorded();
        let seen = SeenTime {
            length: length.0 as f64,
            stands_for: stands_for.0 as f64,
            sum: self.latest.sum_ns() as f64,
            amount: 0.0,
            values: recorded.map(|bin| (bin.value_iterated_to(), bin.count_since_last_iteration())).collect(),
        };
        self.latest.clear();
        seen
    }
}
