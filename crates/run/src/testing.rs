//! For tests: options as typed on a command line.

use crate::environment::Environment;
use crate::options::GivenOptions;
use crate::prepare::{PreparedRun, prepare};

/// The options of a command line: `-r 5/s`, `--header X`, URLs. Flags have no value.
pub fn given(arguments: &[&str]) -> GivenOptions {
    const FLAGS: [&str; 13] = [
        "server-account",
        "prepared",
        "no-record",
        "insecure",
        "keep-trying",
        "json",
        "quiet",
        "verbose",
        "no-tui",
        "no-color",
        "dry-run",
        "replay-times-only",
        "replay-credentials",
    ];
    let mut given = GivenOptions::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let name = match *argument {
            "-c" => "connections",
            "-r" => "rate",
            "-d" => "duration",
            "-n" => "count",
            "-w" => "workers",
            "-k" => "insecure",
            "-H" => "header",
            "-b" => "body",
            long => long.strip_prefix("--").unwrap_or("url"),
        };
        let text = match name {
            "url" => (*argument).to_owned(),
            name if FLAGS.contains(&name) => "true".to_owned(),
            _ => (*arguments.next().expect("an option of this test has a value")).to_owned(),
        };
        let mut texts = given.0.get(name).map(|given| given.texts.clone()).unwrap_or_default();
        texts.push(text);
        given.set(name, texts);
    }
    given
}

/// The same options, prepared.
pub fn prepared(arguments: &[&str]) -> anyhow::Result<PreparedRun> {
    prepare(&given(arguments).spec()?, &Environment::none())
}
