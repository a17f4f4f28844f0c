//! Every option in every mode: used, or refused with one line.
//!
//! The effect of a mode is compared for two values of each option, in several lines of other options that it may need.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::ensure;
use clap::{CommandFactory, FromArgMatches};
use rcgen::{CertificateParams, generate_simple_self_signed};
use run::environment::Environment;
use run::mode::Mode;
use run::options::OPTIONS;
use run::prepare::{PreparedRun, prepare};
use run::search::{SearchOutput, SearchPlan, SearchRequest};
use run::spec::RunSpec;
use run::values::Count;
use run::{calibrate, scenario_file, search};

use super::super::*;
use crate::drive::{Args, Order, given_record_mode, on_invalid, plan};

/// Two values of each option; `None` if it is not given. A flag has one value.
const VALUES: &[(&str, [Option<&str>; 2])] = &[
    ("url", [Some("http://127.0.0.1:1/a"), Some("http://127.0.0.1:1/b")]),
    ("targets", [Some("one.txt"), Some("two.txt")]),
    ("method", [Some("PUT"), Some("DELETE")]),
    ("header", [Some("A: 1"), Some("A: 2")]),
    ("body", [Some("a"), Some("b")]),
    ("query", [Some("SELECT 1"), Some("SELECT a")]),
    ("prepared", [None, Some("true")]),
    ("password-file", [None, Some("one.txt")]),
    ("workload", [Some("oltp-read-only"), Some("oltp-read-write")]),
    ("command", [Some("GET a"), Some("GET b")]),
    ("tables", [Some("2"), Some("3")]),
    ("rows", [Some("20"), Some("30")]),
    ("set", [Some("path=a"), Some("path=b")]),
    ("users", [Some("3"), Some("4")]),
    ("max-in-flight", [Some("30"), Some("40")]),
    ("think", [Some("1ms"), Some("2ms")]),
    ("rate", [Some("5/s"), Some("6/s")]),
    ("arrivals", [Some("even"), Some("poisson")]),
    ("jitter", [Some("1ms"), Some("2ms")]),
    ("stage", [Some("constant 5/s 1s"), Some("constant 6/s 1s")]),
    ("replay", [Some("one.log"), Some("two.log")]),
    ("replay-times-only", [None, Some("true")]),
    ("replay-methods", [Some("GET"), Some("GET,POST")]),
    ("replay-filter", [Some("^/a"), Some("^/b")]),
    ("replay-credentials", [None, Some("true")]),
    ("speed", [Some("2x"), Some("3x")]),
    ("replay-column", [Some("a"), Some("b")]),
    ("duration", [Some("1s"), Some("2s")]),
    ("count", [Some("7"), Some("8")]),
    ("seed", [Some("1"), Some("2")]),
    ("pace", [Some("precise"), Some("efficient")]),
    ("connections", [Some("3"), Some("4")]),
    ("pipeline", [Some("2"), Some("3")]),
    ("workers", [Some("1"), Some("2")]),
    ("stamps", [Some("kernel"), Some("read")]),
    ("http", [Some("1.1"), Some("2")]),
    ("streams", [Some("2"), Some("3")]),
    ("warmup", [Some("1s"), Some("2s")]),
    ("idle-connections", [Some("1"), Some("2")]),
    ("reconnect-every", [Some("1"), Some("2")]),
    ("connect-rate", [Some("1/s"), Some("2/s")]),
    ("server-account", [None, Some("true")]),
    ("setup-query", [Some("SELECT 1"), Some("SELECT 2")]),
    ("resolve", [Some("127.0.0.1:1:127.0.0.2"), Some("127.0.0.1:1:127.0.0.3")]),
    ("unix", [Some("/tmp/one"), Some("/tmp/two")]),
    ("source", [Some("127.0.0.2"), Some("127.0.0.3")]),
    ("insecure", [None, Some("true")]),
    ("cacert", [Some("one.pem"), Some("both.pem")]),
    ("cert", [Some("one.pem"), Some("again.pem")]),
    ("key", [Some("one.key"), Some("two.key")]),
    ("sni", [Some("a.example"), Some("b.example")]),
    ("alpn", [Some("http/1.1"), Some("h2")]),
    ("tls-version", [Some("1.2"), Some("1.3")]),
    ("tls-resumption", [Some("on"), Some("off")]),
    ("expect-status", [Some("200"), Some("201")]),
    ("expect-body-contains", [Some("a"), Some("b")]),
    ("expect-sha256", [Some(ZEROS), Some(ONES)]),
    ("fail-if", [Some("p99 > 1s"), Some("p99 > 2s")]),
    ("on-invalid", [Some("fail"), Some("retry:3")]),
    ("max-head", [Some("1KiB"), Some("2KiB")]),
    ("max-body", [Some("1KiB"), Some("2KiB")]),
    ("timeout", [Some("1s"), Some("2s")]),
    ("connect-timeout", [Some("1s"), Some("2s")]),
    ("checkout-timeout", [Some("1s"), Some("2s")]),
    ("drain", [Some("1s"), Some("2s")]),
    ("keep-trying", [None, Some("true")]),
    ("watch", [Some("1"), Some("ssh:h:2")]),
    ("profile", [Some("1"), Some("2")]),
    ("watch-cpu", [None, Some("self")]),
    ("prometheus", [Some("127.0.0.1:1"), Some("127.0.0.1:2")]),
    ("prometheus-linger", [Some("1s"), Some("2s")]),
    ("otlp", [Some("http://127.0.0.1:1/a"), Some("http://127.0.0.1:1/b")]),
    ("otlp-interval", [Some("1s"), Some("2s")]),
    ("jsonl", [Some("a.jsonl"), Some("b.jsonl")]),
    ("csv", [Some("a.csv"), Some("b.csv")]),
    ("output", [Some("a"), Some("b")]),
    ("record-mode", [Some("600"), Some("640")]),
    ("block", [Some("1"), Some("2")]),
    ("no-record", [None, Some("true")]),
    ("requests", [Some("all"), Some("slowest=5")]),
    ("json", [None, Some("true")]),
    ("quiet", [None, Some("true")]),
    ("verbose", [None, Some("true")]),
    ("no-tui", [None, Some("true")]),
    ("no-color", [None, Some("true")]),
];

