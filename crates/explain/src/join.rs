//! Matches the client's requests with those at the server.
//!
//! By the two ends of the connection, and within it by order and time. If the ends differ because something is in
//! between (a relay, address translation), by time alone: the requests of one connection are within those of the other.
//! What cannot be joined is counted by its reason.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};

use export::requests::Row;
use record::{Phase, Served};
use serde::Serialize;
use units::Nanos;

use crate::clocks::Clocks;

/// A request of the client that was found at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    /// The index of the server's record.
    pub(crate) server: usize,
    /// The index among that record's requests.
    pub(crate) place: usize,
    pub(crate) by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// By the same two ends.
    Ends,
    /// By time, with different ends.
    Time,
}

/// What became of the client's requests. They sum to its rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JoinCounts {
    pub rows: u64,
    /// Found by the two ends of their connection.
    pub by_ends: u64,
    /// Found by time alone: something is between client and server.
    pub by_time: u64,
    /// Given up before a complete response came.
    pub unanswered: u64,
    /// Their record does not say which connection carried them, or none of TCP did.
    pub no_connection: u64,
    /// No observer saw a request on such a connection.
    pub connection_not_seen: u64,
    /// Their connection was seen, and no request on it fits.
    pub request_not_seen: u64,
    /// Requests that observers kept and that are none of these rows: of other clients, or of another time.
    pub others_at_servers: u64,
}

impl JoinCounts {
    pub(crate) fn joined(&self) -> u64 {
        self.by_ends + self.by_time
    }
}

/// One observer's requests, for the join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) served: &'a [Served],
    pub(crate) clocks: Clocks,
}

impl<'a> Watched<'a> {
    fn timed(&self, error: Nanos) -> Timed<'a> {
        Timed { served: self.served, zero: self.clocks.zero, error: i128::from(error.0) }
    }
}

type Ends = (SocketAddr, SocketAddr);

/// Maximum number of connections that are compared by time, each with each.
const MOST_BY_TIME: usize = 64;

/// Number of requests that decide whether two connections are the same one.
const COMPARED: usize = 2_000;

/// How far the numbering on one connection may differ between two records that began at different times.
const SHIFTS: i64 = 8;

/// Two hosts whose wall clocks differ by more than this have unusable wall clocks, or the records are from different
/// periods.
const WALL_CLOCKS: i128 = 60_000_000_000;

pub(crate) fn join(rows: &[Row], servers: &[Watched<'_>]) -> (Vec<Option<Match>>, JoinCounts) {
    let mut matches = vec![None; rows.len()];
    let mut counts = JoinCounts { rows: rows.len() as u64, ..JoinCounts::default() };
    let mut connections: BTreeMap<Ends, Vec<usize>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        match (row.service, row.carried) {
            (None, _) => counts.unanswered += 1,
            (_, None) => counts.no_connection += 1,
            (_, Some(carried)) => {
                connections.entry((plain(carried.local), plain(carried.server))).or_default().push(index);
            }
        }
    }
    for indices in connections.values_mut() {
        indices.sort_by_key(|&index| (begin(&rows[index]), rows[index].carried.map(|carried| carried.nth)));
    }
    let mut seen = vec![false; rows.len()];
    for (server, watched) in servers.iter().enumerate() {
        let at_server = at_server(watched.served);
        let error = watched.clocks.known.within();
        let mut rest = Vec::new();
        for (ends, indices) in &connections {
            let open: Vec<usize> =
                indices.iter().copied().filter(|&index| matches[index].is_none()).collect();
            // Loopback of another host is not the client's.
            let found = find(&at_server, *ends).filter(|_| watched.clocks.same_host || !is_loopback(ends.0));
            match found {
                Some(places) => {
                    open.iter().for_each(|&index| seen[index] = true);
                    for (index, place) in align(rows, &open, places, watched) {
                        matches[index] = Some(Match { server, place, by: By::Ends });
                    }
                }
                None if open.len() == indices.len() => rest.push(open),
                None => {}
            }
        }
        if let Some(error) = error {
            let unknown = at_server.by_ends.iter().filter(|(ends, _)| !connections.contains_key(*ends));
            let unknown: Vec<&Vec<usize>> = unknown.map(|(_, places)| places).collect();
            for (index, place) in by_time(rows, &rest, &unknown, &watched.timed(error)) {
                matches[index] = Some(Match { server, place, by: By::Time });
            }
        }
    }
    for (matched, seen) in matches.iter().zip(&seen) {
        match matched {
            Some(Match { by: By::Ends, .. }) => counts.by_ends += 1,
            Some(Match { by: By::Time, .. }) => counts.by_time += 1,
            None if *seen => counts.request_not_seen += 1,
            None => {}
        }
    }
    let counted = counts.joined() + counts.unanswered + counts.no_connection + counts.request_not_seen;
    counts.connection_not_seen = counts.rows - counted;
    let served: u64 = servers.iter().map(|watched| watched.served.len() as u64).sum();
    counts.others_at_servers = served - counts.joined();
    (matches, counts)
}

