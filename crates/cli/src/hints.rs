//! Usage errors in one line, with a hint if an option is known from another tool.

mod habits;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use database::without_password;

use crate::exit::Exit;

/// Prints clap's output: help and version in full, an error as one line.
pub fn explain(error: &clap::Error, program: &clap::Command, arguments: &[OsString]) -> Exit {
    let typed = Typed::of(program, arguments);
    match error.kind() {
        // Clap parses `-h2` and `-host` of other tools as `-h`.
        ErrorKind::DisplayHelp if typed.one_dash().is_some() => {
            refused(&typed.one_dash().unwrap_or_default())
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let _ = error.print();
            Exit::Refused
        }
        _ => refused(&one_line(error, &typed)),
    }
}

/// Prints the line of a usage error, which may quote what was typed.
pub fn refused(line: &str) -> Exit {
    crate::output::report_line(without_password(line));
    Exit::Refused
}

/// The line for a command line that clap accepts, and that means something else to users of another tool: `-body=FILE`
/// would be sent as the body `ody=FILE`. `None` if there is no such option in it.
pub fn misread(program: &clap::Command, arguments: &[OsString]) -> Option<String> {
    let mut typed = Typed::of(program, arguments);
    typed.words.retain(|word| word.contains('='));
    typed.one_dash()
}

/// A usage error in one line.
fn one_line(error: &clap::Error, typed: &Typed<'_>) -> String {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let hint = match error.kind() {
        _ if typed.verb.is_none() => typed.unknown_verb(error),
        ErrorKind::UnknownArgument => typed.unknown_option(context(ContextKind::InvalidArg)),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            typed.refused_value(context(ContextKind::InvalidValue))
        }
        _ => None,
    };
    hint.unwrap_or_else(|| own_words(error))
}

/// Clap's message in one line, without misleading suggestions.
fn own_words(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line cannot be read").trim_start_matches("error: ");
    // Missing arguments are on their own lines, and so are tips.
    let whole = lines.fold(first.to_owned(), |line, more| match more.strip_prefix("tip: ") {
        Some(tip) if is_near(&line, tip) => format!("{line}; {tip}"),
        Some(_) => line,
        None => format!("{line} {more}"),
    });
    format!("{whole}; see --help")
}

/// Whether a tip suggests a word that was probably meant: `--conections` is near `--connections`, but `--pause` is not
/// near `--pace`. One letter in four may differ. All of these words are in single quotes.
fn is_near(line: &str, tip: &str) -> bool {
    let word =
        |quoted: &str| quoted.trim_start_matches('-').split(['=', ' ']).next().unwrap_or_default().to_owned();
    let mut suggested = tip.split('\'').skip(1).step_by(2).map(word);
    let Some(typed) = line.split('\'').nth(1).map(word) else { return false };
    let is_typing_error =
        |meant: String| strsim::damerau_levenshtein(&typed, &meant) <= (typed.chars().count() / 4).max(1);
    !tip.contains("as a value") && suggested.any(is_typing_error)
}

const NO_VERB: &str =
    "there is no verb: to load-test a URL write `parallax drive URL`, with options behind `drive`";

/// The command line, as far as it can be looked up in the table.
struct Typed<'a> {
    /// The words after the program's name.
    words: Vec<&'a str>,
    verb: Option<clap::Command>,
}

impl<'a> Typed<'a> {
    fn of(program: &clap::Command, arguments: &'a [OsString]) -> Typed<'a> {
        let words: Vec<&str> = arguments.iter().skip(1).filter_map(|argument| argument.to_str()).collect();
        let verb = words.first().and_then(|verb| program.find_subcommand(verb).cloned());
        Typed { words, verb }
    }

    fn verb(&self) -> &str {
        self.verb.as_ref().map_or("", clap::Command::get_name)
    }

    fn unknown_verb(&self, error: &clap::Error) -> Option<String> {
        let first = *self.words.first()?;
        let names_server = |word: &&str| word.contains("://") || word.contains(":80");
        let is_slip = own_words(error).contains(" similar ");
        let for_server = || (!is_slip && self.words.iter().any(names_server)).then(|| NO_VERB.to_owned());
        habits::unknown_verb(first).or_else(for_server)
    }

    fn unknown_option(&self, flag: &str) -> Option<String> {
        let named = || habits::unknown_option(self.verb(), habits::name(flag), value_of(flag, &self.words));
        self.one_dash().or_else(named)
    }

    fn refused_value(&self, value: &str) -> Option<String> {
        let options = self.words.iter().map(|word| habits::name(word)).filter(|word| word.starts_with('-'));
        let mut of_this_value = options.filter(|flag| value_of(flag, &self.words) == value);
        of_this_value
            .find_map(|flag| habits::refused_value(self.verb(), flag, value))
            .or_else(|| self.one_dash())
    }

    /// An option with its long name and one dash, as in Go's tools: `-rate=50`. Clap takes it for `-r` and a value.
    fn one_dash(&self) -> Option<String> {
        let verb = self.verb.as_ref()?;
        let is_long = |name: &str| {
            verb.get_arguments().any(|argument| {
                argument.get_long_and_visible_aliases().into_iter().flatten().any(|long| long == name)
            })
        };
        self.words.iter().find_map(|word| {
            let name = habits::name(word.strip_prefix('-')?);
            if name.len() < 2 || name.starts_with('-') {
                return None;
            }
            let flag = format!("-{name}");
            let value = value_of(&flag, &self.words);
            habits::unknown_option(self.verb(), &flag, value)
                .or_else(|| is_long(name).then(|| format!("`{word}`: write `-{word}`, with two dashes")))
        })
    }
}

/// The value of a flag: attached to it (`-t4`, `--rps=50`), or the next word.
fn value_of<'a>(flag: &str, words: &[&'a str]) -> &'a str {
    let mut found = words.iter();
    match found.find_map(|text| text.strip_prefix(flag).filter(|rest| ends_a_name(flag, rest))) {
        None => "",
        Some("") => found.next().filter(|text| !text.starts_with('-')).copied().unwrap_or(""),
        Some(attached) => attached.trim_start_matches('='),
    }
}

/// Whether a flag's name ends where `rest` begins: `-t4` is `-t`, but `-target` is not, nor is `--rpsx` `--rps`.
fn ends_a_name(flag: &str, rest: &str) -> bool {
    let is_short = !flag.starts_with("--") && flag.len() == 2;
    rest.is_empty()
        || rest.starts_with('=')
        || is_short && !rest.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests;
