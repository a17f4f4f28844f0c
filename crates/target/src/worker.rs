//! The loop of one thread: waits for sockets, timers, letters and freezes, and gives connections their turns.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, SocketFlags, accept_with, send, shutdown, sockopt};
use units::Nanos;

use crate::connection::{After, Cause, Connection, Ready};
use crate::context::{Context, timespec};
use crate::mailbox::{Collection, Letter, Shared};
use crate::slab::{Key, Slab};
use crate::tally::Tally;
use crate::truth::Truth;

pub(crate) struct Worker {
    epoll: OwnedFd,
    listener: OwnedFd,
    connections: Slab<Entry>,
    timers: BinaryHeap<Reverse<(Nanos, Key)>>,
    /// Accepting is paused until then: the kernel had no descriptor to give.
    accept_again: Option<Nanos>,
    connection_limit: usize,
    ctx: Context,
}

struct Entry {
    connection: Connection,
    interest: EventFlags,
    /// Its current timer, if any; other entries for it in the heap are stale.
    timer: Option<Nanos>,
}

/// The two parts of a worker that may fail to open, opened before its thread starts.
pub(crate) fn open_epoll(listener: &OwnedFd, thread: usize, shared: &Shared) -> Result<OwnedFd, Errno> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, shared.waker(thread), EventData::new_u64(WAKER), EventFlags::IN)?;
    Ok(epoll)
}

impl Worker {
    pub(crate) fn new(epoll: OwnedFd, listener: OwnedFd, thread: usize, shared: Arc<Shared>) -> Worker {
        let connection_limit = shared.options.max_connections / shared.options.threads;
        Worker {
            epoll,
            listener,
            connections: Slab::new(),
            timers: BinaryHeap::new(),
            accept_again: None,
            connection_limit,
            ctx: Context::new(thread, shared),
        }
    }

