//! Loads the programs, attaches them, and reads their events.

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::query::{ProgInfoIter, ProgramInfo};
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, OpenProgramMut, PrintLevel, Program,
};
use units::Nanos;

use super::attach;
use super::backlog::Backlog;
use super::calls;
use super::event::Event;
use super::lanes::{self, Lanes};
use super::steal;
use super::tls;
use crate::symbol::Function;
use crate::tls::TlsLibrary;

/// Settings that cannot be changed while the programs run.
#[derive(Debug)]
pub struct CaptureSettings {
    /// The most bytes to copy of one read or write.
    pub capture: u32,
    /// The most memory for events that wait to be processed, for all CPUs together, in bytes: [`IN_KERNEL`] of it in the
    /// kernel, the rest in this process as it is needed.
    pub ring_bytes: u32,
    /// The function whose return value is a request's class.
    pub class: Option<ClassProbe>,
    /// Probes TLS libraries for the plain text of connections.
    pub tls: bool,
}

/// `uretprobe:BINARY:SYMBOL`: a function of the server to probe.
#[derive(Debug)]
pub struct ClassProbe {
    /// The name of the file with the function, for messages.
    pub binary: PathBuf,
    /// The function in the file that is attached to.
    pub function: Function,
}

/// Why the programs do not run. Messages are one line each.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("loading eBPF programs is not permitted: run this as root, or with {}", host::CAPABILITIES)]
    Privilege,
    #[error(
        "this kernel does not publish its types (no /sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF"
    )]
    NoTypes,
    #[error(
        "this is a separate PID namespace, but the kernel reports processes by the host's IDs: run parallax on the host, \
         or in its PID namespace: --pid=host (docker, podman), hostPID: true (Kubernetes)"
    )]
    PidNamespace,
    #[error("this kernel has no tracepoint {tracepoint}; watching needs Linux 6.3 or later")]
    NoTracepoint { tracepoint: String },
    #[error("this kernel refused the eBPF program: {0}")]
    Refused(String),
    #[error("cannot probe `{function}` of {library}: {why}; watch without --tls")]
    Tls { library: String, function: &'static str, why: String },
    #[error("cannot probe `{symbol}` of {binary}: {why}")]
    Class { binary: PathBuf, symbol: String, why: String },
}

/// What was lost, by cause; counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events for which the lanes of their CPU were full, and what they would have added to their connections.
    pub unseen: Unseen,
    /// Threads, connections, processes and culprits for which there was no memory.
    pub map_full: u64,
    /// Waits with more competing threads than fit in the table: only the most recent are listed.
    pub forgotten_slices: u64,
    /// Groups of arrived bytes that were merged with later ones.
    pub joined_arrivals: u64,
    /// Context switches and wake-ups of a watched thread that no program saw; its account was corrected from the
    /// scheduler's.
    pub missed_switches: u64,
    /// Program runs that the kernel skipped.
    pub recursion: u64,
    /// Pieces of plain text of TLS connections whose connection is not known.
    pub unattributed: u64,
    /// Bytes that are not an event: always 0, unless the object is from another version.
    pub unreadable: u64,
}

