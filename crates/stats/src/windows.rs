//! What was seen in windows at random times, and what that says of the whole time.
//!
//! The windows are the sample, not the requests in them: requests of one window have much in common. Each window stands
//! for a cycle of known length, so totals are sums over windows, expanded by cycle / window, and a rate, a mean or a
//! share is a ratio of two totals. Its error is that of the ratio estimator (Cochran 1977, chapter 6), over windows;
//! that of a percentile follows from the error of the share below it (Woodruff, JASA 47, 1952). Time in which everything
//! was seen is part of the totals and has no error.
//!
//! Being seen slows a server that has no idle time, so that its windows have fewer values than other times. Where a
//! related amount is known for all the time, such as bytes, the number of values is the ratio of the two within windows,
//! times that amount.

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// A time that was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SeenTime {
    /// Its length, in nanoseconds.
    pub length: f64,
    /// The length of the time that it stands for; its own if all was seen.
    pub stands_for: f64,
    /// The sum of all values.
    pub sum: f64,
    /// The amount in it of what is known for all the time.
    pub amount: f64,
    /// Values in ascending order, with their counts. What is known to be long, but not how long, has the value
    /// [`u64::MAX`] and is not in `sum`.
    pub values: Vec<(u64, u64)>,
}

impl SeenTime {
    fn count(&self) -> f64 {
        self.values.iter().map(|&(_, count)| count as f64).sum()
    }
}

/// Windows so far, and the times in which everything was seen.
///
/// # Memory
///
/// At most [`WINDOWS`] windows with a pair for each distinct value: from then on, neighbours become one.
#[derive(Debug, Clone, Default)]
pub struct WindowSample {
    windows: Vec<Group>,
    /// How many windows make one group.
    per_group: usize,
    everything: Group,
}

/// Expanded totals of some windows.
#[derive(Debug, Clone, Default)]
struct Group {
    windows: usize,
    time: f64,
    count: f64,
    sum: f64,
    amount: f64,
    values: Vec<(u64, f64)>,
}

/// The most groups of windows that are kept: more hardly make an interval better.
pub const WINDOWS: usize = 512;

/// Fewer groups have no interval.
const LEAST: usize = 8;

impl Group {
    fn add(&mut self, seen: &SeenTime, expansion: f64) {
        self.windows += 1;
        self.time += expansion * seen.length;
        self.count += expansion * seen.count();
        self.sum += expansion * seen.sum;
        self.amount += expansion * seen.amount;
        let values: Vec<(u64, f64)> =
            seen.values.iter().map(|&(value, count)| (value, expansion * count as f64)).collect();
        self.values = merged(&self.values, &values);
    }

    fn merge(&mut self, other: &Group) {
        self.windows += other.windows;
        self.time += other.time;
        self.count += other.count;
        self.sum += other.sum;
        self.amount += other.amount;
        self.values = merged(&self.values, &other.values);
    }

    fn up_to(&self, limit: u64) -> f64 {
        let end = self.values.partition_point(|&(value, _)| value <= limit);
        self.values[..end].iter().map(|&(_, count)| count).sum()
    }
}

impl WindowSample {
    /// Adds a window. One of no length is passed over.
    pub fn add_window(&mut self, seen: &SeenTime) {
        if seen.length <= 0.0 {
            return;
        }
        let expansion = seen.stands_for / seen.length;
        let per_group = self.per_group.max(1);
        match self.windows.last_mut() {
            Some(last) if last.windows < per_group => last.add(seen, expansion),
            _ => {
                let mut group = Group::default();
                group.add(seen, expansion);
                self.windows.push(group);
            }
        }
        if self.windows.len() > WINDOWS {
            self.per_group = 2 * per_group;
            let pairs = std::mem::take(&mut self.windows);
            self.windows = pairs.chunks(2).map(|pair| pair[1..].iter().fold(pair[0].clone(), with)).collect();
        }
    }

    /// Adds a time in which everything was seen.
    pub fn add_everything(&mut self, seen: &SeenTime) {
        self.everything.add(seen, 1.0);
    }

    /// Values per nanosecond, if outside of the time in which everything was seen this `amount` was in this time, windows
    /// included.
    pub fn rate_by_amount(&self, amount: f64, time: f64) -> Option<Estimate> {
        if self.windows.is_empty() || time <= 0.0 {
            return self.rate();
        }
        let per_amount = ratio(&self.windows, None, |group| group.count, |group| group.amount)?;
        let of = |ratio: f64| (self.everything.count + ratio * amount) / (self.everything.time + time);
        let Estimate { value, low, high } = per_amount;
        Some(Estimate { value: of(value), low: of(low), high: of(high) })
    }

