//! The shipped scenarios, run against a shop that keeps sessions and against the built-in server.
//!
//! The shop refuses a token that does not belong to the request's own session, so a value that leaks from one journey
//! to another is an error here and not just a figure.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::leash::Leash;
use crate::support::nginx::fetch;
use crate::support::run::{Run, argument, drive, number};
use crate::support::{binary, port, turn};

struct Shop {
    _process: Leash,
    _folder: TempDir,
    port: u16,
}

impl Shop {
    fn start() -> Shop {
        let folder = tempfile::tempdir().unwrap();
        let port = port::free();
        let script = argument(&binary::root().join("tests/e2e/shop.py"));
        let mut process =
            Leash::start(&["python3", &script, &port.to_string()], &folder.path().join("shop.log"));
        process.wait_for(port);
        Shop { _process: process, _folder: folder, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What the shop itself counted.
    fn seen(&self) -> Value {
        serde_json::from_slice(&fetch(self.port, "/seen")).unwrap()
    }
}

fn shipped(name: &str) -> PathBuf {
    binary::root().join("scenarios").join(name)
}

/// The shipped scenario without its rate and its end: a closed loop, bounded by options.
fn closed(folder: &TempDir) -> String {
    let text = fs::read_to_string(shipped("shop.toml")).unwrap();
    let kept =
        |line: &&str| !["rate =", "duration =", "connections ="].iter().any(|key| line.starts_with(key));
    let path = folder.path().join("closed.toml");
    fs::write(&path, text.lines().filter(kept).collect::<Vec<_>>().join("\n")).unwrap();
    fs::copy(shipped("users.csv"), folder.path().join("users.csv")).unwrap();
    argument(&path)
}

fn journeys(run: &Run) -> Vec<String> {
    let all = run.json.pointer("/results/journeys").unwrap().as_array().unwrap();
    let one = |journey: &Value| {
        let count = |name: &str| number(journey, name);
        let name = journey["name"].as_str().unwrap();
        format!("{name} {} {} {}", count("/started"), count("/completed"), count("/cut"))
    };
    all.iter().map(one).collect()
}

/// Of every five journeys four browse and one orders; both have three steps.
#[track_caller]
fn check(callers: &str, count: u64, workers: &str) {
    let _turn = turn::together();
    let shop = Shop::start();
    let folder = tempfile::tempdir().unwrap();
    let set = format!("shop={}", shop.url());
    let bounds = ["-n", &count.to_string(), "-c", callers, "-w", workers, "--seed", "7", "--timeout", "60s"];
    let scenario = closed(&folder);
    let mut arguments = vec![scenario.as_str(), "--set", &set];
    arguments.extend(bounds);
    let run = drive(&arguments);
    assert_eq!(run.reported(), [format!("ok - {}", 3 * count)]);
    let (browse, order) = (count / 5 * 4, count / 5);
    assert_eq!(journeys(&run), [format!("browse {browse} {browse} 0"), format!("order {order} {order} 0")]);
    let seen = shop.seen();
    let counts =
        ["login", "items", "item", "place", "check", "refused"].map(|name| seen[name].as_u64().unwrap());
    assert_eq!(counts, [count, browse, browse, order, order, 0]);
    // Four users in turn.
    for user in ["ann", "bob", "çelik", "dana"] {
        assert_eq!(seen["users"][user], count / 4, "{seen}");
    }
}

#[test]
fn one_virtual_user_completes_its_journeys() {
    check("1", 20, "1");
}

#[test]
fn a_hundred_virtual_users_keep_their_sessions_apart() {
    check("100", 1_000, "2");
}

/// If this fails, a scenario that was tried with one virtual user behaves differently with thousands.
#[test]
fn two_thousand_virtual_users_keep_their_sessions_apart() {
    check("2000", 6_000, "2");
}

/// If this fails, figures include steps that should not have been sent.
#[test]
fn a_journey_that_fails_goes_no_further() {
    let _turn = turn::together();
    let shop = Shop::start();
    let folder = tempfile::tempdir().unwrap();
    let set = format!("shop={}", shop.url());
    // Wrong for every response, so the first step fails its check.
    let wrong = "journey.browse.step.login.expect.json={\"/data/token\" = \"other\"}";
    let scenario = closed(&folder);
    let run = drive(&[&scenario, "--set", &set, "--set", wrong, "-n", "10", "-c", "2"]);
    assert_eq!(journeys(&run), ["browse 8 0 8", "order 2 2 0"]);
    assert_eq!((run.ended("ok"), run.ended("check_failed")), (6, 8));
    assert_eq!(shop.seen()["items"], 0);
}

/// If this fails, a run continues with rows that it has used, or ends without a message.
#[test]
fn data_that_is_used_once_ends_the_run() {
    let _turn = turn::together();
    let shop = Shop::start();
    let folder = tempfile::tempdir().unwrap();
    let set = format!("shop={}", shop.url());
    let scenario = closed(&folder);
    let run = drive(&[&scenario, "--set", &set, "--set", "data.users.order=once", "-c", "2"]);
    assert_eq!(journeys(&run), ["browse 3 3 0", "order 1 1 0"]);
    let events = fs::read_to_string(run.record().join("events.ndjson")).unwrap();
    assert!(events.contains("data `users` was used up after 4 rows"), "{events}");
    assert_eq!(run.json["options"]["count"]["value"], "4");
}

/// The built-in server, on a port of its own.
fn serve(folder: &TempDir) -> (Leash, u16) {
    let port = port::free();
    let binary = argument(binary::parallax());
    let listen = format!("127.0.0.1:{port}");
    let mut server = Leash::start(&[&binary, "serve", "--listen", &listen], &folder.path().join("serve.log"));
    server.wait_for(port);
    (server, port)
}

/// If this fails, a user's first scenario does not run as it is.
#[test]
fn the_scenario_to_begin_with_runs_against_the_built_in_server() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let (_server, port) = serve(&folder);
    let set = format!("base=http://127.0.0.1:{port}");
    let start = argument(&shipped("start.toml"));
    // Its duration is longer than this takes, so the end of the run cuts off no journey.
    let run = drive(&[&start, "--set", &set, "--rate", "500/s", "-n", "500"]);
    // Of every five arrivals four are pages and one is a journey of two steps.
    assert_eq!(run.reported(), ["ok - 600"]);
    assert_eq!(journeys(&run), ["visit 100 100 0"]);
    assert_eq!(run.json["options"]["rate"]["source"], "given");
}

#[test]
fn the_mix_is_driven_by_weight_with_its_checks() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let (_server, port) = serve(&folder);
    let set = format!("targets.local.url=http://127.0.0.1:{port}");
    let run = drive(&[&argument(&shipped("mix.toml")), "--set", &set, "-n", "1000"]);
    assert_eq!(run.reported(), ["ok - 1000"]);
    let of = |place: &str| number(&run.json, &format!("/results/targets/{place}/ok"));
    assert_eq!([of("0"), of("1"), of("2")], [600, 300, 100]);
    assert_eq!(run.json["subject"]["targets"], serde_json::json!(["plaintext", "json", "slow"]));
    assert_eq!(run.json["options"]["users"]["source"], "file");
}

