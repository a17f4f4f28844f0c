//! The committed runs of an experiment as the arms of comparisons, one comparison per combination of the other factors.

use std::collections::BTreeMap;
use std::path::Path;

use comparison::{Arm, Combination, ComparedRun, MetricSettings, Progress, compared_run};
use record::document::{State, VerdictWord};

use super::documents::{LoadUsage, RunDocument, RunState};
use super::order::PlannedRun;
use super::selection::Selection;
use super::session::opened;
use super::spec::{Experiment, LoadKind};
use super::store::Store;
use crate::conduct::last_attempt;

/// What a report of an experiment is made from.
#[derive(Debug)]
pub struct Results {
    pub name: String,
    /// In the order of the file.
    pub cells: Vec<Combination>,
    pub settings: MetricSettings,
    /// Runs of the plan, and those of them that are committed.
    pub planned: usize,
    pub committed: usize,
    /// Runs that failed, by step and cause, with how often that was.
    pub failures: Vec<(String, usize)>,
    /// Whether a factor is compared; otherwise the cells stand next to each other.
    pub is_comparison: bool,
}

impl Results {
    /// How far the experiment has come.
    pub fn progress(&self) -> Progress {
        Progress {
            name: self.name.clone(),
            planned: self.planned,
            committed: self.committed,
            failures: self.failures.clone(),
        }
    }
}

/// Reads the runs of an experiment that are selected.
///
/// # Errors
///
/// When the directory is none of an experiment, for a selection that it does not have, or when a document cannot be
/// read. A record that cannot be read makes an
/// invalid run.
pub fn results(folder: &Path, selection: &Selection) -> anyhow::Result<Results> {
    let store = Store::open(folder)?;
    let (experiment, plan) = opened(&store)?;
    let plan = selection.of(&experiment, plan)?;
    let mut committed = store.committed()?;
    committed.retain(|number, _| plan.iter().any(|run| run.number == *number));
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for failure in committed.values().filter_map(|run| run.failure.as_ref()) {
        *failures.entry(format!("{}: {}", failure.step, failure.cause)).or_default() += 1;
    }
    let cells = cells(&experiment, &plan, |run| {
        committed.get(&run.number).map(|document| compared(&experiment, &store.run(run.number), document))
    });
    let settings = MetricSettings {
        primary: experiment.primary.map(|metric| metric.name.to_owned()),
        named: experiment.also.iter().map(|metric| metric.name.to_owned()).collect(),
        failures: false,
        margins: experiment.margins.clone(),
        // The values of the factors are what differs.
        differences_are_meant: true,
    };
    Ok(Results {
        name: format!("{}{selection}", experiment.name),
        cells,
        settings,
        planned: plan.len(),
        committed: committed.len(),
        failures: failures.into_iter().collect(),
        is_comparison: experiment.compared.is_some(),
    })
}

/// Every combination of the factors that are not compared, with its arms: the base first.
fn cells(
    experiment: &Experiment,
    plan: &[PlannedRun],
    compared: impl Fn(&PlannedRun) -> Option<ComparedRun>,
) -> Vec<Combination> {
    let mut sorted: Vec<&PlannedRun> = plan.iter().collect();
    sorted.sort_by_key(|run| (experiment.cell(&run.levels), run.levels.clone(), run.is_twin, run.block));
    let mut cells: Vec<(Vec<usize>, Combination)> = Vec::new();
    for run in sorted {
        let key = experiment.cell(&run.levels);
        if cells.last().is_none_or(|(known, _)| *known != key) {
            let name = experiment.cell_name(&run.levels);
            cells.push((key, Combination { name, arms: Vec::new(), twin: None, planned: Vec::new() }));
        }
        let (_, cell) = cells.last_mut().expect("one has just been added");
        let found = compared(run);
        let name = experiment.arm_name(run);
        if run.is_twin {
            let twin = cell.twin.get_or_insert_with(|| Arm { name, command: None, runs: Vec::new() });
            twin.runs.extend(found);
            continue;
        }
        // Where `skip` leaves the base out, the other arms have nothing to be compared with.
        if let Some(place) =
            experiment.compared.filter(|place| cell.arms.is_empty() && run.levels[*place] > 0)
        {
            let name = experiment.factors[place].levels[0].label.clone();
            cell.arms.push(Arm { name, command: None, runs: Vec::new() });
            cell.planned.push(0);
        }
        if cell.arms.last().is_none_or(|arm| arm.name != name) {
            cell.arms.push(Arm { name, command: None, runs: Vec::new() });
            cell.planned.push(0);
        }
        cell.arms.last_mut().expect("one has just been added").runs.extend(found);
        *cell.planned.last_mut().expect("there is a count per arm") += 1;
    }
    cells.into_iter().map(|(_, cell)| cell).collect()
}

