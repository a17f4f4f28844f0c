//! A relay of TCP connections that delays, slows down, swallows or breaks what passes through it.
//!
//! It sees streams of bytes, not packets: what a network would do to packets is done to the chunks in which bytes
//! arrive here. A lost packet becomes a stall of its direction for one retransmission time; a black hole is a relay
//! that reads and writes nothing. Outside episodes it passes everything on at once.

mod hub;
mod lane;

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use units::Nanos;

use super::conduct::{Began, Disturbance, Done, Ended, Fact, Run};
use super::error::DisturbError;
use super::guard::Guard;

/// What happens to connections during an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    /// The direction that is affected.
    pub direction: Direction,
    /// Every chunk is passed on this much later.
    pub delay: Nanos,
    /// The delay varies by up to this much in either direction; chunks never overtake each other.
    pub jitter: Nanos,
    /// Lost segments per million segments of 1448 bytes.
    pub loss_ppm: u64,
    /// How long a lost segment stalls its direction; twice as long when it is lost again.
    pub retransmission: Nanos,
    /// Maximum bytes per second in each direction, over all connections.
    pub bytes_per_s: Option<u64>,
    /// What happens to whole connections.
    pub cut: Cut,
}

/// The direction that the effects apply to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the target to the client that connected.
    #[default]
    Responses,
    /// From the client to the target.
    Requests,
    /// Both directions.
    Both,
}

/// What happens to whole connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    #[default]
    /// Nothing.
    None,
    /// All are reset, and new ones as soon as they are accepted.
    Reset,
    /// Nothing passes in either direction until the episode ends; nothing is lost.
    BlackHole,
}

/// The disturbance, and the relay itself, which runs in a thread. When it is dropped, all its connections end.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    done: Receiver<Nanos>,
    thread: Option<JoinHandle<()>>,
    running: Option<(Nanos, Counts)>,
}

/// What the relay's thread and its owner share.
#[derive(Debug)]
struct Shared {
    order: Mutex<Option<Order>>,
    wake: rustix::fd::OwnedFd,
    counters: Counters,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Begin,
    End,
    Stop,
}

/// Counts since the start.
#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    bytes: AtomicU64,
    stalls: AtomicU64,
    resets: AtomicU64,
    unconnected: AtomicU64,
}

/// In the order of [`Counters::NAMES`].
type Counts = [u64; 5];

impl Counters {
    const NAMES: [&str; 5] = ["connections", "relayed_bytes", "stalls", "resets", "unconnected"];

    fn read(&self) -> Counts {
        [&self.connections, &self.bytes, &self.stalls, &self.resets, &self.unconnected]
            .map(|counter| counter.load(Ordering::Relaxed))
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl Relay {
    /// Listens on `listen`, and relays connections to `target`.
    ///
    /// # Errors
    ///
    /// When it cannot listen there.
    pub fn start(
        listen: SocketAddr,
        target: SocketAddr,
        effects: Effects,
        seed: u64,
    ) -> Result<Relay, DisturbError> {
        let at = format!("listen on {listen}");
        let listener = TcpListener::bind(listen).map_err(DisturbError::system(&at))?;
        listener.set_nonblocking(true).map_err(DisturbError::system(&at))?;
        let address = listener.local_addr().map_err(DisturbError::system(&at))?;
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(|errno| {
            DisturbError::System { what: "start a relay".to_owned(), source: errno.into() }
        })?;
        let shared = Arc::new(Shared { order: Mutex::new(None), wake, counters: Counters::default() });
        let (confirm, done): (SyncSender<Nanos>, _) = sync_channel(1);
        let hub = hub::Hub::new(listener, target, (effects, seed), Arc::clone(&shared))
            .map_err(DisturbError::system("start a relay"))?;
        let thread = thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || hub.run(&confirm))
            .map_err(DisturbError::system("start a relay"))?;
        Ok(Relay { address, shared, done, thread: Some(thread), running: None })
    }

    /// The address it listens on, with the port that the kernel chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends an order and waits until it is carried out; returns when that was.
    fn order(&self, order: Order) -> Result<Nanos, DisturbError> {
        self.shared.put(order);
        let gone = |_| DisturbError::WorkerGone { what: "the relay's thread".to_owned() };
        self.done.recv_timeout(Duration::from_secs(10)).map_err(gone)
    }
}

impl Shared {
    fn put(&self, order: Order) {
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(order);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn take(&self) -> Option<Order> {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        self.order.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Disturbance for Relay {
    fn begin(&mut self, _end: Option<Nanos>, _run: &mut Run<'_>) -> Result<Began, DisturbError> {
        let before = self.shared.counters.read();
        let begin = self.order(Order::Begin)?;
        self.running = Some((begin, before));
        Ok(Began::At(begin))
    }

    fn end(&mut self, _guard: &mut Guard) -> Ended {
        self.finish().into()
    }
}

impl Relay {
    /// Ends an episode and reports what it was.
    fn finish(&mut self) -> Result<Done, DisturbError> {
        let (begin, before) = self.running.take().expect("only an episode that has begun is ended");
        let asked = clock::now();
        self.order(Order::End)?;
        let now = self.shared.counters.read();
        let facts = Counters::NAMES.iter().zip(now.iter().zip(before));
        let facts = facts
            .map(|(name, (now, before))| Fact { name: (*name).to_owned(), value: now - before })
            .collect();
        Ok(Done { begin, end: Some(asked), facts, note: None })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.put(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
