//! The options of `parallax drive`, as clap reads and explains them. What they mean is in [`run::options`].

use clap::ValueHint;
use clap::builder::PossibleValue;
use run::options::default;
use run::values::{Count, Length};
use units::Rate;

use super::connect_args::{ConnectArgs, text};
use super::database_args::DatabaseArgs;

/// Load-test a server and report where the time of its requests went.
///
/// Without --rate the load is a closed loop: each virtual user sends its next request when its last one has ended. With
/// --rate, --stage or --replay it is an open loop: requests are due on a schedule, however fast responses come back,
/// and the time a request waits to be sent counts (no coordinated omission).
///
/// Exit codes: 0 done and valid (or degraded, with the reasons printed); 1 usage or environment; 2 a condition of
/// --fail-if is true or cannot be decided, or a search found no rate that meets its objective; 3 the measurement is
/// invalid (see --on-invalid); 4 no server could be reached; 130 ended by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP, with
/// the partial record kept.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  parallax drive http://127.0.0.1:8080/
      closed loop: 10 connections, 10 s
  parallax drive -r 500/s -c 20 -d 30s http://127.0.0.1:8080/
      open loop: a constant arrival rate
  parallax drive -r 500/s --arrivals poisson --seed 7 http://127.0.0.1:8080/
      the same rate with Poisson arrivals; the same seed repeats the schedule
  parallax drive --stage 'ramp 0/s..1k/s 30s' --stage 'constant 1k/s 1m' http://127.0.0.1:8080/
      stages, one after another
  parallax drive --stage 'constant 500/s weight 1' --stage 'ramp 500/s..1k/s weight 3' -d 60s http://127.0.0.1:8080/
      stages that share 60 s by their weights
  parallax drive -c 2 --users 4 -n 20 http://127.0.0.1:8080/
      more virtual users than connections: what a connection pool costs
  parallax drive -r 500/s --fail-if 'response.p99 > 50ms' --fail-if 'error_share > 1%' http://127.0.0.1:8080/
      exit with status 2 if the server is too slow or fails too often
  parallax drive --targets targets.txt -r 100/s
      several requests in turn, from a file in vegeta's formats
  parallax drive --http 2 --streams 10 -c 2 --cacert ca.pem https://127.0.0.1:8443/
      HTTP/2 over TLS with up to ten concurrent streams per connection
  parallax drive shop.toml --set rate=200/s
      a scenario: requests, journeys, data and checks in a file (docs/scenario.md)
  parallax drive mysql://app@127.0.0.1/shop --query 'SELECT 1' -r 500/s -c 64
      a statement to MySQL or MariaDB; the password is read from --password-file or MYSQL_PWD
  parallax drive postgres://app@127.0.0.1/bench --workload tpcb-like -r 200/s -c 64
      transactions to PostgreSQL, as pgbench's; the password is in PGPASSWORD or ~/.pgpass
  parallax drive redis://127.0.0.1 --command 'GET key:{{random 1 100000}}' --pipeline 16
      commands to Redis; the password is in REDISCLI_AUTH
  parallax drive --search 'p99 < 20ms' http://127.0.0.1:8080/
      the highest rate that meets the objective, and the load curve
  parallax drive -r 500/s --print-spec http://127.0.0.1:8080/ > run.json && parallax drive --spec run.json
      a run as JSON, to store or to start elsewhere")]
pub struct Args {
    /// What to request: http[s]://HOST[:PORT]/PATH, HOST:PORT/PATH or unix:/SOCKET:/PATH; several are requested in
    /// turn. Or a scenario file, whose name ends in .toml. Or a database:
    /// mysql://USER@HOST[:PORT]/DATABASE or postgres://USER@HOST[:PORT]/DATABASE, with ?socket=PATH and
    /// sslmode=disable|prefer|require|verify-ca|verify-full, and of MySQL get-server-public-key=1; redis[s]://HOST[:PORT]/NUMBER.
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    url: Vec<String>,

    /// Connections to each server; with --users, the size of the pool that virtual users share [default: one per user
    /// with --users, otherwise 10].
    #[arg(short = 'c', long, value_name = "N", value_parser = text("connections"), help_heading = "Load")]
    connections: Option<String>,

    /// Closed loop: number of virtual users, each with one request at a time [default: one per connection or stream].
    #[arg(short = 'u', long, visible_alias = "vus", value_name = "N", value_parser = text("users"), help_heading = "Load")]
    users: Option<String>,