pub(super) fn compared(experiment: &Experiment, folder: &Path, document: &RunDocument) -> ComparedRun {
    let invalid =
        || ComparedRun { verdict: Some(VerdictWord::Invalid), ..ComparedRun::of_program(BTreeMap::new()) };
    let found = match (&document.state, &experiment.load.kind) {
        (RunState::Failed, _) => invalid(),
        (RunState::Done, LoadKind::Program { import: None, .. }) => {
            document.load.as_ref().map_or_else(invalid, of_program)
        }
        (RunState::Done, _) => {
            let record = compared_run(&last_attempt(folder.join("record")));
            let run = record.ok().flatten().unwrap_or_else(invalid);
            if experiment.load.is_drive() { run } else { with_server(run, document) }
        }
    };
    ComparedRun { block: Some(document.planned.block.to_string()), ..found }
}

/// What another tool cannot know of the server, by the lab's own account. Its record of `drive` has these figures.
fn with_server(mut run: ComparedRun, document: &RunDocument) -> ComparedRun {
    let requests = run.failures.map(|(_, all)| all).filter(|all| *all > 0);
    if let Some((cpu, requests)) = document.server_cpu_ns.zip(requests) {
        run.values.insert("server_cpu_per_request", Ok(cpu as f64 / requests as f64));
    }
    if let Some(bytes) = document.server_memory_bytes {
        run.values.insert("server_memory", Ok(bytes as f64));
    }
    run
}

fn of_program(load: &LoadUsage) -> ComparedRun {
    let known = |value: Option<u64>| value.map(|value| value as f64).ok_or_else(|| "not measured".to_owned());
    let values = BTreeMap::from([
        ("wall_time", Ok(load.wall_ns as f64)),
        ("cpu_time", known(load.cpu_ns.filter(|cpu| *cpu > 0))),
        ("peak_memory", known(load.peak_memory_bytes)),
    ]);
    ComparedRun { state: State::Finished, ..ComparedRun::of_program(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment(plan: &str) -> Experiment {
        let text = format!(
            "format = 1\nname = \"x\"\n[factors]\nserver = {{ role = \"compare\", values = [\"old\", \"new\", \"newest\"] }}\n\
             clients = [1, 2]\n[plan]\nblocks = 6\ntwin = false\n{plan}\n[load]\ncommand = \"true\"\n"
        );
        Experiment::read("x.toml", &text).unwrap()
    }

    fn selected(only: &[&str], without: &[&str]) -> Result<Vec<String>, String> {
        let choices = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let selection = Selection { only: choices(only), without: choices(without) };
        let experiment = experiment("");
        let kept = selection.of(&experiment, experiment.runs().unwrap()).map_err(|why| why.to_string())?;
        let mut names: Vec<String> = kept.iter().map(|run| experiment.run_name(run)).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// If this fails, a report of a part of an experiment has other runs in it, or another base without a word.
    #[test]
    fn a_selection_keeps_the_runs_with_the_values() {
        assert_eq!(selected(&[], &[]).unwrap().len(), 6);
        assert_eq!(selected(&["clients=2", "server=old,new"], &[]).unwrap().len(), 2);
        assert_eq!(selected(&[], &["server=newest"]).unwrap().len(), 4);
        for (only, without, wanted) in [
            ("client=2", "server=new", "there is no factor `client`; there are: server, clients"),
            ("clients=3", "server=new", "`clients` has no value `3`; it has: 1, 2"),
            ("clients=1", "server=old", "`server=old` is left out, with which the others are compared"),
            ("clients=1", "clients=1", "no run is left, where clients=1, without clients=1"),
        ] {
            assert_eq!(selected(&[only], &[without]).unwrap_err(), wanted);
        }
        for text in ["clients", "clients=", "clients=1,"] {
            assert!(text.parse::<super::super::Choice>().is_err(), "{text}");
        }
    }

    /// If this fails, an arm becomes the base of a combination from which the base was skipped.
    #[test]
    fn a_combination_without_its_base_compares_nothing() {
        let experiment = experiment("skip = [{ server = \"old\", clients = 2 }]");
        let cells = cells(&experiment, &experiment.runs().unwrap(), |_| None);
        let arms = |cell: &Combination| cell.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>();
        assert_eq!(cells.iter().map(arms).collect::<Vec<_>>(), vec![["old", "new", "newest"]; 2]);
        assert_eq!((&cells[0].planned, &cells[1].planned), (&vec![6, 6, 6], &vec![0, 6, 6]));
    }
}
