//! `parallax drive --search`: options to a search, and what is printed.

use std::io::{self, Write};

use record::search::ProbeResult;
use run::effective::EffectiveOptions;
use run::folder::new_folder;
use run::options::GivenOptions;
use run::search::{SearchConduct, SearchOutput, SearchPlan, SearchRequest, search};

use super::args::Args;
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::printed;
use crate::{signals, terminal};

/// The search that the options ask for, if they ask for one.
pub fn request(args: &Args) -> Option<SearchRequest> {
    Some(SearchRequest {
        objective: args.search.clone()?,
        from: args.search_from,
        to: args.search_to,
        tolerance: args.search_tolerance.0,
        probe_duration: args.probe_duration,
        probes: args.probes,
    })
}

/// Searches for the maximum rate, writes the record and prints the result.
///
/// # Errors
///
/// Wrong usage or a problem of this host, in one line.
pub fn run(request: &SearchRequest, given: GivenOptions, options: EffectiveOptions) -> anyhow::Result<Exit> {
    let plan = SearchPlan::of(request)?;
    let SearchOutput { json, quiet, no_color, folder } = SearchOutput::of(&given);
    let folder = folder.unwrap_or_else(new_folder);
    let process = Process::new();
    let environment = process.environment();
    let mut on_probe = |number: usize, result: &ProbeResult| {
        if !quiet {
            let _ = writeln!(io::stderr(), "{}", findings::probe_line(number, result));
        }
    };
    let stop = signals::stop_flag()?;
    let with = SearchConduct {
        given,
        folder: &folder,
        options,
        environment: &environment,
        stop: &stop,
        on_probe: &mut on_probe,
    };
    let Some(completed) = search(&plan, with)? else { return Ok(Exit::Interrupted) };
    let mut out = io::stdout();
    printed(if json {
        report::json(&completed.document, &mut out)
    } else {
        let style = terminal::style(&out, no_color);
        report::text(&findings::search_view(&completed.document, Some(&folder)), &mut out, style)
    })?;
    Ok(match &completed.ended_by {
        Some(run) => Exit::of(run),
        None => Exit::of_search(&completed.document),
    })
}