    /// Open loop: maximum requests in flight or queued; more fail as queue_full [default: 100k].
    #[arg(long, value_name = "N", value_parser = text("max-in-flight"), help_heading = "Load")]
    max_in_flight: Option<String>,

    /// Older name of --users (closed loop) and --max-in-flight (open loop).
    #[arg(long, value_name = "N", value_parser = text("users"), hide = true)]
    callers: Option<String>,

    /// Open loop at this steady rate: 500/s, 10k/s, 30/m, 100rps, 6000rpm.
    #[arg(short = 'r', long, visible_short_alias = 'R', value_name = "RATE", value_parser = text("rate"), help_heading = "Load")]
    rate: Option<String>,

    /// How requests at --rate, or in each probe of --search, are spaced: even, or poisson (random and independent of
    /// each other) [default: even].
    #[arg(long, value_name = "HOW", value_parser = ["even", "poisson"], help_heading = "Load")]
    arrivals: Option<String>,

    /// Move each request at --rate, or in each probe of --search, by a random time within plus or minus this: 5ms, or
    /// 10% of the gap between requests.
    #[arg(long, value_name = "TIME|PERCENT", value_parser = text("jitter"), help_heading = "Load")]
    jitter: Option<String>,

    /// A stage of an open loop; repeat it for further stages:
    /// 'constant 500/s 30s', 'ramp 100/s..1k/s 30s', 'steps 100/s,200/s 10s' (10s each),
    /// 'sine 500/s amplitude 200/s period 10s 60s', 'spikes 100/s peak x10 width 1s period 10s 60s', 'pause 5s'.
    /// Append poisson, or jitter TIME|PERCENT, for random arrivals. With -d, write `weight N` instead of a length: the
    /// stages then share that time by their weights.
    #[arg(long = "stage", value_name = "STAGE", value_parser = text("stage"), help_heading = "Load")]
    stages: Vec<String>,

    /// Open loop: send the requests of a recording to the URL's server at their recorded times: a web server's common
    /// or combined log, JSON lines (path, method, headers, body), HAR, or vegeta's JSON results. A recording without
    /// requests (one time per line, CSV) gives only the times, at which the URL is requested.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Load")]
    replay: Option<String>,

    /// Speed of the replay: 2x, 0.5x [default: 1x].
    #[arg(long, value_name = "FACTOR", value_parser = text("speed"), help_heading = "Load")]
    speed: Option<String>,

    /// JSON field, CSV header or column number (from 1) of the times in a recording
    /// [default: timestamp, time, ts or similar].
    #[arg(long, value_name = "NAME", help_heading = "Load")]
    replay_column: Option<String>,

    /// Use the times of the recording and send the requests of the URL.
    #[arg(long, help_heading = "Load")]
    replay_times_only: bool,

    /// Methods of the requests to replay [default: GET,HEAD].
    #[arg(long, value_name = "LIST", value_parser = text("replay-methods"), help_heading = "Load")]
    replay_methods: Option<String>,

    /// Replay only requests whose path matches this regular expression.
    #[arg(long, value_name = "REGEX", value_parser = text("replay-filter"), help_heading = "Load")]
    replay_filter: Option<String>,

    /// Replay Cookie and Authorization headers too.
    #[arg(long, help_heading = "Load")]
    replay_credentials: bool,

    /// Closed loop: think time between a response and the user's next request: 100ms, 50ms..150ms (uniform),
    /// exp:100ms (exponential with this mean).
    #[arg(long, value_name = "TIME", value_parser = text("think"), help_heading = "Load")]
    think: Option<String>,

    /// Random seed for arrivals and think times; the same seed reproduces the same run
    /// [default: a fresh one, printed and recorded].
    #[arg(long, value_name = "N", value_parser = text("seed"), help_heading = "Load")]
    seed: Option<String>,

    /// How closely an open loop follows its schedule: lateness against CPU time.
    #[arg(long, value_name = "PACE", default_value = default("pace"), value_parser = paces(), help_heading = "Load")]
    pace: Option<String>,

    /// Schedule requests for this long [default: 10s; no limit with -n; the length of a replay].
    #[arg(short = 'd', long, value_name = "TIME", value_parser = text("duration"), help_heading = "Load")]
    duration: Option<String>,

