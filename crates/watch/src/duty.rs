//! When to watch, so that watching stays within a budget: always, or in windows at random times.
//!
//! Pure: no clock, no kernel. While counting everything costs less than the budget, everything is counted. Above it, time
//! is divided into cycles, and in each a window begins at a random instant. The length of a cycle is set before it
//! begins, by what watching has cost so far, so a window stands for its whole cycle whatever it sees.
//! [`crate::Session`] attaches and detaches the programs.

use units::Nanos;

/// What may be spent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Of the server's CPU time: 0.02 is 2 %.
    pub share: f64,
    /// Decides where the windows are.
    pub seed: u64,
    /// Cycles of this length, whatever they cost: for tests of what follows from windows.
    pub cycle: Option<Nanos>,
}

/// What was used so far; both only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// By watching, of the server's CPUs.
    pub watching: Nanos,
    /// Of it, by attaching and detaching.
    pub attaching: Nanos,
    /// By the server itself.
    pub server: Nanos,
}

/// The requests that are read from `from` to `until` are counted; they stand for as long a time as `stands_for`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: Nanos,
    pub until: Nanos,
    pub stands_for: Nanos,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Everything is counted until then at least.
    Everything(Nanos),
    Window(Window),
}

/// The requests of this time are counted in a window. Attaching and detaching take about 2.5 ms together (2026-11-25, ten
/// tracepoints), and interrupt the other CPUs for about a quarter of that.
pub const WINDOW: Nanos = Nanos::from_millis(50);

/// The programs are attached for this long before a window.
pub const LEAD: Nanos = Nanos::from_millis(2);

/// How long everything is counted at first, and how often its cost is reviewed.
const FIRST_REVIEW: Nanos = Nanos::from_millis(300);
const REVIEW: Nanos = Nanos::from_secs(1);

/// A cycle has room for a window and for the end of its requests, and is short enough for many windows in a run of some minutes.
const SHORTEST_CYCLE: Nanos = Nanos::from_millis(100);
const LONGEST_CYCLE: Nanos = Nanos::from_secs(5);

/// As much may be spent however little the server does: a thousandth of a CPU.
const LEAST: f64 = 0.001;

/// Everything is counted again when that would have cost less than this part of the budget, for so many windows.
const CHEAP: f64 = 0.7;
const CHEAP_WINDOWS: u32 = 5;

/// The weight of the latest window in what is expected of the next.
const LATEST: f64 = 0.3;

/// The schedule of the windows.
#[derive(Debug)]
pub struct Duty {
    budget: Budget,
    /// State of SplitMix64.
    random: u64,
    /// When the accounts were last settled, and what had been spent then.
    settled: (Nanos, Spent),
    /// Spent beyond the budget so far, in nanoseconds.
    debt: f64,
    /// What a window costs, and what of it is not for attaching and detaching.
    window_cost: f64,
    watching_cost: f64,
    /// What may be spent per nanosecond.
    allowed: f64,
    cycle_ends: Nanos,
    /// How many windows in a row were cheap.
    cheap: u32,
}

impl Duty {
    /// Everything is counted first; call [`Duty::review`] at the instant that is returned.
    pub fn new(budget: Budget, now: Nanos, spent: Spent) -> (Duty, Nanos) {
        let duty = Duty {
            budget,
            random: budget.seed,
            settled: (now, spent),
            debt: 0.0,
            window_cost: 0.0,
            watching_cost: 0.0,
            allowed: 0.0,
            cycle_ends: now,
            cheap: 0,
        };
        (duty, now + FIRST_REVIEW)
    }

    /// What it keeps.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// What had been spent when this was last given.
    pub fn spent(&self) -> Spent {
        self.settled.1
    }

    /// Everything was counted until `now`.
    pub fn review(&mut self, now: Nanos, spent: Spent) -> Next {
        let time = (now - self.settled.0).0.max(1) as f64;
        let (cost, allowed) = self.settle(now, spent);
        self.allowed = allowed / time;
        if cost <= allowed && self.budget.cycle.is_none() {
            self.debt = self.debt.min(0.0);
            return Next::Everything(now + REVIEW);
        }
        self.window_cost = cost * WINDOW.0 as f64 / time;
        self.watching_cost = self.window_cost;
        self.cheap = 0;
        self.cycle_ends = now;
        Next::Window(self.window(now))
    }

    /// A window is over, and the programs were detached.
    pub fn after_window(&mut self, now: Nanos, spent: Spent) -> Next {
        let time = (now - self.settled.0).0.max(1) as f64;
        let attaching = spent.attaching.saturating_sub(self.settled.1.attaching).0 as f64;
        let (cost, allowed) = self.settle(now, spent);
        self.window_cost += LATEST * (cost - self.window_cost);
        self.watching_cost += LATEST * (cost - attaching - self.watching_cost);
        self.allowed += LATEST * (allowed / time - self.allowed);
        let is_cheap = self.watching_cost < CHEAP * self.allowed * WINDOW.0 as f64;
        self.cheap = if is_cheap { self.cheap + 1 } else { 0 };
        if self.cheap >= CHEAP_WINDOWS && self.budget.cycle.is_none() {
            return Next::Everything(now + FIRST_REVIEW);
        }
        Next::Window(self.window(now))
    }

    /// What was spent since the last call, and what might have been.
    fn settle(&mut self, now: Nanos, spent: Spent) -> (f64, f64) {
        let (at, before) = std::mem::replace(&mut self.settled, (now, spent));
        let cost = spent.watching.saturating_sub(before.watching).0 as f64;
        let server = spent.server.saturating_sub(before.server).0 as f64;
        let allowed = (self.budget.share * server).max(LEAST * (now - at).0 as f64);
        // What was not spent for long must not be spent at once.
        self.debt = (self.debt + cost - allowed).max(-self.window_cost);
        (cost, allowed)
    }

