//! How many bytes a server has read of its TCP connections, by the kernel's own counters: they go on while no program is
//! attached.
//!
//! Read over `sock_diag` (sock_diag(7), `net/ipv4/inet_diag.c`): what arrived on a connection (`tcpi_bytes_received`,
//! since 4.1), less what waits in its socket.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

use rustc_hash::FxBuildHasher;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use units::Nanos;

/// What a server read in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadBytes {
    pub bytes: u64,
    pub time: Nanos,
}

/// Reads the counters again and again, and sums what changed.
pub struct Received {
    socket: OwnedFd,
    /// What was read of each connection by the latest reading, by its cookie.
    known: Connections,
    /// The same by the reading before: the kernel's list may lack a connection when others end while it is read, and one
    /// that is back did not begin now.
    earlier: Connections,
    /// When the latest reading was; `None` before the first.
    at: Option<Nanos>,
    /// Sums over readings: connections, bytes, and about how many bytes more connections read that have ended since the
    /// reading before.
    listed: u64,
    bytes: u64,
    unknown: f64,
    sequence: u32,
}

/// What was read of connections, by their cookies.
type Connections = HashMap<u64, u64, FxBuildHasher>;

/// The most connections that are listed: reading as many takes some milliseconds.
const MOST: usize = 4_096;

/// The largest share of bytes that may be unknown.
const MOST_UNKNOWN: f64 = 0.02;

impl Received {
    /// # Errors
    ///
    /// When the kernel has no `sock_diag`.
    pub fn open() -> io::Result<Received> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        let (known, earlier) = (Connections::default(), Connections::default());
        Ok(Received { socket, known, earlier, at: None, listed: 0, bytes: 0, unknown: 0.0, sequence: 0 })
    }

    /// What was read since the last call over connections to these ports; nothing at the first call. A connection that
    /// has ended since is left out.
    ///
    /// # Errors
    ///
    /// When the kernel does not list the connections, or lists too many.
    ///
    /// # Cost
    ///
    /// Two system calls and more per port, which look through the kernel's table of all connections: some 100 us where
    /// it is small, milliseconds where it has room for millions.
    pub fn read(&mut self, ports: &[u16]) -> io::Result<ReadBytes> {
        let began = clock::now();
        let mut found = Connections::default();
        for &port in ports {
            self.list(libc::AF_INET as u8, port, &mut found)?;
            match self.list(libc::AF_INET6 as u8, port, &mut found) {
                // A kernel without IPv6.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                listed => listed?,
            }
        }
        Ok(self.settle(found, Nanos(began.0.midpoint(clock::now().0))))
    }

    /// What was read until this reading, since the one before.
    fn settle(&mut self, found: Connections, at: Nanos) -> ReadBytes {
        let mut bytes = 0;
        let mut stayed = 0;
        for (cookie, &read) in &found {
            match self.known.get(cookie) {
                Some(&before) => {
                    stayed += 1;
                    bytes += read.saturating_sub(before);
                }
                None => bytes += read.saturating_sub(self.earlier.get(cookie).copied().unwrap_or(0)),
            }
        }
        let ended = self.known.len() - stayed;
        let before = self.at.replace(at);
        self.earlier = std::mem::replace(&mut self.known, found);
        let Some(before) = before else { return ReadBytes::default() };
        self.listed += self.known.len() as u64;
        self.bytes += bytes;
        // One that has ended read as much as the others until then: for half of the time, on average.
        self.unknown += bytes as f64 / self.known.len().max(1) as f64 * ended as f64 / 2.0;
        ReadBytes { bytes, time: at - before }
    }

    /// Why the sums are not what the server read, if they are not.
    pub fn flaw(&self) -> Option<String> {
        if self.listed == 0 {
            return Some("no TCP connection to it is in the network namespace of the observer".to_owned());
        }
        let unknown = self.unknown / self.bytes.max(1) as f64;
        (unknown > MOST_UNKNOWN)
            .then(|| "its connections are short: what one read before it ended is not known".to_owned())
    }

    /// Adds the connections to a port.
    fn list(&mut self, family: u8, port: u16, found: &mut Connections) -> io::Result<()> {
        self.sequence += 1;
        rustix::net::send(&self.socket, &request(family, port, self.sequence), SendFlags::empty())?;
        let mut answer = vec![0; 64 << 10];
        loop {
            // The kernel has the next part when it is asked for it.
            let (_, length) = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::DONTWAIT)?;
            let mut rest =
                answer.get(..length).ok_or_else(|| io::Error::other("a message that is too long"))?;
            while let Some((message, after)) = message(rest) {
                rest = after;
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    DONE => return Ok(()),
                    ERROR => return Err(error_of(message.body)),
                    _ => found.extend(connection(message.body)),
                }
            }
            if found.len() > MOST {
                return Err(io::Error::other(format!("it has over {MOST} connections")));
            }
        }
    }
}

