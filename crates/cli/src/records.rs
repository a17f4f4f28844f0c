//! Records named on the command line, and printing their views.

use std::io::Write;
use std::path::Path;

use findings::view::View;
use report::Style;

use crate::output::printed;

/// The directory of a record; a file within it may be named instead.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if (path.ends_with("run.json") || path.ends_with("search.json")) && path.is_file() => {
            if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            }
        }
        _ => path,
    }
}

/// Prints a view as text, or as JSON.
///
/// # Errors
///
/// When the output cannot be written.
pub fn print(view: &View, json: bool, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
    printed(if json { report::json(view, out) } else { report::text(view, out, style) })
}
