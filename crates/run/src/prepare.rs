//! From a spec to a run that may start. Everything that can be refused is refused here, before anything is sent.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use codec::web::{self, Header, Url, Web, WebSettings, origins, targets};
use engine::{PoolPlan, RunPlan};
use findings::Condition;
use host::process::{CpuMeter, Detail, Wanted};
use record::document::{EffectiveOption, ReplayFacts};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schedule::Recorded;
use units::{Bytes, Nanos, read_at_most, read_text_at_most};

use crate::environment::Environment;
use crate::load::{self, LoadSpec, load, window};
use crate::options::{GivenOptions, or_default};
use crate::replay::{self, Replayed};
use crate::requests_file::KeepRequests;
use crate::scenario_file::{self, Merged};
use crate::servers::{Servers, servers};
use crate::sinks::SinkPlan;
use crate::spec::{Model, Request, RunSpec, UrlRequests};
use crate::values::{Count, Measured, PaceChoice, StampSource, Written, value};
use protocols::DriveProtocol;

/// Default time after the end of the schedule in which the last responses may still arrive.
const DEFAULT_DRAIN: Nanos = Nanos::from_secs(5);

/// Default queue limit of an open loop: at 100 bytes each, 10 MB.
const DEFAULT_MAX_IN_FLIGHT: u64 = 100_000;

/// With fewer connections per worker, another worker would only split the pool.
const CONNECTIONS_PER_WORKER: u64 = 32;

/// Descriptors for everything but connections: the record, event loops, standard streams, the timestamp probe.
const OTHER_DESCRIPTORS: u64 = 200;

/// A run that may start.
pub struct PreparedRun {
    /// What was requested, including what a scenario file adds.
    pub spec: RunSpec,
    pub plan: RunPlan,
    pub protocol: DriveProtocol,
    /// The URL in the record's form.
    pub url: String,
    /// Names of the requests that are sent in turn.
    pub names: Vec<String>,
    /// Maximum requests in flight on one connection, as far as the client knows.
    pub depth: u64,
    /// The method of the only request; otherwise words that name where the method is, such as `of each request`.
    pub method: String,
    /// What fails the run.
    pub thresholds: Vec<Condition>,
    /// Where figures are sent during the run.
    pub sinks: SinkPlan,
    /// Which individual requests to keep, and the seed of a sample.
    pub keep: Option<(KeepRequests, u64)>,
    /// Processes whose CPU time is measured.
    pub watch_cpu: Vec<Wanted>,
    /// The options that were given, and who gave them.
    pub given: GivenOptions,
    /// What a scenario file sets besides options.
    pub values: BTreeMap<String, EffectiveOption>,
    /// The seed of a scenario, if none was given.
    pub seed: Option<u64>,
    /// The number of requests after which a scenario's data is used up.
    pub data_limit: Option<u64>,
    /// The part of a recording that is sent.
    pub replay: Option<ReplayFacts>,
}

/// Reads targets, bodies and scenarios, checks everything, and lays out the run.
///
/// # Errors
///
/// One line for anything that cannot be done as requested.
pub fn prepare(spec: &RunSpec, environment: &Environment<'_>) -> anyhow::Result<PreparedRun> {
    prepare_given(&spec.given(), environment)
}

/// Like [`prepare`], from the options of a run.
///
/// # Errors
///
/// As [`prepare`].
pub fn prepare_given(given: &GivenOptions, environment: &Environment<'_>) -> anyhow::Result<PreparedRun> {
    // A spec written by hand may contain what no command line could.
    let spec = given.spec()?;
    match &spec.request {
        Request::Scenario(_) => prepare_scenario(&scenario_file::merge(given)?, environment),
        Request::Urls(_) | Request::Targets(_) => prepare_requests(&spec, given.clone()),
    }
}