/// Used instead of URLs for a scenario.
const SCENARIO_FILES: [Option<&str>; 2] = [Some("one.toml"), Some("other.toml")];

const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const ONES: &str = "1111111111111111111111111111111111111111111111111111111111111111";

type Line = &'static [(&'static str, &'static str)];

const URL: (&str, &str) = ("url", "http://127.0.0.1:1/");
const SECURE: (&str, &str) = ("url", "https://127.0.0.1:1/");

/// The other options of a run. Everything random has a seed, so that each line always has the same effect.
const RUNS: &[Line] = &[
    &[],
    &[URL],
    &[("targets", "one.txt")],
    &[URL, ("think", "exp:1ms"), ("seed", "9")],
    &[URL, ("rate", "5/s")],
    &[URL, ("rate", "5/s"), ("arrivals", "poisson"), ("seed", "9")],
    // For a search, whose probes have a rate.
    &[URL, ("arrivals", "poisson"), ("seed", "9")],
    &[URL, ("stage", "constant 5/s 9s poisson"), ("seed", "9")],
    &[URL, ("replay", "one.log")],
    &[URL, ("replay", "columns.csv"), ("replay-column", "a")],
    &[URL, ("replay", "requests.jsonl")],
    &[URL, ("requests", "sample=5%"), ("seed", "9")],
    &[URL, ("prometheus", "127.0.0.1:3")],
    &[URL, ("otlp", "http://127.0.0.1:1/")],
    &[URL, ("http", "h2c")],
    &[URL, ("unix", "/tmp/one")],
    &[URL, ("no-record", "true")],
    &[SECURE, ("cacert", "one.pem")],
    &[SECURE, ("insecure", "true")],
    &[SECURE, ("insecure", "true"), ("cert", "one.pem"), ("key", "one.key")],
];

