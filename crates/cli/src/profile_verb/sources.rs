//! Existing profiles: results directories, and collapsed stacks of any tool.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use export::pictures;
use record::observation::profile::Picture;

/// All three pictures of a record; of a file, the one that its name shows, or on-CPU.
///
/// # Errors
///
/// When there is no such profile, in one line.
pub fn pictures_of(path: &Path) -> anyhow::Result<Vec<Picture>> {
    ensure!(
        path.exists(),
        "no such profile: `{}`; give a results directory or a collapsed file",
        path.display()
    );
    if path.is_dir() {
        ensure!(
            pictures::collapsed(path, Picture::OnCpu).exists(),
            "`{}` is not a record of `profile`: it has no on-cpu.collapsed",
            path.display()
        );
        return Ok(Picture::ALL.to_vec());
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let known = Picture::ALL.into_iter().find(|picture| picture.name() == name);
    Ok(vec![known.unwrap_or(Picture::OnCpu)])
}

/// The collapsed stacks of a picture: a file in a record, or the file itself.
pub fn file_of(path: &Path, picture: Picture) -> PathBuf {
    if path.is_dir() { pictures::collapsed(path, picture) } else { path.to_owned() }
}
