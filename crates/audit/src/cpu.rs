//! Whether the load generator had the CPU time it needed: how much it used, how long it waited, and who took it away.

use units::Nanos;

use super::{Evidence, degraded, is_over_share, known_sum, percent};
use record::document::Finding;
use record::{Check, Second};

/// Hyperfoil's CPU watchdog warns when a core is idle for less than 20 %; Locust warns at 90 % of its process.
pub const BUSY_PER_MILLE: u64 = 800;

pub(super) fn worker_cpu(evidence: &Evidence<'_>) -> Option<Finding> {
    let per_mille = median(evidence.full_seconds().map(busiest_per_mille).collect())?;
    (per_mille > BUSY_PER_MILLE).then(|| {
        degraded(
            Check::WorkerCpu,
            format!(
                "the busiest worker used {}.{} % of a core in the median second",
                per_mille / 10,
                per_mille % 10
            ),
            "80 %".to_owned(),
            "the load generator may be the limit: throughput is then a lower bound, and schedule_lag and client_lag \
             include its queueing; use more workers, or lower the load",
        )
    })
}

/// All threads of this process, compared with all CPUs it can run on. Skipped if `worker_cpu` found something.
pub(super) fn process_cpu(evidence: &Evidence<'_>) -> Option<Finding> {
    let cpus = evidence.host.cpus.filter(|&cpus| cpus > 0)?;
    if worker_cpu(evidence).is_some() {
        return None;
    }
    // A worker that only spins to be on time has CPU time left.
    let busy = |second: &Second| Some(second.process_cpu_ns?.saturating_sub(second.worker_spin_ns));
    let used = |second: &Second| Some(per_mille(busy(second)?, second.length_ns.saturating_mul(cpus)));
    let per_mille = median(evidence.full_seconds().filter_map(used).collect())?;
    (per_mille > BUSY_PER_MILLE).then(|| {
        degraded(
            Check::ProcessCpu,
            format!(
                "the load generator used {}.{} % of the {cpus} CPUs it can run on in the median second",
                per_mille / 10,
                per_mille % 10
            ),
            "80 %".to_owned(),
            "the load generator may be the limit: give it more CPUs, or lower the load",
        )
    })
}

/// Limit of the share of time a worker waits for a CPU: the chance that a random request meets such a wait. 1 % is the
/// share of requests that may be late; but most waits are far shorter than the 1 ms that counts as late, so ten times
/// that. On an idle host a worker waits for some thousandths of the time.
const WAITING_PER_MILLE: u64 = 100;

pub(super) fn run_queue(evidence: &Evidence<'_>) -> Option<Finding> {
    let length: u64 = evidence.full_seconds().map(|second| second.length_ns).sum();
    let mut workers: Vec<(u64, u64)> = Vec::new();
    for worker in evidence.full_seconds().flat_map(|second| &second.workers) {
        let Some(waited) = worker.run_queue_ns else { continue };
        match workers.iter_mut().find(|(number, _)| *number == worker.worker) {
            Some((_, sum)) => *sum = sum.saturating_add(waited),
            None => workers.push((worker.worker, waited)),
        }
    }
    let (worker, waited) = workers.into_iter().max_by_key(|&(_, waited)| waited)?;
    is_over_share(waited, length, WAITING_PER_MILLE).then(|| {
        let pressure = known_sum(evidence.full_seconds(), |second| second.host.cpu_pressure_ns);
        let pressure = pressure.map(|ns| {
            format!("; CPU pressure (PSI some) was {}", percent(ns, length))
        });
        degraded(
            Check::RunQueue,
            format!(
                "worker {worker} was ready to run but waited for a CPU for {} of the time{}",
                percent(waited, length),
                pressure.unwrap_or_default()
            ),
            "10 %".to_owned(),
            "other processes ran on its CPU: stop them, pin the load generator to free CPUs (taskset), or raise its \
             priority (nice)",
        )
    })
}

/// A share of less than a second has little meaning.
pub(super) fn no_full_second(evidence: &Evidence<'_>) -> Option<String> {
    evidence.full_seconds().next().is_none().then(|| "no full second".to_owned())
}

pub(super) fn no_run_queue(evidence: &Evidence<'_>) -> Option<String> {
    let mut workers = evidence.full_seconds().flat_map(|second| &second.workers);
    let is_kept = workers.any(|worker| worker.run_queue_ns.is_some());
    let no_account = || (!is_kept).then(|| "not reported by this kernel".to_owned());
    no_full_second(evidence).or_else(no_account)
}

/// A throttled load generator is late by the time it was throttled, so the limit is that of late requests.
const THROTTLED_PER_MILLE: u64 = 10;

pub(super) fn cpu_quota(evidence: &Evidence<'_>) -> Option<Finding> {
    let length: u64 = evidence.seconds.iter().map(|second| second.length_ns).sum();
    let throttled = known_sum(evidence.seconds.iter(), |second| second.host.throttled_ns)?;
    let times = known_sum(evidence.seconds.iter(), |second| second.host.throttled).unwrap_or(0);
    is_over_share(throttled, length, THROTTLED_PER_MILLE).then(|| {
        degraded(
            Check::CpuQuota,
            format!(
                "the load generator's control group was throttled by its CPU quota in {times} periods, for {}",
                Nanos(throttled)
            ),
            format!("1 % of the run, {}", Nanos(length / 1_000 * THROTTLED_PER_MILLE)),
            "raise the quota (cpu.max, or the container's CPU limit), or lower the load",
        )
    })
}

/// Share of the time of the CPUs that this client may use. A stolen tick is as long as an interval of the kernel's
/// timer, 1 to 10 ms, so one request in a hundred may meet one at 1 %; five times that allows for the coarseness of a
/// counter that moves in steps of 10 ms.
const STOLEN_PER_MILLE: u64 = 50;

pub(super) fn steal(evidence: &Evidence<'_>) -> Option<Finding> {
    let cpus = evidence.host.cpus.filter(|&cpus| cpus > 0)?;
    let length: u64 = evidence.seconds.iter().map(|second| second.length_ns).sum();
    let stolen = known_sum(evidence.seconds.iter(), |second| second.host.steal_ns)?;
    let whole = length.saturating_mul(cpus);
    is_over_share(stolen, whole, STOLEN_PER_MILLE).then(|| {
        degraded(
            Check::Steal,
            format!("the hypervisor took {} of the load generator's CPU time", percent(stolen, whole)),
            "5 %".to_owned(),
            "this virtual machine shares its CPUs with others: use one with dedicated CPUs, or bare metal",
        )
    })
}

fn busiest_per_mille(second: &Second) -> u64 {
    per_mille(second.worker_cpu_max_ns, second.length_ns)
}

fn per_mille(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 1_000 / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The median; for an even number of values, the lower of the two middle ones.
fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}
