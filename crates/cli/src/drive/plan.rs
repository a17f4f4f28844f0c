//! From options to a plan. Everything that can be refused is refused here, before anything is sent.

use std::path::Path;
use std::{fs, io};

use anyhow::{Context, bail, ensure};
use codec::web::{Checks, Header, Limits, Request, Settings, Url, Web, origins, targets};
use engine::{Plan, PoolPlan};
use findings::Condition;
use host::process::{CpuMeter, Detail, Wanted};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use units::Nanos;

use super::args::{Args, KeepArg, StampsArg};
use super::load::{Given, load};
use super::said::Said;
use super::scenario_file::{self, Loaded};
use super::servers::{Servers, servers};
use super::sinks::SinkPlan;

/// How long a run takes when nothing is said.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);

/// How long after a run's time its last requests may still be answered when nothing is said.
const DEFAULT_DRAIN: Nanos = Nanos::from_secs(5);

/// The bound of an open loop's queue when nothing is said: at 100 bytes each, ten megabytes.
const DEFAULT_OPEN_CALLERS: u64 = 100_000;

/// Below this many connections a second worker would only split the pool.
const CONNECTIONS_PER_WORKER: u64 = 32;

/// Descriptors that are not connections: the record, event loops, standard streams, the stamp probe.
const OTHER_DESCRIPTORS: u64 = 200;

/// A run that may start.
pub struct Prepared {
    pub plan: Plan,
    pub protocol: Said,
    /// The URL as the record names it.
    pub url: String,
    /// The requests that take turns, by name.
    pub names: Vec<String>,
    /// Requests that may be outstanding on one connection, as far as this side knows.
    pub depth: u64,
    /// The method of the only request, or whose it is.
    pub method: String,
    /// What the run must not come to.
    pub thresholds: Vec<Condition>,
    /// Where to tell of it while it goes on.
    pub sinks: SinkPlan,
    /// Which requests to keep one by one, with the seed of a sample.
    pub keep: Option<(KeepArg, u64)>,
    /// Processes whose CPU time is measured.
    pub watch_cpu: Vec<u32>,
}

/// Reads targets and bodies, checks everything, and lays out the run.
///
/// # Errors
///
/// One line for whatever cannot be done as asked.
pub fn prepare(args: &Args) -> anyhow::Result<Prepared> {
    let requests = requests(args)?;
    let checks = Checks {
        expect_status: args.expect_status.clone(),
        expect_body_contains: args.expect_body_contains.as_ref().map(|text| text.as_bytes().to_vec()),
        expect_sha256: args.expect_sha256,
    };
    let settings = settings(args)?;
    let servers = servers(origins(&requests)?, &args.connect)?;
    servers.refuse_idle(&args.connect)?;
    let depth = servers.depth(args.pipeline, args.connect.streams);
    let protocol = Web::turns_over(&servers.plans, &requests, &checks, settings)?;
    let first = requests.first().context("there is no request to send")?;
    let url = first.url.to_string();
    let method = match requests.len() {
        1 => first.method.clone(),
        _ => "of each target".to_owned(),
    };
    let plan = plan(args, servers, depth)?;
    allow_descriptors(plan.pool.connections.saturating_mul(plan.peers.len() as u64))?;
    let names = requests.iter().map(|request| format!("{} {}", request.method, request.url)).collect();
    let (thresholds, sinks) = (args.fail_if.clone(), args.sinks.plan(args.json)?);
    let (protocol, keep) = (Said::Turns(protocol), keep(args));
    let watch_cpu = watch_cpu(args)?;
    Ok(Prepared { plan, protocol, url, names, depth, method, thresholds, sinks, keep, watch_cpu })
}

