//! How far an experiment has come, read from its directory.

use std::path::{Path, PathBuf};

use anyhow::bail;
use record::escape_text;
use units::Nanos;

use super::documents::{RunDocument, RunState};
use super::session::opened;
use super::store::Store;

/// Where an experiment is, without carrying it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub name: String,
    pub runs: usize,
    pub done: usize,
    /// Number, values and cause of each run that failed.
    pub failed: Vec<(usize, String, String)>,
    /// Runs that were begun and cut off, each time counted.
    pub aborted: usize,
    pub superseded: usize,
    /// Whether a process carries it out now.
    pub is_running: bool,
    /// How long the runs that are left will take, by those that were made; `None` before the first.
    pub expected: Option<Nanos>,
    pub folder: PathBuf,
}

/// Reads where an experiment is.
///
/// # Errors
///
/// When the directory is none of an experiment.
pub fn status(folder: &Path) -> anyhow::Result<Status> {
    let store = Store::open(folder)?;
    let (experiment, plan) = opened(&store)?;
    let committed = store.committed()?;
    let name = |number: usize| {
        let run = plan.iter().find(|run| run.number == number);
        run.map_or_else(String::new, |run| experiment.run_name(run))
    };
    let failure = |(number, run): (&usize, &RunDocument)| {
        let failure = run.failure.as_ref()?;
        Some((*number, name(*number), format!("{}: {}", failure.step, failure.cause)))
    };
    if let Some(stranger) = committed.keys().find(|number| !plan.iter().any(|run| run.number == **number)) {
        bail!("run {stranger} in `{}` is not part of the plan", store.folder().display());
    }
    let walls: Vec<u64> = committed.values().map(|run| run.wall_ns).collect();
    let mean = walls.iter().sum::<u64>().checked_div(walls.len() as u64);
    let left = (plan.len() - committed.len()) as u64;
    Ok(Status {
        name: store.plan.name.clone(),
        runs: plan.len(),
        done: committed.values().filter(|run| run.state == RunState::Done).count(),
        failed: committed.iter().filter_map(failure).collect(),
        aborted: store.aborted()?.len(),
        superseded: store.superseded()?.len(),
        is_running: store.lock().is_err(),
        expected: mean.map(|mean| Nanos(mean.saturating_mul(left))),
        folder: store.folder().to_owned(),
    })
}

impl Status {
    /// The lines for a user.
    pub fn text(&self) -> String {
        let open = self.runs - self.done - self.failed.len();
        let is_running = if self.is_running { "running" } else { "not running" };
        let mut lines = vec![format!(
            "{}: {} of {} runs done, {} failed, {open} left; {is_running}",
            self.name,
            self.done,
            self.runs,
            self.failed.len()
        )];
        lines.extend(self.expected.filter(|_| open > 0).map(|left| format!("about {left} left")));
        if self.aborted + self.superseded > 0 {
            let (aborted, superseded) = (self.aborted, self.superseded);
            lines.push(format!("{aborted} cut off and {superseded} made again; neither is counted"));
        }
        let failed = self.failed.iter();
        lines.extend(failed.map(|(number, name, cause)| format!("run {number} {name} failed: {cause}")));
        if open > 0 && !self.is_running {
            lines.push(format!("continue with `parallax lab resume {}`", self.folder.display()));
        }
        lines.iter().map(|line| escape_text(line) + "\n").collect()
    }
}
