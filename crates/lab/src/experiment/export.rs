//! The runs of an experiment as tables: a row per run, and a row per second of each run of `drive`.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::Context;
use comparison::{ComparedMetric, ComparedRun, Unit};
use export::rows;
use export::table::{Cell, CellKind, Column, TableWriter};
use record::document::VerdictWord;

use super::documents::{RunDocument, RunState};
use super::order::PlannedRun;
use super::results::compared;
use super::session::opened;
use super::spec::Experiment;
use super::store::Store;
use crate::conduct::last_attempt;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    pub runs: u64,
    pub seconds: u64,
    /// Runs whose seconds cannot be read, with the reasons.
    pub unreadable: Vec<String>,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, seconds) = (self.runs, self.seconds);
        write!(
            f,
            "Wrote {runs} runs (runs.csv, runs.parquet) and {seconds} seconds (seconds.csv, seconds.parquet)"
        )?;
        self.unreadable.iter().try_for_each(|why| write!(f, "\nwithout seconds: {}", units::escape_text(why)))
    }
}

/// Writes `runs` and `seconds`, each as CSV and as Parquet, to a new directory. Every run of the plan has a row.
///
/// # Errors
///
/// When the directory is none of an experiment, or the new one exists or cannot be written.
pub fn export(folder: &Path, output: &Path) -> anyhow::Result<Exported> {
    let store = Store::open(folder)?;
    let (experiment, plan) = opened(&store)?;
    let committed = store.committed()?;
    let shown = output.display();
    fs::create_dir(output).with_context(|| format!("cannot create `{shown}`; name a new directory"))?;
    let written = || format!("cannot write to `{shown}`");

    let mut runs = table(output, "runs", run_columns(&experiment)).with_context(written)?;
    for run in &plan {
        let document = committed.get(&run.number);
        let found = document.map(|document| compared(&experiment, &store.run(run.number), document));
        let cells = planned_cells(&experiment, run).into_iter().chain(run_cells(document, found.as_ref()));
        runs.write(cells.collect()).with_context(written)?;
    }
    let runs = runs.finish().with_context(written)?;

    let mut seconds = table(output, "seconds", second_columns(&experiment)).with_context(written)?;
    let mut unreadable = Vec::new();
    for run in &plan {
        let is_done = committed.get(&run.number).is_some_and(|document| document.state == RunState::Done);
        if !is_done || !experiment.load.is_drive() {
            continue;
        }
        let recording = match record::read(&last_attempt(store.run(run.number).join("record"))) {
            Ok(recording) => recording,
            Err(error) => {
                unreadable.push(format!("run {}: {error}", run.number));
                continue;
            }
        };
        for second in &recording.seconds {
            let cells = rows::cells(second).map(Cell::whole);
            let row = planned_cells(&experiment, run).into_iter().chain(cells).collect();
            seconds.write(row).with_context(written)?;
        }
    }
    Ok(Exported { runs, seconds: seconds.finish().with_context(written)?, unreadable })
}

type Table = TableWriter<BufWriter<File>, BufWriter<File>>;

fn table(folder: &Path, name: &str, columns: Vec<Column>) -> io::Result<Table> {
    let create = |end: &str| File::create_new(folder.join(format!("{name}.{end}"))).map(BufWriter::new);
    TableWriter::new(columns, create("csv")?, create("parquet")?)
}

/// The columns that each row of both tables begins with.
const PLANNED: [(&str, CellKind); 3] =
    [("run", CellKind::Whole), ("block", CellKind::Whole), ("twin", CellKind::Truth)];

/// What is known of a run beside its figures.
const OF_RUN: [(&str, CellKind); 13] = [
    // `done`, `failed`, or `missing` if it was not made yet.
    ("state", CellKind::Text),
    ("failed_step", CellKind::Text),
    ("failed_cause", CellKind::Text),
    ("verdict", CellKind::Text),
    ("invalid_by", CellKind::Text),
    ("started_ns", CellKind::Whole),
    ("run_wall_ns", CellKind::Whole),
    ("server_version", CellKind::Text),
    ("server_cpu_ns", CellKind::Whole),
    ("server_resident_bytes", CellKind::Whole),
    ("left_behind", CellKind::Whole),
    ("requests", CellKind::Whole),
    ("failed_requests", CellKind::Whole),
];

fn column((name, kind): (&str, CellKind)) -> Column {
    Column { name: name.to_owned(), kind }
}