/// If this fails, a search over a scenario uses the rate of the file, or takes requests for journeys.
#[test]
fn a_search_over_a_scenario_counts_its_journeys() {
    let _turn = turn::together();
    let shop = Shop::start();
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(binary::parallax())
        .args(["drive", &argument(&shipped("shop.toml")), "--set", &format!("shop={}", shop.url())])
        .args(["--search", "p50 < 5s and error_share < 50%", "--search-from", "5/s", "--search-to", "40/s"])
        .args(["--probes", "3", "--probe-duration", "2s", "--json", "--quiet", "-o"])
        .arg(folder.path().join("search"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let probes = document["probes"].as_array().unwrap();
    let at_a_rate: Vec<_> =
        probes.iter().filter_map(|probe| Some((probe, probe["rate_per_s"].as_f64()?))).collect();
    assert!(!at_a_rate.is_empty(), "{document}");
    for (probe, rate) in at_a_rate {
        let done = probe["ok_per_s"].as_f64().unwrap();
        // A journey has three requests.
        assert!((5.0..=40.0).contains(&rate) && done < 2.0 * rate, "{probe}");
        let record = folder.path().join("search").join(probe["folder"].as_str().unwrap());
        let run: Value = serde_json::from_slice(&fs::read(record.join("run.json")).unwrap()).unwrap();
        assert_eq!(run["load"]["rate_per_s"].as_f64(), Some(rate), "{probe}");
        assert_eq!(run["results"]["journeys"].as_array().unwrap().len(), 2, "{probe}");
    }
}
