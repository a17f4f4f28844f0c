//! PostgreSQL: our counts are the server's own, and each way in which a statement can fail has its outcome.

use std::fs;

use units::Nanos;

use crate::secure::{passed, protocol};
use crate::support::certificates::Certificates;
use crate::support::databases::{
    PASSWORD, check_goes_on, check_password_is_hidden, of_journeys, opposite_orders,
};
use crate::support::postgres::Postgres;
use crate::support::run::{Run, drive};
use crate::support::{turn, wait};

/// What the server counted for one run: executions of `SELECT $1 + $2`, and transactions.
fn counted(server: &Postgres, arguments: &[&str], expected: u64) -> (Run, [u64; 2]) {
    let password = server.password_file();
    let (calls, commits) = (server.calls("SELECT $1 + $2"), server.commits());
    let run = drive(&[&["--password-file", &password][..], arguments].concat());
    // Its processes report when they end, which is after their connections have.
    wait::until(Nanos::from_secs(5), || server.commits() - commits >= expected);
    let counts = [server.calls("SELECT $1 + $2") - calls, server.commits() - commits];
    (run, counts)
}

/// If this fails, statements are lost or sent twice, or a report counts what the server did not do.
#[test]
fn postgres_counts_are_those_of_the_server() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let server = Postgres::start(Some(&certificates));
    for (connections, pipeline, statements) in [("1", 1, 500), ("64", 1, 3_000), ("8", 16, 3_000)] {
        let count = statements.to_string();
        let depth = pipeline.to_string();
        let fixed = ["-c", connections, "-n", &count, "--query", "SELECT 1 + 1", "--pipeline", &depth];
        let opened: u64 = connections.parse().unwrap();
        for (tls, prepared) in [(false, false), (false, true), (true, true)] {
            let url = server.url(if tls { "?sslmode=require" } else { "?sslmode=disable" });
            let how = if prepared { &["--prepared"][..] } else { &[] };
            // A login is a transaction too.
            let expected = statements + opened;
            let (run, counts) = counted(&server, &[&fixed[..], how, &[&url]].concat(), expected);
            assert_eq!(run.reported(), [format!("ok - {count}")], "{}", run.stderr);
            assert_eq!(counts, [statements, expected]);
            assert_eq!(run.total("connections_opened"), opened);
            // Each connection logs in once, and in its first requests: as many as it may have in flight.
            let first = opened * pipeline;
            let handshakes = if tls { first } else { 0 };
            assert_eq!((passed(&run, "tls"), passed(&run, "auth")), (handshakes, first));
            let used = if tls { "postgresql over TLS 1.3, server 1" } else { "postgresql, server 1" };
            assert!(protocol(&run).starts_with(used), "{}", protocol(&run));
        }
    }
    logins(&server, &certificates.path("ca.pem"));
    // Statements that differ in their values alone are one kind, as `watch` sees them.
    let queries = ["--query", "SELECT 1", "--query", "SELECT 22;", "--query", "SELECT now()"];
    let password = server.password_file();
    let run =
        drive(&[&["--password-file", &password, "-n", "90"][..], &queries, &[&server.url("")]].concat());
    assert_eq!(run.json["subject"]["targets"], serde_json::json!(["select ?", "select now()"]));
}

