//! What the stages of a schedule are: a shape with a process and a length, or instants that were recorded.

use std::fmt;

use units::{Nanos, Rate};

use crate::replay::Recorded;
use crate::shape::Shape;

/// One stage of a schedule, beginning where the one before it ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    Shaped {
        shape: Shape,
        process: Process,
        /// `None` is without end, which only a last stage of constant rate may be.
        length: Option<Nanos>,
    },
    Recorded(Recorded),
}

/// How requests are placed along the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Process {
    /// Each where the integral of the rate passes the next whole number.
    Even,
    /// The same, each moved by a random time of its own.
    Jittered(Jitter),
    /// At random, each independent of all others.
    Poisson,
}

/// How far a request is moved at most, forth or back, evenly distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Jitter {
    Time(Nanos),
    /// Of the gap between two requests at the rate of that moment.
    Percent(f64),
}

impl Stage {
    /// `None` is without end.
    pub fn length(&self) -> Option<Nanos> {
        match self {
            Stage::Shaped { length, .. } => *length,
            Stage::Recorded(recorded) => Some(recorded.length()),
        }
    }

    /// Whether the seed matters.
    pub fn is_random(&self) -> bool {
        !matches!(self, Stage::Shaped { process: Process::Even, .. } | Stage::Recorded(_))
    }

    /// The highest rate that is asked for; of recorded instants the mean.
    pub fn peak_per_s(&self) -> f64 {
        match self {
            Stage::Shaped { shape, .. } => shape.peak_per_s(),
            Stage::Recorded(recorded) => recorded.mean_per_s(),
        }
    }
}

/// As one would write it, so that it is read as the same stage; recorded instants say what they are.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, process, length) = match self {
            Stage::Shaped { shape, process, length } => (shape, process, length),
            Stage::Recorded(recorded) => {
                let (count, length) = (recorded.instants().len(), recorded.length());
                return write!(f, "replay of {count} instants over {length}");
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

/// As the words at the end of a stage; nothing for even spacing.
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