fn prepare_requests(spec: &RunSpec, given: GivenOptions) -> anyhow::Result<PreparedRun> {
    let Replayed { requests: replayed, turns, recorded, facts } = replay::read(spec)?.unwrap_or_default();
    let requests = requests(spec, replayed)?;
    let checks = web::Checks {
        expect_status: value(&spec.checks.expect_status).cloned(),
        expect_body_contains: spec.checks.expect_body_contains.as_ref().map(|text| text.as_bytes().to_vec()),
        expect_sha256: value(&spec.checks.expect_sha256).copied(),
    };
    let settings = settings(spec)?;
    let servers = servers(origins(&requests)?, spec)?;
    servers.refuse_unused(spec)?;
    let depth = servers.depth(settings.pipeline as u64, settings.streams as u64);
    let are_apart = recorded.is_none() || requests.len() <= engine::KINDS_APART;
    let protocol = match &recorded {
        None => Web::turns_over(&servers.plans, &requests, &checks, settings)?,
        Some(_) => Web::in_order((&requests, turns, are_apart), &servers.plans, &checks, settings)?,
    };
    let first = requests.first().context("nothing to request; give a URL")?;
    let url = match &spec.request {
        Request::Urls(urls) if recorded.is_some() => urls.url[0].clone(),
        _ => first.url.to_string(),
    };
    let method = match requests.len() {
        1 => first.method.clone(),
        _ => "of each target".to_owned(),
    };
    let name = |request: &web::Request| format!("{} {}", request.method, request.url);
    let names = if are_apart { requests.iter().map(name).collect() } else { vec!["replayed".to_owned()] };
    finish(Parts {
        spec: spec.clone(),
        given,
        protocol: DriveProtocol::RoundRobin(protocol),
        servers,
        depth,
        url,
        method,
        names,
        values: BTreeMap::new(),
        seed: None,
        data_limit: None,
        recorded,
        replay: facts,
    })
}

fn prepare_scenario(merged: &Merged, environment: &Environment<'_>) -> anyhow::Result<PreparedRun> {
    let seed = merged.seed();
    let scenario = merged.compile(seed, environment)?;
    // Data that is used only once ends the run in the same way as a number of requests.
    let arrivals = scenario.limit().map(|limit| limit.arrivals);
    let names = scenario.kinds_named().into_iter().map(|kind| kind.name).collect();
    let mut spec = merged.spec.clone();
    if let Some(arrivals) = arrivals {
        let least = arrivals.min(value(&spec.load.count).map_or(u64::MAX, |count| count.0));
        spec.load.count = Some(written(&least.to_string())?);
    }
    // One seed for the whole run, so that one number reproduces it.
    spec.load.seed = Some(written(&seed.to_string())?);
    let settings = settings(&spec)?;
    let (protocol, servers) = scenario_file::protocol(merged, scenario, settings)?;
    servers.refuse_unused(&spec)?;
    let depth = servers.depth(settings.pipeline as u64, settings.streams as u64);
    let data_limit = value(&spec.load.count).map(|count| count.0);
    finish(Parts {
        spec,
        given: merged.given.clone(),
        protocol: DriveProtocol::Scenario(protocol),
        servers,
        depth,
        url: merged.path.display().to_string(),
        method: "of each request".to_owned(),
        names,
        values: merged.values(),
        seed: Some(seed),
        data_limit,
        recorded: None,
        replay: None,
    })
}

/// The common result of reading requests or a scenario.
struct Parts {
    spec: RunSpec,
    given: GivenOptions,
    protocol: DriveProtocol,
    servers: Servers,
    depth: u64,
    url: String,
    method: String,
    names: Vec<String>,
    values: BTreeMap<String, EffectiveOption>,
    seed: Option<u64>,
    data_limit: Option<u64>,
    /// The times of a recording whose requests are sent, and which part of it that is.
    recorded: Option<Recorded>,
    replay: Option<ReplayFacts>,
}

fn finish(parts: Parts) -> anyhow::Result<PreparedRun> {
    let Parts { spec, given, protocol, servers, depth, url, method, names, values, seed, data_limit, .. } =
        parts;
    let plan = plan(&spec, servers, depth, parts.recorded)?;
    allow_descriptors(plan.pool.connections.saturating_mul(plan.peers.len() as u64))?;
    if let (Some(given), None) = (&spec.load.seed, seed) {
        let is_sample = matches!(value(&spec.output.requests), Some(KeepRequests::Sample(_)));
        ensure!(
            is_sample || load::effective_seed(&plan).is_some(),
            "--seed {} has no effect: nothing in this run is random; leave it out, or add --arrivals poisson, --jitter, \
             a random --think or --requests sample=1%",
            given.value
        );
    }
    let thresholds: Vec<Condition> =
        spec.checks.fail_if.iter().map(|condition| condition.value.clone()).collect();
    refuse_unknown_parts(&thresholds, &names, &protocol)?;
    let sinks = SinkPlan::of(&spec.sinks, spec.output.json)?;
    let (keep, watch_cpu) = (keep(&spec), watch_cpu(&spec)?);
    Ok(PreparedRun {
        spec,
        plan,
        protocol,
        url,
        names,
        depth,
        method,
        thresholds,
        sinks,
        keep,
        watch_cpu,
        given,
        values,
        seed,
        data_limit,
        replay: parts.replay,
    })
}

