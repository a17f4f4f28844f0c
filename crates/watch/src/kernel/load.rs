//! Loads the programs, attaches them, and reads what they tell.

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

/// What cannot be changed once it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Most bytes to copy of one read or write.
    pub capture: u32,
    /// Room for events on their way, for all CPUs together.
    pub ring_bytes: u32,
    /// The function whose returned value is a request's class.
    pub class: Option<ClassProbe>,
}

/// `uretprobe:BINARY:SYMBOL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassProbe {
    pub binary: PathBuf,
    pub symbol: String,
}

/// Why the programs do not run.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(
        "this needs the right to load eBPF programs: run it as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE"
    )]
    Privilege,
    #[error(
        "this kernel does not describe its types (no /sys/kernel/btf/vmlinux); it needs CONFIG_DEBUG_INFO_BTF"
    )]
    NoTypes,
    #[error(
        "this is a PID namespace of its own, and the kernel tells of processes by the host's ids: run it on the host, \
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

/// What could not be told; each a count since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events that found the ring of their CPU full.
    pub ring_full: u64,
    /// Threads, connections, processes and culprits for which there was no memory.
    pub map_full: u64,
    /// Waits longer than the memory of who ran.
    pub forgotten_slices: u64,
    /// Lots of arrived bytes that were joined with later ones.
    pub joined_arrivals: u64,
    /// Switches and wake-ups of a watched thread that no program was told of; its account was mended by the scheduler's.
    pub missed_switches: u64,
    /// Runs of a program that the kernel skipped.
    pub recursion: u64,
    /// What was told and is no event: never, unless the object is another version's.
    pub unreadable: u64,
}

/// What one program cost so far, by the kernel's own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    pub program: String,
    pub runs: u64,
    pub time: Nanos,
}

/// Who ran while threads of a process waited for a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CulpritRow {
    pub victim: u32,
    pub pid: u32,
    pub comm: [u8; 16],
    pub time: Nanos,
    pub count: u64,
}

/// The programs, attached until dropped.
pub struct Kernel {
    lanes: Lanes,
    object: Object,
    _links: Vec<Link>,
    /// While it is open the kernel keeps its account of programs.
    statistics: Option<OwnedFd>,
    unreadable: u64,
    missing: Vec<&'static str>,
}

impl Kernel {
    /// Loads and attaches everything. Nothing is watched yet.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn load(settings: &Settings) -> Result<Kernel, LoadError> {
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

    /// What this kernel does not tell.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// The places where the programs are attached.
    pub fn attached(&self) -> Vec<String> {
        let loaded = self.object.progs().filter(|program| program.autoload());
        loaded.map(|program| program.section().to_string_lossy().into_owned()).collect()
    }

    /// Hands over what was told up to the previous call, in the order of its time. Called as often as
    /// [`Kernel::patience`] says.
    pub fn drain(&mut self, mut tell: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.lanes.round(|raw| hand_on(raw, &mut tell, unreadable));
    }

    /// How long what is told can wait for the next [`Kernel::drain`].
    pub fn patience(&self) -> Nanos {
        self.lanes.patience()
    }

