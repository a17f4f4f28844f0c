//! Bodies that are generated while they are sent, so that a gigabyte takes no more memory than a kilobyte.

use units::Nanos;

use crate::encode::{chunk_head, decimal, pattern};
use crate::route::Drip;

/// The rest of a response.
#[derive(Debug)]
pub(crate) enum Stream {
    Bytes {
        next: u64,
        count: u64,
        chunked: bool,
    },
    Drip {
        drip: Drip,
        begin: Nanos,
        next: u64,
    },
    /// Headers without end.
    Flood {
        next: u64,
    },
    /// Silence without end.
    Never,
}

/// What [`Stream::fill`] did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Done,
    More,
    Until(Nanos),
    Never,
}

impl Stream {
    /// Appends what is due, at most about `room` bytes.
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, room: usize, now: Nanos) -> Flow {
        match self {
            Stream::Bytes { next, count, chunked } => {
                let part = at_most(*count - *next, room);
                if *chunked && part > 0 {
                    chunk_head(out, part);
                }
                pattern(out, *next, part);
                *next += part as u64;
                match (*chunked, *next == *count) {
                    (true, true) if part > 0 => out.extend_from_slice(b"\r\n0\r\n\r\n"),
                    (true, true) => out.extend_from_slice(b"0\r\n\r\n"),
                    (true, false) => out.extend_from_slice(b"\r\n"),
                    (false, _) => {}
                }
                if *next == *count { Flow::Done } else { Flow::More }
            }
            Stream::Drip { drip, begin, next } => {
                let part = at_most(drip.due_by(now.saturating_sub(*begin)).saturating_sub(*next), room);
                pattern(out, *next, part);
                *next += part as u64;
                match *next {
                    next if next >= drip.count => Flow::Done,
                    _ if part == room => Flow::More,
                    next => Flow::Until(*begin + drip.due(next)),
                }
            }
            Stream::Flood { next } => {
                let begun = out.len();
                while out.len() - begun < room {
                    out.extend_from_slice(b"X-Flood-");
                    decimal(out, *next);
                    out.extend_from_slice(b": there is no end to this head\r\n");
                    *next += 1;
                }
                Flow::More
            }
            Stream::Never => Flow::Never,
        }
    }
}

impl Drip {
    /// When byte `index` is due, counted from the first one at zero: the last one at exactly `over`.
    fn due(&self, index: u64) -> Nanos {
        if self.count < 2 {
            // A single byte ends the drip, so it is due at the end.
            return self.over;
        }
        let due = u128::from(self.over.0) * u128::from(index) / u128::from(self.count - 1);
        Nanos(u64::try_from(due).unwrap_or(u64::MAX))
    }

    /// How many bytes are due `elapsed` after the first.
    fn due_by(&self, elapsed: Nanos) -> u64 {
        if elapsed >= self.over {
            return self.count;
        }
        if self.count < 2 {
            return 0;
        }
        // The number of i with over * i / (count - 1) <= elapsed, the division rounding down.
        let bytes =
            ((u128::from(elapsed.0) + 1) * u128::from(self.count - 1) - 1) / u128::from(self.over.0) + 1;
        u64::try_from(bytes).unwrap_or(u64::MAX).min(self.count)
    }
}

fn at_most(left: u64, room: usize) -> usize {
    usize::try_from(left).map_or(room, |left| left.min(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// If this fails, a drip sends a byte early, or sleeps past one that is due.
        #[test]
        fn bytes_are_due_when_they_are_counted(count in 0u64..5_000, over in 0u64..5_000_000, index in 0u64..5_000) {
            let drip = Drip { count, over: Nanos(over), delay: Nanos::ZERO };
            let index = index.min(count.saturating_sub(1));
            if count > 0 {
                let due = drip.due(index);
                proptest::prop_assert!(drip.due_by(due) > index);
                proptest::prop_assert!(due == Nanos::ZERO || drip.due_by(Nanos(due.0 - 1)) <= index);
                proptest::prop_assert_eq!(drip.due(count - 1), Nanos(over));
            }
        }

        #[test]
        fn a_streamed_body_has_its_length(count in 0u64..300_000, room in 1usize..70_000) {
            let mut stream = Stream::Bytes { next: 0, count, chunked: false };
            let mut out = Vec::new();
            while stream.fill(&mut out, room, Nanos::ZERO) != Flow::Done {}
            proptest::prop_assert_eq!(out.len() as u64, count);
        }
    }

    #[test]
    fn chunks_end_once() {
        for (count, text) in [(0, "0\r\n\r\n"), (3, "2\r\nAB\r\n1\r\nC\r\n0\r\n\r\n")] {
            let mut stream = Stream::Bytes { next: 0, count, chunked: true };
            let mut out = Vec::new();
            while stream.fill(&mut out, 2, Nanos::ZERO) != Flow::Done {}
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
