//! A pipe from another process whose reads fail when too little data arrives for too long.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use units::Nanos;

/// A pipe with a read timeout.
pub struct Patient<P> {
    pipe: P,
    patience: Nanos,
    /// This many bytes must arrive within the patience.
    portion: usize,
    /// Time waited since the last full portion, and the bytes since then. Time between reads does not count.
    waited: Nanos,
    came: usize,
}

impl<P: Read + AsFd> Patient<P> {
    /// Waits at most `patience` for each `portion` bytes.
    pub fn new(pipe: P, patience: Nanos, portion: usize) -> Patient<P> {
        Patient { pipe, patience, portion, waited: Nanos(0), came: 0 }
    }

    /// From now on, `portion` bytes must arrive within the patience.
    pub fn expect_portions(&mut self, portion: usize) {
        (self.portion, self.waited, self.came) = (portion, Nanos(0), 0);
    }

    fn wait(&mut self) -> io::Result<()> {
        let left = self.patience.saturating_sub(self.waited);
        let timeout = Timespec {
            tv_sec: (left.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (left.0 % 1_000_000_000).cast_signed(),
        };
        let begun = clock::now();
        let ready = poll(&mut [PollFd::new(&self.pipe, PollFlags::IN)], Some(&timeout));
        self.waited += clock::now().saturating_sub(begun);
        match ready {
            Ok(0) => {
                Err(io::Error::new(ErrorKind::TimedOut, format!("no response within {}", self.patience)))
            }
            Err(Errno::INTR) => self.wait(),
            ready => Ok(ready.map(drop)?),
        }
    }
}

impl<P: Read + AsFd> Read for Patient<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let came = self.pipe.read(buffer)?;
        self.came += came;
        if self.came >= self.portion {
            (self.waited, self.came) = (Nanos(0), 0);
        }
        Ok(came)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// If this fails, a host that stops responding blocks the run for ever.
    #[test]
    fn a_silent_pipe_is_given_up() {
        let (pipe, mut end) = io::pipe().unwrap();
        let mut pipe = Patient::new(pipe, Nanos::from_millis(50), 4);
        end.write_all(b"abcd").unwrap();
        let mut buffer = [0; 8];
        assert_eq!(pipe.read(&mut buffer).unwrap(), 4);
        let begun = clock::now();
        assert_eq!(pipe.read(&mut buffer).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(clock::now() - begun >= Nanos::from_millis(50));
        drop(end);
        pipe.expect_portions(4);
        assert_eq!(pipe.read(&mut buffer).unwrap(), 0);
    }

    /// A byte now and then is no progress.
    #[test]
    fn a_trickle_is_given_up() {
        let (pipe, mut end) = io::pipe().unwrap();
        let mut pipe = Patient::new(pipe, Nanos::from_millis(100), 1_000);
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
