//! What one probe shows about its rate: whether the objective held, and whether it would have kept holding.

use super::Finding;

/// A measured probe, split into two halves of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// Whether the objective held over both halves together.
    pub held: bool,
    /// Whether it held in the second half alone.
    pub held_second: bool,
    /// Mean response time in each half, in seconds.
    pub mean_s: [f64; 2],
    /// From the middle of the first half to the middle of the second, in seconds.
    pub apart_s: f64,
    /// Whether the client could measure this rate.
    pub fitness: Fitness,
}

/// Whether the load generator could measure this rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitness {
    /// The audit has no finding against it.
    Fit,
    /// The audit has a finding against it: late, stalled, out of CPU.
    Unfit,
    /// Other work on its host disturbed it.
    Disturbed,
}

/// Judges a probe from its two halves. `tolerance` is that of the search ([`Aim::tolerance`](super::Aim)).
///
/// A rate above capacity by the share ε makes a backlog of ε·t after t seconds, so the response time grows by ε
/// seconds per second, and the means of two halves D seconds apart differ by ε·D, whatever the objective. Growth of a
/// quarter of the tolerance is noticed long before a loose objective fails.
pub fn finding(halves: &Halves, tolerance: f64) -> Finding {
    let [first, second] = halves.mean_s;
    let slope = (second - first) / halves.apart_s.max(f64::MIN_POSITIVE);
    let grows = slope > tolerance / 4.0 && second > first * CLEAR_GROWTH;
    match halves.fitness {
        Fitness::Fit => {}
        Fitness::Unfit => return Finding::Doubtful,
        Fitness::Disturbed => return Finding::Disturbed,
    }
    match halves.held {
        true if grows => Finding::Unsettled,
        true => Finding::Holds,
        // It was still warming up.
        false if halves.held_second && !grows => Finding::Unsettled,
        false => Finding::Fails,
    }
}

/// With response times of half a second, the halves differ by milliseconds without any backlog.
const CLEAR_GROWTH: f64 = 1.25;
