//! `parallax report` of what an observing verb has recorded: its text again, from the folder alone.

use std::io;
use std::path::Path;

use record::document::State;

use crate::exit::Exit;
use crate::{report_verb, say, say_notes, terminal};

/// Prints it; with `json` as JSON.
///
/// # Errors
///
/// When the folder holds no such record, or one that cannot be read.
pub fn report(folder: &Path, json: bool, no_color: bool) -> anyhow::Result<Exit> {
    let observed = record::read_observation(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    report_verb::print(&findings::observation_view(&observed)?, json, &mut out, style)?;
    say_notes(&observed.document);
    if observed.document.state == State::Running {
        say("it was cut off, or goes on: its document has no totals yet; series.ndjson has the intervals");
    }
    Ok(Exit::Done)
}
