//! The files of a profile: collapsed stacks and flame graphs.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use record::RecordError;
use record::observation::Observation;
use record::observation::profile::{Picture, ProfiledProcess};
use record::stacks::Stacks;
use record::stacks::focus::Focus;
use units::Nanos;

use crate::flame::{FlameGraph, FocusPart};

/// Maximum size of a file to read; the profile of a large server has some megabytes.
const LONGEST: u64 = 64 << 20;

/// The path of a profile's collapsed stacks.
pub fn collapsed(folder: &Path, picture: Picture) -> PathBuf {
    folder.join(format!("{}.collapsed", picture.name()))
}

/// The subtitle of a profile's flame graphs: the first process, and when it was observed for how long.
pub fn subtitle(document: &Observation, length: Nanos, processes: &[ProfiledProcess]) -> String {
    let name = processes.first().and_then(|process| process.name.as_deref()).unwrap_or("a process");
    format!("{name}, {length} from {}", document.time.started)
}

/// Writes a profile's stacks, and a flame graph unless there are none.
///
/// # Errors
///
/// When a file cannot be written.
pub fn write(folder: &Path, graph: FlameGraph<'_>, stacks: &Stacks) -> anyhow::Result<()> {
    write_file(&collapsed(folder, graph.picture), |out| stacks.write(out))?;
    if stacks.is_empty() {
        return Ok(());
    }
    write_graph(folder, graph, stacks).map(drop)
}

/// Draws a picture, and returns the path of the flame graph.
///
/// # Errors
///
/// When there are no stacks, or the file cannot be written.
pub fn write_graph(folder: &Path, graph: FlameGraph<'_>, stacks: &Stacks) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("{}.svg", graph.picture.name()));
    write_file(&path, |out| graph.draw(stacks, out))?;
    Ok(path)
}

/// Draws the stacks with a frame, its callers and its callees, and returns the paths of the flame graphs. The titles
/// call the frame `label`.
///
/// # Errors
///
/// When no stack has the frame, or a file cannot be written.
pub fn write_focus(
    folder: &Path,
    graph: FlameGraph<'_>,
    label: &str,
    focus: &Focus,
) -> anyhow::Result<Vec<PathBuf>> {
    let draw = |part: FocusPart| {
        let stacks = match part {
            FocusPart::Through => &focus.through,
            FocusPart::Callers => &focus.to_root,
            FocusPart::Callees => &focus.to_leaf,
        };
        let path = folder.join(format!("{}.{}.svg", graph.picture.name(), part.name()));
        write_file(&path, |out| graph.draw_focus(part, label, stacks, out))?;
        Ok(path)
    };
    FocusPart::ALL.into_iter().map(draw).collect()
}

/// Draws what changed between two profiles, and returns the path of the flame graph.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write_difference(
    folder: &Path,
    graph: FlameGraph<'_>,
    before: &Stacks,
    after: &Stacks,
) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("{}.diff.svg", graph.picture.name()));
    write_file(&path, |out| graph.draw_difference(before, after, out))?;
    Ok(path)
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    record::replace_file(path, write).with_context(|| format!("cannot write {}", path.display()))
}

/// Reads collapsed stacks.
///
/// # Errors
///
/// When the file cannot be read, or does not contain collapsed stacks.
pub fn read(path: &Path) -> anyhow::Result<Stacks> {
    let shown = path.display();
    let bytes = match record::read_file(path, LONGEST) {
        Err(RecordError::TooLarge { .. }) => {
            bail!("{shown} is larger than {} MiB; compare shorter profiles", LONGEST >> 20)
        }
        read => read?.with_context(|| format!("{shown} is missing"))?,
    };
    Stacks::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|(line, why)| anyhow!("line {line} of {shown} is not a collapsed stack: {why}"))
}
