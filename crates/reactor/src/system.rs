//! The real reactor: non-blocking TCP sockets on edge-triggered epoll, owned by one worker.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use clock::{Pairing, Shift};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, ipproto, sockopt};
use units::Nanos;

use crate::{Address, Ends, Reactor, Ready, Received, Slot, WaitMode, source, stamp};

/// The maximum number of events per wait. The others are returned by the next one.
const EVENTS_PER_WAIT: usize = 1_024;

/// How often the difference between the clocks is measured again.
const PAIRING_EVERY: Nanos = Nanos::from_secs(1);

/// The waker's token; no slot has this number.
const WAKER: u64 = u64::MAX;

/// Sockets on epoll. See [`Reactor`].
pub struct SystemReactor {
    epoll: OwnedFd,
    sockets: Vec<Entry>,
    events: Events,
    kernel_stamps: bool,
    pairing: Pairing,
    pairing_due: Nanos,
    waker: Arc<OwnedFd>,
    lookups: Receiver<Lookup>,
    lookup_sender: SyncSender<Lookup>,
}

/// One slot's socket. The generation distinguishes its events from those of an earlier socket in the slot.
#[derive(Debug, Default)]
struct Entry {
    socket: Option<OwnedFd>,
    generation: u32,
    /// The end of the peer's side has been reported. That happens only once, perhaps together with the last bytes, so
    /// after it a short read does not mean that a new event will come.
    ended: bool,
    /// A write has returned a reset. The kernel reports a reset only once: a later read sees an orderly end.
    reset: bool,
}

/// Buffer for the events of one wait.
struct Events(Vec<epoll::Event>);

#[expect(unsafe_code, reason = "epoll_data is a union with a pointer, which makes it neither Send nor Sync")]
// SAFETY: every event's data is set as a number by this file and never used as a pointer.
unsafe impl Send for Events {}

#[derive(Debug)]
struct Lookup {
    result: io::Result<Vec<SocketAddr>>,
    at: Nanos,
}

impl SystemReactor {
    /// Creates a reactor without sockets.
    ///
    /// # Errors
    ///
    /// If the process is out of file descriptors.
    pub fn new(kernel_stamps: bool) -> io::Result<SystemReactor> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &waker, epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        // At most one lookup runs at a time; a second place keeps a late result from blocking its thread.
        let (lookup_sender, lookups) = sync_channel(2);
        Ok(SystemReactor {
            epoll,
            sockets: Vec::new(),
            events: Events(Vec::with_capacity(EVENTS_PER_WAIT)),
            kernel_stamps,
            pairing: Pairing::measure(),
            pairing_due: clock::now() + PAIRING_EVERY,
            waker,
            lookups,
            lookup_sender,
        })
    }

    /// The conversion of the kernel's timestamps to the monotonic clock.
    pub fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    fn entry(&mut self, slot: Slot) -> &mut Entry {
        let index = slot.0 as usize;
        if index >= self.sockets.len() {
            self.sockets.resize_with(index + 1, Entry::default);
        }
        &mut self.sockets[index]
    }

    #[inline]
    fn socket(&self, slot: Slot) -> io::Result<BorrowedFd<'_>> {
        let entry = self.sockets.get(slot.0 as usize).and_then(|entry| entry.socket.as_ref());
        entry.map(AsFd::as_fd).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Collects what is ready, or becomes ready within `timeout`.
    fn poll(&mut self, timeout: Nanos, ready: &mut Vec<Ready>) -> io::Result<()> {
        let timeout = Timespec {
            tv_sec: (timeout.0 / 1_000_000_000) as i64,
            tv_nsec: (timeout.0 % 1_000_000_000) as _,
        };
        self.events.0.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events.0), Some(&timeout)) {
            Ok(_) => self.translate(ready),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn remeasure_pairing(&mut self, now: Nanos) {
        if now >= self.pairing_due {
            self.pairing_due = now + PAIRING_EVERY;
            // The count of steps is kept in the pairing and ends up in the record.
            let _: Shift = self.pairing.remeasure();
        }
    }

    fn translate(&mut self, ready: &mut Vec<Ready>) {
        for event in &self.events.0 {
            let token = event.data.u64();
            if token == WAKER {
                take_wakeups(&self.waker);
                ready.extend(
                    self.lookups.try_iter().map(|Lookup { result, at }| Ready::Resolved { result, at }),
                );
                continue;
            }
            let (slot, generation) = (Slot(token as u32), (token >> 32) as u32);
            let flags = event.flags;
            let current = self.sockets.get_mut(slot.0 as usize);
            let current = current.filter(|entry| entry.generation == generation && entry.socket.is_some());
            if let Some(entry) = current {
                use epoll::EventFlags as Flags;
                entry.ended |= flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
                ready.push(Ready::Socket {
                    slot,
                    readable: flags.intersects(Flags::IN | Flags::RDHUP),
                    writable: flags.contains(Flags::OUT),
                    closed: flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR),
                });
            }
        }
    }
}

