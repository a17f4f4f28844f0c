//! Parses the files of /proc about processes and threads. `None` for anything that does not have the form of proc(5).

use units::Nanos;

use super::group::{Faults, Storage};
use super::usage::{Switches, Ticks};

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    pub name: &'a str,
    pub state: char,
    pub parent: u32,
    pub kernel_thread: bool,
    pub ticks: Ticks,
    pub faults: Faults,
    pub reaped: Reaped,
    /// Hundredths of a second since boot. Together with the id it identifies a process until the next boot.
    pub started: u64,
    /// Size of the address space, in bytes.
    pub virtual_size: u64,
}

/// What a process's children used that have ended and were waited for, including their own children: the kernel adds a
/// child's account to its parent's when the parent waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Reaped {
    pub ticks: Ticks,
    pub faults: Faults,
}

/// The fields of `/proc/PID/task/TID/status` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub group: u32,
    pub uid: u32,
    pub state: char,
    /// Absent only before Linux 2.6.23, and if a sandbox imitates /proc.
    pub switches: Option<Switches>,
    /// In bytes. `None` for a kernel thread, and for a process that has ended.
    pub resident: Option<u64>,
    pub swapped: Option<u64>,
    /// SIGCHLD is ignored: the kernel gives the account of an ended child to nobody. (`SA_NOCLDWAIT` does the same and
    /// is not in /proc.)
    pub discards_children: bool,
}

/// `/proc/PID/task/TID/schedstat`, for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SchedStat {
    pub run: Nanos,
    pub wait: Nanos,
    /// How often it was put on a CPU.
    pub slices: u64,
}

/// A process may name itself `a) R 1 (b`: the name ends at the last parenthesis.
pub(super) fn stat(text: &str) -> Option<Stat<'_>> {
    let (_, after) = text.split_once('(')?;
    let (name, fields) = after.rsplit_once(')')?;
    // The first of these is field 3 of proc_pid_stat(5).
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = |skipped: usize| fields.nth(skipped)?.parse::<u64>().ok();
    let parent = u32::try_from(number(0)?).ok()?;
    let flags = number(4)?;
    let (minor, minor_reaped) = (number(0)?, number(0)?);
    let (major, major_reaped) = (number(0)?, number(0)?);
    let ticks = Ticks { user: number(0)?, system: number(0)? };
    let reaped = Reaped {
        ticks: Ticks { user: number(0)?, system: number(0)? },
        faults: Faults { minor: minor_reaped, major: major_reaped },
    };
    let started = number(4)?;
    let virtual_size = number(0)?;
    Some(Stat {
        name,
        state,
        parent,
        kernel_thread: flags & PF_KTHREAD != 0,
        ticks,
        faults: Faults { minor, major },
        reaped,
        started,
        virtual_size,
    })
}

/// `include/linux/sched.h`; the same since Linux 2.6.
const PF_KTHREAD: u64 = 0x0020_0000;

/// Signal 17, the first being bit 0.
const SIGCHLD_IN_MASK: u64 = 1 << 16;

pub(super) fn status(text: &str) -> Option<Status> {
    let field = |name: &str| {
        let of_name = |line: &'_ str| line.strip_prefix(name)?.strip_prefix(':').map(str::len);
        text.lines().find_map(|line| of_name(line).map(|length| line[line.len() - length..].trim_start()))
    };
    let first = |name: &str| field(name)?.split_ascii_whitespace().next();
    let count = |name: &str| first(name)?.parse::<u64>().ok();
    let kib = |name: &str| count(name)?.checked_mul(1_024);
    let ignored = first("SigIgn").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    let switches = count("voluntary_ctxt_switches").zip(count("nonvoluntary_ctxt_switches"));
    Some(Status {
        group: first("Tgid")?.parse().ok()?,
        uid: first("Uid")?.parse().ok()?,
        state: first("State")?.chars().next()?,
        switches: switches.map(|(voluntary, involuntary)| Switches { voluntary, involuntary }),
        resident: kib("VmRSS"),
        swapped: kib("VmSwap"),
        discards_children: ignored & SIGCHLD_IN_MASK != 0,
    })
}

/// `/proc/PID/io`: bytes read from storage and written to it, including those of children that were waited for.
pub(super) fn storage(text: &str) -> Option<Storage> {
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    };
    Some(Storage { read: field("read_bytes")?, written: field("write_bytes")? })
}

/// `Pss` of `/proc/PID/smaps_rollup`, in bytes.
pub(super) fn proportional(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1_024)
}

pub(super) fn sched_stat(text: &str) -> Option<SchedStat> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut number = || numbers.next()?.ok();
    Some(SchedStat { run: Nanos(number()?), wait: Nanos(number()?), slices: number()? })
}

/// The number of CPUs in a list such as `0-3,7`.
pub(super) fn cpu_count(text: &str) -> Option<u64> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<u32>().ok()?.checked_sub(first.parse().ok()?).map(|more| u64::from(more) + 1)
    };
    text.trim().split(',').map(range).sum()
}

