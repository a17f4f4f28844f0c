//! Dates of the wall clock, in the form that records and directory names use.

use units::Nanos;

/// A wall-clock time in the form that a record uses.
pub fn timestamp(wall: Nanos) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(wall.0)).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
