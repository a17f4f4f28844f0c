//! How the rate changes within a stage. Each shape gives the integral of its rate over time, and its exact inverse.
//!
//! A request is due where the integral of the rate reaches its position. Positions count requests in steps of 2^-20, so
//! that they can be summed without rounding: even spacing places requests at whole positions, Poisson at random ones,
//! and every shape works with both.

use std::f64::consts::TAU;

use units::{Nanos, Rate};

/// Binary digits of a position after the point. At 1M/s a step is a picosecond, and a stage has room for 1.7e13
/// requests.
const POSITION_BITS: u32 = 20;

/// One request, as a position.
pub(crate) const ONE: u64 = 1 << POSITION_BITS;

/// How the rate changes over a stage. A rate of `None` means no requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// The same rate throughout.
    Constant(Option<Rate>),
    /// From one rate to the other, linearly over the stage.
    Ramp { from: Option<Rate>, to: Option<Rate> },
    /// `mean + amplitude * sin(2 pi t / period)`: begins at the mean, rising.
    Sine { mean: Rate, amplitude: Option<Rate>, period: Nanos },
    /// `base`, but `peak` in the last `width` of every `period`.
    Spikes { base: Option<Rate>, peak: Rate, width: Nanos, period: Nanos },
}

impl Shape {
    /// When the integral of the rate reaches `position`, within a stage of length `over`. Never decreases with
    /// `position`; at or past `over` if the stage ends before that.
    #[inline]
    pub(crate) fn due(&self, position: u64, over: Nanos) -> Nanos {
        let x = position as f64 / ONE as f64;
        let t = match *self {
            Shape::Constant(Some(rate)) => return constant_due(rate, position),
            Shape::Constant(None) => return over,
            Shape::Ramp { from, to } => ramp_due(per_ns(from), per_ns(to), over, x),
            Shape::Sine { mean, amplitude, period } => {
                sine_due(per_ns(Some(mean)), per_ns(amplitude), period.0 as f64, x)
            }
            Shape::Spikes { base, peak, width, period } => {
                spikes_due(per_ns(base), per_ns(Some(peak)), width.0 as f64, period.0 as f64, x)
            }
        };
        // A float that is too large becomes the largest integer.
        Nanos(t as u64)
    }

    /// The number of requests in `[0, t)`, for a stage of length `over`.
    pub(crate) fn integral(&self, t: Nanos, over: Nanos) -> f64 {
        let at = t.0 as f64;
        match *self {
            Shape::Constant(rate) => per_ns(rate) * at,
            Shape::Ramp { from, to } => {
                let (a, b) = (per_ns(from), per_ns(to));
                at * (a + (b - a) * at / (2.0 * over.0 as f64))
            }
            Shape::Sine { mean, amplitude, period } => {
                let p = period.0 as f64;
                per_ns(Some(mean)) * at + per_ns(amplitude) * p / TAU * (1.0 - libm::cos(TAU * (at / p)))
            }
            Shape::Spikes { base, peak, width, period } => {
                let (a, w, p) = (per_ns(base), width.0 as f64, period.0 as f64);
                let periods = (at / p).floor();
                let spike = (at - periods * p - (p - w)).max(0.0);
                a * at + (per_ns(Some(peak)) - a) * (periods * w + spike)
            }
        }
    }

    /// The same as a position.
    pub(crate) fn position(&self, t: Nanos, over: Nanos) -> u64 {
        match self {
            Shape::Constant(Some(rate)) => rate.parts_until(t, ONE),
            _ => (self.integral(t, over) * ONE as f64).round() as u64,
        }
    }

    /// The highest rate, in requests per second; for a ramp or sine, the rate that it approaches.
    pub fn peak_per_s(&self) -> f64 {
        let per_s = |rate: Option<Rate>| rate.map_or(0.0, Rate::as_per_second_f64);
        match *self {
            Shape::Constant(rate) => per_s(rate),
            Shape::Ramp { from, to } => per_s(from).max(per_s(to)),
            Shape::Sine { mean, amplitude, .. } => per_s(Some(mean)) + per_s(amplitude),
            Shape::Spikes { base, peak, .. } => per_s(base).max(per_s(Some(peak))),
        }
    }
}

fn per_ns(rate: Option<Rate>) -> f64 {
    rate.map_or(0.0, |rate| rate.as_per_second_f64() / 1e9)
}

/// Exact: uses no floats, so there is no drift however long the run is.
#[inline]
fn constant_due(rate: Rate, position: u64) -> Nanos {
    rate.due_part(position, ONE)
}

/// The root of `a t + (b - a) t^2 / (2 T) = x`, in the form that does not cancel when `a` is close to `b`.
fn ramp_due(a: f64, b: f64, over: Nanos, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let over = over.0 as f64;
    let square = a * a + 2.0 * (b - a) / over * x;
    // Beyond the end of a descending ramp the parabola turns upwards; the stage ends before that.
    if square < 0.0 { over } else { (2.0 * x / (a + square.sqrt())).min(over) }
}

