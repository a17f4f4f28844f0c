//! What processes used, as a record has it: readings become lines and totals.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use host::process::{CpuSpan, End, GroupOf, GroupUse, ProcessUse, ThreadUse, Usage};
use record::observation::cpu::{
    CpuEnd, CpuGroup, CpuGroupKind, CpuLine, CpuProcess, CpuSplit, CpuThread, CpuUse, SplitMethod,
};
use record::{GroupMemory, GroupResources};
use units::Nanos;

/// The time between the midpoints of the first and the last reading.
pub fn length(span: &CpuSpan) -> Nanos {
    span.end.middle().saturating_sub(span.begin.middle())
}

/// All processes of a time span.
pub fn line(span: &CpuSpan, tick: Nanos) -> CpuLine {
    let processes = span.processes.iter().map(|process| reported(process, tick)).collect();
    CpuLine { readings: span.readings, processes, groups: groups(span, tick), idle: 0 }
}

/// With `--all`, most processes use no CPU time; they are only counted.
pub fn set_idle_apart(line: &mut CpuLine) {
    let all = line.processes.len();
    line.processes.retain(|process| process.used.run_ns > 0 || process.began || process.end != CpuEnd::Alive);
    line.idle = (all - line.processes.len()) as u64;
}

/// The note on a process that has ended.
pub fn ended(process: &ProcessUse) -> Option<String> {
    let (name, seen) = (format!("process {} ({})", process.pid, process.name), process.usage.elapsed());
    match process.end {
        End::Alive => None,
        End::Cut | End::Reused if seen == Nanos::ZERO => {
            Some(format!("{name} ended before its second reading"))
        }
        End::Whole => Some(format!("{name} ended after {seen}; all of its CPU time is included")),
        End::Cut => Some(format!("{name} ended; its CPU time after the last reading, at {seen}, is missing")),
        End::Reused => Some(format!(
            "{name} ended and another process has its process ID now; its CPU time after {seen} is missing"
        )),
    }
}

fn reported(process: &ProcessUse, tick: Nanos) -> CpuProcess {
    let all = || process.threads.iter().map(|(&tid, thread)| (tid, thread));
    let all = || all().chain(process.replaced.iter().map(|(tid, thread)| (*tid, thread)));
    let count = |is: fn(&ThreadUse) -> bool| all().filter(|(_, thread)| is(thread)).count() as u64;
    CpuProcess {
        pid: process.pid,
        started: process.started,
        name: process.name.clone(),
        uid: process.uid,
        user: user_name(process.uid),
        began: process.began,
        end: match process.end {
            End::Alive => CpuEnd::Alive,
            End::Whole => CpuEnd::Whole,
            End::Cut => CpuEnd::Cut,
            End::Reused => CpuEnd::Reused,
        },
        used: used(&process.usage, tick),
        threads_began: count(|thread| thread.began),
        threads_ended: count(|thread| thread.ended),
        unseen_ns: process.unseen().0,
        counts_all: process.counts_all(),
        threads: all().filter_map(|(tid, thread)| one_thread(tid, thread, tick)).collect(),
    }
}

fn one_thread(tid: u32, thread: &ThreadUse, tick: Nanos) -> Option<CpuThread> {
    let name = thread.name.clone()?;
    Some(CpuThread { tid, name, began: thread.began, ended: thread.ended, used: used(&thread.usage, tick) })
}

/// From /etc/passwd only: querying a directory service needs code that a static binary does not have.
fn user_name(uid: u32) -> Option<String> {
    static NAMES: OnceLock<BTreeMap<u32, String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| users(&std::fs::read_to_string("/etc/passwd").unwrap_or_default()));
    names.get(&uid).cloned()
}

/// `mysql:x:117:122:MySQL Server:/nonexistent:/bin/false`; the first line of an id counts.
fn users(passwd: &str) -> BTreeMap<u32, String> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    passwd.lines().rev().filter_map(user).collect()
}

/// The trees, single processes or control group of a span.
fn groups(span: &CpuSpan, tick: Nanos) -> Vec<CpuGroup> {
    span.groups.iter().map(|group| group_of(group, tick)).collect()
}

/// Adds memory with shared pages divided (PSS), which is read before and after all spans only.
pub fn set_proportional(groups: &mut [CpuGroup], before: &[Option<u64>], after: &[Option<u64>]) {
    for (group, (before, after)) in groups.iter_mut().zip(before.iter().zip(after)) {
        (group.memory.proportional_before, group.memory.proportional_after) = (*before, *after);
    }
}

fn group_of(group: &GroupUse, tick: Nanos) -> CpuGroup {
    let (kind, pid, path) = match &group.of {
        GroupOf::Tree { pid, .. } => (CpuGroupKind::Tree, Some(*pid), None),
        GroupOf::Process { pid, .. } => (CpuGroupKind::Process, Some(*pid), None),
        GroupOf::Cgroup { path } => (CpuGroupKind::Cgroup, None, Some(path.clone())),
    };
    CpuGroup {
        kind,
        pid,
        path,
        name: group.name.clone(),
        used: used(&group.usage, tick),
        began: group.began,
        ended: group.ended,
        cut: group.cut,
        discarding: group.discarding.clone(),
        counts_all: group.counts_all,
        resources: resources(group),
        memory: GroupMemory {
            resident_before: group.memory_before.resident,
            resident_after: group.memory.resident,
            virtual_before: group.memory_before.virtual_size,
            virtual_after: group.memory.virtual_size,
            ..GroupMemory::default()
        },
    }
}

/// What was used, with its division by ticks.
fn used(usage: &Usage, tick: Nanos) -> CpuUse {
    let split = usage.split(tick).map(|split| CpuSplit {
        method: SplitMethod::Ticks,
        user_ns: split.user.0,
        system_ns: split.system.0,
        error_ns: split.error.0,
        reliable: split.is_reliable(),
        ticks: Some(split.ticks),
        boundary: None,
    });
    CpuUse {
        from_ns: usage.from.middle().0,
        to_ns: usage.to.middle().0,
        elapsed_error_ns: usage.elapsed_error().0,
        run_ns: usage.run.0,
        error_ns: usage.error.0,
        wait_ns: usage.wait.0,
        slices: usage.slices,
        voluntary: usage.switches.map(|switches| switches.voluntary),
        involuntary: usage.switches.map(|switches| switches.involuntary),
        split,
    }
}

/// In the words of a record.
pub fn resources(group: &GroupUse) -> GroupResources {
    GroupResources {
        processes: group.processes,
        resident_bytes: group.memory.resident,
        swapped_bytes: group.memory.swapped,
        virtual_bytes: group.memory.virtual_size,
        minor_faults: group.faults.map(|faults| faults.minor),
        major_faults: group.faults.map(|faults| faults.major),
        read_bytes: group.storage.map(|storage| storage.read),
        written_bytes: group.storage.map(|storage| storage.written),
        voluntary: group.usage.switches.map(|switches| switches.voluntary),
        involuntary: group.usage.switches.map(|switches| switches.involuntary),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_first_name_of_their_id() {
        let users =
            users("root:x:0:0::/root:/bin/sh\n# no user\ntoor:x:0:0::/:\nmysql:x:117:122:M:/:/bin/false\n");
        assert_eq!(
            users.into_iter().collect::<Vec<_>>(),
            [(0, "root".to_owned()), (117, "mysql".to_owned())]
        );
    }
}
