//! MariaDB: our counts are the server's own, and each way in which a statement can fail has its outcome.

use std::fs;

use units::Nanos;

use crate::secure::{passed, protocol};
use crate::support::certificates::Certificates;
use crate::support::databases::{
    PASSWORD, check_goes_on, check_password_is_hidden, of_journeys, opposite_orders,
};
use crate::support::mariadb::Mariadb;
use crate::support::run::{Run, drive, start};
use crate::support::{turn, wait};

const COUNTERS: [&str; 4] = ["Com_select", "Com_stmt_prepare", "Com_stmt_execute", "Questions"];

/// What the server counted for one run: selects, preparations, executions, questions.
fn counted(server: &Mariadb, arguments: &[&str]) -> (Run, [u64; 4]) {
    let password = server.password_file();
    // Reading the counters counts too.
    let [first, before] = [server.counters(COUNTERS), server.counters(COUNTERS)];
    let run = drive(&[&["--password-file", &password][..], arguments].concat());
    let after = server.counters(COUNTERS);
    let of_run = |at: usize| (after[at] - before[at]) - (before[at] - first[at]);
    (run, [of_run(0), of_run(1), of_run(2), of_run(3)])
}

/// If this fails, statements are lost or sent twice, or a report counts what the server did not do.
#[test]
fn counts_are_those_of_the_server() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let server = Mariadb::start(Some(&certificates));
    let ca = certificates.path("ca.pem");
    for (connections, statements) in [("1", 500), ("64", 3_000), ("512", 3_000)] {
        let count = statements.to_string();
        // On a busy machine, 512 logins take longer than the default.
        let patience = ["--connect-timeout", "60s", "--checkout-timeout", "60s"];
        let fixed = ["-c", connections, "-n", &count, "--query", "SELECT 1 + 1"];
        let fixed = [&fixed[..], &patience].concat();
        let opened: u64 = connections.parse().unwrap();
        for tls in [false, true] {
            let url = server.url(if tls { "?sslmode=require" } else { "" });
            let (run, counts) = counted(&server, &[&fixed[..], &[&url]].concat());
            assert_eq!(run.reported(), [format!("ok - {count}")], "{}", run.stderr);
            assert_eq!(counts, [statements, 0, 0, statements]);
            assert_eq!(run.total("connections_opened"), opened);
            // Each connection logs in once, and in its first request.
            let handshakes = if tls { opened } else { 0 };
            assert_eq!((passed(&run, "tls"), passed(&run, "auth")), (handshakes, opened));
            let used = if tls { "mysql over TLS 1.3, server 1" } else { "mysql, server 1" };
            assert!(protocol(&run).starts_with(used), "{}", protocol(&run));
        }
        let (run, [_, prepared, executed, _]) =
            counted(&server, &[&fixed[..], &["--prepared", &server.url("")]].concat());
        assert_eq!(run.reported(), [format!("ok - {count}")], "{}", run.stderr);
        assert_eq!((prepared, executed), (opened, statements));
    }
    // An open loop, TLS that is verified, a Unix domain socket, and another login method.
    let named = format!("mysql://app@localhost:{}/app", server.port);
    let by_socket = format!("mysql://ed@/app?socket={}", server.socket());
    for (arguments, used) in [
        (&["-r", "200/s", "-n", "200", "--cacert", &ca, &named][..], "mysql over TLS"),
        (&["-n", "200", &by_socket], "mysql, server"),
        (&["-n", "200", "--unix", &server.socket(), "mysql://ed@x/app"], "mysql, server"),
    ] {
        let (run, counts) = counted(&server, &[&["--query", "SELECT 2"][..], arguments].concat());
        assert_eq!(run.reported(), ["ok - 200"], "{arguments:?}: {}", run.stderr);
        assert_eq!(counts, [200, 0, 0, 200]);
        assert!(protocol(&run).starts_with(used), "{}", protocol(&run));
    }
    // Statements that differ in their values alone are one kind, as `watch` sees them.
    let (run, _) = counted(
        &server,
        &["-n", "90", "--query", "SELECT 1", "--query", "SELECT 22;", "--query", "DO 3", &server.url("")],
    );
    assert_eq!(run.json["subject"]["targets"], serde_json::json!(["select ?", "do ?"]));
    let of_kind = |at: usize| run.json["results"]["targets"][at]["requests"].as_u64();
    assert_eq!((of_kind(0), of_kind(1)), (Some(60), Some(30)));
}

