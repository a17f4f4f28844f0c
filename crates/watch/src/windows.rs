//! Windows on a running server: attaches and detaches as [`Duty`] says, and passes on the requests that count.
//!
//! A request counts if it was read within a window, however long it takes: the programs stay attached until those
//! requests have their responses, for [`TAIL`] at most. So long requests are as likely to be seen as short ones.
//!
//! What the server reads is counted without programs ([`Counting`]), at both ends of each window and of the time in which
//! everything is counted.

use record::Served;
use record::observation::watch::WindowCost;
use units::Nanos;

use crate::assemble::Assembler;
use crate::duty::{Budget, Duty, LEAD, Next, Spent, WINDOW, Window};
use crate::kernel::{Kernel, LoadError};
use crate::received::{Counting, ReadBytes};
use crate::spending::Spending;

/// A window that has ended, whose requests were passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub from: Nanos,
    pub until: Nanos,
    /// The time that it stands for.
    pub stands_for: Nanos,
    /// Requests that were read in it and had no response [`TAIL`] later.
    pub unanswered: u64,
    /// What the server read in the window, and since it was last seen before that.
    pub within: ReadBytes,
    pub before: ReadBytes,
}

/// How much was seen so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seeing {
    pub windows: u64,
    /// The time in windows.
    pub in_windows: Nanos,
    /// The time in which everything was counted, and when that was last.
    pub everything: Nanos,
    pub everything_until: Nanos,
    pub unanswered: u64,
}

/// Drives the windows of one server. All times are of the kernel's clock.
pub struct Windows {
    duty: Duty,
    spending: Spending,
    state: State,
    /// Requests of the current window.
    held: Vec<Served>,
    seeing: Seeing,
    counting: Counting,
    /// How far the kernel's clock is ahead of this process's, at least: 0 unless in a time namespace.
    ahead: i64,
    /// How often events were collected since the end of what is counted.
    looks: u32,
}

/// What [`Windows`] works with.
pub struct Server<'a> {
    pub kernel: &'a mut Kernel,
    pub assembler: &'a mut Assembler,
    pub processes: &'a [u32],
    pub ports: &'a [u16],
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// What is read from `from` on is counted; up to `noted` it is in [`Seeing`].
    Everything {
        from: Nanos,
        noted: Nanos,
        review: Nanos,
    },
    /// As before, until the requests read before `until` have their responses.
    Ending {
        from: Nanos,
        until: Nanos,
        next: Window,
    },
    Detached(Window),
    /// Attached, and what is read from `from` on will be counted.
    Settling {
        from: Nanos,
        then: Then,
    },
    Open {
        window: Window,
        before: ReadBytes,
    },
    Closing {
        window: Window,
        before: ReadBytes,
        within: ReadBytes,
    },
    Over,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Window(Window),
    /// Until this review at least.
    Everything(Nanos),
}

/// The longest time after a window in which its requests can get their responses. What takes longer is counted, without
/// its time.
pub const TAIL: Nanos = Nanos::from_millis(500);

/// What was reported before the end of a window is known after so many looks since: events are passed on when a later
/// look has found no earlier one.
const LOOKS: u32 = 3;
const LOOK: Nanos = Nanos::from_millis(1);

/// From attaching to the begin of a window, at least.
const SETTLING: Nanos = Nanos::from_millis(1);

/// The assembler can be this far behind the programs; then the responses to the window's requests were written, mostly,
/// and wait to be read here.
const BEHIND: Nanos = Nanos::from_millis(20);

impl Windows {
    /// Call with all programs attached and their cost measured.
    ///
    /// # Errors
    ///
    /// When the kernel does not attach them again after the calibration.
    pub fn begin(budget: Budget, server: &mut Server<'_>, now: Nanos) -> Result<Windows, LoadError> {
        let began = clock::now();
        let mut counting = Counting::begin(server.ports);
        let Server { kernel, assembler, processes, ports } = server;
        // While nothing is attached: what is in flight then is unknown afterwards.
        let mut spending = Spending::calibrate(kernel, |kernel| {
            let assembler = &mut **assembler;
            let server = &mut Server { kernel, assembler, processes, ports };
            finish_range(server, (Nanos::ZERO, Nanos::ZERO), &mut Vec::new());
        })?;
        let spent = spending.so_far(server.kernel, server.processes);
        // The server went on while nothing was attached.
        let calibrating = counting.read(server.ports);
        counting.add_rest(calibrating);
        let now = now + (clock::now() - began);
        let (duty, review) = Duty::new(budget, now, spent);
        let state = State::Everything { from: now, noted: now, review };
        let seeing = Seeing::default();
        Ok(Windows { duty, spending, state, held: Vec::new(), seeing, counting, ahead: i64::MIN, looks: 0 })
    }

