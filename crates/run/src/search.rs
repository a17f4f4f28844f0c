//! A search for the highest rate that holds an objective: probes at rates that `stats::search` chooses, each an
//! ordinary run with its own record, and the result of all of them.

mod opening;
mod plan;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, ensure};
use engine::Controls;
use findings::search::{ProbeJudge, ProbeMeasurement, WARMUP, nearly_all_failed, result};
use record::document::{Document, OptionSource, State};
use record::search::{ProbeOutcome, SearchDocument, write_search};
use stats::search::{Length, Probed, Search, Step};
use units::Nanos;

pub use self::plan::{SearchConduct, SearchOutput, SearchPlan, SearchRequest};
use crate::conduct::{CompletedRun, Conduct, Quiet, conduct};
use crate::environment::Environment;
use crate::folder::ClaimedFolder;
use crate::load;
use crate::options::GivenOptions;
use crate::prepare::{PreparedRun, prepare_given};
use findings::nothing_reached;

/// Length of the initial closed loop: 2 s give the throughput to within 1 %.
const ESTIMATE: Nanos = Nanos::from_secs(2);

/// Pause between probes: work that the server still has to do for one must not fall into the next.
const REST: Nanos = Nanos::from_millis(200);

/// The same after requests without a response: the server may still be working on them.
const LONG_REST: Nanos = Nanos::from_secs(2);

/// How often to check for a stop during a pause.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// A search that has ended.
pub struct CompletedSearch {
    pub document: SearchDocument,
    /// The run that ended the search early, if any: it was cut short, or reached no server.
    pub ended_by: Option<Document>,
}

/// Carries out a search. `None` if no probe was carried out.
///
/// # Errors
///
/// Errors in usage and environment, in one line each. Once a probe has run, its record is kept.
pub fn search<'a>(plan: &'a SearchPlan, with: SearchConduct<'a>) -> anyhow::Result<Option<CompletedSearch>> {
    // Refuses before anything is sent what would be refused at some rate.
    let [prepared, at_rate] = planned(plan, &with.given, with.environment)?;
    let folder = with.folder.to_owned();
    let claim = ClaimedFolder::make(&folder)?;
    ensure!(
        !record::search::is_search(&folder),
        "`{}` already contains a search; choose another directory with -o, or remove it",
        folder.display()
    );
    // With random arrivals, one seed for the whole search, so that one number reproduces it.
    let seed = load::effective_seed(&at_rate.plan);
    let document = opening::document(plan, &prepared, seed, &with);
    let begun = clock::now();
    let mut run = Running { plan, with, seed, folder, begun, document, ended_by: None, hopeless: None };
    let ended = run.search();
    if run.document.probes.is_empty() {
        claim.release();
        return ended.map(|()| None);
    }
    ended?;
    Ok(Some(CompletedSearch { document: run.document, ended_by: run.ended_by }))
}

/// The first runs of a search: the closed loop that estimates the throughput, and a probe at the lowest rate.
///
/// # Errors
///
/// As [`prepare_given`].
pub fn planned(
    plan: &SearchPlan,
    given: &GivenOptions,
    environment: &Environment<'_>,
) -> anyhow::Result<[PreparedRun; 2]> {
    let at = |rate| prepare_given(&plan::probe_options(given, rate, ESTIMATE, None)?, environment);
    Ok([at(None)?, at(Some(plan.aim.from))?])
}

/// A search in progress.
struct Running<'a> {
    plan: &'a SearchPlan,
    with: SearchConduct<'a>,
    seed: Option<u64>,
    folder: PathBuf,
    begun: Nanos,
    document: SearchDocument,
    ended_by: Option<Document>,
    /// Why no rate can hold, if the first probe showed that.
    hopeless: Option<String>,
}

