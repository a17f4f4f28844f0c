//! Facts about this host that a reader needs in order to compare its records with those of another host.

use std::fs;
use std::path::Path;

use crate::pid_namespace::sees_host_pids;

/// What could be read about this host; `None` for what could not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The host name.
    pub name: Option<String>,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: Option<String>,
    /// The model name of the first CPU.
    pub cpu_model: Option<String>,
    /// The number of CPUs this process may run on.
    pub cpus: Option<u64>,
    /// Physical memory, in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// The vendor of the hypervisor, or `none` when the CPU does not report that it is a guest.
    pub hypervisor: Option<String>,
    /// Changes at each boot: two processes with the same id share their monotonic clock.
    pub boot_id: Option<String>,
    /// The pid of this process; `None` inside a pid namespace.
    pub pid: Option<u32>,
    /// By how many nanoseconds the monotonic clock of this time namespace is ahead of the kernel's own, which the
    /// kernel uses for its timestamps; `None` if the kernel has no time namespaces.
    pub monotonic_offset: Option<i64>,
}

impl Facts {
    /// Reads all facts.
    ///
    /// # Cost
    ///
    /// Some files of /proc and /sys: once per run.
    pub fn read() -> Facts {
        let uname = rustix::system::uname();
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        Facts {
            name: uname.nodename().to_str().ok().map(str::to_owned),
            kernel: uname.release().to_str().ok().map(str::to_owned),
            cpu_model: field(&cpu_info, "model name").or_else(|| field(&cpu_info, "CPU implementer")),
            cpus: std::thread::available_parallelism().ok().map(|count| count.get() as u64),
            memory_bytes: field(&memory, "MemTotal").and_then(|text| kibibytes(&text)),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hypervisor: hypervisor(&cpu_info),
            boot_id: line("/proc/sys/kernel/random/boot_id"),
            pid: sees_host_pids(Path::new("/")).unwrap_or(false).then(std::process::id),
            monotonic_offset: fs::read_to_string("/proc/self/timens_offsets")
                .ok()
                .and_then(|text| offset(&text)),
        }
    }
}

fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// time_namespaces(7): one line per clock, with seconds and nanoseconds.
fn offset(text: &str) -> Option<i64> {
    let mut words = text.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let (seconds, rest): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(rest)
}

fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kibibytes(text: &str) -> Option<u64> {
    text.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

fn hypervisor(cpu_info: &str) -> Option<String> {
    if let Some(kind) = line("/sys/hypervisor/type") {
        return Some(kind);
    }
    // Only x86 has the flag; elsewhere its absence proves nothing.
    let flags = field(cpu_info, "flags")?;
    let guest = flags.split_whitespace().any(|flag| flag == "hypervisor");
    let vendor = || line("/sys/class/dmi/id/sys_vendor").unwrap_or_else(|| "unnamed".to_owned());
    Some(if guest { vendor() } else { "none".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_fields_of_proc() {
        let text = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A CPU"));
        assert_eq!(field(text, "cache"), None);
        assert_eq!(kibibytes("16 kB"), Some(16_384));
        assert_eq!(kibibytes("16"), None);
    }

    #[test]
    fn a_time_namespace_has_an_offset() {
        assert_eq!(offset("monotonic      100000         7\nboottime  0 0\n"), Some(100_000_000_000_007));
        assert_eq!(offset("monotonic  -2 500000000\n"), Some(-1_500_000_000));
        assert_eq!(offset("monotonic  9223372036854775807 0\n"), None);
    }

    #[test]
    fn this_host_has_a_kernel_and_a_cpu() {
        let facts = Facts::read();
        assert!(facts.kernel.is_some());
        assert!(facts.cpus.is_some_and(|count| count > 0));
    }
}
