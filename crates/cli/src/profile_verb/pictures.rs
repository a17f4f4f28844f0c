//! The files of a profile: collapsed stacks and flame graphs.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, ensure};
use export::flame::FlameGraph;
use record::observation::profile::Picture;
use record::stacks::Stacks;

/// Limit of what is read; the profile of a large server has some megabytes.
const LONGEST: u64 = 512 << 20;

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

/// Draws what changed; false if there is nothing to compare.
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
    let make = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    make().with_context(|| format!("cannot write {}", path.display()))
}

/// Reads collapsed stacks.
///
/// # Errors
///
/// When the file cannot be read, or does not contain collapsed stacks.
pub fn read(path: &Path) -> anyhow::Result<Stacks> {
    let shown = path.display();
    let length = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?.len();
    ensure!(length <= LONGEST, "{shown} is larger than {} MiB; compare shorter profiles", LONGEST >> 20);
    let bytes = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    Stacks::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|(line, why)| anyhow!("line {line} of {shown} is not a collapsed stack: {why}"))
}
