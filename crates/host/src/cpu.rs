//! CPU time and memory of this process.
#![expect(unsafe_code, reason = "getrusage has no safe wrapper here")]

use std::mem;

use units::Nanos;

/// User and system time of all threads of this process so far, ended threads included; `None` when the kernel
/// refuses.
///
/// # Cost
///
/// One system call: once per interval.
pub fn process_cpu() -> Option<Nanos> {
    used(libc::RUSAGE_SELF)
}

/// Like [`process_cpu`], for child processes that have ended and were waited for, and for their children.
///
/// # Cost
///
/// As for [`process_cpu`].
pub fn children_cpu() -> Option<Nanos> {
    used(libc::RUSAGE_CHILDREN)
}

/// The resident memory of this process, in bytes; `None` without /proc.
///
/// # Cost
///
/// One file of /proc is read: once per interval.
pub fn process_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn used(who: libc::c_int) -> Option<Nanos> {
    // SAFETY: all-zero is a valid rusage, and the kernel fills the one it is given.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` outlives the call.
    if unsafe { libc::getrusage(who, &raw mut usage) } != 0 {
        return None;
    }
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Some(Nanos(nanos(usage.ru_utime) + nanos(usage.ru_stime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work() {
        let before = process_cpu().unwrap();
        let own = clock::thread_cpu();
        while clock::thread_cpu() < own + Nanos::from_millis(20) {}
        let used = process_cpu().unwrap() - before;
        assert!(used >= Nanos::from_millis(19), "{used}");
    }

    #[test]
    fn memory_that_is_written_is_counted() {
        let before = process_memory().unwrap();
        let written = std::hint::black_box(vec![1_u8; 64 << 20]);
        let grown = process_memory().unwrap().saturating_sub(before);
        assert!(grown > (60 << 20), "{grown} of {}", written.len());
    }
}
