//! `parallax profile --diff`: what changed between two profiles.

use std::io::{self, Write};
use std::path::Path;

use anyhow::ensure;
use export::flame::FlameGraph;
use export::pictures;
use findings::{ProfileChange, Samples};
use record::RecordDir;
use record::observation::profile::Picture;
use record::stacks::{Stacks, changes};

use super::sources;
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
        let read = |path: &Path| pictures::read(&sources::file_of(path, picture));
        let (before, after) = (read(before)?, read(after)?);
        if before.is_empty() || after.is_empty() {
            // A change from or to zero has no share.
            continue;
        }
        // Held until it is drawn: nobody puts another directory in its place.
        let _held = RecordDir::make(folder)?;
        let graph = FlameGraph { picture, subtitle: &subtitle, highlight: None };
        drawn.push(pictures::write_difference(folder, graph, &before, &after)?);
        let reported = |stacks: &Stacks| {
            if picture == Picture::OnCpu { stacks.clone() } else { stacks.outside_kernel() }
        };
        let changes = changes(&reported(&before), &reported(&after));
        let samples =
            (picture == Picture::OnCpu).then(|| Samples { before: before.total(), after: after.total() });
        let change = ProfileChange { picture, changes: &changes, samples };
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

/// The pictures that both profiles have.
fn pictures_of(before: &Path, after: &Path) -> anyhow::Result<Vec<Picture>> {
    ensure!(
        !before.exists() || !after.exists() || before.is_dir() == after.is_dir(),
        "`{}` and `{}` are of different kinds; give two results directories or two collapsed files",
        before.display(),
        after.display()
    );
    sources::pictures_of(before)?;
    sources::pictures_of(after)
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
