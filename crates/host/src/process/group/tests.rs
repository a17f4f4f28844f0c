//! Groups between made-up snapshots: processes that end, join, and wait for others.

use super::*;
use crate::process::text::Reaped;

const ROOT: u32 = 7;

/// A process that has used `run_ms`, and whose ended children used `reaped_ms`; a fault per millisecond.
fn process(pid: u32, parent: u32, run_ms: u64, reaped_ms: u64) -> ProcessReading {
    ProcessReading {
        discards_children: false,
        pid,
        started: u64::from(pid),
        parent,
        name: "server".to_owned(),
        uid: 0,
        at: Moment::default(),
        run: Nanos::from_millis(run_ms),
        hidden: Nanos::ZERO,
        running: 0,
        late: Nanos::ZERO,
        has_ended: false,
        ticks: Ticks { user: run_ms / 10, system: 0 },
        faults: Faults { minor: run_ms, major: 0 },
        reaped: Reaped {
            ticks: Ticks { user: reaped_ms / 10, system: 0 },
            faults: Faults { minor: reaped_ms, major: 0 },
        },
        memory: Memory { resident: 1_000, swapped: Some(0), virtual_size: 5_000 },
        storage: Some(Storage { read: run_ms + reaped_ms, written: 0 }),
        threads: BTreeMap::new(),
    }
}

fn snapshot<const N: usize>(processes: [ProcessReading; N]) -> Snapshot {
    Snapshot::of(processes.into_iter().map(|process| (process.pid, process)).collect())
}

fn tree(first: &Snapshot) -> Group {
    let of = GroupOf::Tree { pid: ROOT, started: u64::from(ROOT) };
    Group::start(of, "server".to_owned(), first, (2, Nanos::from_millis(4)))
}

fn taken(group: &mut Group) -> GroupUse {
    group.take((Moment::default(), Moment::default()), &[])
}

fn follow(group: &mut Group, before: &Snapshot, now: &Snapshot) {
    // Those with ids from 100 on began within the span.
    group.follow(before, now, |reading| reading.pid >= 100);
}

/// If this fails, a server that forks seems to use nothing, or its children are counted twice.
#[test]
fn children_are_in_the_sum_while_they_live_and_after_they_were_waited_for() {
    let first = snapshot([process(7, 1, 100, 50), process(8, 7, 500, 0), process(9, 1, 900, 0)]);
    let mut group = tree(&first);
    // 8 used 20 ms more, 100 began and used 30 ms with a child of its own that used 40.
    let second = snapshot([
        process(7, 1, 110, 50),
        process(8, 7, 520, 0),
        process(100, 8, 30, 0),
        process(101, 100, 40, 0),
    ]);
    follow(&mut group, &first, &second);
    let used = taken(&mut group);
    assert_eq!(used.usage.run, Nanos::from_millis(10 + 20 + 30 + 40));
    assert_eq!((used.processes, used.began, used.ended, used.cut), (4, 2, 0, 0));
    assert_eq!((used.usage.error, used.memory.resident), (Nanos::ZERO, 4_000));
    assert_eq!(used.memory_before.resident, 2_000);
    // 101 used 10 ms more before 100 waited for it and ended; unseen children of 8 used 60 ms.
    let third = snapshot([process(7, 1, 110, 50), process(8, 7, 520, 30 + 50 + 60)]);
    follow(&mut group, &second, &third);
    let used = taken(&mut group);
    assert_eq!(used.usage.run, Nanos::from_millis(10 + 60));
    assert_eq!((used.processes, used.began, used.ended, used.cut), (2, 0, 2, 0));
    assert_eq!(used.faults, Some(Faults { minor: 70, major: 0 }));
    assert_eq!(used.storage, Some(Storage { read: 70, written: 0 }));
    // One process received accounts in hundredths of a second.
    assert_eq!((used.usage.error, used.counts_all), (Nanos::from_millis(20), false));
}

