//! Which leaf frames on a CPU spin: they wait for a lock without sleeping.
//!
//! Spinning is neither work nor sleep: the profile shows it as CPU time, and more CPUs make it worse. Rules are data;
//! the names that a user adds come first.

use std::collections::BTreeMap;

use super::Stacks;
use super::waits::has_words;
use crate::observation::profile::Spin;

/// Functions that spin, and what they wait for.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// What is waited for, as text for people.
    pub what: &'static str,
    /// Names of functions. Each is searched for as whole words in the name of the leaf.
    pub frames: &'static [&'static str],
}

/// A name here spins in its own instructions. A function that spins at first and then sleeps is also one: asleep it is
/// not on a CPU.
pub const RULES: &[Rule] = &[
    Rule {
        what: "a lock of InnoDB",
        frames: &[
            "ut_delay",
            "rw_lock_x_lock_func",
            "rw_lock_sx_lock_func",
            "rw_lock_s_lock_spin",
            "TTASEventMutex",
            "TTASFutexMutex",
            "ssux_lock_impl<true>::rd_wait",
            "ssux_lock_impl<true>::wr_wait",
            "srw_mutex_impl<true>::wait_and_lock",
            "srw_spin_lock_low",
        ],
    },
    Rule {
        what: "a spinlock of PostgreSQL",
        frames: &["s_lock", "tas_spin", "perform_spin_delay", "LWLockWaitListLock"],
    },
    Rule { what: "a lock of nginx", frames: &["ngx_spinlock", "ngx_shmtx_lock", "ngx_rwlock_wlock"] },
    Rule {
        what: "a monitor or a lock of the JVM",
        frames: &[
            "SpinPause",
            "ObjectMonitor::TrySpin",
            "ObjectMonitor::try_spin",
            "ObjectMonitor::short_fixed_spin",
            "SpinYield",
            "Thread.onSpinWait",
        ],
    },
    Rule {
        what: "a lock of Go's runtime",
        frames: &[
            "runtime.procyield",
            "runtime.procyield.abi0",
            "runtime.procyieldAsm",
            "sync.runtime_doSpin",
        ],
    },
    Rule {
        what: "a lock of a Rust program",
        frames: &[
            "std::sys::sync::mutex::futex::Mutex::spin",
            "std::sys::sync::rwlock::futex::RwLock::spin_until",
            "core::hint::spin_loop",
            "parking_lot_core::spinwait::SpinWait",
            "crossbeam_utils::backoff::Backoff",
            "spin::mutex::spin::SpinMutex",
        ],
    },
    Rule {
        what: "a lock of the memory allocator",
        frames: &["SpinLock::SpinLoop", "tcmalloc::SpinLock", "spin_adaptive", "AllocSpinLock"],
    },
    Rule {
        what: "a barrier or lock of OpenMP",
        frames: &["do_spin", "gomp_barrier_wait_end", "gomp_team_barrier_wait_end", "__kmp_wait_template"],
    },
    Rule { what: "a spinlock of the C library", frames: &["pthread_spin_lock", "__pthread_spin_lock"] },
    Rule {
        // Taking a free mutex also runs here, in a few nanoseconds.
        what: "a mutex of the C library, adaptive or contended",
        frames: &[
            "pthread_mutex_lock",
            "__pthread_mutex_lock",
            "___pthread_mutex_lock",
            "pthread_mutex_timedlock",
        ],
    },
    Rule {
        what: "a spinlock of the kernel",
        frames: &[
            "native_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "__pv_queued_spin_lock_slowpath",
            "queued_read_lock_slowpath",
            "queued_write_lock_slowpath",
        ],
    },
    Rule {
        what: "a mutex or semaphore of the kernel whose owner runs",
        frames: &[
            "osq_lock",
            "mutex_spin_on_owner",
            "rwsem_spin_on_owner",
            "rwsem_optimistic_spin",
            "__mutex_lock",
        ],
    },
];

/// What the stacks of a CPU spin for, the most samples first. `added` are names of further functions that spin.
pub fn found(on_cpu: &Stacks, added: &[String]) -> Vec<Spin> {
    let mut samples: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, weight) in on_cpu.iter() {
        // The root names the thread.
        let frames: Vec<_> = frames.skip(1).collect();
        if let Some(what) = reason(&frames, added) {
            *samples.entry(what).or_default() += weight;
        }
    }
    let whole = on_cpu.total().max(1) as f64;
    let spin = |(what, samples)| Spin { what, samples, share: samples as f64 / whole };
    let mut found: Vec<_> = samples.into_iter().map(spin).collect();
    found.sort_by_key(|spin| std::cmp::Reverse(spin.samples));
    found
}

/// Why a stack spins; `None` if it works.
fn reason(frames: &[&str], added: &[String]) -> Option<String> {
    let leaf = leaf(frames);
    let runs = |name: &str| leaf.iter().any(|frame| has_words(frame, name));
    if let Some(name) = added.iter().find(|name| runs(name)) {
        return Some(format!("{name} (--spin)"));
    }
    let rule = RULES.iter().find(|rule| rule.frames.iter().any(|name| runs(name)))?;
    Some(rule.what.to_owned())
}

/// The function at the leaf: with what the compiler inlined into it, which is the same code.
fn leaf<'f>(frames: &'f [&'f str]) -> &'f [&'f str] {
    let inlined = frames.iter().rev().take_while(|frame| frame.ends_with("_[i]")).count();
    &frames[frames.len() - (inlined + 1).min(frames.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stack: &str, what: Option<&str>) {
        let stacks = Stacks::parse(&format!("thread;{stack} 1")).unwrap();
        let found = found(&stacks, &["my::own_spin".to_owned()]);
        assert_eq!(found.first().map(|found| found.what.as_str()), what, "{stack}");
    }

    /// If this fails, a server that burns its CPUs in contention looks like one that works hard.
    #[test]
    fn a_leaf_that_spins_is_not_work() {
        check("main;buf_page_get;ut_delay", Some("a lock of InnoDB"));
        check("main;buf_page_get;ut_delay_[i]", Some("a lock of InnoDB"));
        check(
            "main;f;srw_mutex_impl<true>::wait_and_lock();ut_delay_[i];pause_[i]",
            Some("a lock of InnoDB"),
        );
        check("main;LWLockAcquire;s_lock;perform_spin_delay", Some("a spinlock of PostgreSQL"));
        check("main;do_[k];native_queued_spin_lock_slowpath_[k]", Some("a spinlock of the kernel"));
        check("f;bool ObjectMonitor::TrySpin(JavaThread*);SpinPause", Some("a monitor or a lock of the JVM"));
        check("runtime.goexit;runtime.lock2;runtime.procyield.abi0", Some("a lock of Go's runtime"));
        check("main;my::own_spin(int)", Some("my::own_spin (--spin)"));
    }

    #[test]
    fn what_a_spinning_function_calls_is_work() {
        check("main;s_lock;handle_error", None);
        check("main;ut_delay;helper;helper_[i]", None);
        check("main;hash_lock", None);
        check("main;ut_delay_total", None);
        check("ut_delay;main", None);
    }

    #[test]
    fn every_rule_is_reached_by_its_names() {
        for rule in RULES {
            for name in rule.frames {
                check(&format!("main;{name}"), Some(rule.what));
                check(&format!("main;void {name}(long)_[j]"), Some(rule.what));
            }
        }
    }
}
