//! `parallax`: one file or directory per verb. Only this crate prints, exits, and reads the environment.

mod command_line;
mod compare_verb;
#[cfg(feature = "ebpf")]
mod controlled;
mod convert_verb;
mod cpu;
mod dataset_verb;
mod demo;
mod disturb_verb;
mod doctor_verb;
mod drive;
mod environment;
mod exit;
mod explain_verb;
mod hiccup_verb;
mod hints;
mod import_verb;
mod lab_verb;
mod observation_report;
mod output;
mod password;
mod profile_verb;
mod progress;
mod record_mode;
mod records;
mod report_verb;
mod runs_verb;
mod scenario_verb;
mod serve;
mod shell;
mod signals;
mod terminal;
mod watch_query_args;
#[cfg(feature = "ebpf")]
mod watch_verb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::{one_line, report_line};

/// Load-test a server, observe it from its kernel, and explain where the time of its requests went.
#[derive(Debug, Parser)]
#[command(name = "parallax", version = VERSION, max_term_width = 100, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// The version with what was built: the commit of a release build, and the features.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PARALLAX_BUILD"), ")");

#[derive(Debug, Subcommand)]
enum Verb {
    Drive(Box<drive::Args>),
    Cpu(cpu::Args),
    Profile(profile_verb::Args),
    Serve(serve::Args),
    Demo(demo::Args),
    #[cfg(feature = "ebpf")]
    Watch(Box<watch_verb::Args>),
    Report(report_verb::Args),
    Compare(compare_verb::Args),
    Lab(lab_verb::Args),
    Runs(runs_verb::Args),
    Explain(explain_verb::Args),
    Doctor(doctor_verb::Args),
    Scenario(scenario_verb::Args),
    Convert(convert_verb::Args),
    Import(import_verb::Args),
    Prepare(dataset_verb::PrepareArgs),
    Clean(dataset_verb::CleanArgs),
    Hiccup(hiccup_verb::Args),
    Disturb(disturb_verb::Args),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(warning) = password::hide(&arguments) {
        report_line(warning);
    }
    let mut command = <Cli as clap::CommandFactory>::command();
    let exit = match command.try_get_matches_from_mut(&arguments) {
        Ok(matches) => match hints::misread(&command, &arguments) {
            Some(line) => hints::refused(&line),
            None => {
                let line = CommandLine { command: &command, matches: &matches };
                environment::note_command(&line, &arguments);
                run(&line)
            }
        },
        Err(error) => hints::explain(&error, &command, &arguments),
    };
    exit.into()
}

fn run(line: &CommandLine<'_>) -> Exit {
    let cli = match <Cli as clap::FromArgMatches>::from_arg_matches(line.matches) {
        Ok(cli) => cli,
        Err(error) => return hints::explain(&error, line.command, &[]),
    };
    let program = line.command;
    let line = line.verb().expect("clap requires a verb");
    let result = match cli.verb {
        Verb::Drive(args) => drive::run(&args, &line),
        Verb::Cpu(args) => cpu::run(&args, &line),
        Verb::Profile(args) => profile_verb::run(&args, &line),
        Verb::Serve(args) => serve::run(&args),
        Verb::Demo(args) => demo::run(&args),
        #[cfg(feature = "ebpf")]
        Verb::Watch(args) => watch_verb::run(&args, &line),
        Verb::Report(args) => report_verb::run(&args),
        Verb::Compare(args) => compare_verb::run(&args, &line),
        Verb::Lab(args) => lab_verb::run(&args),
        Verb::Runs(args) => runs_verb::run(&args),
        Verb::Doctor(args) => doctor_verb::run(&args),
        Verb::Explain(args) => explain_verb::run(&args),
        Verb::Scenario(args) => scenario_verb::run(&args),
        Verb::Convert(args) => convert_verb::run(&args),
        Verb::Import(args) => import_verb::run(&args, &line),
        Verb::Prepare(args) => dataset_verb::prepare(&args, &line),
        Verb::Clean(args) => dataset_verb::clean(&args, &line),
        Verb::Hiccup(args) => hiccup_verb::run(&args, &line),
        Verb::Disturb(args) => disturb_verb::run(&args, &line),
        Verb::Completions(args) => shell::completions(&args, program),
        Verb::Man(args) => shell::man(&args, program),
    };
    result.unwrap_or_else(|error| failed(&error))
}

/// Prints an error as one line: what, where, what to do.
fn failed(error: &anyhow::Error) -> Exit {
    report_line(one_line(error));
    Exit::Refused
}
