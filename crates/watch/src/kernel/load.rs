//! Loads the programs, attaches them, and reads their events.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::query::{ProgInfoIter, ProgramInfo};
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, OpenProgramMut, PrintLevel, Program,
    UprobeOpts,
};
use units::Nanos;

use super::calls;
use super::event::Event;
use super::lanes::{self, Lanes};

/// Settings that cannot be changed while the programs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureSettings {
    /// The most bytes to copy of one read or write.
    pub capture: u32,
    /// Memory for events on their way to user space, for all CPUs together, in bytes.
    pub ring_bytes: u32,
    /// The function whose return value is a request's class.
    pub class: Option<ClassProbe>,
}

/// `uretprobe:BINARY:SYMBOL`: a function of the server to probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassProbe {
    /// The file with the function.
    pub binary: PathBuf,
    /// The function's symbol, mangled where it is.
    pub symbol: String,
}

/// Why the programs do not run. Messages are one line each.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "loading eBPF programs is not permitted: run this as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE"
    )]
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
    /// The pid of the waiting process.
    pub victim: u32,
    /// The pid of the process that ran.
    pub pid: u32,
    /// Its name, zero-terminated.
    pub comm: [u8; 16],
    /// For how long it ran while others waited.
    pub time: Nanos,
    /// During how many waits.
    pub count: u64,
}

/// The loaded programs, attached until dropped.
pub struct Kernel {
    lanes: Lanes,
    object: Object,
    _links: Vec<Link>,
    /// While this is open the kernel accounts for its programs.
    statistics: Option<OwnedFd>,
    unreadable: u64,
    missing: Vec<&'static str>,
}

impl Kernel {
    /// Loads and attaches all programs. No process is watched yet.
    ///
    /// # Errors
    ///
    /// [`LoadError`]: no privilege, an unsupported kernel, or a refused program.
    pub fn load(settings: &CaptureSettings) -> Result<Kernel, LoadError> {
        begin()?;
        let mut open =
            ObjectBuilder::default().open_memory(crate::object!("watch")).map_err(|e| refused(&e))?;
        let cpus = libbpf_rs::num_possible_cpus().map_err(|e| refused(&e))?;
        let all = usize::try_from(settings.ring_bytes).expect("a size fits into memory");
        let layout = Layout { secret: secret()?, overflow_bytes: lanes::overflow_bytes(all, cpus), cpus };
        let missing = prepare(&mut open, settings, &layout)?;
        let object = open.load().map_err(|e| refused(&e))?;
        let maps = (map(&object, "lanes"), map(&object, "overflow"));
        let lanes = Lanes::map((&maps.0, &maps.1), layout.secret, layout.overflow_bytes, cpus)
            .map_err(|error| LoadError::Refused(format!("cannot map its events: {error}")))?;
        let links = attach(&object, settings)?;
        Ok(Kernel { lanes, object, _links: links, statistics: None, unreadable: 0, missing })
    }

    /// What cannot be observed on this kernel, in words for the record.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// The tracepoints and probes that programs are attached to.
    pub fn attached(&self) -> Vec<String> {
        let loaded = self.object.progs().filter(|program| program.autoload());
        loaded.map(|program| program.section().to_string_lossy().into_owned()).collect()
    }

    /// Passes on the events up to the previous call, in the order of their time. Call as often as [`Kernel::patience`]
    /// returns.
    pub fn drain(&mut self, mut give: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.lanes.round(|raw| hand_on(raw, &mut give, unreadable));
    }

    /// How long events can wait for the next [`Kernel::drain`].
    pub fn patience(&self) -> Nanos {
        self.lanes.patience()
    }