/// Newton's method within a bracket, with bisection where it would leave the bracket: the rate may touch zero.
fn sine_due(mean: f64, amplitude: f64, period: f64, x: f64) -> f64 {
    let in_period = mean * period;
    let periods = (x / in_period).floor();
    let x = x - periods * in_period;
    let half_swing = amplitude * period / TAU;
    let (mut low, mut high) = (((x - 2.0 * half_swing) / mean).max(0.0), (x / mean).min(period));
    let mut t = 0.5 * (low + high);
    // A thousandth of a nanosecond, or the precision of a float of this size.
    let tolerance = 1e-3_f64.max(period * 1e-16);
    // Bisection alone needs 62 rounds for a period of an hour.
    for _ in 0..80 {
        let angle = TAU * (t / period);
        let error = mean * t + half_swing * (1.0 - libm::cos(angle)) - x;
        if error > 0.0 {
            high = t;
        } else {
            low = t;
        }
        let slope = mean + amplitude * libm::sin(angle);
        let newton = t - error / slope;
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let step = (next - t).abs();
        t = next;
        if step < tolerance || high - low < tolerance {
            break;
        }
    }
    periods * period + t
}

fn spikes_due(base: f64, peak: f64, width: f64, period: f64, x: f64) -> f64 {
    let calm = base * (period - width);
    let in_period = calm + peak * width;
    let periods = (x / in_period).floor();
    let x = (x - periods * in_period).clamp(0.0, in_period);
    // If the base is zero, there is no calm part to divide by.
    let within = if x < calm { x / base } else { (period - width) + (x - calm) / peak };
    periods * period + within
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Option<Rate> {
        Some(text.parse().unwrap())
    }

    fn shapes() -> [Shape; 6] {
        let second = Nanos::from_secs(1);
        [
            Shape::Constant(rate("300/s")),
            Shape::Ramp { from: rate("100/s"), to: rate("1k/s") },
            Shape::Ramp { from: rate("1k/s"), to: None },
            Shape::Sine { mean: rate("500/s").unwrap(), amplitude: rate("200/s"), period: second },
            Shape::Sine { mean: rate("500/s").unwrap(), amplitude: rate("500/s"), period: second },
            Shape::Spikes {
                base: rate("100/s"),
                peak: rate("2k/s").unwrap(),
                width: Nanos::from_millis(100),
                period: second,
            },
        ]
    }

    /// A position is rounded down to a nanosecond, so the integral there differs by less than the requests of a
    /// nanosecond; the error of the float is a millionth of that here.
    #[test]
    fn the_inverse_undoes_the_integral() {
        let over = Nanos::from_secs(10);
        for shape in shapes() {
            let whole = shape.position(over, over);
            for k in 0..1_000 {
                let position = whole / 1_000 * k;
                let due = shape.due(position, over);
                let step = shape.peak_per_s() / 1e9 * 1.001;
                let error = position as f64 / ONE as f64 - shape.integral(due, over);
                assert!((-1e-9..=step + 1e-9).contains(&error), "{shape:?} at {position}: {error}");
            }
        }
    }

    #[test]
    fn a_ramp_reaches_the_places_of_its_parabola() {
        // 0 to 100/s in 10 s: n = 5 t^2, so t = sqrt(n / 5).
        let shape = Shape::Ramp { from: None, to: rate("100/s") };
        let over = Nanos::from_secs(10);
        assert_eq!(shape.due(0, over), Nanos::ZERO);
        assert_eq!(shape.due(5 * ONE, over), Nanos::from_secs(1));
        assert_eq!(shape.due(125 * ONE, over), Nanos::from_secs(5));
        assert_eq!(shape.due(600 * ONE, over), over);
    }

    #[test]
    fn a_spike_is_the_end_of_its_period() {
        let [.., shape] = shapes();
        let over = Nanos::from_secs(10);
        // 90 calm requests, 10 ms apart, then 200 in the last 100 ms, 500 us apart.
        assert_eq!(shape.due(90 * ONE, over), Nanos::from_millis(900));
        assert_eq!(shape.due(92 * ONE, over), Nanos::from_millis(901));
        assert_eq!(shape.due(290 * ONE, over), Nanos::from_secs(1));
    }

    proptest::proptest! {
        #[test]
        fn positions_in_order_are_due_in_order(
            which in 0usize..6, position in 0u64..(2_000 * ONE), step in 0u64..(2 * ONE)
        ) {
            let (shape, over) = (shapes()[which], Nanos::from_secs(10));
            proptest::prop_assert!(shape.due(position, over) <= shape.due(position + step, over));
        }
    }
}