const SCENARIOS: &[Line] = &[
    &[("url", "one.toml"), ("seed", "9")],
    &[("url", "one.toml"), ("rate", "5/s"), ("seed", "9")],
    &[("url", "one.toml"), ("rate", "5/s"), ("arrivals", "poisson"), ("seed", "9")],
    &[("url", "one.toml"), ("replay", "one.log"), ("seed", "9")],
    &[("url", "one.toml"), ("replay", "columns.csv"), ("replay-column", "a"), ("seed", "9")],
    &[("url", "one.toml"), ("prometheus", "127.0.0.1:3"), ("seed", "9")],
    &[("url", "one.toml"), ("otlp", "http://127.0.0.1:1/"), ("seed", "9")],
    &[("url", "one.toml"), ("http", "h2c"), ("seed", "9")],
    &[("url", "one.toml"), ("unix", "/tmp/one"), ("seed", "9")],
    &[("url", "one.toml"), ("no-record", "true"), ("seed", "9")],
    &[("url", "mysql://a@127.0.0.1:1/d"), ("workload", "oltp-read-only"), ("seed", "9")],
    &[("url", "redis://127.0.0.1:1/"), ("command", "PING")],
    &[("url", "secure.toml"), ("insecure", "true"), ("seed", "9")],
    &[("url", "secure.toml"), ("cacert", "one.pem"), ("seed", "9")],
    &[("url", "secure.toml"), ("insecure", "true"), ("cert", "one.pem"), ("key", "one.key"), ("seed", "9")],
];

const DATABASE: (&str, &str) = ("url", "mysql://a@127.0.0.1:1/d");
const QUERY: (&str, &str) = ("query", "SELECT 1");

const DATABASES: &[Line] = &[
    &[DATABASE, QUERY],
    // With pipelining.
    &[("url", "postgres://a@127.0.0.1:1/d"), QUERY],
    &[DATABASE, QUERY, ("think", "exp:1ms"), ("seed", "9")],
    &[DATABASE, QUERY, ("rate", "5/s")],
    &[DATABASE, QUERY, ("rate", "5/s"), ("arrivals", "poisson"), ("seed", "9")],
    // For a search, whose probes have a rate.
    &[DATABASE, QUERY, ("arrivals", "poisson"), ("seed", "9")],
    &[DATABASE, QUERY, ("replay", "one.log")],
    &[DATABASE, QUERY, ("replay", "columns.csv"), ("replay-column", "a")],
    &[DATABASE, QUERY, ("requests", "sample=5%"), ("seed", "9")],
    &[DATABASE, QUERY, ("prometheus", "127.0.0.1:3")],
    &[DATABASE, QUERY, ("otlp", "http://127.0.0.1:1/")],
    &[DATABASE, QUERY, ("no-record", "true")],
    &[DATABASE, QUERY, ("cacert", "one.pem")],
    &[DATABASE, QUERY, ("insecure", "true")],
    &[DATABASE, QUERY, ("insecure", "true"), ("cert", "one.pem"), ("key", "one.key")],
];

/// In a mode that drives a database, an option `url` takes one of these.
const DATABASE_URLS: [Option<&str>; 2] = [Some("mysql://a@127.0.0.1:1/d"), Some("mysql://a@127.0.0.1:1/e")];

/// Creates the files that values name, in a directory of their own.
fn files(folder: &Path) {
    for name in ["two", "one"] {
        let made = generate_simple_self_signed(vec![format!("{name}.example")]).unwrap();
        fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), made.signing_key.serialize_pem()).unwrap();
        // Another certificate of the same key.
        let again = CertificateParams::new(vec!["again.example".to_owned()]).unwrap();
        let again = again.self_signed(&made.signing_key).unwrap();
        fs::write(folder.join("again.pem"), again.pem()).unwrap();
        fs::write(folder.join(format!("{name}.txt")), format!("GET http://127.0.0.1:1/{name}\n")).unwrap();
    }
    let [one, two] = ["one.pem", "two.pem"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    fs::write(folder.join("both.pem"), one + &two).unwrap();
    fs::write(folder.join("one.log"), "1.0\n2.0\n").unwrap();
    fs::write(folder.join("two.log"), "1.0\n3.0\n").unwrap();
    let requests = [
        r#"{"time": 1.0, "path": "/a", "headers": {"Cookie": "a=b"}}"#,
        r#"{"time": 2.0, "path": "/b"}"#,
        r#"{"time": 3.0, "method": "POST", "path": "/a"}"#,
    ];
    fs::write(folder.join("requests.jsonl"), requests.join("\n")).unwrap();
    fs::write(folder.join("columns.csv"), "a,b\n1.0,1.0\n2.0,3.0\n").unwrap();
    for (name, scheme) in [("one", "http"), ("secure", "https"), ("other", "http")] {
        let scenario = format!(
            "[vars]\npath = \"\"\n\n[targets.here]\nurl = \"{scheme}://127.0.0.1:1\"\n\n\
             [[request]]\nname = \"{name}\"\npath = \"/{{{{path}}}}\"\n"
        );
        fs::write(folder.join(format!("{name}.toml")), scenario).unwrap();
    }
}