/// If this fails, users see that statements failed, and have to guess why, or whose fault it was.
#[test]
fn each_failure_has_one_outcome_and_the_servers_words() {
    let _turn = turn::together();
    let (good, other) = (Certificates::until(2100), Certificates::until(2101));
    let server = Mariadb::start(Some(&good));
    let password = server.password_file();
    let wrong = server.socket() + ".wrong";
    fs::write(&wrong, "wrong").unwrap();
    let nowhere = format!("mysql://app@127.0.0.1:{}/nowhere", server.port);
    let verified = format!("mysql://app@localhost:{}/app?sslmode=verify-full", server.port);
    let other_ca = other.path("ca.pem");
    let long = "SELECT REPEAT('x', 100000)";
    let file = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t";
    for (arguments, outcome, reason) in [
        (
            &["--password-file", &wrong, &server.url("")][..],
            "auth_failed server",
            "1045 (28000): Access denied",
        ),
        (
            &["--password-file", &password, &nowhere],
            "auth_failed server",
            "1049 (42000): Unknown database 'nowhere'",
        ),
        (
            &["--password-file", &password, "--query", "SELEC 1", &server.url("")],
            "app_error client",
            "1064 (42000)",
        ),
        (
            &["--password-file", &password, "--query", file, &server.url("")],
            "app_error server",
            "4166 (HY000)",
        ),
        (
            &["--password-file", &password, "--max-body", "64KiB", "--query", long, &server.url("")],
            "protocol_error server",
            "bytes of result",
        ),
        (
            &["--password-file", &password, "--cacert", &other_ca, &verified],
            "tls_failed server",
            "certificate from an unknown issuer",
        ),
    ] {
        let query = if arguments.contains(&"--query") { &[][..] } else { &["--query", "SELECT 1"][..] };
        let run = drive(&[&["-n", "3", "-c", "1", "--keep-trying"][..], query, arguments].concat());
        assert_eq!(run.reported(), [format!("{outcome} 3")], "{arguments:?}: {}", run.stderr);
        let reasons = run.reasons();
        assert!(reasons.len() == 1 && reasons[0].contains(reason), "{reasons:?}");
        if outcome == "app_error client" {
            assert_eq!(run.text_codes(), ["42000/1064 3"]);
        }
    }
    let login = ["--password-file", &wrong, &server.url("")];
    stops_early(&login, "login at ");
    stops_early(&["--password-file", &password, "--cacert", &other_ca, &verified], "TLS handshake with ");
    too_many_connections(&server, &password);
    closed_by_the_server(&server, &password);
    let url = server.url("").replace("app@", &format!("app:{PASSWORD}@"));
    check_password_is_hidden(&url, &["--query", "SELECT 1"]);
}

/// A run of a minute that nothing lets in: it ends soon, with one line, unless asked to go on.
#[track_caller]
fn stops_early(arguments: &[&str], why: &str) {
    let load = ["-d", "60s", "-r", "50/s", "-c", "2", "--query", "SELECT 1"];
    let run = start(&[&load[..], arguments].concat()).finish();
    let said = format!("{}{}", run.stdout, run.stderr);
    let lines = said.lines().filter(|line| line.contains(why)).count();
    assert_eq!((run.code, lines), (Some(4), 1), "{said}");
    let elapsed = run.json["time"]["elapsed_ns"].as_u64().unwrap();
    assert!(elapsed < Nanos::from_secs(20).0, "{elapsed}");
}

