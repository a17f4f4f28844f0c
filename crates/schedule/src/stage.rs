//! The stages of a schedule: a shape with a process and a length, or recorded instants.

use std::fmt;

use units::{Nanos, Rate};

use crate::replay::Recorded;
use crate::shape::Shape;

/// One stage of a schedule; it begins where the one before it ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    Shaped {
        /// The rate over time.
        shape: Shape,
        /// How requests are placed along it.
        process: Process,
        /// `None`: without end, which is allowed only for a last stage of constant rate.
        length: Option<Nanos>,
    },
    /// The instants of a recording.
    Recorded(Recorded),
}

/// How requests are placed along the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Process {
    /// Evenly: each where the integral of the rate passes the next whole number.
    Even,
    /// Evenly, then each moved by a random time.
    Jittered(Jitter),
    /// At random, each independently of all others: a Poisson process.
    Poisson,
}

/// The furthest that a request is moved, earlier or later; the moves are uniformly distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    /// An absolute time.
    Time(Nanos),
    /// A percentage of the gap between two requests at the current rate, above 0 and at most 100.
    Percent(f64),
}

impl Stage {
    /// How long it lasts; `None` means without end.
    pub fn length(&self) -> Option<Nanos> {
        match self {
            Stage::Shaped { length, .. } => *length,
            Stage::Recorded(recorded) => Some(recorded.length()),
        }
    }

    /// Whether the schedule of this stage depends on the seed.
    pub fn is_random(&self) -> bool {
        !matches!(self, Stage::Shaped { process: Process::Even, .. } | Stage::Recorded(_))
    }

    /// The highest arrival rate, per second; for recorded instants the mean.
    pub fn peak_per_s(&self) -> f64 {
        match self {
            Stage::Shaped { shape, .. } => shape.peak_per_s(),
            Stage::Recorded(recorded) => recorded.mean_per_s(),
        }
    }
}

/// Text that parses to the same stage; recorded instants are summarised instead.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, process, length) = match self {
            Stage::Shaped { shape, process, length } => (shape, process, length),
            Stage::Recorded(recorded) => {
                let (count, length) = (recorded.instants().len(), recorded.length());
                return write!(f, "replay of {count} times over {length}");
            }
        };
        match shape {
            Shape::Constant(None) => f.write_str("pause")?,
            Shape::Constant(rate) => write!(f, "constant {}", written(*rate))?,
            Shape::Ramp { from, to } => write!(f, "ramp {}..{}", written(*from), written(*to))?,
            Shape::Sine { mean, amplitude, period } => write!(
                f,
                "sine {} amplitude {} period {}",
                mean.written(),
                written(*amplitude),
                period.written()
            )?,
            Shape::Spikes { base, peak, width, period } => write!(
                f,
                "spikes {} peak {} width {} period {}",
                written(*base),
                peak.written(),
                width.written(),
                period.written()
            )?,
        }
        if let Some(length) = length {
            write!(f, " {}", length.written())?;
        }
        write!(f, "{process}")
    }
}

fn written(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "0/s".to_owned(), Rate::written)
}

/// The words at the end of a stage; empty for even spacing.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Process::Even => Ok(()),
            Process::Poisson => f.write_str(" poisson"),
            Process::Jittered(jitter) => write!(f, " jitter {jitter}"),
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Jitter::Time(time) => f.write_str(&time.written()),
            Jitter::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}
