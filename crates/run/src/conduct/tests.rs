//! The record of a run: its window, why it broke off; and that a refused run leaves nothing behind.

use std::net::SocketAddr;
use std::sync::Arc;

use engine::{Load, Peer, PoolPlan};
use schedule::Arrivals;

use super::*;
use crate::sinks::SinkPlan;

fn plan(load: Load, seconds: Option<u64>, request_limit: Option<u64>) -> RunPlan {
    let pool = PoolPlan {
        connections: 1,
        users: 1,
        checkout_timeout: None,
        connect_timeout: None,
        request_timeout: None,
        idle: 0,
        connect_gap: units::Nanos::ZERO,
        requests_per_connection: None,
    };
    RunPlan {
        load,
        pace: engine::Pace::default(),
        warmup: None,
        window: seconds.map(Nanos::from_secs),
        request_limit,
        pool,
        peers: vec![Peer::at(Place::Address(SocketAddr::from(([127, 0, 0, 1], 1))))],
        workers: 1,
        kernel_stamps: true,
        drain: Some(Nanos::from_secs(5)),
        interval: Nanos::from_secs(1),
    }
}

fn prepared(sinks: SinkPlan) -> PreparedRun {
    PreparedRun {
        plan: plan(Load::Closed, Some(10), None),
        protocol: crate::prepare::tests::protocol(),
        url: "http://127.0.0.1:1/".to_owned(),
        names: vec!["GET http://127.0.0.1:1/".to_owned()],
        depth: 1,
        method: "GET".to_owned(),
        thresholds: vec!["throughput < 1/s".parse().unwrap()],
        sinks,
        keep: None,
        watch_cpu: Vec::new(),
        spec: crate::testing::given(&["http://127.0.0.1:1/"]).spec().unwrap(),
        given: crate::options::GivenOptions::default(),
        values: BTreeMap::new(),
        seed: None,
        data_limit: None,
        replay: None,
    }
}

/// Why a run with results in `folder` and rows in `rows` is refused.
fn refused(folder: &Path, rows: &Path) -> String {
    let prepared = prepared(SinkPlan::rows_to(rows));
    let controls = Controls::new(Arc::default());
    let environment = Environment::none();
    let with = Conduct {
        folder,
        options: BTreeMap::new(),
        environment: &environment,
        progress: &mut Quiet,
        controls: &controls,
    };
    let conducted = conduct(&prepared, with);
    conducted.err().expect("it is refused").to_string()
}

/// If this fails, a refused run has truncated the rows of the previous run, or left a folder behind.
#[test]
fn what_is_refused_leaves_everything_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let (folder, rows) = (root.path().join("run"), root.path().join("run/rows"));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("run.json"), "{}").unwrap();
    std::fs::write(&rows, "a row\n").unwrap();
    assert!(refused(&folder, &rows).contains("already contains a record"));
    assert_eq!(std::fs::read_to_string(&rows).unwrap(), "a row\n");
    let fresh = root.path().join("fresh");
    assert!(refused(&fresh, &root.path().join("nowhere/rows")).contains("cannot write to"));
    assert!(!fresh.exists());
}

#[track_caller]
fn check(plan: &RunPlan, state: State, elapsed_s: u64, window_s: u64) {
    let controls = Controls::new(Arc::default());
    let window = window(plan, &controls, state, Nanos::from_secs(elapsed_s));
    assert_eq!(window, Nanos::from_secs(window_s));
}

/// If this fails, 4 requests at 1/s are reported as 1.33/s: the last one is due after 3 s, and its second counts.
#[test]
fn an_open_loop_is_divided_by_the_time_it_was_scheduled_for() {
    let open = Load::Open(Arrivals::Constant("1/s".parse().unwrap()));
    check(&plan(open.clone(), Some(4), None), State::Finished, 3, 4);
    check(&plan(open.clone(), None, Some(4)), State::Finished, 3, 4);
    check(&plan(open.clone(), Some(10), Some(4)), State::Finished, 3, 4);
    check(&plan(open.clone(), Some(4), Some(100)), State::Finished, 9, 4);
    check(&plan(open.clone(), Some(4), None), State::Interrupted, 2, 2);
    check(&plan(open, Some(4), None), State::Broken, 2, 2);
}

#[test]
fn a_closed_loop_is_divided_by_the_time_that_it_ran_for() {
    check(&plan(Load::Closed, Some(4), None), State::Finished, 5, 4);
    check(&plan(Load::Closed, None, Some(100)), State::Finished, 7, 7);
    check(&plan(Load::Closed, Some(10), Some(100)), State::Finished, 7, 7);
}

