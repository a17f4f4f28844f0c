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
use super::connect_args::{ConnectArgs, SwitchArg, TlsVersionArg};
use super::secrets;
use super::servers::{Servers, refuse_strange, servers};

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
///
/// # Errors
///
/// When a scenario is named beside something else, or in a way that would be taken for a host.
pub fn named_by(args: &Args) -> anyhow::Result<Option<PathBuf>> {
    let is_file = |text: &&String| {
        Path::new(text).extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"))
            && !text.contains("://")
    };
    if let Some(script) = args.url.iter().find(|text| is_other_file(text)) {
        bail!(
            "`{script}` is a file and no URL; there are no scripts: journeys with data and checks come from a scenario, see `parallax scenario init`"
        );
    }
    let Some(file) = args.url.iter().find(is_file) else { return Ok(None) };
    ensure!(
        args.url.len() == 1,
        "`{file}` is a scenario, which is driven alone; put the other URLs into it as its targets"
    );
    ensure!(
        file.ends_with(".toml"),
        "`{file}`: the name of a scenario ends in .toml, in small letters; rename it"
    );
    Ok(Some(PathBuf::from(file)))
}

/// Another tool's file, where a URL could stand. No host is called like that.
fn is_other_file(text: &str) -> bool {
    let end = Path::new(text).extension().and_then(|end| end.to_str()).unwrap_or_default();
    !text.contains("://") && ["lua", "js", "jmx", "yaml", "yml", "json"].contains(&end)
}

