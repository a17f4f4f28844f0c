//! What one probe says of its rate: whether the objective held, and whether it would have gone on to.

use super::Finding;

/// A probe as it was measured, in two halves one after the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// Whether the objective held over both together.
    pub held: bool,
    /// Whether it held in the second alone.
    pub held_second: bool,
    /// Mean response in each, in seconds.
    pub mean_s: [f64; 2],
    /// From the middle of the first to the middle of the second, in seconds.
    pub apart_s: f64,
    pub fitness: Fitness,
}

/// Whether the client was fit to measure this rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fitness {
    Fit,
    Unfit,
    /// Something else on its host disturbed it.
    Disturbed,
}

/// What they say. `tolerance` is that of the search.
///
/// A rate above capacity by the share ε makes a backlog of ε·t after t seconds, and the response grows by ε seconds
/// a second. The means of two halves with a distance of D seconds differ by ε·D then, whatever the objective: a
/// quarter of the tolerance is seen as growth long before a lax objective breaks.
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

/// Responses of half a second differ by milliseconds from one half to the next without any backlog.
const CLEAR_GROWTH: f64 = 1.25;