/// The same for a scenario.
///
/// # Errors
///
/// One line for whatever cannot be done as asked, with its place in the file.
pub fn prepare_scenario(loaded: &mut Loaded) -> anyhow::Result<Prepared> {
    let scenario = loaded.compile()?;
    // Data that is used once ends the run as a number of requests does.
    let arrivals = scenario.limit().map(|limit| limit.arrivals);
    loaded.args.count = loaded.args.count.into_iter().chain(arrivals).min();
    let args = &loaded.args;
    let names = scenario.kinds_named().into_iter().map(|kind| kind.name).collect();
    let (protocol, servers) = scenario_file::protocol(loaded, scenario, settings(args)?)?;
    servers.refuse_idle(&args.connect)?;
    let depth = servers.depth(args.pipeline, args.connect.streams);
    let plan = plan(args, servers, depth)?;
    allow_descriptors(plan.pool.connections.saturating_mul(plan.peers.len() as u64))?;
    let url = loaded.path.display().to_string();
    let method = "of each request".to_owned();
    let (thresholds, sinks) = (args.fail_if.clone(), args.sinks.plan(args.json)?);
    let (protocol, keep) = (Said::Scenario(protocol), keep(args));
    let watch_cpu = watch_cpu(args)?;
    Ok(Prepared { plan, protocol, url, names, depth, method, thresholds, sinks, keep, watch_cpu })
}

/// Who is not there is found out before anything is sent.
fn watch_cpu(args: &Args) -> anyhow::Result<Vec<u32>> {
    if !args.watch_cpu.is_empty() {
        CpuMeter::start(Wanted::Pids(args.watch_cpu.clone()), Detail::Processes).context("--watch-cpu")?;
    }
    Ok(args.watch_cpu.clone())
}

/// A sample without a seed is the same in every run: which numbers it has depends on nothing that is measured.
fn keep(args: &Args) -> Option<(KeepArg, u64)> {
    // Requests can be joined with the server's only one by one.
    let keep = args.keep.or(args.watch.as_ref().map(|_| KeepArg::All));
    keep.map(|keep| (keep, args.seed.unwrap_or(0)))
}

/// How connections are used, and how much of an answer is accepted.
fn settings(args: &Args) -> anyhow::Result<Settings> {
    let limits = Limits {
        head_bytes: usize::try_from(args.max_head.0).context("--max-head is over what memory can hold")?,
        body_bytes: args.max_body.0,
        ..Limits::default()
    };
    let pipeline = usize::try_from(args.pipeline).context("--pipeline is over what memory can hold")?;
    ensure!(pipeline <= 10_000, "--pipeline {pipeline} is over 10000; use more connections instead");
    let streams = usize::try_from(args.connect.streams).context("--streams is over what memory can hold")?;
    ensure!(streams <= 10_000, "--streams {streams} is over 10000; use more connections instead");
    Ok(Settings { pipeline, streams, limits })
}

fn plan(args: &Args, servers: Servers, depth: u64) -> anyhow::Result<Plan> {
    ensure!(args.connections <= 1_000_000, "-c {} is over a million; use several hosts", args.connections);
    let carried = args.connections.saturating_mul(depth).saturating_mul(servers.peers.len() as u64);
    let Given { load, end } = load(args)?;
    let callers = match args.callers {
        Some(callers) => callers,
        None if load.is_open() => DEFAULT_OPEN_CALLERS.max(carried),
        None => carried,
    };
    let workers = match args.workers {
        Some(workers) => given_workers(workers, args.connections, callers)?,
        None => derived_workers(args.connections, callers),
    };
    ensure!(callers <= 100_000_000, "--callers {callers} is over 100M; each takes memory while it waits");
    let pool = PoolPlan {
        connections: args.connections,
        callers,
        checkout_timeout: args.checkout_timeout.0,
        connect_timeout: args.connect_timeout.0,
        request_timeout: args.timeout.0,
    };
    // Stages and recordings say themselves how long they take; a duration cuts a recording.
    let window = match end {
        Some(end) => Some(args.duration.map_or(end, |duration| duration.min(end))),
        None => window(args),
    };
    Ok(Plan {
        load,
        pace: args.pace.into(),
        window,
        request_limit: args.count,
        pool,
        peers: servers.peers,
        workers,
        kernel_stamps: args.stamps == StampsArg::Kernel,
        // Requests that only a number ends are all waited for.
        drain: args.drain.map_or_else(|| window.is_some().then_some(DEFAULT_DRAIN), |drain| drain.0),
        interval: Nanos::from_secs(1),
    })
}

