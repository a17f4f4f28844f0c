//! Which CPUs the threads of a run are pinned to.
//!
//! A worker that stays awake for its schedule must not share its CPU: any other thread there, such as the one that
//! collects the intervals each second, delays it by milliseconds, and the requests due in the meantime leave at once.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::pacer::Pace;

/// One CPU per worker, and the remaining ones for the rest of the client. The thread that created it is restricted to
/// the remaining CPUs until this is dropped.
#[derive(Debug)]
pub(crate) struct CpuPinning {
    workers: Vec<usize>,
    before: CpuSet,
}

impl CpuPinning {
    /// Pins threads if the pace is [`Pace::Precise`] and this process may use more CPUs than there are workers. Returns
    /// `None` otherwise: all threads then run where the kernel puts them.
    pub(crate) fn pin(pace: Pace, workers: u64) -> Option<CpuPinning> {
        if pace != Pace::Precise {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let (rest, cpus) = split(&before, usize::try_from(workers).ok()?)?;
        sched_setaffinity(None, &rest).ok()?;
        Some(CpuPinning { workers: cpus, before })
    }

    /// Pins this thread to the CPU of worker `index`.
    pub(crate) fn pin_worker(&self, index: usize) {
        let mut own = CpuSet::new();
        own.set(self.workers[index]);
        // If the CPU has gone offline in the meantime, the worker runs with the rest.
        let _ = sched_setaffinity(None, &own);
    }
}

impl Drop for CpuPinning {
    fn drop(&mut self) {
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// The workers get the last CPUs, since the first one usually serves most of the interrupts.
fn split(allowed: &CpuSet, workers: usize) -> Option<(CpuSet, Vec<usize>)> {
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let others = cpus.len().checked_sub(workers).filter(|&others| others > 0)?;
    let mut rest = CpuSet::new();
    cpus[..others].iter().for_each(|&cpu| rest.set(cpu));
    Some((rest, cpus[others..].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        set
    }

    #[test]
    fn workers_get_the_last_cpus_and_the_rest_keeps_one() {
        assert_eq!(split(&set(&[1, 4, 5]), 2), Some((set(&[1]), vec![4, 5])));
        assert_eq!(split(&set(&[1, 4]), 1), Some((set(&[1]), vec![4])));
        assert_eq!(split(&set(&[1, 4]), 2), None);
        assert_eq!(split(&set(&[3]), 1), None);
    }

    #[test]
    fn a_thread_is_where_it_was_when_the_pinning_ends() {
        let before = sched_getaffinity(None).unwrap();
        if let Some(pinning) = CpuPinning::pin(Pace::Precise, 1) {
            assert_ne!(sched_getaffinity(None).unwrap(), before);
            drop(pinning);
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(CpuPinning::pin(Pace::Balanced, 1).is_none());
    }
}
