//! `parallax report` for a record of an observing verb: prints its text again, from the record alone.

use std::io;
use std::path::Path;

use findings::WatchQuery;
use record::document::State;
use record::observation::ObservationBody;

use crate::exit::Exit;
use crate::output::{report_line, report_notes};
use crate::{records, terminal};

/// Prints the report; with `json` as JSON. A profile that was ended early has the exit code of its run.
///
/// # Errors
///
/// When the directory has no such record, or it cannot be read.
pub fn report(folder: &Path, json: bool, no_color: bool, query: &WatchQuery) -> anyhow::Result<Exit> {
    let observed = record::read_observation(folder)?;
    let mut out = io::stdout();
    let style = terminal::style(&out, no_color);
    records::print(&findings::observation_view(&observed, query)?, json, &mut out, style)?;
    report_notes(&observed.document);
    if observed.document.state == State::Running {
        report_line(match observed.document.body {
            ObservationBody::Watch(_) if !observed.lines.is_empty() => {
                "the observation was cut off or is still in progress: these are the sums of its series; its tables (statements, users, clients, slow requests, preemptors) are saved every 10 s or less often, and are older"
            }
            _ => {
                "the observation was cut off or is still in progress, so there are no totals; series.ndjson has the intervals"
            }
        });
    }
    let is_profile = matches!(observed.document.body, ObservationBody::Profile(_));
    let is_short = observed.document.state == State::Interrupted;
    Ok(if is_profile && is_short { Exit::Interrupted } else { Exit::Done })
}
