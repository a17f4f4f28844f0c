//! Scenario files: read, merged with the options of a spec, and compiled.
//!
//! What a file sets for the run becomes options. Precedence: an option of the spec, a `--set`, the file, the default.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use codec::web::{Parts, Scheme, Web};
use database::{Database, DatabaseKind, DatabaseUrl, without_password};
use engine::Peer;
use protocols::DriveProtocol;
use record::document::{EffectiveOption, JourneyFacts, OptionSource};
use scenario::{Address, Draft, RequestKind, Scenario, Setting, SettingOrigin, Surroundings};
use units::{read_at_most, read_text_at_most};

use crate::environment::Environment;
use crate::options::{self, GivenOption, GivenOptions};
use crate::servers::{Servers, refuse_strange, servers};
use crate::spec::RunSpec;
use crate::{databases, secrets, statements, web_requests, workload};

/// Maximum size of a scenario file.
const LARGEST_SCENARIO: u64 = 16 << 20;

/// Maximum size of a file that a scenario names: its data, or a body.
const LARGEST_DATA: u64 = 256 << 20;

/// A scenario file, merged with the options of a spec.
pub struct Merged {
    draft: Draft,
    pub path: PathBuf,
    /// All options, including the file's, each with who gave it.
    pub given: GivenOptions,
    pub spec: RunSpec,
}

/// Whether the argument is a scenario file.
///
/// # Errors
///
/// When a scenario is not the only argument, or its name would be taken for a host.
pub fn names_scenario(urls: &[String]) -> anyhow::Result<bool> {
    let is_file = |text: &&String| {
        Path::new(text).extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"))
            && !text.contains("://")
    };
    if let Some(script) = urls.iter().find(|text| is_other_file(text)) {
        bail!(
            "`{script}` is a file, not a URL; there are no scripts: journeys with data and checks come from a scenario, see `parallax scenario init`"
        );
    }
    let Some(file) = urls.iter().find(is_file) else { return Ok(false) };
    ensure!(
        urls.len() == 1,
        "`{file}` is a scenario, which must be the only argument; add the other URLs to it as targets"
    );
    ensure!(
        file.ends_with(".toml"),
        "`{file}`: the name of a scenario must end in .toml, in lower case; rename it"
    );
    Ok(true)
}

/// Whether this is another tool's script instead of a URL. No host name has such an ending.
fn is_other_file(text: &str) -> bool {
    let end = Path::new(text).extension().and_then(|end| end.to_str()).unwrap_or_default();
    !text.contains("://") && ["lua", "js", "jmx", "yaml", "yml", "json"].contains(&end)
}

/// Reads the scenario file that `given` names and adds its options to them. Repeating it changes nothing.
///
/// # Errors
///
/// One line for the first error, with its place in the file.
pub fn merge(given: &GivenOptions) -> anyhow::Result<Merged> {
    let texts = |name: &str| given.0.get(name).map_or(&[][..], |given| &given.texts);
    let (path, text) = match (texts("workload").first(), texts("command")) {
        (Some(_), [_, ..]) => bail!("--command and --workload are two loads; leave one out"),
        (Some(name), []) => (PathBuf::from(name), workload::text(name, given)?),
        (None, [_, ..]) => (PathBuf::from("commands"), workload::commands(given)?),
        (None, []) => read(texts("url"))?,
    };
    let draft = Draft::read(&path.to_string_lossy(), &text, texts("set"))?;
    let mut settings = draft.settings()?;
    // `callers` is the older name of two options; the load decides which.
    let typed = |option: &str| {
        given.0.contains_key(option)
            || (option == "callers" && (given.has("users") || given.has("max-in-flight")))
    };
    let is_set = |setting: &&Setting| setting.origin == SettingOrigin::Set;
    let set: Vec<&str> = settings.iter().filter(is_set).map(|setting| setting.option).collect();
    settings.retain(|setting| {
        let stronger = |option: &str| {
            given.has(option) || (setting.origin == SettingOrigin::File && set.contains(&option))
        };
        !typed(setting.option) && !gives_way(setting.option, stronger)
    });
    let mut all = given.clone();
    // Withheld options have kept out the file's value, and are not options of the run.
    all.0.retain(|_, given| !given.texts.is_empty());
    for setting in &settings {
        for text in &setting.values {
            options::check(setting.option, text)
                .map_err(|error| anyhow::anyhow!("{}: `{text}`: {error}", setting.place))?;
        }
        let source = source(setting.origin);
        let texts = setting.values.clone();
        all.0.insert(setting.option.to_owned(), GivenOption { texts, source });
    }
    if let Some(callers) = all.0.remove("callers") {
        let name = if all.is_open() { "max-in-flight" } else { "users" };
        all.0.insert(name.to_owned(), callers);
    }
    let spec = all.spec().map_err(|error| refused(&error, &settings))?;
    Ok(Merged { draft, path, given: all, spec })
}

