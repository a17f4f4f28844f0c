//! The command line after a verb: its options as clap declares them, and those that were given.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use record::document::{EffectiveOption, OptionSource};

/// A command, and what clap parsed for it.
#[derive(Clone, Copy)]
pub struct CommandLine<'a> {
    pub command: &'a Command,
    pub matches: &'a ArgMatches,
}

impl<'a> CommandLine<'a> {
    /// The subcommand that was typed; `None` if none was.
    pub fn verb(&self) -> Option<CommandLine<'a>> {
        let (name, matches) = self.matches.subcommand()?;
        Some(CommandLine { command: self.command.find_subcommand(name)?, matches })
    }

    /// All options by long name, as given or by default.
    pub fn effective(&self) -> BTreeMap<String, EffectiveOption> {
        let arguments = self.command.get_arguments();
        let options = arguments.filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"));
        options.map(|argument| (long_name(argument).to_owned(), self.typed(argument))).collect()
    }

    /// As typed, or clap's default; empty if there is neither, and for a flag that is off.
    pub fn typed(&self, argument: &Arg) -> EffectiveOption {
        let given = self.is_typed(argument);
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        let values = if given || !is_flag { self.texts(argument) } else { Vec::new() };
        let value = match values.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            // No option that may be repeated takes a value that begins with a bracket, so this is unambiguous.
            several => serde_json::to_string(several).expect("a list of texts is JSON"),
        };
        EffectiveOption { value, source: if given { OptionSource::Given } else { OptionSource::Default } }
    }

    /// Whether it was typed.
    pub fn is_typed(&self, argument: &Arg) -> bool {
        self.matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    }

    /// The texts of its values, defaults included.
    pub fn texts(&self, argument: &Arg) -> Vec<String> {
        let texts = self.matches.get_raw(argument.get_id().as_str()).into_iter().flatten();
        texts.map(|text: &OsStr| text.to_string_lossy().into_owned()).collect()
    }
}

/// The name under which an option is recorded: without dashes; for an operand, its id.
pub fn long_name(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(argument.get_id().as_str())
}
