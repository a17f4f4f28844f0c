//! Whether the host had the resources that connections need: descriptors, ports, listen queues, a working network.

use std::net::{IpAddr, SocketAddr};

use super::{Evidence, LATE_FEW, LATE_PER_MILLE, degraded, is_over_share, known_sum, percent};
use record::Check;
use record::document::Finding;

/// A single refused descriptor is a request that failed for a reason unrelated to the server.
pub(super) fn descriptors(evidence: &Evidence<'_>) -> Option<Finding> {
    let refused = evidence.total.counts.out_of_descriptors;
    (refused > 0).then(|| {
        let open = evidence.seconds.iter().filter_map(|second| second.host.open_files).max();
        let open = open.map(|open| format!("; at most {open} were open")).unwrap_or_default();
        let limit = evidence.host.limits.open_files;
        degraded(
            Check::Descriptors,
            format!(
                "{refused} connections could not be opened: the process was out of file descriptors{open}"
            ),
            limit.map_or("0".to_owned(), |limit| format!("0; the process can open {limit}")),
            "raise the limit of open files (ulimit -n), or use fewer connections",
        )
    })
}

/// Above this, the next run or the next minute of this one may find no free port: a port stays in TIME_WAIT for a
/// minute after its connection.
const PORTS_PER_MILLE: u64 = 800;

pub(super) fn ports(evidence: &Evidence<'_>) -> Option<Finding> {
    const ADVICE: &str = "keep connections alive, widen net.ipv4.ip_local_port_range, or let the server listen on \
                          more ports";
    let refused = evidence.total.counts.out_of_ports;
    let taken = evidence.seconds.iter().filter_map(|second| second.host.ports).max();
    let range = evidence.host.limits.local_ports;
    let has = range.map(|range| format!("{} to {}, {} ports", range.first, range.last, range.len()));
    if refused > 0 {
        let has = has.map(|has| format!(" ({has})")).unwrap_or_default();
        let measured = format!("{refused} connections could not be opened: no local port was left{has}");
        return Some(degraded(Check::Ports, measured, "0".to_owned(), ADVICE));
    }
    let (taken, range) = taken.zip(range)?;
    is_over_share(taken, range.len(), PORTS_PER_MILLE).then(|| {
        degraded(
            Check::Ports,
            format!(
                "{} of the local ports were in use ({})",
                percent(taken, range.len()),
                has.unwrap_or_default()
            ),
            "80 %".to_owned(),
            ADVICE,
        )
    })
}

pub(super) fn no_ports(evidence: &Evidence<'_>) -> Option<String> {
    let is_found = evidence.total.counts.out_of_ports > 0;
    let needs_none = evidence.address.is_some_and(|address| address.starts_with("unix:"));
    let is_counted = evidence.seconds.iter().any(|second| second.host.ports.is_some());
    if is_found || needs_none || (is_counted && evidence.host.limits.local_ports.is_some()) {
        return None;
    }
    Some("several servers, or not reported by this host".to_owned())
}

/// Only for a server on this host: drops of another host's queue are not counted here.
pub(super) fn listen_drops(evidence: &Evidence<'_>) -> Option<Finding> {
    let is_here = evidence.address.and_then(ip_of).is_some_and(|ip| ip.is_loopback());
    let dropped = known_sum(evidence.seconds.iter(), |second| second.host.listen_drops)?;
    (is_here && dropped > 0).then(|| {
        degraded(
            Check::ListenDrops,
            format!("{dropped} connections were dropped because a listen queue on this host was full"),
            "0; counted for all servers in this network namespace".to_owned(),
            "the server accepts too slowly: a dropped connection is tried again after a second, which is in connect; \
             raise the server's backlog and net.core.somaxconn",
        )
    })
}

fn ip_of(address: &str) -> Option<IpAddr> {
    address.parse::<SocketAddr>().map(|address| address.ip()).ok()
}

/// A retransmitted segment delays its request by 200 ms or more, so the limit is the same as that of late requests.
pub(super) fn retransmits(evidence: &Evidence<'_>) -> Option<Finding> {
    let again = known_sum(evidence.seconds.iter(), |second| second.host.retransmits)?;
    let sent = evidence.total.counts.sent;
    (again > LATE_FEW && is_over_share(again, sent, LATE_PER_MILLE)).then(|| {
        degraded(
            Check::Retransmits,
            format!("{again} TCP segments were retransmitted, for {sent} requests"),
            "1 % of the requests; counted for this network namespace".to_owned(),
            "the network loses packets, which makes connect, send and wait longer: check the network path",
        )
    })
}