impl Running<'_> {
    fn search(&mut self) -> anyhow::Result<()> {
        let mut search = Search::new(self.plan.aim);
        loop {
            let (rate, length) = match search.step() {
                _ if self.hopeless.is_some() => break,
                Step::Done => break,
                Step::Estimate => (None, ESTIMATE),
                Step::Probe { rate, length } => {
                    let usual = self.plan.objective.length_at(rate, self.plan.usual);
                    let times = if length == Length::Twice { 2 } else { 1 };
                    (Some(rate), Nanos(usual.0 * times))
                }
            };
            match self.probe(rate, length, &mut search)? {
                None => self.keep(&search, State::Running)?,
                Some(state) => return self.keep(&search, state),
            }
        }
        self.keep(&search, State::Finished)
    }

    /// Carries out one probe. Returns the state of the search if this probe ended it, `None` if the search goes on.
    fn probe(
        &mut self,
        rate: Option<f64>,
        length: Nanos,
        search: &mut Search,
    ) -> anyhow::Result<Option<State>> {
        let number = self.document.probes.len() + 1;
        let name = format!("probe-{number:02}");
        let folder = self.folder.join(&name);
        let completed = self.drive(rate, length, &folder)?;
        let cut_short = completed.document.state != State::Finished;
        self.document.subject.address.clone_from(&completed.document.subject.address);
        let measured = ProbeMeasurement::read(&folder, &completed.document, length)?;
        let judge = ProbeJudge {
            objective: &self.plan.objective,
            tolerance: self.plan.aim.tolerance,
            subject: &completed.document.subject,
        };
        let (finding, mut result) = judge.judge(&completed.document, &measured, rate);
        result.folder = name;
        let results = completed.document.results.as_ref().filter(|_| number == 1);
        self.hopeless = results.and_then(nearly_all_failed);
        match rate {
            _ if cut_short => (result.says, result.why) = (ProbeOutcome::Interrupted, String::new()),
            None => {
                (result.says, result.why) =
                    (ProbeOutcome::Estimate, self.hopeless.clone().unwrap_or_default());
                search.note_estimate(Some(measured.ok_per_s()));
            }
            Some(rate) => search.note(Probed { rate, finding, served: measured.ok_per_s() }),
        }
        (self.with.on_probe)(number, &result);
        self.document.probes.push(result);
        if let Some(error) = &completed.aborted {
            (self.with.environment.notice)(&error.to_string());
        }
        if let Some(why) = &completed.unreachable {
            (self.with.environment.notice)(why);
        }
        let state = completed.document.state;
        if cut_short || nothing_reached(&completed.document) {
            self.ended_by = Some(completed.document);
            return Ok(Some(state));
        }
        self.rest(&completed);
        Ok(self.with.stop.load(Ordering::Relaxed).then_some(State::Interrupted))
    }

    /// A probe is an ordinary run, whose spec differs in rate, length and seed.
    fn drive(&self, rate: Option<f64>, length: Nanos, folder: &Path) -> anyhow::Result<CompletedRun> {
        // Each probe has its own seed, so that a rate that is probed again gets different arrivals.
        let seed = self.seed.map(|seed| seed.wrapping_add(self.document.probes.len() as u64));
        let options = plan::probe_options(&self.with.given, rate, WARMUP + length, seed)?;
        let mut prepared = prepare_given(&options, self.with.environment)?;
        for name in ["rate", "duration", "seed"] {
            prepared.given.0.entry(name.to_owned()).and_modify(|given| given.source = OptionSource::Derived);
        }
        if let Some((given, rate)) = prepared.given.0.get_mut("rate").zip(rate) {
            given.texts = vec![plan::exact(rate)?.to_string()];
        }
        let controls = Controls::new(Arc::clone(self.with.stop));
        let with = Conduct {
            folder,
            options: self.with.options.clone(),
            environment: self.with.environment,
            progress: &mut Quiet,
            controls: &controls,
        };
        let completed = conduct(&prepared, with)?;
        match completed.write_error {
            Some(error) => {
                Err(error).context("the record of a probe is incomplete, so the probe cannot be judged")
            }
            None => Ok(completed),
        }
    }

    fn rest(&self, completed: &CompletedRun) {
        let left = |name: &str| ["in_flight", "not_sent"].contains(&name);
        let outcomes = completed.document.results.iter().flat_map(|results| &results.outcomes);
        let is_left = outcomes.into_iter().any(|row| left(&row.outcome));
        let end = clock::now() + if is_left { LONG_REST } else { REST };
        while clock::now() < end && !self.with.stop.load(Ordering::Relaxed) {
            clock::sleep_until(end.min(clock::now() + STOP_EVERY));
        }
    }

    /// Writes the current state of the search into the folder.
    fn keep(&mut self, search: &Search, state: State) -> anyhow::Result<()> {
        self.document.state = state;
        self.document.time.elapsed_ns = Some(clock::now().saturating_sub(self.begun).0);
        let mut found = result(search, &self.document.probes, self.plan.aim.probes);
        if let Some(why) = &self.hopeless {
            found.reason.clone_from(why);
        }
        self.document.answer = Some(found);
        write_search(&self.folder, &self.document)?;
        Ok(())
    }
}
