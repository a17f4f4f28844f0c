//! Options as typed, and what each mode does with them.

mod modes;

use clap::CommandFactory;
use run::options::OPTIONS;

use super::*;

/// If this fails, an option of `drive` is not an option of a run, or a run has one that cannot be given.
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
        // An option of the process, whatever it writes: applied before the options are read.
        "record-mode",
        "callers",
        "on-invalid",
        "help",
        "version",
    ];
    for name in names {
        assert!(named(name).is_some() || of_modes.contains(&name), "{name}");
    }
}
