//! From what clap found to the options of a run, and which of them each mode uses.

use anyhow::bail;
use clap::ArgAction;
use record::document::{EffectiveOption, OptionSource};
use run::effective::EffectiveOptions;
use run::options::{GivenOptions, Group, named};

use crate::command_line::{CommandLine, long_name};

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
            (Mode::Search, G::Scenario) => Some("is for a scenario, and --search drives a URL or --targets"),
            (Mode::Search, G::Schedule) => {
                Some("cannot be used with --search, which sets the rate and length of each probe")
            }
            (Mode::Search, G::Thresholds) => {
                Some("cannot be used with --search, which judges by its objective")
            }
            (Mode::Search, G::Requests | G::Sinks | G::Observers) => {
                Some("cannot be used with --search, which makes several runs")
            }
            (Mode::Search, G::Tui) => {
                Some("cannot be used with --search, which has no live view; --quiet suppresses its progress")
            }
            (Mode::Calibrate, G::Client | G::Json) => None,
            (Mode::Calibrate, _) => Some(
                "cannot be used with --calibrate, which uses only -c, --pipeline, --workers, --pace, --stamps and --json",
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
        for name in given.0.keys() {
            let group = named(name).map_or(Group::Users, |option| option.group);
            if let Some(why) = self.refuses(group) {
                let shown = if name == "url" { "a URL".to_owned() } else { format!("--{name}") };
                bail!("{shown} {why}");
            }
        }
        Ok(())
    }
}

/// The options of a run that were typed.
pub fn given(line: &CommandLine<'_>) -> GivenOptions {
    let mut given = GivenOptions::default();
    for argument in line.command.get_arguments().filter(|argument| line.is_typed(argument)) {
        let name = long_name(argument);
        match argument.get_action() {
            _ if named(name).is_none() && name != "callers" => {}
            ArgAction::SetTrue => given.set(name, ["true"]),
            _ => given.set(name, line.texts(argument)),
        }
    }
    given
}

/// The options of the verb that are not part of a run, for the record; `--spec` and `--print-spec` are not recorded.
pub fn other_options(line: &CommandLine<'_>) -> EffectiveOptions {
    const NO_TRACE: [&str; 5] = ["help", "version", "callers", "spec", "print-spec"];
    let arguments = line.command.get_arguments().map(|argument| (long_name(argument), argument));
    let others = arguments.filter(|(name, _)| named(name).is_none() && !NO_TRACE.contains(name));
    let typed = others.map(|(name, argument)| {
        let mut option = line.typed(argument);
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        if option.value.is_empty() && option.source != OptionSource::Given && !is_flag {
            let value = if name == "probe-duration" { "as the objective needs" } else { "none" };
            option = EffectiveOption { value: value.to_owned(), source: OptionSource::Derived };
        }
        (name.to_owned(), option)
    });
    typed.collect()
}

#[cfg(test)]
mod tests;