/// What a server reads, until once it cannot be counted.
pub struct Counting {
    /// Why it is not known.
    received: Result<Received, String>,
    /// What belongs to no window.
    rest: ReadBytes,
}

impl Counting {
    /// Counts from now on.
    pub fn begin(ports: &[u16]) -> Counting {
        let received = Received::open().map_err(unlisted);
        let mut counting = Counting { received, rest: ReadBytes::default() };
        counting.read(ports);
        counting
    }

    /// What was read since the last call; nothing once that is not known.
    pub fn read(&mut self, ports: &[u16]) -> ReadBytes {
        let Ok(received) = &mut self.received else { return ReadBytes::default() };
        received.read(ports).unwrap_or_else(|error| {
            self.received = Err(unlisted(error));
            ReadBytes::default()
        })
    }

    /// When the latest count was, by the clock of this process; `None` if it is not known what was read.
    pub fn at(&self) -> Option<Nanos> {
        self.received.as_ref().ok()?.at
    }

    /// This belongs to no window.
    pub fn add_rest(&mut self, more: ReadBytes) {
        self.rest.bytes += more.bytes;
        self.rest.time += more.time;
    }

    /// What belongs to no window.
    ///
    /// # Errors
    ///
    /// Why not all is known that the server read.
    pub fn rest(&self) -> Result<ReadBytes, String> {
        match &self.received {
            Ok(received) => received.flaw().map_or(Ok(self.rest), Err),
            Err(why) => Err(why.clone()),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err wants it")]
fn unlisted(error: io::Error) -> String {
    format!("the kernel does not list its connections: {error}")
}

/// `NLMSG_ERROR` and `NLMSG_DONE` of linux/netlink.h.
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// `SOCK_DIAG_BY_FAMILY` of linux/sock_diag.h; `INET_DIAG_INFO` of linux/inet_diag.h.
const BY_FAMILY: u16 = 20;
const INFO: u16 = 2;

/// The states of net/tcp_states.h in which a connection can have something to read: established, both FIN_WAIT,
/// CLOSE_WAIT, LAST_ACK, CLOSING.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: all connections to a port, with `struct tcp_info`.
fn request(family: u8, port: u16, sequence: u32) -> [u8; 72] {
    const REQUEST_AND_DUMP: u16 = 0x301;
    const TCP: u8 = 6;
    let mut bytes = [0; 72];
    bytes[..4].copy_from_slice(&72_u32.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST_AND_DUMP.to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16..19].copy_from_slice(&[family, TCP, 1 << (INFO - 1)]);
    bytes[20..24].copy_from_slice(&STATES.to_ne_bytes());
    bytes[24..26].copy_from_slice(&port.to_be_bytes());
    bytes
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

/// The first message, and those after it.
fn message(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = word(bytes, 0)? as usize;
    let message = Message { kind: half(bytes, 4)?, sequence: word(bytes, 8)?, body: bytes.get(16..length)? };
    Some((message, bytes.get(length.next_multiple_of(4)..).unwrap_or(&[])))
}

/// Cookie and bytes read, of `struct inet_diag_msg` and its attributes.
fn connection(body: &[u8]) -> Option<(u64, u64)> {
    const ATTRIBUTES: usize = 72;
    /// Of `tcpi_bytes_received` in `struct tcp_info`.
    const RECEIVED: usize = 128;
    let cookie = u64::from(word(body, 44)?) | u64::from(word(body, 48)?) << 32;
    let waiting = u64::from(word(body, 56)?);
    let mut rest = body.get(ATTRIBUTES..)?;
    while let Some(length) = half(rest, 0) {
        let length = usize::from(length).max(4);
        let value = rest.get(4..length)?;
        if half(rest, 2)? == INFO {
            let received = u64::from_ne_bytes(value.get(RECEIVED..RECEIVED + 8)?.try_into().ok()?);
            return Some((cookie, received.saturating_sub(waiting)));
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn error_of(body: &[u8]) -> io::Error {
    let number = word(body, 0).map_or(0, u32::cast_signed);
    io::Error::from_raw_os_error(number.saturating_neg())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// A server and a connection to it.
    fn connected(address: &str) -> (TcpListener, TcpStream, TcpStream) {
        let server = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (accepted, _) = server.accept().unwrap();
        (server, client, accepted)
    }

    /// If this fails, requests that wait in a socket count as read, or those of a connection that began meanwhile do not.
    #[test]
    fn bytes_count_when_the_server_has_read_them() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (server, mut client, mut accepted) = connected(address);
            let ports = [server.local_addr().unwrap().port()];
            let mut received = Received::open().unwrap();
            assert_eq!(received.read(&ports).unwrap(), ReadBytes::default());
            client.write_all(&[7; 1_000]).unwrap();
            accepted.read_exact(&mut [0; 600]).unwrap();
            assert_eq!(received.read(&ports).unwrap().bytes, 600);
            accepted.read_exact(&mut [0; 400]).unwrap();
            let mut second = TcpStream::connect(server.local_addr().unwrap()).unwrap();
            let (mut other, _) = server.accept().unwrap();
            second.write_all(&[7; 50]).unwrap();
            other.read_exact(&mut [0; 50]).unwrap();
            // What the server wrote is not what it read.
            other.write_all(&[7; 5_000]).unwrap();
            let read = received.read(&ports).unwrap();
            assert_eq!(read.bytes, 450);
            assert!(read.time > Nanos::ZERO);
        }
    }

    /// If this fails, all that a connection ever read is added again after one list without it.
    #[test]
    fn a_connection_that_one_list_lacks_does_not_begin_again() {
        let mut received = Received::open().unwrap();
        let lists = [vec![(1, 1_000), (2, 10)], vec![(2, 20)], vec![(1, 1_005), (2, 30)]];
        let read = lists.map(|list| received.settle(list.into_iter().collect(), clock::now()).bytes);
        assert_eq!(read, [0, 10, 15]);
    }

    /// If this fails, the requests of a server with a connection per request are expanded by bytes that are not known.
    #[test]
    fn short_connections_are_a_flaw() {
        let (server, ..) = connected("127.0.0.1:0");
        let ports = [server.local_addr().unwrap().port()];
        let mut received = Received::open().unwrap();
        received.read(&ports).unwrap();
        received.read(&ports).unwrap();
        assert!(received.flaw().unwrap().starts_with("no TCP connection"), "{:?}", received.flaw());
        let address = server.local_addr().unwrap();
        let exchange = |received: &mut Received, (client, accepted): &mut (TcpStream, TcpStream)| {
            client.write_all(&[7; 100]).unwrap();
            accepted.read_exact(&mut [0; 100]).unwrap();
            received.read(&ports).unwrap();
        };
        let connect = || (TcpStream::connect(address).unwrap(), server.accept().unwrap().0);
        let mut stays = connect();
        (0..50).for_each(|_| exchange(&mut received, &mut stays));
        assert_eq!(received.flaw(), None);
        (0..50).for_each(|_| exchange(&mut received, &mut connect()));
        assert!(received.flaw().unwrap().starts_with("its connections are short"), "{:?}", received.flaw());
    }

    /// If this fails, a message of another kernel panics, or memory is read past it.
    #[test]
    fn a_message_that_is_cut_is_none() {
        let mut whole = vec![0; 72];
        whole[44..52].copy_from_slice(&9_u64.to_ne_bytes());
        whole[56..60].copy_from_slice(&5_u32.to_ne_bytes());
        whole.extend_from_slice(&[8, 0, 1, 0, 1, 1, 1, 1]);
        whole.extend_from_slice(&[140, 0, 2, 0]);
        whole.extend_from_slice(&[0; 128]);
        whole.extend_from_slice(&105_u64.to_ne_bytes());
        assert_eq!(connection(&whole), Some((9, 100)));
        (0..whole.len()).for_each(|length| assert_eq!(connection(&whole[..length]), None));
        let message_of = |length: u32| [&length.to_ne_bytes()[..], &[0; 12]].concat();
        assert!(message(&message_of(16)).is_some());
        for length in [0, 15, 17, u32::MAX] {
            assert!(message(&message_of(length)).is_none());
        }
    }
}