/// In the form of `ps`: the arguments separated by blanks, control characters replaced by blanks. `None` for a kernel
/// thread, which has none.
pub(super) fn command_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// From Linux 6.18: a shell of this host, its name changed.
    const STAT: &str = "1313 (a) R 1 (b) S 1 1313 1313 0 -1 4194560 2046 68741 3 115 15 26 152 130 20 0 1 0 22744 \
        8798208 1003 18446744073709551615 94446 95328 140736 0 0 0 65536 4 65538 1 0 0 17 1 0 0 0 0 0 9 9 9 1 1 1 1 0\n";

    #[test]
    fn a_name_may_hold_parentheses_and_blanks() {
        let stat = stat(STAT).unwrap();
        assert_eq!((stat.name, stat.state, stat.kernel_thread), ("a) R 1 (b", 'S', false));
        assert_eq!((stat.parent, stat.ticks, stat.started), (1, Ticks { user: 15, system: 26 }, 22_744));
        assert_eq!((stat.faults, stat.virtual_size), (Faults { minor: 2_046, major: 3 }, 8_798_208));
        let reaped =
            Reaped { ticks: Ticks { user: 152, system: 130 }, faults: Faults { minor: 68_741, major: 115 } };
        assert_eq!(stat.reaped, reaped);
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 7 0 0 20 0 1 0 3 0 0";
        assert!(super::stat(kernel).unwrap().kernel_thread);
    }

    #[test]
    fn a_status_has_owner_group_and_switches() {
        let text = "Name:\tState: Z\nUmask:\t0022\nState:\tR (running)\nTgid:\t12\nPid:\t13\nUid:\t33\t0\t0\t0\n\
            VmRSS:\t    4868 kB\nVmSwap:\t       0 kB\nvoluntary_ctxt_switches:\t344\nnonvoluntary_ctxt_switches:\t33\n";
        let switches = Some(Switches { voluntary: 344, involuntary: 33 });
        let (resident, swapped) = (Some(4_984_832), Some(0));
        assert_eq!(
            status(text),
            Some(Status {
                group: 12,
                uid: 33,
                state: 'R',
                switches,
                resident,
                swapped,
                discards_children: false
            })
        );
        let discards = |mask: &str| status(&format!("{text}SigIgn:\t{mask}\n")).unwrap().discards_children;
        assert!(discards("0000000000010000") && !discards("0000000000001000"));
        let without = text.split("voluntary").next().unwrap();
        assert_eq!(status(without).unwrap().switches, None);
    }

    #[test]
    fn this_process_has_the_texts_that_are_parsed() {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/{name}")).unwrap();
        let text = read("stat");
        let stat = stat(&text).unwrap();
        assert!(stat.started > 0 && !stat.kernel_thread && stat.state == 'R', "{stat:?}");
        let status = status(&read("status")).unwrap();
        assert!(status.group == std::process::id() && status.switches.is_some(), "{status:?}");
        assert!(sched_stat(&read("schedstat")).unwrap().slices > 0);
        assert!(cpu_count(&std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap()) > Some(0));
    }

    #[test]
    fn storage_and_proportional_memory_are_in_bytes() {
        let io = "rchar: 9\nwchar: 8\nsyscr: 7\nsyscw: 6\nread_bytes: 4096\nwrite_bytes: 8192\n\
            cancelled_write_bytes: 0\n";
        assert_eq!(storage(io), Some(Storage { read: 4_096, written: 8_192 }));
        assert_eq!(storage("rchar: 9\n"), None);
        let rollup = "5591e-7ffd [rollup]\nRss:  4868 kB\nPss:   1313 kB\nPss_Dirty:  580 kB\n";
        assert_eq!(proportional(rollup), Some(1_313 * 1_024));
    }

    #[test]
    fn cpus_are_counted() {
        for (text, count) in
            [("0\n", Some(1)), ("0-1\n", Some(2)), ("0-3,7,9-10", Some(7)), ("", None), ("3-1", None)]
        {
            assert_eq!(cpu_count(text), count, "{text}");
        }
    }

    #[test]
    fn a_command_line_is_one_line() {
        assert_eq!(command_line(b"sh\0-c\0echo\n\x1b[2J\0").as_deref(), Some("sh -c echo  [2J"));
        assert_eq!(command_line(b"\0"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_a_panic(text in "\\PC*", cut in 0usize..400) {
            let _ = (stat(&text), status(&text), sched_stat(&text), cpu_count(&text), command_line(text.as_bytes()));
            let _ = (storage(&text), proportional(&text));
            let cut = STAT.floor_char_boundary(cut.min(STAT.len()));
            let _ = stat(&STAT[..cut]);
        }

        /// If this fails, a process can choose by its name what is read about it.
        #[test]
        fn no_name_changes_the_numbers(name in "[ -~]{0,15}", user in any::<u64>(), system in any::<u64>()) {
            let text = format!("7 ({name}) R 1 7 7 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 1 0 99 0\n");
            let stat = stat(&text).unwrap();
            prop_assert_eq!((stat.name, stat.ticks, stat.started), (name.as_str(), Ticks { user, system }, 99));
        }

        #[test]
        fn an_account_of_the_scheduler_survives_text(run in any::<u64>(), wait in any::<u64>(), slices in any::<u64>()) {
            let parsed = sched_stat(&format!("{run} {wait} {slices}\n"));
            prop_assert_eq!(parsed, Some(SchedStat { run: Nanos(run), wait: Nanos(wait), slices }));
        }
    }
}
