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

/// A test whose truth is the kernel's own account of time fails when this many trials are off.
const TRIALS: usize = 3;

/// Maximum number of trials, with those in which the hypervisor took a CPU.
const TRIALS_WITH_STEAL: usize = 12;

/// What was off in a trial, if anything.
pub type Verdict = Result<(), String>;

pub fn ensure(is_right: bool, off: impl FnOnce() -> String) -> Verdict {
    if is_right { Ok(()) } else { Err(off()) }
}

/// For a test that compares single requests with the kernel's own account: alone, and repeated if their times are off.
/// If the hypervisor takes a CPU, that account and the observer's are wrong by that time, each in its own way, for some
/// 100 us up to the next tick: such a trial shows nothing if it is off. Of the others, three that are off fail the test,
/// since an error of the observer shows in each trial. A trial itself asserts what does not depend on the host, such as
/// counts.
#[track_caller]
pub fn in_trials(trial: impl Fn() -> Verdict) {
    let _alone = alone();
    let mut off_without_steal = 0;
    for n in 1..=TRIALS_WITH_STEAL {
        let before = stolen_ticks();
        let Err(off) = trial() else { return trials::report(n, TRIALS_WITH_STEAL) };
        let stolen = stolen_ticks() - before;
        println!("trial {n} of at most {TRIALS_WITH_STEAL}: {off}; ticks that the hypervisor took: {stolen}");
        off_without_steal += usize::from(stolen == 0);
        if off_without_steal == TRIALS {
            trials::report(n, TRIALS_WITH_STEAL);
            panic!("off in {TRIALS} trials in which the hypervisor took nothing");
        }
    }
    trials::report(TRIALS_WITH_STEAL, TRIALS_WITH_STEAL);
    panic!("off in each of {TRIALS_WITH_STEAL} trials");
}

/// Time of all CPUs that the hypervisor used for something else, in ticks: the eighth number of the line `cpu`.
fn stolen_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let steal = stat.lines().next().and_then(|cpu| cpu.split_ascii_whitespace().nth(8));
    steal.and_then(|ticks| ticks.parse().ok()).expect("the kernel counts stolen time")
}

/// For a test that only counts.
pub fn together() -> RwLockReadGuard<'static, ()> {
    QUIET.read().unwrap_or_else(PoisonError::into_inner)
}