/// The path and the text of a scenario file.
fn read(urls: &[String]) -> anyhow::Result<(PathBuf, String)> {
    let shown = urls.first().context("a scenario without a file; give one")?;
    let path = PathBuf::from(shown);
    let text = File::open(&path).and_then(|file| read_text_at_most(file, LARGEST_SCENARIO));
    let text = text.with_context(|| format!("cannot read the scenario `{shown}`"))?;
    Ok((path, text))
}

/// Whether an option is replaced by one with higher precedence that sets the same thing in another way, or makes it
/// useless.
fn gives_way(option: &str, is_given: impl Fn(&str) -> bool) -> bool {
    DISPLACED.iter().any(|(by, options)| is_given(by) && options.contains(&option))
}

/// The options that each option replaces. The limits of a run (duration, count) are not replaced.
const DISPLACED: [(&str, &[&str]); 5] = [
    ("rate", &["stage", "replay", "speed", "replay-column", "think", "users"]),
    // Stages have their own lengths and arrivals.
    (
        "stage",
        &["rate", "replay", "speed", "replay-column", "think", "users", "arrivals", "jitter", "duration"],
    ),
    ("replay", &["rate", "stage", "think", "users", "arrivals", "jitter"]),
    ("arrivals", &["jitter"]),
    ("jitter", &["arrivals"]),
];

/// The error, with the place in the file of the option it names.
fn refused(error: &anyhow::Error, settings: &[Setting]) -> anyhow::Error {
    let what = format!("{error:#}");
    let about = settings.iter().find(|setting| what.contains(&format!("--{}", setting.option)));
    match about {
        Some(setting) => anyhow::anyhow!("{}: {what}", setting.place),
        None => anyhow::anyhow!("{what}"),
    }
}

impl Merged {
    /// The seed of the whole run: the given one, or a fresh one.
    pub fn seed(&self) -> u64 {
        crate::load::seed(&self.spec)
    }

    /// Compiles the file.
    ///
    /// # Errors
    ///
    /// One line for the first thing that cannot be done as written, with its place in the file.
    pub fn compile(&self, seed: u64, environment: &Environment<'_>) -> anyhow::Result<Scenario> {
        let read = |file: &Path| read_at_most(File::open(self.relative_to_file(file))?, LARGEST_DATA);
        let now = i64::try_from(clock::wall().0 / 1_000_000_000).unwrap_or(i64::MAX);
        let around = Surroundings { seed, read: &read, environment: environment.variable, now };
        Ok(self.draft.compile(&around)?)
    }

    /// The URL of a database: that of the scenario's target, or for a built-in workload the given one, which may have a
    /// password.
    fn database(&self, written: &str) -> anyhow::Result<DatabaseUrl> {
        let given = self.given.0.get("url").and_then(|url| url.texts.first());
        let given = given.filter(|_| self.given.is_built_in()).map_or(written, String::as_str);
        Ok(DatabaseUrl::parse(given)?)
    }

    /// What is driven, for the record: the scenario's file, or a built-in workload and its server.
    pub fn shown(&self) -> String {
        let name = self.path.display();
        match self.given.0.get("url").and_then(|url| url.texts.first()) {
            Some(url) if self.given.is_built_in() => format!("{name} at {}", without_password(url)),
            _ => name.to_string(),
        }
    }

    /// Resolves a path in the scenario relative to its file.
    fn relative_to_file(&self, file: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(file)
    }

    /// What only a file can set: its variables, and the addresses of its servers.
    pub fn values(&self) -> BTreeMap<String, EffectiveOption> {
        let values = self.draft.values().into_iter().map(|(name, value, origin)| {
            let value = without_password(&value);
            let shown = secrets::header(&format!("{name}: {value}"));
            let value = shown.split_once(": ").map_or(String::new(), |(_, value)| value.to_owned());
            (name, EffectiveOption { value, source: source(origin) })
        });
        values.collect()
    }
}

fn source(origin: SettingOrigin) -> OptionSource {
    match origin {
        SettingOrigin::File => OptionSource::File,
        SettingOrigin::Set => OptionSource::Set,
    }
}

/// What a scenario's requests are sent with, and where.
pub struct PlannedScenario {
    pub protocol: DriveProtocol,
    pub peers: Vec<Peer>,
    /// Maximum requests in flight on one connection.
    pub depth: u64,
}

