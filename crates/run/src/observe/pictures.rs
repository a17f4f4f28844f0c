//! The files of a profile: collapsed stacks and flame graphs.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use export::flame::FlameGraph;
use record::RecordError;
use record::observation::profile::Picture;
use record::stacks::Stacks;

/// Maximum size of a file to read; the profile of a large server has some megabytes.
const LONGEST: u64 = 64 << 20;

/// The path of a profile's collapsed stacks.
pub fn collapsed(folder: &Path, picture: Picture) -> PathBuf {
    folder.join(format!("{}.collapsed", picture.name()))
}

/// Writes a profile's stacks, and a flame graph unless there are none.
///
/// # Errors
///
/// When a file cannot be written.
#[cfg(feature = "ebpf")]
pub fn write(folder: &Path, graph: FlameGraph<'_>, stacks: &Stacks) -> anyhow::Result<()> {
    write_file(&collapsed(folder, graph.picture), |out| stacks.write(out))?;
    if stacks.is_empty() {
        return Ok(());
    }
    let path = folder.join(format!("{}.svg", graph.picture.name()));
    write_file(&path, |out| graph.draw(stacks, out))
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