    /// Schedule this many requests.
    #[arg(short = 'n', long, value_name = "N", value_parser = text("count"), help_heading = "Load")]
    count: Option<String>,

    /// Generate the same load for this long before the run, wait for its last responses, and leave all of it out of the
    /// figures. Its connections stay open for the run; its requests and their outcomes are in the record.
    #[arg(long, value_name = "TIME", value_parser = text("warmup"), help_heading = "Load")]
    warmup: Option<String>,

    /// Maximum requests in flight per connection (pipelining, of HTTP/1.1, PostgreSQL and Redis).
    #[arg(long, value_name = "N", default_value = default("pipeline"), value_parser = text("pipeline"), help_heading = "Load")]
    pipeline: Option<String>,

    /// Threads, each with its share of the connections [default: one per 32 connections, rounded down, but at least one
    /// and at most one per CPU].
    #[arg(short = 'w', long, value_name = "N", value_parser = text("workers"), help_heading = "Load")]
    workers: Option<String>,

    /// Find the highest rate that meets this objective: 'p99 < 20ms', 'response.p99.9 < 50ms and error_share < 0.1%'.
    /// Unless it names error_share or failed, error_share < 1% must hold too.
    #[arg(long, value_name = "OBJECTIVE", help_heading = "Search")]
    pub search: Option<String>,

    /// Lowest rate to consider [default: the lowest that a probe of one minute can measure].
    #[arg(long, value_name = "RATE", requires = "search", help_heading = "Search")]
    pub search_from: Option<Rate>,

    /// Highest rate to try, so as not to overload a server [default: none; a closed loop then finds the first rate].
    #[arg(long, value_name = "RATE", requires = "search", help_heading = "Search")]
    pub search_to: Option<Rate>,

    /// How closely to bracket the maximum rate (gap between the highest passing and lowest failing rate): 0.5% to 20%.
    #[arg(long, value_name = "SHARE", requires = "search", default_value = "2%", value_parser = tolerance, help_heading = "Search")]
    pub search_tolerance: Tolerance,

    /// How long each probe is measured, after 1 s of warm-up [default: 4s, or longer if the objective needs it].
    #[arg(long, value_name = "TIME", requires = "search", help_heading = "Search")]
    pub probe_duration: Option<Length>,

    /// Maximum number of probes.
    #[arg(long, value_name = "N", requires = "search", default_value = "12", help_heading = "Search")]
    pub probes: Count,

    /// Method [default: GET, or POST with a body].
    #[arg(short = 'X', long, value_name = "METHOD", help_heading = "Request")]
    method: Option<String>,

    /// A header `Name: value`; repeat it for more.
    #[arg(short = 'H', long = "header", value_name = "HEADER", help_heading = "Request")]
    headers: Vec<String>,

    /// Body, or @FILE to read it from a file.
    #[arg(short = 'b', long, value_name = "BODY", help_heading = "Request")]
    body: Option<String>,

    /// Requests from a file (- is standard input) in vegeta's HTTP or JSON format, in turn by weight (`# weight: 3`
    /// before a target).
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Request")]
    targets: Option<String>,

    /// Change a scenario file: run.rate=500/s, vars.user=ann, request.NAME.weight=3; repeat it for more.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Scenario")]
    set: Vec<String>,

    /// Check a scenario and all options, print what its first journeys would send, with all their steps, and send
    /// nothing.
    #[arg(long, help_heading = "Scenario")]
    pub dry_run: bool,

    /// Read the run from a JSON file (- is standard input; formats/run-spec.schema.json). Other options override its
    /// values.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Spec")]
    pub spec: Option<String>,

    /// Check all options, print the run as JSON for --spec, and send nothing.
    #[arg(long, help_heading = "Spec")]
    pub print_spec: bool,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    pub database: DatabaseArgs,

    /// Status codes that count as success: 200, 2xx, 200-299, 200,404 [default: below 400].
    #[arg(long, value_name = "SET", value_parser = text("expect-status"), help_heading = "Checks")]
    expect_status: Option<String>,

    /// Text that every body must contain.
    #[arg(long, value_name = "TEXT", help_heading = "Checks")]
    expect_body_contains: Option<String>,

    /// SHA-256 of every body, in hexadecimal.
    #[arg(long, value_name = "HEX", value_parser = text("expect-sha256"), help_heading = "Checks")]
    expect_sha256: Option<String>,

