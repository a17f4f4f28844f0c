//! Watches a server: the kernel's programs, the assembler, and the server's processes as they come and go.

use std::path::Path;

use record::Served;
use units::Nanos;

use crate::assemble::{Assembler, KnownRequests};
use crate::find::{self, FindError, Found, Named};
use crate::kernel::{CaptureSettings, Cost, CulpritRow, Kernel, LoadError, Losses, require_host_pids};

/// Watches until dropped. Changes nothing about the server.
pub struct Session {
    kernel: Kernel,
    assembler: Assembler,
    named: Named,
    found: Found,
}

/// Why a server cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Load(#[from] LoadError),
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
        let found = find::find(&named)?;
        let mut kernel = Kernel::load(settings)?;
        kernel.watch(&found.processes, &found.ports)?;
        // After the programs run: a socket opened in the meantime counts as old, which is harmless.
        kernel.set_old_sockets(&find::sockets_of_all(&found.processes))?;
        Ok(Session { kernel, assembler: Assembler::new(known, settings.class.is_some()), named, found })
    }

    /// The requests completed since the last call, ordered by their ends as far as threads allow.
    ///
    /// # Cost
    ///
    /// None for the server. Call as often as [`Session::patience`] returns, so that no lane fills up.
    pub fn take(&mut self) -> Vec<Served> {
        let mut done = Vec::new();
        let assembler = &mut self.assembler;
        self.kernel.drain(|event| assembler.take(event, &mut |served| done.push(served)));
        done
    }

    /// How long events can wait for the next [`Session::take`]: 1 to 10 ms.
    pub fn patience(&self) -> Nanos {
        self.kernel.patience()
    }

    /// Ends every connection: whatever was written last on it counts as the response.
    pub fn finish(&mut self) -> Vec<Served> {
        let mut done = Vec::new();
        let assembler = &mut self.assembler;
        self.kernel.drain_all(|event| assembler.take(event, &mut |served| done.push(served)));
        assembler.finish(&mut |served| done.push(served));
        done
    }

    /// Looks for ports and processes that the server has opened since, and forgets threads that ended. Call once per
    /// interval. Returns false when no process of the server is left.
    ///
    /// # Errors
    ///
    /// When /proc cannot be read or the kernel accepts no more processes.
    pub fn refresh(&mut self, now: Nanos) -> Result<bool, WatchError> {
        self.assembler.forget_threads(Nanos(now.0.saturating_sub(SILENT.0)));
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
        if ports != self.found.ports {
            self.kernel.set_ports(&ports)?;
            self.found.ports = ports;
        }
        self.found.processes = processes;
        Ok(true)
    }

    /// The server's processes and ports.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// What cannot be observed on this kernel, in words for the record.
    pub fn missing(&self) -> &[&'static str] {
        self.kernel.missing()
    }

    /// The tracepoints and probes that programs are attached to.
    pub fn attached(&self) -> Vec<String> {
        self.kernel.attached()
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
    pub fn cost(&self) -> Vec<Cost> {
        self.kernel.cost()
    }

    /// See [`Kernel::culprits`].
    pub fn culprits(&self) -> Vec<CulpritRow> {
        self.kernel.culprits()
    }
}

/// A thread without events for this long counts as ended.
const SILENT: Nanos = Nanos::from_secs(600);