/// Each login method, each mode of TLS, a Unix domain socket, and the places where a password may be.
fn logins(server: &Postgres, ca: &str) {
    let password = server.password_file();
    let named = |mode: &str| format!("postgres://app@localhost:{}/app?sslmode={mode}", server.port);
    let (full, by_ca) = (named("verify-full"), server.url("?sslmode=verify-ca"));
    let (prefers, requires) = (server.url(""), server.url("?sslmode=require"));
    let by_socket = format!("postgres://app@/app?host={}&port={}", server.sockets(), server.port);
    let over_tls = "postgresql over TLS 1.3, server";
    for (arguments, used) in [
        (&[server.url_of("md5", "?sslmode=disable").as_str()][..], "postgresql, server"),
        (&[&server.url_of("cleartext", "?sslmode=require")], over_tls),
        (&[&server.url_of("plain", "?sslmode=disable")], "postgresql, server"),
        (&[&prefers], over_tls),
        // As libpq: with a CA bundle, the certificate is verified, and its name only with verify-full.
        (&["--cacert", ca, &requires], over_tls),
        (&["--cacert", ca, &by_ca], over_tls),
        (&["--cacert", ca, &full], over_tls),
        (&[&by_socket], "postgresql, server"),
    ] {
        let fixed = ["--password-file", &password, "-c", "2", "-n", "20", "--query", "SELECT 2"];
        let run = drive(&[&fixed[..], arguments].concat());
        assert_eq!(run.reported(), ["ok - 20"], "{arguments:?}: {:?} {}", run.reasons(), run.stderr);
        assert!(protocol(&run).starts_with(used), "{arguments:?}: {}", protocol(&run));
    }
}

/// If this fails, users see that statements failed, and have to guess why, or whose fault it was.
#[test]
fn each_failure_of_postgres_has_one_outcome_and_the_servers_words() {
    let _turn = turn::together();
    let (good, other) = (Certificates::until(2100), Certificates::until(2101));
    let server = Postgres::start(Some(&good));
    let password = server.password_file();
    let wrong = password.clone() + ".wrong";
    fs::write(&wrong, "wrong").unwrap();
    let plain = server.url("?sslmode=disable");
    let nowhere = plain.replace("/app?", "/nowhere?");
    // Its TLS was not required, so somebody between the two could have been part of it.
    let (cleartext, preferring) =
        (server.url_of("cleartext", "?sslmode=disable"), server.url_of("cleartext", ""));
    for (arguments, outcome, reason) in [
        (&["--password-file", &wrong, &plain][..], "auth_failed server", "28P01: password authentication"),
        (&["--password-file", &password, &nowhere], "auth_failed server", "3D000: database"),
        (&["--password-file", &password, &cleartext], "auth_failed server", "only over TLS"),
        (&["--password-file", &password, &preferring], "auth_failed server", "sslmode=require"),
        (&["--password-file", "/dev/null", &plain], "auth_failed server", "asks for a password"),
        (&["--password-file", &password, "--query", "SELEC 1", &plain], "app_error client", "42601: syntax"),
        (
            &["--password-file", &password, "--query", "SELEC 1", "--prepared", "--pipeline", "3", &plain],
            "app_error client",
            "42601: syntax",
        ),
    ] {
        check_failure(arguments, outcome, reason);
    }
    failures_of_statements(&server, &password);
    failures_of_tls(&server, &password, [&good, &other]);
    without_tls(&password);
    too_many_connections(&server, &password);
    closed_while_idle(&server, &password);
    let url = server.url("").replace("app@", &format!("app:{PASSWORD}@"));
    check_password_is_hidden(&url, &["--query", "SELECT 1"]);
}

/// What the server or this client says of statements that fail on a connection that has logged in.
fn failures_of_statements(server: &Postgres, password: &str) {
    let plain = server.url("?sslmode=disable");
    let slow = server.url_of("slow", "");
    let reader = server.url_of("reader", "");
    for (arguments, outcome, reason) in [
        (
            &["--password-file", password, "--query", "SELECT pg_sleep(5)", &slow][..],
            "app_error server",
            "57014: canceling statement due to statement timeout",
        ),
        (
            &["--password-file", password, "--query", "CREATE TABLE r (a int)", &reader],
            "app_error server",
            "25006: cannot execute CREATE TABLE in a read-only",
        ),
        (
            &["--password-file", password, "--query", "COPY pg_class FROM STDIN", &plain],
            "protocol_error server",
            "COPY FROM STDIN",
        ),
        (
            &["--password-file", password, "--max-body", "64KiB", "--query", LONG, &plain],
            "protocol_error server",
            "bytes of result",
        ),
        (
            &[
                "--password-file",
                password,
                "--query",
                "SELECT pg_terminate_backend(pg_backend_pid())",
                &plain,
            ],
            "app_error server",
            "57P01: terminating connection",
        ),
    ] {
        check_failure(arguments, outcome, reason);
    }
}

