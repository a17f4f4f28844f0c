//! Scenario files on the command line: found, read, merged with the options, prepared.
//!
//! What a file says of the run becomes options, read like those that were typed: a typed one stands before a
//! `--set`, that before the file, that before the default.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command, FromArgMatches};
use codec::web::{Parts, Settings, Web};
use record::document::{EffectiveOption, JourneyFacts, OptionSource};
use scenario::{Draft, Kind, Scenario, Setting, SettingOrigin, Surroundings};

use super::args::Args;
use super::connect_args::ConnectArgs;
use super::secrets;
use super::servers::{Servers, servers};

/// A scenario file, with the options of the command line that it was merged with.
pub struct Loaded {
    pub draft: Draft,
    pub path: PathBuf,
    /// What became of the file's options: those in force.
    settings: Vec<Setting>,
    /// All options, the file's among them.
    pub matches: ArgMatches,
    pub args: Args,
}

/// Whether what stands where a URL could is a scenario file.
pub fn named_by(args: &Args) -> Option<PathBuf> {
    match args.url.as_slice() {
        [one] if one.ends_with(".toml") && !one.contains("://") => Some(PathBuf::from(one)),
        _ => None,
    }
}

/// What a URL is given by options, a scenario says itself.
///
/// # Errors
///
/// For an option that would say nothing.
pub fn refuse_options_of_requests(args: &Args) -> anyhow::Result<()> {
    let given = [
        (args.method.is_some(), "-X", "method under its [[request]]"),
        (args.body.is_some(), "-b", "body under its [[request]]"),
        (!args.headers.is_empty(), "-H", "headers under [defaults]"),
        (args.expect_status.is_some(), "--expect-status", "expect under [defaults]"),
        (args.expect_body_contains.is_some(), "--expect-body-contains", "expect under [defaults]"),
        (args.expect_sha256.is_some(), "--expect-sha256", "expect under [defaults]"),
    ];
    ensure!(
        args.search.is_none(),
        "--search drives a URL or --targets, not a scenario; drive the scenario at several --rate instead"
    );
    for (is_given, option, instead) in given {
        ensure!(!is_given, "{option} is for a URL; a scenario has {instead}");
    }
    Ok(())
}

/// Without a scenario there is nothing to set or to show.
///
/// # Errors
///
/// For an option that would say nothing.
pub fn refuse_options_of_scenarios(args: &Args) -> anyhow::Result<()> {
    ensure!(args.set.is_empty(), "--set changes a scenario; name a file that ends in .toml");
    ensure!(!args.dry_run, "--dry-run shows a scenario; name a file that ends in .toml");
    Ok(())
}

/// Reads the file at `path` and merges it with the options in `matches`, which `command` defines.
///
/// # Errors
///
/// One line for the first thing that is wrong, with its place.
pub fn load(
    path: PathBuf,
    command: &Command,
    matches: &ArgMatches,
    sets: &[String],
) -> anyhow::Result<Loaded> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read the scenario `{shown}`"))?;
    let draft = Draft::read(&shown, &text, sets)?;
    let mut settings = draft.settings()?;
    let typed = typed(command, matches);
    settings.retain(|setting| !typed.contains_key(setting.option) && !gives_way(setting.option, &typed));
    let mut line: Vec<OsString> = vec![command.get_name().into()];
    line.extend(typed.into_values().flatten());
    for setting in &settings {
        line.extend(written(setting, command)?);
    }
    line.push("--".into());
    line.extend(matches.get_raw("url").into_iter().flatten().map(ToOwned::to_owned));
    let merged = command.clone().no_binary_name(false).try_get_matches_from(line);
    let matches = merged.map_err(|error| refused(&error, &settings))?;
    let mut args = Args::from_arg_matches(&matches).map_err(|error| refused(&error, &settings))?;
    // One for the whole run, so that one number makes it again.
    args.seed = Some(super::load::seed(&args));
    Ok(Loaded { draft, path, settings, matches, args })
}

/// The options that were typed, by long name, as they could be typed again.
fn typed(command: &Command, matches: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let options = command.get_arguments().filter(|argument| {
        let id = argument.get_id().as_str();
        argument.get_long().is_some()
            && matches.try_contains_id(id).is_ok()
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    });
    let written = options.map(|argument| {
        let id = argument.get_id().as_str();
        let long = argument.get_long().unwrap_or(id);
        let texts = match argument.get_action() {
            ArgAction::SetTrue => vec![OsString::from(format!("--{long}"))],
            _ => matches.get_raw(id).into_iter().flatten().map(|value| with_value(long, value)).collect(),
        };
        (long.to_owned(), texts)
    });
    written.collect()
}

