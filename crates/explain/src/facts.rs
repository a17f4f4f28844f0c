//! Facts that rules may require in addition to the time: found in the records, for the requests of a scope.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use record::{LATE, Phase, Second, Stop, Waits};
use units::Nanos;

use crate::clocks::same_boot;
use crate::evidence::Evidence;
use crate::groups::Scope;
use crate::inputs::Server;
use crate::join::{By, is_loopback};
use crate::rules::Facts;
use crate::runtime;

/// Maximum number of seconds examined per request; more of them would add nothing.
const MOST_SECONDS: usize = 3_600;

/// The characters of a statement that are shown.
const LONGEST_TEXT: usize = 120;

/// When an unanswered SYN is sent again: a connection dropped by a full listen queue takes this long.
const ASKED_AGAIN: Nanos = Nanos::from_secs(1);

impl Evidence<'_> {
    pub(crate) fn facts(&self, scope: &Scope, by_averages: bool) -> Facts {
        // Counted on the client's host: drops on another host are not visible there.
        let is_here = self.rows.iter().any(|row| row.carried.is_some_and(|at| is_loopback(at.server)));
        let by_time =
            scope.rows.iter().filter(|one| self.matches[one.row].is_some_and(|at| at.by == By::Time));
        let (client_stalled, server_stalled) = self.stalled(scope);
        let (server_paused, pauses) = self.paused(scope);
        Facts {
            culprit: self.culprit(scope),
            busiest: self.busiest(),
            owner: self.owner(scope),
            upstream: self.upstream(scope),
            stop: self.stop(scope),
            own_stall: self.own_stall(scope),
            host_stall: self.longest_stall(scope),
            between: by_time.count() * 2 > scope.rows.len(),
            listen_drops: if is_here { self.listen_drops(scope) } else { 0 },
            no_server: self.servers.is_empty(),
            client_stalled,
            server_stalled,
            server_paused,
            pauses,
            chained: scope.chained,
            all_kept: !by_averages && self.servers.iter().all(Server::kept_all),
        }
    }

    /// How much of the scope is within stalls of the client's host that no process on it caused: of the client's own
    /// time, and of the rest if the servers are on that host.
    fn stalled(&self, scope: &Scope) -> (u64, u64) {
        let zero = self.client.zero();
        let is_server_s = !self.servers.is_empty() && self.is_on_server_s_host();
        let (mut client, mut rest) = (0u64, 0u64);
        for one in &scope.rows {
            let row = &self.rows[one.row];
            let edges = [row.intended, row.end_of(Phase::ScheduleLag), row.end_of(Phase::Send)]
                .map(|at| zero.saturating_add(at.0));
            let [arrived, read] = [row.end_of(Phase::Receive), row.end_of(Phase::ClientLag)]
                .map(|at| zero.saturating_add(at.0));
            let excused = |from, to| self.surroundings.excused(from, to);
            client = client.saturating_add(excused(edges[0], edges[1]));
            client = client.saturating_add(excused(arrived, read));
            if is_server_s {
                rest = rest.saturating_add(excused(edges[2], arrived));
            }
        }
        (client, rest)
    }

    /// How much of the servers' time in the scope is within pauses of their JVMs, and which pauses these are.
    fn paused(&self, scope: &Scope) -> (u64, Option<String>) {
        let zero = self.client.zero();
        let (mut paused, mut met) = (0u64, BTreeMap::new());
        for one in &scope.rows {
            let row = &self.rows[one.row];
            let [from, to] =
                [Phase::Send, Phase::Receive].map(|phase| zero.saturating_add(row.end_of(phase).0));
            let pid = self.served(one.row).map(|(_, served)| served.pid);
            for runtime in self.surroundings.runtimes.iter().filter(|runtime| runtime.serves(pid)) {
                let during = runtime.during(from, to);
                paused = paused.saturating_add(runtime::overlap(during, from, to));
                met.extend(during.iter().map(|(pause, cause)| ((pause.from, pause.to), cause.clone())));
            }
        }
        (paused, runtime::met(&met))
    }

    /// The longest stall of the client's own meter that explains its lags: lags of at least [`LATE`] that are no longer
    /// than a stall of their second must have most of the client's time.
    fn own_stall(&self, scope: &Scope) -> Option<Nanos> {
        let (mut explained, mut all, mut longest) = (0u64, 0u64, 0);
        for row in scope.rows.iter().map(|one| &self.rows[one.row]) {
            for phase in [Phase::ScheduleLag, Phase::ClientLag] {
                let lag = row.phase(phase).unwrap_or_default();
                let until = row.end_of(phase).0;
                let during = self.seconds_between(until.saturating_sub(lag.0), until);
                let stall = during.iter().filter_map(|second| second.hiccup_max_ns).max().unwrap_or(0);
                all = all.saturating_add(lag.0);
                if lag >= LATE && lag.0 <= stall {
                    explained = explained.saturating_add(lag.0);
                    longest = stall.max(longest);
                }
            }
        }
        (explained > all / 2).then_some(Nanos(longest))
    }

    /// How many connections were dropped by listen queues of this host in seconds in which connects of the scope hung
    /// for at least one SYN retransmission.
    fn listen_drops(&self, scope: &Scope) -> u64 {
        let mut drops = BTreeMap::new();
        for row in scope.rows.iter().map(|one| &self.rows[one.row]) {
            let Some(length) = row.phase(Phase::Connect).filter(|&length| length >= ASKED_AGAIN) else {
                continue;
            };
            let until = row.end_of(Phase::Connect).0;
            for second in self.seconds_between(until.saturating_sub(length.0), until) {
                drops.insert(second.start_ns, second.host.listen_drops.unwrap_or(0));
            }
        }
        drops.into_values().fold(0, u64::saturating_add)
    }

    /// The client's seconds that overlap a period of its run.
    fn seconds_between(&self, from: u64, until: u64) -> &[Second] {
        let place = |at: u64| self.client.seconds.partition_point(|second| second.start_ns <= at);
        let first = place(from).saturating_sub(1);
        &self.client.seconds[first..place(until).clamp(first, first.saturating_add(MOST_SECONDS))]
    }

    /// The longest stall of the client's host while requests of the scope were in progress.
    fn longest_stall(&self, scope: &Scope) -> Option<Nanos> {
        let zero = self.client.zero();
        let longest = scope.rows.iter().filter_map(|one| {
            let row = &self.rows[one.row];
            let [from, to] = [row.intended, row.end_of(Phase::ClientLag)].map(|at| zero.saturating_add(at.0));
            self.surroundings.longest(from, to)
        });
        longest.max()
    }

    fn culprit(&self, scope: &Scope) -> Option<String> {
        let mut culprits: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        for (_, served) in scope.rows.iter().filter_map(|one| self.served(one.row)) {
            if let Some(culprit) = &served.culprit {
                let sum = culprits.entry((&culprit.comm, culprit.pid)).or_default();
                *sum = sum.saturating_add(culprit.time.0);
            }
        }
        let ((comm, pid), time) = culprits.into_iter().max_by_key(|(_, time)| *time)?;
        // The client itself: its thread's name would mean nothing to the user.
        let is_client = self.client.document.host.pid == Some(pid) && self.is_on_server_s_host();
        let who = if is_client { "this client itself, thread " } else { "" };
        Some(format!("{who}{comm} (pid {pid}), {} in all", Nanos(time)))
    }

    /// What is known of the waits of the scope's requests.
    fn waits<'a>(&'a self, scope: &'a Scope) -> impl Iterator<Item = (&'a Server, &'a Waits)> {
        let served = scope.rows.iter().filter_map(|one| self.served(one.row));
        served.filter_map(|(server, served)| Some((server, served.waits.as_deref()?)))
    }

    /// The thread that requests waited for longest, and what it served most of that time.
    fn owner(&self, scope: &Scope) -> Option<String> {
        let owners = || self.waits(scope).filter_map(|(server, waits)| Some((server, waits.owner.as_ref()?)));
        let mut threads: BTreeMap<(&str, u32), u64> = BTreeMap::new();
        for (_, owner) in owners() {
            let sum = threads.entry((&owner.comm, owner.tid)).or_default();
            *sum = sum.saturating_add(owner.time.0);
        }
        let (comm, tid) = threads.into_iter().max_by_key(|(_, time)| *time)?.0;
        let mut texts: BTreeMap<&str, u64> = BTreeMap::new();
        for (server, owner) in owners().filter(|(_, owner)| owner.tid == tid) {
            let digest = owner.digest.and_then(|digest| server.digests().get(digest as usize));
            if let Some(digest) = digest {
                let sum = texts.entry(&digest.text).or_default();
                *sum = sum.saturating_add(owner.time.0);
            }
        }
        Some(match texts.into_iter().max_by_key(|(_, time)| *time) {
            Some((text, _)) => {
                let text: String = text.chars().take(LONGEST_TEXT).collect();
                format!("{comm} (tid {tid}), which served `{text}`,")
            }
            None => format!("{comm} (tid {tid})"),
        })
    }

    /// The address of the other server that requests waited for longest.
    fn upstream(&self, scope: &Scope) -> Option<String> {
        let mut servers: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        for waits in self.waits(scope).map(|(_, waits)| waits) {
            if let Some(address) = waits.upstream_at {
                let sum = servers.entry(address).or_default();
                *sum = sum.saturating_add(waits.upstream.0);
            }
        }
        Some(servers.into_iter().max_by_key(|(_, time)| *time)?.0.to_string())
    }

    /// What stopped the server for longest.
    fn stop(&self, scope: &Scope) -> Option<String> {
        let mut stops: BTreeMap<Stop, u64> = BTreeMap::new();
        for waits in self.waits(scope).map(|(_, waits)| waits) {
            if let Some(stop) = waits.stop {
                let sum = stops.entry(stop).or_default();
                *sum = sum.saturating_add(waits.stopped.0).saturating_add(waits.stopped_unread.0);
            }
        }
        Some(match stops.into_iter().max_by_key(|(_, time)| *time)?.0 {
            Stop::Freezer => "the freezer of its control group".to_owned(),
            // On all machines that Linux knows but MIPS, Alpha, SPARC and PA-RISC.
            Stop::Signal(19) => "SIGSTOP".to_owned(),
            Stop::Signal(20) => "SIGTSTP".to_owned(),
            Stop::Signal(21) => "SIGTTIN".to_owned(),
            Stop::Signal(22) => "SIGTTOU".to_owned(),
            Stop::Signal(5) => "a debugger or tracer (SIGTRAP)".to_owned(),
            Stop::Signal(number) => format!("signal {number}"),
        })
    }

    fn is_on_server_s_host(&self) -> bool {
        let own = &self.client.document;
        self.servers.iter().all(|server| {
            let document = &server.observed.document;
            same_boot((&own.host, &own.time), (&document.host, &document.time)).is_some()
        })
    }

    /// The process with the most CPU time besides the server: no more than a hint.
    fn busiest(&self) -> Option<String> {
        if !self.is_on_server_s_host() {
            return None;
        }
        let own: BTreeSet<u64> = self
            .servers
            .iter()
            .flat_map(|server| server.served.iter().map(|served| u64::from(served.pid)))
            .collect();
        let busy = self.surroundings.busiest.iter().find(|busy| !own.contains(&busy.pid))?;
        Some(format!("{} (pid {}) with {}", busy.name, busy.pid, Nanos(busy.cpu_ns)))
    }
}