fn planned_columns(experiment: &Experiment, others: Vec<Column>) -> Vec<Column> {
    let of_factor = |factor: &super::spec::ExperimentFactor| {
        let name = &factor.name;
        let is_taken =
            others.iter().chain(&PLANNED.map(column)).any(|column| column.name.eq_ignore_ascii_case(name));
        Column { name: if is_taken { format!("factor_{name}") } else { name.clone() }, kind: CellKind::Text }
    };
    let factors: Vec<Column> = experiment.factors.iter().map(of_factor).collect();
    PLANNED.map(column).into_iter().chain(factors).chain(others).collect()
}

fn planned_cells(experiment: &Experiment, run: &PlannedRun) -> Vec<Cell> {
    let label = |(factor, level): (&super::spec::ExperimentFactor, &usize)| {
        Cell::Text(factor.levels[*level].label.clone())
    };
    let planned = [Cell::Whole(run.number as u64), Cell::Whole(run.block as u64), Cell::Truth(run.is_twin)];
    planned.into_iter().chain(experiment.factors.iter().zip(&run.levels).map(label)).collect()
}

fn run_columns(experiment: &Experiment) -> Vec<Column> {
    let of_metric = |metric: ComparedMetric| {
        let unit = match metric.unit {
            Unit::Ns => "ns",
            Unit::PerSecond => "per_s",
            Unit::Bytes => "bytes",
        };
        Column { name: format!("{}_{unit}", metric.name.replace('.', "_")), kind: CellKind::Number }
    };
    let metrics = ComparedMetric::all().map(of_metric);
    let others: Vec<Column> = OF_RUN.map(column).into_iter().chain(metrics).collect();
    planned_columns(experiment, others)
}

fn second_columns(experiment: &Experiment) -> Vec<Column> {
    let others = rows::COLUMNS.map(|name| column((name, CellKind::Whole)));
    planned_columns(experiment, others.to_vec())
}

/// In the order of [`OF_RUN`], and all metrics.
fn run_cells(document: Option<&RunDocument>, found: Option<&ComparedRun>) -> Vec<Cell> {
    let state = match document.map(|document| document.state) {
        Some(RunState::Done) => "done",
        Some(RunState::Failed) => "failed",
        None => "missing",
    };
    let failure = document.and_then(|document| document.failure.as_ref());
    let failures = found.and_then(|found| found.failures);
    let whole = |of: &dyn Fn(&RunDocument) -> Option<u64>| Cell::whole(document.and_then(of));
    let verdict = found.and_then(|found| found.verdict).map(|word| match word {
        VerdictWord::Valid => "valid",
        VerdictWord::Degraded => "degraded",
        VerdictWord::Invalid => "invalid",
    });
    let of_run = [
        Cell::text(Some(state)),
        Cell::text(failure.map(|failure| failure.step.as_str())),
        Cell::text(failure.map(|failure| failure.cause.as_str())),
        Cell::text(verdict),
        Cell::text(found.and_then(|found| found.invalid_by.as_deref())),
        whole(&|document| Some(document.started_ns)),
        whole(&|document| Some(document.wall_ns)),
        Cell::text(document.and_then(|document| document.version.as_deref())),
        whole(&|document| document.server_cpu_ns),
        whole(&|document| document.server_memory_bytes),
        whole(&|document| Some(document.left_behind as u64)),
        Cell::whole(failures.map(|(_, all)| all)),
        Cell::whole(failures.map(|(failed, _)| failed)),
    ];
    let of_metric = |metric: ComparedMetric| {
        let value = found.and_then(|found| found.value(&metric).ok());
        value.filter(|value| value.is_finite()).map_or(Cell::Absent, Cell::Number)
    };
    of_run.into_iter().chain(ComparedMetric::all().map(of_metric)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the cells of a row are under the names of other columns, or two columns have one name.
    #[test]
    fn every_column_has_a_cell_and_a_name_of_its_own() {
        let text = "format = 1\nname = \"x\"\n[factors]\nstate = [1, 2]\nok = [\"a\"]\nclient = [\"go\"]\n\
            [load]\ncommand = \"true\"\n";
        let experiment = Experiment::read("x.toml", text).unwrap();
        let run = experiment.runs().unwrap().remove(0);
        let planned = planned_cells(&experiment, &run).len();
        let names = |columns: Vec<Column>| columns.into_iter().map(|column| column.name).collect::<Vec<_>>();
        let (runs, seconds) = (names(run_columns(&experiment)), names(second_columns(&experiment)));
        assert_eq!(runs.len(), planned + run_cells(None, None).len());
        assert_eq!(runs[3], "factor_state");
        assert_eq!(seconds.len(), planned + rows::COLUMNS.len());
        assert_eq!(seconds[3..6], ["state", "factor_ok", "client"]);
        for mut names in [runs, seconds] {
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        }
    }
}