    /// Exit with status 2 if this condition is true; repeat it for more: `response.p99 > 50ms`, `wait.max > 1s`,
    /// `throughput < 450/s`, `error_share > 1%`, `outcome.reset > 0`, `code.503 > 10`.
    ///
    /// METRIC OP VALUE. Times: response, service or a phase, then .p50, .p99.9 or any percentile, .mean or .max. Rates:
    /// throughput, sent_rate. Counts, or shares with %: outcome.NAME, code.N, failed, ok; error_share. A percentile
    /// with too few samples counts as a failure.
    #[arg(long, value_name = "CONDITION", value_parser = text("fail-if"), help_heading = "Checks")]
    fail_if: Vec<String>,

    /// What to do if the measurement is invalid: fail exits with 3, warn lets --fail-if alone decide, retry:N repeats
    /// the run up to N times before it exits with 3. With -o DIR the repeated runs are in DIR-2, DIR-3 and so on.
    #[arg(long, value_name = "WHAT", default_value = default("on-invalid"), value_parser = text("on-invalid"), help_heading = "Checks")]
    on_invalid: Option<String>,

    /// Measure CPU time, memory, page faults and storage I/O of these server processes on this host, with their
    /// descendants, during the run: PID, only:PID without descendants, cgroup:PATH, or unit:NAME for a systemd unit.
    /// The report has the CPU time per request.
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = text("watch-cpu"), help_heading = "Output")]
    watch_cpu: Vec<String>,

    /// Maximum header size of a response.
    #[arg(long, value_name = "SIZE", default_value = default("max-head"), value_parser = text("max-head"), help_heading = "Checks")]
    max_head: Option<String>,

    /// Maximum body size of a response.
    #[arg(long, value_name = "SIZE", default_value = default("max-body"), value_parser = text("max-body"), help_heading = "Checks")]
    max_body: Option<String>,

    /// Request timeout, from the first byte sent to the last byte of the response; `off` for none.
    #[arg(long, value_name = "TIME", default_value = default("timeout"), value_parser = text("timeout"), help_heading = "Limits")]
    timeout: Option<String>,

    /// Timeout for opening a connection; `off` for none.
    #[arg(long, value_name = "TIME", default_value = default("connect-timeout"), value_parser = text("connect-timeout"), help_heading = "Limits")]
    connect_timeout: Option<String>,

    /// Timeout for getting a connection from the pool; `off` for none.
    #[arg(long, value_name = "TIME", default_value = default("checkout-timeout"), value_parser = text("checkout-timeout"), help_heading = "Limits")]
    checkout_timeout: Option<String>,

    /// How long to wait for outstanding responses after the last request was due; `off` waits for each until its
    /// response or its timeout [default: 5s when a duration ends the run, off with -n alone].
    #[arg(long, value_name = "TIME", value_parser = text("drain"), help_heading = "Limits")]
    drain: Option<String>,

    /// Continue although every attempt to connect fails. Without it, a run that has never had a response ends with exit
    /// code 4 when all attempts (name lookup, connect, TLS handshake) have failed for 1 s.
    #[arg(long, help_heading = "Limits")]
    keep_trying: bool,

    /// Measure the maximum of this load generator against the built-in target, with the given connections, workers,
    /// pace and stamps. The result is kept; later runs with the same values report how close they came.
    #[arg(long, help_heading = "Limits")]
    pub calibrate: bool,

    /// Where the arrival of a response is timestamped.
    #[arg(long, value_name = "WHERE", default_value = default("stamps"), value_parser = stamps(), help_heading = "Limits")]
    stamps: Option<String>,

    /// Results directory [default: a new one under parallax-runs/].
    #[arg(short = 'o', long, value_name = "DIR", value_parser = directory, value_hint = ValueHint::DirPath, help_heading = "Output")]
    output: Option<String>,

    #[command(flatten)]
    record_mode: crate::record_mode::RecordModeArg,

    /// Name of the block of this run, for example 1: `parallax compare` pairs the records of two servers that have the
    /// same block, because they were made one right after the other.
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    block: Option<String>,

    /// Keep no record: print the report only.
    #[arg(long, help_heading = "Output")]
    no_record: bool,

    /// Keep individual requests, each with all its timestamps, in requests.parquet: all, slowest=100, or sample=1%.
    #[arg(long = "requests", value_name = "WHICH", value_parser = text("requests"), help_heading = "Output")]
    keep: Option<String>,

    /// Watch this server process during the run and report where the time of requests went: PID, or ssh:HOST:PID, which
    /// needs parallax and permission to watch on that host. HOST is any name that ssh accepts; ssh must not ask for a
    /// password. Keeps all individual requests unless --requests is given.
    #[arg(long, value_name = "SERVER", value_parser = text("watch"), help_heading = "Output")]
    watch: Option<String>,

    /// Profile this server process during the run: flame graphs of its threads in the record.
    #[arg(long, value_name = "PID", value_parser = text("profile"), help_heading = "Output")]
    profile: Option<String>,

    /// Print the result as JSON (formats/run.schema.json).
    #[arg(long, help_heading = "Output")]
    json: bool,

    /// Suppress progress output.
    #[arg(long, help_heading = "Output")]
    quiet: bool,

    /// Details: limits and advice of the checks, percentile intervals, options, host.
    #[arg(short, long, overrides_with = "verbose", help_heading = "Output")]
    verbose: bool,

    /// On a terminal, print one plain line per second instead of the live view.
    #[arg(long, help_heading = "Output")]
    no_tui: bool,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long, help_heading = "Output")]
    no_color: bool,

    #[command(flatten)]
    sinks: SinkArgs,
}

