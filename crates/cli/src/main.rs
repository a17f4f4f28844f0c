//! `parallax`: one file or folder a verb. Only this crate prints, exits, and reads the environment.

#[cfg(feature = "ebpf")]
mod controlled;
mod convert_verb;
mod cpu;
mod cpu_list;
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
mod observation_report;
mod observing;
mod profile_verb;
mod progress;
mod record_mode;
mod report_verb;
mod scenario_verb;
mod serve;
mod signals;
mod terminal;
#[cfg(feature = "ebpf")]
mod watch_verb;

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// Load-test a server, observe it from its kernel, and explain where the time of its requests went.
#[derive(Debug, Parser)]
#[command(name = "parallax", version, max_term_width = 100, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

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
    Explain(explain_verb::Args),
    Doctor(doctor_verb::Args),
    Scenario(scenario_verb::Args),
    Convert(convert_verb::Args),
    Import(import_verb::Args),
    Hiccup(hiccup_verb::Args),
    Disturb(disturb_verb::Args),
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    let exit = match <Cli as clap::CommandFactory>::command().try_get_matches_from(&arguments) {
        Ok(matches) => run(&matches),
        Err(error) => hints::explain(&error, &arguments),
    };
    exit.into()
}

fn run(matches: &clap::ArgMatches) -> Exit {
    let cli = match <Cli as clap::FromArgMatches>::from_arg_matches(matches) {
        Ok(cli) => cli,
        Err(error) => return hints::explain(&error, &[]),
    };
    let (_, verb_matches) = matches.subcommand().expect("clap requires a verb");
    let result = match cli.verb {
        Verb::Drive(args) => drive::run(&args, verb_matches),
        Verb::Cpu(args) => cpu::run(&args, verb_matches),
        Verb::Profile(args) => profile_verb::run(&args, verb_matches),
        Verb::Serve(args) => serve::run(&args),
        Verb::Demo(args) => demo::run(&args),
        #[cfg(feature = "ebpf")]
        Verb::Watch(args) => watch_verb::run(&args, verb_matches),
        Verb::Report(args) => report_verb::run(&args),
        Verb::Doctor(args) => doctor_verb::run(&args),
        Verb::Explain(args) => explain_verb::run(&args),
        Verb::Scenario(args) => scenario_verb::run(&args),
        Verb::Convert(args) => convert_verb::run(&args),
        Verb::Import(args) => import_verb::run(&args, verb_matches),
        Verb::Hiccup(args) => hiccup_verb::run(&args, verb_matches),
        Verb::Disturb(args) => disturb_verb::run(&args, verb_matches),
    };
    result.unwrap_or_else(|error| failed(&error))
}

/// Prints an error as one line: what, where, what to do.
fn failed(error: &anyhow::Error) -> Exit {
    report_line(one_line(error));
    Exit::Refused
}

/// Prints one line on standard error. The text can come from a stranger's file or a hostile peer: it is escaped.
fn report_line(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", stderr_line(text));
}

/// Prints the reader's notes on a record: fields that were ignored, a newer schema version.
fn report_notes(envelope: &record::document::Envelope) {
    envelope.notes.iter().for_each(report_line);
}

/// The line with its prefix. Control characters are escaped: none reaches the terminal, and a newline starts no second
/// line.
fn stderr_line(text: impl Display) -> String {
    format!("parallax: {}", record::escape_text(&text.to_string()))
}

/// The chain of causes in one line, without causes that an earlier message already contains.
fn one_line(error: &anyhow::Error) -> String {
    let mut causes = error.chain().map(ToString::to_string);
    let first = causes.next().unwrap_or_default();
    causes.fold(first, |line, cause| if line.contains(&cause) { line } else { format!("{line}: {cause}") })
}

/// The result of printing. A reader that closes the pipe early is no error.
fn printed(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print the result; the record has it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let source = io::Error::other("no space left");
        let write = record::RecordError::Write { path: "run/series.ndjson".into(), source };
        let error = anyhow::Error::new(write).context("the record is incomplete");
        assert_eq!(
            one_line(&error),
            "the record is incomplete: cannot write run/series.ndjson: no space left; free some space, or use \
             another directory"
        );
    }

    /// If this fails, a file or a peer writes to the terminal what it likes.
    #[test]
    fn what_is_told_is_one_line_without_control_characters() {
        let error =
            anyhow::anyhow!("of `\u{1b}]0;owned\u{7}`").context("line 1\nparallax: all is well\u{202e}");
        assert_eq!(
            stderr_line(one_line(&error)),
            r"parallax: line 1\u{a}parallax: all is well\u{202e}: of `\u{1b}]0;owned\u{7}`"
        );
    }
}
