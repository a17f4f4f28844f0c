//! The tables of `cpu`, for invented processes.

#[path = "fixture/rendered.rs"]
mod rendered;

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use findings::{CpuTable, CpuUnit};
use record::observation::cpu::{
    CpuBoundary, CpuEnd, CpuGroup, CpuGroupKind, CpuProcess, CpuSplit, CpuThread, CpuUse, SplitMethod,
};
use record::{GroupMemory, GroupResources};
use rendered::rendered;
use report::Style;
use units::Nanos;

const TICK: Nanos = Nanos::from_millis(4);

fn used(run_ms: u64, split: Option<CpuSplit>) -> CpuUse {
    CpuUse {
        from_ns: 1_000,
        to_ns: 10_000_001_000,
        elapsed_error_ns: 2_000,
        run_ns: run_ms * 1_000_000,
        error_ns: 4_010_000,
        wait_ns: 240_600_000,
        slices: 12_345,
        voluntary: Some(12_000),
        involuntary: Some(345),
        split,
    }
}

fn ticks(user_ms: u64, system_ms: u64, ticks: u64, error_ms: u64) -> CpuSplit {
    CpuSplit {
        method: SplitMethod::Ticks,
        user_ns: user_ms * 1_000_000,
        system_ns: system_ms * 1_000_000,
        error_ns: error_ms * 1_000_000,
        reliable: error_ms * 4 <= user_ms + system_ms,
        ticks: Some(ticks),
        boundary: None,
    }
}

fn process(pid: u32, name: &str, used: CpuUse) -> CpuProcess {
    CpuProcess {
        pid,
        started: 7,
        name: name.to_owned(),
        uid: 117,
        user: Some("mysql".to_owned()),
        began: false,
        end: CpuEnd::Alive,
        used,
        threads_began: 0,
        threads_ended: 0,
        unseen_ns: 0,
        counts_all: true,
        threads: Vec::new(),
    }
}

#[track_caller]
fn check(processes: &[CpuProcess], unit: CpuUnit, expected: &Expect) {
    check_groups(&[], processes, unit, expected);
}

#[track_caller]
fn check_groups(groups: &[CpuGroup], processes: &[CpuProcess], unit: CpuUnit, expected: &Expect) {
    let text = shown(groups, processes, unit, 120);
    // A first line at the margin, because the common indentation is removed from an expected text.
    expected.assert_eq(&format!("table:\n{}", text));
}

fn shown(groups: &[CpuGroup], processes: &[CpuProcess], unit: CpuUnit, width: usize) -> String {
    let command = "/usr/sbin/mariadbd --defaults-file=/etc/my.cnf".to_owned();
    let commands = BTreeMap::from([((7141, 7), command)]);
    let table = CpuTable { processes, groups, idle: 3, cpus: 2, tick: TICK, unit, commands: &commands };
    rendered(&findings::cpu_view(&table), Style { width, ..Style::PLAIN })
}

/// The table without its notes, on a terminal of 80 columns.
#[track_caller]
fn check_narrow(processes: &[CpuProcess], unit: CpuUnit, expected: &Expect) {
    let text = shown(&[], processes, unit, 80);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{widest} columns:\n{text}");
    let rows: Vec<&str> = text.lines().take(processes.len() + 1).collect();
    expected.assert_eq(&format!("table:\n{}\n", rows.join("\n")));
}