/// Who gets the figures while the run goes on.
#[derive(Debug, Clone, clap::Args)]
struct SinkArgs {
    /// Serve metrics at http://ADDR/metrics during the run (Prometheus and OpenMetrics): 127.0.0.1:9464, or 9464 for
    /// that port on loopback.
    #[arg(long, value_name = "ADDR", value_parser = text("prometheus"), help_heading = "While running")]
    prometheus: Option<String>,

    /// After the run, keep serving the final totals until they have been scraped once more, but at most this long (use
    /// a little more than the scrape interval). Ctrl-C ends it.
    #[arg(long, value_name = "TIME", default_value = default("prometheus-linger"), value_parser = text("prometheus-linger"), help_heading = "While running")]
    prometheus_linger: Option<String>,

    /// Push metrics to this OTLP/HTTP endpoint as JSON; /v1/metrics is added to a URL without a path.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "While running")]
    otlp: Option<String>,

    /// Time between two pushes.
    #[arg(long, value_name = "TIME", default_value = default("otlp-interval"), value_parser = text("otlp-interval"), help_heading = "While running")]
    otlp_interval: Option<String>,

    /// Write one JSON line per second to this file, as in the record's series, with null where a second has too few
    /// requests; `-` for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "While running")]
    jsonl: Option<String>,

    /// Write one CSV row per second to this file; `-` for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "While running")]
    csv: Option<String>,
}

/// A share between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance(pub f64);

fn paces() -> Vec<PossibleValue> {
    vec![
        PossibleValue::new("precise")
            .help("Sends a few microseconds late: busy-waits before each request, a whole core from 1,000/s"),
        PossibleValue::new("balanced").help(
            "At rates over 4,000/s, wakes up every 250 us: sends requests and reads responses up to that late",
        ),
        PossibleValue::new("efficient").help(
            "At rates over 1,000/s, wakes up every 1 ms: sends requests and reads responses up to that late",
        ),
    ]
}

fn stamps() -> Vec<PossibleValue> {
    vec![
        PossibleValue::new("kernel").help("By the kernel, as packets arrive"),
        PossibleValue::new("read").help("By the load generator, when it reads them"),
    ]
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if (0.5..=20.0).contains(&percent) => Ok(Tolerance(percent / 100.0)),
        _ => Err("must be 0.5% to 20%, with its sign".to_owned()),
    }
}

/// Refuses what `-o` of other tools takes, instead of making a directory of that name.
fn directory(text: &str) -> Result<String, String> {
    const FORMS: [&str; 6] = ["csv", "json", "text", "html", "hdr", "influxdb"];
    const FILES: [&str; 5] = [".csv", ".json", ".txt", ".html", ".bin"];
    // k6 writes `json=FILE`.
    let form = text.split('=').next().unwrap_or(text);
    let is_file = FORMS.contains(&form) || FILES.iter().any(|end| text.ends_with(end));
    match is_file {
        true => {
            Err("it is the directory of the record; figures go to --json, --csv FILE or --jsonl FILE"
                .to_owned())
        }
        false => Ok(text.to_owned()),
    }
}
