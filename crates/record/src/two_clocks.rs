//! `clock.json`: how far the clock of an observer's host is ahead of the client's, measured by exchanging timestamps.
//!
//! The client reads its own clock, asks for the other's time, and reads its own clock again: the other timestamp is
//! between the two. That bounds the difference, whatever the network delay; no wall clock is involved. The program that
//! controls an observer on another host writes the file next to the observer's record; `explain` reads it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::document::{SCHEMA_VERSION, SchemaVersion};
use crate::error::{Damage, RecordError};
use crate::escape::escaped;
use crate::record_dir::{read_file, replace_file};

const FILE: &str = "clock.json";

/// A day of readings, one per second, takes half of it.
const LONGEST: u64 = 16 << 20;

/// Two clocks drift apart by at most one part in this many: the kernel slews a clock by at most 1/2000, and a crystal
/// is off by 1/10000.
const FASTEST: i128 = 1_000;

/// The clocks of two hosts, held against each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct TwoClocks {
    pub schema_version: SchemaVersion,
    /// The boot of the client's host, as `host.boot_id` of its record has it.
    pub client_boot_id: Option<String>,
    /// In the order of time.
    pub readings: Vec<ClockReading>,
}

/// One exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct ClockReading {
    /// The middle of the exchange on the client's monotonic clock.
    pub at_ns: u64,
    /// The observer's clock was ahead by this much at least,
    pub least_ns: i64,
    /// and by this much at most.
    pub most_ns: i64,
}

impl ClockReading {
    /// The reading from an exchange that the client began and ended at these times of its own clock, and in which the
    /// other host reported `reported`. `None` if the times are invalid.
    pub fn of(begun: Nanos, reported: Nanos, ended: Nanos) -> Option<ClockReading> {
        let ahead = |own: Nanos| i64::try_from(i128::from(reported.0) - i128::from(own.0)).ok();
        let at_ns = begun.0 + ended.0.checked_sub(begun.0)? / 2;
        Some(ClockReading { at_ns, least_ns: ahead(ended)?, most_ns: ahead(begun)? })
    }

    /// The maximum error of [`ClockReading::ahead`].
    pub fn error(&self) -> Nanos {
        Nanos((self.most_ns.abs_diff(self.least_ns)).div_ceil(2))
    }

    /// The estimate of how far the other clock is ahead, in nanoseconds: the middle of the bounds.
    pub fn ahead(&self) -> i128 {
        (i128::from(self.least_ns) + i128::from(self.most_ns)).div_euclid(2)
    }
}

impl TwoClocks {
    /// The maximum number of readings; later ones are left out.
    pub const MOST: usize = 100_000;

    /// `readings` must be in the order of time.
    pub fn new(client_boot_id: Option<String>, mut readings: Vec<ClockReading>) -> TwoClocks {
        readings.truncate(TwoClocks::MOST);
        TwoClocks { schema_version: SCHEMA_VERSION, client_boot_id, readings }
    }

    /// How far the observer's clock was ahead when it showed `reported`, in nanoseconds. Between two readings, the
    /// clocks are assumed to have drifted evenly. `None` without a reading.
    pub fn ahead_at(&self, reported: Nanos) -> Option<i128> {
        let own = i128::from(reported.0) - self.readings.first()?.ahead();
        let next = self.readings.partition_point(|reading| i128::from(reading.at_ns) <= own);
        let (before, after) = (next.checked_sub(1), self.readings.get(next));
        match (before.map(|before| self.readings[before]), after) {
            (Some(before), Some(after)) => {
                let length = i128::from(after.at_ns) - i128::from(before.at_ns);
                let passed = own - i128::from(before.at_ns);
                Some(before.ahead() + (after.ahead() - before.ahead()) * passed / length.max(1))
            }
            (Some(one), None) => Some(one.ahead()),
            (None, one) => one.map(ClockReading::ahead),
        }
    }

    /// The maximum error of [`TwoClocks::ahead_at`] between the first and the last reading: that of the worst reading.
    pub fn error(&self) -> Option<Nanos> {
        self.readings.iter().map(ClockReading::error).max()
    }

    /// Whether two consecutive readings differ more than clocks can drift: one of the hosts was suspended or moved.
    pub fn contradicts_itself(&self) -> bool {
        self.readings.windows(2).any(|pair| {
            let apart = i128::from((pair[1].least_ns).max(pair[0].least_ns))
                - i128::from((pair[1].most_ns).min(pair[0].most_ns));
            let passed = i128::from(pair[1].at_ns) - i128::from(pair[0].at_ns);
            apart > passed / FASTEST
        })
    }

