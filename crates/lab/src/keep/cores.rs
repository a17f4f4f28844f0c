//! Which CPUs the server and the load of a run may use: halves of the cores, so that neither takes time from the other.

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs of the two sides of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuSplit {
    pub server: Vec<usize>,
    pub load: Vec<usize>,
}

/// Halves of the cores that this process may use; `None` with a single core. Hardware threads of one core share its
/// units, so they stay on one side.
pub(crate) fn split() -> Option<CpuSplit> {
    let allowed = sched_getaffinity(None).ok()?;
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    halves(&cpus, |cpu| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(path).unwrap_or_else(|_| cpu.to_string())
    })
}

/// The server gets the larger half: it is what is measured.
fn halves(cpus: &[usize], core: impl Fn(usize) -> String) -> Option<CpuSplit> {
    let mut cores: Vec<(String, Vec<usize>)> = Vec::new();
    for cpu in cpus {
        let name = core(*cpu);
        match cores.iter_mut().find(|(known, _)| *known == name) {
            Some((_, threads)) => threads.push(*cpu),
            None => cores.push((name, vec![*cpu])),
        }
    }
    let load = cores.split_off(cores.len().div_ceil(2));
    let threads = |cores: Vec<(String, Vec<usize>)>| cores.into_iter().flat_map(|(_, cpus)| cpus).collect();
    (!load.is_empty()).then(|| CpuSplit { server: threads(cores), load: threads(load) })
}

/// Does `spawn` on these CPUs: a process inherits them from the thread that starts it.
pub(crate) fn with_cpus<T>(cpus: Option<&[usize]>, spawn: impl FnOnce() -> T) -> T {
    let before = cpus.and_then(|cpus| {
        let before = sched_getaffinity(None).ok()?;
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        sched_setaffinity(None, &set).ok()?;
        Some(before)
    });
    let done = spawn();
    if let Some(before) = before {
        let _ = sched_setaffinity(None, &before);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, server and load share a core, and each looks slower than it is.
    #[test]
    fn hardware_threads_of_a_core_stay_together() {
        // CPUs 0 and 2 are one core, 1 and 3 the other.
        let split = halves(&[0, 1, 2, 3], |cpu| (cpu % 2).to_string()).unwrap();
        assert_eq!((split.server, split.load), (vec![0, 2], vec![1, 3]));
        let odd = halves(&[0, 1, 5], |cpu| cpu.to_string()).unwrap();
        assert_eq!((odd.server, odd.load), (vec![0, 1], vec![5]));
        assert_eq!(halves(&[0, 1], |_| "one".to_owned()), None);
    }

    #[test]
    fn the_thread_has_its_cpus_again() {
        let before = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
        let within = with_cpus(Some(&[cpu]), || sched_getaffinity(None).unwrap());
        assert_eq!(within.count(), 1);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
