//! Joins the records into an explanation.

use std::collections::BTreeMap;

use export::requests::Row;
use findings::view::Value;
use record::document::{SCHEMA_VERSION, SchemaVersion};
use record::observation::ObservationBody;
use record::observation::watch::WatchLine;
use record::{LATE, Phase};
use serde::Serialize;
use units::Nanos;

use crate::chain::chain;
use crate::clocks::{Clocks, Known};
use crate::evidence::Evidence;
use crate::groups::{Explained, Group, SLOWEST, Scope, by_name, groups};
use crate::host::{HostRecord, Planted, Surroundings};
use crate::inputs::{Client, Server};
use crate::join::{By, JoinCounts, Match, Watched, is_loopback, join};
use crate::ledger::{AtServer, Ledger, OneClock, TOLD_APART};
use crate::place::{Place, Segment};
use crate::queued_behind::Threads;
use crate::rules::{Blame, Sentence, judge, phrase};
use crate::seconds::{SecondOf, ServerSums, in_period, seconds};

/// Where the time of a client's requests went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    pub schema_version: SchemaVersion,
    pub client: String,
    pub servers: Vec<String>,
    /// Limits of the figures, one line each.
    pub notes: Vec<String>,
    pub blame: Blame,
    /// The place with the most time first.
    pub sentences: Vec<Sentence>,
    pub groups: Vec<Group>,
    pub slowest: Vec<Slow>,
    /// How many requests were found at a server, and why others were not.
    pub join: JoinCounts,
    pub surroundings: Surroundings,
    pub seconds: Vec<SecondOf>,
}

/// One of the slowest requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slow {
    pub n: u64,
    pub target: String,
    /// Its intended start, from the run's zero.
    pub intended_ns: u64,
    pub response_ns: u64,
    pub outcome: &'static str,
    /// Whether it was found at a server.
    pub joined: bool,
    /// The segments of its response time; they add up to it.
    pub segments_ns: BTreeMap<&'static str, u64>,
    /// The process that ran most while the server's thread waited for a CPU.
    pub culprit: Option<String>,
    /// The digest of its statement or route, from the server's record.
    pub digest: Option<String>,
    #[serde(skip)]
    pub(crate) ledger: Ledger,
}

/// Joins the records and explains the time of the client's requests.
///
/// # Cost
///
/// Some hundred bytes per request of the client and of the servers; time per request grows with the number of requests
/// that a server's thread has in progress.
pub fn explain(client: &Client, mut servers: Vec<Server>, hosts: &[HostRecord]) -> Explanation {
    let (from, to) = client.period();
    let clocks: Vec<Clocks> = servers.iter_mut().map(|server| Clocks::of(client, server)).collect();
    let servers = servers.as_slice();
    let surroundings = Surroundings::of(client, hosts, from, to);
    let empty = Vec::new();
    let rows = client.rows.as_ref().map_or(&empty, |(_, rows)| rows);
    let watched: Vec<Watched<'_>> = servers
        .iter()
        .zip(&clocks)
        .map(|(server, &clocks)| Watched { served: &server.served, clocks })
        .collect();
    let (matches, join) = join(rows, &watched);
    let explained = ledgers(rows, &matches, servers, &clocks);
    let is_whole_run = client.rows.as_ref().is_none_or(|(rows, _)| !rows.kept.starts_with("slowest"));
    let sums: Vec<ServerSums> =
        servers.iter().zip(&clocks).map(|(server, clocks)| sums(client, server, clocks)).collect();

    let mut scope = if explained.is_empty() {
        Scope::of_sums(client_sums(client))
    } else {
        Scope::of(&explained, is_whole_run)
    };
    chain(&mut scope, &explained, rows);
    let by_averages = divide_by_averages(&mut scope, &sums);
    let evidence =
        Evidence { client, servers, rows, matches: &matches, surroundings: &surroundings, join: &join };
    let facts = evidence.facts(&scope, by_averages);
    let count = if scope.rows.is_empty() { client.total.counts.ok } else { scope.rows.len() as u64 };
    let (mut blame, mut sentences) = judge(&scope.over, &scope.sums, count, &facts);
    evidence.name_digest(&scope, &mut blame, &mut sentences);
    let shown = if explained.is_empty() {
        let mut group = Group::of("all", "all ok requests, by their sums".to_owned(), &[]);
        (group.rows, group.sum_ns, group.segments_ns) = (count, scope.sums.sum(), by_name(&scope.sums));
        group.sums = scope.sums;
        vec![group]
    } else if is_whole_run {
        groups(&explained)
    } else {
        groups(&explained).into_iter().filter(|group| matches!(group.name, "all" | "slowest")).collect()
    };
    Explanation {
        schema_version: SCHEMA_VERSION,
        client: client.name.clone(),
        servers: servers.iter().map(|server| server.name.clone()).collect(),
        notes: evidence.notes(&scope, &clocks, by_averages),
        blame,
        sentences,
        groups: shown,
        slowest: evidence.slowest(&explained),
        join,
        seconds: seconds(client, servers, &clocks, &surroundings),
        surroundings,
    }
}

