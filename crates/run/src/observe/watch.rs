//! Observes the requests of a running server from its kernel.

mod scrape;
mod served_file;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use findings::{SeenTimes, SeenWindow};
use record::document::{Kept, MissingFact, State};
use record::observation::ObservationBody;
use record::observation::watch::{Digest, Inexact, Losses, Preemptor, WatchLine, WatchResults, WatchSubject};
use record::{Durations, Event, Served};
use units::Nanos;
use usage::{DigestSums, Targets, Usages};
use watch::kernel::CaptureSettings;
use watch::{Budget, KnownRequests, Named, Seen, Session, Sums};

use self::scrape::ScrapeEndpoint;
use self::served_file::ServedFile;
use super::keeper::{Keeper, Observed};
use super::{Closing, Observer, Rhythm, Setting, conduct};
use crate::companion::CompanionObserver;
use crate::requests_file::KeepRequests;
use crate::values::ListenAddress;
pub use watch::{PeerPattern, RequestClass, RequestFilter, StatementPattern};

/// What to watch.
pub struct WatchSpec {
    pub named: Named,
    /// How the user named the server, for the record.
    pub selection: String,
    pub settings: CaptureSettings,
    pub known: KnownRequests,
    /// What classifies the requests; its probe is in `settings`.
    pub class: Option<RequestClass>,
    pub interval: Nanos,
    /// `None` until a stop is requested.
    pub duration: Option<Nanos>,
    /// Which individual requests are kept.
    pub requests: KeepRequests,
    /// Which requests are counted.
    pub only: RequestFilter,
    /// Requests that take longer at the server have their reasons kept.
    pub slow: Nanos,
    /// The most that watching may cost the server; `None`: everything is counted.
    pub budget: Option<Budget>,
    /// Where the figures are served for Prometheus.
    pub prometheus: Option<ListenAddress>,
    /// Measures the cost of the eBPF programs.
    pub self_cost: bool,
    /// Also profiles the server, in a directory within that of the record.
    pub profile: bool,
}

/// Called for each event, on the thread of the observation; an error ends it.
pub type Live<'a> = &'a mut dyn FnMut(WatchEvent<'_>) -> anyhow::Result<()>;

/// What happens during the watch.
pub enum WatchEvent<'a> {
    /// Requests are seen from `started` on; the record has begun.
    Ready {
        subject: &'a WatchSubject,
        started: Nanos,
    },
    Interval(&'a WatchInterval<'a>),
    Over {
        server_has_ended: bool,
    },
}

/// An interval that has ended, with sums of all intervals so far.
pub struct WatchInterval<'a> {
    pub line: &'a WatchLine,
    pub length: Nanos,
    /// Sums of this interval, and of all so far.
    pub interval: &'a Sums,
    pub total: &'a Sums,
    /// What was lost so far, and what is inexact because of it.
    pub losses: Losses,
    pub inexact: Inexact,
    session: &'a Session,
    digests: &'a DigestSums,
}

impl WatchInterval<'_> {
    /// The digests with the most time so far, largest first.
    pub fn digests(&self) -> Vec<Digest> {
        let mut totals: Vec<(u64, u32)> = self.digests.totals().map(|(id, _, sum)| (sum, id)).collect();
        totals.sort_unstable_by(|a, b| b.cmp(a));
        self.session.with_digests(|digests| {
            let row = |(_, id)| self.digests.row(id, digests.text(dissect::DigestId(id)), &findings::times);
            totals.into_iter().take(LIVE_DIGESTS).map(row).collect()
        })
    }

    /// Threads that ran on a CPU while the server waited for one, by time, longest first; without control groups.
    pub fn preemptors(&self) -> Vec<Preemptor> {
        self.session.preemptors()
    }

    /// The number of connections seen so far.
    pub fn connections(&self) -> u64 {
        self.session.connections()
    }
}

