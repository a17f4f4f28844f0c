//! What the records of the observing verbs share: the first document, and the effective values of the options.

use std::collections::BTreeMap;

use clap::{ArgMatches, Command, CommandFactory};
use record::document::{EffectiveOption, OptionSource};
use record::observation::{Observation, ObservationBody};

use crate::drive;

/// The document of an observation that starts now; `started` is the time on the monotonic clock.
pub fn opening(
    body: ObservationBody,
    options: BTreeMap<String, EffectiveOption>,
    started: units::Nanos,
) -> Observation {
    // The wall clock is read later than the monotonic one that it dates.
    let wall = clock::wall().saturating_sub(clock::now().saturating_sub(started));
    let mut observation = Observation::new(env!("CARGO_PKG_VERSION"), body);
    observation.command = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
    observation.options = options;
    observation.time.started = run::conduct::timestamp(wall).to_string();
    observation.time.started_monotonic_ns = started.0;
    observation.host = run::conduct::host_facts();
    observation
}

/// All options of `verb`, by long name, with their given or default values.
pub fn effective(verb: &str, matches: &ArgMatches) -> BTreeMap<String, EffectiveOption> {
    let command = crate::Cli::command();
    effective_of(command.find_subcommand(verb).expect("the verb is one of this program"), matches)
}

/// The same for a subcommand of a verb.
pub fn effective_of(command: &Command, matches: &ArgMatches) -> BTreeMap<String, EffectiveOption> {
    let arguments =
        command.get_arguments().filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"));
    let named = arguments.map(|argument| {
        let name = argument.get_long().unwrap_or(argument.get_id().as_str());
        (name.to_owned(), drive::typed(matches, argument))
    });
    named.collect()
}

/// Sets the value of an option that was derived because it was not given.
pub fn derive(options: &mut BTreeMap<String, EffectiveOption>, name: &str, value: String) {
    if let Some(option) = options.get_mut(name).filter(|option| option.source != OptionSource::Given) {
        *option = EffectiveOption { value, source: OptionSource::Derived };
    }
}
