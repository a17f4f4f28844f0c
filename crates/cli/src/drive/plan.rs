//! From options to a plan. Everything that can be refused is refused here, before anything is sent.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use codec::http1::{Checks, Header, Http1, Limits, Request, Url, targets};
use engine::{Load, Peer, Plan, PoolPlan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schedule::Arrivals;
use units::Nanos;

use super::args::{Args, StampsArg};

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
    pub protocol: Http1,
    /// The URL as the record names it.
    pub url: String,
    pub request_kinds: u64,
    /// The method of the only request, or whose it is.
    pub method: String,
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
    let limits = Limits {
        head_bytes: usize::try_from(args.max_head.0).context("--max-head is over what memory can hold")?,
        body_bytes: args.max_body.0,
        ..Limits::default()
    };
    let pipeline = usize::try_from(args.pipeline).context("--pipeline is over what memory can hold")?;
    ensure!(pipeline <= 10_000, "--pipeline {pipeline} is over 10000; use more connections instead");
    let protocol = Http1::new(&requests, pipeline, &checks, limits)?;
    let first = requests.first().context("there is no request to send")?;
    let url = first.url.clone();
    let method = if args.targets.is_some() { "of each target".to_owned() } else { first.method.clone() };
    let plan = plan(args, &url)?;
    allow_descriptors(plan.pool.connections)?;
    Ok(Prepared { plan, protocol, url: url.to_string(), request_kinds: requests.len() as u64, method })
}

fn plan(args: &Args, url: &Url) -> anyhow::Result<Plan> {
    ensure!(args.connections <= 1_000_000, "-c {} is over a million; use several hosts", args.connections);
    let carried = args.connections.saturating_mul(args.pipeline);
    let callers = match (args.callers, args.rate) {
        (Some(callers), _) => callers,
        (None, None) => carried,
        (None, Some(_)) => DEFAULT_OPEN_CALLERS.max(carried),
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
    let window = match (args.duration, args.requests) {
        (None, None) => Some(DEFAULT_DURATION),
        (duration, _) => duration,
    };
    Ok(Plan {
        load: args.rate.map_or(Load::Closed, |rate| Load::Open(Arrivals::Constant(rate))),
        window,
        request_limit: args.requests,
        pool,
        peer: peer(url),
        workers,
        kernel_stamps: args.stamps == StampsArg::Kernel,
        // Requests that only a number ends are all waited for.
        drain: args.drain.map_or_else(|| window.is_some().then_some(DEFAULT_DRAIN), |drain| drain.0),
        interval: Nanos::from_secs(1),
    })
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
        None => vec![request(args)?],
    };
    for request in &mut requests {
        // As with vegeta, a target's own header stands before the run's.
        let missing = headers
            .iter()
            .filter(|header| !request.headers.iter().any(|own| own.name.eq_ignore_ascii_case(&header.name)));
        let missing: Vec<Header> = missing.cloned().collect();
        request.headers.extend(missing);
    }
    Ok(requests)
}

fn request(args: &Args) -> anyhow::Result<Request> {
    let text = args.url.as_deref().context("give a URL, or --targets FILE")?;
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
    let text = fs::read_to_string(path).with_context(|| format!("cannot read the targets `{shown}`"))?;
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

fn peer(url: &Url) -> Peer {
    match url.host().parse::<IpAddr>() {
        Ok(address) => Peer::Address(SocketAddr::new(address, url.port())),
        Err(_) => Peer::Name { host: url.host().to_owned(), port: url.port() },
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

    pub fn protocol() -> Http1 {
        let request = Request::get(Url::parse("http://127.0.0.1:1/").unwrap());
        Http1::new(&[request], 1, &Checks::default(), Limits::default()).unwrap()
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
