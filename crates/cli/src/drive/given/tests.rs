//! Options as typed, and what each mode does with them.

mod modes;

use clap::CommandFactory;
use run::options::OPTIONS;

/// If this fails, an option of a run cannot be given.
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
}