impl Reactor for SystemReactor {
    #[inline]
    fn now(&self) -> Nanos {
        clock::now()
    }

    fn resolve(&mut self, host: &str, port: u16) {
        let (sender, waker, host) = (self.lookup_sender.clone(), Arc::clone(&self.waker), host.to_owned());
        // getaddrinfo blocks, and reads what the user configured: hosts file, search domains, resolvers.
        let spawned = std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            let result = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            send_lookup(&sender, &waker, Lookup { result, at: clock::now() });
        });
        if let Err(error) = spawned {
            let lookup = Lookup { result: Err(error), at: clock::now() };
            send_lookup(&self.lookup_sender, &self.waker, lookup);
        }
    }

    fn connect(&mut self, slot: Slot, address: &Address) -> io::Result<()> {
        self.close(slot);
        let socket = match address {
            Address::Tcp { peer, source } => connect_tcp(*peer, *source, self.kernel_stamps)?,
            Address::Unix(path) => connect_unix(path)?,
        };
        let entry = self.entry(slot);
        entry.generation = entry.generation.wrapping_add(1);
        (entry.ended, entry.reset) = (false, false);
        let token = u64::from(slot.0) | u64::from(entry.generation) << 32;
        // Registered once for all events, edge-triggered: no system call is needed to change it.
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(token), flags)?;
        self.entry(slot).socket = Some(socket);
        Ok(())
    }

    fn connected(&mut self, slot: Slot) -> io::Result<bool> {
        let socket = self.socket(slot)?;
        sockopt::socket_error(socket)??;
        match rustix::net::getpeername(socket) {
            Ok(_) => Ok(true),
            Err(Errno::NOTCONN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    #[inline]
    fn send(&mut self, slot: Slot, bytes: &[u8]) -> io::Result<usize> {
        let socket = self.socket(slot)?;
        loop {
            match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.entry(slot).reset |= error == Errno::CONNRESET;
                    return Err(error.into());
                }
            }
        }
    }

    #[inline]
    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> io::Result<Received> {
        let socket = self.socket(slot)?;
        let Entry { ended, reset, .. } = self.sockets[slot.0 as usize];
        match stamp::receive(socket, buffer) {
            Ok(stamp::Read { count: 0, .. }) if reset => Err(Errno::CONNRESET.into()),
            Ok(stamp::Read { count: 0, .. }) => Ok(Received::Closed),
            Ok(stamp::Read { count, arrived_realtime_ns }) => Ok(Received::Bytes {
                count,
                arrived: arrived_realtime_ns.map(|stamp| self.pairing.to_monotonic(stamp)),
                drained: count < buffer.len() && !ended,
            }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
            Err(error) => Err(error),
        }
    }

    fn is_surely_before(&mut self, arrived: Nanos, instant: Nanos) -> bool {
        // If the wall clock was set just now, the stamp proves nothing.
        self.pairing.remeasure() == Shift::None
            && arrived.saturating_add(self.pairing.error_bound()) < instant
    }

    fn unacknowledged(&self, slot: Slot) -> Option<u64> {
        stamp::unacknowledged(self.socket(slot).ok()?)
    }

    fn ends(&self, slot: Slot) -> Option<Ends> {
        let socket = self.socket(slot).ok()?;
        let local = rustix::net::getsockname(socket).ok()?;
        let peer = rustix::net::getpeername(socket).ok()??;
        Some(Ends { local: SocketAddr::try_from(local).ok()?, peer: SocketAddr::try_from(peer).ok()? })
    }

    fn close(&mut self, slot: Slot) {
        // Closing the only descriptor of a socket takes it out of the epoll set too.
        self.entry(slot).socket = None;
    }

    fn wait(&mut self, until: Nanos, mode: WaitMode, ready: &mut Vec<Ready>) -> io::Result<()> {
        let now = clock::now();
        self.remeasure_pairing(now);
        match mode {
            WaitMode::Asleep => self.poll(asleep_for(until.saturating_sub(now)), ready),
            WaitMode::Awake => {
                while self.poll(Nanos::ZERO, ready).is_ok_and(|()| ready.is_empty()) && clock::now() < until {
                }
                Ok(())
            }
            WaitMode::Undisturbed => {
                clock::sleep_until(until);
                self.poll(Nanos::ZERO, ready)
            }
        }
    }
}

/// The kernel may end a wait of epoll up to 0.1 % late to save power (`select_estimate_accuracy`): the last part of a
/// longer wait is left for another one.
fn asleep_for(left: Nanos) -> Nanos {
    if left > Nanos::from_millis(1) { left - Nanos(left.0 / 512) } else { left }
}

const NON_BLOCKING: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

fn connect_tcp(peer: SocketAddr, source: Option<IpAddr>, kernel_stamps: bool) -> io::Result<OwnedFd> {
    let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(family, SocketType::STREAM, NON_BLOCKING, Some(ipproto::TCP))?;
    // A request is handed over completely; waiting to fill a segment would only add to `send` and `wait`.
    sockopt::set_tcp_nodelay(&socket, true)?;
    if kernel_stamps {
        stamp::enable(socket.as_fd())?;
    }
    if let Some(address) = source {
        source::bind(socket.as_fd(), address)?;
    }
    begun(socket, |socket| rustix::net::connect(socket, &peer))
}

fn connect_unix(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, NON_BLOCKING, None)?;
    begun(socket, |socket| rustix::net::connect(socket, &address))
}