fn with_value(long: &str, value: &std::ffi::OsStr) -> OsString {
    let mut text = OsString::from(format!("--{long}="));
    text.push(value);
    text
}

/// Whether a typed option says what a file's `option` says in another way.
fn gives_way(option: &str, typed: &BTreeMap<String, Vec<OsString>>) -> bool {
    let group = ["rate", "stage", "replay", "search"];
    group.contains(&option) && group.iter().any(|other| typed.contains_key(*other))
}

/// A file's option as it would be typed.
fn written(setting: &Setting, command: &Command) -> anyhow::Result<Vec<OsString>> {
    let known = command.get_arguments().find(|argument| argument.get_long() == Some(setting.option));
    let Some(argument) = known else {
        bail!("{}: this version has no --{}; take it out", setting.place, setting.option);
    };
    let texts = setting.values.iter();
    Ok(match argument.get_action() {
        ArgAction::SetTrue if setting.values == ["true"] => vec![format!("--{}", setting.option).into()],
        ArgAction::SetTrue => Vec::new(),
        _ => texts.map(|value| with_value(setting.option, value.as_ref())).collect(),
    })
}

/// Why the options cannot be, at the place of the file's option that it is about.
fn refused(error: &clap::Error, settings: &[Setting]) -> anyhow::Error {
    let what = crate::hints::one_line(error, &[]);
    let about = settings.iter().find(|setting| what.contains(&format!("--{}", setting.option)));
    match about {
        Some(setting) => anyhow::anyhow!("{}: {what}", setting.place),
        None => anyhow::anyhow!("{what}"),
    }
}

impl Loaded {
    /// Works out what the file means.
    ///
    /// # Errors
    ///
    /// One line for the first thing that cannot be done as it is written, with its place.
    pub fn compile(&self) -> anyhow::Result<Scenario> {
        let base = self.path.parent().unwrap_or(Path::new(""));
        let read = |file: &Path| fs::read(base.join(file));
        let environment = |name: &str| std::env::var(name).ok();
        let now = i64::try_from(clock::wall().0 / 1_000_000_000).unwrap_or(i64::MAX);
        let around = Surroundings {
            seed: self.args.seed.unwrap_or_default(),
            read: &read,
            environment: &environment,
            now,
        };
        Ok(self.draft.compile(&around)?)
    }

    /// Marks the options that the file gave as what they are, and adds what only a file can give.
    pub fn note(&self, options: &mut BTreeMap<String, EffectiveOption>) {
        for setting in &self.settings {
            let source = source(setting.origin);
            let value = match setting.values.as_slice() {
                [one] => one.clone(),
                several => serde_json::to_string(several).expect("a list of texts is JSON"),
            };
            // An option that may be given again is a list already.
            let known = options.entry(setting.option.to_owned());
            known.or_insert(EffectiveOption { value, source }).source = source;
        }
        for (name, value) in [("seed", self.args.seed), ("count", self.args.count)] {
            // Worked out: a fresh seed, or the rows of data that is used once.
            if let (Some(value), Some(option)) = (value, options.get_mut(name))
                && !matches!(option.source, OptionSource::Given | OptionSource::Set | OptionSource::File)
            {
                *option = EffectiveOption { value: value.to_string(), source: OptionSource::Derived };
            }
        }
        for (name, value, origin) in self.draft.values() {
            let shown = secrets::header(&format!("{name}: {value}"));
            let value = shown.split_once(": ").map_or(String::new(), |(_, value)| value.to_owned());
            options.insert(name, EffectiveOption { value, source: source(origin) });
        }
    }
}

fn source(origin: SettingOrigin) -> OptionSource {
    match origin {
        SettingOrigin::File => OptionSource::File,
        SettingOrigin::Set => OptionSource::Set,
    }
}

/// The protocol of a scenario, and its servers.
///
/// # Errors
///
/// One line for whatever cannot be done as asked.
pub fn protocol(
    scenario: Scenario,
    args: &Args,
    settings: Settings,
) -> anyhow::Result<(Web<Scenario>, Servers)> {
    let mut all = Servers { plans: Vec::new(), peers: Vec::new() };
    for server in scenario.servers() {
        let own = of_server(&args.connect, server);
        let found =
            servers(vec![server.url.clone()], &own).with_context(|| format!("target `{}`", server.name))?;
        all.plans.extend(found.plans);
        all.peers.extend(found.peers);
    }
    let (requests, checks) = (scenario.prepared(), scenario.checks());
    let parts = Parts { requests: &requests, origins: &all.plans, checks: &checks, settings };
    Ok((Web::new(scenario, parts)?, all))
}

