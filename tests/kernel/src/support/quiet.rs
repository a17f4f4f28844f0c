//! Which tests may run concurrently: a test that measures time runs alone, those that count run together.

use std::fs;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use testkit::trials;

static QUIET: RwLock<()> = RwLock::new(());

/// For a test that measures time: nothing else of this package runs at the same time.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    // A failed test leaves nothing behind that could affect the next.
    QUIET.write().unwrap_or_else(PoisonError::into_inner)
}

/// Maximum number of trials of a test whose truth is the kernel's own account of time.
const TRIALS: usize = 3;

/// What was off in a trial, if anything.
pub type Verdict = Result<(), String>;

pub fn ensure(is_right: bool, off: impl FnOnce() -> String) -> Verdict {
    if is_right { Ok(()) } else { Err(off()) }
}

/// For a test that compares single requests with the kernel's own account: alone, and repeated if their times are off,
/// at most three trials. If the hypervisor takes a CPU while one of the two is read and not yet the other, or interrupts a
/// wait, they differ by that time, some 100 us; an error of the observer shows in each trial. What the hypervisor took is
/// printed for each trial that is off. A trial itself asserts what does not depend on the host, such as counts.
#[track_caller]
pub fn in_trials(trial: impl Fn() -> Verdict) {
    let _alone = alone();
    for n in 1..=TRIALS {
        let before = stolen_ticks();
        match trial() {
            Ok(()) => return trials::report(n, TRIALS),
            Err(off) => {
                let stolen = stolen_ticks() - before;
                println!("trial {n} of {TRIALS}: {off}; the hypervisor took {stolen} ticks");
            }
        }
    }
    trials::report(TRIALS, TRIALS);
    panic!("off in each of {TRIALS} trials");
}

/// Time of all CPUs that the hypervisor used for something else, in ticks: the eighth number of the line `cpu`.
pub fn stolen_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let steal = stat.lines().next().and_then(|cpu| cpu.split_ascii_whitespace().nth(8));
    steal.and_then(|ticks| ticks.parse().ok()).expect("the kernel counts stolen time")
}

/// For a test that only counts.
pub fn together() -> RwLockReadGuard<'static, ()> {
    QUIET.read().unwrap_or_else(PoisonError::into_inner)
}
