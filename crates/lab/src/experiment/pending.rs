//! Which runs of a plan are still to be made, and in which order: pure, from what is committed.

use std::collections::{BTreeMap, BTreeSet};

use super::documents::RunDocument;
use super::order::PlannedRun;
use super::spec::Experiment;

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    /// In their order: that of the plan, and in each block those last that were begun before.
    pub runs: Vec<PlannedRun>,
    /// Committed runs that are made again, because their neighbours will be made too long after them.
    pub stale: Vec<usize>,
}

/// Neighbours that are further apart do not share a state of the host.
const LONGEST_GAP_NS: u64 = 3600 * 1_000_000_000;

/// What is left of a plan at `now_ns`, by the wall clock, on the boot `boot_id`.
pub(crate) fn pending(
    experiment: &Experiment,
    plan: &[PlannedRun],
    committed: &BTreeMap<usize, RunDocument>,
    begun: &BTreeSet<usize>,
    (now_ns, boot_id): (u64, &str),
) -> Pending {
    let neighbours = |run: &PlannedRun| (run.block, experiment.cell(&run.levels));
    let open: BTreeSet<_> =
        plan.iter().filter(|run| !committed.contains_key(&run.number)).map(neighbours).collect();
    let is_old =
        |run: &RunDocument| run.boot_id != boot_id || now_ns.saturating_sub(run.started_ns) > LONGEST_GAP_NS;
    let is_stale = |run: &&PlannedRun| {
        experiment.compared.is_some()
            && open.contains(&neighbours(run))
            && committed.get(&run.number).is_some_and(is_old)
    };
    let stale: Vec<usize> = plan.iter().filter(is_stale).map(|run| run.number).collect();
    let is_left = |run: &&PlannedRun| !committed.contains_key(&run.number) || stale.contains(&run.number);
    let mut runs: Vec<PlannedRun> = plan.iter().filter(is_left).cloned().collect();
    runs.sort_by_key(|run| (run.block, begun.contains(&run.number), run.number));
    Pending { runs, stale }
}
