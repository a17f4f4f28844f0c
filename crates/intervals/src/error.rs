//! What can be wrong with a line of a histogram log.

use thiserror::Error;

/// Why a line is not one that was written here.
#[derive(Debug, Error)]
pub enum LogDamage {
    #[error("not a line of a histogram log: {what}")]
    Line { what: &'static str },
    #[error("the histogram cannot be decoded: {what}")]
    Histogram { what: String },
}
