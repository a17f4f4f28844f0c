//! What precedes a run and how its connections are opened, by the servers' own counts; and the tables and keys of
//! `tpcb-like` and `redis-get-set`.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::certificates::Certificates;
use crate::support::mariadb::Mariadb;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::run::{Run, drive, number};
use crate::support::{binary, turn};

/// The text that the program prints: its exit code, standard output and standard error.
fn parallax(password: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binary::parallax());
    command.args(arguments).args(["--password-file", password]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn warmup(run: &Run, field: &str) -> u64 {
    number(&run.json, &format!("/load/warmup/{field}"))
}

/// If this fails, a warm-up is in the figures, or its requests are nowhere.
#[test]
fn a_warm_up_and_its_run_are_all_that_the_server_counted() {
    let _turn = turn::together();
    let server = Redis::start(None);
    let password = server.password_file();
    for (load, opened) in [(&["-n", "500"][..], 20), (&["-r", "500/s", "-d", "1s"], 20)] {
        let before = server.calls(["get", "hello"]);
        let more = ["--warmup", "300ms", "--idle-connections", "20", "--reconnect-every", "50"];
        let what = ["--password-file", &password, "-c", "4", "--command", "GET a", &server.url()];
        let run = drive(&[load, &more, &what].concat());
        let after = server.calls(["get", "hello"]);
        assert_eq!(run.reported(), ["ok - 500"], "{}", run.stderr);
        assert_eq!(run.json.pointer("/load/warmup/outcomes/0/outcome"), Some(&Value::from("ok")));
        assert_eq!(after[0] - before[0], 500 + warmup(&run, "scheduled"));
        let connections = run.total("connections_opened") + warmup(&run, "connections_opened");
        assert_eq!(after[1] - before[1], opened + connections);
        // 4 connections that have at most 50 requests each, before and after the run's zero.
        let least = (500 + warmup(&run, "scheduled")).div_ceil(50);
        assert!((least..least + 4).contains(&connections), "{connections} connections, at least {least}");
        assert_eq!(number(&run.json, "/load/idle_connections/opened"), opened);
        assert_eq!(number(&run.json, "/load/idle_connections/lost"), 0);
    }
}

/// If this fails, a session runs without the settings that were asked for, or a failure of them is blamed on a request.
#[test]
fn each_new_connection_is_set_up_within_its_login() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let (mariadb, postgres) = (Mariadb::start(Some(&certificates)), Postgres::start(Some(&certificates)));
    // The second statement fails on a connection that did not execute the first one, and so does each request.
    let setup = ["--setup-query", "CREATE TEMPORARY TABLE mine (a INT);", "--setup-query"];
    let more = ["INSERT INTO mine VALUES (1)", "--query", "SELECT a FROM mine", "--reconnect-every", "10"];
    let wrong = ["--setup-query", "SELECT 1", "--setup-query", "SELEC 2", "--query", "SELECT 1"];
    for (password, plain, secure, words) in [
        (
            mariadb.password_file(),
            mariadb.url(""),
            mariadb.url("?sslmode=require"),
            "error in your SQL syntax",
        ),
        (
            postgres.password_file(),
            postgres.url(""),
            postgres.url("?sslmode=require"),
            "at or near \"SELEC\"",
        ),
    ] {
        let login = ["--password-file", &password, "-c", "2"];
        for url in [&plain, &secure] {
            let run = drive(&[&login[..], &["-n", "60"], &setup, &more, &[url.as_str()]].concat());
            assert_eq!(run.reported(), ["ok - 60"], "{url}: {:?}", run.reasons());
            let opened = run.total("connections_opened");
            assert!((6..=8).contains(&opened), "{opened} connections");
        }
        let run = drive(&[&login[..], &["-n", "3", "--keep-trying"], &wrong, &[plain.as_str()]].concat());
        assert_eq!(run.reported(), ["auth_failed server 3"], "{:?}", run.reasons());
        let reasons = run.reasons().join("\n").replace('\\', "");
        assert!(
            reasons.contains("--setup-query refused") && reasons.contains(&words.replace('"', "")),
            "{reasons}"
        );
    }
}

