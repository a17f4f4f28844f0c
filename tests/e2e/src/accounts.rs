//! `--server-account`: the record has what the server counted, and what it does not offer is named with its remedy.

use serde_json::Value;

use crate::support::mariadb::Mariadb;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::run::{Run, drive};
use crate::support::turn;

/// By how much a counter of the server changed.
fn change(run: &Run, name: &str) -> i64 {
    let account = &run.json["server_account"];
    let change = account["counters"][name]["change"].as_i64();
    change.unwrap_or_else(|| panic!("{name} is not in {account}"))
}

fn statements(run: &Run) -> &[Value] {
    run.json["server_account"]["statements"].as_array().map_or(&[], Vec::as_slice)
}

/// How often the server executed statements whose text contains `part`.
fn calls(run: &Run, part: &str) -> u64 {
    let of_part = |row: &&Value| row["text"].as_str().unwrap().contains(part);
    statements(run).iter().filter(of_part).map(|row| row["calls"].as_u64().unwrap()).sum()
}

fn missing(run: &Run) -> String {
    let why = |fact: &Value| fact["why"].as_str().unwrap().to_owned();
    let facts = run.json["server_account"]["missing"].as_array();
    facts.into_iter().flatten().map(why).collect::<Vec<_>>().join("\n")
}

/// If this fails, the counts of the server belong to another period, or the record has none without a word.
#[test]
fn mariadb_accounts_for_its_statements() {
    let _turn = turn::together();
    let off = Mariadb::start(None);
    let on = Mariadb::start_with(&["--performance-schema=ON"]);
    for (server, has_digests) in [(&off, false), (&on, true)] {
        let (password, url) = (server.password_file(), server.url(""));
        let load = ["--password-file", &password, "-c", "3", "-n", "200", "--warmup", "100ms", "--no-tui"];
        let run = drive(&[&load[..], &["--server-account", "--query", "DO 1 + 2", &url]].concat());
        assert_eq!(run.reported(), ["ok - 200"], "{}", run.stderr);
        // The warm-up is not among them.
        assert_eq!(change(&run, "Com_do"), 200);
        // 200 of the run, and those that read the counters: two, or three of them, after the first reading.
        let own = change(&run, "Questions") - 200;
        assert!((2..=8).contains(&own), "{own} statements of our own");
        if has_digests {
            // A statement enters the digests after its response was sent: the last one of each of three connections
            // may be missing, and that of the warm-up be there.
            let counted = calls(&run, "DO");
            assert!((197..=203).contains(&counted), "{counted} executions");
            assert_eq!(missing(&run), "");
            assert!(statements(&run)[0]["total_ns"].as_u64().unwrap() > 0);
        } else {
            assert!(missing(&run).contains("set performance_schema = ON"), "{}", missing(&run));
        }
    }
    // An account that cannot log in at that time: one line, and the run has its figures.
    let (password, url) = (off.password_file(), off.url(""));
    off.ask("SET GLOBAL max_connections = 10");
    let more = ["--idle-connections", "30", "-n", "1", "--server-account", "--query", "SELECT 1", &url];
    let run = drive(&[&["--password-file", &password][..], &more].concat());
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("--server-account")).collect();
    assert!(lines.len() == 1 && lines[0].contains("Too many connections"), "{}", run.stderr);
    assert!(missing(&run).contains("Too many connections"), "{}", missing(&run));
}

#[test]
fn postgres_accounts_for_its_statements() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    let load = ["--password-file", &password, "-c", "3", "-n", "200", "--server-account"];
    let drive = || drive(&[&load[..], &["--query", "SELECT 1 AS counted", &url]].concat());
    server.ask("DROP EXTENSION IF EXISTS pg_stat_statements");
    let run = drive();
    // 200 of the run, the queries that read the counters, and perhaps those of a vacuum.
    let commits = change(&run, "xact_commit");
    assert!((200..=400).contains(&commits), "{commits}");
    assert!(missing(&run).contains("CREATE EXTENSION pg_stat_statements"), "{}", missing(&run));
    server.ask("CREATE EXTENSION pg_stat_statements");
    let run = drive();
    assert_eq!((calls(&run, "AS counted"), missing(&run)), (200, String::new()));
}

#[test]
fn redis_accounts_for_its_commands() {
    let _turn = turn::together();
    let server = Redis::start(None);
    let (password, url) = (server.password_file(), server.url());
    let load = ["--password-file", &password, "-c", "2", "-n", "300", "--pipeline", "8", "--server-account"];
    server.ask(&["SET", "k", "1"]);
    let run = drive(&[&load[..], &["--command", "SET j 1", "--command", "GET k", &url]].concat());
    assert_eq!(run.reported(), ["ok - 300"], "{}", run.stderr);
    assert_eq!((calls(&run, "SET"), calls(&run, "GET")), (150, 150));
    assert_eq!(change(&run, "keyspace_hits"), 150);
    assert_eq!(change(&run, "db0_keys"), 1);
    // Two connections, and the one that reads.
    assert_eq!(change(&run, "total_connections_received"), 3);
}
