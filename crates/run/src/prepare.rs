//! From a spec to a run that may start. Everything that can be refused is refused here, before anything is sent.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use engine::{Peer, PoolPlan, RunPlan};
use findings::Condition;
use host::process::{CpuMeter, Detail, Wanted};
use record::document::{EffectiveOption, ReplayFacts};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schedule::Recorded;
use units::Nanos;

use crate::environment::Environment;
use crate::load::{self, LoadSpec, load, window};
use crate::options::{GivenOptions, or_default};
use crate::parts::Parts;
use crate::requests_file::KeepRequests;
use crate::scenario_file::{self, Merged, PlannedScenario};
use crate::sinks::SinkPlan;
use crate::spec::{Model, Request, RunSpec};
use crate::values::{Measured, PaceChoice, StampSource, Written, value};
use crate::{statements, web_requests};
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
        Request::Urls(_) | Request::Targets(_) => finish(web_requests::parts(&spec, given.clone())?),
        Request::Statements(_) => finish(statements::parts(&spec, given, environment)?),
    }
}

fn prepare_scenario(merged: &Merged, environment: &Environment<'_>) -> anyhow::Result<PreparedRun> {
    let seed = merged.seed();
    let scenario = merged.compile(seed, environment)?;
    // Data that is used only once ends the run in the same way as a number of requests.
    let arrivals = scenario.limit().map(|limit| limit.arrivals);
    let names = scenario_file::names(scenario.database_kind(), scenario.kinds_named());
    let mut spec = merged.spec.clone();
    if let Some(arrivals) = arrivals {
        let least = arrivals.min(value(&spec.load.count).map_or(u64::MAX, |count| count.0));
        spec.load.count = Some(written(&least.to_string())?);
    }
    // One seed for the whole run, so that one number reproduces it.
    spec.load.seed = Some(written(&seed.to_string())?);
    let PlannedScenario { protocol, peers, depth } = scenario_file::plan(merged, scenario, environment)?;
    let data_limit = value(&spec.load.count).map(|count| count.0);
    finish(Parts {
        spec,
        given: merged.given.clone(),
        protocol,
        peers,
        depth,
        url: merged.shown(),
        method: "of each request".to_owned(),
        names,
        values: merged.values(),
        seed: Some(seed),
        data_limit,
        recorded: None,
        replay: None,
    })
}

fn finish(parts: Parts) -> anyhow::Result<PreparedRun> {
    let Parts {
        spec,
        given,
        protocol,
        peers,
        depth,
        url,
        method,
        names,
        values,
        seed,
        data_limit,
        replay,
        ..
    } = parts;
    let plan = plan(&spec, peers, depth, parts.recorded)?;
    let connections = plan.pool.connections.saturating_add(plan.pool.idle);
    allow_descriptors(connections.saturating_mul(plan.peers.len() as u64))?;
    let is_database = protocol.database().is_some();
    ensure!(
        is_database || (spec.connection.setup_query.is_empty() && !spec.connection.server_account),
        "--setup-query and --server-account are for a database; leave them out"
    );
    let uses_data_once = protocol.scenario().is_some_and(|scenario| scenario.limit().is_some());
    ensure!(
        plan.warmup.is_none() || (!uses_data_once && replay.is_none()),
        "--warmup needs requests that may be sent twice; leave it out with data that is used once and with a replay of requests"
    );
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
        replay,
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

fn plan(spec: &RunSpec, peers: Vec<Peer>, depth: u64, recorded: Option<Recorded>) -> anyhow::Result<RunPlan> {
    let connections = connections(spec, depth);
    ensure!(connections <= 1_000_000, "{connections} connections are over a million; use several hosts");
    let idle = or_default::<u64>(&spec.pool.idle_connections, "idle-connections");
    ensure!(idle <= 1_000_000, "--idle-connections {idle} is over a million; use several hosts");
    let carried = connections.saturating_mul(depth).saturating_mul(peers.len() as u64);
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
        idle,
        connect_gap: value(&spec.pool.connect_rate).map_or(Nanos::ZERO, |rate| rate.due(1)),
        requests_per_connection: value(&spec.pool.reconnect_every).map(|count| count.0),
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
        warmup: value(&spec.load.warmup).map(|length| length.0),
        window,
        request_limit: value(&spec.load.count).map(|count| count.0),
        pool,
        peers,
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
        use codec::web::{Checks, Request, Url, Web, WebSettings};
        let request = Request::get(Url::parse("http://127.0.0.1:1/").unwrap());
        DriveProtocol::RoundRobin(Web::turns(&[request], &Checks::default(), WebSettings::default()).unwrap())
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
