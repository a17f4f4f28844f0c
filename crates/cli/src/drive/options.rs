//! The effective value of every option, defaults included: a default that mattered must be in the record.

use std::collections::BTreeMap;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use record::document::{EffectiveOption, OptionSource};
use units::Nanos;

use super::plan::Prepared;
use super::{load, secrets};

/// By long name.
pub type Options = BTreeMap<String, EffectiveOption>;

/// All options of `drive`, by long name, as they took effect.
///
/// `command` defines the options that `matches` were read by.
pub fn effective(command: &Command, matches: &ArgMatches, prepared: &Prepared, folder: &Path) -> Options {
    let mut options: Options = command
        .get_arguments()
        .filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"))
        .map(|argument| {
            let id = argument.get_id().as_str();
            (argument.get_long().unwrap_or(id).to_owned(), typed(matches, argument))
        })
        .collect();
    let plan = &prepared.plan;
    derive(&mut options, "url", &prepared.url);
    derive(&mut options, "callers", &plan.pool.callers.to_string());
    derive(&mut options, "workers", &plan.workers.to_string());
    let is_open = plan.load.is_open();
    let has_rate = options["rate"].source == OptionSource::Given;
    let rate = if is_open { "none: the schedule says it" } else { "none: closed loop" };
    derive(&mut options, "rate", rate);
    derive(&mut options, "arrivals", if has_rate { "even" } else { rate });
    let seed = load::effective_seed(plan).map(|seed| seed.to_string());
    derive(&mut options, "seed", seed.as_deref().unwrap_or("none: nothing is random"));
    let is_replay = options["replay"].source == OptionSource::Given;
    derive(&mut options, "speed", if is_replay { "1x" } else { "none" });
    derive(&mut options, "duration", &plan.window.map_or("no limit".to_owned(), Nanos::written));
    derive(&mut options, "drain", &plan.drain.map_or("off".to_owned(), Nanos::written));
    derive(&mut options, "count", "no limit");
    derive(&mut options, "requests", "none: as sums alone");
    derive(&mut options, "method", &prepared.method);
    derive(&mut options, "expect-status", "below 400");
    derive(&mut options, "probe-duration", "as the objective needs");
    derive(&mut options, "output", &folder.to_string_lossy());
    for name in NONE_BY_DEFAULT {
        derive(&mut options, name, "none");
    }
    options
}

/// Options whose absence says all.
const NONE_BY_DEFAULT: [&str; 30] = [
    "profile",
    "watch",
    "header",
    "body",
    "targets",
    "expect-body-contains",
    "expect-sha256",
    "jitter",
    "stage",
    "replay",
    "replay-column",
    "think",
    "set",
    "resolve",
    "unix",
    "source",
    "cacert",
    "cert",
    "key",
    "sni",
    "alpn",
    "search",
    "search-from",
    "search-to",
    "fail-if",
    "watch-cpu",
    "prometheus",
    "otlp",
    "jsonl",
    "csv",
];

/// As typed, or clap's default; empty where there is neither, and for a flag that is off.
pub fn typed(matches: &ArgMatches, argument: &Arg) -> EffectiveOption {
    let id = argument.get_id().as_str();
    let given = matches.value_source(id) == Some(ValueSource::CommandLine);
    let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
    let raw = matches.get_raw(id).filter(|_| given || !is_flag);
    let mut values: Vec<String> =
        raw.into_iter().flatten().map(|value| value.to_string_lossy().into_owned()).collect();
    if argument.get_long() == Some("header") {
        values.iter_mut().for_each(|value| *value = secrets::header(value));
    }
    if argument.get_long() == Some("set") {
        values.iter_mut().for_each(|value| *value = secrets::setting(value));
    }
    let value = match values.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        // No option that may be given again takes a value that begins with a bracket, so this is unambiguous.
        several => serde_json::to_string(several).expect("a list of texts is JSON"),
    };
    EffectiveOption { value, source: if given { OptionSource::Given } else { OptionSource::Default } }
}

