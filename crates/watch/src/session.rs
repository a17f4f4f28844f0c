//! A server under watch: the kernel's side, the assembler, and the server's processes as they come and go.

use std::path::Path;

use record::Served;
use units::Nanos;

use crate::assemble::Assembler;
use crate::find::{self, FindError, Found, Named};
use crate::kernel::{Cost, CulpritRow, Kernel, LoadError, Losses, Settings, require_host_pids};

/// Watches until dropped. Nothing of the server is changed.
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
    /// Finds the server and attaches to it. From here on its requests are seen.
    ///
    /// # Errors
    ///
    /// [`WatchError`].
    pub fn start(
        named: Named,
        settings: &Settings,
        hint: Option<dissect::Protocol>,
    ) -> Result<Session, WatchError> {
        require_host_pids()?;
        let found = find::find(&named)?;
        let mut kernel = Kernel::load(settings)?;
        kernel.watch(&found.processes, &found.ports)?;
        // After the programs run: what is made meanwhile counts as old at worst.
        kernel.set_old_sockets(&find::sockets_of_all(&found.processes))?;
        Ok(Session { kernel, assembler: Assembler::new(hint), named, found })
    }

    /// The requests that were completed since the last call, in the order of their ends as far as threads allow.
    ///
    /// # Cost
    ///
    /// Costs the server nothing. Called as often as [`Session::patience`] says, so that no ring fills.
    pub fn take(&mut self) -> Vec<Served> {
        let mut done = Vec::new();
        let assembler = &mut self.assembler;
        self.kernel.drain(|event| assembler.take(event, &mut |served| done.push(served)));
        done
    }

    /// How long what the kernel tells can wait for the next [`Session::take`]: 1 to 10 ms.
    pub fn patience(&self) -> Nanos {
        self.kernel.patience()
    }

    /// Ends every connection: what was written last on it was the answer.
    pub fn finish(&mut self) -> Vec<Served> {
        let mut done = Vec::new();
        let assembler = &mut self.assembler;
        self.kernel.drain_all(|event| assembler.take(event, &mut |served| done.push(served)));
        assembler.finish(&mut |served| done.push(served));
        done
    }

    /// Looks for ports and processes that the server has taken meanwhile, and forgets threads that ended. Called
    /// once an interval. False when no process of it is left.
    ///
    /// # Errors
    ///
    /// When /proc cannot be read or the kernel takes no more.
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

    pub fn found(&self) -> &Found {
        &self.found
    }

    /// What this kernel does not tell.
    pub fn missing(&self) -> &[&'static str] {
        self.kernel.missing()
    }

    /// The places where programs are attached.
    pub fn attached(&self) -> Vec<String> {
        self.kernel.attached()
    }

    pub fn losses(&self) -> Losses {
        self.kernel.losses()
    }

    /// What could not be told from the bytes of connections.
    pub fn counts(&self) -> dissect::Counts {
        self.assembler.counts()
    }

    /// Requests that were given up because too many waited on one connection, or too many connections were open.
    pub fn given_up(&self) -> u64 {
        self.assembler.given_up()
    }

    pub fn connections(&self) -> u64 {
        self.assembler.connections()
    }

    /// The digests by their ids, as texts.
    pub fn with_digests<T>(&self, look: impl FnOnce(&dissect::Digests) -> T) -> T {
        look(self.assembler.digests())
    }

    /// See [`Kernel::measure_cost`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn measure_cost(&mut self) -> std::io::Result<()> {
        self.kernel.measure_cost()
    }

    pub fn cost(&self) -> Vec<Cost> {
        self.kernel.cost()
    }

    pub fn culprits(&self) -> Vec<CulpritRow> {
        self.kernel.culprits()
    }
}

/// A thread that has not been heard of for so long is taken for ended.
const SILENT: Nanos = Nanos::from_secs(600);