/// How long requests are scheduled for where the load does not say it; `None` until their number is reached.
pub fn window(args: &Args) -> Option<Nanos> {
    match (args.duration, args.count) {
        (None, None) => Some(DEFAULT_DURATION),
        (duration, _) => duration,
    }
}

fn given_workers(workers: u64, connections: u64, callers: u64) -> anyhow::Result<u64> {
    ensure!(
        workers <= connections,
        "--workers {workers} is more than the {connections} connections; a connection belongs to one worker"
    );
    ensure!(
        workers <= callers,
        "--workers {workers} is more than --callers {callers}; a caller belongs to one worker"
    );
    Ok(workers)
}

fn derived_workers(connections: u64, callers: u64) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    (connections / CONNECTIONS_PER_WORKER).clamp(1, cpus).min(callers)
}

fn requests(args: &Args) -> anyhow::Result<Vec<Request>> {
    let headers = args.headers.iter().map(|text| header(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut requests = match &args.targets {
        Some(path) => read_targets(path)?,
        None => args.url.iter().map(|text| request(args, text)).collect::<anyhow::Result<_>>()?,
    };
    for request in &mut requests {
        if let Some(socket) = &args.connect.unix {
            request.url = request.url.clone().over_socket(socket);
        }
        // As with vegeta, a target's own header stands before the run's.
        let missing = headers
            .iter()
            .filter(|header| !request.headers.iter().any(|own| own.name.eq_ignore_ascii_case(&header.name)));
        let missing: Vec<Header> = missing.cloned().collect();
        request.headers.extend(missing);
    }
    Ok(requests)
}

fn request(args: &Args, text: &str) -> anyhow::Result<Request> {
    let mut request = Request::get(Url::parse(text)?);
    request.body = match args.body.as_deref() {
        None => Vec::new(),
        Some(text) => match text.strip_prefix('@') {
            Some(path) => fs::read(path).with_context(|| format!("cannot read the body `{path}`"))?,
            None => text.as_bytes().to_vec(),
        },
    };
    if args.body.is_some() {
        request.method = "POST".to_owned();
    }
    if let Some(method) = &args.method {
        request.method.clone_from(method);
    }
    Ok(request)
}

fn read_targets(path: &Path) -> anyhow::Result<Vec<Request>> {
    let shown = path.display();
    let text = match path.to_str() {
        Some("-") => io::read_to_string(io::stdin()),
        _ => fs::read_to_string(path),
    };
    let text = text.with_context(|| format!("cannot read the targets `{shown}`"))?;
    let base = path.parent().unwrap_or(Path::new(""));
    let form = targets::detect(&text);
    targets::parse(&text, form, |body| {
        // As vegeta does: from the working directory; failing that, from beside the target file.
        fs::read(body).or_else(|error| fs::read(base.join(body)).map_err(|_| error))
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

/// Raises this process's own limit of open files where the connections need it.
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
        "-c {connections} needs {needed} open files and this process may have {}; raise it with `ulimit -n`",
        limit.maximum.unwrap_or(0)
    );
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn protocol() -> Said {
        let request = Request::get(Url::parse("http://127.0.0.1:1/").unwrap());
        Said::Turns(Web::turns(&[request], &Checks::default(), Settings::default()).unwrap())
    }

    /// If this fails, `-c 64 --callers 1` is refused for workers that nobody asked for.
    #[test]
    fn workers_that_were_not_given_follow_the_callers() {
        assert_eq!(derived_workers(6_400, 1), 1);
        assert_eq!(derived_workers(10, 10), 1);
        assert!(given_workers(2, 64, 1).unwrap_err().to_string().contains("--callers 1"));
        assert!(given_workers(3, 2, 10).is_err());
        assert_eq!(given_workers(2, 2, 2).unwrap(), 2);
    }
}
