//! A run started from a spec equals the run with the options that the spec was made of.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::nginx::Nginx;
use crate::support::run::{Run, argument, drive};
use crate::support::{binary, turn};

/// The record without what differs between two runs of the same options: when and where they ran, how long requests
/// took, and what follows from that.
fn timeless(run: &Run) -> Value {
    let mut document = run.json.clone();
    let record = document.as_object_mut().unwrap();
    record.retain(|name, _| !["time", "command", "host", "verdict"].contains(&name.as_str()));
    let mut keep_but = |part: &str, dropped: &[&str]| {
        record[part].as_object_mut().unwrap().retain(|name, _| !dropped.contains(&name.as_str()));
    };
    // Each run has a folder of its own.
    keep_but("options", &["output"]);
    keep_but("stamps", &["pairing_error_ns", "wall_clock_steps"]);
    let results = record["results"].as_object_mut().unwrap();
    results.retain(|name, _| ["totals", "outcomes", "codes", "journeys"].contains(&name.as_str()));
    let totals = results["totals"].as_object_mut().unwrap();
    totals.retain(|name, _| ["scheduled", "sent", "ok", "failed", "body_bytes"].contains(&name.as_str()));
    document
}

/// If this fails, a run started by another program is not the run that was requested.
#[track_caller]
fn check(nginx: &Nginx, arguments: &[&str]) {
    let by_options = drive(arguments);
    by_options.assert_done();
    let printed = Command::new(binary::parallax())
        .args(["drive", "--json", "--quiet", "--print-spec"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let spec = nginx.file("spec.json");
    fs::write(&spec, &printed.stdout).unwrap();
    let by_spec = drive(&["--spec", &argument(&spec)]);
    by_spec.assert_done();
    let (one, other) = (timeless(&by_options), timeless(&by_spec));
    assert_eq!(one, other, "{arguments:?}");
    assert!(one["results"]["totals"]["ok"].as_u64() > Some(0), "{one}");
}

fn server() -> Nginx {
    Nginx::start("location / { return 200 'hello'; } location /missing { return 404 'no'; }")
}

#[test]
fn requests_of_a_url_are_those_of_its_spec() {
    let _turn = turn::together();
    let nginx = server();
    let url = nginx.url("/");
    check(&nginx, &["-n", "60", "-c", "2", "--users", "4", "--think", "exp:1ms", "--seed", "7", &url]);
    let open = ["-r", "200/s", "-d", "1s", "--arrivals", "poisson", "--seed", "7", "-H", "A: 1"];
    check(&nginx, &[&open[..], &["--fail-if", "failed > 5", "--requests", "slowest=5", &url]].concat());
}

#[test]
fn requests_of_a_target_file_are_those_of_its_spec() {
    let _turn = turn::together();
    let nginx = server();
    let file = nginx.file("targets");
    fs::write(&file, format!("GET {}\n\nGET {}\n", nginx.url("/a"), nginx.url("/missing"))).unwrap();
    check(&nginx, &["-n", "60", "-c", "2", "-H", "A: 1", "--targets", &argument(&file)]);
}

#[test]
fn requests_of_a_scenario_are_those_of_its_spec() {
    let _turn = turn::together();
    let nginx = server();
    let file = nginx.file("mix.toml");
    let requests = "[[request]]\nname = \"a\"\npath = \"/a\"\nweight = 2\n\n[[request]]\nname = \"b\"\npath = \"/{{path}}\"\n";
    let scenario = format!(
        "[run]\ncount = 60\n\n[vars]\npath = \"b\"\n\n[targets.here]\nurl = \"{}\"\n\n{requests}",
        nginx.url("")
    );
    fs::write(&file, scenario).unwrap();
    check(&nginx, &["-c", "2", "--seed", "7", "--set", "path=c", &argument(&file)]);
}
