//! Usage errors in one line, with a hint where a flag or value comes from another tool's habits.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::Exit;

/// Prints clap's help or version in full, or its error as one line.
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
            crate::output::report_line(one_line(error, arguments));
            Exit::Refused
        }
    }
}

/// A usage error in one line.
pub fn one_line(error: &clap::Error, arguments: &[OsString]) -> String {
    if let Some(hint) = unknown_flag(error).and_then(|flag| habit(&flag, value_of(&flag, arguments))) {
        return hint;
    }
    let is_misread = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    if let Some((dashed, flag)) = one_dash(arguments).filter(|_| is_misread) {
        return format!("`{dashed}` has one dash; write `-{dashed}`; see --help for `{flag}`");
    }
    let text = error.render().to_string();
    let mut lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("the command line cannot be read").trim_start_matches("error: ");
    // clap prints missing arguments and tips on separate lines.
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

/// The value of a flag: attached to it (`-t4`, `--rps=50`), or the next argument.
fn value_of<'a>(flag: &str, arguments: &'a [OsString]) -> &'a str {
    let mut found = arguments.iter().filter_map(|argument| argument.to_str());
    match found.find_map(|text| text.strip_prefix(flag).filter(|rest| ends_a_name(flag, rest))) {
        None => "",
        Some("") => found.next().filter(|text| !text.starts_with('-')).unwrap_or(""),
        Some(attached) => attached.trim_start_matches('='),
    }
}

/// Whether a flag's name ends where `rest` begins: `-t4` is a `-t`, `-target` is none, and neither is `--rpsx`.
fn ends_a_name(flag: &str, rest: &str) -> bool {
    let is_short = !flag.starts_with("--") && flag.len() == 2;
    rest.is_empty()
        || rest.starts_with('=')
        || is_short && !rest.starts_with(|c: char| c.is_ascii_lowercase())
}

/// An option given by its long name with one dash, as in Go's tools: `-rate=50`.
fn one_dash(arguments: &[OsString]) -> Option<(&str, String)> {
    const LONG: [&str; 8] =
        ["rate", "duration", "connections", "workers", "timeout", "header", "body", "output"];
    arguments.iter().filter_map(|argument| argument.to_str()).find_map(|text| {
        let name = text.strip_prefix('-')?.split('=').next()?;
        LONG.contains(&name).then(|| (text, format!("--{name}")))
    })
}

/// A hint for a flag of wrk, hey, oha, ab, vegeta, k6 or bombardier that does not exist here.
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
        "-u" | "--vus" => format!("for virtual users write `--users {value}`"),
        "--http2" => "for HTTP/2 write `--http 2` over https://, `--http h2c` over http://".to_owned(),
        "--unix-socket" => format!("for a socket write `--unix {value}`"),
        "-L" | "-l" | "--latency" => {
            return Some(format!("`{flag}` is not needed: percentiles are always shown"));
        }
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

    #[test]
    fn a_value_is_found_attached_or_as_the_next_argument() {
        let of = |flag: &str, arguments: &[&str]| {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            value_of(flag, &arguments).to_owned()
        };
        assert_eq!(of("-t", &["drive", "-t4", "http://h/"]), "4");
        assert_eq!(of("-t", &["drive", "-t", "4"]), "4");
        assert_eq!(of("--rps", &["drive", "--rps=50"]), "50");
        assert_eq!(of("-L", &["drive", "-L", "-c", "4"]), "");
        assert_eq!(of("-t", &["drive", "-target", "-t4"]), "4");
        assert_eq!(of("--rps", &["drive", "--rpsx=3", "--rps", "50"]), "50");
    }

    #[test]
    fn one_dash_before_a_long_name_is_reported() {
        let arguments = ["drive", "-c", "4", "-rate=50/s"].map(OsString::from);
        assert_eq!(one_dash(&arguments), Some(("-rate=50/s", "--rate".to_owned())));
        assert_eq!(one_dash(&["-r50/s", "--rate=5/s", "-raten"].map(OsString::from)), None);
    }
}