/// Refuses conditions on requests that do not exist, because they could never be met.
fn refuse_unknown_parts(
    thresholds: &[Condition],
    names: &[String],
    protocol: &DriveProtocol,
) -> anyhow::Result<()> {
    let kinds = protocol.scenario().map(|scenario| scenario.kinds_named()).unwrap_or_default();
    let mut journeys: Vec<&str> = kinds.iter().filter_map(|kind| kind.journey.as_deref()).collect();
    journeys.dedup();
    let requests = if names.len() > 1 { names } else { &[] };
    for condition in thresholds {
        if let Some(part) = &condition.part {
            part.check(requests, &journeys)
                .map_err(|error| anyhow::anyhow!("--fail-if '{condition}' cannot be used: {error}"))?;
        }
    }
    Ok(())
}

fn written<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> anyhow::Result<Written<T>> {
    text.parse().map_err(|error: String| anyhow::anyhow!("`{text}`: {error}"))
}

/// Detects missing processes before anything is sent.
fn watch_cpu(spec: &RunSpec) -> anyhow::Result<Vec<Wanted>> {
    let (mut trees, mut only, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for measured in &spec.observers.watch_cpu {
        match &measured.value {
            Measured::Tree(pid) => trees.push(*pid),
            Measured::Only(pid) => only.push(*pid),
            Measured::Cgroup(path) => all.push(Wanted::Cgroup(path.clone())),
            Measured::Unit(name) => all.push(Wanted::unit(name).context("--watch-cpu")?),
        }
    }
    // In one group, so that a process that descends from another one is counted once.
    all.extend((!trees.is_empty()).then_some(Wanted::Trees(trees)));
    all.extend((!only.is_empty()).then_some(Wanted::Only(only)));
    for wanted in &all {
        CpuMeter::start(wanted.clone(), Detail::Processes).context("--watch-cpu")?;
    }
    Ok(all)
}

/// Without a given seed the sample is the same in every run; it does not depend on anything that is measured.
fn keep(spec: &RunSpec) -> Option<(KeepRequests, u64)> {
    // The server's requests can be joined only with individual requests.
    let of_watch = spec.observers.watch.as_ref().map(|_| KeepRequests::All);
    let keep = value(&spec.output.requests).copied().or(of_watch);
    keep.map(|keep| (keep, value(&spec.load.seed).copied().unwrap_or(0)))
}

/// How connections are used, and how much of a response is accepted.
fn settings(spec: &RunSpec) -> anyhow::Result<WebSettings> {
    let max_head = or_default::<Bytes>(&spec.checks.max_head, "max-head");
    let limits = web::Limits {
        head_bytes: usize::try_from(max_head.0).context("--max-head needs too much memory; use less")?,
        body_bytes: or_default::<Bytes>(&spec.checks.max_body, "max-body").0,
        ..web::Limits::default()
    };
    let per_connection = |name: &str, field| {
        let count: u64 = or_default::<Count>(field, name).0;
        ensure!(count <= 10_000, "--{name} {count} is over 10000; use more connections instead");
        usize::try_from(count).with_context(|| format!("--{name} needs too much memory; use less"))
    };
    let pipeline = per_connection("pipeline", &spec.pool.pipeline)?;
    let streams = per_connection("streams", &spec.connection.streams)?;
    Ok(WebSettings { pipeline, streams, limits })
}

/// Connections to each server: as given, otherwise enough for each virtual user to have its own.
fn connections(spec: &RunSpec, depth: u64) -> u64 {
    let users = match &spec.load.model {
        Model::Closed(closed) => value(&closed.users).filter(|_| spec.pool.connections.is_none()),
        Model::Open(_) => None,
    };
    match users {
        Some(users) => users.0.div_ceil(depth),
        None => or_default::<crate::values::Count>(&spec.pool.connections, "connections").0,
    }
}

fn plan(spec: &RunSpec, servers: Servers, depth: u64, recorded: Option<Recorded>) -> anyhow::Result<RunPlan> {
    let connections = connections(spec, depth);
    ensure!(connections <= 1_000_000, "{connections} connections are over a million; use several hosts");
    let carried = connections.saturating_mul(depth).saturating_mul(servers.peers.len() as u64);
    let LoadSpec { load, end } = load(spec, recorded)?;
    let (option, given) = match &spec.load.model {
        Model::Closed(closed) => ("--users", &closed.users),
        Model::Open(open) => ("--max-in-flight", &open.max_in_flight),
    };
    let users = match value(given) {
        Some(users) => users.0,
        None if load.is_open() => DEFAULT_MAX_IN_FLIGHT.max(carried),
        None => carried,
    };
    let workers = match value(&spec.pool.workers) {
        Some(workers) => given_workers(workers.0, connections, value(given).map(|users| (option, users.0)))?,
        None => derived_workers(connections, users),
    };
    ensure!(users <= 100_000_000, "{option} {users} is over 100M, which needs too much memory; use fewer");
    refuse_unreachable_rate(&load, workers)?;
    let pool = PoolPlan {
        connections,
        users,
        checkout_timeout: or_default(&spec.limits.checkout_timeout, "checkout-timeout").0,
        connect_timeout: or_default(&spec.limits.connect_timeout, "connect-timeout").0,
        request_timeout: or_default(&spec.limits.timeout, "timeout").0,
    };
    // Stages and recordings have their own length; a duration cuts a recording short.
    let given_window = value(&spec.load.duration).map(|length| length.0);
    let window = match end {
        Some(end) => Some(given_window.map_or(end, |duration| duration.min(end))),
        None => window(spec),
    };
    Ok(RunPlan {
        load,
        pace: or_default::<PaceChoice>(&spec.load.pace, "pace").into(),
        window,
        request_limit: value(&spec.load.count).map(|count| count.0),
        pool,
        peers: servers.peers,
        workers,
        kernel_stamps: or_default(&spec.limits.stamps, "stamps") == StampSource::Kernel,
        // A run that only a number of requests ends waits for all responses.
        drain: value(&spec.limits.drain)
            .map_or_else(|| window.is_some().then_some(DEFAULT_DRAIN), |drain| drain.0),
        interval: Nanos::from_secs(1),
    })
}

/// What one worker can take from a schedule in real time. Measured on 2026-11-24 on a virtual CPU of an AMD EPYC at 2.4
/// GHz, with `-r 10M/s` and `-r 40M/s -w 1 -d 2s --max-in-flight 1000` against the built-in target, so that nearly
/// every request is `queue_full`: 14 to 16 million requests per second of CPU time, 6.5 million per second of a CPU
/// shared with other work. The limit is a third of the former. What a worker can send is far less: the audit judges
/// that.
const TAKEN_PER_S: f64 = 5e6;

/// Above this a run would fall behind its schedule without sending anything, and take far longer than requested.
fn refuse_unreachable_rate(load: &engine::Load, workers: u64) -> anyhow::Result<()> {
    let Some(peak) = crate::load::peak_rate(load) else { return Ok(()) };
    let ceiling = TAKEN_PER_S * workers as f64;
    ensure!(
        peak <= ceiling,
        "{} is more than the schedule can hand to {} ({}); lower the rate, or use more --workers or several hosts",
        units::rate(peak),
        units::plural(workers, "worker"),
        units::rate(ceiling)
    );
    Ok(())
}

/// `users` is the option that was given, with its value. It is checked first, because the connections may follow from
/// it.
fn given_workers(workers: u64, connections: u64, users: Option<(&str, u64)>) -> anyhow::Result<u64> {
    if let Some((option, users)) = users {
        ensure!(
            workers <= users,
            "--workers {workers} is more than {option} {users}; each worker needs at least one"
        );
    }
    ensure!(
        workers <= connections,
        "--workers {workers} is more than {}; a connection belongs to one worker",
        units::plural(connections, "connection")
    );
    Ok(workers)
}

fn derived_workers(connections: u64, users: u64) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    (connections / CONNECTIONS_PER_WORKER).clamp(1, cpus).min(users)
}