    /// Serves until the server is stopped.
    pub(crate) fn run(mut self) -> Tally {
        let mut space = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        while !self.ctx.shared.is_stopping() {
            self.ctx.tick();
            let timeout = self.timeout();
            let events = match epoll::wait(&self.epoll, &mut space, timeout.map(timespec).as_ref()) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => continue,
                Err(error) => panic!("epoll failed on a descriptor that is ours alone: {error}"),
            };
            self.ctx.tick();
            for event in events {
                self.ctx.freeze_if_due();
                match event.data.u64() {
                    LISTENER => self.accept(),
                    WAKER => self.read_letters(),
                    bits => self.turn(Key::from_bits(bits), ready(event.flags)),
                }
            }
            self.ctx.freeze_if_due();
            self.fire_timers();
            if std::mem::take(&mut self.ctx.mail) {
                self.read_letters();
            }
        }
        self.drop_all()
    }

    /// How long to wait; `None` without end.
    fn timeout(&self) -> Option<Nanos> {
        let timer = self.timers.peek().map(|Reverse((due, _))| *due);
        let due = [timer, self.accept_again, self.ctx.freeze_due()].into_iter().flatten().min()?;
        let left = due.saturating_sub(self.ctx.now);
        // The kernel may wake us up to 0.1 % late to save power (`select_estimate_accuracy`), 1 ms after a second.
        // Waking a little early and waiting for the rest keeps that below a microsecond.
        Some(if left > Nanos::from_millis(1) { left - Nanos(left.0 / 512) } else { left })
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) if self.connections.len() >= self.connection_limit => self.turn_away(&socket),
                Ok(socket) => self.add(socket),
                Err(Errno::AGAIN) => return,
                // The peer was gone before it was accepted.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(_) => return self.pause_accepting(),
            }
        }
    }

    fn add(&mut self, socket: OwnedFd) {
        let data = EventData::new_u64(self.connections.next_key().bits());
        if epoll::add(&self.epoll, &socket, data, EventFlags::IN).is_err() {
            return self.pause_accepting();
        }
        self.ctx.tally.connections.accepted += 1;
        self.ctx.tally.connections.open += 1;
        let connection = Connection::new(socket, &self.ctx);
        let key = self.connections.insert(Entry { connection, interest: EventFlags::IN, timer: None });
        // The first request has usually arrived already: this saves a round of epoll.
        self.turn(key, Ready { readable: true, ..Ready::default() });
    }

    fn turn_away(&mut self, socket: &OwnedFd) {
        self.ctx.tally.connections.refused += 1;
        let response = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        // Best effort: a new socket has room for it, and a peer that is gone does not need it.
        let _ = send(socket, response, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let _ = shutdown(socket, Shutdown::Write);
    }

    fn pause_accepting(&mut self) {
        self.ctx.tally.connections.accept_errors += 1;
        self.accept_again = Some(self.ctx.now + ACCEPT_PAUSE);
        self.watch_listener(EventFlags::empty());
    }

    fn watch_listener(&self, flags: EventFlags) {
        epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags)
            .expect("the listener was added when the worker was opened");
    }

    #[inline]
    fn turn(&mut self, key: Key, ready: Ready) {
        let Some(entry) = self.connections.get_mut(key) else { return };
        match entry.connection.turn(ready, &mut self.ctx) {
            After::Keep => self.settle(key),
            After::Gone(cause) => self.remove(key, cause),
            After::Truth { reset } => {
                self.settle(key);
                self.ask_for_truth(key, reset);
            }
        }
    }

    /// Registers with epoll and the timers what a connection waits for now.
    #[inline]
    fn settle(&mut self, key: Key) {
        let Some(entry) = self.connections.get_mut(key) else { return };
        let interest = entry.connection.interest();
        if interest != entry.interest {
            entry.interest = interest;
            epoll::modify(&self.epoll, entry.connection.socket(), EventData::new_u64(key.bits()), interest)
                .expect("a connection in the slab was added to epoll");
        }
        if let Some(wake) = entry.connection.wake()
            && entry.timer.is_none_or(|timer| wake < timer)
        {
            entry.timer = Some(wake);
            self.timers.push(Reverse((wake, key)));
        }
    }

    fn fire_timers(&mut self) {
        if self.accept_again.is_some_and(|due| due <= self.ctx.now) {
            self.accept_again = None;
            self.watch_listener(EventFlags::IN);
        }
        while let Some(&Reverse((due, key))) = self.timers.peek()
            && due <= self.ctx.now
        {
            self.timers.pop();
            let Some(entry) = self.connections.get_mut(key) else { continue };
            if entry.timer != Some(due) {
                continue;
            }
            entry.timer = None;
            self.ctx.freeze_if_due();
            self.turn(key, Ready::default());
        }
    }

    fn remove(&mut self, key: Key, cause: Cause) {
        let Some(Entry { connection, .. }) = self.connections.remove(key) else { return };
        let tally = &mut self.ctx.tally;
        let open = connection.open_requests();
        tally.abandoned += open;
        tally.in_flight -= open;
        tally.connections.open -= 1;
        match cause {
            Cause::ClosedByPeer => tally.connections.closed_by_peer += 1,
            Cause::ClosedByServer => tally.connections.closed_by_server += 1,
            Cause::ResetByPeer => tally.connections.reset_by_peer += 1,
            Cause::ResetByServer => {
                tally.connections.reset_by_server += 1;
                // Without time to linger, close sends a reset.
                let _ = sockopt::set_socket_linger(connection.socket(), Some(Duration::ZERO));
            }
        }
    }

    fn read_letters(&mut self) {
        for letter in self.ctx.shared.collect_letters(self.ctx.thread) {
            match letter {
                Letter::Add(collection) => {
                    self.add_tally(&collection);
                }
                Letter::Complete(collection, key) => self.send_truth(&collection, key),
            }
        }
    }

    fn ask_for_truth(&mut self, key: Key, reset: bool) {
        let collection = self.ctx.shared.ask(reset, Some((self.ctx.thread, key)));
        if self.add_tally(&collection) {
            self.send_truth(&collection, key);
        }
    }

    fn add_tally(&mut self, collection: &Arc<Collection>) -> bool {
        let was_last = collection.add(self.ctx.thread, &self.ctx.tally, &self.ctx.shared);
        if collection.reset {
            self.ctx.tally.reset(self.ctx.now);
        }
        was_last
    }

    fn send_truth(&mut self, collection: &Collection, key: Key) {
        // The connection may have ended while the other threads were collected from.
        let Some(entry) = self.connections.get_mut(key) else { return };
        let shared = &self.ctx.shared;
        let threads = shared.options.threads;
        let truth = Truth::new(shared.schedule.start, clock::now(), threads, collection.tally());
        entry.connection.give_truth(truth.to_json());
        self.turn(key, Ready::default());
    }

    fn drop_all(mut self) -> Tally {
        for key in self.connections.keys() {
            self.remove(key, Cause::ClosedByServer);
        }
        self.ctx.tally
    }
}

#[inline]
fn ready(flags: EventFlags) -> Ready {
    Ready {
        readable: flags.contains(EventFlags::IN),
        hung_up: flags.contains(EventFlags::RDHUP),
        broken: flags.intersects(EventFlags::ERR | EventFlags::HUP),
    }
}

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Events per wait: more save waits with many busy connections, but delay timers and freezes.
const EVENTS: usize = 128;
/// Connections accepted in a row before existing ones get their turn.
const ACCEPTS: usize = 64;
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(50);