/// If this fails, the CPU time of a tree goes down when a child ends that no process waits for.
#[test]
fn what_was_seen_of_a_child_that_nobody_waits_for_is_kept() {
    let first = snapshot([process(7, 1, 100, 0), process(8, 7, 500, 0)]);
    let mut group = tree(&first);
    let second = snapshot([process(7, 1, 100, 0), process(8, 7, 520, 0), process(100, 7, 30, 0)]);
    follow(&mut group, &first, &second);
    let third = snapshot([process(7, 1, 101, 0), process(8, 7, 520, 0)]);
    follow(&mut group, &second, &third);
    let used = taken(&mut group);
    assert_eq!((used.usage.run, used.cut), (Nanos::from_millis(51), 1));
    // The root ends, and with it the process that would receive the account of 8.
    let fourth = snapshot([process(8, 1, 540, 0)]);
    follow(&mut group, &third, &fourth);
    assert!(!group.is_over(), "a member stays one when its parent ends");
    let fifth = snapshot([]);
    follow(&mut group, &fourth, &fifth);
    let used = taken(&mut group);
    assert_eq!((used.usage.run, used.cut, group.is_over()), (Nanos::from_millis(20), 2, true));
}

#[test]
fn what_a_process_used_before_it_joined_is_not_counted() {
    let first = snapshot([process(7, 1, 100, 0)]);
    let mut group = tree(&first);
    // 8 existed before, and is now a child of 7: its parent ended, and 7 is the process that orphans are moved to.
    let second = snapshot([process(7, 1, 100, 0), process(8, 7, 500, 300)]);
    follow(&mut group, &first, &second);
    let third = snapshot([process(7, 1, 100, 0), process(8, 7, 504, 300)]);
    follow(&mut group, &second, &third);
    assert_eq!(taken(&mut group).usage.run, Nanos::from_millis(4));
}

#[test]
fn one_process_is_measured_without_its_children() {
    let first = snapshot([process(7, 1, 100, 0), process(8, 7, 500, 0)]);
    let of = GroupOf::Process { pid: ROOT, started: u64::from(ROOT) };
    let mut group = Group::start(of, "server".to_owned(), &first, (2, Nanos::from_millis(4)));
    let second = snapshot([process(7, 1, 103, 900)]);
    follow(&mut group, &first, &second);
    let used = taken(&mut group);
    assert_eq!((used.usage.run, used.processes), (Nanos::from_millis(3), 1));
    assert_eq!(used.usage.error, Nanos::ZERO);
}

#[test]
fn a_control_group_has_an_account_of_its_own() {
    let of = GroupOf::Cgroup { path: "/a".to_owned() };
    let level = |ms: i128| Level { run_ns: ms * 1_000_000, faults: None, ..Level::ZERO };
    let first = Snapshot { cgroup: Some(level(10)), ..snapshot([process(7, 1, 100, 0)]) };
    let mut group = Group::start(of, "a".to_owned(), &first, (2, Nanos::from_millis(4)));
    let second = Snapshot { cgroup: Some(level(95)), ..snapshot([process(100, 1, 5, 0)]) };
    follow(&mut group, &first, &second);
    let used = taken(&mut group);
    assert_eq!((used.usage.run, used.faults), (Nanos::from_millis(85), None));
    assert_eq!((used.processes, used.began, used.ended), (1, 1, 1));
}

#[test]
fn intervals_join_to_the_whole() {
    let first = snapshot([process(7, 1, 100, 0), process(8, 7, 0, 0)]);
    let mut group = tree(&first);
    let second = snapshot([process(7, 1, 110, 20), process(8, 7, 0, 0)]);
    follow(&mut group, &first, &second);
    let mut whole = taken(&mut group);
    let third = snapshot([process(7, 1, 115, 20), process(8, 7, 3, 40), process(100, 7, 1, 0)]);
    follow(&mut group, &second, &third);
    let later = taken(&mut group);
    assert_eq!(later.usage.error, Nanos::from_millis(20));
    whole.join(later);
    assert_eq!(whole.usage.run, Nanos::from_millis(10 + 20 + 5 + 3 + 40 + 1));
    assert_eq!((whole.processes, whole.began, whole.ended), (3, 1, 0));
    // Both received accounts.
    assert_eq!((whole.usage.error, whole.counts_all), (Nanos::from_millis(40), false));
}