#[test]
fn a_table_says_what_each_used_and_how_sure_that_is() {
    let server = process(7141, "mariadbd", used(9_512, Some(ticks(8_834, 678, 2_378, 120))));
    let idle = CpuUse { voluntary: None, involuntary: None, wait_ns: 0, error_ns: 0, ..used(0, None) };
    let mut shell = process(19_869, "sh\u{1b}[2J", idle);
    (shell.user, shell.end, shell.counts_all) = (None, CpuEnd::Cut, false);
    let few = process(19_870, "sysbench", used(8, Some(ticks(8, 0, 2, 8))));
    let all = [server.clone(), few.clone(), shell.clone()];
    check_narrow(
        &all,
        CpuUnit::Machine,
        &expect![[r#"
            table:
                 PID     %USR     %SYS +-SPLIT TICKS    %CPU   +-CPU   %WAIT  COMMAND
                7141    44.17    3.390    0.60  2378   47.56   0.021   1.203  /usr/sbin/mari
               19870 0.04000?   0.000?   0.040     2 0.04000   0.021   1.203  [sysbench]
               19869        –        –       –     –   0.000       0  >0.000  (ended, last s
        "#]],
    );
    check_narrow(
        &all,
        CpuUnit::Seconds,
        &expect![[r#"
            table:
                 PID      USR      SYS +-SPLIT TICKS     CPU   +-CPU    WAIT  COMMAND
                7141    8.834   0.6780    0.12  2378   9.512  0.0041  0.2406  /usr/sbin/mari
               19870 0.00800?   0.000?  0.0080     2 0.00800  0.0041  0.2406  [sysbench]
               19869        –        –       –     –   0.000       0  >0.000  (ended, last s
        "#]],
    );
    check(
        &[server, few, shell],
        CpuUnit::Machine,
        &expect![[r#"
            table:
                 UID     PID     %USR     %SYS +-SPLIT TICKS    %CPU   +-CPU   %WAIT   VCSW  NVCSW  COMMAND
               mysql    7141    44.17    3.390    0.60  2378   47.56   0.021   1.203  12000    345  /usr/sbin/mariadbd --defaults-fi
               mysql   19870 0.04000?   0.000?   0.040     2 0.04000   0.021   1.203  12000    345  [sysbench]
                 117   19869        –        –       –     –   0.000       0  >0.000      –      –  (ended, last seen after 10.0 s)
              % of the 2 CPUs of this host; %CPU is the scheduler's account, for all threads; +- is its error: the time of running
              threads since their last tick (4.00 ms), and the time that reading took
              user and system time are sampled by timer ticks: TICKS is the number of samples, +-SPLIT the 95 % interval for a
              program that is not synchronized with the tick; for one that is, the split can be completely wrong
              ? : unreliable split, its error is more than a quarter of the whole
              > : at least; waits and switches of threads and processes that ended are incomplete
              3 more used no CPU time
        "#]],
    );
}

#[test]
fn threads_stand_under_their_process() {
    let mut server = process(7141, "mariadbd", used(9_512, Some(ticks(8_834, 678, 2_378, 120))));
    server.counts_all = false;
    server.unseen_ns = 512_000_000;
    let thread = |tid, ended| CpuThread {
        tid,
        name: "worker".to_owned(),
        began: false,
        ended,
        used: used(4_500, None),
    };
    server.threads = vec![thread(7_142, false), thread(7_150, true)];
    check(
        &[server],
        CpuUnit::Seconds,
        &expect![[r#"
            table:
                 UID     PID      USR      SYS +-SPLIT TICKS     CPU   +-CPU    WAIT   VCSW  NVCSW  COMMAND
               mysql    7141    8.834   0.6780    0.12  2378   9.512  0.0041 >0.2406 >12000   >345  /usr/sbin/mariadbd --defaults-fi
                        7142        –        –       –     –   4.500  0.0041  0.2406  12000    345  |__worker
                        7150        –        –       –     –   4.500  0.0041 >0.2406 >12000   >345  |__worker (ended)
                                    –        –       –     –  0.5120       –       –      –      –  |__threads that ended unseen
              CPU seconds; CPU is the scheduler's account, for all threads; +- is its error: the time of running threads since their
              last tick (4.00 ms)
              user and system time are sampled by timer ticks: TICKS is the number of samples, +-SPLIT the 95 % interval for a
              program that is not synchronized with the tick; for one that is, the split can be completely wrong
              > : at least; waits and switches of threads and processes that ended are incomplete
              3 more used no CPU time
        "#]],
    );
}

#[test]
fn a_split_at_boundaries_says_what_was_stolen() {
    let boundary = CpuBoundary {
        wall_ns: 10_200_000_000,
        interrupt_ns: 200_000_000,
        stolen_ns: 200_000_000,
        system_calls: 1_000,
        faults: 10,
        interrupts: 345,
        missed_switches: 0,
    };
    let split = CpuSplit {
        method: SplitMethod::Ebpf,
        user_ns: 9_000_000_000,
        system_ns: 1_000_000_000,
        error_ns: 1_000_000,
        reliable: true,
        ticks: None,
        boundary: Some(boundary),
    };
    let server = process(4_194_304, "mariadbd", used(10_000, Some(split)));
    let boundary = CpuBoundary { wall_ns: 900_000, interrupt_ns: 0, stolen_ns: -40_600, ..boundary };
    let little =
        CpuSplit { user_ns: 572_600, system_ns: 325_900, error_ns: 5_000, boundary: Some(boundary), ..split };
    let idle = CpuUse { run_ns: 939_000, error_ns: 1, elapsed_error_ns: 1, ..used(0, Some(little)) };
    check_narrow(
        &[server, process(2046, "uwsgi", idle)],
        CpuUnit::Core,
        &expect![[r#"
        table:
             PID     %USR     %SYS +-SPLIT %STOLEN    %CPU   +-CPU   %WAIT  COMMAND
         4194304    90.00    10.00   0.010   2.000   100.0   0.041   2.406  [mariadbd]
            2046 0.005726 0.003259 0.00005 -0.0004 0.00939 0.00001   2.406  [uwsgi]
    "#]],
    );
    check(
        &[process(7141, "mariadbd", used(10_000, Some(split)))],
        CpuUnit::Core,
        &expect![[r#"
            table:
                 UID     PID     %USR     %SYS +-SPLIT    %IRQ %STOLEN    %CPU   +-CPU   %WAIT   VCSW  NVCSW  COMMAND
               mysql    7141    90.00    10.00   0.010   2.000   2.000   100.0   0.041   2.406  12000    345  /usr/sbin/mariadbd --d
              % of one CPU; %CPU is the scheduler's account, for all threads; +- is its error: the time of running threads since
              their last tick (4.00 ms), and the time that reading took
              user and system time are measured at the boundaries of system calls and interrupts (eBPF), in wall-clock time; STOLEN
              is the part that the hypervisor took and the scheduler did not count
              3 more used no CPU time
        "#]],
    );
}

/// If this fails, `cpu` shows 0 for a parent whose children work.
#[test]
fn a_tree_has_a_row_of_its_own_and_its_memory_a_line() {
    let group = CpuGroup {
        discarding: None,
        kind: CpuGroupKind::Tree,
        pid: Some(7141),
        path: None,
        name: "postgres".to_owned(),
        used: used(9_512, None),
        began: 60,
        ended: 59,
        cut: 1,
        counts_all: false,
        resources: GroupResources {
            processes: 7,
            resident_bytes: 100 << 20,
            swapped_bytes: Some(0),
            virtual_bytes: 900 << 20,
            minor_faults: Some(12_345),
            major_faults: Some(6),
            read_bytes: Some(4 << 20),
            written_bytes: Some(0),
            voluntary: Some(12_000),
            involuntary: Some(345),
        },
        memory: GroupMemory {
            resident_before: 90 << 20,
            resident_after: 100 << 20,
            virtual_before: 900 << 20,
            virtual_after: 900 << 20,
            proportional_before: Some(60 << 20),
            proportional_after: Some(50 << 20),
        },
    };
    check_groups(
        &[group],
        &[process(7141, "postgres", used(12, None))],
        CpuUnit::Core,
        &expect![[r#"
            table:
                 UID     PID     %USR     %SYS +-SPLIT TICKS    %CPU   +-CPU   %WAIT   VCSW  NVCSW  COMMAND
                 all    7141        –        –       –     –   95.12   0.041  >2.406 >12000   >345  postgres: 7 processes (60 began,
               mysql    7141        –        –       –     –  0.1200   0.041   2.406  12000    345  /usr/sbin/mariadbd --defaults-fi
              memory    RSS 100.0 MiB (+10.0 MiB), swap 0 B, virtual 900.0 MiB (+0 B), PSS 50.0 MiB (-10.0 MiB)
              other     12345 minor and 6 major faults, 4.0 MiB read from storage, 0 B written, 12000 voluntary and 345 involuntary
                        context switches
              % of one CPU; %CPU is the scheduler's account, for all threads; +- is its error: the time of running threads since
              their last tick (4.00 ms), and the time that reading took
              > : at least; waits and switches of threads and processes that ended are incomplete
              1 process of postgres ended without a waiting parent; CPU time after the last reading is missing
              3 more used no CPU time
        "#]],
    );
}