    /// By what share the amount per nanosecond is smaller within windows, where outside of them it is `outside`: negative
    /// where it is larger.
    pub fn slowdown(&self, outside: f64) -> Option<Estimate> {
        if self.windows.is_empty() || outside <= 0.0 {
            return None;
        }
        let within = ratio(&self.windows, None, |group| group.amount, |group| group.time)?;
        let of = |within: f64| 1.0 - within / outside;
        Some(Estimate { value: of(within.value), low: of(within.high), high: of(within.low) })
    }

    /// Values per nanosecond, if being seen changes nothing.
    pub fn rate(&self) -> Option<Estimate> {
        self.ratio(|group| group.count, |group| group.time)
    }

    /// The mean value; of what is known to be long only, 0.
    pub fn mean(&self) -> Option<Estimate> {
        self.ratio(|group| group.sum, |group| group.count)
    }

    /// The value that a share `q` of all values does not exceed. An end of the interval among values of unknown size
    /// is infinite.
    pub fn quantile(&self, q: f64) -> Option<Estimate> {
        let all = self.all();
        let value = at_share(&all, q)?;
        let share = self.ratio(|group| group.up_to(value), |group| group.count)?;
        // The value's bucket may hold much: the error is that of the share, around `q`.
        let (below, above) = (share.value - share.low, share.high - share.value);
        let end = |share: f64| at_share(&all, share.clamp(0.0, 1.0)).map(size);
        Some(Estimate { value: size(value), low: end(q - below)?, high: end(q + above)? })
    }

    fn all(&self) -> Group {
        let mut all = self.everything.clone();
        self.windows.iter().for_each(|group| all.merge(group));
        all
    }

    fn ratio(&self, above: impl Fn(&Group) -> f64, below: impl Fn(&Group) -> f64) -> Option<Estimate> {
        ratio(&self.windows, Some(&self.everything), above, below)
    }
}

/// The ratio of two totals over windows, and over what was seen beside them.
fn ratio(
    windows: &[Group],
    everything: Option<&Group>,
    above: impl Fn(&Group) -> f64,
    below: impl Fn(&Group) -> f64,
) -> Option<Estimate> {
    let all = || windows.iter().chain(everything);
    let total: f64 = all().map(&below).sum();
    let whole = windows.is_empty();
    if total <= 0.0 || (!whole && windows.len() < LEAST) {
        return None;
    }
    let value = all().map(&above).sum::<f64>() / total;
    let n = windows.len() as f64;
    let residuals: Vec<f64> = windows.iter().map(|group| above(group) - value * below(group)).collect();
    let mean = residuals.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = residuals.iter().map(|residual| (residual - mean).powi(2)).sum();
    let error = if whole { 0.0 } else { (n / (n - 1.0) * squares).sqrt() / total };
    let margin = if whole { 0.0 } else { student(n - 1.0) * error };
    Some(Estimate { value, low: value - margin, high: value + margin })
}

fn with(mut group: Group, other: &Group) -> Group {
    group.merge(other);
    group
}

fn size(value: u64) -> f64 {
    if value == u64::MAX { f64::INFINITY } else { value as f64 }
}

/// The smallest value that at least this share does not exceed.
fn at_share(all: &Group, share: f64) -> Option<u64> {
    let wanted = share * all.count;
    let mut so_far = 0.0;
    for &(value, count) in &all.values {
        so_far += count;
        // What is left of rounding is no count.
        if so_far >= wanted - 1e-9 * all.count {
            return Some(value);
        }
    }
    all.values.last().map(|&(value, _)| value)
}

fn merged(one: &[(u64, f64)], other: &[(u64, f64)]) -> Vec<(u64, f64)> {
    let mut values = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().copied().peekable(), other.iter().copied().peekable());
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if a.0 == b.0 => one.next().zip(other.next()).map(|(a, b)| (a.0, a.1 + b.1)),
            (Some(a), Some(b)) if a.0 > b.0 => other.next(),
            (None, _) => other.next(),
            _ => one.next(),
        };
        match next {
            Some(next) => values.push(next),
            None => return values,
        }
    }
}

