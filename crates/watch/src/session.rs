//! Watches a server: the kernel's programs, the assembler, and the server's processes as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use record::Served;
use record::observation::watch::{Preemptor, ProgramCost, Tier, WatchSubject};
use units::Nanos;

use crate::assemble::{Assembler, KnownRequests, comm as comm_text};
use crate::bounded::{Bounded, Summed};
use crate::duty::Budget;
use crate::find::{self, FindError, Found, Named};
use crate::kernel::{CaptureSettings, Cost, Kernel, LoadError, Losses, require_host_pids};
use crate::tls::{self, TlsLibraries};
use crate::windows::{Seeing, Seen, Server, Windows};

/// Watches until dropped. Changes nothing about the server.
pub struct Session {
    kernel: Kernel,
    assembler: Assembler,
    named: Named,
    found: Found,
    /// The ports of the latest look.
    listening: Vec<u16>,
    libraries: TlsLibraries,
    /// `None`: everything is seen.
    windows: Option<Windows>,
    /// Culprits that the kernel's table had no room for any more, by process and name.
    culprits: Bounded<(u32, [u8; 16]), CulpritSum>,
}

#[derive(Debug, Default)]
struct CulpritSum {
    time: Nanos,
    count: u64,
}

impl Summed for CulpritSum {
    fn weight(&self) -> u64 {
        self.time.0
    }

    fn merge(&mut self, other: &CulpritSum) {
        self.time += other.time;
        self.count += other.count;
    }
}

/// Why a server cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// The protocol of a server whose connections do not show it unless they are seen from their beginning, by its name.
fn protocol_of(comm: &str) -> Option<dissect::Protocol> {
    ["mariadbd", "mysqld"].contains(&comm).then_some(dissect::Protocol::MySql)
}

impl Session {
    /// Finds the server and attaches to it. Its requests are seen from here on.
    ///
    /// # Errors
    ///
    /// [`WatchError`]: the server was not found, or the programs do not run.
    pub fn start(
        named: Named,
        settings: &CaptureSettings,
        known: KnownRequests,
    ) -> Result<Session, WatchError> {
        require_host_pids()?;
        let mut found = find::find(&named)?;
        let protocol = known.protocol.or_else(|| protocol_of(found.comm.as_deref()?));
        let known = KnownRequests { protocol, ..known };
        let libraries = if settings.tls { tls::find(&found.processes) } else { TlsLibraries::default() };
        let mut kernel = Kernel::load(settings, &libraries.probed)?;
        kernel.watch(&found.processes, &found.ports)?;
        // Children that were forked before the programs knew their parents.
        found.processes = find::with_children(&found.roots)?;
        kernel.watch(&found.processes, &found.ports)?;
        // After the programs run: a socket opened in the meantime counts as old, which is harmless.
        kernel.set_old_sockets(&find::sockets_of_all(&found.processes))?;
        let assembler = Assembler::new(known, settings.class.is_some(), !libraries.probed.is_empty());
        let (listening, culprits) = (found.ports.clone(), Bounded::new(CULPRITS));
        Ok(Session { kernel, assembler, named, found, listening, libraries, windows: None, culprits })
    }

    /// From now on, an instant of the kernel's clock, spends no more than this: see [`Windows`]. Not for a server whose
    /// functions are probed.
    ///
    /// # Errors
    ///
    /// When the kernel keeps no account of programs, or does not attach them again.
    pub fn keep_budget(&mut self, budget: Budget, now: Nanos) -> Result<(), WatchError> {
        self.kernel.measure_cost().map_err(|error| {
            LoadError::Refused(format!("it keeps no account of programs, which a budget needs: {error}"))
        })?;
        let windows = Windows::begin(budget, &mut self.server(), now)?;
        self.windows = Some(windows);
        Ok(())
    }

    /// How much was seen under a budget; `None` without one.
    pub fn seeing(&self) -> Option<Seeing> {
        self.windows.as_ref().map(Windows::seeing)
    }

    /// What was seen under a budget and what that cost, without estimates; `None` without a budget.
    pub fn windows(&self) -> Option<record::observation::watch::Windows> {
        self.windows.as_ref().map(Windows::summary)
    }

    /// How many bytes the server read under a budget in times that belong to no window, while not everything was counted,
    /// and how long these are; or why this is not known. Complete after [`Session::detach`]; `None` without a budget.
    pub fn read_outside_windows(&self) -> Option<Result<(u64, Nanos), String>> {
        self.windows.as_ref().map(|windows| windows.rest().map(|read| (read.bytes, read.time)))
    }

