//! From what clap parsed to the options of a run, as typed and as the record shows them.

use clap::ArgAction;
use record::document::{EffectiveOption, OptionSource};
use run::effective::EffectiveOptions;
use run::options::{GivenOptions, named};

use crate::command_line::{CommandLine, long_name};

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
    const NO_TRACE: [&str; 6] = ["help", "version", "callers", "spec", "print-spec", "print-workload"];
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
