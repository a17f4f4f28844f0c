//! The effective value of every option, defaults included: a default that mattered must be in the record.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use engine::Plan;
use record::document::{EffectiveOption, OptionSource};

type Options = BTreeMap<String, EffectiveOption>;

/// All options of `drive`, by long name, as they took effect.
///
/// `command` defines the options that `matches` were read by.
pub fn effective(command: &Command, matches: &ArgMatches, plan: &Plan, url: &str) -> Options {
    let mut options: Options = command
        .get_arguments()
        .filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"))
        .map(|argument| {
            let id = argument.get_id().as_str();
            (argument.get_long().unwrap_or(id).to_owned(), typed(matches, id))
        })
        .collect();
    derive(&mut options, "callers", plan.pool.callers.to_string());
    derive(&mut options, "workers", plan.workers.to_string());
    derive(&mut options, "url", url.to_owned());
    if let Some(window) = plan.window {
        derive(&mut options, "duration", format!("{}ns", window.0));
    }
    options
}

/// As typed, or clap's default; empty where there is neither.
fn typed(matches: &ArgMatches, id: &str) -> EffectiveOption {
    let value = matches
        .get_raw(id)
        .map(|values| values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(", "))
        .unwrap_or_default();
    let source = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => OptionSource::Given,
        _ => OptionSource::Default,
    };
    EffectiveOption { value, source }
}

/// Puts in what was worked out for an option that was not given.
fn derive(options: &mut Options, name: &str, value: String) {
    let option = options.get_mut(name).expect("only options that exist are derived");
    if option.value.is_empty() {
        *option = EffectiveOption { value, source: OptionSource::Derived };
    }
}