/// If this fails, a run that a bug cut short looks like one that its user ended, or has no reason in its record.
#[test]
fn a_run_that_broke_says_so_in_its_record() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("run");
    let controls = Controls::new(Arc::default());
    let prepared = prepared(SinkPlan::default());
    let mut keeper = Keeper {
        accountant: None,
        counted: None,
        sampling: None,
        document: opening_document(&prepared, BTreeMap::new(), &Environment::none()),
        thresholds: &prepared.thresholds,
        sinks: Sinks::open(&prepared.sinks).unwrap(),
        prepared: &prepared,
        folder: &folder,
        writer: None,
        lock: None,
        environment: &Environment::none(),
        damage: None,
        damaged_at: Nanos::ZERO,
        measured: Nanos::ZERO,
        total: Interval::default(),
        process_cpu: None,
        monitor: HostMonitor::start(None, &[]),
        progress: &mut Quiet,
        controls: &controls,
        requests: None,
        unreachable: false,
        warnings: Vec::new(),
    };
    keeper.started(&Started { at: Nanos::from_secs(1), no_kernel_stamps: None });
    let mut interval = Interval::default();
    interval.length = Nanos::from_secs(1);
    keeper.interval(&mut interval);
    // As the engine does if it cannot start a worker.
    controls.stop();
    let conducted = keeper.close(Err(RunError::Worker("an invariant".to_owned())));
    assert!(conducted.write_error.is_none(), "{:?}", conducted.write_error);
    let kept = record::read(&folder).unwrap();
    assert_eq!(kept.document.state, State::Broken);
    assert_eq!(kept.document.time.window_ns, Some(1_000_000_000));
    let events: Vec<_> = kept.events.iter().map(|event| (event.at_ns, event.kind.as_str())).collect();
    assert_eq!(events, [(1_000_000_000, "broken")]);
    assert!(kept.events[0].text.contains("an invariant"));
}

/// What a run measures, and when: differs between any two runs. Everything else in two records of one spec is equal.
const MEASURED: [&str; 6] = [
    "/results",
    "/verdict",
    "/time",
    "/stamps/pairing_error_ns",
    "/stamps/wall_clock_steps",
    "/thresholds/0/measured",
];

/// The record of a run of `spec` against the built-in target, without measured values and the record's location.
fn record_of(spec: &crate::spec::RunSpec, folder: &Path) -> serde_json::Value {
    let environment = Environment::none();
    let prepared = crate::prepare::prepare(spec, &environment).unwrap();
    let controls = Controls::new(Arc::default());
    let with = Conduct {
        folder,
        options: BTreeMap::new(),
        environment: &environment,
        progress: &mut Quiet,
        controls: &controls,
    };
    let completed = conduct(&prepared, with).unwrap();
    assert!(completed.write_error.is_none() && completed.aborted.is_none());
    let mut document = serde_json::to_value(&completed.document).unwrap();
    for measured in MEASURED {
        if let Some(value) = document.pointer_mut(measured) {
            *value = serde_json::Value::Null;
        }
    }
    document["options"].as_object_mut().unwrap().remove("output");
    document
}

/// If this fails, a run on another host, which gets its spec as JSON, differs from the one that was requested.
#[test]
fn a_run_by_its_printed_spec_leaves_the_same_record() {
    let server = target::Server::start(target::Options::default()).unwrap();
    let url = format!("http://{}/plaintext", server.local_addr());
    let root = tempfile::tempdir().unwrap();
    for (n, more) in [
        &["-n", "20", "--users", "4", "-c", "2", "-H", "X-Token: secret"][..],
        &["-r", "100/s", "-n", "20", "--arrivals", "poisson", "--seed", "7", "--max-in-flight", "50"],
        &["--stage", "constant 100/s 100ms", "--stage", "pause 100ms", "--fail-if", "response.p50 > 10s"],
    ]
    .iter()
    .enumerate()
    {
        let spec = crate::testing::given(&[&[url.as_str()], *more].concat()).spec().unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        let read = crate::spec::RunSpec::from_json(&json).unwrap();
        let by_flags = record_of(&spec, &root.path().join(format!("{n}-flags")));
        let by_spec = record_of(&read, &root.path().join(format!("{n}-spec")));
        assert_eq!(by_flags, by_spec, "{more:?}");
    }
}
