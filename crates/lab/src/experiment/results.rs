//! The committed runs of an experiment as the arms of comparisons, one comparison per combination of the other factors.

use std::collections::BTreeMap;
use std::path::Path;

use comparison::{Arm, Combination, ComparedRun, MetricSettings, compared_run};
use record::document::{State, VerdictWord};

use super::documents::{LoadUsage, RunDocument, RunState};
use super::order::PlannedRun;
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

/// Reads the runs of an experiment.
///
/// # Errors
///
/// When the directory is none of an experiment, or a document cannot be read. A record that cannot be read makes an
/// invalid run.
pub fn results(folder: &Path) -> anyhow::Result<Results> {
    let store = Store::open(folder)?;
    let (experiment, plan) = opened(&store)?;
    let committed = store.committed()?;
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
        name: experiment.name.clone(),
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
        if cell.arms.last().is_none_or(|arm| arm.name != name) {
            cell.arms.push(Arm { name, command: None, runs: Vec::new() });
            cell.planned.push(0);
        }
        cell.arms.last_mut().expect("one has just been added").runs.extend(found);
        *cell.planned.last_mut().expect("there is a count per arm") += 1;
    }
    cells.into_iter().map(|(_, cell)| cell).collect()
}

fn compared(experiment: &Experiment, folder: &Path, document: &RunDocument) -> ComparedRun {
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
