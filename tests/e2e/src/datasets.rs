//! The tables of built-in workloads: complete whatever interrupted their making, and nobody else's are touched.

use std::process::{Child, Command, Output, Stdio};

use units::Nanos;

use crate::support::mariadb::Mariadb;
use crate::support::postgres::Postgres;
use crate::support::run::drive;
use crate::support::{binary, turn, wait};

fn parallax(server: &Mariadb, arguments: &[&str]) -> Command {
    with_password(&server.password_file(), arguments)
}

fn with_password(file: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary::parallax());
    command.args(arguments).args(["--password-file", file]).stdin(Stdio::null());
    command
}

fn finished(mut command: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// What the server says about the contents of all tables.
fn contents(server: &Mariadb) -> String {
    server.ask("CHECKSUM TABLE app.sbtest1, app.sbtest2 EXTENDED; SELECT COUNT(*), MIN(id), MAX(id) FROM app.sbtest2")
}

fn begin(server: &Mariadb, arguments: &[&str]) -> Child {
    parallax(server, arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// If this fails, a workload runs on tables that are incomplete without a word, or takes an hour again after a kill.
#[test]
fn tables_that_were_interrupted_become_those_that_were_not() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    let url = server.url("");
    let prepare = ["prepare", &url, "--tables", "2", "--rows", "60500"];
    let (code, said, errors) = finished(parallax(&server, &prepare));
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(said, format!("2 tables of 60500 rows in {url}: 121000 rows added\n"));
    let whole = contents(&server);
    assert!(whole.ends_with("60500\t1\t60500\n"), "{whole}");
    let indexed = server.ask("SHOW INDEX FROM app.sbtest2 WHERE Column_name = 'k'");
    assert_eq!(indexed.lines().count(), 1, "{indexed}");

    // Killed in the middle, as often as it takes to see it there.
    finished(parallax(&server, &["clean", &url]));
    assert_eq!(server.ask("SHOW TABLES FROM app"), "");
    let mut killed = begin(&server, &prepare);
    let rows =
        || server.ask("SELECT SUM(TABLE_ROWS) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'app'");
    wait::until(Nanos::from_secs(30), || rows().trim().parse::<f64>().is_ok_and(|rows| rows > 5_000.0));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // And what a crash of the server may leave: a stripe without its end.
    server.ask("DELETE FROM app.sbtest1 WHERE id > 700");
    let (code, said, errors) = finished(parallax(&server, &prepare));
    assert_eq!(code, Some(0), "{errors}");
    assert!(said.contains(" rows added, ") && said.contains(" were there"), "{said}");
    assert_eq!(contents(&server), whole);
    // A hole is no end, and a copy of a table is somebody's own.
    server.ask("CREATE TABLE app.sbtest3 LIKE app.sbtest1; CREATE TABLE app.one AS SELECT * FROM app.sbtest2 WHERE id = 5");
    server.ask("DELETE FROM app.sbtest2 WHERE id = 5");
    let (code, _, errors) = finished(parallax(&server, &prepare));
    assert_eq!(code, Some(1));
    assert!(errors.contains("sbtest2 lacks 1 rows between 1 and 50000"), "{errors}");
    server.ask("INSERT INTO app.sbtest2 SELECT * FROM app.one; DROP TABLE app.one");
    let (_, said, _) = finished(parallax(&server, &prepare));
    assert!(said.ends_with(": 0 rows added, 121000 were there\n"), "{said}");

    let password = server.password_file();
    // One connection: transactions of two may deadlock.
    let load = ["--workload", "oltp-read-write", "--tables", "2", "--rows", "60500", "-n", "50", "-c", "1"];
    let run = drive(&[&load[..], &["--password-file", &password, &url]].concat());
    assert_eq!(run.ended("ok"), run.total("scheduled"), "{}", run.stderr);
    let (_, said, _) = finished(parallax(&server, &["clean", &url]));
    assert_eq!(said, format!("removed 2 tables from {url}: sbtest1, sbtest2\n"));
    assert_eq!(server.ask("SHOW TABLES FROM app"), "sbtest3\n");

    // Without autocommit, every row would be lost with its connection.
    server.ask("SET GLOBAL autocommit = 0");
    let (code, _, errors) = finished(parallax(&server, &["prepare", &url, "--rows", "10"]));
    assert_eq!(code, Some(1));
    assert!(errors.contains("set autocommit = 1"), "{errors}");
}

/// If this fails, somebody's table of a common name is filled with digits, or dropped.
#[test]
fn tables_of_others_are_left_alone() {
    let _turn = turn::together();
    let server = Mariadb::start(None);
    let url = server.url("");
    server.ask("CREATE TABLE app.sbtest2 (id INT) COMMENT = 'ours'; INSERT INTO app.sbtest2 VALUES (7)");
    let (code, _, errors) = finished(parallax(&server, &["prepare", &url, "--tables", "2", "--rows", "10"]));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("sbtest2 was not made by `parallax prepare`"), "{errors}");
    assert_eq!(
        server.ask("SHOW TABLES FROM app"),
        "sbtest2\n",
        "nothing is made before everything is looked at"
    );
    let (code, _, errors) = finished(parallax(&server, &["prepare", &url, "--rows", "10"]));
    assert_eq!(code, Some(0), "{errors}");
    let (code, _, errors) = finished(parallax(&server, &["prepare", &url, "--rows", "20"]));
    assert_eq!(code, Some(1), "{errors}");
    assert!(errors.contains("use --rows with its number"), "{errors}");
    let (code, said, _) = finished(parallax(&server, &["clean", &url]));
    assert_eq!((code, said), (Some(0), format!("removed 1 table from {url}: sbtest1\n")));
    assert_eq!(server.ask("SELECT id FROM app.sbtest2"), "7\n");
    let nowhere = format!("mysql://app@127.0.0.1:{}/nowhere", server.port);
    let (code, _, errors) = finished(parallax(&server, &["clean", &nowhere]));
    assert_eq!(code, Some(1));
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("Unknown database 'nowhere'"), "{errors}");
}

