//! Observations of this host: one loop that reads what is observed, closes intervals, and ends on time, on a request
//! to stop, or when there is nothing left to observe.
//!
//! Each kind has a module: a spec, the events that its caller receives, and a result. A kind defines when it is read
//! and what an interval contains ([`Observer`]); [`conduct`] is the loop, and [`keeper::Keeper`] writes the record.
//! A record that cannot be written does not end the observation: the figures are worth more, and the caller receives
//! them together with the first error.

pub mod command;
pub mod cpu;
pub mod disturb;
pub mod frames;
pub mod hiccup;
pub mod keeper;
#[cfg(feature = "ebpf")]
pub mod profile;
#[cfg(feature = "ebpf")]
pub mod watch;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use record::document::{EffectiveOption, OptionSource, State};
use units::Nanos;

use crate::effective::EffectiveOptions;
use crate::environment::Environment;
use crate::folder::ClaimedFolder;

/// What every observation needs from its caller.
pub struct Setting<'a> {
    pub environment: Environment<'a>,
    /// The effective value of each option, for the record.
    pub options: EffectiveOptions,
    /// The directory of the record; `None` keeps no record.
    pub folder: Option<&'a Path>,
    /// Ends the observation once it is true.
    pub stop: &'a Arc<AtomicBool>,
}

impl Setting<'_> {
    /// Sets the value of an option that was derived because it was not given.
    pub(crate) fn derive(&mut self, name: &str, value: String) {
        if let Some(option) = self.options.get_mut(name).filter(|option| option.source != OptionSource::Given)
        {
            *option = EffectiveOption { value, source: OptionSource::Derived };
        }
    }

    /// Runs `observe` with the directory of the record claimed. If it fails before anything was written, the
    /// directories created for it are removed.
    fn claim<T>(self, observe: impl FnOnce(Self) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let claim = self.folder.map(ClaimedFolder::make).transpose()?;
        let observed = observe(self);
        if observed.is_err() {
            claim.into_iter().for_each(ClaimedFolder::release);
        }
        observed
    }
}

/// One kind of observation, driven by the loop. Times are on the monotonic clock.
trait Observer {
    /// When to call [`step`](Observer::step) next; `close` is the end of the interval in progress, at which `step` is
    /// called in any case.
    fn due(&mut self, now: Nanos, close: Nanos) -> Nanos;

    /// Reads what is observed; `stopped` says whether a stop was requested. Returns whether the observation is over.
    fn step(&mut self, stopped: bool) -> bool;

    /// Closes the interval `from..to`, the last one if `is_last`.
    ///
    /// # Errors
    ///
    /// When the caller cannot go on, for example because nothing can be printed any more; the observation ends.
    fn close(&mut self, from: Nanos, to: Nanos, is_last: bool) -> anyhow::Result<()>;
}

/// When the intervals of an observation close.
struct Rhythm {
    /// The begin of the first interval on the monotonic clock, in nanoseconds.
    from: Nanos,
    /// The length of an interval.
    every: Nanos,
    /// The end of the observation; [`Nanos::MAX`] without one.
    until: Nanos,
    closing: Closing,
}

/// Where an interval ends if it is closed a little late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// At its planned end: the next interval does not move.
    OnGrid,
    /// At the time of closing: nothing can be attributed to an earlier time.
    Now,
}

/// How often to check for a request to stop while nothing is due.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// Observes until the end of the rhythm, or until the observer is finished. Returns the end of the last interval.
///
/// # Errors
///
/// The errors of [`Observer::close`].
fn conduct(observer: &mut dyn Observer, rhythm: &Rhythm, stop: &AtomicBool) -> anyhow::Result<Nanos> {
    let mut closed = rhythm.from;
    loop {
        let close = closed.saturating_add(rhythm.every).min(rhythm.until);
        sleep(observer.due(clock::now(), close).min(close), stop);
        let now = clock::now();
        let is_over = observer.step(stop.load(Ordering::Relaxed));
        let to = match rhythm.closing {
            _ if is_over => clock::now(),
            Closing::OnGrid => close,
            Closing::Now => now,
        };
        let is_last = is_over || now >= close && to >= rhythm.until;
        if is_last || now >= close {
            observer.close(closed, to, is_last)?;
            closed = to;
        }
        if is_last {
            return Ok(closed);
        }
    }
}

/// The state of an observation's record. If `has_end` is true, a request to stop cut the observation short.
fn state<T>(conducted: &anyhow::Result<T>, has_end: bool, stop: &AtomicBool) -> State {
    match conducted {
        Err(_) => State::Broken,
        Ok(_) if has_end && stop.load(Ordering::Relaxed) => State::Interrupted,
        Ok(_) => State::Finished,
    }
}

/// Sleeps until `due`, or until a new request to stop.
fn sleep(due: Nanos, stop: &AtomicBool) {
    let before = stop.load(Ordering::Relaxed);
    loop {
        let now = clock::now();
        if now >= due || stop.load(Ordering::Relaxed) != before {
            return;
        }
        clock::sleep_until(due.min(now + STOP_EVERY));
    }
}

#[cfg(test)]
mod tests;