/// What was read of connections without being seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Events that were lost.
    pub events: u64,
    /// How often a connection was read after it had been written to.
    pub turns: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl Unseen {
    /// What was added since `before`.
    pub fn since(&self, before: &Unseen) -> Unseen {
        Unseen {
            events: self.events.saturating_sub(before.events),
            turns: self.turns.saturating_sub(before.turns),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// The cost of one program so far, by the kernel's own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// The program's name.
    pub program: String,
    /// How often it ran.
    pub runs: u64,
    /// Its total run time.
    pub time: Nanos,
}

/// A thread that ran while threads of a watched process waited for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CulpritRow {
    /// The pid of the process that ran; 0 for all those together for which the table had no room.
    pub pid: u32,
    /// Its name, zero-terminated.
    pub comm: [u8; 16],
    /// For how long it ran while others waited.
    pub time: Nanos,
    /// During how many waits.
    pub count: u64,
}

/// Bytes of the lanes of all CPUs, unless [`CaptureSettings::ring_bytes`] is less: they hold what comes while the thread
/// that empties them has no CPU.
const IN_KERNEL: usize = 16 << 20;

/// The key of the culprits for whom the kernel's table has no room.
const REST: [u8; 20] = [0; 20];

/// The loaded programs, attached until dropped, except while they are paused.
pub struct Kernel {
    backlog: Backlog,
    object: Object,
    links: Vec<Link>,
    /// Stays attached during pauses: of processes that the server forks.
    fork: Option<Link>,
    /// How often the programs were attached again.
    window: u32,
    /// While this is open the kernel accounts for its programs.
    statistics: Option<OwnedFd>,
    unreadable: u64,
    missing: Vec<&'static str>,
}

impl Kernel {
    /// Loads and attaches all programs. No process is watched yet. `libraries`: those whose plain text is seen.
    ///
    /// # Errors
    ///
    /// [`LoadError`]: no privilege, an unsupported kernel, or a refused program.
    pub fn load(settings: &CaptureSettings, libraries: &[TlsLibrary]) -> Result<Kernel, LoadError> {
        begin()?;
        let mut open =
            ObjectBuilder::default().open_memory(crate::object!("watch")).map_err(|e| refused(&e))?;
        let cpus = libbpf_rs::num_possible_cpus().map_err(|e| refused(&e))?;
        let all = usize::try_from(settings.ring_bytes).expect("a size fits into memory");
        let types = Btf::from_vmlinux().map_err(|e| refused(&e))?;
        let layout = Layout {
            secret: secret()?,
            overflow_bytes: lanes::overflow_bytes(all.min(IN_KERNEL), cpus),
            cpus,
            has_tls: !libraries.is_empty(),
            steal: steal::distance(&types).unwrap_or(0),
        };
        let missing = prepare(&mut open, settings, &layout, &types)?;
        let object = open.load().map_err(|e| refused(&e))?;
        let maps = (map(&object, "lanes"), map(&object, "overflow"));
        let lanes = Lanes::map((&maps.0, &maps.1), layout.secret, layout.overflow_bytes, cpus)
            .map_err(|error| LoadError::Refused(format!("cannot map its events: {error}")))?;
        let backlog = Backlog::start(lanes, all.saturating_sub(IN_KERNEL).max(LEAST_BACKLOG))
            .map_err(|error| LoadError::Refused(format!("cannot collect its events: {error}")))?;
        // The row of those for whom there is no room.
        map(&object, "culprits").update(&REST, &[0; 16], MapFlags::ANY).map_err(|e| refused(&e))?;
        // First: of a connection that begins under watch, all plain text is seen.
        let mut links = tls::attach(&object, libraries)?;
        links.extend(attach::tracepoints(&object, |program| program != attach::FORK)?);
        links.extend(attach::classifiers(&object, settings)?);
        let fork = attach::tracepoints(&object, |program| program == attach::FORK)?.pop();
        Ok(Kernel { backlog, object, links, fork, window: 0, statistics: None, unreadable: 0, missing })
    }

    /// Detaches the programs for a while; returns how long that took. What they have written can be drained.
    pub fn pause(&mut self) -> Nanos {
        let began = clock::now();
        self.links.clear();
        let took = clock::now() - began;
        attach::wait_for_programs();
        took
    }

    /// Attaches the programs again, those at tracepoints; returns how long that took. What they know of threads and
    /// connections starts again.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn resume(&mut self) -> Result<Nanos, LoadError> {
        let began = clock::now();
        self.window += 1;
        self.set(".bss.window", &self.window.to_ne_bytes())?;
        // A Unix socket does not show whether anything was read or written on it during the pause.
        self.set(".bss.old", &0_u32.to_ne_bytes())?;
        self.links = attach::tracepoints(&self.object, |program| program != attach::FORK)?;
        Ok(clock::now() - began)
    }

    /// Up to when all events were passed on; of the kernel's clock.
    pub fn complete_until(&self) -> Nanos {
        self.backlog.complete_until()
    }

    /// Collects what the programs have written so far, so that it need not wait for [`Kernel::patience`].
    pub fn collect(&self) {
        self.backlog.collect();
    }

    fn set(&self, section: &str, value: &[u8]) -> Result<(), LoadError> {
        map(&self.object, section).update(&0_u32.to_ne_bytes(), value, MapFlags::ANY).map_err(|e| refused(&e))
    }

    /// What cannot be observed on this kernel, in words for the record.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// The tracepoints and probes that programs are attached to.
    pub fn attached(&self) -> Vec<String> {
        let is_listed = |program: &Program<'_>| program.autoload() && !tls::is_of_tls(program.name());
        let loaded = self.object.progs().filter(is_listed);
        loaded.map(|program| program.section().to_string_lossy().into_owned()).collect()
    }

    /// Passes on the events so far, or the first part of them, in the order of their time. Call as often as
    /// [`Kernel::patience`] returns.
    pub fn drain(&mut self, mut give: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.backlog.drain(|raw| hand_on(raw, &mut give, unreadable));
    }

    /// How long events can wait for the next [`Kernel::drain`].
    pub fn patience(&self) -> Nanos {
        self.backlog.patience()
    }

    /// Detaches the programs, and collects what they have written.
    pub fn detach(&mut self) {
        self.links.clear();
        self.fork = None;
        attach::wait_for_programs();
        self.backlog.stop();
    }

    /// Passes on all remaining events.
    pub fn drain_all(&mut self, mut give: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.backlog.drain_all(|raw| hand_on(raw, &mut give, unreadable));
    }

    /// Sets the processes and local ports of the server.
    ///
    /// # Errors
    ///
    /// When the kernel accepts no more processes.
    pub fn watch(&mut self, processes: &[u32], ports: &[u16]) -> Result<(), LoadError> {
        let known = map(&self.object, "processes");
        for process in processes {
            known.update(&process.to_ne_bytes(), &[1], MapFlags::ANY).map_err(|e| refused(&e))?;
        }
        let only = if let [only] = processes { *only } else { 0 };
        self.set_ports(ports)?;
        self.set(".bss.process", &only.to_ne_bytes())
    }

    /// Sets the sockets, by inode, that the server had before it was watched. Its other sockets count as new, and are
    /// read from their first byte on.
    ///
    /// # Errors
    ///
    /// When the kernel refuses. If there is no room for all of them, none counts as new.
    pub fn set_old_sockets(&mut self, inodes: &[u64]) -> Result<(), LoadError> {
        let old = map(&self.object, "old_sockets");
        if inodes.iter().any(|inode| old.update(&inode.to_ne_bytes(), &[1], MapFlags::ANY).is_err()) {
            return Ok(());
        }
        self.set(".bss.old", &1_u32.to_ne_bytes())
    }

    /// Sets the server's local ports.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn set_ports(&mut self, ports: &[u16]) -> Result<(), LoadError> {
        let mut flags = vec![0; PORTS];
        for &port in ports {
            flags[usize::from(port)] = 1;
        }
        self.set(".bss.ports", &flags)
    }

    /// The processes watched now: those named, and the children they have forked since.
    pub fn processes(&self) -> Vec<u32> {
        map(&self.object, "processes").keys().filter_map(|key| word(&key)).collect()
    }

    /// Stops watching a process that has ended: its pid may be reused.
    pub fn forget(&mut self, process: u32) {
        // It may already be gone: then there is nothing to forget.
        let _ = map(&self.object, "processes").delete(&process.to_ne_bytes());
    }

    /// What was lost so far.
    pub fn losses(&self) -> Losses {
        let zero = 0_u32.to_ne_bytes();
        let raw = map(&self.object, ".bss.losses").lookup(&zero, MapFlags::ANY).ok().flatten();
        let raw = raw.unwrap_or_default();
        let at = |n: usize| {
            raw.get(n * 8..n * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Losses {
            unseen: Unseen { events: at(0), turns: at(1), bytes: at(2) },
            map_full: at(3) + at(4) + at(5) + at(6),
            forgotten_slices: at(7),
            joined_arrivals: at(8),
            missed_switches: at(9),
            unattributed: at(10),
            recursion: self.programs().iter().map(|program| program.recursion_misses).sum(),
            unreadable: self.unreadable,
        }
    }

    /// Makes the kernel measure the cost of the programs, which costs a few per cent more.
    ///
    /// # Errors
    ///
    /// When the kernel cannot account for programs.
    pub fn measure_cost(&mut self) -> io::Result<()> {
        self.statistics = Some(keep_statistics()?);
        Ok(())
    }

    /// The cost of each program since [`Kernel::measure_cost`]; empty without it.
    pub fn cost(&self) -> Vec<Cost> {
        if self.statistics.is_none() {
            return Vec::new();
        }
        let cost = |program: ProgramInfo| Cost {
            program: program.name.to_string_lossy().into_owned(),
            runs: program.run_cnt,
            time: Nanos(program.run_time_ns),
        };
        self.programs().into_iter().map(cost).filter(|cost| cost.runs > 0).collect()
    }

    fn programs(&self) -> Vec<ProgramInfo> {
        programs_of(&self.object)
    }

    /// The threads that took CPUs from the watched processes, since they were last taken.
    pub fn culprits(&self) -> Vec<CulpritRow> {
        let culprits = map(&self.object, "culprits");
        let row = |key: Vec<u8>| culprit_row(&key, &culprits.lookup(&key, MapFlags::ANY).ok().flatten()?);
        culprits.keys().filter_map(row).filter(|row| row.count > 0).collect()
    }

    /// Takes them out of the kernel's table, which has room for 4,096, if it has over `most`. What a program adds to
    /// one at this moment is lost.
    ///
    /// # Cost
    ///
    /// A system call per row.
    pub fn take_culprits(&mut self, most: usize) -> Vec<CulpritRow> {
        let culprits = map(&self.object, "culprits");
        // The row of those for whom there was no room stays.
        let keys: Vec<Vec<u8>> = culprits.keys().filter(|key| *key != REST).collect();
        if keys.len() <= most {
            return Vec::new();
        }
        let row = |key: Vec<u8>| culprit_row(&key, &culprits.lookup_and_delete(&key).ok().flatten()?);
        keys.into_iter().filter_map(row).collect()
    }
}

fn culprit_row(key: &[u8], value: &[u8]) -> Option<CulpritRow> {
    Some(CulpritRow {
        pid: word(key.get(..4)?)?,
        comm: key.get(4..20)?.try_into().ok()?,
        time: Nanos(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?)),
        count: u64::from_ne_bytes(value.get(8..16)?.try_into().ok()?),
    })
}