/// The requests, each with the headers of the run; `replayed` has the requests of a recording.
fn requests(spec: &RunSpec, replayed: Vec<web::Request>) -> anyhow::Result<Vec<web::Request>> {
    let (texts, mut requests) = match &spec.request {
        Request::Targets(targets) => {
            let file = targets.file.as_deref().context("targets without a file; give one")?;
            (&targets.header, read_targets(Path::new(file))?)
        }
        Request::Urls(urls) if !replayed.is_empty() => (&urls.header, replayed),
        Request::Urls(urls) => {
            let request = |text: &String| request(urls, text);
            (&urls.header, urls.url.iter().map(request).collect::<anyhow::Result<_>>()?)
        }
        Request::Scenario(_) => bail!("a scenario defines its own requests"),
    };
    let headers = texts.iter().map(|text| header(text)).collect::<anyhow::Result<Vec<_>>>()?;
    for request in &mut requests {
        if let Some(socket) = &spec.connection.unix {
            request.url = request.url.clone().over_socket(socket);
        }
        // As in vegeta, a target's own header has precedence over the run's.
        let missing = headers
            .iter()
            .filter(|header| !request.headers.iter().any(|own| own.name.eq_ignore_ascii_case(&header.name)));
        let missing: Vec<Header> = missing.cloned().collect();
        request.headers.extend(missing);
    }
    Ok(requests)
}