fn begin(row: &Row) -> u64 {
    row.end_of(Phase::Auth).0
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => ip.is_loopback(),
    }
}

/// Requests by the connection's ends, as seen from the client, each list in the order of the reads.
struct AtServer {
    by_ends: BTreeMap<Ends, Vec<usize>>,
    /// By the client's end alone, for when the server's address was translated on the way.
    by_client: HashMap<SocketAddr, Ends>,
}

fn at_server(served: &[Served]) -> AtServer {
    let mut by_ends: BTreeMap<Ends, Vec<usize>> = BTreeMap::new();
    for (place, request) in served.iter().enumerate() {
        if let (Some(peer), Some(local)) = (request.peer, request.local) {
            by_ends.entry((plain(peer), plain(local))).or_default().push(place);
        }
    }
    for places in by_ends.values_mut() {
        places.sort_by_key(|&place| (served[place].read, served[place].n));
    }
    let by_client = by_ends.keys().map(|ends| (ends.0, *ends)).collect();
    AtServer { by_ends, by_client }
}

fn find(at_server: &AtServer, ends: Ends) -> Option<&Vec<usize>> {
    // A client's end on loopback is the same for a relay and for the server: there, only both ends identify a
    // connection.
    let translated = || at_server.by_client.get(&ends.0).filter(|_| !is_loopback(ends.0));
    at_server.by_ends.get(&ends).or_else(|| at_server.by_ends.get(translated()?))
}

/// A server's requests, with the mapping of a row's instants to their clock.
#[derive(Debug, Clone, Copy)]
struct Timed<'a> {
    served: &'a [Served],
    /// Added to an instant of a row, it gives the server's clock.
    zero: i128,
    /// Maximum error of that.
    error: i128,
}

impl Timed<'_> {
    fn read(&self, place: usize) -> i128 {
        i128::from(self.served[place].read.0)
    }

    /// How far the read at the server is outside of the time from the request's first byte to its response.
    fn outside(&self, row: &Row, place: usize) -> i128 {
        let (from, to) =
            (self.zero + i128::from(begin(row)), self.zero + i128::from(row.end_of(Phase::Receive).0));
        (from - self.read(place)).max(self.read(place) - to).max(0)
    }

    /// Of `places`, which are in the order of their reads, the one that is least outside; of equals the first. A record
    /// may contain the same number for all requests, so they are not compared one by one.
    fn nearest(&self, row: &Row, places: &[usize]) -> Option<usize> {
        let from = self.zero + i128::from(begin(row));
        let next = places.partition_point(|&place| self.read(place) < from);
        let near = places[next.saturating_sub(1)..].iter().take(2).copied();
        near.min_by_key(|&place| self.outside(row, place))
    }

    /// Whether the server read it after its first byte was sent, and before its response arrived.
    fn fits(&self, row: &Row, place: usize) -> bool {
        self.outside(row, place) <= self.error
    }
}

/// Pairs of requests on one connection, with both sides in order.
fn align(rows: &[Row], indices: &[usize], places: &[usize], watched: &Watched<'_>) -> Vec<(usize, usize)> {
    let Clocks { zero, known, .. } = watched.clocks;
    match known.within() {
        Some(error) => align_on_one_clock(rows, indices, places, &watched.timed(error)),
        None => {
            let served = watched.served;
            align_by_order(rows, indices, places, &Timed { served, zero, error: WALL_CLOCKS })
        }
    }
}

fn align_on_one_clock(
    rows: &[Row],
    indices: &[usize],
    places: &[usize],
    timed: &Timed<'_>,
) -> Vec<(usize, usize)> {
    let by_time = align_by_time(rows, indices, places, timed);
    // Pipelined requests are in the kernel at once: after a loss, order distinguishes them and time does not. The same
    // holds for a clock that is not known to the nanosecond.
    let mut shifts: BTreeMap<i64, usize> = BTreeMap::new();
    for &(index, place) in &by_time {
        let found = shift(&rows[index], &timed.served[place]);
        let beside = if timed.error == 0 { 0 } else { 1 };
        for near in -beside..=beside {
            *shifts.entry(found.saturating_add(near)).or_default() += usize::from(near == 0);
        }
    }
    let mut shifts: Vec<_> = shifts.into_iter().collect();
    shifts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let fitting = |(shift, _)| -> Vec<_> {
        let pairs = at_shift(rows, indices, places, timed, shift).into_iter();
        pairs.filter(|&(index, place)| timed.fits(&rows[index], place)).collect()
    };
    let outside = |pairs: &[(usize, usize)]| -> i128 {
        pairs.iter().map(|&(index, place)| timed.outside(&rows[index], place)).sum()
    };
    let by_order = shifts
        .into_iter()
        .take(SHIFTS as usize)
        .map(fitting)
        .max_by_key(|pairs| (pairs.len(), std::cmp::Reverse(outside(pairs))))
        .unwrap_or_default();
    if by_order.len() >= by_time.len() { by_order } else { by_time }
}