/// What was watched.
pub struct WatchObserved {
    pub observed: Observed,
    pub results: WatchResults,
    /// The histograms of all intervals together, by name.
    pub logs: BTreeMap<String, Durations>,
    /// The directory of the profile, if one was requested.
    pub profile: Option<anyhow::Result<PathBuf>>,
}

/// Digests that a live table shows: more than fit a screen.
const LIVE_DIGESTS: usize = 100;

/// How often /proc is searched for new ports and processes.
const REFRESH: Nanos = Nanos::from_secs(1);

/// What is missing in the record where a TLS library does not show plain text.
const NAMES: &str = "names under TLS";

/// What is missing in the record while /proc or the kernel cannot be read.
const NEW_PLACES: &str = "new ports and processes";

/// Watches, and keeps the record.
///
/// # Errors
///
/// When the server is not found, the kernel refuses, the record cannot be created, or `live` fails, in one line.
pub fn observe(spec: &WatchSpec, setting: Setting<'_>, live: Live<'_>) -> anyhow::Result<WatchObserved> {
    setting.claim(|setting| {
        let profile = match setting.folder.filter(|_| spec.profile) {
            Some(folder) => Some(profile(spec, folder, &setting)?),
            None => None,
        };
        let mut watching = match Watching::begin(spec, &setting, live) {
            Ok(watching) => watching,
            Err(error) => {
                profile.into_iter().for_each(CompanionObserver::abandon);
                return Err(error);
            }
        };
        let from = watching.keeper.zero();
        let until = spec.duration.map_or(Nanos::MAX, |length| from.saturating_add(length));
        let rhythm = Rhythm { from, every: spec.interval, until, closing: Closing::Now };
        (watching.live)(WatchEvent::Ready { subject: &watching.results.subject, started: from })?;
        let end = conduct(&mut watching, &rhythm, setting.stop)?;
        (watching.live)(WatchEvent::Over { server_has_ended: watching.is_gone })?;
        let (observed, results, logs) = watching.finish(end - from);
        Ok(WatchObserved { observed, results, logs, profile: profile.map(CompanionObserver::finish) })
    })
}

/// Also profiles the server. The profile starts before the watch, because nothing would drain the watch's ring buffer
/// while the profile is being set up.
fn profile(spec: &WatchSpec, folder: &Path, setting: &Setting<'_>) -> anyhow::Result<CompanionObserver> {
    let roots = watch::find(&spec.named)?.roots;
    CompanionObserver::profile(&roots, folder, setting.environment.program, setting.stop)
}

/// A server that is watched.
struct Watching<'a> {
    spec: &'a WatchSpec,
    session: Session,
    results: WatchResults,
    keeper: Keeper,
    /// `None` after a failed write.
    served: Option<ServedFile>,
    /// How far this process's clock is ahead of the kernel's, which timestamps requests: zero unless in a time
    /// namespace.
    ahead: i64,
    /// CPU time that this process had used at the beginning.
    own_cpu: Option<Nanos>,
    refreshed: Nanos,
    /// Sums of the current interval, and of all earlier ones.
    interval: Sums,
    total: Sums,
    digests: DigestSums,
    usages: Usages,
    targets: Targets,
    scrape: Option<ScrapeEndpoint>,
    /// Under a budget.
    seen: Option<SeenTimes>,
    /// When the tables of the record were last written, and how long that took.
    saved: (Nanos, Nanos),
    /// Requests that were just completed: their memory is used again.
    done: Vec<Served>,
    /// Whether the server has ended.
    is_gone: bool,
    /// Why the watch cannot go on.
    failed: Option<anyhow::Error>,
    live: Live<'a>,
}