/// How one server is reached: as the options say for those that they fit, and as its own table says.
fn of_server(args: &ConnectArgs, server: &scenario::Server) -> ConnectArgs {
    let mut own = args.clone();
    own.resolve.retain(|resolve| resolve.is_for(&server.url));
    let tls = &server.tls;
    if tls.insecure || tls.ca.is_some() {
        own.insecure = tls.insecure;
        own.cacert = tls.ca.as_ref().map(PathBuf::from);
    }
    if tls.cert.is_some() {
        own.cert = tls.cert.as_ref().map(PathBuf::from);
        own.key = tls.key.as_ref().map(PathBuf::from);
    }
    if tls.server_name.is_some() {
        own.sni.clone_from(&tls.server_name);
    }
    if server.url.scheme() == codec::web::Scheme::Http && tls == &scenario::Tls::default() {
        // Options of TLS are for those of the servers that speak it.
        own = ConnectArgs {
            insecure: false,
            cacert: None,
            cert: None,
            key: None,
            sni: None,
            alpn: Vec::new(),
            ..own
        };
    }
    own
}

/// Where each journey begins and ends among the requests.
pub fn journeys(kinds: &[Kind]) -> Vec<JourneyFacts> {
    let mut journeys: Vec<JourneyFacts> = Vec::new();
    for (place, kind) in (0..).zip(kinds) {
        let Some(name) = &kind.journey else { continue };
        match journeys.last_mut().filter(|journey| journey.name == *name && !kind.first) {
            Some(journey) => journey.last = place,
            None => journeys.push(JourneyFacts { name: name.clone(), first: place, last: place }),
        }
    }
    journeys
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "drive")]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const TEXT: &str = "[run]\nconnections = 3\nrate = \"5/s\"\ntimeout = \"2s\"\n[vars]\nuser = \"ann\"\napi_token = \"hunter2\"\n\
                        [targets.api]\nurl = \"http://127.0.0.1:1\"\n[[request]]\npath = \"/{{user}}\"\n";

    fn loaded(text: &str, more: &[&str]) -> anyhow::Result<Loaded> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.toml");
        fs::write(&path, text).unwrap();
        let line = ["drive", path.to_str().unwrap()];
        let command = Line::command();
        let matches = command.clone().try_get_matches_from(line.iter().chain(more))?;
        let args = Args::from_arg_matches(&matches)?;
        load(named_by(&args).unwrap(), &command, &matches, &args.set)
    }

    /// If this fails, a run is not the one that was asked for, or its record does not say who asked.
    #[test]
    fn a_typed_option_stands_before_a_set_and_that_before_the_file() {
        let loaded = loaded(TEXT, &["--timeout", "9s", "--set", "rate=7/s", "--set", "user=bob"]).unwrap();
        assert_eq!(loaded.args.connections, 3);
        assert_eq!(loaded.args.rate, Some("7/s".parse().unwrap()));
        assert_eq!(loaded.args.timeout.0, Some("9s".parse().unwrap()));
        let mut options = BTreeMap::new();
        for name in ["connections", "rate", "timeout"] {
            let value = "x".to_owned();
            options.insert(name.to_owned(), EffectiveOption { value, source: OptionSource::Given });
        }
        loaded.note(&mut options);
        for (name, source) in [
            ("connections", OptionSource::File),
            ("rate", OptionSource::Set),
            ("timeout", OptionSource::Given),
            ("vars.user", OptionSource::Set),
        ] {
            assert_eq!(options[name].source, source, "{name}");
        }
        assert_eq!(options["vars.user"].value, "bob");
        assert_eq!(options["vars.api_token"].value, "(redacted)");
        assert_eq!(options["targets.api.url"].value, "http://127.0.0.1:1");
    }

    #[test]
    fn what_the_options_refuse_is_told_with_its_place_in_the_file() {
        for (text, place, what) in [
            (TEXT.replace("connections = 3", "connections = 0"), "s.toml:2:15: ", "at least 1"),
            (TEXT.replace("timeout", "pace"), "s.toml:4:8: ", "precise, balanced"),
            (TEXT.replace("connections", "stamps"), "s.toml:2:10: ", "kernel, read"),
        ] {
            let error = format!("{:#}", loaded(&text, &[]).err().expect(what));
            assert!(error.contains(place) && error.contains(what) && error.lines().count() == 1, "{error}");
        }
    }
}
