//! A pipe from another process whose reads fail when a dialogue takes too long, or when the user ends it.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use units::Nanos;

/// A pipe whose reads wait only for a limited time.
pub struct Patient<P> {
    pipe: P,
    patience: Nanos,
    /// Bytes per second that must arrive after the patience; `None` if nothing prolongs it.
    rate: Option<u64>,
    /// Set by the user to end the dialogue.
    stop: Option<Arc<AtomicBool>>,
    /// Time waited in this dialogue, and the bytes that arrived. Time between reads does not count.
    waited: Nanos,
    came: u64,
}

impl<P: Read + AsFd> Patient<P> {
    /// Waits at most `patience` for all of a dialogue, the first of which begins here; setting `stop` ends it.
    pub fn new(pipe: P, patience: Nanos, stop: Option<Arc<AtomicBool>>) -> Patient<P> {
        Patient { pipe, patience, rate: None, stop, waited: Nanos::ZERO, came: 0 }
    }

    /// Begins another dialogue.
    pub fn begin(&mut self, stop: Option<Arc<AtomicBool>>) {
        (self.rate, self.stop, self.waited, self.came) = (None, stop, Nanos::ZERO, 0);
    }

    /// Begins a transfer of any length: after the patience, as many bytes as `rate` per second must have arrived.
    pub fn begin_transfer(&mut self, rate: u64, stop: Option<Arc<AtomicBool>>) {
        self.begin(stop);
        self.rate = Some(rate);
    }

    fn left(&self) -> Nanos {
        let earned = self.rate.map_or(0, |rate| u128::from(self.came) * 1_000_000_000 / u128::from(rate));
        let earned = Nanos(u64::try_from(earned).unwrap_or(u64::MAX));
        self.patience.saturating_add(earned).saturating_sub(self.waited)
    }

    fn wait(&mut self) -> io::Result<()> {
        loop {
            if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(io::Error::other("interrupted"));
            }
            let left = self.left();
            if left == Nanos::ZERO {
                let slow = self.rate.filter(|_| self.came > 0);
                let words = match slow {
                    Some(rate) => format!("slower than {} KiB/s", rate >> 10),
                    None => format!("no response within {}", self.patience),
                };
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
            let turn = left.min(TURN);
            let timeout = Timespec {
                tv_sec: (turn.0 / 1_000_000_000).cast_signed(),
                tv_nsec: (turn.0 % 1_000_000_000).cast_signed(),
            };
            let begun = clock::now();
            let ready = poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout));
            self.waited += clock::now().saturating_sub(begun);
            match ready {
                Ok(0) | Err(Errno::INTR) => {}
                ready => return Ok(ready.map(drop)?),
            }
        }
    }
}

impl<P: Read + AsFd> Read for Patient<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let came = self.pipe.read(buffer)?;
        self.came += came as u64;
        Ok(came)
    }
}

/// How often the user's wish is looked at.
const TURN: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// If this fails, a host that stops responding blocks the run for ever.
    #[test]
    fn a_silent_pipe_is_given_up() {
        let (pipe, mut end) = io::pipe().unwrap();
        let mut pipe = Patient::new(pipe, Nanos::from_millis(50), None);
        end.write_all(b"abcd").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(pipe.read(&mut buffer).unwrap(), 4);
        let begun = clock::now();
        assert_eq!(pipe.read(&mut buffer).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(clock::now() - begun >= Nanos::from_millis(50));
        drop(end);
        pipe.begin(None);
        assert_eq!(pipe.read(&mut buffer).unwrap(), 0);
    }

    /// If this fails, a host that sends a byte from time to time, or a line just before each deadline, delays a run
    /// for hours.
    #[test]
    fn a_trickle_is_given_up() {
        for is_transfer in [false, true] {
            let (pipe, mut end) = io::pipe().unwrap();
            let mut pipe = Patient::new(pipe, Nanos::from_millis(100), None);
            if is_transfer {
                pipe.begin_transfer(1_000_000, None);
            }
            let trickle = std::thread::spawn(move || {
                while end.write_all(b"x").is_ok() {
                    clock::sleep_until(clock::now() + Nanos::from_millis(10));
                }
            });
            let ended = (0..100).find_map(|_| pipe.read(&mut [0; 8]).err());
            assert_eq!(ended.map(|error| error.kind()), Some(ErrorKind::TimedOut));
            drop(pipe);
            trickle.join().unwrap();
        }
    }

    /// Bytes that keep to the rate prolong the patience; a transfer of any length may arrive.
    #[test]
    fn a_transfer_that_keeps_its_rate_is_waited_for() {
        let (pipe, mut end) = io::pipe().unwrap();
        let mut pipe = Patient::new(pipe, Nanos::from_millis(50), None);
        pipe.begin_transfer(1, None);
        let sends = std::thread::spawn(move || {
            for _ in 0..10 {
                end.write_all(b"x").unwrap();
                clock::sleep_until(clock::now() + Nanos::from_millis(20));
            }
        });
        let mut all = Vec::new();
        pipe.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 10);
        sends.join().unwrap();
    }

    /// If this fails, the first Ctrl-C is ignored while another host does not respond.
    #[test]
    fn the_user_ends_a_dialogue() {
        let (pipe, _end) = io::pipe().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut pipe = Patient::new(pipe, Nanos::from_secs(3_600), Some(Arc::clone(&stop)));
        let reads = std::thread::spawn(move || pipe.read(&mut [0; 8]).unwrap_err());
        stop.store(true, Ordering::Relaxed);
        assert_eq!(reads.join().unwrap().to_string(), "interrupted");
    }
}