fn failures_of_tls(server: &Postgres, password: &str, [good, other]: [&Certificates; 2]) {
    let (full, by_ca) = (server.url("?sslmode=verify-full"), server.url("?sslmode=verify-ca"));
    let (ca, other_ca) = (good.path("ca.pem"), other.path("ca.pem"));
    for (arguments, outcome, reason) in [
        (
            &["--password-file", password, "--cacert", &other_ca, &by_ca][..],
            "tls_failed server",
            "certificate from an unknown issuer",
        ),
        (
            &["--password-file", password, "--cacert", &ca, &full],
            "tls_failed server",
            "certificate for another name",
        ),
    ] {
        check_failure(arguments, outcome, reason);
    }
}

/// Three statements end with this outcome, for this reason alone.
fn check_failure(arguments: &[&str], outcome: &str, reason: &str) {
    let query = if arguments.contains(&"--query") { &[][..] } else { &["--query", "SELECT 1"][..] };
    let run = drive(&[&["-n", "3", "-c", "1", "--keep-trying"][..], query, arguments].concat());
    assert_eq!(run.reported(), [format!("{outcome} 3")], "{arguments:?}: {:?}", run.reasons());
    let reasons = run.reasons();
    assert!(reasons.len() == 1 && reasons[0].contains(reason), "{reasons:?}");
    if outcome == "app_error client" {
        assert_eq!(run.text_codes(), ["42601 3"]);
    }
}

const LONG: &str = "SELECT repeat('x', 100000)";

fn without_tls(password: &str) {
    let server = Postgres::start(None);
    let fixed = ["--password-file", password, "-n", "3", "-c", "1", "--query", "SELECT 1", "--keep-trying"];
    let run = drive(&[&fixed[..], &[&server.url("?sslmode=require")]].concat());
    assert_eq!(run.reported(), ["tls_failed server 3"], "{:?}", run.reasons());
    assert!(run.reasons()[0].contains("does not offer TLS"), "{:?}", run.reasons());
    // Without TLS nothing was negotiated: all of the opening is the login.
    let run = drive(&[&fixed[..], &[&server.url("?sslmode=prefer")]].concat());
    assert_eq!(run.reported(), ["ok - 3"], "{:?}", run.reasons());
    assert_eq!((passed(&run, "tls"), passed(&run, "auth")), (0, 1));
}

fn too_many_connections(server: &Postgres, password: &str) {
    server.ask("ALTER ROLE plain NOSUPERUSER CONNECTION LIMIT 5");
    // Each connection is held for a while, so that five of them are open at once.
    let query = "SELECT pg_sleep(0.05)";
    let url = server.url_of("plain", "?sslmode=disable");
    let run = drive(&["--password-file", password, "-c", "20", "-n", "200", "--query", query, &url]);
    let (ok, refused) = (run.ended("ok"), run.ended("auth_failed"));
    assert!(ok >= 5 && refused >= 10 && ok + refused == 200, "{:?}", run.reported());
    let reasons = run.reasons();
    assert!(reasons.len() == 1 && reasons[0].contains("53300: too many connections"), "{reasons:?}");
}

/// A connection that the server closed because it was idle is opened again.
fn closed_while_idle(server: &Postgres, password: &str) {
    server.ask("ALTER ROLE app SET idle_session_timeout = '500ms'");
    let idle = ["--password-file", password, "-c", "1", "-r", "0.5/s", "-n", "2", "--query", "SELECT 1"];
    let run = drive(&[&idle[..], &[&server.url("")]].concat());
    server.ask("ALTER ROLE app RESET idle_session_timeout");
    assert_eq!(run.reported(), ["ok - 2"], "{:?}", run.reasons());
    assert_eq!(run.total("connections_opened"), 2);
}