/// The same with PostgreSQL, whose tables have comments of their own.
#[test]
fn tables_of_postgres_are_made_resumed_and_removed() {
    let _turn = turn::together();
    let server = Postgres::start(None);
    let (url, password) = (server.url(""), server.password_file());
    let parallax = |arguments: &[&str]| finished(with_password(&password, arguments));
    let contents =
        || server.ask("SELECT count(*), md5(string_agg(t::text, ',' ORDER BY id)) FROM sbtest1 AS t");
    server.ask("CREATE TABLE sbtest3 (id INT)");
    let (code, _, errors) = parallax(&["prepare", &url, "--tables", "3", "--rows", "10"]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("sbtest3 was not made by `parallax prepare`"), "{errors}");
    let prepare = ["prepare", &url, "--tables", "2", "--rows", "2500"];
    let (code, said, errors) = parallax(&prepare);
    assert_eq!(
        (code, said),
        (Some(0), format!("2 tables of 2500 rows in {url}: 5000 rows added\n")),
        "{errors}"
    );
    let whole = contents();
    assert!(whole.starts_with("2500|"), "{whole}");
    server.ask("DELETE FROM sbtest1 WHERE id > 1234");
    let (_, said, errors) = parallax(&prepare);
    assert!(said.ends_with("1266 rows added, 3734 were there\n"), "{said}{errors}");
    assert_eq!(contents(), whole);
    let indexes = "SELECT count(*) FROM pg_indexes WHERE tablename = 'sbtest2' AND indexname = 'k_2'";
    assert_eq!(server.ask(indexes), "1\n");

    // One connection: transactions of two may deadlock.
    let load = ["--workload", "oltp-read-write", "--tables", "2", "--rows", "2500", "-n", "50", "-c", "1"];
    let run = drive(&[&load[..], &["--password-file", &password, &url]].concat());
    assert_eq!(run.ended("ok"), run.total("scheduled"), "{}", run.stderr);
    let (_, said, _) = parallax(&["clean", &url]);
    assert_eq!(said, format!("removed 2 tables from {url}: sbtest1, sbtest2\n"));
    assert_eq!(server.ask("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'sbtest%'"), "1\n");
}
