//! The tables of a watch: in its results, in its record while it is in progress, and for a scraper.

use export::prometheus::WatchSnapshot;
use record::observation::ObservationBody;
use record::observation::watch::{WatchLine, WatchResults};
use units::Nanos;

use super::Watching;

/// How often the tables are written while the watch is in progress, at least.
const SAVE: Nanos = Nanos::from_secs(10);

/// Writing them takes at most this part of the time: thousands of statements are megabytes.
const SAVE_SHARE: u64 = 100;

impl Watching<'_> {
    /// Sets statements, users, clients, connections, waits, slow requests and preemptors.
    pub(super) fn set_tables(&self, results: &mut WatchResults) {
        let times = &findings::times;
        let session = &self.session;
        results.digests = session
            .with_digests(|digests| self.digests.rows(|id| digests.text(dissect::DigestId(id)), times));
        results.sessions = session.with_digests(|digests| {
            let of = |id| {
                let session = digests.session(dissect::SessionId(id)).clone();
                (session.user.map(String::from), session.schema.map(String::from))
            };
            self.usages.sessions(of, times)
        });
        results.peers = self.usages.peers(times);
        results.busiest_connections = self.usages.connections(times);
        results.waits = self.usages.waits();
        results.slow = Some(self.usages.slow_results(self.keeper.zero()));
        results.preemptors = session.preemptors();
        results.preemptors.iter_mut().for_each(|one| one.cgroup = watch::cgroup(one.pid));
    }

    /// Writes the tables, without the sums, which are in the series: a watch that is killed then has them, too.
    pub(super) fn save_tables(&mut self, now: Nanos) {
        let (at, took) = self.saved;
        if !self.keeper.is_kept() || now < at + SAVE.max(Nanos(took.0.saturating_mul(SAVE_SHARE))) {
            return;
        }
        let began = clock::now();
        let mut tables = WatchResults {
            subject: self.results.subject.clone(),
            tier: self.results.tier.clone(),
            left_out: self.results.left_out,
            ..WatchResults::default()
        };
        self.set_tables(&mut tables);
        self.keeper.save(now, ObservationBody::Watch(Box::new(tables)));
        self.saved = (now, clock::now().saturating_sub(began));
    }

    /// Gives the scraper its figures after an interval.
    pub(super) fn scrape(&mut self, line: &WatchLine, length: Nanos) {
        let Some(scrape) = &mut self.scrape else { return };
        let statements = self.session.with_digests(|digests| {
            scrape.statements(&self.digests, |id| digests.text(dissect::DigestId(id)))
        });
        let total = &self.total;
        let programs = self.session.cost();
        scrape.set(WatchSnapshot {
            server: self.spec.selection.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns: scrape.started_unix_ns,
            requests: total.requests,
            preempted: total.preempted,
            connections: self.results.connections,
            request_bytes: total.request_bytes,
            response_bytes: total.response_bytes,
            parts_ns: total.parts_ns,
            response: total.response().clone(),
            statements,
            slow: (self.spec.slow, self.usages.slow().requests()),
            left_out: self.results.left_out,
            losses: self.results.losses,
            missed: self.session.missed(),
            rate: findings::per_s(line.requests, line.seen_ns.unwrap_or(length.0)),
            own_cpu_ns: host::process_cpu()
                .zip(self.own_cpu)
                .map(|(now, before)| now.saturating_sub(before).0),
            own_memory: host::process_memory(),
            programs_ns: (!programs.is_empty()).then(|| programs.iter().map(|program| program.ns).sum()),
        });
    }
}