fn hand_on(raw: &[u8], give: &mut impl FnMut(&Event<'_>), unreadable: &mut u64) {
    match Event::parse(raw) {
        Some(event) => give(&event),
        None => *unreadable += 1,
    }
}

/// What may always wait in this process: what comes in one round.
const LEAST_BACKLOG: usize = 1 << 20;

/// What the programs and [`Lanes`] must agree on.
struct Layout {
    secret: u64,
    overflow_bytes: usize,
    cpus: usize,
    /// Whether TLS libraries are probed.
    has_tls: bool,
    /// From a CPU's run queue to what the hypervisor writes of that CPU; 0 where the kernel has no such place.
    steal: i64,
}

/// An unpredictable number.
fn secret() -> Result<u64, LoadError> {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    got.map_err(|error| LoadError::Refused(format!("no random number: {error}")))?;
    Ok(u64::from_ne_bytes(bytes))
}

const PORTS: usize = 1 << 16;

/// Makes the kernel account for its programs as long as the result is open.
pub(crate) fn keep_statistics() -> io::Result<OwnedFd> {
    // SAFETY: no argument but a number; the result is a descriptor of ours, or negative.
    #[expect(unsafe_code, reason = "libbpf-rs has no call for it")]
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: just made, and nothing else owns it.
    #[expect(unsafe_code, reason = "a raw descriptor becomes an owned one")]
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Ok(descriptor)
}

/// The kernel's information about an object's programs.
pub(crate) fn programs_of(object: &Object) -> Vec<ProgramInfo> {
    let ours = object.progs().filter_map(|program| Program::id_from_fd(program.as_fd()).ok());
    let ours: Vec<u32> = ours.collect();
    ProgInfoIter::default().filter(|program| ours.contains(&program.id)).collect()
}

/// Call before looking for a process: in a PID namespace the programs' events could not be matched to it.
pub(crate) fn require_host_pids() -> Result<(), LoadError> {
    match host::sees_host_pids(Path::new("/")) {
        Some(false) => Err(LoadError::PidNamespace),
        // Where /proc does not show it, assume the host's namespace.
        Some(true) | None => Ok(()),
    }
}

/// Call before opening an object: from now on libbpf's messages are kept.
pub(crate) fn begin() -> Result<(), LoadError> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(LoadError::NoTypes);
    }
    COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, complain)));
    Ok(())
}