/// Options as typed, with one of them replacing what the line has.
fn typed(line: Line, option: (&str, Option<&str>), folder: &Path) -> GivenOptions {
    let mut given = GivenOptions::default();
    let others = line.iter().filter(|(name, _)| *name != option.0).map(|(name, text)| (*name, Some(*text)));
    for (name, text) in others.chain([option]) {
        let Some(text) = text else { continue };
        let text = match text {
            "self" => std::process::id().to_string(),
            file if folder.join(file).is_file() => folder.join(file).display().to_string(),
            text => text.to_owned(),
        };
        given.set(name, [text]);
    }
    given
}

/// Everything that conducting and printing the run reads.
fn effect_of(run: &PreparedRun) -> String {
    let PreparedRun { plan, protocol, thresholds, sinks, keep, watch_cpu, data_limit, spec, given, .. } = run;
    let output = &spec.output;
    let output = (
        &output.folder,
        &output.block,
        output.json,
        output.no_color,
        output.no_record,
        output.verbose,
        spec.display(),
    );
    format!(
        "{plan:?} {protocol:?} {thresholds:?} {sinks:?} {keep:?} {watch_cpu:?} {data_limit:?} {:?} {} {} {output:?} {:?} {:?}",
        spec.observers,
        spec.connection.server_account,
        spec.limits.keep_trying,
        on_invalid(spec),
        given_record_mode(given)
    )
}

/// What `mode` does with these options.
fn effect(mode: Mode, given: &GivenOptions) -> anyhow::Result<String> {
    let environment = Environment::none();
    mode.check(given)?;
    Ok(match mode {
        Mode::Run | Mode::Database => effect_of(&prepare(&given.spec()?, &environment)?),
        Mode::Scenario => {
            ensure!(given.names_scenario(), "no scenario is named");
            effect_of(&prepare(&scenario_file::merge(given)?.spec, &environment)?)
        }
        Mode::Search => {
            let request = SearchRequest {
                objective: "p99 < 20ms".to_owned(),
                from: None,
                to: None,
                tolerance: 0.02,
                probe_duration: None,
                probes: Count(9),
            };
            let runs = search::planned(&SearchPlan::of(&request)?, given, &environment)?;
            // A search reads its output from the options: that of its probes is not printed.
            let runs = runs.map(|run| {
                (
                    run.plan,
                    run.protocol,
                    run.watch_cpu,
                    run.spec.limits.keep_trying,
                    run.spec.connection.server_account,
                )
            });
            format!("{runs:?} {:?} {:?}", SearchOutput::of(given), given_record_mode(given))
        }
        Mode::Calibrate => {
            let run = calibrate::planned(given, &environment)?;
            format!("{:?} {:?} {}", run.plan, run.protocol, given.has("json"))
        }
    })
}

