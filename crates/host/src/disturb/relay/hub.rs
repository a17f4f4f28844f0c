//! The relay's thread: accepts, connects, reads what arrives, and writes it when it is due.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use schedule::Stream;
use units::Nanos;

use super::lane::{Lane, Line, most_read};
use super::{Cut, Direction, Effects, Order, Shared, count};

/// The two sides of a connection: the client that connected to us, and the target.
const CLIENT: usize = 0;
const TARGET: usize = 1;

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// After an accept failed because descriptors ran out, the next is tried after this time.
const ACCEPT_AGAIN: Nanos = Nanos::from_millis(100);

pub(super) struct Hub {
    epoll: OwnedFd,
    listener: TcpListener,
    target: SocketAddr,
    effects: Effects,
    active: bool,
    connections: BTreeMap<u64, RelayedConnection>,
    next: u64,
    /// When something is due, for which connection or for the listener: at most one entry each.
    timers: BTreeSet<(Nanos, u64)>,
    /// To the client, and to the target.
    lines: [Line; 2],
    seed: u64,
    shared: Arc<Shared>,
}

struct RelayedConnection {
    sides: [TcpStream; 2],
    /// The events that each side is registered for; empty means not registered.
    interest: [EventFlags; 2],
    /// The data on its way to the client, and to the target.
    lanes: [Lane; 2],
    /// When its timer expires.
    armed: Option<Nanos>,
    connected: bool,
}

/// A connection has ended.
enum Over {
    /// Both directions have ended.
    Ended,
    Broken,
}