fn request(urls: &UrlRequests, text: &str) -> anyhow::Result<web::Request> {
    let mut request = web::Request::get(Url::parse(text)?);
    request.body = match urls.body.as_deref() {
        None => Vec::new(),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => {
                read_body(Path::new(path)).with_context(|| format!("cannot read the body `{path}`"))?
            }
            None => text.as_bytes().to_vec(),
        },
    };
    if urls.body.is_some() {
        request.method = "POST".to_owned();
    }
    if let Some(method) = &urls.method {
        request.method.clone_from(method);
    }
    Ok(request)
}

/// Maximum size of a body read from a file: each connection may hold one while it is sent.
const LARGEST_BODY: u64 = 64 << 20;

/// Maximum size of all bodies of a target file.
const MOST_BODIES: u64 = 1 << 30;

/// Maximum size of a target file, without its bodies.
const LARGEST_TARGETS: u64 = 256 << 20;

fn read_body(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(File::open(path)?, LARGEST_BODY)
}

fn read_targets(path: &Path) -> anyhow::Result<Vec<web::Request>> {
    let shown = path.display();
    let text = match path.to_str() {
        Some("-") => read_text_at_most(io::stdin(), LARGEST_TARGETS),
        _ => File::open(path).and_then(|file| read_text_at_most(file, LARGEST_TARGETS)),
    };
    let text = text.with_context(|| format!("cannot read the targets `{shown}`"))?;
    let base = path.parent().unwrap_or(Path::new(""));
    let form = targets::detect(&text);
    let mut left = MOST_BODIES;
    targets::parse(&text, form, |body| {
        // As in vegeta: relative to the working directory, and if that fails, to the target file.
        let body = read_body(body).or_else(|error| read_body(&base.join(body)).map_err(|_| error))?;
        let over = || format!("the bodies are over {} together; use smaller ones", Bytes(MOST_BODIES));
        left = left.checked_sub(body.len() as u64).ok_or_else(|| io::Error::other(over()))?;
        Ok(body)
    })
    .with_context(|| format!("cannot use the targets `{shown}`"))
}

fn header(text: &str) -> anyhow::Result<Header> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_owned(), value: value.trim().to_owned() })
        }
        _ => bail!("`-H {text}` is not a header; write `-H 'Name: value'`"),
    }
}

