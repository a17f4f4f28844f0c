//! Parses the files of /proc about processes and threads. `None` for anything that does not have the form of proc(5).

use units::Nanos;

use super::usage::{Switches, Ticks};

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat<'a> {
    pub name: &'a str,
    pub state: char,
    pub kernel_thread: bool,
    pub ticks: Ticks,
    /// Hundredths of a second since boot. Together with the id it identifies a process until the next boot.
    pub started: u64,
}

/// The fields of `/proc/PID/task/TID/status` that are needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    pub group: u32,
    pub uid: u32,
    pub state: char,
    /// Absent only before Linux 2.6.23, and where a sandbox imitates /proc.
    pub switches: Option<Switches>,
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
    let flags = number(5)?;
    let ticks = Ticks { user: number(4)?, system: number(0)? };
    let started = number(6)?;
    Some(Stat { name, state, kernel_thread: flags & PF_KTHREAD != 0, ticks, started })
}

/// `include/linux/sched.h`; the same since Linux 2.6.
const PF_KTHREAD: u64 = 0x0020_0000;

pub(super) fn status(text: &str) -> Option<Status> {
    let field = |name: &str| {
        let of_name = |line: &'_ str| line.strip_prefix(name)?.strip_prefix(':').map(str::len);
        text.lines().find_map(|line| of_name(line).map(|length| line[line.len() - length..].trim_start()))
    };
    let first = |name: &str| field(name)?.split_ascii_whitespace().next();
    let count = |name: &str| first(name)?.parse().ok();
    let switches = count("voluntary_ctxt_switches").zip(count("nonvoluntary_ctxt_switches"));
    Some(Status {
        group: first("Tgid")?.parse().ok()?,
        uid: first("Uid")?.parse().ok()?,
        state: first("State")?.chars().next()?,
        switches: switches.map(|(voluntary, involuntary)| Switches { voluntary, involuntary }),
    })
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

/// As `ps` shows it: the arguments separated by blanks, control characters replaced by blanks. `None` for a kernel
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
        assert_eq!((stat.ticks, stat.started), (Ticks { user: 15, system: 26 }, 22_744));
        let kernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 7 0 0 20 0 1 0 3 0 0";
        assert!(super::stat(kernel).unwrap().kernel_thread);
    }

    #[test]
    fn a_status_has_owner_group_and_switches() {
        let text = "Name:\tState: Z\nUmask:\t0022\nState:\tR (running)\nTgid:\t12\nPid:\t13\nUid:\t33\t0\t0\t0\n\
            voluntary_ctxt_switches:\t344\nnonvoluntary_ctxt_switches:\t33\n";
        let switches = Some(Switches { voluntary: 344, involuntary: 33 });
        assert_eq!(status(text), Some(Status { group: 12, uid: 33, state: 'R', switches }));
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
