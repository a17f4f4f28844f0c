//! `parallax profile --diff`: what changed between two profiles.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use export::flame::FlameGraph;
use findings::ProfileChange;
use record::observation::profile::Picture;
use record::stacks::{Stacks, changes};
use run::observe::pictures;

use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::terminal;

/// Compares, prints and draws.
///
/// # Errors
///
/// When a profile cannot be read, or a flame graph cannot be written.
pub fn run(before: &Path, after: &Path, folder: &Path, no_color: bool) -> anyhow::Result<Exit> {
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    let subtitle = format!("{} to {}", before.display(), after.display());
    let mut drawn = Vec::new();
    for picture in pictures_of(before, after)? {
        let file =
            |path: &Path| if path.is_dir() { pictures::collapsed(path, picture) } else { path.to_owned() };
        let (before, after) = (pictures::read(&file(before))?, pictures::read(&file(after))?);
        if before.is_empty() || after.is_empty() {
            // A change from or to zero has no share.
            continue;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
        let graph = FlameGraph { picture, subtitle: &subtitle };
        drawn.push(pictures::write_difference(folder, graph, &before, &after)?);
        let reported = |stacks: &Stacks| {
            if picture == Picture::OnCpu { stacks.clone() } else { stacks.outside_kernel() }
        };
        let changes = changes(&reported(&before), &reported(&after));
        let change = ProfileChange { picture, changes: &changes };
        printed(
            report::text(&findings::profile_change_view(&change), &mut out, style)
                .and_then(|()| writeln!(out)),
        )?;
    }
    ensure!(!drawn.is_empty(), "nothing to compare: one of the two profiles has no samples");
    for path in drawn {
        report_line(format_args!("flame graph: {}", path.display()));
    }
    Ok(Exit::Done)
}

/// All three pictures of two records; for two files, the one that their names show.
fn pictures_of(before: &Path, after: &Path) -> anyhow::Result<Vec<Picture>> {
    for path in [before, after] {
        ensure!(
            path.exists(),
            "no such profile: `{}`; give a results directory or a collapsed file",
            path.display()
        );
    }
    ensure!(
        before.is_dir() == after.is_dir(),
        "`{}` and `{}` are of different kinds; give two results directories or two collapsed files",
        before.display(),
        after.display()
    );
    if before.is_dir() {
        for folder in [before, after] {
            ensure!(
                pictures::collapsed(folder, Picture::OnCpu).exists(),
                "`{}` is not a record of `profile`: it has no on-cpu.collapsed",
                folder.display()
            );
        }
        return Ok(Picture::ALL.to_vec());
    }
    let name = after.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let known = Picture::ALL.into_iter().find(|picture| picture.name() == name);
    Ok(vec![known.unwrap_or(Picture::OnCpu)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_profile_is_told_apart_from_two_sorts_of_profiles() {
        let refused = |before: &Path, after: &Path| pictures_of(before, after).unwrap_err().to_string();
        let (folder, file) = (Path::new(env!("CARGO_MANIFEST_DIR")), Path::new(file!()).file_name().unwrap());
        let file = folder.join("src/profile_verb").join(file);
        assert!(refused(Path::new("/nowhere"), folder).starts_with("no such profile: `/nowhere`"));
        assert!(refused(&file, folder).contains("are of different kinds"));
        assert!(refused(folder, folder).contains("is not a record of `profile`"));
    }
}
