//! What a plan will cost and what it will be able to tell, before anything is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use units::Nanos;

use super::load::load_commands;
use super::order::PlannedRun;
use super::session::opened;
use super::spec::Experiment;
use super::store::Store;
use crate::command::TrialCommand;

/// One line of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastRun {
    pub run: PlannedRun,
    /// The values of all factors.
    pub name: String,
    /// `None` if nothing says how long the load takes.
    pub expected: Option<Nanos>,
}

/// A plan with its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    pub runs: Vec<ForecastRun>,
    /// The build commands, each once.
    pub builds: Vec<String>,
    /// The comparisons with the primary metric, which are judged together.
    pub comparisons: usize,
}

/// What a run takes besides its load, until a run was made: start, checks and stop of a small server.
const OVERHEAD: Nanos = Nanos::from_millis(500);

impl Experiment {
    /// The plan with its cost, by the file, or by the runs of an earlier directory of the same experiment.
    ///
    /// # Errors
    ///
    /// When there are no runs, or the directory cannot be read.
    pub fn forecast(&self, earlier: Option<&Path>) -> anyhow::Result<Forecast> {
        let runs = self.runs().map_err(anyhow::Error::msg)?;
        let known = earlier.map(walls).transpose()?.unwrap_or_default();
        let of_load = self.load.expected.map(|load| load + OVERHEAD);
        let overall = mean(&known.values().flatten().copied().collect::<Vec<_>>());
        let forecast = |run: &PlannedRun| {
            let name = self.run_name(run);
            let here = known.get(&name).and_then(|walls| mean(walls));
            ForecastRun { run: run.clone(), name, expected: here.or(overall).or(of_load) }
        };
        let mut builds = Vec::new();
        if let Some(build) = self.server.as_ref().and_then(|server| server.build.as_ref()) {
            for run in &runs {
                let mut values = self.values(&run.levels);
                values.push(("results".to_owned(), "{results}".to_owned()));
                let text = build.filled(&values);
                if !builds.contains(&text) {
                    builds.push(text);
                }
            }
        }
        Ok(Forecast {
            comparisons: self.comparisons(&runs),
            runs: runs.iter().map(forecast).collect(),
            builds,
        })
    }

    /// The comparisons of an arm with its base, over all combinations of the other factors.
    fn comparisons(&self, runs: &[PlannedRun]) -> usize {
        let Some(place) = self.compared else { return 0 };
        let first = runs.iter().filter(|run| run.block == 1 && !run.is_twin && run.levels[place] > 0);
        first.count() * (1 + self.also.len())
    }

    /// The commands of a run: name and text. What is only known at its start is left as it is written.
    pub fn commands(&self, run: &PlannedRun) -> Vec<(&'static str, String)> {
        let mut values = self.values(&run.levels);
        let open = ["results", "port", "run", "pid"].map(|name| (name.to_owned(), format!("{{{name}}}")));
        values.extend(open);
        values.push(("block".to_owned(), run.block.to_string()));
        let server = self.server.as_ref().map(|server| ("server", server.start.filled(&values)));
        let loads = load_commands(&self.load, &values, run.block, &PathBuf::from("{run}"), None);
        let loads = loads.into_iter().map(|load| (load.step, load.shown()));
        let shown = |(name, text): (&'static str, String)| {
            let hidden = TrialCommand::new(&text).map_or(String::new(), |command| command.text());
            (name, hidden)
        };
        server.into_iter().chain(loads).map(shown).collect()
    }
}

/// How long the runs of an earlier directory took, by their values.
fn walls(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    let store = Store::open(folder)?;
    let (experiment, plan) = opened(&store)?;
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (number, document) in store.committed()? {
        let run = plan.iter().find(|run| run.number == number).context("a run is not part of its plan")?;
        found.entry(experiment.run_name(run)).or_default().push(document.wall_ns);
    }
    Ok(found)
}

fn mean(values: &[u64]) -> Option<Nanos> {
    values.iter().sum::<u64>().checked_div(values.len() as u64).map(Nanos)
}