fn begun(socket: OwnedFd, connect: impl Fn(&OwnedFd) -> Result<(), Errno>) -> io::Result<OwnedFd> {
    match connect(&socket) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

fn send_lookup(sender: &SyncSender<Lookup>, waker: &OwnedFd, lookup: Lookup) {
    // A full or closed channel means that nothing waits for the result any more.
    if sender.try_send(lookup).is_ok() {
        let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
    }
}

fn take_wakeups(waker: &OwnedFd) {
    let mut count = [0; 8];
    let _ = rustix::io::read(waker, &mut count);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// If this fails, a request is attributed to another client's connection.
    #[test]
    fn a_connection_has_the_ends_that_its_peer_sees() {
        let (reactor, peer) = connected();
        let ends = reactor.ends(SLOT).unwrap();
        assert_eq!((ends.local, ends.peer), (peer.peer_addr().unwrap(), peer.local_addr().unwrap()));
        assert_eq!(reactor.ends(Slot(7)), None);
    }

    /// A reactor with one established connection, and its peer.
    fn connected() -> (SystemReactor, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reactor = SystemReactor::new(false).unwrap();
        reactor.connect(SLOT, &listener.local_addr().unwrap().into()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        wait(&mut reactor);
        assert!(reactor.connected(SLOT).unwrap());
        (reactor, peer)
    }

    /// Takes the one pending event.
    fn wait(reactor: &mut SystemReactor) {
        let mut ready = Vec::new();
        reactor.wait(clock::now() + Nanos::from_secs(2), WaitMode::Asleep, &mut ready).unwrap();
        assert_eq!(ready.len(), 1, "{ready:?}");
    }

    /// If this fails, a response that is cut off by a close right after its last byte counts as silence.
    #[test]
    fn an_end_that_came_with_the_last_bytes_is_not_missed() {
        let (mut reactor, mut peer) = connected();
        peer.write_all(b"hello").unwrap();
        drop(peer);
        // On loopback both have arrived when the calls return: one event reports both.
        wait(&mut reactor);
        let mut buffer = [0; 64];
        let read = reactor.receive(SLOT, &mut buffer).unwrap();
        assert_eq!(read, Received::Bytes { count: 5, arrived: None, drained: false });
        assert_eq!(reactor.receive(SLOT, &mut buffer).unwrap(), Received::Closed);
    }

    /// If this fails, a reset that a write reports first counts as an orderly close.
    #[test]
    fn a_reset_stays_a_reset() {
        let (mut reactor, peer) = connected();
        sockopt::set_socket_linger(&peer, Some(std::time::Duration::ZERO)).unwrap();
        drop(peer);
        let reset = Some(Errno::CONNRESET.raw_os_error());
        assert_eq!(reactor.send(SLOT, b"hello").unwrap_err().raw_os_error(), reset);
        for _ in 0..2 {
            assert_eq!(reactor.receive(SLOT, &mut [0; 64]).unwrap_err().raw_os_error(), reset);
        }
    }

    const SLOT: Slot = Slot(0);
}