fn shift(row: &Row, served: &Served) -> i64 {
    let nth = row.carried.map_or(0, |carried| carried.nth);
    served.n.wrapping_sub(nth).cast_signed()
}

fn align_by_time(
    rows: &[Row],
    indices: &[usize],
    places: &[usize],
    timed: &Timed<'_>,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    let mut left = places.iter().copied().peekable();
    for &index in indices {
        let from = timed.zero + i128::from(begin(&rows[index])) - timed.error;
        while left.next_if(|&place| timed.read(place) < from).is_some() {}
        if let Some(place) = left.next_if(|&place| timed.fits(&rows[index], place)) {
            pairs.push((index, place));
        }
    }
    pairs
}

/// If two connections had the same ends one after the other, two requests have the same number: time decides.
fn at_shift(
    rows: &[Row],
    indices: &[usize],
    places: &[usize],
    timed: &Timed<'_>,
    shift: i64,
) -> Vec<(usize, usize)> {
    let mut by_n: HashMap<u64, Vec<usize>> = HashMap::new();
    for &place in places {
        by_n.entry(timed.served[place].n).or_default().push(place);
    }
    let pair = |&index: &usize| {
        let nth = rows[index].carried?.nth;
        Some((index, timed.nearest(&rows[index], by_n.get(&nth.wrapping_add_signed(shift))?)?))
    };
    indices.iter().filter_map(pair).collect()
}

/// For two clocks: by order, with the shift for which the wall clocks agree best.
fn align_by_order(
    rows: &[Row],
    indices: &[usize],
    places: &[usize],
    timed: &Timed<'_>,
) -> Vec<(usize, usize)> {
    let (Some(&index), Some(&place)) = (indices.first(), places.first()) else { return Vec::new() };
    // If both sides kept all, the first of each match; if they kept some, most numbers are the same.
    let first = shift(&rows[index], &timed.served[place]);
    let near = (-SHIFTS..=SHIFTS).flat_map(|step| [step, first.saturating_add(step)]);
    let candidates = near.map(|shift| at_shift(rows, indices, places, timed, shift));
    let error = |pairs: &Vec<(usize, usize)>| way_there(rows, pairs, timed).abs();
    let best = candidates.filter(|pairs| !pairs.is_empty()).min_by_key(error);
    best.filter(|pairs| error(pairs) <= timed.error).unwrap_or_default()
}

/// Joins connections whose ends differ, the client's `rest` and the server's `unknown`, by how well their requests fit.
fn by_time(
    rows: &[Row],
    rest: &[Vec<usize>],
    unknown: &[&Vec<usize>],
    timed: &Timed<'_>,
) -> Vec<(usize, usize)> {
    if rest.len() > MOST_BY_TIME || unknown.len() > MOST_BY_TIME {
        return Vec::new();
    }
    // For each connection of the client, its candidates at the server, the likeliest first.
    let mut likely: Vec<Vec<usize>> = Vec::new();
    for indices in rest {
        let some = &indices[..indices.len().min(COMPARED)];
        let mut candidates = Vec::new();
        for (at, places) in unknown.iter().enumerate() {
            let found = align_by_time(rows, some, places, timed);
            // Most of the client's requests have a partner, and few of the server's are left over.
            if found.len() * 5 >= some.len() * 4 && found.len() * 2 >= places.len().min(some.len()) {
                candidates.push((std::cmp::Reverse(found.len()), way_there(rows, &found, timed), at));
            }
        }
        candidates.sort_unstable();
        likely.push(candidates.into_iter().map(|(.., at)| at).collect());
    }
    let mut partners = vec![None; unknown.len()];
    for client in 0..rest.len() {
        let mut tried = vec![false; unknown.len()];
        pair_up(client, &likely, &mut partners, &mut tried);
    }
    let pairs = partners.iter().enumerate().filter_map(|(at, client)| Some(((*client)?, at)));
    pairs.flat_map(|(client, at)| align_by_time(rows, &rest[client], unknown[at], timed)).collect()
}

/// Finds a partner for `client` by augmenting paths (a partner's present client moves to another one if it can), so
/// that as many as possible have one.
fn pair_up(client: usize, likely: &[Vec<usize>], partners: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for &at in &likely[client] {
        if std::mem::replace(&mut tried[at], true) {
            continue;
        }
        if partners[at].is_none_or(|other| pair_up(other, likely, partners, tried)) {
            partners[at] = Some(client);
            return true;
        }
    }
    false
}

/// Median time from sent to read over all pairs.
fn way_there(rows: &[Row], pairs: &[(usize, usize)], timed: &Timed<'_>) -> i128 {
    let way =
        |&(index, place): &(usize, usize)| timed.read(place) - timed.zero - i128::from(begin(&rows[index]));
    let mut ways: Vec<i128> = pairs.iter().map(way).collect();
    ways.sort_unstable();
    ways[ways.len() / 2]
}

#[cfg(test)]
mod tests;