impl<'a> Watching<'a> {
    /// Attaches, and begins the record.
    fn begin(spec: &'a WatchSpec, setting: &Setting<'_>, live: Live<'a>) -> anyhow::Result<Watching<'a>> {
        let own_cpu = host::process_cpu();
        let listener = spec.prometheus.map(ScrapeEndpoint::bind).transpose()?;
        let mut session = Session::start(spec.named.clone(), &spec.settings, spec.known.clone())?;
        let mut missing = Vec::new();
        if spec.self_cost
            && let Err(error) = session.measure_cost()
        {
            missing.push(MissingFact {
                what: "self_cost".to_owned(),
                why: format!("the kernel keeps no account of programs: {error}"),
            });
        }
        missing.extend(session.missing().iter().map(|what| {
            let (what, why) = what.split_once(": ").unwrap_or((what, ""));
            MissingFact { what: what.to_owned(), why: why.to_owned() }
        }));
        missing.extend(
            session.unprobed().iter().map(|why| MissingFact { what: NAMES.to_owned(), why: why.clone() }),
        );
        let zero = clock::now();
        let results = WatchResults {
            subject: session.subject(&spec.selection),
            tier: session.tier(),
            ..WatchResults::default()
        };
        let body = ObservationBody::Watch(Box::new(results.clone()));
        let keeper = Keeper::begin(setting, body, missing, zero)?;
        let started = unix_ns(&keeper.document.time.started);
        let scrape = listener.map(|listener| ScrapeEndpoint::start(listener, started)).transpose()?;
        let ahead = keeper.document.host.monotonic_offset_ns.unwrap_or(0);
        if let Some(budget) = spec.budget {
            session.keep_budget(budget, Nanos(clock::now().0.saturating_add_signed(-ahead)))?;
        }
        let mut watching = Watching {
            spec,
            session,
            results,
            keeper,
            served: None,
            ahead,
            own_cpu,
            refreshed: zero,
            interval: Sums::new(spec.class.is_some()),
            total: Sums::new(spec.class.is_some()),
            digests: DigestSums::default(),
            usages: Usages::new(spec.slow),
            targets: Targets::default(),
            scrape,
            seen: spec.budget.map(|_| SeenTimes::new(Nanos(zero.0.saturating_add_signed(-ahead)))),
            saved: (zero, Nanos::ZERO),
            done: Vec::new(),
            is_gone: false,
            failed: None,
            live,
        };
        watching.begin_served(setting.folder);
        Ok(watching)
    }

    fn begin_served(&mut self, folder: Option<&Path>) {
        let Some(folder) = folder else { return };
        let started = &self.keeper.document.time.started;
        match ServedFile::begin(self.spec.requests, folder, self.keeper.zero(), started) {
            Ok(file) => self.served = Some(file),
            Err(error) => self.note_unkept(&error),
        }
    }

    /// An instant of the kernel's clock.
    fn of_kernel(&self, at: Nanos) -> Nanos {
        Nanos(at.0.saturating_add_signed(-self.ahead))
    }

    /// Adds the requests that were completed since the last call, or the first part of them.
    fn take(&mut self) -> anyhow::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        let window = self.session.take(self.of_kernel(clock::now()), &mut done)?;
        self.add_of(window, &mut done);
        self.done = done;
        Ok(())
    }

    /// Adds what was completed: requests of a window, if one has ended.
    fn add_of(&mut self, window: Option<Seen>, done: &mut Vec<Served>) {
        if window.is_some() {
            self.note_everything();
        }
        self.add(done);
        if let Some((window, seen)) = window.zip(self.seen.as_mut()) {
            let Seen { from, until, stands_for, unanswered, within, before } = window;
            let window = SeenWindow { from, until, stands_for, unanswered, bytes: within.bytes };
            seen.add_window(&window, self.spec.only.is_all());
            seen.add_bytes(before.bytes + within.bytes, before.time + within.time);
        }
    }

    /// Adds what was seen while everything was counted.
    fn note_everything(&mut self) {
        if let Some((seeing, seen)) = self.session.seeing().zip(self.seen.as_mut()) {
            seen.add_everything(seeing.everything, seeing.everything_until);
        }
    }