impl Hub {
    pub(super) fn new(
        listener: TcpListener,
        target: SocketAddr,
        (effects, seed): (Effects, u64),
        shared: Arc<Shared>,
    ) -> io::Result<Hub> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, &shared.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Hub {
            epoll,
            listener,
            target,
            effects,
            active: false,
            connections: BTreeMap::new(),
            next: 0,
            timers: BTreeSet::new(),
            lines: [Nanos::ZERO; 2],
            seed,
            shared,
        })
    }

    /// Relays until ordered to stop; sends the instant at which each order was carried out.
    pub(super) fn run(mut self, confirm: &SyncSender<Nanos>) {
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut events: Vec<Event> = Vec::with_capacity(256);
        while self.turn(&mut events, confirm) {}
    }

    /// Waits until there is something to do, and does it; `false` when the relay must stop.
    fn turn(&mut self, events: &mut Vec<Event>, confirm: &SyncSender<Nanos>) -> bool {
        let timeout = self.timers.first().map(|(due, _)| timespec(due.saturating_sub(clock::now())));
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // Without epoll nothing can be relayed: connections end, and the next order fails.
            Err(_) => return false,
        }
        for event in events {
            match event.data.u64() {
                WAKE => match self.shared.take() {
                    Some(Order::Stop) => return false,
                    Some(order) => {
                        self.carry_out(order);
                        let _ = confirm.try_send(clock::now());
                    }
                    None => {}
                },
                LISTENER => self.accept(),
                token => self.step(token >> 1),
            }
        }
        self.fire();
        true
    }

    fn carry_out(&mut self, order: Order) {
        self.active = order == Order::Begin;
        if self.active && self.effects.cut == Cut::Reset {
            let all: Vec<u64> = self.connections.keys().copied().collect();
            all.into_iter().for_each(|id| self.reset(id));
        }
        let all: Vec<u64> = self.connections.keys().copied().collect();
        all.into_iter().for_each(|id| self.step(id));
    }

    /// Passes on what has become due.
    fn fire(&mut self) {
        let now = clock::now();
        while let Some(&(due, id)) = self.timers.first().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, id));
            if id == LISTENER {
                let again =
                    epoll::add(&self.epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN);
                if again.is_err() {
                    self.timers.insert((now + ACCEPT_AGAIN, LISTENER));
                }
                continue;
            }
            self.step(id);
        }
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((client, _)) => {
                    count(&self.shared.counters.connections, 1);
                    if self.active && self.effects.cut == Cut::Reset {
                        count(&self.shared.counters.resets, 1);
                        hard_close(&client);
                        continue;
                    }
                    self.open(client);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    let _ = epoll::delete(&self.epoll, &self.listener);
                    self.timers.insert((clock::now() + ACCEPT_AGAIN, LISTENER));
                    return;
                }
            }
        }
    }

    fn open(&mut self, client: TcpStream) {
        let target = client.set_nonblocking(true).and_then(|()| connect(self.target));
        let Ok(target) = target else {
            count(&self.shared.counters.unconnected, 1);
            hard_close(&client);
            return;
        };
        // A relay that gathers small writes would add a delay of its own.
        let _ = client.set_nodelay(true).and_then(|()| target.set_nodelay(true));
        let id = self.next;
        self.next += 1;
        let lane = |side: u64| Lane::new(Stream::new(self.seed, id * 2 + side + 1));
        let connection = RelayedConnection {
            sides: [client, target],
            interest: [EventFlags::empty(); 2],
            lanes: [lane(0), lane(1)],
            armed: None,
            connected: false,
        };
        self.connections.insert(id, connection);
        self.step(id);
    }

    /// Does everything for a connection that can be done now.
    fn step(&mut self, id: u64) {
        let Some(mut connection) = self.take(id) else { return };
        let over = self.advance(&mut connection);
        match over {
            Ok(()) => {
                self.rearm(id, &mut connection);
                self.connections.insert(id, connection);
            }
            // Dropped, and closed normally.
            Err(Over::Ended) => {}
            Err(Over::Broken) => connection.sides.iter().for_each(hard_close),
        }
    }

    fn advance(&mut self, connection: &mut RelayedConnection) -> Result<(), Over> {
        if !connection.connected && !connection.is_connected(&self.shared)? {
            return Ok(());
        }
        if self.is_held() {
            return Ok(());
        }
        for to in [CLIENT, TARGET] {
            self.read(connection, to)?;
            self.write(connection, to)?;
        }
        if connection.lanes.iter().all(|lane| lane.shut) { Err(Over::Ended) } else { Ok(()) }
    }

    fn is_held(&self) -> bool {
        self.active && self.effects.cut == Cut::BlackHole
    }

    fn effects_towards(&self, to: usize) -> Option<Effects> {
        let works = match self.effects.direction {
            Direction::Both => true,
            Direction::Responses => to == CLIENT,
            Direction::Requests => to == TARGET,
        };
        (self.active && works).then_some(self.effects)
    }

    /// Reads what is on its way to one side from the other.
    fn read(&mut self, connection: &mut RelayedConnection, to: usize) -> Result<(), Over> {
        let effects = self.effects_towards(to);
        let mut bytes = vec![0; most_read(effects.as_ref())];
        while connection.lanes[to].has_room(effects.as_ref()) {
            match connection.sides[1 - to].read(&mut bytes) {
                Ok(length) => {
                    count(&self.shared.counters.bytes, length as u64);
                    let chunk = bytes[..length].to_vec();
                    let lane = &mut connection.lanes[to];
                    let lost = lane.put(clock::now(), chunk, effects.as_ref(), &mut self.lines[to]);
                    count(&self.shared.counters.stalls, lost);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return Err(Over::Broken),
            }
        }
        Ok(())
    }

    /// Writes what is due.
    fn write(&mut self, connection: &mut RelayedConnection, to: usize) -> Result<(), Over> {
        let lane = &mut connection.lanes[to];
        lane.blocked = false;
        while let Some(chunk) = lane.chunks.front_mut().filter(|chunk| chunk.due <= clock::now()) {
            if chunk.bytes.is_empty() {
                // A side that is already gone needs no end of stream.
                let _ = connection.sides[to].shutdown(Shutdown::Write);
                lane.pop();
                continue;
            }
            match connection.sides[to].write(&chunk.bytes[chunk.left..]) {
                Ok(length) => chunk.left += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    lane.blocked = true;
                    return Ok(());
                }
                Err(_) => return Err(Over::Broken),
            }
            if chunk.left == chunk.bytes.len() {
                lane.pop();
            }
        }
        Ok(())
    }

    /// Registers what the connection waits for: to be read, to be written, or a time.
    fn rearm(&mut self, id: u64, connection: &mut RelayedConnection) {
        let held = self.is_held();
        for side in [CLIENT, TARGET] {
            let reads = !held
                && connection.connected
                && connection.lanes[1 - side].has_room(self.effects_towards(1 - side).as_ref());
            let writes = !held && connection.lanes[side].blocked || side == TARGET && !connection.connected;
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, reads);
            wanted.set(EventFlags::OUT, writes);
            let data = EventData::new_u64(id << 1 | side as u64);
            let socket = connection.sides[side].as_fd();
            // Without any interest it is unregistered: otherwise the end of a connection is reported again and again.
            let result = match (connection.interest[side].is_empty(), wanted.is_empty()) {
                (true, true) => Ok(()),
                (true, false) => epoll::add(&self.epoll, socket, data, wanted),
                (false, true) => epoll::delete(&self.epoll, socket),
                (false, false) => epoll::modify(&self.epoll, socket, data, wanted),
            };
            if result.is_ok() {
                connection.interest[side] = wanted;
            }
        }
        let lanes = connection.lanes.iter().filter(|lane| !held && !lane.blocked);
        connection.armed = lanes.filter_map(Lane::next_due).min();
        self.timers.extend(connection.armed.map(|due| (due, id)));
    }

    /// Removes a connection and its timer.
    fn take(&mut self, id: u64) -> Option<RelayedConnection> {
        let mut connection = self.connections.remove(&id)?;
        if let Some(due) = connection.armed.take() {
            self.timers.remove(&(due, id));
        }
        Some(connection)
    }

    fn reset(&mut self, id: u64) {
        if let Some(connection) = self.take(id) {
            count(&self.shared.counters.resets, 1);
            connection.sides.iter().for_each(hard_close);
        }
    }
}