/// The 97.5 % point of Student's distribution, within 1 % from 5 degrees of freedom on (an expansion in their inverse:
/// Abramowitz and Stegun, 26.7.5).
fn student(freedom: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    Z + first / freedom + second / freedom.powi(2)
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    struct Draw(Xoshiro256PlusPlus);

    impl Draw {
        fn unit(&mut self) -> f64 {
            ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -self.unit().ln() * mean
        }
    }

    const SECOND: f64 = 1e9;
    const WINDOW: f64 = 0.05 * SECOND;

    /// Requests of a minute: when each was read, and how long it took. Busy times have longer requests, and some requests
    /// are longer than a window.
    fn requests(draw: &mut Draw) -> Vec<(f64, f64)> {
        let (mut at, mut all) = (0.0, Vec::new());
        while at < 60.0 * SECOND {
            let is_busy = ((at / (5.0 * SECOND)) as u64).is_multiple_of(2);
            at += draw.exponential(SECOND / if is_busy { 600.0 } else { 150.0 });
            let mean = if draw.unit() < 0.05 { 0.06 * SECOND } else { 0.003 * SECOND };
            all.push((at, draw.exponential(if is_busy { 1.5 * mean } else { mean })));
        }
        all
    }

    fn seen(requests: &[(f64, f64)], (from, until): (f64, f64), stands_for: f64) -> SeenTime {
        let of = |&&(at, _): &&(f64, f64)| (from..until).contains(&at);
        let mut times: Vec<u64> = requests.iter().filter(of).map(|&(_, took)| took as u64).collect();
        times.sort_unstable();
        SeenTime {
            length: until - from,
            stands_for,
            sum: times.iter().map(|&time| time as f64).sum(),
            amount: 0.0,
            values: times.into_iter().map(|time| (time, 1)).collect(),
        }
    }

    /// Windows in cycles of half a second, twice as dense in every other second: as where the budget depends on the load.
    fn watched(requests: &[(f64, f64)], draw: &mut Draw) -> WindowSample {
        let (mut sample, mut at) = (WindowSample::default(), 2.0 * SECOND);
        sample.add_everything(&seen(requests, (0.0, at), at));
        while at < 59.0 * SECOND {
            let cycle = if ((at / SECOND) as u64).is_multiple_of(2) { 0.5 * SECOND } else { 0.25 * SECOND };
            let from = at + draw.unit() * cycle;
            sample.add_window(&seen(requests, (from, from + WINDOW), cycle));
            at += cycle;
        }
        sample
    }

    /// 500 watches of known loads: each interval holds the truth in about 95 % of them, and the estimates are right on
    /// average, though some requests are longer than a window, and longest where most is going on.
    #[test]
    fn the_truth_is_in_the_intervals() {
        let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(16));
        let mut held = [0; 4];
        let mut bias = [0.0; 2];
        let trials = 500;
        for _ in 0..trials {
            let requests = requests(&mut draw);
            let sample = watched(&requests, &mut draw);
            let n = requests.len() as f64;
            let mut times: Vec<f64> = requests.iter().map(|&(_, took)| took).collect();
            times.sort_by(f64::total_cmp);
            let rate = n / (60.0 * SECOND);
            let mean = times.iter().sum::<f64>() / n;
            let at = |q: f64| times[(q * n) as usize];
            let truth = [rate, mean, at(0.5), at(0.99)];
            let estimates = [sample.rate(), sample.mean(), sample.quantile(0.5), sample.quantile(0.99)];
            let estimates = estimates.map(|estimate| estimate.expect("there are windows enough"));
            for ((held, truth), estimate) in held.iter_mut().zip(truth).zip(estimates) {
                *held += usize::from(estimate.low <= truth && truth <= estimate.high);
            }
            for ((bias, truth), estimate) in bias.iter_mut().zip(truth).zip(estimates) {
                *bias += estimate.value / truth - 1.0;
            }
        }
        assert!(held.iter().all(|&held| held * 100 >= trials * 92), "{held:?} of {trials}");
        assert!(bias.iter().all(|bias| (bias / trials as f64).abs() < 0.01), "{bias:?}");
    }

    /// A server without idle time serves as many requests as it can, a tenth fewer while it is seen, of 60 to 140 bytes. 500
    /// watches of it: the true rate is in the interval in about 95 % of them by bytes, and in few by time.
    #[test]
    fn a_server_that_is_slower_while_it_is_seen_has_its_rate_by_bytes() {
        let mut draw = Draw(Xoshiro256PlusPlus::seed_from_u64(17));
        let (mut by_bytes, mut by_time, mut slower) = (0, 0, 0);
        let trials = 500;
        for _ in 0..trials {
            let (mut sample, mut requests, mut bytes, mut within) = (WindowSample::default(), 0.0, 0.0, 0.0);
            let mut serve = |draw: &mut Draw, length: f64, speed: f64| {
                let (mut at, mut served) = (0.0, (0_u32, 0.0));
                loop {
                    at += draw.exponential(SECOND / 2_000.0 / speed);
                    if at >= length {
                        break;
                    }
                    served = (served.0 + 1, served.1 + 60.0 + 80.0 * draw.unit());
                }
                requests += f64::from(served.0);
                bytes += served.1;
                served
            };
            for _ in 0..100 {
                serve(&mut draw, 0.5 * SECOND - WINDOW, 1.0);
                let (count, amount) = serve(&mut draw, WINDOW, 0.9);
                within += amount;
                let values = vec![(1, u64::from(count))];
                let (length, stands_for) = (WINDOW, 0.5 * SECOND);
                sample.add_window(&SeenTime { length, stands_for, sum: 0.0, amount, values });
            }
            let (time, holds) =
                (50.0 * SECOND, |one: Estimate, truth: f64| one.low <= truth && truth <= one.high);
            let truth = requests / time;
            by_bytes += usize::from(holds(sample.rate_by_amount(bytes, time).unwrap(), truth));
            by_time += usize::from(holds(sample.rate().unwrap(), truth));
            let outside = (bytes - within) / (time - 100.0 * WINDOW);
            slower += usize::from(holds(sample.slowdown(outside).unwrap(), 0.1));
        }
        assert!(
            by_bytes * 100 >= trials * 92 && by_time * 2 < trials,
            "{by_bytes} and {by_time} of {trials}"
        );
        assert!(slower * 100 >= trials * 92, "{slower} of {trials}");
    }

    #[test]
    fn what_was_all_seen_is_exact() {
        let mut sample = WindowSample::default();
        sample.add_everything(&SeenTime {
            length: 10.0,
            stands_for: 10.0,
            sum: 60.0,
            amount: 0.0,
            values: vec![(10, 2), (40, 1)],
        });
        let exact = |value| Some(Estimate { value, low: value, high: value });
        assert_eq!(sample.rate(), exact(0.3));
        assert_eq!(sample.mean(), exact(20.0));
        assert_eq!(sample.quantile(0.5), exact(10.0));
    }

    #[test]
    fn a_few_windows_have_no_interval() {
        let mut sample = WindowSample::default();
        let window = SeenTime { length: 1.0, stands_for: 5.0, sum: 3.0, amount: 0.0, values: vec![(3, 1)] };
        for _ in 0..LEAST - 1 {
            sample.add_window(&window);
            assert_eq!(sample.rate(), None);
        }
        sample.add_window(&window);
        assert_eq!(sample.rate().map(|rate| rate.value), Some(1.0));
    }

    #[test]
    fn a_percentile_among_values_of_unknown_size_has_no_end() {
        let mut sample = WindowSample::default();
        for n in 0..20 {
            let values = vec![(10, 97), (u64::MAX, 3 + n % 2)];
            sample.add_window(&SeenTime { length: 1.0, stands_for: 5.0, sum: 970.0, amount: 0.0, values });
        }
        assert_eq!(sample.quantile(0.5).map(|p50| p50.high), Some(10.0));
        assert_eq!(sample.quantile(0.99).map(|p99| p99.high), Some(f64::INFINITY));
    }

    #[test]
    fn a_long_watch_keeps_a_bounded_number_of_groups() {
        let mut sample = WindowSample::default();
        for n in 0..10_000 {
            let values = vec![(n % 50, 2)];
            sample.add_window(&SeenTime {
                length: 1.0,
                stands_for: 4.0,
                sum: (n % 50 * 2) as f64,
                amount: 0.0,
                values,
            });
        }
        assert!(sample.windows.len() <= WINDOWS);
        let rate = sample.rate().unwrap();
        assert!((rate.value - 2.0).abs() < 1e-9 && rate.high - rate.low < 1e-6, "{rate:?}");
    }

    #[test]
    fn the_points_of_students_distribution_are_those_of_the_tables() {
        for (freedom, point) in [(7.0, 2.365), (20.0, 2.086), (100.0, 1.984)] {
            assert!((student(freedom) / point - 1.0).abs() < 0.01, "{freedom}");
        }
    }
}
