//! One request as it was watched, compared with the server's own account of it.

use std::collections::BTreeMap;

use kernel::account::Account;
use record::{Part, Served};
use units::Nanos;

use crate::support::quiet::{self, Verdict};
use crate::support::tolerance::{is_close, promised};

/// Both views of every request.
pub struct Joined<'a> {
    pub pairs: Vec<(&'a Account, &'a Served)>,
    /// Accounts without a watched request, and requests without an account.
    pub unseen: usize,
    pub unknown: usize,
}

/// Joined by the client's port and the order on its connection: every connection began after the watch did.
pub fn join<'a>(accounts: &'a [Account], served: &'a [Served]) -> Joined<'a> {
    let port = |served: &Served| served.peer.map_or(0, |peer| peer.port());
    let mut seen: BTreeMap<(u16, u64), &Served> =
        served.iter().map(|one| ((port(one), one.n), one)).collect();
    let mut joined = Joined { pairs: Vec::new(), unseen: 0, unknown: 0 };
    for account in accounts {
        match seen.remove(&(account.peer_port, account.n)) {
            Some(served) => joined.pairs.push((account, served)),
            None => joined.unseen += 1,
        }
    }
    joined.unknown = seen.len();
    joined
}

impl<'a> Joined<'a> {
    /// N sent = N reported.
    #[track_caller]
    pub fn check_count(&self, sent: usize, losses: &str) {
        let counts = (self.pairs.len(), self.unseen, self.unknown);
        assert_eq!(counts, (sent, 0, 0), "joined, unseen, unknown; {losses}");
    }

    /// The requests whose paths begin with `path`.
    pub fn of(&self, path: &str) -> Vec<(&'a Account, &'a Served)> {
        self.pairs.iter().copied().filter(|(account, _)| account.path.starts_with(path)).collect()
    }
}

/// The expected length of each part, from the account, in the order of [`Part::ALL`].
pub fn expected(account: &Account) -> [Nanos; Part::COUNT] {
    let yielded = account.delayed_in(&["yield"]);
    let blocked = [
        (Part::Disk, account.blocked_in(&["fsync"])),
        (Part::Lock, account.blocked_in(&["lock"])),
        (Part::Network, account.blocked_in(&["socket"])),
        (Part::Other, account.blocked_in(&["sleep", "pipe"])),
    ];
    let all_blocked: u64 = blocked.iter().map(|(_, length)| length.0).sum();
    let mut parts = [Nanos::ZERO; Part::COUNT];
    parts[Part::OnCpu as usize] = Nanos(account.used.cpu_ns);
    parts[Part::Stolen as usize] = Nanos(account.used.rest_ns().saturating_sub(all_blocked));
    parts[Part::RunQueue as usize] = Nanos(account.used.run_delay_ns) - yielded;
    parts[Part::Yielded as usize] = yielded;
    parts[Part::LoopWait as usize] =
        Nanos((account.written_ns - account.read_ns).saturating_sub(account.used.wall_ns));
    for (part, length) in blocked {
        parts[part as usize] = length;
    }
    parts
}

/// The possible difference between the instants of the two: the observer's edges are within the system calls, the
/// server's own moments after them. Both are known: microseconds, or the time for which the thread was preempted at
/// that point.
pub fn gap(account: &Account, served: &Served) -> Nanos {
    Nanos(account.begun_ns.abs_diff(served.read.0) + account.written_ns.abs_diff(served.done.0))
}

/// The parts that the server's account has as the rest of a step.
const BLOCKED: [Part; 4] = [Part::Disk, Part::Lock, Part::Network, Part::Other];

/// What is wrong with the parts of a request; empty if everything is right. `quota`: its group may be throttled, and
/// then the kernel's own count does not show which part of a wait that was.
pub fn faults(account: &Account, served: &Served, quota: bool) -> Vec<String> {
    let (expected, gap) = (expected(account), gap(account, served));
    let of = |part: Part| (served.part(part), expected[part as usize]);
    let mut faults = Vec::new();
    let mut check = |what: &str, (seen, truth): (Nanos, Nanos)| {
        if !is_close(seen, truth, promised(truth) + gap) {
            faults.push(format!("{what}: {seen} for {truth}"));
        }
    };
    let (stolen, known) = of(Part::Stolen);
    // What the hypervisor took within a step that blocks: the server's account has it as blocked.
    let within = Nanos(stolen.0.saturating_sub(known.0));
    let rests = BLOCKED.map(of).into_iter().chain([(stolen, known)]);
    let rests = rests.fold((Nanos::ZERO, Nanos::ZERO), |(seen, truth), of| (seen + of.0, truth + of.1));
    check("stolen and blocked", rests);
    for part in Part::ALL {
        match part {
            Part::Stolen => check("stolen", (Nanos::min(stolen, known), known)),
            part if BLOCKED.contains(&part) => {
                let (seen, truth) = of(part);
                let least = Nanos(truth.0.saturating_sub(within.0));
                check(part.name(), (seen, seen.clamp(least, truth)));
            }
            // A thread that an interrupt has woken waits until its CPU has finished the interrupt. The kernel has this
            // time on the thread's own clock: if a wake-up leads to a switch at once, the switch is stamped with the
            // clock of the wake-up (`rq_clock_skip_update`, kernel/sched/core.c). Only the sum is known.
            Part::OnCpu if account.path.contains("fsync") => {
                let ((worked, cpu), (waited, delay)) = (of(Part::OnCpu), of(Part::RunQueue));
                check("on_cpu and run_queue", (worked + waited, cpu + delay));
            }
            Part::RunQueue if account.path.contains("fsync") => {}
            Part::RunQueue if quota => {
                let (throttled, _) = of(Part::Throttled);
                let (seen, truth) = of(Part::RunQueue);
                check("run_queue and throttled", (seen + throttled, truth));
            }
            Part::Throttled if quota => {}
            _ => check(part.name(), of(part)),
        }
    }
    faults
}

/// At least 19 of 20 requests are right in every part, and the sum of all of them is right in each part. Between
/// the two readings of a request's beginning, or of its end, the hypervisor may have taken the CPU.
pub fn check_parts(what: &str, pairs: &[(&Account, &Served)], quota: bool) -> Verdict {
    let wrong: Vec<String> = pairs
        .iter()
        .filter_map(|(account, served)| {
            let faults = faults(account, served, quota);
            let reported = || format!("{} n {}: {}", account.path, account.n, faults.join(", "));
            (!faults.is_empty()).then(reported)
        })
        .collect();
    println!("{what}: {} of {} requests have a part that is off", wrong.len(), pairs.len());
    wrong.iter().take(10).for_each(|line| println!("  {line}"));
    quiet::ensure(wrong.len() * 20 <= pairs.len(), || {
        format!("{what}: {} of {} are wrong", wrong.len(), pairs.len())
    })
}

/// Sum of a part over requests, seen and expected.
pub fn totals(pairs: &[(&Account, &Served)], part: Part) -> (Nanos, Nanos) {
    pairs.iter().fold((Nanos::ZERO, Nanos::ZERO), |(seen, truth), (account, served)| {
        (seen + served.part(part), truth + expected(account)[part as usize])
    })
}
