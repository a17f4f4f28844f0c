//! One experiment against another, at each combination of values that both have: a new version a month later, or the
//! same on another host.

use std::path::Path;

use anyhow::ensure;
use comparison::{Arm, Combination};

use super::results::{Results, results};
use super::selection::Selection;
use super::store::Store;

/// The runs of `base` as the base of each combination, and those of `other` beside them; and what must be known before
/// a figure is read, one line each. The runs are not paired: those of a block were made at different times.
///
/// # Errors
///
/// As for [`results`], and when the two have no combination in common.
pub fn results_against(
    base: &Path,
    other: &Path,
    selection: &Selection,
) -> anyhow::Result<(Results, Vec<String>)> {
    let (one, two) = (results(base, selection)?, results(other, selection)?);
    let mut notes = Vec::new();
    if Store::open(base)?.text != Store::open(other)?.text {
        notes.push(format!(
            "the experiment files differ: compare `{}` with `{}`",
            base.join("experiment.toml").display(),
            other.join("experiment.toml").display()
        ));
    }
    let folder = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let names = [folder(base), folder(other)];
    let mut cells = Vec::new();
    let mut alone = 0;
    for cell in &one.cells {
        for (arm, planned) in cell.arms.iter().zip(&cell.planned) {
            let of_other = two.cells.iter().find(|other| other.name == cell.name);
            let found = of_other.and_then(|other| {
                let place = other.arms.iter().position(|candidate| candidate.name == arm.name)?;
                Some((&other.arms[place], other.planned[place]))
            });
            let Some((theirs, of_theirs)) = found else {
                alone += 1;
                continue;
            };
            let name = [arm.name.as_str(), cell.name.as_str()].join(" ").trim().to_owned();
            let arms = vec![unpaired(&names[0], arm), unpaired(&names[1], theirs)];
            cells.push(Combination { name, arms, twin: None, planned: vec![*planned, of_theirs] });
        }
    }
    ensure!(!cells.is_empty(), "the two experiments have no combination of values in common");
    alone += two.cells.iter().map(|cell| cell.arms.len()).sum::<usize>() - cells.len();
    if alone > 0 {
        notes.push(format!("{alone} combinations of values are in one of the two only, and left out"));
    }
    let runs = cells.iter().flat_map(|cell| &cell.arms).map(|arm| arm.runs.len()).sum();
    let planned = cells.iter().flat_map(|cell| &cell.planned).sum();
    let failures = [one.failures, two.failures].concat();
    let name = format!("{} against {}", names[1], names[0]);
    let results = Results { name, cells, planned, committed: runs, failures, is_comparison: true, ..one };
    Ok((results, notes))
}

fn unpaired(name: &str, arm: &Arm) -> Arm {
    let runs = arm.runs.iter().cloned().map(|run| comparison::ComparedRun { block: None, ..run });
    Arm { name: name.to_owned(), command: None, runs: runs.collect() }
}