/// Each row with a response, with its ledger, ordered by response time.
fn ledgers(rows: &[Row], matches: &[Option<Match>], servers: &[Server], clocks: &[Clocks]) -> Vec<Explained> {
    let after_lag = after_lag(rows);
    let threads: Vec<Threads<'_>> = servers.iter().map(|server| Threads::new(&server.served)).collect();
    let answered = rows.iter().zip(matches).enumerate().filter(|(_, (row, _))| row.service.is_some());
    let explain = |(index, (row, matched)): (usize, (&Row, &Option<Match>))| {
        let mut ledger = match matched {
            None => Ledger::of(row),
            Some(Match { server, place, by }) => {
                let clocks = clocks[*server];
                let zero = u64::try_from(clocks.zero).ok();
                let clock =
                    zero.zip(clocks.known.within()).map(|(zero, error)| OneClock { zero, error: error.0 });
                let loopback = *by == By::Ends && row.carried.is_some_and(|at| is_loopback(at.server));
                let behind = threads[*server].behind(*place);
                let served = &servers[*server].served[*place];
                Ledger::divided(row, &AtServer { served, behind, clock, loopback })
            }
        };
        ledger.shift(Segment::PoolWait, Segment::PoolAfterLag, after_lag[index]);
        Explained { row: index, response: row.response, joined: matched.is_some(), ledger }
    };
    let mut explained = Vec::with_capacity(rows.len());
    explained.extend(answered.map(explain));
    // No two have the same row. A stable sort would need half as much memory again.
    explained.sort_unstable_by_key(|explained| (explained.response, explained.row));
    explained
}

/// How much of each row's wait for a connection is caused by the client: requests that became due while it was late are
/// sent in a burst, and queue. Such waits count up to the length of the lateness, minus the time since then.
fn after_lag(rows: &[Row]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let picked_up = |row: usize| rows[row].end_of(Phase::ScheduleLag).0;
    let lag = |row: usize| {
        let lag = rows[row].phase(Phase::ScheduleLag).filter(|&lag| lag >= LATE);
        lag.map_or(0, |lag| lag.0)
    };
    // Of requests picked up at the same time, the latest first.
    order.sort_by_key(|&row| (picked_up(row), std::cmp::Reverse(lag(row))));
    let mut shares = vec![0; rows.len()];
    let (mut late_at, mut late_for) = (0u64, 0u64);
    for row in order {
        let now = picked_up(row);
        let left = late_for.saturating_sub(now.saturating_sub(late_at));
        if lag(row) >= left {
            (late_at, late_for) = (now, lag(row));
        }
        shares[row] = left.max(lag(row));
    }
    shares
}

/// The sums of the phases of all `ok` requests of the client.
fn client_sums(client: &Client) -> Ledger {
    let mut ledger = Ledger::default();
    for phase in Phase::ALL {
        let sum = client.total.phase(phase).map_or(0, |durations| durations.sum_ns());
        ledger.put(Segment::of_phase(phase), u64::try_from(sum).unwrap_or(u64::MAX));
    }
    ledger
}

/// What a server did during the client's run, from its requests or from its series.
fn sums(client: &Client, server: &Server, clocks: &Clocks) -> ServerSums {
    let mut sums = ServerSums::default();
    let (from, to) = client.period();
    for served in server.served.iter().filter(|served| in_period(served.done, clocks, (0, to - from))) {
        sums.add(served);
    }
    if sums.requests > 0 {
        return sums;
    }
    for line in &server.observed.lines {
        let zero = server.observed.document.time.started_monotonic_ns;
        let middle = Nanos(zero.saturating_add(line.start.0).saturating_add(line.length.0 / 2));
        if in_period(middle, clocks, (0, to - from))
            && let Ok(fields) = line.fields::<WatchLine>()
        {
            sums.add_line(&fields);
        }
    }
    sums
}

