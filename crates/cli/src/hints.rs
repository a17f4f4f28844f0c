//! Usage errors in one line, with a hint where a flag or value comes from another tool's habits.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Exit;

/// Prints what clap has to say: help and version whole, an error as one line.
pub fn explain(error: &clap::Error, arguments: &[OsString]) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = error.print();
            Exit::Done
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let _ = error.print();
            Exit::Refused
        }
        _ => {
            crate::say(one_line(error, arguments));
            Exit::Refused
        }
    }
}

/// A usage error in one line.
pub fn one_line(error: &clap::Error, arguments: &[OsString]) -> String {
    if let Some(hint) = unknown_flag(error).and_then(|flag| habit(&flag, value_after(&flag, arguments))) {
        return hint;
    }
    let text = error.render().to_string();
    let mut lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line cannot be read").trim_start_matches("error: ");
    // Missing arguments stand on lines of their own, and so do tips.
    let whole = lines.fold(first.to_owned(), |line, more| match more.strip_prefix("tip: ") {
        Some(tip) => format!("{line}; {tip}"),
        None => format!("{line} {more}"),
    });
    format!("{whole}; see --help")
}

fn unknown_flag(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(flag) => Some(flag.clone()),
        _ => None,
    }
}

fn value_after<'a>(flag: &str, arguments: &'a [OsString]) -> &'a str {
    let found = arguments.iter().filter_map(|argument| argument.to_str()).skip_while(|text| *text != flag);
    found.skip(1).find(|text| !text.starts_with('-')).unwrap_or("")
}

/// What people who know wrk, hey, oha, ab, vegeta, k6 or bombardier mean by a flag that we do not have.
fn habit(flag: &str, value: &str) -> Option<String> {
    let is_time = value.ends_with(|last: char| last.is_ascii_alphabetic());
    let advice = match flag {
        "-t" if is_time => {
            format!("to run for {value} write `-d {value}`; to limit each request, `--timeout {value}`")
        }
        "-t" | "--threads" | "--cpus" => format!("for threads write `--workers {value}`"),
        "-z" => format!("to run for a time write `-d {value}`"),
        "-q" | "--qps" | "--rps" | "-qps" => format!("for a rate write `--rate {value}/s`"),
        "-D" => "for a duration write `-d 10s`; for a body from a file, `-b @FILE`".to_owned(),
        "-m" => format!("for a method write `-X {value}`"),
        "-u" | "--vus" => format!("for callers write `--callers {value}`"),
        "--http2" => "for HTTP/2 write `--http 2` over https://, `--http h2c` over http://".to_owned(),
        "--unix-socket" => format!("for a socket write `--unix {value}`"),
        "-L" | "-l" | "--latency" => "percentiles are always shown; leave it out".to_owned(),
        "-s" | "--script" => "there are no scripts; journeys with data and checks come from a scenario file: `parallax drive FILE.toml`".to_owned(),
        _ => return None,
    };
    Some(format!("`{flag}` is not an option here: {advice}").replace("  ", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_from_another_tool_gets_one_line() {
        assert_eq!(
            habit("-t", "30s").unwrap(),
            "`-t` is not an option here: to run for 30s write `-d 30s`; to limit each request, `--timeout 30s`"
        );
        assert_eq!(habit("-t", "4").unwrap(), "`-t` is not an option here: for threads write `--workers 4`");
        assert_eq!(habit("--nonsense", ""), None);
    }
}