    /// When to call [`Windows::step`] next; `patience` is how long events can wait.
    pub fn due(&self, now: Nanos, patience: Nanos) -> Nanos {
        match self.state {
            State::Everything { review, .. } => review.min(now + patience),
            State::Detached(window) => window.from.saturating_sub(LEAD),
            State::Settling { from, .. } => from,
            State::Open { window, .. } => window.until.min(now + patience),
            State::Ending { .. } | State::Closing { .. } => now + LOOK.min(patience),
            State::Over => now + patience,
        }
    }

    /// For the record: what was seen, and what was spent up to the last window or review, without estimates.
    pub fn summary(&self) -> record::observation::watch::Windows {
        let (Spent { watching, server, .. }, parts) = (self.duty.spent(), self.spending.parts());
        let Budget { share, seed, .. } = self.duty.budget();
        record::observation::watch::Windows {
            budget: share,
            seed,
            windows: self.seeing.windows,
            in_windows_ns: self.seeing.in_windows.0,
            everything_ns: self.seeing.everything.0,
            unanswered: self.seeing.unanswered,
            cost_ns: watching.0,
            cost: WindowCost {
                programs_ns: parts.programs.0,
                calls_ns: parts.calls.0,
                interrupts_ns: parts.interrupts.0,
                own_ns: parts.own.0,
            },
            server_cpu_ns: server.0,
            ..record::observation::watch::Windows::default()
        }
    }

    /// How much was seen so far.
    pub fn seeing(&self) -> Seeing {
        self.seeing
    }

    /// Takes events, and attaches or detaches the programs if it is time to. Adds requests that count to `done`; if a
    /// window has ended, all that are added are its requests.
    ///
    /// # Errors
    ///
    /// When the kernel does not attach the programs again.
    pub fn step(
        &mut self,
        server: &mut Server<'_>,
        now: Nanos,
        done: &mut Vec<Served>,
    ) -> Result<Option<Seen>, LoadError> {
        let began = clock::now();
        // `now` was read before, by an unknown time.
        self.ahead = self.ahead.max(now.0.cast_signed() - began.0.cast_signed());
        self.spending.note_own();
        self.take(server, done);
        match self.state {
            State::Everything { from, review, .. } => {
                let (review, ending) = if now >= review { self.review(server, now) } else { (review, None) };
                self.note_everything(now);
                self.state = match ending {
                    Some(next) => {
                        self.counting.read(server.ports);
                        State::Ending { from, until: now, next }
                    }
                    None => State::Everything { from, noted: now, review },
                };
            }
            State::Ending { from, until, next } if self.is_over(server, until, now) => {
                self.seeing.unanswered += self.pause(server, (from, until), done);
                self.state = State::Detached(next);
            }
            State::Detached(window) if now + LEAD >= window.from => {
                self.spending.add_toggle(server.kernel.resume()?);
                // Attaching takes a part of the lead; on a busy host all of it, and more.
                let from = window.from.max(now + (clock::now() - began) + SETTLING);
                self.state = State::Settling { from, then: Then::Window(window) };
            }
            State::Settling { from, then } if now >= from => {
                let before = self.counting.read(server.ports);
                let from = self.counted_at();
                self.state = match then {
                    Then::Window(window) => {
                        let window = Window { from, until: from + WINDOW, ..window };
                        State::Open { window, before }
                    }
                    Then::Everything(review) => {
                        self.counting.add_rest(before);
                        State::Everything { from, noted: from, review }
                    }
                };
            }
            State::Open { window, before } if now >= window.until => {
                let within = self.counting.read(server.ports);
                let until = self.counted_at();
                self.state = State::Closing { window: Window { until, ..window }, before, within };
            }
            State::Closing { window, before, within } if self.is_over(server, window.until, now) => {
                let seen = self.close(server, (window, before, within), done);
                let now = now + (clock::now() - began);
                self.plan(server, now)?;
                return Ok(Some(seen));
            }
            _ => {}
        }
        Ok(None)
    }

    /// The watch ends at `now`; the programs are detached. Call before [`Windows::finish`].
    pub fn stop(&mut self, now: Nanos, ports: &[u16]) {
        self.note_everything(now);
        match self.state {
            State::Everything { .. } | State::Over => {}
            State::Open { before, .. } => {
                self.counting.add_rest(before);
                let after = self.counting.read(ports);
                self.counting.add_rest(after);
            }
            State::Ending { .. } | State::Detached(_) | State::Settling { .. } | State::Closing { .. } => {
                let after = self.counting.read(ports);
                self.counting.add_rest(after);
            }
        }
    }

    /// What the server read in times that belong to no window, while not everything was counted.
    ///
    /// # Errors
    ///
    /// Why it is not known what the server read.
    pub fn rest(&self) -> Result<ReadBytes, String> {
        self.counting.rest()
    }

