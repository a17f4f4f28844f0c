//! What this host lets the instruments observe, and what would allow more. Reads files; attaches nothing.
//!
//! `doctor` prints these next to its own short trials. The root of the files is a parameter, so that tests can use
//! made-up hosts.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::pid_namespace::sees_host_pids;

units::named_enum! {
    /// How well something can be done on this host.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Status {
        /// Fully.
        Ok = "ok",
        /// With restrictions.
        Limited = "limited",
        /// Not at all.
        Missing = "missing",
    }
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ability {
    /// Its name, in snake case: stable, for scripts.
    pub name: &'static str,
    /// The result of the check.
    pub status: Status,
    /// What was found, in a few words.
    pub found: String,
    /// What it is for, and which verbs need it.
    pub means: &'static str,
    /// What to do to improve it, in one line; empty when the status is `Ok`.
    pub fix: &'static str,
}

/// Checks everything that can be read from files below `root` (`/` on a real host). `config` is the kernel's
/// configuration where it is published (/proc/config.gz, unpacked).
///
/// # Cost
///
/// Reads some dozens of small files.
pub fn abilities(root: &Path, config: Option<&str>) -> Vec<Ability> {
    let host = Files { root: root.to_owned(), config: config.map(str::to_owned) };
    vec![
        host.kernel(),
        host.btf(),
        host.bpf(),
        host.process_ids(),
        host.tracepoints(),
        host.probes(
            "kprobes",
            "kprobe_events",
            "watch works without them",
            "a kernel with CONFIG_KPROBE_EVENTS=y",
        ),
        host.probes(
            "uprobes",
            "uprobe_events",
            "watch --class needs them",
            "a kernel with CONFIG_UPROBE_EVENTS=y",
        ),
        host.fentry(),
        host.perf(),
        host.symbols(),
        host.hardware_counters(),
        host.clock(),
        host.governor(),
        host.steal(),
        host.interrupt_time(),
        host.run_delay(),
        host.delay_accounting(),
        host.pressure(),
        host.quota(),
        host.ptrace(),
    ]
}

struct Files {
    root: PathBuf,
    config: Option<String>,
}

const fn bit(capability: u32) -> u64 {
    1 << capability
}

/// The capabilities with which watch, profile and the exact split of cpu work for processes of all users: a test of the
/// crate `kernel` runs them with exactly these.
pub const CAPABILITIES: &str = "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH";

/// The same as a remedy, and as setcap(8) takes them.
const FIX: &str = "run as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: \
     setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep on the program";

/// CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE: to look at processes of other users.
const SEES_OTHERS: u64 = bit(2) | bit(19);

const CAP_SYS_ADMIN: u64 = bit(21);
const CAP_PERFMON: u64 = bit(38);
const CAP_BPF: u64 = bit(39);

fn ability(
    name: &'static str,
    status: Status,
    found: impl Into<String>,
    means: &'static str,
    fix: &'static str,
) -> Ability {
    let fix = if status == Status::Ok { "" } else { fix };
    Ability { name, status, found: found.into(), means, fix }
}

impl Files {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.path(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Whether a kernel option is built in; `None` if the kernel does not publish its configuration.
    fn is_configured(&self, option: &str) -> Option<bool> {
        let config = self.config.as_ref()?;
        Some(config.lines().any(|line| line.strip_prefix(option) == Some("=y")))
    }

    /// Where the tracing file system is mounted.
    fn tracing(&self) -> Option<&'static str> {
        ["sys/kernel/tracing", "sys/kernel/debug/tracing"]
            .into_iter()
            .find(|path| self.has(&format!("{path}/events")))
    }

    fn kernel(&self) -> Ability {
        let release = self.text("proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let status = match version {
            (0, _) => Status::Missing,
            // The tracepoints of socket reads and writes came with 6.3.
            version if version >= (6, 3) => Status::Ok,
            version if version >= (5, 8) => Status::Limited,
            _ => Status::Missing,
        };
        let means = "watch needs 6.3, profile and the exact split of cpu need 5.8";
        ability("kernel", status, release, means, "a kernel of version 6.3 or later")
    }