    fn server(&mut self) -> Server<'_> {
        let Session { kernel, assembler, found, .. } = self;
        Server { kernel, assembler, processes: &found.processes, ports: &found.ports }
    }

    /// Adds the requests completed since the last call to `done`, ordered by their ends as far as threads allow: all, or
    /// some tens of thousands. If a window has ended, all that are added are its requests. `now` is of the kernel's
    /// clock.
    ///
    /// # Errors
    ///
    /// When the kernel does not attach the programs for a window.
    ///
    /// # Cost
    ///
    /// None for the server, except that of a window's begin and end. Call when [`Session::due`] says.
    pub fn take(&mut self, now: Nanos, done: &mut Vec<Served>) -> Result<Option<Seen>, WatchError> {
        let Some(mut windows) = self.windows.take() else {
            self.take_all(done);
            return Ok(None);
        };
        let seen = windows.step(&mut self.server(), now, done);
        self.windows = Some(windows);
        Ok(seen?)
    }

    fn take_all(&mut self, done: &mut Vec<Served>) {
        let assembler = &mut self.assembler;
        self.kernel.drain(|event| assembler.take(event, &mut |served| done.push(served)));
    }

    /// When to call [`Session::take`] next: within 1 to 10 ms, at once if there are more events, or when the next window
    /// begins. All of the kernel's clock.
    pub fn due(&self, now: Nanos) -> Nanos {
        let patience = self.kernel.patience();
        self.windows.as_ref().map_or(now + patience, |windows| windows.due(now, patience))
    }

    /// Detaches the programs: what the server does from now on is not seen. Follow with [`Session::finish`].
    pub fn detach(&mut self, now: Nanos) {
        self.windows.iter_mut().for_each(|windows| windows.stop(now, &self.found.ports));
        self.kernel.detach();
    }

    /// Adds a part of what is left to `done`; returns false when only [`Session::finish`] has more to add.
    pub fn take_rest(&mut self, done: &mut Vec<Served>) -> bool {
        let has_more = self.windows.is_none() && self.kernel.patience() == Nanos::ZERO;
        if has_more {
            self.take_all(done);
        }
        has_more
    }

    /// Adds what is left to `done`, and ends every connection: whatever was written last on it counts as the response. A
    /// window that has ended is returned, and what is added are its requests.
    pub fn finish(&mut self, done: &mut Vec<Served>) -> Option<Seen> {
        if let Some(mut windows) = self.windows.take() {
            let seen = windows.finish(&mut self.server(), done);
            self.windows = Some(windows);
            return seen;
        }
        let assembler = &mut self.assembler;
        self.kernel.drain_all(|event| assembler.take(event, &mut |served| done.push(served)));
        assembler.finish(&mut |served| done.push(served));
        None
    }

    /// Looks for ports and processes that the server has opened since, and forgets threads that ended. Call once per
    /// interval. Returns false when no process of the server is left.
    ///
    /// # Errors
    ///
    /// When /proc cannot be read or the kernel accepts no more processes.
    pub fn refresh(&mut self, now: Nanos) -> Result<bool, WatchError> {
        for row in self.kernel.take_culprits(CULPRITS) {
            let sum = self.culprits.entry((row.pid, row.comm));
            sum.merge(&CulpritSum { time: row.time, count: row.count });
        }
        let silent = Nanos(now.0.saturating_sub(SILENT.0));
        self.assembler.forget_threads(silent);
        self.assembler.forget_unix_sockets(silent);
        let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
        let (processes, ended): (Vec<u32>, Vec<u32>) =
            self.kernel.processes().into_iter().partition(is_there);
        ended.into_iter().for_each(|process| self.kernel.forget(process));
        if processes.is_empty() {
            return Ok(false);
        }
        let ports = match self.named {
            Named::Port(port) => vec![port],
            _ => find::ports_of(&processes)?,
        };
        // The kernel's tables may lack a socket when others are closed while they are read, so a port counts as closed
        // when two looks in a row do not find it.
        let before = std::mem::replace(&mut self.listening, ports);
        let ports: Vec<u16> =
            before.iter().chain(&self.listening).copied().collect::<BTreeSet<_>>().into_iter().collect();
        if ports != self.found.ports {
            self.kernel.set_ports(&ports)?;
            self.found.ports = ports;
        }
        self.found.processes = processes;
        Ok(true)
    }

    /// The server, which the user has named so; without its protocols.
    pub fn subject(&self, named: &str) -> WatchSubject {
        WatchSubject {
            named: named.to_owned(),
            pids: self.found.processes.iter().copied().take(1_000).collect(),
            ports: self.found.ports.clone(),
            comm: self.found.comm.clone(),
            protocols: Vec::new(),
        }
    }

    /// What cannot be observed on this kernel, in words for the record.
    pub fn missing(&self) -> &[&'static str] {
        self.kernel.missing()
    }

    /// How it watches, with the tracepoints and probes that programs are attached to.
    pub fn tier(&self) -> Tier {
        let libraries = self.libraries.probed.iter();
        let probes = libraries.flat_map(|library| {
            library.functions.iter().map(|function| format!("uprobe:{}:{function}", library.name))
        });
        let attached = self.kernel.attached().into_iter().chain(probes).collect();
        Tier { name: "btf_tracepoints".to_owned(), attached }
    }

    /// Programs of the server whose TLS library cannot be probed, one line each.
    pub fn unprobed(&self) -> &[String] {
        &self.libraries.unprobed
    }

    /// What was lost so far.
    pub fn losses(&self) -> Losses {
        self.kernel.losses()
    }

    /// What could not be read from the bytes of connections, by cause.
    pub fn counts(&self) -> dissect::Counts {
        self.assembler.counts()
    }

    /// Requests given up because too many waited on one connection, or too many connections were open.
    pub fn given_up(&self) -> u64 {
        self.assembler.given_up()
    }

    /// Requests that were missed so far. Complete after [`Session::finish`].
    pub fn missed(&self) -> Option<record::observation::watch::MissedRequests> {
        self.assembler.missed(self.kernel.losses().unseen)
    }

    /// Connections seen so far.
    pub fn connections(&self) -> u64 {
        self.assembler.connections()
    }

    /// Calls `look` with the table of digests.
    pub fn with_digests<T>(&self, look: impl FnOnce(&dissect::Digests) -> T) -> T {
        look(self.assembler.digests())
    }

    /// See [`Kernel::measure_cost`].
    ///
    /// # Errors
    ///
    /// As for [`Kernel::measure_cost`].
    pub fn measure_cost(&mut self) -> std::io::Result<()> {
        self.kernel.measure_cost()
    }

    /// See [`Kernel::cost`].
    pub fn cost(&self) -> Vec<ProgramCost> {
        let cost = |cost: Cost| ProgramCost { name: cost.program, runs: cost.runs, ns: cost.time.0 };
        self.kernel.cost().into_iter().map(cost).collect()
    }

    /// Threads that ran on a CPU while the server waited for one: a row per process and name, the most time first,
    /// without control groups. Those of the process 0 are all that took least, together.
    pub fn preemptors(&self) -> Vec<Preemptor> {
        let (largest, other) = self.culprits.largest();
        let taken = largest.into_iter().map(|(&(pid, comm), sum)| (pid, comm, sum.time, sum.count));
        let other = other.into_iter().map(|sum| (0, [0; 16], sum.time, sum.count));
        let rows = self.kernel.culprits().into_iter().map(|row| (row.pid, row.comm, row.time, row.count));
        let mut preemptors: BTreeMap<(u32, String), Preemptor> = BTreeMap::new();
        for (pid, comm, time, count) in rows.chain(taken).chain(other) {
            let comm = if pid == 0 { "(others)".to_owned() } else { comm_text(&comm) };
            let new = || Preemptor { pid, comm: comm.clone(), cgroup: None, time_ns: 0, count: 0 };
            let one = preemptors.entry((pid, comm.clone())).or_insert_with(new);
            one.time_ns += time.0;
            one.count += count;
        }
        let mut preemptors: Vec<Preemptor> = preemptors.into_values().collect();
        preemptors.sort_by_key(|row| std::cmp::Reverse(row.time_ns));
        preemptors
    }
}

/// From this many on, culprits are taken out of the kernel's table, and as many are listed: half of what it has room
/// for.
const CULPRITS: usize = 2_048;

/// A thread, or a Unix socket where there are many, counts as ended without events for this long.
const SILENT: Nanos = Nanos::from_secs(600);
