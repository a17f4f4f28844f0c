//! Known disturbances on a known schedule, under a guard, and the record of what actually happened.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use host::disturb::{
    DisturbError, Disturbance, Done, Effects, EpisodeReport, Guard, Moment, Over, Pause, PauseMethod,
    Program, Relay, Victim, Work, Workers, conduct as disturb,
};
use record::Event;
use record::document::State;
use record::observation::ObservationBody;
use record::observation::disturb::{
    BEGUN, DisturbResults, EVENT, Episode, Over as WireOver, RelayAddresses, Span,
};
use schedule::Episodes;
use units::Nanos;

use super::keeper::{Keeper, Observed};
use super::{Closing, Observer, Rhythm, Setting, conduct};

/// What to disturb, and when.
pub struct DisturbSpec {
    /// The name of the kind of disturbance, for the record.
    pub means: &'static str,
    /// Description for people; one line.
    pub what: String,
    pub pid: Option<u32>,
    pub seed: u64,
    pub episodes: Episodes,
    pub ready: Ready,
}

/// The parts of a disturbance that is ready to be prepared.
pub enum Ready {
    Pause(Victim, PauseMethod),
    Work(Vec<Work>, Option<Victim>),
    Disk { folder: PathBuf, work: Work, writers: u64 },
    Net { listen: SocketAddr, target: SocketAddr, effects: Effects },
}