    /// Passes on all remaining events.
    pub fn drain_all(&mut self, mut give: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.lanes.rest(|raw| hand_on(raw, &mut give, unreadable));
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
        map(&self.object, ".bss.process")
            .update(&0_u32.to_ne_bytes(), &only.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
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
        map(&self.object, ".bss.old")
            .update(&0_u32.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
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
        map(&self.object, ".bss.ports")
            .update(&0_u32.to_ne_bytes(), &flags, MapFlags::ANY)
            .map_err(|e| refused(&e))
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

    /// The threads that took CPUs from the watched processes so far.
    pub fn culprits(&self) -> Vec<CulpritRow> {
        let culprits = map(&self.object, "culprits");
        let row = |key: Vec<u8>| {
            let value = culprits.lookup(&key, MapFlags::ANY).ok().flatten()?;
            Some(CulpritRow {
                victim: word(key.get(..4)?)?,
                pid: word(key.get(4..8)?)?,
                comm: key.get(8..24)?.try_into().ok()?,
                time: Nanos(u64::from_ne_bytes(value.get(..8)?.try_into().ok()?)),
                count: u64::from_ne_bytes(value.get(8..16)?.try_into().ok()?),
            })
        };
        culprits.keys().filter_map(row).collect()
    }
}

fn hand_on(raw: &[u8], give: &mut impl FnMut(&Event<'_>), unreadable: &mut u64) {
    match Event::parse(raw) {
        Some(event) => give(&event),
        None => *unreadable += 1,
    }
}

/// What the programs and [`Lanes`] must agree on.
struct Layout {
    secret: u64,
    overflow_bytes: usize,
    cpus: usize,
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
    let types = Btf::from_vmlinux().map_err(|e| refused(&e))?;
    for mut program in open.progs_mut() {
        if is_classifier(program.name()) {
            program.set_autoload(settings.class.is_some());
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
const OPTIONAL: [(&str, &str); 2] = [
    ("sk_data_ready", "when requests arrived: this kernel has no tracepoint sk_data_ready (since 6.3)"),
    (
        "inet_sock_set_state",
        "when connections end: this kernel has no tracepoint inet_sock_set_state (since 4.16)",
    ),
];

/// `struct settings` of `bpf/watch.h`.
fn settings_bytes(settings: &CaptureSettings, layout: &Layout) -> Vec<u8> {
    let overflow_bytes = u32::try_from(layout.overflow_bytes).expect("a lane is at most the ring's size");
    let mut bytes = Vec::with_capacity(2 * calls::CALLS + 32);
    bytes.extend_from_slice(&calls::waits());
    bytes.extend_from_slice(&calls::moves());
    bytes.extend_from_slice(&layout.secret.to_ne_bytes());
    bytes.extend_from_slice(&overflow_bytes.to_ne_bytes());
    bytes.extend_from_slice(&settings.capture.to_ne_bytes());
    let yield_call = i32::try_from(libc::SYS_sched_yield).expect("numbers of system calls are small");
    bytes.extend_from_slice(&yield_call.to_ne_bytes());
    bytes.extend_from_slice(&[0; 4]);
    debug_assert_eq!(bytes.len() % 8, 0, "as the compiler rounds the structure");
    bytes
}

/// The programs at the entry and at the return of the function that classifies.
const CLASSIFIERS: [&str; 2] = ["on_entry", "on_return"];

fn is_classifier(program: &OsStr) -> bool {
    CLASSIFIERS.iter().any(|name| program == *name)
}

fn attach(object: &Object, settings: &CaptureSettings) -> Result<Vec<Link>, LoadError> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let name = program.name();
        if !is_classifier(name) {
            links.push(program.attach().map_err(|e| refused(&e))?);
        } else if let Some(class) = &settings.class {
            let options = UprobeOpts {
                retprobe: name == CLASSIFIERS[1],
                func_name: Some(class.symbol.clone()),
                ..UprobeOpts::default()
            };
            let link = program.attach_uprobe_with_opts(-1, &class.binary, 0, options);
            links.push(link.map_err(|e| LoadError::Class {
                binary: class.binary.clone(),
                symbol: class.symbol.clone(),
                why: e.to_string(),
            })?);
        }
    }
    Ok(links)
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
