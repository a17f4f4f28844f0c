//! Starts and stops the threads, and collects the truth from them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use units::Nanos;

use crate::freeze::Schedule;
use crate::listen;
use crate::mailbox::{Collection, Shared};
use crate::options::{Options, StartError};
use crate::tally::Tally;
use crate::truth::Truth;
use crate::worker::{self, Worker};

/// A server that runs until it is stopped or dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<Tally>>,
}

impl Server {
    /// Opens the listeners and starts the threads. Connections are accepted from when it returns.
    ///
    /// # Errors
    ///
    /// [`StartError`]: one line with what, where, and what to do.
    pub fn start(options: Options) -> Result<Server, StartError> {
        options.check()?;
        let (listeners, address) = listen::open(&options)?;
        let schedule = Schedule { start: clock::now(), freeze: options.freeze };
        let shared = Shared::new(options, schedule);
        let shared = Arc::new(shared.map_err(|source| StartError::Thread { index: 0, source })?);
        let mut server = Server { shared, address, threads: Vec::new() };
        for (index, listener) in listeners.into_iter().enumerate() {
            // On an error, dropping `server` stops the threads that are running.
            let fail = |source| StartError::Thread { index, source };
            let epoll =
                worker::open_epoll(&listener, index, &server.shared).map_err(|errno| fail(errno.into()))?;
            let shared = Arc::clone(&server.shared);
            let thread = Builder::new()
                .name(format!("serve-{index}"))
                .spawn(move || Worker::new(epoll, listener, index, shared).run())
                .map_err(fail)?;
            server.threads.push(thread);
        }
        Ok(server)
    }

    /// The address it listens on, with the port that the kernel chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// When it started, on the monotonic clock: the zero of its freeze schedule.
    pub fn started(&self) -> Nanos {
        self.shared.schedule.start
    }

    /// The first `n` planned freezes: begin and end, on the monotonic clock.
    pub fn freeze_schedule(&self, n: usize) -> Vec<(Nanos, Nanos)> {
        (0..).map_while(|index| self.shared.schedule.nth(index)).take(n).collect()
    }

    /// What it has done so far. Blocks until a frozen thread continues.
    pub fn truth(&self) -> Truth {
        self.collect(false)
    }

    /// Like [`truth`](Server::truth), and then starts counting from zero.
    pub fn reset_truth(&self) -> Truth {
        self.collect(true)
    }

    /// Stops at once, frozen or not, and closes all connections; requests without a response count as `abandoned`.
    pub fn stop(mut self) -> Truth {
        self.shared.stop();
        let mut tally = Tally::new(Nanos::ZERO);
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(part) => tally.merge(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        self.truth_of(tally)
    }

    fn collect(&self, reset: bool) -> Truth {
        let collection: Arc<Collection> = self.shared.ask(reset, None);
        while !collection.wait(Nanos::from_millis(100)) {
            let ended = self.threads.iter().any(JoinHandle::is_finished);
            assert!(!ended, "a thread of the server has panicked; its part of /truth is lost");
        }
        self.truth_of(collection.tally())
    }

    fn truth_of(&self, tally: Tally) -> Truth {
        Truth::new(self.started(), clock::now(), self.shared.options.threads, tally)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // A panic has been reported by the thread itself; a drop must not panic again.
            let _ = thread.join();
        }
    }
}
