//! From what clap found to the options of a run, and which of them each mode uses.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{bail, ensure};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use record::document::{EffectiveOption, OptionSource};
use run::effective::EffectiveOptions;
use run::options::{GivenOptions, Group, named};

/// What `drive` is asked to do with its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One run of URLs or targets.
    Run,
    /// One run of a scenario file.
    Scenario,
    Search,
    Calibrate,
}

impl Mode {
    /// Why this mode does not use the options of `group`; `None` if it uses them.
    pub fn refuses(self, group: Group) -> Option<&'static str> {
        use Group as G;
        match (self, group) {
            (Mode::Run, G::Scenario) => Some("is for a scenario; name a file that ends in .toml"),
            (Mode::Scenario, G::Request) => {
                Some("is for a URL; a scenario has method, headers and body under its [[request]]")
            }
            (Mode::Scenario, G::Expectation) => Some("is for a URL; a scenario has expect under [defaults]"),
            (Mode::Search, G::Schedule) => {
                Some("cannot be used with --search, which sets the rate and length of each probe")
            }
            (Mode::Search, G::Thresholds) => {
                Some("cannot be used with --search, which judges by its objective")
            }
            (Mode::Search, G::Requests | G::Sinks | G::Observers) => {
                Some("cannot be used with --search, which makes several runs")
            }
            (Mode::Calibrate, G::Client | G::Printing) => None,
            (Mode::Calibrate, _) => Some(
                "cannot be used with --calibrate, which uses only -c, --pipeline, --workers, --pace and --stamps",
            ),
            _ => None,
        }
    }

    /// Refuses the first option that this mode does not use.
    ///
    /// # Errors
    ///
    /// One line that names the option and the mode.
    pub fn check(self, given: &GivenOptions) -> anyhow::Result<()> {
        let driven = if given.names_scenario() { Mode::Scenario } else { Mode::Run };
        for name in given.0.keys() {
            let group = named(name).map_or(Group::Users, |option| option.group);
            let of_driven = || if self == Mode::Search { driven.refuses(group) } else { None };
            if let Some(why) = self.refuses(group).or_else(of_driven) {
                bail!("--{name} {why}");
            }
        }
        Ok(())
    }
}

/// The options of a run that were given on the command line.
pub fn given(command: &Command, matches: &ArgMatches) -> GivenOptions {
    let mut given = GivenOptions::default();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let name = argument.get_long().unwrap_or(id);
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        if !is_typed || !(named(name).is_some() || name == "callers") {
            continue;
        }
        match argument.get_action() {
            ArgAction::SetTrue => given.set(name, ["true"]),
            _ => given.set(name, raw(matches, id)),
        }
    }
    given
}

fn raw(matches: &ArgMatches, id: &str) -> Vec<String> {
    let texts = matches.get_raw(id).into_iter().flatten();
    texts.map(|text: &OsStr| text.to_string_lossy().into_owned()).collect()
}

/// The options of the verb that are not part of a run, for the record; `--spec` and `--print-spec` are not recorded.
pub fn other_options(command: &Command, matches: &ArgMatches) -> EffectiveOptions {
    const NO_TRACE: [&str; 5] = ["help", "version", "callers", "spec", "print_spec"];
    let others = command.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        named(argument.get_long().unwrap_or(id)).is_none() && !NO_TRACE.contains(&id)
    });
    let typed = others.map(|argument| {
        let name = argument.get_long().unwrap_or(argument.get_id().as_str());
        let mut option = typed(matches, argument);
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        if option.value.is_empty() && option.source != OptionSource::Given && !is_flag {
            let value = if name == "probe-duration" { "as the objective needs" } else { "none" };
            option = EffectiveOption { value: value.to_owned(), source: OptionSource::Derived };
        }
        (name.to_owned(), option)
    });
    typed.collect()
}

/// The given value or clap's default; empty if there is neither, and for a flag that is off.
pub fn typed(matches: &ArgMatches, argument: &Arg) -> EffectiveOption {
    let id = argument.get_id().as_str();
    let given = matches.value_source(id) == Some(ValueSource::CommandLine);
    let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
    let values = if given || !is_flag { raw(matches, id) } else { Vec::new() };
    let value = match values.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        // No repeatable option takes a value that begins with a bracket, so this is unambiguous.
        several => serde_json::to_string(several).expect("a list of texts is JSON"),
    };
    EffectiveOption { value, source: if given { OptionSource::Given } else { OptionSource::Default } }
}

/// Whether the argument is a scenario file.
///
/// # Errors
///
/// When a scenario is not the only argument, or its name would be taken for a host.
pub fn names_scenario(urls: &[String]) -> anyhow::Result<bool> {
    let is_file = |text: &&String| {
        Path::new(text).extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"))
            && !text.contains("://")
    };
    if let Some(script) = urls.iter().find(|text| is_other_file(text)) {
        bail!(
            "`{script}` is a file, not a URL; there are no scripts: journeys with data and checks come from a scenario, see `parallax scenario init`"
        );
    }
    let Some(file) = urls.iter().find(is_file) else { return Ok(false) };
    ensure!(
        urls.len() == 1,
        "`{file}` is a scenario, which must be the only argument; add the other URLs to it as targets"
    );
    ensure!(
        file.ends_with(".toml"),
        "`{file}`: the name of a scenario must end in .toml, in lower case; rename it"
    );
    Ok(true)
}

/// Whether this is a script of another tool instead of a URL. No host name ends like that.
fn is_other_file(text: &str) -> bool {
    let end = Path::new(text).extension().and_then(|end| end.to_str()).unwrap_or_default();
    !text.contains("://") && ["lua", "js", "jmx", "yaml", "yml", "json"].contains(&end)
}

#[cfg(test)]
mod tests;