/// What a URL is given by options, a scenario says itself.
///
/// # Errors
///
/// For an option that would say nothing.
fn refuse_options_of_requests(args: &Args) -> anyhow::Result<()> {
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
    // First: what the file says would only be in the way of it.
    refuse_options_of_requests(&Args::from_arg_matches(matches)?)?;
    let shown = path.display().to_string();
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read the scenario `{shown}`"))?;
    let draft = Draft::read(&shown, &text, sets)?;
    let mut settings = draft.settings()?;
    let typed = typed(command, matches);
    let is_set = |setting: &&Setting| setting.origin == SettingOrigin::Set;
    let set: Vec<&str> = settings.iter().filter(is_set).map(|setting| setting.option).collect();
    settings.retain(|setting| {
        let stronger = |option: &str| {
            typed.contains_key(option) || (setting.origin == SettingOrigin::File && set.contains(&option))
        };
        !typed.contains_key(setting.option) && !gives_way(setting.option, stronger)
    });
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

/// Whether an option gives way to one that was given with more weight: it says the same in another way, or is of
/// no use beside it.
fn gives_way(option: &str, is_given: impl Fn(&str) -> bool) -> bool {
    DISPLACED.iter().any(|(by, options)| is_given(by) && options.contains(&option))
}

/// What each option takes the place of. What bounds a run in any case stays: how long, how many.
const DISPLACED: [(&str, &[&str]); 5] = [
    ("rate", &["stage", "replay", "speed", "replay-column", "think"]),
    // Stages say themselves how long they are, and how their arrivals lie.
    ("stage", &["rate", "replay", "speed", "replay-column", "think", "arrivals", "jitter", "duration"]),
    ("replay", &["rate", "stage", "think", "arrivals", "jitter"]),
    ("arrivals", &["jitter"]),
    ("jitter", &["arrivals"]),
];

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
        let read = |file: &Path| fs::read(self.beside(file));
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

    /// Where a file is that the scenario names.
    fn beside(&self, file: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(file)
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
    loaded: &Loaded,
    scenario: Scenario,
    settings: Settings,
) -> anyhow::Result<(Web<Scenario>, Servers)> {
    let args = &loaded.args.connect;
    let mut urls = scenario.origins();
    if let Some(socket) = &args.unix {
        ensure!(
            urls.len() == 1,
            "--unix is one socket, and the scenario has {} targets; write url = \"unix:{socket}\" under the one \
             that is there",
            urls.len()
        );
        urls = urls.into_iter().map(|url| url.over_socket(socket)).collect();
    }
    // Each server is asked for what is its own: what is nobody's would be dropped without a word.
    refuse_strange(&urls, args)?;
    let mut all = Servers { plans: Vec::new(), peers: Vec::new() };
    for (server, url) in scenario.servers().iter().zip(urls) {
        let own = of_server(loaded, server);
        let found = servers(vec![url], &own).with_context(|| format!("target `{}`", server.name))?;
        all.plans.extend(found.plans);
        all.peers.extend(found.peers);
    }
    let (requests, checks) = (scenario.prepared(), scenario.checks());
    let parts = Parts { requests: &requests, origins: &all.plans, checks: &checks, settings };
    Ok((Web::new(scenario, parts)?, all))
}

/// How one server is reached: as the options say for those that they fit, and as its own table says.
fn of_server(loaded: &Loaded, server: &scenario::Server) -> ConnectArgs {
    let mut own = loaded.args.connect.clone();
    own.resolve.retain(|resolve| resolve.is_for(&server.url));
    let tls = &server.tls;
    if tls.insecure || tls.ca.is_some() {
        own.insecure = tls.insecure;
        own.cacert = tls.ca.as_ref().map(|file| loaded.beside(file));
    }
    if let Some((cert, key)) = &tls.identity {
        own.cert = Some(loaded.beside(cert));
        own.key = Some(loaded.beside(key));
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
            tls_version: TlsVersionArg::Auto,
            tls_resumption: SwitchArg::On,
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
    use crate::drive::prepare_scenario;

    #[derive(Debug, Parser)]
    #[command(name = "drive")]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    const TEXT: &str = "[run]\nconnections = 3\nrate = \"5/s\"\ntimeout = \"2s\"\n[vars]\nuser = \"ann\"\napi_token = \"hunter2\"\n\
                        [targets.api]\nurl = \"http://127.0.0.1:1\"\n[[request]]\npath = \"/{{user}}\"\n";

    fn loaded(text: &str, more: &[&str]) -> anyhow::Result<Loaded> {
        loaded_in(tempfile::tempdir().unwrap().path(), text, more)
    }

    fn loaded_in(folder: &Path, text: &str, more: &[&str]) -> anyhow::Result<Loaded> {
        let path = folder.join("s.toml");
        fs::write(&path, text).unwrap();
        let line = ["drive", path.to_str().unwrap()];
        let command = Line::command();
        let matches = command.clone().try_get_matches_from(line.iter().chain(more))?;
        let args = Args::from_arg_matches(&matches)?;
        load(named_by(&args)?.unwrap(), &command, &matches, &args.set)
    }

    /// If this fails, a scenario is taken for a host of that name.
    #[test]
    fn a_scenario_is_named_alone_and_in_small_letters() {
        let named = |urls: &[&str]| {
            let line = Line::try_parse_from(["drive"].iter().chain(urls)).unwrap();
            named_by(&line.args).map_err(|error| error.to_string())
        };
        assert_eq!(named(&["x/a.toml"]), Ok(Some("x/a.toml".into())));
        assert_eq!(named(&["http://h/a.toml", "h/b"]), Ok(None));
        for (urls, what) in [
            (&["a.toml", "http://h/"][..], "driven alone"),
            (&["h", "b.toml"], "`b.toml` is a scenario"),
            (&["A.TOML"], "in small letters"),
            (&["script.lua"], "there are no scripts"),
        ] {
            let error = named(urls).unwrap_err();
            assert!(error.contains(what) && error.lines().count() == 1, "{error}");
        }
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

    /// If this fails, an option of the file that is of no use any more stands in the way of what was typed.
    #[test]
    fn a_load_that_was_typed_takes_the_place_of_the_files() {
        let run = |run: &str| TEXT.replace("rate = \"5/s\"\n", run);
        let even = run("rate = \"5/s\"\nduration = \"9s\"\njitter = \"10%\"\n");
        let stages = run("stages = [\"constant 1/s 1s\", \"pause 1s\"]\n");
        let replay = run("replay = \"log\"\nspeed = \"2x\"\nreplay_column = \"t\"\nduration = \"9s\"\n");
        let callers = run("think = \"1s\"\nduration = \"9s\"\n");
        let (stage, rate) = ("ramp 1/s..50/s 30s", "7/s");
        for (text, typed, left) in [
            (&even, ["--stage", stage], "stages 1"),
            (&even, ["--rate", rate], "rate 7/s duration 9s jitter"),
            (&even, ["--replay", "log"], "replay duration 9s"),
            (&even, ["--arrivals", "poisson"], "rate 5/s duration 9s arrivals"),
            (&even, ["--set", "stages=[\"constant 3/s 2s\"]"], "stages 1"),
            (&stages, ["--rate", rate], "rate 7/s"),
            (&stages, ["--stage", stage], "stages 1"),
            (&replay, ["--rate", rate], "rate 7/s duration 9s"),
            (&replay, ["--stage", stage], "stages 1"),
            (&callers, ["--rate", rate], "rate 7/s duration 9s"),
            (&callers, ["--stage", stage], "stages 1"),
        ] {
            let args = loaded(text, &typed).unwrap_or_else(|error| panic!("{typed:?}: {error:#}")).args;
            let words = [
                args.rate.map(|rate| format!("rate {rate}")),
                (!args.stages.is_empty()).then(|| format!("stages {}", args.stages.len())),
                args.replay.is_some().then(|| "replay".to_owned()),
                args.duration.map(|time| format!("duration {}", time.written())),
                args.arrivals.map(|_| "arrivals".to_owned()),
                args.jitter.map(|_| "jitter".to_owned()),
                args.speed.map(|_| "speed".to_owned()),
                args.replay_column.map(|_| "column".to_owned()),
                args.think.map(|_| "think".to_owned()),
            ];
            assert_eq!(words.into_iter().flatten().collect::<Vec<_>>().join(" "), left, "{typed:?}");
        }
    }

    /// If this fails, the user reads of options that the file has, and not that a scenario cannot be searched.
    #[test]
    fn a_search_is_refused_before_the_file_is_in_its_way() {
        let text = TEXT.replace("rate =", "duration = \"9s\"\nrate =");
        let error = format!("{:#}", loaded(&text, &["--search", "p99 < 20ms"]).err().unwrap());
        assert!(error.starts_with("--search drives a URL"), "{error}");
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

    fn places(text: &str, more: &[&str]) -> anyhow::Result<Vec<String>> {
        let plan = prepare_scenario(&mut loaded(text, more)?)?.plan;
        Ok(plan.peers.iter().map(|peer| format!("{:?}", peer.place)).collect())
    }

    /// If this fails, the load goes to another server than was typed, and nobody is told.
    #[test]
    fn options_say_where_the_targets_are_or_are_refused() {
        let one = TEXT.replace("127.0.0.1:1", "shop:80");
        let two = format!("{}target = \"api\"\n[targets.other]\nurl = \"http://other\"\n", one);
        let (resolve, unix) = (["--resolve", "shop:80:127.0.0.9"], ["--unix", "/x.sock"]);
        assert_eq!(places(&one, &resolve).unwrap(), ["Address(127.0.0.9:80)"]);
        assert_eq!(places(&two, &resolve).unwrap()[0], "Address(127.0.0.9:80)");
        assert_eq!(places(&one, &unix).unwrap(), [r#"Unix("/x.sock")"#]);
        for (text, options, what) in [
            (
                &one,
                ["--resolve", "shop:81:127.0.0.9"],
                "--resolve names a host and port that no request goes to",
            ),
            (
                &two,
                ["--resolve", "shp:80:127.0.0.9"],
                "--resolve names a host and port that no request goes to",
            ),
            (&two, unix, "--unix is one socket, and the scenario has 2 targets"),
            (&two, ["--sni", "shop"], "options of TLS say nothing without https://"),
        ] {
            let error = format!("{:#}", places(text, &options).unwrap_err());
            assert!(error.contains(what) && error.lines().count() == 1, "{error}");
        }
    }

    /// If this fails, a scenario finds its certificates from one working directory alone.
    #[test]
    fn certificates_stand_beside_the_scenario() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            fs::write(folder.path().join(name), "no certificate").unwrap();
        }
        let text = TEXT.replace("http:", "https:");
        for (tls, file) in [
            ("tls = { ca = \"ca.pem\" }", "ca.pem"),
            ("tls = { insecure = true, cert = \"cert.pem\", key = \"none.pem\" }", "none.pem"),
        ] {
            let text = text.replace("[[request]]", &format!("{tls}\n[[request]]"));
            let mut loaded = loaded_in(folder.path(), &text, &[]).unwrap();
            let error = format!("{:#}", prepare_scenario(&mut loaded).err().expect(tls));
            let path = folder.path().join(file);
            assert!(error.contains(&format!("`{}`", path.display())), "{error}");
        }
    }
}