/// The protocol of a scenario, and its servers.
///
/// # Errors
///
/// One line for anything that cannot be done as requested.
pub fn plan(
    merged: &Merged,
    scenario: Scenario,
    environment: &Environment<'_>,
) -> anyhow::Result<PlannedScenario> {
    if let Some(kind) = scenario.database_kind() {
        return plan_transactions(kind, merged, scenario, environment);
    }
    let settings = web_requests::settings(&merged.spec)?;
    let mut urls = scenario.origins();
    if let Some(socket) = &merged.spec.connection.unix {
        ensure!(
            urls.len() == 1,
            "--unix is one socket, but the scenario has {} targets; write url = \"unix:{socket}\" under the one \
             that is there",
            urls.len()
        );
        urls = urls.into_iter().map(|url| url.over_socket(socket)).collect();
    }
    // Checked against all servers first, because what fits none of them would be ignored silently.
    refuse_strange(&urls, &merged.spec)?;
    let mut all = Servers { plans: Vec::new(), peers: Vec::new() };
    for (server, url) in scenario.servers().iter().zip(urls) {
        let own = of_server(merged, server);
        let found = servers(vec![url], &own).with_context(|| format!("target `{}`", server.name))?;
        all.plans.extend(found.plans);
        all.peers.extend(found.peers);
    }
    all.refuse_unused(&merged.spec)?;
    let depth = all.depth(settings.pipeline as u64, settings.streams as u64);
    let (requests, checks) = (scenario.prepared(), scenario.checks());
    let parts = Parts { requests: &requests, origins: &all.plans, checks: &checks, settings };
    let protocol = DriveProtocol::Scenario(Web::new(scenario, parts)?);
    Ok(PlannedScenario { protocol, peers: all.peers, depth })
}

/// The same for databases.
fn plan_transactions(
    kind: DatabaseKind,
    merged: &Merged,
    scenario: Scenario,
    environment: &Environment<'_>,
) -> anyhow::Result<PlannedScenario> {
    databases::refuse_unused(kind, &merged.given)?;
    let (mut plans, mut peers) = (Vec::new(), Vec::new());
    for server in scenario.servers() {
        let Address::Database(url) = &server.address else { continue };
        let found = merged
            .database(url)
            .and_then(|url| databases::server(&url, &of_server(merged, server), environment));
        let found = found.with_context(|| format!("target `{}`", server.name))?;
        plans.push(found.plan);
        peers.push(found.peer);
    }
    let parts = databases::parts(kind, scenario.statements().to_vec(), plans, &merged.spec);
    let protocol = DriveProtocol::Transactions(Database::new(scenario, parts)?);
    Ok(PlannedScenario { protocol, peers, depth: databases::depth(&merged.spec) as u64 })
}

/// The names of a scenario's requests: their own, or for a statement without one its digest, as `watch` has it.
pub fn names(database: Option<DatabaseKind>, kinds: Vec<RequestKind>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in kinds {
        let statement = database.zip(kind.statement.as_deref());
        let digest = statement.map(|(database, text)| statements::digest(database, text));
        let digest = digest.map(|digest| match &kind.journey {
            Some(journey) => format!("{journey}: {digest}"),
            None => digest,
        });
        // Two kinds with the same name could not be distinguished in a report.
        let name = digest.filter(|digest| !names.contains(digest)).unwrap_or(kind.name);
        names.push(name);
    }
    names
}

/// How one server is reached: the options that fit it, then what its own table sets.
fn of_server(merged: &Merged, server: &scenario::Server) -> RunSpec {
    let mut own = merged.spec.clone();
    if let Address::Web(url) = &server.address {
        own.connection.resolve.retain(|resolve| resolve.value.is_for(url));
    }
    let file = |file: &Path| Some(merged.relative_to_file(file).to_string_lossy().into_owned());
    let tls = &server.tls;
    if tls.insecure || tls.ca.is_some() {
        own.tls.insecure = tls.insecure;
        own.tls.cacert = tls.ca.as_deref().and_then(file);
    }
    if let Some((cert, key)) = &tls.identity {
        own.tls.cert = file(cert);
        own.tls.key = file(key);
    }
    if tls.server_name.is_some() {
        own.tls.sni.clone_from(&tls.server_name);
    }
    let is_plain = matches!(&server.address, Address::Web(url) if url.scheme() == Scheme::Http);
    if is_plain && tls == &scenario::Tls::default() {
        // TLS options apply only to servers that use TLS.
        own.tls = crate::spec::Tls::default();
    }
    own
}

/// The range of each journey among the requests.
pub fn journeys(kinds: &[RequestKind]) -> Vec<JourneyFacts> {
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
mod tests;
