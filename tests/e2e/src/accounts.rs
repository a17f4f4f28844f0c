//! `--server-account`: the record has what the server counted and who held its locks, and what it does not offer is named
//! with its remedy.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use units::Nanos;

use crate::support::databases::PASSWORD;
use crate::support::mariadb::Mariadb;
use crate::support::postgres::Postgres;
use crate::support::redis::Redis;
use crate::support::run::{Run, drive, number, start};
use crate::support::{turn, wait};

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
        // Over one connection: threads of the server add to its digests without a lock, and lose counts of each other.
        let load = ["--password-file", &password, "-c", "1", "-n", "200", "--warmup", "100ms", "--no-tui"];
        let run = drive(&[&load[..], &["--server-account", "--query", "DO 1 + 2", &url]].concat());
        assert_eq!(run.reported(), ["ok - 200"], "{}", run.stderr);
        // The warm-up is not among them.
        assert_eq!(change(&run, "Com_do"), 200);
        // 200 of the run, and those that read the counters: two, or three of them, after the first reading.
        let own = change(&run, "Questions") - 200;
        assert!((2..=8).contains(&own), "{own} statements of our own");
        if has_digests {
            // A statement enters the digests after its response was sent: the last one may be missing, and that of the
            // warm-up be there.
            let counted = calls(&run, "DO");
            assert!((199..=201).contains(&counted), "{counted} executions");
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
    assert_eq!((calls(&run, "select ? as counted"), missing(&run)), (200, String::new()));
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

/// If this fails, an account without privileges gets no statements, or a password of somebody else is in the record.
#[test]
fn postgres_accounts_for_those_who_may_not_read_the_statements_of_others() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    server.ask("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    server.ask(&format!("CREATE ROLE nobody LOGIN PASSWORD '{PASSWORD}'"));
    let password = server.password_file();
    let load = |user: &str| {
        let more =
            ["-c", "1", "-r", "20/s", "-d", "1500ms", "--server-account", "--query", "SELECT 1 AS counted"];
        let running =
            start(&[&["--password-file", &password][..], &more, &[&server.url_of(user, "")]].concat());
        running.wait_for_record();
        server.ask("ALTER ROLE slow PASSWORD 'swordfish'");
        running.finish()
    };
    let run = load("nobody");
    assert_eq!((calls(&run, "select ? as counted"), missing(&run)), (30, String::new()), "{}", run.json);
    // Who may read them sees the statement, without its value.
    let run = load("app");
    assert_eq!(calls(&run, "alter role slow password ?"), 1, "{}", run.json["server_account"]);
    assert!(!run.json.to_string().contains("swordfish") && !run.stdout.contains("swordfish"));
}

const CHANGE: &str = "UPDATE locked SET v = v + 1 WHERE id = 1";

/// Three statements, the first of which waits for a lock until `release` after three seconds: the run and the only lock
/// that was waited for. The longest wait and the statements are checked.
///
/// If this fails, a report names nobody, or the wrong statement, for a lock that everybody waits for.
#[track_caller]
fn waited(url: &str, password: &str, release: impl FnOnce()) -> Value {
    let load =
        ["--password-file", password, "-c", "1", "-n", "3", "--server-account", "--query", CHANGE, url];
    let running = start(&load);
    running.wait_for_record();
    wait::pause(Nanos::from_secs(3));
    release();
    let run = running.finish();
    assert_eq!(run.reported(), ["ok - 3"], "{}", run.stderr);
    let locks = run.json["server_account"]["sessions"]["locks"].as_array().map_or(&[][..], Vec::as_slice);
    let [lock] = locks else { panic!("{}", run.json["server_account"]) };
    assert_eq!(lock["waiter"], "update locked set v = v + ? where id = ?");
    assert_eq!(lock["sessions"], 1);
    let longest = number(lock, "/longest_ns");
    let truth = number(&run.json, "/results/response/max_ns");
    // The wait ends less than a period after a sample, which may be late by half of one.
    assert!(longest <= truth && truth - longest < 1_500_000_000, "{longest} of {truth}");
    let said = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("for a lock of connection"), "{}", run.stdout);
    lock.clone()
}

/// The control: nobody holds a lock.
#[track_caller]
fn check_no_lock(url: &str, password: &str) {
    let load = ["--password-file", password, "-c", "4", "-r", "50/s", "-d", "2500ms", "--server-account"];
    let run = drive(&[&load[..], &["--query", "SELECT v FROM locked WHERE id = 1", url]].concat());
    let sessions = &run.json["server_account"]["sessions"];
    assert_eq!((number(sessions, "/samples"), &sessions["locks"]), (2, &Value::Null), "{sessions}");
}

/// A client that runs until it has nothing more to read, or is ended.
fn client(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn mariadb_says_who_held_a_lock() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    server.ask("CREATE TABLE app.locked (id INT PRIMARY KEY, v INT); INSERT INTO app.locked VALUES (1, 0)");
    let socket = format!("--socket={}", server.socket());
    let hold = "BEGIN; SELECT v FROM app.locked WHERE id = 1 FOR UPDATE; DO SLEEP(60)";
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "--user=root", "--skip-ssl", &socket, "-e", hold]);
    let mut holder = client(command);
    let owner = || {
        let rows = server.ask("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO = 'DO SLEEP(60)'");
        rows.trim().parse::<u64>().ok()
    };
    assert!(wait::until(Nanos::from_secs(10), || owner().is_some()), "the row is not locked");
    let id = owner().unwrap();
    let lock = waited(&url, &password, || drop(server.ask(&format!("KILL {id}"))));
    holder.wait().unwrap();
    assert_eq!((&lock["owner"], &lock["owner_is_idle"]), (&Value::from("do sleep(?)"), &Value::from(false)));
    assert_eq!(lock["owner_connection"], id);
    check_no_lock(&url, &password);
}

#[test]
fn postgres_says_who_held_a_lock() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    server.ask("CREATE TABLE locked (id INT PRIMARY KEY, v INT)");
    server.ask("INSERT INTO locked VALUES (1, 0)");
    let (sockets, port) = (server.sockets(), server.port.to_string());
    let mut command = Command::new("psql");
    command.args(["-X", "-q", "-U", "postgres", "-h", &sockets, "-p", &port, "-d", "app"]);
    // It executes each line that it is sent.
    let mut holder = client(command);
    let mut say = |text: &[u8]| holder.stdin.as_mut().unwrap().write_all(text).unwrap();
    say(b"BEGIN; SELECT v FROM locked WHERE id = 1 FOR UPDATE;\n");
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    assert!(wait::until(Nanos::from_secs(10), || server.ask(idle).trim() == "1"), "the row is not locked");
    let lock = waited(&url, &password, || say(b"COMMIT;\n"));
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(
        (&lock["owner"], &lock["owner_is_idle"]),
        (&Value::from("select v from locked where id = ? for update"), &Value::from(true))
    );
    check_no_lock(&url, &password);
}