    /// The window of the next cycle, so long that the budget is kept at its end.
    fn window(&mut self, now: Nanos) -> Window {
        let begins = self.cycle_ends.max(now);
        let needed = (self.debt + self.window_cost) / self.allowed;
        let length = needed - (begins - now).0 as f64;
        let length = length.clamp(SHORTEST_CYCLE.0 as f64, LONGEST_CYCLE.0 as f64);
        let length = self.budget.cycle.map_or(length, |cycle| cycle.0 as f64);
        let stands_for = Nanos(length as u64);
        self.cycle_ends = begins + stands_for;
        // The window may reach into the next cycle: so each instant has the same chance, those at the edges too.
        let from = begins + Nanos((self.unit() * length) as u64);
        let from = from.max(now + LEAD);
        Window { from, until: from + WINDOW, stands_for }
    }

    /// Uniform over [0, 1), by SplitMix64.
    fn unit(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server in simulated time: how much of a CPU it uses and what part of that watching costs, by second.
    struct Simulated {
        now: Nanos,
        spent: Spent,
        load: fn(u64) -> (f64, f64),
        /// What attaching and detaching cost.
        toggle: Nanos,
        windows: Vec<Window>,
        everything: Nanos,
    }

    impl Simulated {
        /// Runs on to `until`, watched or not.
        fn run(&mut self, until: Nanos, watched: bool) {
            while self.now < until {
                let step = Nanos::from_millis(1).min(until - self.now);
                let (cpu, cost) = (self.load)(self.now.0 / 1_000_000_000);
                let used = cpu * step.0 as f64;
                self.spent.server += Nanos(used as u64);
                if watched {
                    self.spent.watching += Nanos((used * cost) as u64);
                    self.everything += step;
                }
                self.now += step;
            }
        }

        fn of(load: fn(u64) -> (f64, f64), seed: u64, length: Nanos) -> Simulated {
            let zero = Nanos::from_secs(1_000);
            let toggle = Nanos::from_micros(600);
            let mut one = Simulated {
                now: zero,
                spent: Spent::default(),
                load,
                toggle,
                windows: Vec::new(),
                everything: Nanos::ZERO,
            };
            let (mut duty, review) = Duty::new(Budget { share: 0.02, seed, cycle: None }, zero, one.spent);
            let mut next = Next::Everything(review);
            while one.now < zero + length {
                next = match next {
                    Next::Everything(until) => {
                        one.run(until, true);
                        duty.review(one.now, one.spent)
                    }
                    Next::Window(window) => {
                        one.run(window.from - LEAD, false);
                        one.run(window.until, true);
                        one.spent.watching += one.toggle;
                        one.spent.attaching += one.toggle;
                        one.windows.push(window);
                        duty.after_window(one.now, one.spent)
                    }
                };
            }
            one
        }

        fn share(&self) -> f64 {
            self.spent.watching.0 as f64 / self.spent.server.0 as f64
        }
    }

    #[test]
    fn everything_is_counted_within_the_budget() {
        let one = Simulated::of(|_| (1.0, 0.019), 1, Nanos::from_secs(60));
        assert!(one.windows.is_empty());
        assert_eq!(one.everything, one.now - Nanos::from_secs(1_000));
    }

    #[test]
    fn the_budget_is_kept_by_windows() {
        for seed in 0..20 {
            let one = Simulated::of(|_| (1.0, 0.15), seed, Nanos::from_secs(60));
            assert!((0.017..0.0203).contains(&one.share()), "{}", one.share());
            assert!(one.windows.len() > 100, "{}", one.windows.len());
        }
    }

    #[test]
    fn the_budget_is_kept_while_load_and_cost_change() {
        for seed in 0..20 {
            let load = |second: u64| if (second / 7).is_multiple_of(2) { (1.0, 0.15) } else { (0.2, 0.3) };
            let one = Simulated::of(load, seed, Nanos::from_secs(120));
            assert!(one.share() < 0.0206, "{}", one.share());
        }
    }

    /// If this fails, a server that is idle at night is watched in windows the next day, though all could be counted.
    #[test]
    fn everything_is_counted_again_when_it_is_cheap() {
        let load = |second| if second < 1_020 { (1.0, 0.2) } else { (1.0, 0.005) };
        let one = Simulated::of(load, 3, Nanos::from_secs(60));
        let last = one.windows.last().unwrap();
        assert!(last.until < Nanos::from_secs(1_030), "{last:?}");
        assert!(one.share() < 0.02);
    }

    #[test]
    fn windows_are_those_of_the_seed() {
        let of = |seed| Simulated::of(|_| (1.0, 0.15), seed, Nanos::from_secs(10)).windows;
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    /// Each window stands for its cycle: what happens twice per second is estimated without bias, though windows are
    /// five times sparser while the load is high.
    #[test]
    fn a_load_that_changes_the_windows_is_estimated_without_bias() {
        let load = |second: u64| if (second / 2).is_multiple_of(2) { (1.0, 0.3) } else { (1.0, 0.06) };
        let (mut busy, mut all) = (0.0, 0.0);
        for seed in 0..200 {
            for window in Simulated::of(load, seed, Nanos::from_secs(40)).windows {
                let stands_for = window.stands_for.0 as f64;
                all += stands_for;
                busy += stands_for * f64::from(u8::from((window.from.0 / 2_000_000_000).is_multiple_of(2)));
            }
        }
        assert!((busy / all - 0.5).abs() < 0.01, "{}", busy / all);
    }
}