/// If this fails, a run with fewer idle connections than asked for passes for one that had them.
#[test]
fn idle_connections_that_the_server_refuses_are_named_in_one_line() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    server.ask("SET GLOBAL max_connections = 30");
    let (password, url) = (server.password_file(), server.url(""));
    let run = drive(&[
        "--password-file",
        &password,
        "--idle-connections",
        "50",
        "-n",
        "1",
        "--query",
        "SELECT 1",
        &url,
    ]);
    let opened = number(&run.json, "/load/idle_connections/opened");
    // One more is for an account that may administer the server; the end of an earlier one may not be noticed yet.
    assert!((20..=31).contains(&opened), "{opened}: {}", run.stderr);
    let said = format!("--idle-connections: {} of 50 could not be opened: auth_failed", 50 - opened);
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("--idle-connections")).collect();
    assert!(
        lines.len() == 1 && lines[0].contains(&said) && lines[0].contains("Too many connections"),
        "{lines:?}"
    );
}

/// A script of pgbench that moves money, 50 times: both statements of a transaction have the same account and sum.
fn run_script(password: &str, url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let [script, scenario] = ["move.sql", "move.toml"].map(|name| folder.path().join(name));
    let text = "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;
        UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 1, :aid, :delta, CURRENT_TIMESTAMP);
        COMMIT;\n";
    fs::write(&script, text).unwrap();
    let mut command = Command::new(binary::parallax());
    command.args(["scenario", "from-pgbench", script.to_str().unwrap(), "--scale", "2", "--url", url]);
    let made = command.stdin(Stdio::null()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    fs::write(&scenario, made.stdout).unwrap();
    let run = drive(&["-c", "1", "-n", "50", "--password-file", password, scenario.to_str().unwrap()]);
    assert_eq!(run.ended("ok"), 200, "{:?} {}", run.reasons(), run.stderr);
}