pub(crate) fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

pub(crate) fn map<'o>(object: &'o Object, name: &str) -> Map<'o> {
    object.maps().find(|map| map.name() == name).expect("the object has the maps that its source declares")
}

/// Sets up an opened object; returns what will not be seen.
fn prepare(
    open: &mut OpenObject,
    settings: &CaptureSettings,
    layout: &Layout,
    types: &Btf<'_>,
) -> Result<Vec<&'static str>, LoadError> {
    let mut missing = Vec::new();
    let cpus = u32::try_from(layout.cpus).expect("CPUs are counted in 32 bits");
    let value =
        u32::try_from(lanes::value_bytes(layout.overflow_bytes)).expect("a lane is at most the ring's size");
    for mut map in open.maps_mut() {
        match map.name().to_str() {
            Some("ran") => map.set_max_entries(cpus),
            Some("lanes") => map.set_max_entries(cpus),
            Some("overflow") => map.set_value_size(value).and_then(|()| map.set_max_entries(cpus)),
            Some(".rodata.settings") => map.set_initial_value(&settings_bytes(settings, layout)),
            _ => Ok(()),
        }
        .map_err(|e| refused(&e))?;
    }
    for mut program in open.progs_mut() {
        if attach::is_classifier(program.name()) {
            program.set_autoload(settings.class.is_some());
        } else if tls::is_of_tls(program.name()) {
            program.set_autoload(layout.has_tls);
        } else if let Some(tracepoint) = tracepoint_of(&program)
            && types.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}")).is_none()
        {
            let Some(&(_, lacking)) = OPTIONAL.iter().find(|(optional, _)| *optional == tracepoint) else {
                return Err(LoadError::NoTracepoint { tracepoint });
            };
            program.set_autoload(false);
            missing.push(lacking);
        }
    }
    Ok(missing)
}

