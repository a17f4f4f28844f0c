//! Dropped connections, retransmissions and ports of this process's network namespace.

use std::fs;

/// A counter of /proc/net/netstat or /proc/net/snmp: a line of names, then a line of numbers, each after `group:`.
fn counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let names = lines.next()?.split_ascii_whitespace();
    let mut numbers = lines.next()?.split_ascii_whitespace();
    let at = names.into_iter().position(|found| found == name)?;
    numbers.nth(at)?.parse().ok()
}

/// Connections dropped so far because a listen queue was full. The kernel counts an overflow among the drops.
pub(crate) fn listen_drops() -> Result<u64, String> {
    read_counter("/proc/self/net/netstat", "TcpExt", "ListenDrops")
}

/// TCP segments retransmitted so far.
pub(crate) fn retransmits() -> Result<u64, String> {
    read_counter("/proc/self/net/snmp", "Tcp", "RetransSegs")
}

fn read_counter(path: &str, group: &str, name: &str) -> Result<u64, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    counter(&text, group, name).ok_or_else(|| format!("{path} has no {name}"))
}

/// The range of ports that the kernel uses for outgoing connections, first and last; `None` when it cannot be read.
pub fn local_ports() -> Option<(u16, u16)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
    let range = (numbers.next()??, numbers.next()??);
    (range.0 <= range.1).then_some(range)
}

/// How many local ports are in use by connections to remote port `port`, TIME_WAIT included. Exact where there may be
/// more than `floor`; otherwise an upper bound at or below `floor`, which counts other connections too.
///
/// # Cost
///
/// One small file; above `floor` also one line per connection of this namespace. Once per interval.
pub fn ports_towards(port: u16, floor: u64) -> Option<u64> {
    let bound = fs::read_to_string("/proc/self/net/sockstat").ok().and_then(|text| sockets(&text));
    if let Some(bound) = bound.filter(|&bound| bound <= floor) {
        return Some(bound);
    }
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
    let counts: Vec<u64> = tables
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|text| text.lines().filter(|line| goes_to(line, port)).count() as u64)
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// `TCP: inuse 5 orphan 0 tw 3 alloc 8 mem 0`
fn sockets(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let of = |name| words.chunks(2).find(|pair| pair[0] == name)?.get(1)?.parse::<u64>().ok();
    // `inuse` is for IPv4 only; a connection over IPv6 takes from the same range and is counted in `alloc`.
    Some(of("alloc")? + of("tw")?)
}

/// `  1: 0100007F:D431 0100007F:1F90 01 …`: number, local, remote.
fn goes_to(line: &str, port: u16) -> bool {
    let remote = line.split_ascii_whitespace().nth(2).and_then(|address| address.rsplit_once(':'));
    remote.is_some_and(|(_, found)| u16::from_str_radix(found, 16) == Ok(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_name() {
        let text = "TcpExt: A ListenOverflows ListenDrops B\nTcpExt: 1 2 3 4\nIpExt: C\nIpExt: 9\n";
        assert_eq!(counter(text, "TcpExt", "ListenDrops"), Some(3));
        assert_eq!(counter(text, "IpExt", "C"), Some(9));
        assert_eq!(counter(text, "TcpExt", "C"), None);
    }

    #[test]
    fn this_host_has_the_counters() {
        listen_drops().unwrap();
        retransmits().unwrap();
        assert!(local_ports().is_some());
    }

    #[test]
    fn sockets_in_use_and_waiting_count() {
        assert_eq!(sockets("TCP: inuse 5 orphan 0 tw 3 alloc 8 mem 0\n"), Some(11));
    }

    #[test]
    fn a_connection_is_matched_by_its_remote_port() {
        let line = "   1: 0100007F:D431 0100007F:1F90 06 00000000:00000000 03:00000DCB 00000000";
        assert!(goes_to(line, 8_080));
        assert!(!goes_to(line, 54_321));
        let six = "   0: 00000000000000000000000001000000:0050 00000000000000000000000001000000:1F90 01";
        assert!(goes_to(six, 8_080));
        assert!(!goes_to("  sl  local_address rem_address   st", 8_080));
    }

    #[test]
    fn a_bound_below_the_floor_is_good_enough() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // Closed connections to another listener that had this port are still counted for a minute.
        let before = ports_towards(port, 0).unwrap();
        let _one = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(ports_towards(port, 0), Some(before + 1));
        assert!(ports_towards(port, 1_000_000).unwrap() >= 1);
    }
}
