//! `--server-account`: the record has what the server counted and who held its locks, and what it does not offer is named
//! with its remedy.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use units::Nanos;

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

/// A connection that has locked the row 1 of the table `locked`, and is idle in its transaction until it is released.
struct Holder {
    client: Child,
}

impl Holder {
    /// By a client that executes each line that it is sent.
    fn lock(mut command: Command, is_locked: impl Fn() -> bool) -> Holder {
        let client =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut holder = Holder { client };
        holder.say("BEGIN; SELECT v FROM locked WHERE id = 1 FOR UPDATE;\n");
        assert!(wait::until(Nanos::from_secs(10), is_locked), "the row is not locked");
        holder
    }

    fn say(&mut self, text: &str) {
        self.client.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Ends the transaction and the connection.
    fn release(mut self) {
        self.say("COMMIT;\n");
        drop(self.client.stdin.take());
        self.client.wait().unwrap();
    }
}

const CHANGE: &str = "UPDATE locked SET v = v + 1 WHERE id = 1";

/// Statements that wait for the row while `holder` has it for three seconds: what is recorded, and the longest response.
fn waited(url: &str, password: &str, holder: Holder) -> (Run, Value) {
    let load =
        ["--password-file", password, "-c", "1", "-n", "3", "--server-account", "--query", CHANGE, url];
    let running = start(&load);
    running.wait_for_record();
    wait::until(Nanos::from_secs(3), || false);
    holder.release();
    the_lock(running.finish())
}

/// The only lock that was waited for.
fn the_lock(run: Run) -> (Run, Value) {
    assert_eq!(run.reported(), ["ok - 3"], "{}", run.stderr);
    let locks = run.json["server_account"]["sessions"]["locks"].as_array().cloned().unwrap_or_default();
    let [lock] = locks.as_slice() else { panic!("{}", run.json["server_account"]) };
    let lock = lock.clone();
    (run, lock)
}

/// If this fails, a report names nobody, or the wrong statement, for a lock that everybody waits for.
#[track_caller]
fn check_lock(url: &str, password: &str, holder: Holder, owner: Option<&str>) {
    let (run, lock) = waited(url, password, holder);
    assert_eq!(lock["owner"].as_str(), owner, "{lock}");
    assert_eq!((&lock["owner_is_idle"], &lock["sessions"]), (&Value::from(true), &Value::from(1)));
    check_wait(&run, &lock);
}

/// The wait is that of the client, and the statement is that which waited.
#[track_caller]
fn check_wait(run: &Run, lock: &Value) {
    assert_eq!(lock["waiter"], "update locked set v = v + ? where id = ?");
    let longest = number(lock, "/longest_ns");
    let truth = run.json["results"]["response"]["max_ns"].as_u64().unwrap();
    // The end of the wait lies between two looks, and a look may be late.
    assert!(longest <= truth && truth - longest < 2_000_000_000, "{longest} of {truth}");
    let said = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("for a lock of connection"), "{}", run.stdout);
}

/// Without a lock.
#[track_caller]
fn check_no_lock(url: &str, password: &str) {
    let load = ["--password-file", password, "-c", "4", "-r", "50/s", "-d", "2500ms", "--server-account"];
    let run = drive(&[&load[..], &["--query", "SELECT v FROM locked WHERE id = 1", url]].concat());
    let sessions = &run.json["server_account"]["sessions"];
    assert_eq!((number(sessions, "/looks"), &sessions["locks"]), (2, &Value::Null), "{sessions}");
}

#[test]
fn mariadb_says_who_held_a_lock() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    server.ask("CREATE TABLE app.locked (id INT PRIMARY KEY, v INT); INSERT INTO app.locked VALUES (1, 0)");
    let socket = format!("--socket={}", server.socket());
    let hold = "BEGIN; SELECT v FROM app.locked WHERE id = 1 FOR UPDATE; DO SLEEP(60)";
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--user=root", "--skip-ssl", &socket, "-e", hold]);
    let mut client = client.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let owner = || {
        let rows = server.ask("SELECT ID FROM information_schema.PROCESSLIST WHERE INFO = 'DO SLEEP(60)'");
        rows.trim().parse::<u64>().ok()
    };
    assert!(wait::until(Nanos::from_secs(10), || owner().is_some()), "the row is not locked");
    let id = owner().unwrap();
    let load =
        ["--password-file", &password, "-c", "1", "-n", "3", "--server-account", "--query", CHANGE, &url];
    let running = start(&load);
    running.wait_for_record();
    wait::until(Nanos::from_secs(3), || false);
    server.ask(&format!("KILL {id}"));
    client.wait().unwrap();
    let (run, lock) = the_lock(running.finish());
    check_wait(&run, &lock);
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
    let mut client = Command::new("psql");
    client.args([
        "-X",
        "-q",
        "-U",
        "postgres",
        "-h",
        &server.sockets(),
        "-p",
        &server.port.to_string(),
        "-d",
        "app",
    ]);
    let locks = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'";
    let holder = Holder::lock(client, || server.ask(locks).trim() == "1");
    check_lock(&url, &password, holder, Some("select v from locked where id = ? for update"));
    check_no_lock(&url, &password);
}
