//! `parallax report` of what an observing verb has recorded: its text again, from the folder alone.

use std::io;
use std::path::Path;

use record::document::State;

use crate::exit::Exit;
use crate::{printed, say, say_notes, terminal};

/// Prints it; with `json` the document alone.
///
/// # Errors
///
/// When the folder holds no such record, or one that cannot be read.
pub fn report(folder: &Path, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let observed = record::read_observation(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    printed(if json {
        report::json(&observed.document, &mut out)
    } else {
        findings::observation_view(&observed).and_then(|view| report::text(&view, &mut out, style))
    })?;
    say_notes(&observed.document);
    if observed.document.state == State::Running {
        say("it was cut off, or goes on: its document has no totals yet; series.ndjson has the intervals");
    }
    Ok(Exit::Done)
}
