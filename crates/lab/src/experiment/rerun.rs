//! Runs that are made again: those that failed or are invalid, with their neighbours. The rule is the same for every
//! experiment, so that nobody chooses runs by their results.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use record::document::VerdictWord;

use super::documents::{JournalEvent, RunDocument};
use super::order::PlannedRun;
use super::results::compared;
use super::session::opened;
use super::spec::Experiment;
use super::store::Store;

/// A run is made again so many times at most: what fails each time fails for a reason.
const MOST_TIMES: usize = 3;

/// Which runs are made again, and which are not although they have no figures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reruns {
    /// By number, with what is wrong; neighbours have nothing of their own.
    pub again: BTreeMap<usize, Option<String>>,
    /// Runs that were made again as often as a run may be.
    pub given_up: Vec<usize>,
}

impl Reruns {
    /// The lines for a user.
    pub fn lines(&self) -> Vec<String> {
        let again = self.again.iter().map(|(run, fault)| {
            let why = fault.as_deref().unwrap_or("it is compared with one of these");
            format!("run {run} is made again: {why}")
        });
        let over = self.given_up.iter();
        let over = over.map(|run| format!("run {run} was made again three times, and stays as it is"));
        let lines: Vec<String> = again.chain(over).collect();
        if lines.is_empty() { vec!["no run failed or is invalid".to_owned()] } else { lines }
    }
}

/// Sets these runs aside; [`super::carry_on`] makes them.
///
/// # Errors
///
/// When another process carries the experiment out, or the directory is none of an experiment.
pub fn set_aside_invalid(folder: &Path) -> anyhow::Result<Reruns> {
    let store = Store::open(folder)?;
    let _lock = store.lock()?;
    let (experiment, plan) = opened(&store)?;
    let committed = store.committed()?;
    let fault = |run: &PlannedRun| fault(&experiment, &store, run, committed.get(&run.number)?);
    let faults = plan.iter().filter_map(|run| Some((run.number, fault(run)?))).collect();
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    store.superseded()?.into_iter().for_each(|run| *times.entry(run).or_default() += 1);
    let is_there = |run: &PlannedRun| committed.contains_key(&run.number);
    let reruns = chosen(&experiment, &plan, &faults, &times, is_there);
    let mut journal = store.journal()?;
    for &run in reruns.again.keys() {
        let folder = store.supersede(run)?;
        journal.note(JournalEvent::Superseded { run, folder })?;
    }
    Ok(reruns)
}

/// Why a run has no figures that count.
fn fault(experiment: &Experiment, store: &Store, run: &PlannedRun, document: &RunDocument) -> Option<String> {
    if let Some(failure) = &document.failure {
        return Some(format!("failed: {}: {}", failure.step, failure.cause));
    }
    let found = compared(experiment, &store.run(run.number), document);
    let is_invalid = found.verdict == Some(VerdictWord::Invalid);
    is_invalid.then(|| format!("invalid: {}", found.invalid_by.as_deref().unwrap_or("it has no record")))
}

/// Arms are compared within a block: with one run, all that it is compared with is made again.
fn chosen(
    experiment: &Experiment,
    plan: &[PlannedRun],
    faults: &BTreeMap<usize, String>,
    times: &BTreeMap<usize, usize>,
    is_there: impl Fn(&PlannedRun) -> bool,
) -> Reruns {
    let group = |run: &PlannedRun| {
        let own = if experiment.compared.is_some() { 0 } else { run.number };
        (run.block, experiment.cell(&run.levels), own)
    };
    let is_over = |run: &PlannedRun| times.get(&run.number).is_some_and(|times| *times >= MOST_TIMES);
    let faulty = || plan.iter().filter(|run| faults.contains_key(&run.number));
    let groups: BTreeSet<_> = faulty().filter(|run| !is_over(run)).map(group).collect();
    let again = plan.iter().filter(|run| groups.contains(&group(run)) && is_there(run));
    Reruns {
        again: again.map(|run| (run.number, faults.get(&run.number).cloned())).collect(),
        given_up: faulty().filter(|run| !groups.contains(&group(run))).map(|run| run.number).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(role: &str, faulty: &[usize], times: &[(usize, usize)]) -> (Vec<usize>, Vec<usize>) {
        let text = format!(
            "format = 1\nname = \"x\"\n[factors]\nserver = {{ {role} values = [\"old\", \"new\"] }}\nclients = [1, 2]\n\
             [plan]\nblocks = 2\ntwin = false\norder = \"as-written\"\n[load]\ncommand = \"true\"\n"
        );
        let experiment = Experiment::read("x.toml", &text).unwrap();
        let faults = faulty.iter().map(|&run| (run, "failed".to_owned())).collect();
        let times = times.iter().copied().collect();
        let plan = experiment.runs().unwrap();
        let reruns = chosen(&experiment, &plan, &faults, &times, |run| run.number < 8);
        (reruns.again.into_keys().collect(), reruns.given_up)
    }

    /// If this fails, arms of one block are compared that were made at different times, or good runs are made again.
    #[test]
    fn neighbours_are_made_again_with_a_run() {
        let compare = "role = \"compare\",";
        let (one, none) = again(compare, &[2], &[]);
        assert_eq!((one.len(), one.contains(&2), none), (2, true, vec![]));
        // Each run stands for itself.
        assert_eq!(again("", &[2], &[]), (vec![2], vec![]));
        // The last run of the plan was not made yet.
        assert_eq!(again("", &[8, 7], &[]).0, [7]);
        assert_eq!(again(compare, &[], &[]), (vec![], vec![]));
        assert_eq!(again("", &[2, 3], &[(2, 3), (3, 2)]), (vec![3], vec![2]));
    }
}