    /// Takes the last events. A window that the end of the watch cuts short is left out.
    pub fn finish(&mut self, server: &mut Server<'_>, done: &mut Vec<Served>) -> Option<Seen> {
        let state = std::mem::replace(&mut self.state, State::Over);
        let (Server { kernel, assembler, .. }, mut seen) = (server, None);
        match state {
            State::Everything { from, .. } | State::Ending { from, .. } => {
                let until = if let State::Ending { until, .. } = state { until } else { Nanos::MAX };
                let mut give = |served: Served| done.extend(counted(served, from, until));
                kernel.drain_all(|event| assembler.take(event, &mut give));
                assembler.finish(&mut give);
            }
            State::Closing { window, before, within } => {
                self.state = state;
                let server = &mut Server { kernel, assembler, processes: &[], ports: &[] };
                seen = Some(self.close(server, (window, before, within), done));
            }
            State::Detached(_) | State::Settling { .. } | State::Open { .. } | State::Over => {
                kernel.drain_all(|event| assembler.take(event, &mut |_| {}));
            }
        }
        self.held.clear();
        seen
    }

    /// The instant that the latest count is of, or this one.
    fn counted_at(&self) -> Nanos {
        Nanos(self.counting.at().unwrap_or_else(clock::now).0.saturating_add_signed(self.ahead))
    }

    fn review(&mut self, server: &Server<'_>, now: Nanos) -> (Nanos, Option<Window>) {
        let spent = self.spending.so_far(server.kernel, server.processes);
        match self.duty.review(now, spent) {
            Next::Everything(review) => (review, None),
            Next::Window(window) => (now, Some(window)),
        }
    }

    /// What follows a window.
    fn plan(&mut self, server: &mut Server<'_>, now: Nanos) -> Result<(), LoadError> {
        let spent = self.spending.so_far(server.kernel, server.processes);
        self.state = match self.duty.after_window(now, spent) {
            Next::Window(window) => State::Detached(window),
            Next::Everything(review) => {
                let toggle = server.kernel.resume()?;
                self.spending.add_toggle(toggle);
                State::Settling { from: now + toggle + LEAD, then: Then::Everything(review) }
            }
        };
        Ok(())
    }

    fn note_everything(&mut self, now: Nanos) {
        if let State::Everything { noted, .. } = &mut self.state {
            self.seeing.everything += now.saturating_sub(*noted);
            *noted = now.max(*noted);
            self.seeing.everything_until = *noted;
        }
    }

    fn take(&mut self, server: &mut Server<'_>, done: &mut Vec<Served>) {
        let Server { kernel, assembler, .. } = server;
        let (from, until, done) = match self.state {
            State::Everything { from, .. } => (from, Nanos::MAX, done),
            State::Ending { from, until, .. } => (from, until, done),
            // Nothing that was read so far counts.
            State::Settling { .. } => (Nanos::MAX, Nanos::MAX, &mut self.held),
            State::Open { window, .. } => (window.from, Nanos::MAX, &mut self.held),
            State::Closing { window, .. } => (window.from, window.until, &mut self.held),
            State::Detached(_) | State::Over => return,
        };
        if matches!(self.state, State::Ending { .. } | State::Closing { .. }) {
            kernel.collect();
            self.looks += 1;
        } else {
            self.looks = 0;
        }
        kernel.drain(|event| assembler.take(event, &mut |served| done.extend(counted(served, from, until))));
    }

    /// Detaches the programs. Returns how many of the requests read in this time have no response.
    fn pause(&mut self, server: &mut Server<'_>, range: (Nanos, Nanos), done: &mut Vec<Served>) -> u64 {
        self.spending.add_toggle(server.kernel.pause());
        finish_range(server, range, done)
    }

    fn close(
        &mut self,
        server: &mut Server<'_>,
        (window, before, within): (Window, ReadBytes, ReadBytes),
        done: &mut Vec<Served>,
    ) -> Seen {
        let range = (window.from, window.until);
        let mut held = std::mem::take(&mut self.held);
        let unanswered = self.pause(server, range, &mut held);
        done.append(&mut held);
        self.held = held;
        self.seeing.windows += 1;
        self.seeing.in_windows += window.until - window.from;
        self.seeing.unanswered += unanswered;
        let Window { from, until, stands_for } = window;
        Seen { from, until, stands_for, unanswered, within, before }
    }

    /// Whether the requests that were read before `until` have their responses, or have had enough time for them.
    fn is_over(&self, server: &Server<'_>, until: Nanos, now: Nanos) -> bool {
        if self.looks < LOOKS {
            return false;
        }
        let is_behind = server.kernel.patience() == Nanos::ZERO && server.kernel.complete_until() < until;
        if is_behind {
            return now >= until + BEHIND;
        }
        now >= until + TAIL || !server.assembler.awaits_response(until)
    }
}

fn finish_range(server: &mut Server<'_>, (from, until): (Nanos, Nanos), done: &mut Vec<Served>) -> u64 {
    let Server { kernel, assembler, .. } = server;
    let mut give = |served: Served| done.extend(counted(served, from, until));
    kernel.drain_all(|event| assembler.take(event, &mut give));
    assembler.pause((from, until), &mut give)
}

/// The request, if it was read in this time.
fn counted(served: Served, from: Nanos, until: Nanos) -> Option<Served> {
    (from..until).contains(&served.read).then_some(served)
}