/// Called for each event, on the thread of the observation. An error before the first episode ends it.
pub type Live<'a> = &'a mut dyn FnMut(DisturbEvent<'_>) -> anyhow::Result<()>;

/// What happens during the observation.
pub enum DisturbEvent<'a> {
    /// The disturbance is prepared, and nothing is disturbed yet.
    Prepared { what: &'a str, guard: u32 },
    /// An episode has ended, or was left out. `zero` is the begin of the schedule on the monotonic clock.
    Episode { report: &'a EpisodeReport, zero: Nanos },
}

/// What was disturbed.
pub struct DisturbObserved {
    pub observed: Observed,
    pub results: DisturbResults,
    pub over: Over,
    /// Whether everything was undone.
    pub is_undone: bool,
    /// Whether it ended with an error, which has been reported already.
    pub is_broken: bool,
}

/// Time to open the record before its zero: without it, a disturbance at zero would begin late.
const OPENING: Nanos = Nanos::from_millis(50);

/// Disturbs as scheduled, undoes everything, and writes the record. The guard and the workers are started with
/// `program`.
///
/// # Errors
///
/// A problem of this host, or an error of `live` before the first episode, in one line. Nothing is disturbed then.
pub fn observe(
    spec: DisturbSpec,
    program: &Program,
    mut setting: Setting<'_>,
    live: Live<'_>,
) -> anyhow::Result<DisturbObserved> {
    setting.derive("seed", spec.seed.to_string());
    setting.claim(|setting| {
        let mut guard = Guard::start(program)?;
        let opened = match open(spec, program, &setting, &mut guard, live) {
            Ok(opened) => opened,
            Err(error) => {
                if let Err(left) = guard.finish() {
                    (setting.environment.notice)(&left.to_string());
                }
                return Err(error);
            }
        };
        let (disturbance, episodes, account) = opened;
        let (stop, underway) = (setting.stop, Some((disturbance, guard)));
        let mut disturbing = Disturbing { underway, episodes, account, stop, live, ended: None };
        // All episodes are one step, and there are no intervals.
        let rhythm =
            Rhythm { from: clock::now(), every: Nanos::MAX, until: Nanos::MAX, closing: Closing::Now };
        conduct(&mut disturbing, &rhythm, stop)?;
        let (over, undone) = disturbing.ended.expect("the loop ends after its step");
        Ok(disturbing.account.finish(over, undone, setting.environment.notice))
    })
}

type Opened = (Box<dyn Disturbance>, Episodes, Account);

/// Prepares the disturbance, reports what is due, and opens the record. If it fails, the guard undoes what is left.
fn open(
    spec: DisturbSpec,
    program: &Program,
    setting: &Setting<'_>,
    guard: &mut Guard,
    live: Live<'_>,
) -> anyhow::Result<Opened> {
    let mut results = DisturbResults {
        means: spec.means.to_owned(),
        what: spec.what,
        pid: spec.pid,
        seed: spec.seed,
        ..DisturbResults::default()
    };
    let Prepared { disturbance, detail, relay } = spec.ready.prepare(program, guard, spec.seed)?;
    if let Some(detail) = detail {
        results.what = format!("{}, {detail}", results.what);
    }
    results.relay = relay;
    let zero = clock::now() + OPENING;
    live(DisturbEvent::Prepared { what: &results.what, guard: guard.pid() })?;
    let keeper = Keeper::begin(setting, ObservationBody::Disturb(results.clone()), Vec::new(), zero)?;
    Ok((disturbance, spec.episodes, Account { keeper, results }))
}

/// A disturbance on its schedule.
struct Disturbing<'a> {
    /// `None` once everything is undone.
    underway: Option<(Box<dyn Disturbance>, Guard)>,
    episodes: Episodes,
    account: Account,
    stop: &'a AtomicBool,
    live: Live<'a>,
    /// How the schedule and the guard ended.
    ended: Option<(Result<Over, DisturbError>, Result<(), DisturbError>)>,
}

impl Observer for Disturbing<'_> {
    fn due(&mut self, now: Nanos, _: Nanos) -> Nanos {
        now
    }

    fn step(&mut self, _: bool) -> bool {
        let Some((mut disturbance, mut guard)) = self.underway.take() else { return true };
        let zero = self.account.keeper.zero();
        let over = disturb(&self.episodes, zero, (&mut *disturbance, &mut guard), self.stop, &mut |moment| {
            match moment {
                Moment::Began { episode, at } => self.account.begin(&episode, at),
                Moment::Over(report) => {
                    // If nobody reads the output any more, the disturbance goes on.
                    let _ = (self.live)(DisturbEvent::Episode { report: &report, zero });
                    self.account.keep(&report);
                }
            }
        });
        // Undoes everything before anything else happens.
        drop(disturbance);
        self.ended = Some((over, guard.finish()));
        true
    }

    fn close(&mut self, _: Nanos, _: Nanos, _: bool) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Sums of what was disturbed so far, and its record.
struct Account {
    keeper: Keeper,
    results: DisturbResults,
}

impl Account {
    /// Adds that an episode has begun: if this process is killed in it, the record says so.
    fn begin(&mut self, episode: &schedule::Episode, at: Nanos) {
        let begin_ns = at.saturating_sub(self.keeper.zero()).0;
        let intended = Span { begin_ns: episode.begin.0, end_ns: episode.end.map(|end| end.0) };
        let real = Some(Span { begin_ns, end_ns: None });
        let begun = Episode { n: episode.n, intended, real, facts: BTreeMap::new(), note: None };
        let text = format!("{} in effect, and not seen to end", self.results.means);
        self.keeper.event(&Event { disturbance: Some(begun), ..Event::new(begin_ns, BEGUN, text) });
    }

    /// Adds an episode that has ended.
    fn keep(&mut self, report: &EpisodeReport) {
        let zero = self.keeper.zero();
        let offset = |at: Nanos| at.saturating_sub(zero).0;
        let real = report
            .done
            .as_ref()
            .map(|done| Span { begin_ns: offset(done.begin), end_ns: done.end.map(offset) });
        let facts = report.done.iter().flat_map(|done| &done.facts);
        let episode = Episode {
            n: report.episode.n,
            intended: Span { begin_ns: report.episode.begin.0, end_ns: report.episode.end.map(|end| end.0) },
            real,
            facts: facts.map(|fact| (fact.name.clone(), fact.value)).collect(),
            note: report.note.clone(),
        };
        let length = report.done.as_ref().and_then(length);
        self.results.episodes += 1;
        self.results.skipped += u64::from(real.is_none());
        self.results.disturbed_ns = self.results.disturbed_ns.saturating_add(length.unwrap_or_default().0);
        let text = match real {
            Some(_) => format!("{} for {}", self.results.means, length_text(length)),
            None => {
                format!("{} not done: {}", self.results.means, report.note.as_deref().unwrap_or("unknown"))
            }
        };
        let at_ns = real.unwrap_or(episode.intended).begin_ns;
        self.keeper.event(&Event { disturbance: Some(episode), ..Event::new(at_ns, EVENT, text) });
    }

    fn finish(
        mut self,
        over: Result<Over, DisturbError>,
        undone: Result<(), DisturbError>,
        notice: &dyn Fn(&str),
    ) -> DisturbObserved {
        let is_undone = undone.is_ok();
        let wrong: Vec<String> =
            over.as_ref().err().into_iter().chain(&undone.err()).map(ToString::to_string).collect();
        let (is_broken, over) = (!wrong.is_empty(), over.unwrap_or(Over::Stopped));
        let elapsed = clock::now().saturating_sub(self.keeper.zero());
        for text in wrong {
            notice(&text);
            self.keeper.event(&Event::new(elapsed.0, "warning", text));
        }
        let (why, state) = match (is_broken, over) {
            (true, _) => (WireOver::Broken, State::Broken),
            (false, Over::Schedule) => (WireOver::Schedule, State::Finished),
            (false, Over::VictimGone) => (WireOver::VictimGone, State::Finished),
            (false, Over::Stopped) => (WireOver::Stopped, State::Interrupted),
        };
        self.results.over = Some(why);
        let observed = self.keeper.finish(state, elapsed, ObservationBody::Disturb(self.results.clone()));
        DisturbObserved { observed, results: self.results, over, is_undone, is_broken }
    }
}

/// How long the disturbance was in effect, if known.
pub fn length(done: &Done) -> Option<Nanos> {
    Some(done.end?.saturating_sub(done.begin))
}

/// A length for people; `an unknown time` if it is not known.
pub fn length_text(length: Option<Nanos>) -> String {
    length.map_or("an unknown time".to_owned(), |length| length.to_string())
}

impl Ready {
    /// Prepares the disturbance; nothing is disturbed yet.
    ///
    /// # Errors
    ///
    /// What is missing or not permitted, in one line.
    fn prepare(self, program: &Program, guard: &mut Guard, seed: u64) -> anyhow::Result<Prepared> {
        Ok(match self {
            Ready::Pause(victim, how) => {
                let disturbance = Box::new(Pause::prepare(victim, how, guard)?);
                Prepared { disturbance, detail: None, relay: None }
            }
            Ready::Work(works, victim) => {
                let workers = Workers::start(program, &works, victim.as_ref(), guard)?;
                Prepared::work(workers)
            }
            Ready::Disk { folder, work, writers } => {
                let each = |folder: &Path| vec![within(&work, folder); writers as usize];
                let workers = Workers::start_in(program, &folder, each, guard)?;
                Prepared::work(workers)
            }
            Ready::Net { listen, target, effects } => {
                let relay = Relay::start(listen, target, effects, seed)?;
                let addresses =
                    RelayAddresses { listen: relay.address().to_string(), target: target.to_string() };
                let detail = format!("relaying {} to {}", addresses.listen, addresses.target);
                Prepared { disturbance: Box::new(relay), detail: Some(detail), relay: Some(addresses) }
            }
        })
    }
}

/// A disturbance that is ready to begin and end at given times.
struct Prepared {
    disturbance: Box<dyn Disturbance>,
    /// Details that are known only once it is prepared, such as process IDs, for people.
    detail: Option<String>,
    /// The addresses of a relay; `None` for other disturbances.
    relay: Option<RelayAddresses>,
}

impl Prepared {
    fn work(workers: Workers) -> Prepared {
        let pids: Vec<String> = workers.pids().iter().map(ToString::to_string).collect();
        let detail = Some(format!("by pid {}", pids.join(", ")));
        Prepared { disturbance: Box::new(workers), detail, relay: None }
    }
}

fn within(work: &Work, own: &Path) -> Work {
    let mut work = work.clone();
    if let Work::Disk { folder, .. } = &mut work {
        *folder = own.to_owned();
    }
    work
}
