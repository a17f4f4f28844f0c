//! Turns readings of processes into the lines and totals of a record.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use host::process::{CpuSpan, End, ProcessUse, ThreadUse};
use record::observation::cpu::{CpuEnd, CpuLine, CpuProcess, CpuThread};
use run::measured::{groups, used};
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
