//! Every option in every mode: used, or refused with one line.

use clap::CommandFactory;
use run::options::OPTIONS;

use super::*;

/// If this fails, a scenario is taken for a host of that name.
#[test]
fn a_scenario_is_named_alone_and_in_small_letters() {
    let named = |urls: &[&str]| {
        let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
        names_scenario(&urls).map_err(|error| error.to_string())
    };
    assert_eq!(named(&["x/a.toml"]), Ok(true));
    assert_eq!(named(&["http://h/a.toml", "h/b"]), Ok(false));
    for (urls, what) in [
        (&["a.toml", "http://h/"][..], "the only argument"),
        (&["h", "b.toml"], "`b.toml` is a scenario"),
        (&["A.TOML"], "in lower case"),
        (&["script.lua"], "there are no scripts"),
    ] {
        let error = named(urls).unwrap_err();
        assert!(error.contains(what) && error.lines().count() == 1, "{error}");
    }
}

/// If this fails, an option of `drive` is not one of a run, or a run has one that nobody can give.
#[test]
fn every_option_of_a_run_is_one_of_drive() {
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").unwrap();
    let names: Vec<&str> = command
        .get_arguments()
        .map(|argument| argument.get_long().unwrap_or(argument.get_id().as_str()))
        .collect();
    for option in OPTIONS {
        assert!(names.contains(&option.name), "{}", option.name);
    }
    let of_modes = [
        "search",
        "search-from",
        "search-to",
        "search-tolerance",
        "probe-duration",
        "probes",
        "dry-run",
        "calibrate",
        "spec",
        "print-spec",
        "callers",
        "help",
        "version",
    ];
    for name in names {
        assert!(named(name).is_some() || of_modes.contains(&name), "{name}");
    }
}

use Group as G;

/// What the parts of each mode read.
const USED: [(Mode, &[Group]); 4] = [
    (
        Mode::Run,
        &[
            G::Target,
            G::Request,
            G::Expectation,
            G::Schedule,
            G::Spacing,
            G::Seed,
            G::Users,
            G::Client,
            G::Connection,
            G::Tls,
            G::Limits,
            G::Thresholds,
            G::ServerCpu,
            G::Observers,
            G::Requests,
            G::Sinks,
            G::Folder,
            G::Printing,
        ],
    ),
    (
        Mode::Scenario,
        &[
            G::Target,
            G::Scenario,
            G::Schedule,
            G::Spacing,
            G::Seed,
            G::Users,
            G::Client,
            G::Connection,
            G::Tls,
            G::Limits,
            G::Thresholds,
            G::ServerCpu,
            G::Observers,
            G::Requests,
            G::Sinks,
            G::Folder,
            G::Printing,
        ],
    ),
    (
        Mode::Search,
        &[
            G::Target,
            G::Request,
            G::Expectation,
            G::Spacing,
            G::Seed,
            G::Users,
            G::Client,
            G::Connection,
            G::Tls,
            G::Limits,
            G::ServerCpu,
            G::Folder,
            G::Printing,
        ],
    ),
    (Mode::Calibrate, &[G::Client, G::Printing]),
];

/// If this fails, an option is accepted in a mode and has no effect: each is one that the mode's parts read, by this
/// list of what they read, or it is refused.
#[test]
fn every_option_is_used_or_refused_in_every_mode() {
    for (mode, groups) in USED {
        for option in OPTIONS {
            let mut given = GivenOptions::default();
            given.set(option.name, ["x"]);
            match mode.check(&given) {
                Ok(()) => assert!(groups.contains(&option.group), "{mode:?} ignores --{}", option.name),
                Err(error) => {
                    let line = error.to_string();
                    assert!(!groups.contains(&option.group), "{mode:?}: {line}");
                    assert!(line.starts_with(&format!("--{} ", option.name)), "{line}");
                    assert_eq!(line.lines().count(), 1, "{line}");
                }
            }
        }
    }
}