fn too_many_connections(server: &Mariadb, password: &str) {
    server.ask("SET GLOBAL max_connections = 10");
    // Each connection is held for a while, so that ten of them are open at once.
    let query = "SELECT SLEEP(0.05)";
    let run =
        drive(&["--password-file", password, "-c", "20", "-n", "200", "--query", query, &server.url("")]);
    server.ask("SET GLOBAL max_connections = 600");
    let (ok, refused) = (run.ended("ok"), run.ended("auth_failed"));
    assert!(ok >= 10 && refused >= 10 && ok + refused == 200, "{:?}", run.reported());
    let reasons = run.reasons();
    assert!(reasons.len() == 1 && reasons[0].contains("1040"), "{reasons:?}");
}

fn closed_by_the_server(server: &Mariadb, password: &str) {
    let query = "SELECT SLEEP(30)";
    let running = start(&[
        "--json",
        "--quiet",
        "--password-file",
        password,
        "-c",
        "1",
        "-n",
        "1",
        "--query",
        query,
        &server.url(""),
    ]);
    let sleeping = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
    let id = || server.ask(sleeping).lines().next().map(str::to_owned);
    assert!(wait::until(Nanos::from_secs(20), || id().is_some()), "the statement does not begin");
    server.ask(&format!("KILL {}", id().unwrap()));
    let run = running.finish();
    // MariaDB ends the connection without a word.
    assert_eq!(run.reported(), ["closed_before_response server 1"], "{:?}", run.reasons());
    // A connection that the server closed because it was idle is opened again.
    server.ask("SET GLOBAL wait_timeout = 1");
    let idle = ["--password-file", password, "-c", "1", "-r", "0.5/s", "-n", "2", "--query", "SELECT 1"];
    let run = drive(&[&idle[..], &[&server.url("")]].concat());
    server.ask("SET GLOBAL wait_timeout = 28800");
    assert_eq!(run.reported(), ["ok - 2"], "{:?}", run.reasons());
    assert_eq!((run.total("connections_opened"), run.total("idle_closes")), (2, 1));
}

#[test]
fn a_run_goes_on_when_its_server_is_back() {
    let _turn = turn::together();
    let mut server = Mariadb::start(None);
    let (password, url) = (server.password_file(), server.url(""));
    check_goes_on(&["--password-file", &password, "--query", "SELECT 1", "--prepared", &url], || {
        server.kill();
        server.start_again();
    });
}

/// If this fails, a transaction that was retried is done twice, or a deadlock is hidden.
#[test]
fn deadlocks_are_retried_and_each_transaction_is_done_once() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    let password = server.password_file();
    server.ask(
        "CREATE TABLE app.t (id INT PRIMARY KEY, k INT NOT NULL); INSERT INTO app.t VALUES (1, 0), (2, 0)",
    );
    let file = server.socket() + ".toml";
    fs::write(&file, opposite_orders(&server.url(""))).unwrap();
    let names = ["Com_begin", "Com_commit", "Com_update", "Innodb_deadlocks"];
    let before = server.counters(names);
    let run = drive(&["--password-file", &password, "-c", "8", "-n", "200", &file]);
    let after = server.counters(names);
    let counted: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let sum = |field: &str| of_journeys(&run, field);
    assert_eq!((sum("started"), sum("completed"), sum("cut")), (200, 200, 0), "{:?}", run.reasons());
    let deadlocks = run.ended("app_error");
    assert!(deadlocks > 0, "there was no deadlock: {:?}", run.reported());
    assert_eq!((sum("retries"), counted[3]), (deadlocks, deadlocks));
    assert_eq!(run.text_codes(), [format!("40001/1213 {deadlocks}")]);
    // The server's own account: each attempt begins once, each transaction commits once, and its changes are there.
    assert_eq!((counted[0], counted[1]), (200 + deadlocks, 200));
    assert_eq!(server.ask("SELECT k FROM app.t").trim(), "200\n200");
    // A transaction keeps its connection: eight of them, and no statement waited for one but the first.
    assert_eq!(run.total("connections_opened"), 8);
    assert_eq!(passed(&run, "pool_wait"), 200);
}