    fn btf(&self) -> Ability {
        let there = self.has("sys/kernel/btf/vmlinux");
        let (status, found) = if there {
            (Status::Ok, "/sys/kernel/btf/vmlinux")
        } else {
            (Status::Missing, "no type information")
        };
        let means = "watch and profile locate the kernel's fields with it";
        ability("btf", status, found, means, "a kernel with CONFIG_DEBUG_INFO_BTF=y")
    }

    fn capabilities(&self) -> Option<u64> {
        let status = self.text("proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    }

    fn bpf(&self) -> Ability {
        let means = "watch, profile and the exact split of cpu load programs into the kernel";
        let held = self.capabilities().unwrap_or(0);
        let may = held & CAP_SYS_ADMIN != 0 || held & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON;
        let lockdown = self.text("sys/kernel/security/lockdown").unwrap_or_default();
        if lockdown.contains("[confidentiality]") {
            let fix = "boot without lockdown=confidentiality";
            return ability("bpf", Status::Missing, "locked down: confidentiality", means, fix);
        }
        let sees = held & SEES_OTHERS == SEES_OTHERS;
        if !may {
            let closed = self.number("proc/sys/kernel/unprivileged_bpf_disabled").unwrap_or(2);
            let found = format!("no CAP_BPF and CAP_PERFMON; unprivileged_bpf_disabled={closed}");
            return ability("bpf", Status::Missing, found, means, FIX);
        }
        if !sees {
            let found =
                "permitted, but no CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: only for this user's processes";
            return ability("bpf", Status::Limited, found, means, FIX);
        }
        let by = if held & CAP_SYS_ADMIN != 0 { "CAP_SYS_ADMIN" } else { "CAP_BPF and CAP_PERFMON" };
        ability("bpf", Status::Ok, format!("permitted by {by}"), means, "")
    }

    fn process_ids(&self) -> Ability {
        let means = "watch, profile and the exact split of cpu see processes by the host's ids";
        let fix = "run on the host, or with its PID namespace: --pid=host (docker, podman), hostPID: true (Kubernetes)";
        match sees_host_pids(&self.root) {
            Some(true) => ability("process_ids", Status::Ok, "the host's", means, ""),
            Some(false) => ability(
                "process_ids",
                Status::Missing,
                "not the host's: this is a separate PID namespace",
                means,
                fix,
            ),
            None => ability("process_ids", Status::Limited, "unknown: no /proc/self/ns/pid", means, fix),
        }
    }

    fn tracepoints(&self) -> Ability {
        let means = "watch, profile and hiccup's causes use the events of the scheduler and of system calls";
        let fix =
            "as root: mount -t tracefs none /sys/kernel/tracing; or a kernel with CONFIG_FTRACE_SYSCALLS=y";
        let Some(tracing) = self.tracing() else {
            // Typed tracepoints are attached without the file system: it only lists what exists.
            return ability("tracepoints", Status::Limited, "unknown: tracefs is not readable", means, fix);
        };
        let missing: Vec<_> = ["sched/sched_switch", "sched/sched_wakeup", "raw_syscalls/sys_enter"]
            .into_iter()
            .filter(|event| !self.has(&format!("{tracing}/events/{event}")))
            .collect();
        if missing.is_empty() {
            return ability("tracepoints", Status::Ok, "scheduler and system calls", means, "");
        }
        ability("tracepoints", Status::Missing, format!("no {}", missing.join(", ")), means, fix)
    }

    fn probes(&self, name: &'static str, file: &str, means: &'static str, fix: &'static str) -> Ability {
        match self.tracing() {
            None => ability(name, Status::Limited, "unknown: tracefs is not readable", means, fix),
            Some(tracing) if self.has(&format!("{tracing}/{file}")) => {
                ability(name, Status::Ok, "there", means, "")
            }
            Some(_) => ability(name, Status::Missing, "not in this kernel", means, fix),
        }
    }

    fn fentry(&self) -> Ability {
        let means = "not needed: watch uses typed tracepoints";
        let fix = "a kernel with CONFIG_FUNCTION_TRACER=y and CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y";
        match self.tracing() {
            None => ability("fentry", Status::Limited, "unknown: tracefs is not readable", means, fix),
            Some(tracing) => {
                let functions = format!("{tracing}/available_filter_functions");
                let opened =
                    fs::File::open(self.path(&functions)).and_then(|mut file| file.read(&mut [0; 16]));
                match (opened, self.has(&functions)) {
                    (Ok(_), _) => ability("fentry", Status::Ok, "functions can be traced", means, ""),
                    (Err(_), true) => {
                        let fix = "boot without lockdown";
                        ability(
                            "fentry",
                            Status::Missing,
                            "the kernel refuses to trace functions",
                            means,
                            fix,
                        )
                    }
                    (Err(_), false) => {
                        ability("fentry", Status::Missing, "functions cannot be traced", means, fix)
                    }
                }
            }
        }
    }

    fn perf(&self) -> Ability {
        let means = "profile samples stacks with perf events";
        let fix = "as root: sysctl kernel.perf_event_paranoid=1; or run as root";
        let is_privileged = self.capabilities().is_some_and(|held| held & (CAP_SYS_ADMIN | CAP_PERFMON) != 0);
        match self.number("proc/sys/kernel/perf_event_paranoid") {
            None => ability(
                "perf_events",
                Status::Missing,
                "not in this kernel",
                means,
                "a kernel with CONFIG_PERF_EVENTS=y",
            ),
            Some(level) => {
                let status = if level <= 1 || is_privileged { Status::Ok } else { Status::Missing };
                ability("perf_events", status, format!("perf_event_paranoid={level}"), means, fix)
            }
        }
    }

    fn symbols(&self) -> Ability {
        let means = "profile names the kernel's functions";
        let fix = "as root: sysctl kernel.kptr_restrict=1, and run as root";
        let level = self.number("proc/sys/kernel/kptr_restrict").unwrap_or(0);
        let is_privileged = self.capabilities().is_some_and(|held| held & CAP_SYS_ADMIN != 0);
        let status = if level == 0 || (level == 1 && is_privileged) { Status::Ok } else { Status::Limited };
        ability("kernel_symbols", status, format!("kptr_restrict={level}"), means, fix)
    }

    fn hardware_counters(&self) -> Ability {
        let means = "profile samples by CPU cycles; without them, by a timer";
        let there = ["cpu", "cpu_core", "armv8_pmuv3_0", "armv8_pmuv3"]
            .into_iter()
            .find(|device| self.has(&format!("sys/bus/event_source/devices/{device}")));
        match there {
            Some(device) => ability("hardware_counters", Status::Ok, device, means, ""),
            None => {
                let fix = "give the virtual machine a performance monitoring unit, or use bare metal";
                ability("hardware_counters", Status::Limited, "none", means, fix)
            }
        }
    }

    fn clock(&self) -> Ability {
        let means = "every timestamp costs a reading of the clock";
        let fix = "boot with clocksource=tsc where the CPU's counter is stable";
        let path = "sys/devices/system/clocksource/clocksource0/current_clocksource";
        let source = self.text(path).unwrap_or_else(|| "unknown".to_owned());
        let fast = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen"];
        let status = if fast.contains(&source.as_str()) { Status::Ok } else { Status::Limited };
        ability("clock_source", status, source, means, fix)
    }

    fn governor(&self) -> Ability {
        let means = "a CPU that changes its frequency makes drive, cpu and servers slower at random";
        let fix = "as root: cpupower frequency-set -g performance";
        match self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
            Some(governor) => {
                let status = if governor == "performance" { Status::Ok } else { Status::Limited };
                ability("cpu_governor", status, governor, means, fix)
            }
            None => ability("cpu_governor", Status::Ok, "this host does not choose its frequency", means, ""),
        }
    }

    /// The share of CPU time since boot in a column of /proc/stat.
    fn share(&self, columns: &[usize]) -> Option<f64> {
        let text = self.text("proc/stat")?;
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let total: u64 = ticks.iter().take(8).sum();
        let some: u64 = columns.iter().filter_map(|&column| ticks.get(column)).sum();
        (total > 0).then(|| some as f64 / total as f64)
    }

    fn steal(&self) -> Ability {
        let means = "the hypervisor gave CPU time to other machines: everything here is slower by that much";
        let fix = "use a host with dedicated CPUs";
        match self.share(&[7]) {
            None => ability("steal", Status::Limited, "unknown: not in /proc/stat", means, fix),
            Some(share) => {
                let status = if share < 0.01 { Status::Ok } else { Status::Limited };
                ability("steal", status, format!("{:.2} % since boot", share * 100.0), means, fix)
            }
        }
    }

    fn interrupt_time(&self) -> Ability {
        let means = "watch separates `stolen` from `on_cpu` where the kernel accounts for interrupt time";
        let fix = "a kernel with CONFIG_IRQ_TIME_ACCOUNTING=y";
        // Without it, /proc/stat counts interrupts by ticks only.
        match self.is_configured("CONFIG_IRQ_TIME_ACCOUNTING") {
            Some(true) => ability("interrupt_time", Status::Ok, "accounted for", means, ""),
            Some(false) => ability("interrupt_time", Status::Limited, "not accounted for", means, fix),
            None => {
                let found = "unknown: the kernel does not publish its configuration";
                ability("interrupt_time", Status::Limited, found, means, fix)
            }
        }
    }

    fn run_delay(&self) -> Ability {
        let means = "drive, cpu and hiccup report run-queue latency: how long threads waited for a CPU";
        let fix = "a kernel with CONFIG_SCHED_INFO=y (CONFIG_SCHEDSTATS or CONFIG_TASK_DELAY_ACCT)";
        match self.text("proc/self/schedstat") {
            Some(text) if text.split_whitespace().count() >= 3 => {
                ability("run_queue_wait", Status::Ok, "/proc/PID/schedstat", means, "")
            }
            _ => ability("run_queue_wait", Status::Missing, "no /proc/PID/schedstat", means, fix),
        }
    }

    fn delay_accounting(&self) -> Ability {
        let means = "cpu could report waits for disks; no verb needs it";
        let fix = "as root: sysctl kernel.task_delayacct=1";
        match self.number("proc/sys/kernel/task_delayacct") {
            Some(1) => ability("delay_accounting", Status::Ok, "on", means, ""),
            Some(_) => ability("delay_accounting", Status::Limited, "off", means, fix),
            None => ability(
                "delay_accounting",
                Status::Limited,
                "not in this kernel",
                means,
                "a kernel with CONFIG_TASK_DELAY_ACCT=y",
            ),
        }
    }

    fn pressure(&self) -> Ability {
        let means = "drive and hiccup report when tasks of this host waited for CPUs";
        let fix = "boot with psi=1, on a kernel with CONFIG_PSI=y";
        match self.text("proc/pressure/cpu") {
            Some(_) => ability("pressure", Status::Ok, "/proc/pressure", means, ""),
            None => ability("pressure", Status::Missing, "no /proc/pressure", means, fix),
        }
    }

    fn quota(&self) -> Ability {
        let means = "a CPU quota stops drive, and servers in the same group, in the middle of their work";
        let fix = "run outside the quota, or raise cpu.max (version 1: cpu.cfs_quota_us)";
        let read = |path| self.text(path).unwrap_or_default();
        let accounts = crate::cgroup::candidates(&read("proc/self/cgroup"), &read("proc/self/mountinfo"));
        let mut is_known = false;
        for group in accounts.iter().filter_map(|account| account.strip_prefix("/").ok()?.parent()) {
            let own = |name: &str| self.text(&group.join(name).to_string_lossy());
            let quota = own("cpu.max").map(|limit| format!("cpu.max {limit}"));
            let quota = quota.or_else(|| Some(format!("cpu.cfs_quota_us {}", own("cpu.cfs_quota_us")?)));
            is_known |= quota.is_some() || own("cpu.stat").is_some();
            if let Some(quota) = quota.filter(|quota| !quota.contains(" max") && !quota.ends_with(" -1")) {
                return ability("cpu_quota", Status::Limited, quota, means, fix);
            }
        }
        if is_known {
            return ability("cpu_quota", Status::Ok, "none", means, "");
        }
        let fix = "mount the control groups in this environment, with the controller `cpu`";
        ability(
            "cpu_quota",
            Status::Limited,
            "unknown: no control group of this process is visible",
            means,
            fix,
        )
    }

    fn ptrace(&self) -> Ability {
        let means = "profile and watch --class read the memory maps of other processes";
        const CAP_SYS_PTRACE: u64 = bit(19);
        let is_privileged =
            self.capabilities().is_some_and(|held| held & (CAP_SYS_ADMIN | CAP_SYS_PTRACE) != 0);
        // Without Yama, the same user is enough.
        let scope = self.number("proc/sys/kernel/yama/ptrace_scope");
        let (status, fix) = match scope.unwrap_or(0) {
            3.. => (
                Status::Missing,
                "reboot with kernel.yama.ptrace_scope below 3: it cannot be lowered at run time",
            ),
            _ if is_privileged => (Status::Ok, ""),
            2 => (Status::Missing, "run as root"),
            1 => (Status::Missing, "run as root, or as root: sysctl kernel.yama.ptrace_scope=0"),
            _ => (Status::Limited, "run as root, for processes of other users too"),
        };
        let found = scope.map_or_else(|| "no Yama".to_owned(), |scope| format!("ptrace_scope={scope}"));
        ability("ptrace", status, found, means, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The abilities of a host with these files.
    fn host(name: &str, files: &[(&str, &str)]) -> Vec<Ability> {
        let root = std::env::temp_dir().join(format!("parallax-abilities-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let abilities = abilities(&root, Some("# CONFIG_X is not set\nCONFIG_IRQ_TIME_ACCOUNTING=y\n"));
        let _ = fs::remove_dir_all(&root);
        abilities
    }

    #[track_caller]
    fn check(abilities: &[Ability], name: &str, status: Status, found: &str) {
        let ability = abilities.iter().find(|ability| ability.name == name).unwrap();
        assert_eq!((ability.status, ability.found.as_str()), (status, found));
        assert_eq!(ability.fix.is_empty(), status == Status::Ok, "{ability:?}");
    }

    #[test]
    fn a_host_that_allows_everything_is_ok() {
        let abilities = host(
            "good",
            &[
                ("proc/sys/kernel/osrelease", "6.18.0-cloud\n"),
                ("sys/kernel/btf/vmlinux", "x"),
                ("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
                ("sys/kernel/security/lockdown", "none [integrity] confidentiality"),
                ("sys/kernel/tracing/events/sched/sched_switch/id", "1"),
                ("sys/kernel/tracing/events/sched/sched_wakeup/id", "1"),
                ("sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "1"),
                ("proc/sys/kernel/perf_event_paranoid", "2"),
                ("proc/stat", "cpu  900 0 50 40 0 3 5 2 0 0\n"),
                ("proc/self/cgroup", "0::/a/b\n"),
                ("proc/self/mountinfo", "30 1 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
                ("sys/fs/cgroup/a/cpu.max", "50000 100000\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ],
        );
        check(&abilities, "kernel", Status::Ok, "6.18.0-cloud");
        check(&abilities, "bpf", Status::Ok, "permitted by CAP_SYS_ADMIN");
        check(&abilities, "tracepoints", Status::Ok, "scheduler and system calls");
        check(&abilities, "kprobes", Status::Missing, "not in this kernel");
        check(&abilities, "perf_events", Status::Ok, "perf_event_paranoid=2");
        check(&abilities, "steal", Status::Ok, "0.20 % since boot");
        check(&abilities, "interrupt_time", Status::Ok, "accounted for");
        check(&abilities, "fentry", Status::Missing, "functions cannot be traced");
        // A quota of any parent group counts.
        check(&abilities, "cpu_quota", Status::Limited, "cpu.max 50000 100000");
    }

    /// If this fails, a quota of a control group of version 1 is reported as none.
    #[test]
    fn a_quota_of_version_one_is_seen() {
        let of = |name: &str, quota: &str| {
            host(
                name,
                &[
                    ("proc/self/cgroup", "4:cpu,cpuacct:/a\n"),
                    (
                        "proc/self/mountinfo",
                        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
                    ),
                    ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", quota),
                    ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ],
            )
        };
        check(&of("v1", "20000\n"), "cpu_quota", Status::Limited, "cpu.cfs_quota_us 20000");
        check(&of("v1-none", "-1\n"), "cpu_quota", Status::Ok, "none");
    }

    /// If this fails, the suggested `ptrace_scope` is the current one, or one that the kernel refuses.
    #[test]
    fn each_ptrace_scope_has_a_fix_that_works() {
        let of = |scope: Option<&str>, capabilities: &str| {
            let status = format!("CapEff:\t{capabilities}\n");
            let mut files = vec![("proc/self/status", status.as_str())];
            files.extend(scope.map(|scope| ("proc/sys/kernel/yama/ptrace_scope", scope)));
            let found = host(&format!("ptrace-{scope:?}-{capabilities}"), &files);
            let ptrace = found.into_iter().find(|ability| ability.name == "ptrace").unwrap();
            (
                ptrace.status,
                ptrace.found,
                ptrace.fix.contains("ptrace_scope=0"),
                ptrace.fix.contains("reboot"),
            )
        };
        let (none, all) = ("0000000000000000", "000001ffffffffff");
        assert_eq!(of(None, none), (Status::Limited, "no Yama".to_owned(), false, false));
        assert_eq!(of(Some("1"), none), (Status::Missing, "ptrace_scope=1".to_owned(), true, false));
        assert_eq!(of(Some("2"), all), (Status::Ok, "ptrace_scope=2".to_owned(), false, false));
        assert_eq!(of(Some("3"), all), (Status::Missing, "ptrace_scope=3".to_owned(), false, true));
    }

    #[test]
    fn a_host_that_shows_nothing_is_not_an_error() {
        let abilities = host(
            "bare",
            &[
                ("proc/self/status", "CapEff:\t0000000000000000\n"),
                ("proc/sys/kernel/unprivileged_bpf_disabled", "2\n"),
                ("proc/sys/kernel/osrelease", "5.10.0\n"),
            ],
        );
        check(&abilities, "kernel", Status::Limited, "5.10.0");
        check(&abilities, "btf", Status::Missing, "no type information");
        check(&abilities, "bpf", Status::Missing, "no CAP_BPF and CAP_PERFMON; unprivileged_bpf_disabled=2");
        check(&abilities, "process_ids", Status::Limited, "unknown: no /proc/self/ns/pid");
        check(&abilities, "tracepoints", Status::Limited, "unknown: tracefs is not readable");
        let unknown = "unknown: no control group of this process is visible";
        check(&abilities, "cpu_quota", Status::Limited, unknown);
        check(&abilities, "pressure", Status::Missing, "no /proc/pressure");
    }
}