/// What `prepare --workload tpcb-like` must do with any server: `ask` executes a statement and returns its result.
fn check_tpcb(password: &str, url: &str, ask: &dyn Fn(&str) -> String) {
    ask("CREATE TABLE pgbench_extra (a INT)");
    let prepare = ["prepare", url, "--workload", "tpcb-like", "--scale", "2", "-c", "3"];
    let (code, said, errors) = parallax(password, &prepare);
    assert_eq!(code, Some(0), "{errors}");
    assert!(said.ends_with("(drive --workload tpcb-like --rows 200000): 200022 rows added\n"), "{said}");
    let count = |of: &str| ask(&format!("SELECT COUNT(*) FROM {of}")).trim().to_owned();
    assert_eq!(count("pgbench_accounts WHERE bid = (aid + 99999) / 100000 OR bid BETWEEN 1 AND 2"), "200000");
    assert_eq!(count("pgbench_accounts WHERE aid > 100000 AND bid = 2"), "100000");
    assert_eq!(count("pgbench_tellers WHERE tid > 10 AND bid = 2"), "10");
    assert_eq!(count("pgbench_branches"), "2");
    // What an interruption leaves is completed; what somebody changed is not.
    ask("DELETE FROM pgbench_accounts WHERE aid BETWEEN 30001 AND 40000");
    let (_, said, errors) = parallax(password, &prepare);
    assert!(said.ends_with(": 10000 rows added, 190022 were there\n"), "{said}{errors}");
    let (code, _, errors) = parallax(password, &["prepare", url, "--workload", "tpcb-like"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("not of scale 1"), "{errors}");
    let load = ["--workload", "tpcb-like", "--rows", "200000", "-c", "1", "-n", "50"];
    let run = drive(&[&load[..], &["--password-file", password, url]].concat());
    assert_eq!(run.ended("ok"), run.total("scheduled"), "{:?} {}", run.reasons(), run.stderr);
    assert_eq!(count("pgbench_history"), "50");
    let sums = "SELECT SUM(abalance) - (SELECT SUM(delta) FROM pgbench_history) FROM pgbench_accounts";
    assert_eq!(ask(sums).trim(), "0");
    run_script(password, url);
    assert_eq!((count("pgbench_history"), ask(sums).trim()), ("100".to_owned(), "0"));
    ask("DELETE FROM pgbench_accounts WHERE aid = 7");
    let (code, _, errors) = parallax(password, &prepare);
    assert_eq!(code, Some(1));
    assert!(errors.contains("pgbench_accounts lacks rows between 1 and 10000"), "{errors}");
    let (_, said, _) = parallax(password, &["clean", url]);
    let names = "pgbench_branches, pgbench_tellers, pgbench_accounts, pgbench_history";
    assert_eq!(said, format!("removed 4 tables from {url}: {names}\n"));
    assert_eq!(count("pgbench_extra"), "0");
    // A table of pgbench itself, or of anybody else.
    ask("CREATE TABLE pgbench_tellers (a INT)");
    let (code, _, errors) = parallax(password, &prepare);
    assert_eq!(code, Some(1));
    assert!(errors.contains("pgbench_tellers was not made by `parallax prepare`"), "{errors}");
    let (_, _, errors) = parallax(password, &["clean", url]);
    assert!(errors.contains("was made by `parallax prepare`"), "{errors}");
    assert_eq!(count("pgbench_tellers"), "0");
}

/// If this fails, users of pgbench need pgbench, and its rows differ from ours.
#[test]
fn the_tables_of_pgbench_are_made_completed_driven_and_removed() {
    let _turn = turn::together();
    let mariadb = Mariadb::start(None);
    check_tpcb(&mariadb.password_file(), &mariadb.url(""), &|text| mariadb.ask(&format!("USE app; {text}")));
    let postgres = Postgres::start(None);
    check_tpcb(&postgres.password_file(), &postgres.url(""), &|text| postgres.ask(text));
}

/// If this fails, keys of others are overwritten or removed.
#[test]
fn keys_are_made_completed_and_removed() {
    let _turn = turn::together();
    let server = Redis::start(None);
    let (password, url) = (server.password_file(), server.url());
    server.ask(&["SET", "other", "1"]);
    server.ask(&["SET", "key:1700", "1"]);
    let prepare = ["prepare", &url, "--rows", "2500"];
    let (code, _, errors) = parallax(&password, &prepare);
    assert_eq!(code, Some(1));
    assert!(errors.contains("1 of the keys key:1001 to key:2000 were not made by"), "{errors}");
    assert_eq!(server.ask(&["DBSIZE"]).trim(), "2");
    server.ask(&["DEL", "key:1700"]);
    let (code, said, errors) = parallax(&password, &prepare);
    assert_eq!((code, said), (Some(0), format!("2500 keys in {url}: 2500 keys added\n")), "{errors}");
    assert_eq!((server.ask(&["DBSIZE"]).trim(), server.ask(&["GET", "key:2500"]).trim()), ("2502", "xxx"));
    server.ask(&["DEL", "key:1"]);
    let (_, said, _) = parallax(&password, &prepare);
    assert!(said.ends_with(": 1000 keys added, 1500 were there\n"), "{said}");
    let load = ["--workload", "redis-get-set", "--rows", "2500", "-n", "200"];
    let run = drive(&[&load[..], &["--password-file", &password, &url]].concat());
    assert_eq!(run.reported(), ["ok - 200"], "{}", run.stderr);
    let (_, said, _) = parallax(&password, &["clean", &url]);
    assert_eq!(said, format!("removed 2500 keys from {url}\n"));
    assert_eq!(server.ask(&["KEYS", "*"]).trim(), "other");
    let (_, said, errors) = parallax(&password, &["clean", &url]);
    assert!(said.is_empty() && errors.contains("nothing in"), "{said}{errors}");
}
