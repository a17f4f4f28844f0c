//! The files and addresses behind descriptors of the server, from /proc.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use record::Served;

/// Looks descriptors up once per second and process.
///
/// A descriptor that was closed, and possibly opened again, since the request slept on it has another target or none:
/// what it names is the state of at most a second later.
#[derive(Debug, Default)]
pub struct Targets {
    known: HashMap<(u32, i32), Option<Arc<str>>>,
    /// The other ends of sockets by inode, by network namespace.
    networks: HashMap<PathBuf, HashMap<u64, SocketAddr>>,
    /// Each distinct text once.
    texts: HashMap<Box<str>, Arc<str>>,
}

/// The most descriptors that are looked up per second, and the most texts that are remembered.
const MOST: usize = 4_096;

/// The most networks whose sockets are looked up per second: a server is in one, seldom in more.
const NETWORKS: usize = 4;

/// What is read of a network's table of sockets: 27,000 connections.
const TABLE_BYTES: u64 = 4 << 20;

impl Targets {
    /// The file or address that the longest sleep of a request was for. `None` beyond the limits, too.
    ///
    /// # Cost
    ///
    /// Up to 4,096 descriptors per second: a system call each, two for a socket. For sockets, the tables of up to four
    /// networks are read once per second, 8 MiB each at most.
    pub fn of(&mut self, served: &Served) -> Option<Arc<str>> {
        let key = (served.pid, served.sleep?.fd?);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        if self.known.len() >= MOST {
            return None;
        }
        let found = self.look_up(key.0, key.1);
        self.known.insert(key, found.clone());
        found
    }

    /// Forgets what was looked up: descriptors are used again. Call about once per second.
    pub fn forget(&mut self) {
        self.known.clear();
        self.networks.clear();
        if self.texts.len() >= MOST {
            self.texts.clear();
        }
    }

    fn look_up(&mut self, pid: u32, fd: i32) -> Option<Arc<str>> {
        let target = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
        let target = target.to_string_lossy();
        let socket = target.strip_prefix("socket:[").and_then(|inode| inode.strip_suffix(']'));
        let Some(inode) = socket else { return Some(self.text(&target)) };
        let inode = inode.parse().ok()?;
        let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        if !self.networks.contains_key(&network) && self.networks.len() >= NETWORKS {
            return None;
        }
        let peer = *self.networks.entry(network).or_insert_with(|| peers(pid)).get(&inode)?;
        Some(self.text(&peer.to_string()))
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        if self.texts.len() < MOST {
            self.texts.insert(text.into(), Arc::clone(&shared));
        }
        shared
    }
}

/// The other ends of the TCP connections in a process's network.
fn peers(pid: u32) -> HashMap<u64, SocketAddr> {
    let mut found = HashMap::new();
    for table in ["tcp", "tcp6"] {
        let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else { continue };
        let mut text = String::new();
        // What was read before an error is as good as what is read without one.
        let _ = file.take(TABLE_BYTES).read_to_string(&mut text);
        found.extend(text.lines().filter_map(peer));
    }
    found
}

/// `1: 0100007F:0CEA 0200000A:1538 01 … inode`: the inode and the other end.
fn peer(line: &str) -> Option<(u64, SocketAddr)> {
    let mut words = line.split_ascii_whitespace();
    let remote = words.nth(2)?;
    let inode = words.nth(6)?.parse().ok()?;
    let (address, port) = remote.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            Ipv6Addr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((inode, SocketAddr::new(ip, port)))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use record::Sleep;
    use units::Nanos;

    use super::*;
    use crate::tests::served;

    /// If this fails, a server of many processes makes the observer read the table of all sockets for each of them.
    #[test]
    fn the_table_of_a_network_is_read_once_for_all_its_processes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut targets = Targets::default();
        let own = std::process::id();
        for _ in 0..2 {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            targets.look_up(own, stream.as_raw_fd());
        }
        assert_eq!(targets.networks.len(), 1);
        for n in 1..NETWORKS {
            targets.networks.insert(format!("net:[{n}]").into(), HashMap::new());
        }
        let known = fs::read_link("/proc/self/ns/net").unwrap();
        targets.networks.remove(&known);
        targets.networks.insert("net:[0]".into(), HashMap::new());
        assert_eq!(targets.look_up(own, listener.as_raw_fd()), None, "a network beyond the limit");
        targets.known = (0..MOST as i32).map(|fd| ((1, fd), None)).collect();
        let file = File::open("/proc/self/status").unwrap();
        let mut served = served(0, Nanos(9));
        let fd = Some(file.as_raw_fd());
        (served.pid, served.sleep) = (own, Some(Sleep { call: 0, fd, time: Nanos(1) }));
        assert_eq!(targets.of(&served), None, "descriptors beyond the limit");
        targets.forget();
        assert!(targets.networks.is_empty() && targets.of(&served).is_some());
    }

    #[test]
    fn files_and_addresses_of_this_process_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let file = fs::File::open("/proc/self/status").unwrap();
        let mut targets = Targets::default();
        let mut of = |fd: Option<i32>| {
            let mut served = served(0, Nanos(9));
            served.pid = std::process::id();
            served.sleep = Some(Sleep { call: 0, fd, time: Nanos(1) });
            targets.of(&served).map(|target| target.to_string())
        };
        assert_eq!(of(Some(stream.as_raw_fd())), Some(address.to_string()));
        assert!(of(Some(file.as_raw_fd())).is_some_and(|path| path.ends_with("/status")));
        assert_eq!((of(Some(i32::MAX)), of(None)), (None, None));
    }
}