    /// Hands over all that was told.
    pub fn drain_all(&mut self, mut tell: impl FnMut(&Event<'_>)) {
        let unreadable = &mut self.unreadable;
        self.lanes.rest(|raw| hand_on(raw, &mut tell, unreadable));
    }

    /// Says whose threads are the server's, and which local ports.
    ///
    /// # Errors
    ///
    /// When the kernel takes no more processes.
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

    /// Says which sockets, by inode, the server had before it was watched. What it has beside them is new, and will be
    /// understood from its first byte on.
    ///
    /// # Errors
    ///
    /// When the kernel refuses. Where there is no room for all, none counts as new.
    pub fn set_old_sockets(&mut self, inodes: &[u64]) -> Result<(), LoadError> {
        let old = map(&self.object, "old_sockets");
        if inodes.iter().any(|inode| old.update(&inode.to_ne_bytes(), &[1], MapFlags::ANY).is_err()) {
            return Ok(());
        }
        map(&self.object, ".bss.old")
            .update(&0_u32.to_ne_bytes(), &1_u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| refused(&e))
    }

    /// Says which local ports are the server's.
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

    /// The processes that are watched by now: those named, and their children since.
    pub fn processes(&self) -> Vec<u32> {
        map(&self.object, "processes").keys().filter_map(|key| word(&key)).collect()
    }

    /// Watches this process no longer: it has ended, and its number may become another's.
    pub fn forget(&mut self, process: u32) {
        // It may be gone already: then there is nothing to forget.
        let _ = map(&self.object, "processes").delete(&process.to_ne_bytes());
    }

    /// What could not be told so far.
    pub fn losses(&self) -> Losses {
        let zero = 0_u32.to_ne_bytes();
        let raw = map(&self.object, ".bss.losses").lookup(&zero, MapFlags::ANY).ok().flatten();
        let raw = raw.unwrap_or_default();
        let at = |n: usize| {
            raw.get(n * 8..n * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
        };
        Losses {
            ring_full: at(0),
            map_full: at(1) + at(2) + at(3) + at(4),
            forgotten_slices: at(5),
            joined_arrivals: at(6),
            missed_switches: at(7),
            recursion: self.programs().iter().map(|program| program.recursion_misses).sum(),
            unreadable: self.unreadable,
        }
    }

    /// Lets the kernel measure what the programs cost; a few per cent of that more.
    ///
    /// # Errors
    ///
    /// When the kernel does not keep such an account.
    pub fn measure_cost(&mut self) -> io::Result<()> {
        self.statistics = Some(keep_statistics()?);
        Ok(())
    }

    /// What each program cost since [`Kernel::measure_cost`]; empty without it.
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

    /// Who took CPUs from the watched processes so far.
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

fn hand_on(raw: &[u8], tell: &mut impl FnMut(&Event<'_>), unreadable: &mut u64) {
    match Event::parse(raw) {
        Some(event) => tell(&event),
        None => *unreadable += 1,
    }
}

/// What the programs and [`Lanes`] have to agree on.
struct Layout {
    secret: u64,
    overflow_bytes: usize,
    cpus: usize,
}

/// A number that nobody guesses.
fn secret() -> Result<u64, LoadError> {
    let mut bytes = [0; 8];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    got.map_err(|error| LoadError::Refused(format!("no random number: {error}")))?;
    Ok(u64::from_ne_bytes(bytes))
}

const PORTS: usize = 1 << 16;

/// Lets the kernel account for its programs as long as this is open.
pub(crate) fn keep_statistics() -> io::Result<OwnedFd> {
    // SAFETY: no argument but a number; the result is a descriptor of ours, or negative.
    #[expect(unsafe_code, reason = "libbpf-rs has no call for it")]
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: just made, and nobody else has it.
    #[expect(unsafe_code, reason = "a raw descriptor becomes an owned one")]
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Ok(descriptor)
}

/// What the kernel knows of an object's programs.
pub(crate) fn programs_of(object: &Object) -> Vec<ProgramInfo> {
    let ours = object.progs().filter_map(|program| Program::id_from_fd(program.as_fd()).ok());
    let ours: Vec<u32> = ours.collect();
    ProgInfoIter::default().filter(|program| ours.contains(&program.id)).collect()
}

/// Before a process is looked for: what the programs tell of it could not be told to be its.
pub(crate) fn require_host_pids() -> Result<(), LoadError> {
    match host::sees_host_pids(Path::new("/")) {
        Some(false) => Err(LoadError::PidNamespace),
        // Where /proc does not tell, nothing speaks against it.
        Some(true) | None => Ok(()),
    }
}

/// Before an object is opened: what libbpf says of it from now on is kept.
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

/// What will not be seen.
fn prepare(
    open: &mut OpenObject,
    settings: &Settings,
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
        if program.name() == CLASSIFIER {
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

/// The tracepoint that a program is for.
fn tracepoint_of(program: &OpenProgramMut<'_>) -> Option<String> {
    Some(program.section().to_str()?.strip_prefix("tp_btf/")?.to_owned())
}

/// Tracepoints without which something is not seen, and what.
const OPTIONAL: [(&str, &str); 2] = [
    ("sk_data_ready", "when requests arrived: this kernel has no tracepoint sk_data_ready (since 6.3)"),
    (
        "inet_sock_set_state",
        "when connections end: this kernel has no tracepoint inet_sock_set_state (since 4.16)",
    ),
];

/// `struct settings` of `bpf/watch.h`.
fn settings_bytes(settings: &Settings, layout: &Layout) -> Vec<u8> {
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

const CLASSIFIER: &str = "on_return";

fn attach(object: &Object, settings: &Settings) -> Result<Vec<Link>, LoadError> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        if program.name() != CLASSIFIER {
            links.push(program.attach().map_err(|e| refused(&e))?);
        } else if let Some(class) = &settings.class {
            let options =
                UprobeOpts { retprobe: true, func_name: Some(class.symbol.clone()), ..UprobeOpts::default() };
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

/// What libbpf has to say of a failure: its own error is a number only.
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
    // The verifier's refusal has a number of its own, which is told as a lack of rights, too.
    if error.kind() == libbpf_rs::ErrorKind::PermissionDenied && !complaints.contains("-EACCES") {
        return LoadError::Privilege;
    }
    let first = complaints.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    LoadError::Refused(format!("{error:#}; {}", first.trim()))
}