/// If this fails, an option is accepted in a mode and has no effect.
#[test]
fn every_option_is_used_or_refused_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let modes = [
        (Mode::Run, RUNS),
        (Mode::Scenario, SCENARIOS),
        (Mode::Database, DATABASES),
        (Mode::Search, RUNS),
        (Mode::Search, SCENARIOS),
        (Mode::Search, DATABASES),
        (Mode::Calibrate, &RUNS[..1]),
    ];
    let (mut used, mut accepted, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (mode, lines) in modes {
        for (line, option) in lines.iter().flat_map(|line| OPTIONS.iter().map(move |option| (*line, option)))
        {
            let (_, values) =
                VALUES.iter().find(|(name, _)| *name == option.name).expect("values of each option");
            let values = match (mode, option.name) {
                (Mode::Scenario, "url") => SCENARIO_FILES,
                (Mode::Database, "url") => DATABASE_URLS,
                _ => *values,
            };
            let effects = values.map(|value| effect(mode, &typed(line, (option.name, value), folder.path())));
            let place = format!("{mode:?} --{} with {line:?}", option.name);
            let key = (format!("{mode:?}"), option.name);
            if values.iter().zip(&effects).any(|(value, effect)| value.is_some() && effect.is_ok()) {
                accepted.insert(key.clone());
            }
            match effects {
                [Ok(one), Ok(other)] if one == other => wrong.push(format!("{place} has no effect")),
                [Ok(_), Ok(_)] => drop(used.insert(key)),
                // A certificate has only one matching key.
                [Ok(_), Err(_)] if option.name == "key" => drop(used.insert(key)),
                refused => {
                    let errors =
                        refused.into_iter().filter_map(Result::err).map(|error| format!("{error:#}"));
                    let long = errors.filter(|error| error.lines().count() != 1);
                    wrong.extend(long.map(|error| format!("{place}: {error}")));
                }
            }
        }
    }
    // An option with only one accepted value may have no effect in any mode.
    wrong.extend(accepted.difference(&used).map(|(mode, option)| format!("{mode} --{option}: is it used?")));
    for (mode, option) in modes.iter().flat_map(|(mode, _)| OPTIONS.iter().map(move |option| (*mode, option)))
    {
        // A scenario is named by its file, and a database by its URL, so a target file is always one too many.
        let has_url = matches!(mode, Mode::Scenario | Mode::Database);
        let is_refused = mode.refuses(option.group).is_some() || (has_url && option.name == "targets");
        if is_refused == used.contains(&(format!("{mode:?}"), option.name)) {
            wrong.push(format!(
                "{mode:?} --{}: refused {is_refused}, and in no line here otherwise",
                option.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

type VerbRow = (&'static str, [Option<&'static str>; 2], &'static [&'static str]);

/// The options of `drive` that are not options of a run: two values of each, and the modes that use it.
#[rustfmt::skip]
const OF_THE_VERB: &[VerbRow] = &[
    ("callers", [Some("30"), Some("40")], &["run", "scenario", "search", "spec", "dry run"]),
    ("search", [Some("p99 < 20ms"), Some("p99 < 30ms")], &["run", "scenario", "search"]),
    ("search-from", [Some("5/s"), Some("6/s")], &["search"]),
    ("search-to", [Some("5k/s"), Some("6k/s")], &["search"]),
    ("search-tolerance", [Some("2%"), Some("3%")], &["search"]),
    ("probe-duration", [Some("5s"), Some("6s")], &["search"]),
    ("probes", [Some("8"), Some("9")], &["search"]),
    ("dry-run", [None, Some("true")], &["scenario", "dry run"]),
    ("calibrate", [None, Some("true")], &[]),
    ("spec", [Some("one.json"), Some("two.json")], &["run", "scenario", "search", "spec", "dry run"]),
    ("print-spec", [None, Some("true")], &["run", "scenario", "spec"]),
    ("print-workload", [None, Some("true")], &[]),
];

/// A command line for each mode.
const MODES: [(&str, Line); 6] = [
    ("run", &[URL]),
    ("scenario", &[("url", "one.toml"), ("seed", "9")]),
    ("search", &[URL, ("search", "p99 < 10ms")]),
    ("calibrate", &[("calibrate", "true")]),
    ("spec", &[URL, ("print-spec", "true")]),
    ("dry run", &[("url", "one.toml"), ("seed", "9"), ("dry-run", "true")]),
];

/// What a command line does; the options are typed as a user types them.
fn effect_of_line(line: Line, option: (&str, Option<&str>), folder: &Path) -> anyhow::Result<String> {
    let mut words = vec!["parallax".to_owned(), "drive".to_owned()];
    for (name, given) in typed(line, option, folder).0 {
        match given.texts[0].as_str() {
            "true" => words.push(format!("--{name}")),
            text if name == "url" => words.push(text.to_owned()),
            text => words.push(format!("--{name}={text}")),
        }
    }
    let command = crate::Cli::command();
    let matches = crate::Cli::command()
        .try_get_matches_from(words)
        .map_err(|error| anyhow::anyhow!("refused by clap: {:?}", error.kind()))?;
    let line = CommandLine { command: &command, matches: &matches }.verb().unwrap();
    let (given, order) = plan(&Args::from_arg_matches(line.matches).unwrap(), &line)?;
    if let Order::Search(request) = &order {
        SearchPlan::of(request)?;
    }
    let effect = match order {
        Order::PrintSpec => serde_json::to_string(&given.spec()?)?,
        _ => effect(order.mode(&given), &given)?,
    };
    Ok(format!("{order:?} {effect}"))
}

/// If this fails, an option of the verb is accepted in a mode and has no effect, or somebody has not decided what a new
/// option does.
#[test]
fn every_option_of_the_verb_is_used_or_refused_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    for (name, connections) in [("one", 3), ("two", 4)] {
        let spec = format!(
            r#"{{"request": {{"urls": {{"url": ["http://127.0.0.1:1/"]}}}}, "pool": {{"connections": {connections}}}}}"#
        );
        fs::write(folder.path().join(format!("{name}.json")), spec).unwrap();
    }
    let command = crate::Cli::command();
    let arguments = command.find_subcommand("drive").unwrap().get_arguments().map(long_name);
    let mut wrong = Vec::new();
    for name in arguments.filter(|name| !["help", "version"].contains(name) && named(name).is_none()) {
        let Some((_, values, uses)) = OF_THE_VERB.iter().find(|(known, ..)| *known == name) else {
            wrong.push(format!("--{name}: which modes use it?"));
            continue;
        };
        for (mode, line) in MODES {
            match values.map(|value| effect_of_line(line, (name, value), folder.path())) {
                [Ok(one), Ok(other)] if one == other => wrong.push(format!("{mode} --{name} has no effect")),
                [Ok(_), Ok(_)] if uses.contains(&mode) => {}
                [Ok(_), Ok(_)] => wrong.push(format!("{mode} --{name} is used")),
                effects => {
                    let errors: Vec<String> = effects
                        .into_iter()
                        .filter_map(Result::err)
                        .map(|error| format!("{error:#}"))
                        .collect();
                    let is_long = errors.iter().any(|error| error.lines().count() != 1);
                    if is_long || uses.contains(&mode) {
                        wrong.push(format!("{mode} --{name}: {errors:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// If this fails, a run of what `--print-spec` printed is not the run whose spec was printed.
#[test]
fn a_printed_spec_has_every_option() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let mut seen = BTreeSet::new();
    for (line, (name, values)) in RUNS
        .iter()
        .chain(SCENARIOS)
        .chain(DATABASES)
        .flat_map(|line| VALUES.iter().map(move |row| (*line, row)))
    {
        let given = typed(line, (name, values[1]), folder.path());
        let Ok(spec) = given.spec() else { continue };
        let read = RunSpec::from_json(&serde_json::to_string_pretty(&spec).unwrap()).unwrap();
        assert_eq!(read.given(), given, "--{name} with {line:?}");
        seen.insert(*name);
    }
    assert_eq!(seen.len(), OPTIONS.len());
}

#[test]
fn a_dry_run_prints_no_spec() {
    let line: Line = &[("url", "one.toml"), ("dry-run", "true")];
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let error = effect_of_line(line, ("print-spec", Some("true")), folder.path()).unwrap_err().to_string();
    assert!(error.starts_with("--dry-run cannot be used with --print-spec"), "{error}");
}

#[test]
fn a_refused_url_is_called_so() {
    let mut given = GivenOptions::default();
    given.set("url", ["http://127.0.0.1:1/"]);
    let error = Mode::Calibrate.check(&given).unwrap_err().to_string();
    assert!(error.starts_with("a URL cannot be used with --calibrate"), "{error}");
}

/// If this fails, somebody repeats a run by its seed and believes that it was random.
#[test]
fn a_seed_is_refused_where_nothing_is_random() {
    let given = |line: &[(&str, &str)]| {
        let mut given = GivenOptions::default();
        line.iter().for_each(|(name, text)| given.set(name, [*text]));
        given
    };
    for line in [
        &[URL, ("seed", "5")][..],
        &[URL, ("seed", "5"), ("rate", "5/s")],
        &[URL, ("seed", "5"), ("think", "1ms")],
    ] {
        let error = effect(Mode::Run, &given(line)).unwrap_err().to_string();
        assert!(error.starts_with("--seed 5 has no effect: nothing in this run is random"), "{error}");
    }
    let error = effect(Mode::Search, &given(&[URL, ("seed", "5")])).unwrap_err().to_string();
    assert!(error.starts_with("--seed 5 has no effect"), "{error}");
}
