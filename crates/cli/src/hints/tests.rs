//! Every row of the table of habits, typed: it gives one line with its hint, and what the hint suggests works.

use clap::{CommandFactory, FromArgMatches};
use run::environment::Environment;
use run::prepare::prepare;

use super::habits::habits;
use super::*;
use crate::command_line::CommandLine;
use crate::drive;

/// The words of a command line; single quotes keep words together. Kinds of values are replaced by values.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(|word| match word {
                "N" => "4".to_owned(),
                "TIME" => "30s".to_owned(),
                "TIME:N" => "30s:20".to_owned(),
                "TEXT" => "word".to_owned(),
                "URL" => "http://127.0.0.1:1/".to_owned(),
                word => word.strip_suffix("=TEXT").map_or(word.to_owned(), |name| format!("{name}=word")),
            }));
        }
    }
    words
}

/// The program's message for a command line that it refuses, as far as it can be found out without sending anything.
fn refusal(line: &str) -> Option<String> {
    let typed: Vec<OsString> =
        std::iter::once("parallax".to_owned()).chain(words(line)).map(Into::into).collect();
    let matches = match crate::Cli::command().try_get_matches_from(&typed) {
        Ok(matches) => match misread(&crate::Cli::command(), &typed) {
            Some(line) => return Some(line),
            None => matches,
        },
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Typed::of(&crate::Cli::command(), &typed).one_dash();
        }
        Err(error) => return Some(one_line(&error, &Typed::of(&crate::Cli::command(), &typed))),
    };
    let command = crate::Cli::command();
    let line = CommandLine { command: &command, matches: &matches }.verb().unwrap();
    let (verb, matches) = matches.subcommand().unwrap();
    if verb != "drive" {
        return None;
    }
    let args = drive::Args::from_arg_matches(matches).unwrap();
    let planned = drive::plan(&args, &line);
    let spec = planned.and_then(|(given, _)| given.spec());
    let refused = spec.and_then(|spec| prepare(&spec, &Environment::none()).map(|_| ())).err();
    refused.map(|error| crate::output::one_line(&error))
}

/// If this fails, a user of another tool has to read the manual to continue.
#[test]
fn each_habit_of_other_tools_gets_one_helpful_line() {
    let mut hints = 0;
    for habit in habits() {
        let line = refusal(habit.typed);
        if habit.hint == "=" {
            assert_eq!(line, None, "`{}` is accepted", habit.typed);
            continue;
        }
        let line = line.unwrap_or_else(|| panic!("`{}` is accepted without a word", habit.typed));
        let value = if habit.typed.contains(" TIME") {
            "30s"
        } else if habit.typed.contains(" N") {
            "4"
        } else {
            "word"
        };
        let hint = habit.hint.replace("{}", value);
        assert!(line.contains(&hint), "`{}`: {line}", habit.typed);
        assert_eq!(line.lines().count(), 1, "{line}");
        hints += 1;
    }
    assert!(hints >= 100, "{hints}");
}

/// If this fails, a hint leads from one error to the next.
#[test]
fn what_a_hint_says_works() {
    for habit in habits().filter(|habit| habit.instead != "-") {
        assert_eq!(refusal(habit.instead), None, "instead of `{}`: `{}`", habit.typed, habit.instead);
        let options = words(habit.instead).into_iter().filter(|word| word.starts_with('-'));
        for option in options.map(|word| habits::name(&word).to_owned()) {
            let is_typed = words(habit.typed).contains(&option);
            assert!(is_typed || habit.hint.contains(&option), "`{}`: {}", habit.typed, habit.hint);
        }
    }
}

#[test]
fn a_guess_is_shown_only_if_it_begins_like_what_was_typed() {
    assert!(refusal("drive --conections 4 URL").unwrap().contains("--connections"));
    assert!(!refusal("drive --irritations 4 URL").unwrap().contains("similar"));
    assert!(refusal("drve URL").unwrap().contains("'drive'"));
}

#[test]
fn a_value_is_found_wherever_it_is() {
    for (flag, words, value) in [
        ("-t", &["drive", "-t4", "http://h/"][..], "4"),
        ("-t", &["drive", "-t", "4"], "4"),
        ("--rps", &["drive", "--rps=50"], "50"),
        ("-L", &["drive", "-L", "-c", "4"], ""),
        ("-t", &["drive", "-target", "-t4"], "4"),
        ("--rps", &["drive", "--rpsx=3", "--rps", "50"], "50"),
    ] {
        assert_eq!(value_of(flag, words), value, "{flag} in {words:?}");
    }
}