    fn add(&mut self, done: &mut Vec<Served>) {
        for served in done.drain(..) {
            let mut served = served.later(self.ahead);
            // Requests read before the record began are not part of it.
            if served.read < self.keeper.zero() {
                continue;
            }
            if let Some((class, register)) = self.spec.class.as_ref().zip(served.class) {
                let digest = dissect::DigestId(served.digest);
                let is_of = self.session.with_digests(|digests| class.is_of(register, digests.text(digest)));
                served.class = served.class.filter(|_| is_of);
            }
            if !self.is_counted(&served) {
                self.results.left_out += 1;
                continue;
            }
            self.interval.add(&served);
            self.seen.iter_mut().for_each(|seen| seen.add(&served));
            self.digests.add(&served);
            let target = self.targets.of(&served);
            self.usages.add(&served, target.as_ref());
            let Some(file) = &mut self.served else { continue };
            if let Err(error) = file.take(served) {
                self.note_unkept(&error);
                self.served.take().into_iter().for_each(ServedFile::abandon);
            }
        }
    }

    fn is_counted(&self, served: &Served) -> bool {
        let only = &self.spec.only;
        let digest = dissect::DigestId(served.digest);
        only.is_all() || self.session.with_digests(|digests| only.has(served, digests.text(digest)))
    }

    fn note_unkept(&mut self, error: &anyhow::Error) {
        let fact = MissingFact { what: "served.parquet".to_owned(), why: format!("{error:#}") };
        self.keeper.document.missing.push(fact);
    }

    /// Looks for new processes and ports of the server; false if it has ended.
    fn refresh(&mut self, now: Nanos) -> bool {
        let at = now - self.keeper.zero();
        self.targets.forget();
        match self.session.refresh(self.of_kernel(now)) {
            Ok(true) => true,
            Ok(false) => {
                self.keeper.event(&Event::new(at.0, "server_ended", "the server has ended".to_owned()));
                false
            }
            // The known processes continue to be watched, and the next search may succeed.
            Err(error) => {
                let missing = &mut self.keeper.document.missing;
                if !missing.iter().any(|fact| fact.what == NEW_PLACES) {
                    let why = format!("at {at}: {error}");
                    missing.push(MissingFact { what: NEW_PLACES.to_owned(), why });
                }
                true
            }
        }
    }

    /// What was lost so far and what is inexact, by the record's names.
    fn shortcomings(&self) -> (Losses, Inexact) {
        let kernel = self.session.losses();
        let counts = self.session.counts();
        let losses = Losses {
            ring_full: kernel.unseen.events,
            map_full: kernel.map_full + self.session.given_up(),
            recursion: kernel.recursion,
            mid_connection: counts.mid_connection_requests,
            // After a loss, these are among the requests that were missed.
            unparsed: counts.unparsed
                + kernel.unreadable
                + if kernel.unseen.events == 0 { counts.dropped } else { 0 },
        };
        let inexact = Inexact {
            forgotten_slices: kernel.forgotten_slices,
            joined_arrivals: kernel.joined_arrivals,
            missed_switches: kernel.missed_switches,
        };
        (losses, inexact)
    }

    fn finish(mut self, elapsed: Nanos) -> (Observed, WatchResults, BTreeMap<String, Durations>) {
        let kept = self.finish_served();
        let pieces = self.session.losses().unattributed;
        if pieces > 0 {
            let why = format!(
                "{pieces} pieces of plain text are of no known connection: the server passes OpenSSL its bytes in memory"
            );
            self.keeper.document.missing.push(MissingFact { what: NAMES.to_owned(), why });
        }
        self.keeper.document.missing.extend(self.scrape.as_ref().and_then(ScrapeEndpoint::failure));
        let name = |class| class_name(self.spec, class);
        let logs: BTreeMap<String, Durations> =
            self.total.logs(name).into_iter().map(|(name, durations)| (name, durations.clone())).collect();
        let mut results = std::mem::take(&mut self.results);
        results.subject = self.session.subject(&self.spec.selection);
        results.subject.protocols = self.total.protocols();
        results.requests = self.total.requests;
        results.preempted = self.total.preempted;
        results.connections = self.session.connections();
        results.request_bytes = self.total.request_bytes;
        results.response_bytes = self.total.response_bytes;
        results.parts_ns = self.total.parts_ns;
        results.classes = self.total.classes(name);
        self.set_tables(&mut results);
        results.self_cost = self.session.cost();
        results.self_cpu_ns =
            host::process_cpu().zip(self.own_cpu).map(|(now, before)| now.saturating_sub(before).0);
        results.missed = self.session.missed();
        results.windows = self.session.windows();
        if let Some((windows, seen)) = results.windows.as_mut().zip(self.seen.as_mut()) {
            self.session.read_outside_windows().into_iter().for_each(|read| seen.add_outside(read));
            seen.estimate(windows);
        }
        results.kept = kept;
        findings::summarize_watch(&mut results, &logs);
        let body = ObservationBody::Watch(Box::new(results.clone()));
        (self.keeper.finish(State::Finished, elapsed, body), results, logs)
    }