#[test]
fn a_run_goes_on_when_postgres_is_back() {
    let _turn = turn::together();
    let mut server = Postgres::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    check_goes_on(&["--password-file", &password, "--query", "SELECT 1", "--prepared", &url], || {
        server.crash();
        server.start_again();
    });
}

/// If this fails, a transaction that was retried is done twice, or a conflict is hidden.
#[test]
fn conflicts_in_postgres_are_retried_and_each_transaction_is_done_once() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    let password = server.password_file();
    server.ask("CREATE TABLE t (id int PRIMARY KEY, k int NOT NULL); INSERT INTO t VALUES (1, 0), (2, 0)");
    let file = format!("{}/locks.toml", server.sockets());
    fs::write(&file, opposite_orders(&server.url(""))).unwrap();
    let run = drive(&["--password-file", &password, "-c", "8", "-n", "200", &file]);
    let sum = |field: &str| of_journeys(&run, field);
    assert_eq!((sum("started"), sum("completed"), sum("cut")), (200, 200, 0), "{:?}", run.reasons());
    let deadlocks = run.ended("app_error");
    assert!(deadlocks > 0, "there was no deadlock: {:?}", run.reported());
    assert_eq!(sum("retries"), deadlocks);
    assert_eq!(run.text_codes(), [format!("40P01 {deadlocks}")]);
    // The server's own account: each attempt begins once and ends once, and the changes of each transaction are there.
    let calls = ["BEGIN", "ROLLBACK", "COMMIT"].map(|statement| server.calls(statement));
    assert_eq!(calls, [200 + deadlocks, deadlocks, 200]);
    assert_eq!(server.ask("SELECT k FROM t").trim(), "200\n200");
    // A transaction keeps its connection: eight of them, and no statement waited for one but the first.
    assert_eq!(run.total("connections_opened"), 8);
    assert_eq!(passed(&run, "pool_wait"), 200);
    let file = format!("{}/snapshots.toml", server.sockets());
    fs::write(&file, snapshots(&server.url(""))).unwrap();
    let run = drive(&["--password-file", &password, "-c", "4", "-n", "50", &file]);
    let conflicts = run.ended("app_error");
    assert_eq!(of_journeys(&run, "completed"), 50, "{:?}", run.reasons());
    assert_eq!(run.text_codes(), [format!("40001 {conflicts}")]);
    assert_eq!(server.ask("SELECT k FROM t WHERE id = 1").trim(), "250");
}

/// Transactions that change the row that others have changed since their snapshot.
fn snapshots(url: &str) -> String {
    let step = |sql: &str, more: &str| format!("[[journey.step]]\nsql = \"{sql}\"\n{more}\n");
    let head = format!("[targets.db]\nurl = \"{url}\"\n[[journey]]\nname = \"count\"\nretries = 1000\n");
    head + &step("BEGIN ISOLATION LEVEL REPEATABLE READ", "")
        + &step("SELECT k FROM t WHERE id = 1", "think = \"1ms\"\ncapture.k = { column = \"k\" }")
        + &step("UPDATE t SET k = {{k|int}} + 1 WHERE id = 1", "think = \"1ms\"")
        + &step("COMMIT", "")
}

/// If this fails, one refused statement makes every later request on its connection fail, or part of a transaction that
/// nobody began.
#[test]
fn a_refused_transaction_is_not_left_to_the_next_request() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    let password = server.password_file();
    let refused = "BEGIN; SELECT 1 / 0; COMMIT";
    let run = drive(&[
        "--password-file",
        &password,
        "-c",
        "1",
        "-n",
        "20",
        "--query",
        refused,
        "--query",
        "SELECT 1",
        &server.url(""),
    ]);
    assert_eq!(run.ended("ok"), 10, "{:?}", run.reported());
    // Each of the refused ones is the last on its connection.
    assert_eq!(run.total("connections_opened"), 11);
}