/// The tracepoint that a program is attached to.
fn tracepoint_of(program: &OpenProgramMut<'_>) -> Option<String> {
    Some(program.section().to_str()?.strip_prefix("tp_btf/")?.to_owned())
}

/// Tracepoints without which something is not seen, and what that is.
const OPTIONAL: [(&str, &str); 4] = [
    ("hrtimer_expire_entry", "which waits a timer ends: this kernel has no tracepoint hrtimer_expire_entry"),
    ("hrtimer_expire_exit", "which waits a timer ends: this kernel has no tracepoint hrtimer_expire_exit"),
    ("sk_data_ready", "when requests arrived: this kernel has no tracepoint sk_data_ready (since 6.3)"),
    (
        "inet_sock_set_state",
        "when connections end: this kernel has no tracepoint inet_sock_set_state (since 4.16)",
    ),
];

/// `struct settings` of `bpf/watch.h`.
fn settings_bytes(settings: &CaptureSettings, layout: &Layout) -> Vec<u8> {
    let overflow_bytes = u32::try_from(layout.overflow_bytes).expect("a lane is at most the ring's size");
    let mut bytes = Vec::with_capacity(2 * calls::CALLS + 40);
    bytes.extend_from_slice(&calls::waits());
    bytes.extend_from_slice(&calls::moves());
    bytes.extend_from_slice(&layout.secret.to_ne_bytes());
    bytes.extend_from_slice(&overflow_bytes.to_ne_bytes());
    bytes.extend_from_slice(&settings.capture.to_ne_bytes());
    let yield_call = i32::try_from(libc::SYS_sched_yield).expect("numbers of system calls are small");
    bytes.extend_from_slice(&yield_call.to_ne_bytes());
    bytes.extend_from_slice(&u32::from(layout.has_tls).to_ne_bytes());
    bytes.extend_from_slice(&layout.steal.to_ne_bytes());
    debug_assert_eq!(bytes.len() % 8, 0, "as the compiler rounds the structure");
    bytes
}

/// libbpf's messages about a failure: its error itself is only a number.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());

#[expect(clippy::needless_pass_by_value, reason = "libbpf-rs wants a function of this shape")]
fn complain(_: PrintLevel, text: String) {
    let mut complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    if complaints.len() < 16 << 10 {
        complaints.push_str(&text);
    }
}

pub(crate) fn refused(error: &libbpf_rs::Error) -> LoadError {
    let complaints = COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner);
    // The verifier's refusal has an error number that is also used for missing privileges.
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !complaints.contains("-EACCES") {
        return LoadError::Privilege;
    }
    let first = complaints.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    LoadError::Refused(format!("{error:#}; {}", first.trim()))
}