/// Divides requests that were not found at a server like the server's averages: for all requests this is right on
/// average, for a tail it would be a guess. Returns whether it did.
fn divide_by_averages(scope: &mut Scope, servers: &[ServerSums]) -> bool {
    let undivided = scope.sums.get(Segment::ServerAndNetwork);
    let has_most = u128::from(undivided) * 2 >= u128::from(scope.sums.sum());
    let [server] = servers else { return false };
    if scope.is_excess || !has_most || undivided == 0 || server.requests == 0 {
        return false;
    }
    let requests = scope.rows.len() as u64;
    let all = if requests == 0 { server.requests } else { requests };
    scope.sums.0[Segment::ServerAndNetwork as usize] = 0;
    server.divide(undivided, all, &mut scope.sums);
    true
}

impl Evidence<'_> {
    /// The statement or route with most of the server's time in the scope.
    fn name_digest(&self, scope: &Scope, blame: &mut Blame, sentences: &mut [Sentence]) {
        let mut digests: BTreeMap<&str, u64> = BTreeMap::new();
        let mut total = 0u64;
        for (server, served) in scope.rows.iter().filter_map(|one| self.served(one.row)) {
            let response = served.response().0;
            total = total.saturating_add(response);
            if let Some(digest) = server.digests().get(served.digest as usize) {
                let sum = digests.entry(&digest.text).or_default();
                *sum = sum.saturating_add(response);
            }
        }
        // A digest is worth naming only if there are others.
        let served = |server: &Server| server.digests().iter().filter(|digest| digest.count > 0).count();
        if self.servers.iter().all(|server| served(server) < 2) {
            return;
        }
        let Some((text, ns)) = digests.into_iter().max_by_key(|(_, ns)| *ns).filter(|_| total > 0) else {
            return;
        };
        let share = Value::Share(ns as f64 / total as f64);
        let text: String = text.chars().take(120).collect();
        for sentence in sentences {
            if matches!(sentence.place, Place::HandlerCpu | Place::HandlerBlocked) {
                let is_blamed = blame.sentence == sentence.text;
                let digest = phrase(
                    "{digest_share} of the server's time is in `{digest}`.",
                    [("digest_share", share.clone().into()), ("digest", text.as_str().into())],
                );
                sentence.add(digest);
                if is_blamed {
                    blame.sentence.clone_from(&sentence.text);
                }
            }
        }
    }

    fn slowest(&self, explained: &[Explained]) -> Vec<Slow> {
        let slow = |one: &Explained| {
            let row = &self.rows[one.row];
            let served = self.served(one.row);
            let culprit = served.and_then(|(_, served)| served.culprit.as_ref());
            let digest = served.and_then(|(server, served)| server.digests().get(served.digest as usize));
            Slow {
                n: row.n,
                target: row.target.to_string(),
                intended_ns: row.intended.0,
                response_ns: row.response.0,
                outcome: row.failure.map_or("ok", |failure| failure.outcome.name()),
                joined: one.joined,
                segments_ns: by_name(&one.ledger),
                culprit: culprit
                    .map(|culprit| format!("{} (pid {}), {}", culprit.comm, culprit.pid, culprit.time)),
                digest: digest.map(|digest| digest.text.clone()),
                ledger: one.ledger,
            }
        };
        explained.iter().rev().take(SLOWEST).map(slow).collect()
    }

    /// Whether a disturbance affected the client, a server, or the path between them.
    fn concerns(&self, planted: &Planted) -> bool {
        let own = &self.client.document;
        let servers = self.servers.iter().flat_map(|server| match &server.observed.document.body {
            ObservationBody::Watch(results) => results.subject.pids.as_slice(),
            _ => &[],
        });
        let is_party = |pid| own.host.pid == Some(pid) || servers.clone().any(|&server| server == pid);
        let target = own.subject.url.split("://").last().and_then(|url| url.split('/').next());
        let is_on_the_way = planted.relay.as_ref().zip(target).is_some_and(|(relay, target)| {
            [&relay.listen, &relay.target].into_iter().any(|address| address == target)
        });
        planted.pid.is_some_and(is_party) || is_on_the_way
    }

    fn notes(&self, scope: &Scope, clocks: &[Clocks], by_averages: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |when: bool, text: String| {
            if when {
                notes.push(text)
            }
        };
        match &self.client.rows {
            None => note(
                true,
                "The client kept no individual requests, so only sums are explained; run drive with --requests all."
                    .to_owned(),
            ),
            Some((kept, _)) => note(
                kept.kept != "all",
                format!("The client kept only {}: the explanation covers only these requests.", kept.kept),
            ),
        }
        note(
            self.servers.is_empty(),
            "There is no record of the server: run `parallax watch` on the server's host, with --requests all."
                .to_owned(),
        );
        notes.extend(
            self.servers.iter().zip(clocks).flat_map(|(server, clocks)| of_server(server, clocks.known)),
        );
        let mut note = |when: bool, text: String| {
            if when {
                notes.push(text)
            }
        };
        let carried = self.rows.iter().any(|row| row.carried.is_some());
        note(
            !self.rows.is_empty() && !carried && !self.servers.is_empty(),
            "The client's record does not say which connection carried a request: it was made by an older version, or not \
             over TCP."
                .to_owned(),
        );
        note(
            self.join.unanswered > 0,
            format!(
                "{} requests had no complete response: they are not in these figures, and took longer.",
                units::count(self.join.unanswered)
            ),
        );
        let lost = self.client.document.results.as_ref().and_then(|results| results.kept.as_ref());
        let lost = lost.map_or(0, |kept| kept.lost);
        note(lost > 0, format!("{} requests arrived too fast to be kept by the client.", units::count(lost)));
        note(
            by_averages,
            "Requests could not be found at the server, so its averages over the run are used.".to_owned(),
        );
        note(
            self.join.by_time > 0,
            format!(
                "{} requests were found at the server by time alone, because the ends of their connections differ: there \
                 is something between client and server, such as a relay.",
                units::count(self.join.by_time)
            ),
        );
        notes.extend(self.notes_around(scope));
        notes
    }

    /// Notes on requests of the scope that were not found, and on the hosts.
    fn notes_around(&self, scope: &Scope) -> Vec<String> {
        let mut notes = Vec::new();
        let mut note = |when: bool, text: String| {
            if when {
                notes.push(text)
            }
        };
        let time = |rows: &[Explained], counts: fn(&Explained) -> bool| -> (u64, f64) {
            let counted = rows.iter().filter(|one| counts(one));
            counted.fold((0, 0.0), |(rows, ns), one| (rows + 1, ns + one.response.0 as f64))
        };
        let (missing, missing_ns) = time(&scope.rows, |one| !one.joined);
        let (all, all_ns) = time(&scope.rows, |_| true);
        note(
            missing > 0 && !self.servers.is_empty(),
            format!(
                "{} of the {} explained requests were not found at a server; they have {} of the time.",
                units::count(missing),
                units::count(all),
                units::percent(missing_ns / all_ns.max(1.0))
            ),
        );
        self.servers.iter().filter_map(Server::windows_note).for_each(|text| note(true, text));
        for planted in self.surroundings.planted.iter().filter(|planted| self.concerns(planted)) {
            let length = Nanos(planted.in_effect_ns);
            note(
                true,
                format!("A deliberate disturbance was active for {length} of the run: {}.", planted.what),
            );
        }
        for name in &self.surroundings.ignored {
            note(true, format!("{name} was made on another host or boot, so it is not used."));
        }
        notes
    }
}

fn of_server(server: &Server, known: Known) -> Vec<String> {
    let name = &server.name;
    let mut notes = Vec::new();
    if server.served.is_empty() {
        notes.push(format!("{name} kept no individual requests; run watch with --requests all."));
    }
    if known != Known::Within(Nanos::ZERO) {
        notes.push(of_clocks(name, known));
    }
    if let ObservationBody::Watch(results) = &server.observed.document.body {
        let lost = results.losses.of_events();
        if lost > 0 {
            notes.push(format!(
                "{name} lost {} events or requests, so some are not found.",
                units::count(lost)
            ));
        }
    }
    notes
}

fn of_clocks(name: &str, known: Known) -> String {
    match known {
        Known::Within(error) => format!(
            "{name} was made on another host, whose clock is known within {error}: the two directions of the network are \
             separated only for requests that spent at least {} in the network.",
            Nanos(error.0.saturating_mul(TOLD_APART))
        ),
        Known::ByWallClock => {
            format!(
                "{name} was made on another host or boot: the two directions of the network are not separated."
            )
        }
        Known::Contradicted => format!(
            "{name} was made on another host, whose clock stopped or jumped during the run: the two directions of the \
             network are not separated."
        ),
    }
}