/// Raises this process's limit of open files if the connections need it.
fn allow_descriptors(connections: u64) -> anyhow::Result<()> {
    let needed = connections + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = limit.maximum.is_none_or(|maximum| maximum >= needed)
        && setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).is_ok();
    ensure!(
        raised,
        "{connections} connections need {needed} open files, but this process can have {}; raise the limit with `ulimit -n`",
        limit.maximum.unwrap_or(0)
    );
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn protocol() -> DriveProtocol {
        let request = web::Request::get(Url::parse("http://127.0.0.1:1/").unwrap());
        DriveProtocol::RoundRobin(
            Web::turns(&[request], &web::Checks::default(), WebSettings::default()).unwrap(),
        )
    }

    /// If this fails, a thousand virtual users queue for ten connections that nobody requested.
    #[test]
    fn each_virtual_user_has_its_own_connection_unless_they_share_a_pool() {
        let pool = |options: &[&str]| {
            let plan = crate::testing::prepared(&[options, &["http://127.0.0.1:1/"]].concat()).unwrap().plan;
            (plan.pool.connections, plan.pool.users)
        };
        assert_eq!(pool(&["--users", "1000"]), (1_000, 1_000));
        assert_eq!(pool(&["--users", "4"]), (4, 4));
        assert_eq!(pool(&["--users", "40", "-c", "2"]), (2, 40));
        assert_eq!(pool(&["--users", "25", "--pipeline", "10"]), (3, 25));
        assert_eq!(pool(&[]), (10, 10));
        assert_eq!(pool(&["-r", "5/s", "--max-in-flight", "40"]), (10, 40));
    }

    /// If this fails, `-b @/dev/zero` uses up all memory.
    #[test]
    fn a_body_of_a_file_has_a_bound() {
        let error = |file: &str| {
            let prepared = crate::testing::prepared(&["-b", file, "http://127.0.0.1:1/"]);
            prepared.map(|_| ()).map_err(|error| format!("{error:#}"))
        };
        let zero = "cannot read the body `/dev/zero`: it is over 64.0 MiB; use a smaller file";
        assert_eq!(error("@/dev/zero"), Err(zero.to_owned()));
        assert!(error("@/nowhere").unwrap_err().contains("cannot read the body `/nowhere`"));
        assert_eq!(error("@/dev/null"), Ok(()));
    }

    /// If this fails, a file without an end that an option names uses up all memory.
    #[test]
    fn each_file_that_an_option_names_has_a_bound() {
        let error = |options: &[&str]| {
            let error = crate::testing::prepared(options).map(|_| ()).expect_err("it has no end");
            format!("{error:#}")
        };
        let (zero, https) = ("/dev/zero", "https://127.0.0.1:1/");
        let too_large = "cannot read `/dev/zero`: it is over 16.0 MiB; use a smaller file";
        assert_eq!(error(&["--cacert", zero, https]), too_large);
        assert_eq!(error(&["--cert", zero, "--key", zero, https]), too_large);
        assert_eq!(
            error(&["--targets", zero]),
            "cannot read the targets `/dev/zero`: it is over 256.0 MiB; use a smaller file"
        );
    }

    /// If this fails, a condition on a request that does not exist fails every run, or none.
    #[test]
    fn a_condition_names_a_request_of_the_run() {
        let urls = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"];
        let prepared = |condition: &str| {
            crate::testing::prepared(&[urls.as_slice(), &["--fail-if", condition]].concat())
                .map(|_| ())
                .map_err(|error| error.to_string())
        };
        assert_eq!(prepared("request.GET http://127.0.0.1:1/a.p99 > 1s"), Ok(()));
        let error = prepared("request.login.p99 > 1s").unwrap_err();
        assert!(error.contains("there is no request `login`; there are GET http://127.0.0.1:1/a"), "{error}");
        assert!(prepared("journey.buy.p99 > 1s").unwrap_err().contains("no journey with figures"));
    }

    /// If this fails, `-c 64 --users 1` is refused because of workers that nobody requested.
    #[test]
    fn workers_that_were_not_given_follow_the_users() {
        assert_eq!(derived_workers(6_400, 1), 1);
        assert_eq!(derived_workers(10, 10), 1);
        assert!(given_workers(2, 64, Some(("--users", 1))).unwrap_err().to_string().contains("--users 1"));
        assert!(given_workers(3, 2, Some(("--users", 10))).is_err());
        assert_eq!(given_workers(2, 2, Some(("--users", 2))).unwrap(), 2);
    }
}
