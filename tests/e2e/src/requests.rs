//! Individual requests: `requests.parquet`, read by an independent program.

use std::process::Command;

use serde_json::Value;

use crate::support::nginx::Nginx;
use crate::support::python::python;
use crate::support::run::{Run, argument, drive, number};
use crate::support::turn;

const READER: &str = "
import json, sys, duckdb
rows = f\"read_parquet('{sys.argv[1]}')\"
columns = [c[0] for c in duckdb.sql(f'describe select * from {rows}').fetchall()]
phases = [c for c in columns[columns.index('schedule_lag_ns'):] if c.endswith('_ns')]
split = ' + '.join(f'coalesce({phase}, 0)' for phase in phases)
query = f'''select count(*), count(distinct n), sum(response_ns) filter (outcome = 'ok'),
    min(response_ns), count(*) filter ({split} != response_ns), string_agg(distinct target, ',' order by target),
    string_agg(distinct outcome || ' ' || code, ',' order by outcome || ' ' || code), count(distinct connection),
    max(intended_ns) from {rows}'''
names = ['rows', 'numbers', 'sum', 'least', 'unsplit', 'targets', 'ends', 'connections', 'last']
print(json.dumps({'phases': phases} | dict(zip(names, duckdb.sql(query).fetchall()[0]))))
";

#[track_caller]
fn read(run: &Run) -> Value {
    let file = argument(&run.record().join("requests.parquet"));
    let output = Command::new(python()).args(["-c", READER, &file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// If this fails, a search for one slow request finds another, or its time in the wrong phase.
#[test]
fn all_requests_are_those_of_the_histograms() {
    let _turn = turn::together();
    let nginx = Nginx::start("location /good { return 200 'hello'; } location /bad { return 503; }");
    let (good, bad) = (nginx.url("/good"), nginx.url("/bad"));
    let run = drive(&["-r", "1k/s", "-n", "2000", "-c", "8", "-w", "2", "--requests", "all", &good, &bad]);
    let rows = read(&run);
    assert_eq!(rows["phases"].as_array().unwrap().len(), 10, "{rows}");
    assert_eq!((number(&rows, "/rows"), number(&rows, "/numbers")), (2_000, 2_000), "{rows}");
    assert_eq!(number(&rows, "/sum"), number(&run.json, "/results/response/sum_ns"), "{rows}");
    assert_eq!(number(&rows, "/unsplit"), 0, "phases that do not sum to the response: {rows}");
    assert_eq!(rows["targets"], format!("GET {bad},GET {good}"), "{rows}");
    assert_eq!(rows["ends"], "app_error 503,ok 200", "{rows}");
    assert_eq!(number(&rows, "/connections"), 8, "{rows}");
    assert_eq!(number(&rows, "/last"), 1_999_000_000, "{rows}");
    assert_eq!(number(&run.json, "/results/kept/rows"), 2_000);
    assert_eq!(number(&run.json, "/results/kept/lost"), 0);
}

#[test]
fn the_slowest_are_the_slowest_of_all_workers() {
    let _turn = turn::together();
    // nginx lets through what a second allows and holds back the rest, here 40 kB, for 0.4 s.
    let nginx = Nginx::start("location / { return 200 'hello'; } location /slow { limit_rate 100k; }");
    std::fs::write(nginx.file("slow"), vec![1; 140_000]).unwrap();
    let targets =
        format!("# weight: 99\nGET {}\n\n# weight: 1\nGET {}\n", nginx.url("/"), nginx.url("/slow"));
    let file = nginx.file("targets.txt");
    std::fs::write(&file, targets).unwrap();
    let kept = ["--requests", "slowest=10", "--targets", &argument(&file)];
    let run = drive(&[&["-n", "1000", "-c", "8", "-w", "2"], &kept[..]].concat());
    let rows = read(&run);
    assert_eq!(number(&rows, "/rows"), 10, "{rows}");
    assert_eq!(rows["targets"], format!("GET {}", nginx.url("/slow")), "{rows}");
}

#[test]
fn a_sample_is_the_same_in_every_run() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let sample = |seed: &str| {
        let run = drive(&["-n", "2000", "--requests", "sample=10%", "--seed", seed, &nginx.url("/")]);
        number(&read(&run), "/rows")
    };
    let first = sample("1");
    // Four standard deviations of 13.4 around a tenth.
    assert!((146..=254).contains(&first), "{first} of 2,000");
    assert_eq!(sample("1"), first);
}