/// Puts in what was worked out for an option that was not given.
fn derive(options: &mut Options, name: &str, value: &str) {
    let option = options.get_mut(name).expect("only options that exist are derived");
    if option.source != OptionSource::Given {
        *option = EffectiveOption { value: value.to_owned(), source: OptionSource::Derived };
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches, Parser};

    use super::*;
    use crate::drive::{self, prepare};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: drive::Args,
    }

    /// Effective values of a command line, without the defaults that clap knows.
    fn options(arguments: &[&str]) -> Options {
        let command = Line::command();
        let line = ["drive"].iter().chain(arguments);
        let matches = command.clone().try_get_matches_from(line).unwrap();
        let prepared = prepare(&Line::from_arg_matches(&matches).unwrap().args).unwrap();
        effective(&command, &matches, &prepared, Path::new("runs/one"))
    }

    #[track_caller]
    fn check(options: &Options, name: &str, value: &str, source: OptionSource) {
        assert_eq!(options[name], EffectiveOption { value: value.to_owned(), source }, "{name}");
    }

    #[test]
    fn what_was_not_given_has_its_effective_value() {
        let options = options(&["http://127.0.0.1:1/"]);
        for (name, value) in [
            ("method", "GET"),
            ("expect-status", "below 400"),
            ("count", "no limit"),
            ("requests", "none: as sums alone"),
            ("duration", "10s"),
            ("drain", "5s"),
            ("rate", "none: closed loop"),
            ("output", "runs/one"),
            ("callers", "10"),
            ("body", "none"),
            ("header", "none"),
            ("targets", "none"),
            ("arrivals", "none: closed loop"),
            ("seed", "none: nothing is random"),
            ("stage", "none"),
            ("speed", "none"),
            ("think", "none"),
        ] {
            check(&options, name, value, OptionSource::Derived);
        }
        check(&options, "stamps", "kernel", OptionSource::Default);
        check(&options, "max-head", "64KiB", OptionSource::Default);
        check(&options, "max-body", "1GiB", OptionSource::Default);
        check(&options, "json", "", OptionSource::Default);
        // Only flags that are off are empty.
        let empty: Vec<_> = options.iter().filter(|(_, option)| option.value.is_empty()).collect();
        assert_eq!(
            empty.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["calibrate", "dry-run", "insecure", "json", "no-color", "no-tui", "quiet"]
        );
    }

    #[test]
    fn a_number_of_requests_alone_waits_for_all_of_them() {
        let alone = options(&["-n", "5", "http://127.0.0.1:1/"]);
        check(&alone, "drain", "off", OptionSource::Derived);
        check(&alone, "duration", "no limit", OptionSource::Derived);
        let both = options(&["-n", "5", "-d", "1500ms", "--callers", "1", "-c", "64", "http://127.0.0.1:1/"]);
        check(&both, "drain", "5s", OptionSource::Derived);
        check(&both, "duration", "1500ms", OptionSource::Given);
        check(&both, "workers", "1", OptionSource::Derived);
        let given = options(&["-n", "5", "--drain", "1s", "http://127.0.0.1:1/"]);
        check(&given, "drain", "1s", OptionSource::Given);
    }

    #[test]
    fn a_fresh_seed_is_an_effective_value() {
        let options = options(&["-r", "5/s", "--arrivals", "poisson", "http://127.0.0.1:1/"]);
        assert_eq!(options["seed"].source, OptionSource::Derived);
        assert!(options["seed"].value.parse::<u64>().is_ok(), "{}", options["seed"].value);
        check(&options, "arrivals", "poisson", OptionSource::Given);
    }

    #[test]
    fn stages_are_kept_as_they_were_given() {
        let line = ["--stage", "pause 1s", "--stage", "constant 3/s 1500ms", "http://127.0.0.1:1/"];
        let options = options(&line);
        check(&options, "stage", r#"["pause 1s","constant 3/s 1500ms"]"#, OptionSource::Given);
        check(&options, "rate", "none: the schedule says it", OptionSource::Derived);
        check(&options, "duration", "2500ms", OptionSource::Derived);
        check(&options, "callers", "100000", OptionSource::Derived);
    }

    #[test]
    fn several_headers_can_be_told_apart_and_hold_no_secret() {
        let several =
            ["-H", "A: 1, B: 2", "-H", "Cookie: hunter2", "-b", "", "--json", "http://127.0.0.1:1/"];
        let options = options(&several);
        check(&options, "header", r#"["A: 1, B: 2","Cookie: (redacted)"]"#, OptionSource::Given);
        check(&options, "method", "POST", OptionSource::Derived);
        check(&options, "body", "", OptionSource::Given);
        check(&options, "json", "true", OptionSource::Given);
        check(&options_of_one(), "header", "X-Token: (redacted)", OptionSource::Given);
    }

    fn options_of_one() -> Options {
        options(&["-H", "X-Token: hunter2", "http://127.0.0.1:1/"])
    }
}
