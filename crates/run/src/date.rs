//! Dates of the wall clock, as records and folders have them.

use units::Nanos;

/// A time of the wall clock as a record writes it.
pub fn timestamp(wall: Nanos) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(wall.0)).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