    /// Writes the file next to the record in `folder`.
    ///
    /// # Errors
    ///
    /// [`RecordError::Write`].
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let path = folder.join(FILE);
        let written = replace_file(&path, |out| Ok(serde_json::to_writer(out, self)?));
        written.map_err(|source| RecordError::Write { path, source })
    }

    /// Reads the file next to the record in `folder`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the file is damaged or hostile.
    pub fn read(folder: &Path) -> Result<Option<TwoClocks>, RecordError> {
        let path = folder.join(FILE);
        let Some(text) = read_file(&path, LONGEST)? else { return Ok(None) };
        let damaged = |line, damage| RecordError::Damaged { path: path.clone(), line, damage };
        let clocks: TwoClocks = serde_json::from_slice(&text)
            .map_err(|error| damaged(error.line() as u64, Damage::Json(error)))?;
        if !clocks.schema_version.is_readable() {
            return Err(RecordError::OtherMajor { path, found: clocks.schema_version });
        }
        if clocks.readings.iter().any(|reading| reading.least_ns > reading.most_ns) {
            return Err(damaged(1, Damage::sum("a reading ends before it begins")));
        }
        if clocks.readings.windows(2).any(|pair| pair[1].at_ns <= pair[0].at_ns) {
            return Err(damaged(1, Damage::sum("the readings are not in the order of time")));
        }
        Ok(Some(escaped(clocks)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    pub(crate) fn clocks() -> TwoClocks {
        // Ahead by 100 s, and by ten milliseconds more after a hundred seconds. Each exchange took 200 us.
        let reading = |at: u64, ahead: u64| {
            let reported = Nanos(at + 100 * S + ahead);
            ClockReading::of(Nanos(at - 100_000), reported, Nanos(at + 100_000)).unwrap()
        };
        TwoClocks::new(Some("this".to_owned()), vec![reading(50 * S, 0), reading(150 * S, S / 100)])
    }

    #[test]
    fn an_instant_of_the_other_clock_is_found_on_ours() {
        let clocks = clocks();
        let ahead = |reported: u64| clocks.ahead_at(Nanos(reported)).unwrap();
        // Half-way between the readings, half of the drift.
        assert!((ahead(200 * S) - i128::from(100 * S + S / 200)).abs() < 10_000);
        assert_eq!((ahead(0), ahead(900 * S)), (i128::from(100 * S), i128::from(100 * S + S / 100)));
        assert_eq!(clocks.error(), Some(Nanos(100_000)));
        assert!(!clocks.contradicts_itself());
        assert_eq!(TwoClocks::new(None, Vec::new()).ahead_at(Nanos(7)), None);
    }

    #[test]
    fn a_clock_behind_ours_is_ahead_by_less_than_nothing() {
        let reading = ClockReading::of(Nanos(900), Nanos(500), Nanos(1_100)).unwrap();
        assert_eq!((reading.least_ns, reading.most_ns, reading.ahead()), (-600, -400, -500));
        assert_eq!(ClockReading::of(Nanos(0), Nanos(u64::MAX), Nanos(1)), None);
        assert_eq!(ClockReading::of(Nanos(2), Nanos(0), Nanos(1)), None);
    }

    /// A host was suspended: its clock was stopped for a second.
    #[test]
    fn a_clock_that_stood_still_is_noticed() {
        let mut clocks = clocks();
        clocks.readings[1].least_ns -= S as i64;
        clocks.readings[1].most_ns -= S as i64;
        assert!(clocks.contradicts_itself());
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(TwoClocks::read(folder.path()).unwrap(), None);
        clocks().write(folder.path()).unwrap();
        assert_eq!(TwoClocks::read(folder.path()).unwrap(), Some(clocks()));
        let mut turned = clocks();
        turned.readings.reverse();
        let mut crossed = clocks();
        crossed.readings[0].least_ns = i64::MAX;
        let newer = TwoClocks { schema_version: SchemaVersion { major: 2, minor: 0 }, ..clocks() };
        for bad in [turned, crossed, newer] {
            bad.write(folder.path()).unwrap();
            assert!(TwoClocks::read(folder.path()).is_err(), "{bad:?}");
        }
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(TwoClocks::read(folder.path()).is_err());
    }
}