impl RelayedConnection {
    /// Whether the target, or the kernel for it, has accepted.
    fn is_connected(&mut self, shared: &Shared) -> Result<bool, Over> {
        let target = &self.sides[TARGET];
        if let Ok(Some(_)) | Err(_) = target.take_error() {
            count(&shared.counters.unconnected, 1);
            return Err(Over::Broken);
        }
        self.connected = target.peer_addr().is_ok();
        Ok(self.connected)
    }
}

/// Starts a connection without waiting for it.
fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &target) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(errno) => Err(errno.into()),
    }
}

/// A close after this resets the connection.
fn hard_close(socket: &TcpStream) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

fn timespec(left: Nanos) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(left.0 / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (left.0 % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::mpsc::sync_channel;

    use rustix::event::{EventfdFlags, eventfd};

    use super::super::Counters;
    use super::*;

    const DELAY: Nanos = Nanos::from_millis(40);

    /// If this fails, each message leaves a timer behind that fires for ever: the relay gets slower and slower, until
    /// it does nothing else.
    #[test]
    fn a_connection_has_one_timer_however_much_is_on_its_way() {
        let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (entrance, server) = (listen(), listen());
        entrance.set_nonblocking(true).unwrap();
        let (address, target) = (entrance.local_addr().unwrap(), server.local_addr().unwrap());
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        let shared = Arc::new(Shared { order: Mutex::new(None), wake, counters: Counters::default() });
        let effects = Effects { direction: Direction::Both, delay: DELAY, ..Effects::default() };
        let mut hub = Hub::new(entrance, target, (effects, 1), shared).unwrap();
        hub.carry_out(Order::Begin);
        let mut near = TcpStream::connect(address).unwrap();
        near.set_nodelay(true).unwrap();
        let (mut events, (confirm, _confirmed)) = (Vec::with_capacity(256), sync_channel(1));
        let mut turn = |hub: &mut Hub| {
            assert!(hub.turn(&mut events, &confirm));
            assert!(hub.timers.len() <= hub.connections.len(), "{:?}", hub.timers);
        };
        while hub.connections.values().all(|connection| !connection.connected) {
            turn(&mut hub);
        }
        let (mut far, _) = server.accept().unwrap();
        far.set_nodelay(true).unwrap();
        for n in 0..200u8 {
            near.write_all(&[n]).unwrap();
            far.write_all(&[n]).unwrap();
            turn(&mut hub);
        }
        // Everything that has arrived leaves eventually; each turn handles one event or one timer.
        for side in [&mut near, &mut far] {
            side.set_nonblocking(true).unwrap();
        }
        let mut got = [0, 0];
        for _ in 0..10_000 {
            // With nothing left to relay, a turn would wait for ever for what the sockets below have not reported yet.
            if hub.timers.is_empty() {
                rustix::io::write(&hub.shared.wake, &1u64.to_ne_bytes()).unwrap();
            }
            turn(&mut hub);
            for (got, side) in got.iter_mut().zip([&mut near, &mut far]) {
                *got += side.read(&mut [0; 256]).unwrap_or(0);
            }
            if got == [200, 200] {
                break;
            }
        }
        assert_eq!(got, [200, 200]);
        assert!(hub.timers.is_empty(), "{:?}", hub.timers);
    }
}
