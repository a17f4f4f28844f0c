//! Which tests may run concurrently: a test that measures time runs alone, those that count run together.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use testkit::trials;

static QUIET: RwLock<()> = RwLock::new(());

/// For a test that measures time: nothing else of this package runs in the meantime.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    // A test that failed has left nothing behind that could harm the next.
    QUIET.write().unwrap_or_else(PoisonError::into_inner)
}

/// Most trials of a test whose truth is the kernel's own account of time.
const TRIALS: usize = 3;

/// What was off in a trial, or nothing.
pub type Verdict = Result<(), String>;

pub fn ensure(is_right: bool, off: impl FnOnce() -> String) -> Verdict {
    if is_right { Ok(()) } else { Err(off()) }
}

/// For a test that compares single requests with the kernel's own account: alone, and repeated where their times are
/// off, three trials at most. When the hypervisor takes a CPU, that account and the observer's are wrong by it, each
/// in its own way, for some 100 us up to the next tick; what is wrong in the observer is wrong in each trial. What
/// does not depend on the host, such as counts, a trial asserts itself.
#[track_caller]
pub fn in_trials(trial: impl Fn() -> Verdict) {
    let _alone = alone();
    for n in 1..=TRIALS {
        match trial() {
            Ok(()) => return trials::report(n, TRIALS),
            Err(off) => println!("trial {n} of {TRIALS}: {off}"),
        }
    }
    trials::report(TRIALS, TRIALS);
    panic!("off in each of {TRIALS} trials");
}

/// For a test that only counts.
pub fn together() -> RwLockReadGuard<'static, ()> {
    QUIET.read().unwrap_or_else(PoisonError::into_inner)
}