    /// Closes the file of requests; returns what it contains, if it is readable.
    fn finish_served(&mut self) -> Option<Kept> {
        match self.served.take().map(ServedFile::finish)? {
            Ok(kept) => Some(kept),
            Err(error) => {
                self.note_unkept(&error);
                None
            }
        }
    }
}

impl Observer for Watching<'_> {
    /// No wake-ups from the kernel: one would cost the server more than the event itself.
    fn due(&mut self, now: Nanos, _: Nanos) -> Nanos {
        let due = self.session.due(self.of_kernel(now));
        Nanos(due.0.saturating_add_signed(self.ahead))
    }

    fn step(&mut self, stopped: bool) -> bool {
        if let Err(error) = self.take() {
            self.failed.get_or_insert(error);
        }
        let now = clock::now();
        if now >= self.refreshed + REFRESH {
            self.refreshed = now;
            self.is_gone = !self.refresh(now);
        }
        stopped || self.is_gone || self.failed.is_some()
    }

    fn close(&mut self, from: Nanos, to: Nanos, is_last: bool) -> anyhow::Result<()> {
        if is_last {
            self.session.detach(self.of_kernel(clock::now()));
            let mut done = Vec::new();
            while self.session.take_rest(&mut done) {
                self.add(&mut done);
            }
            // The last write on each connection was the end of its response.
            let window = self.session.finish(&mut done);
            self.add_of(window, &mut done);
        }
        self.note_everything();
        let (losses, inexact) = self.shortcomings();
        let (losses, inexact) = (losses.since(&self.results.losses), inexact.since(&self.results.inexact));
        let name = |class| class_name(self.spec, class);
        let mut line = self.interval.line((losses, inexact), name);
        line.connections = self.session.connections() - self.results.connections;
        self.results.connections += line.connections;
        self.seen.iter_mut().for_each(|seen| seen.take_interval(&mut line));
        let logs = self.interval.logs(name);
        let logs: Vec<(&str, &Durations)> =
            logs.iter().map(|(name, durations)| (name.as_str(), *durations)).collect();
        let length = to - from;
        self.keeper.append(&line, from - self.keeper.zero(), length, &logs);
        self.total.merge(&self.interval);
        self.results.losses.add(&losses);
        self.results.inexact.add(&inexact);
        let shown = (self.live)(WatchEvent::Interval(&WatchInterval {
            line: &line,
            length,
            interval: &self.interval,
            total: &self.total,
            losses: self.results.losses,
            inexact: self.results.inexact,
            session: &self.session,
            digests: &self.digests,
        }));
        self.scrape(&line, length);
        if !is_last {
            self.save_tables(to);
        }
        self.interval.clear();
        self.failed.take().map_or(shown, Err)
    }
}

fn class_name(spec: &WatchSpec, class: i64) -> String {
    spec.class.as_ref().map_or_else(String::new, |named| named.name(class))
}

/// Nanoseconds since the epoch of an instant of the record.
fn unix_ns(started: &str) -> u64 {
    let started = started.parse::<jiff::Timestamp>().unwrap_or_default();
    u64::try_from(started.as_nanosecond()).unwrap_or(0)
}
