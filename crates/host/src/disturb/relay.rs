//! A relay of TCP connections that holds up, slows down, swallows or breaks what passes through it.
//!
//! It sees streams of bytes, not packets: what a network would do to packets is done to the pieces in which they
//! arrive here. A lost packet is a stall of its direction for a retransmission time; a black hole is a relay that
//! reads and writes nothing. Outside of episodes it passes everything on at once.

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

use super::conduct::{Began, Deed, Done, Ended, Fact, Run};
use super::error::DisturbError;
use super::guard::Guard;

/// What is done to connections in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effects {
    pub direction: Direction,
    /// Every piece comes so much later.
    pub delay: Nanos,
    /// And by up to this much more or less; never before the piece in front of it.
    pub jitter: Nanos,
    /// Of a million segments of 1448 bytes, so many are lost.
    pub loss_ppm: u64,
    /// For so long a lost segment holds up its direction; twice as long when it is lost again.
    pub retransmission: Nanos,
    /// So many bytes a second pass in each direction, of all connections together.
    pub bytes_per_s: Option<u64>,
    pub cut: Cut,
}

/// Which way the effects work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the target to whoever connected.
    #[default]
    Answers,
    Requests,
    Both,
}

/// What becomes of whole connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cut {
    #[default]
    None,
    /// All are reset, and new ones as soon as they are accepted.
    Reset,
    /// Nothing passes in either direction until the episode ends, and nothing is lost.
    BlackHole,
}

/// The deed, and the relay itself. When it is dropped, all its connections end.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    done: Receiver<Nanos>,
    thread: Option<JoinHandle<()>>,
    under_way: Option<(Nanos, Counts)>,
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

/// What happened so far.
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
    /// Listens, and passes connections on to `target`.
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
        let (tell, done): (SyncSender<Nanos>, _) = sync_channel(1);
        let hub = hub::Hub::new(listener, target, (effects, seed), Arc::clone(&shared))
            .map_err(DisturbError::system("start a relay"))?;
        let thread = thread::Builder::new()
            .name("relay".to_owned())
            .spawn(move || hub.run(&tell))
            .map_err(DisturbError::system("start a relay"))?;
        Ok(Relay { address, shared, done, thread: Some(thread), under_way: None })
    }

    /// Where it listens, with the port that the kernel chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives an order and waits until it is carried out: when that was.
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

impl Deed for Relay {
    fn begin(&mut self, _end: Option<Nanos>, _run: &mut Run<'_>) -> Result<Began, DisturbError> {
        let before = self.shared.counters.read();
        let begin = self.order(Order::Begin)?;
        self.under_way = Some((begin, before));
        Ok(Began::At(begin))
    }

    fn end(&mut self, _guard: &mut Guard) -> Ended {
        self.finish().into()
    }
}

impl Relay {
    /// Ends an episode: what it was.
    fn finish(&mut self) -> Result<Done, DisturbError> {
        let (begin, before) = self.under_way.take().expect("only an episode that has begun is ended");
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
