//! MariaDB: text and prepared statements, several in one packet, a file from the client, and compression.

use std::fs;

use record::Protocol;

use super::super::mariadb::{CERTIFICATE, Data};
use super::super::run;
use super::{check_counted, statements, times};
use crate::support::quiet;
use crate::support::watched::{Watched, Watching};

#[test]
fn mariadb_statements_are_those_of_the_server_with_tls_and_without() {
    let _together = quiet::together();
    let data = Data::install();
    data.make_certificate();
    let secure = [("cert", CERTIFICATE[0]), ("key", CERTIFICATE[1]), ("ca", CERTIFICATE[2])];
    let mut options: Vec<String> =
        secure.map(|(what, name)| format!("--ssl-{what}={}", data.path(name))).into();
    options.push("--local-infile=1".to_owned());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let file = data.path("rows");
    let numbers: String = (0..times(20_000)).map(|n| format!("{n}\n")).collect();
    fs::write(&file, &numbers).unwrap();
    for (handling, is_secure) in
        [("one-thread-per-connection", true), ("pool-of-threads", true), ("one-thread-per-connection", false)]
    {
        let server = data.start(handling, &options);
        server.ask("CREATE OR REPLACE DATABASE sbtest");
        server.ask("CREATE TABLE sbtest.loaded (n int)");
        server.bench(&["--table-size=500", "prepare"]);
        let port = format!("--port={}", server.port);
        let tls = if is_secure { "--ssl" } else { "--skip-ssl" };
        let client = |more: &[&str]| {
            let whole = [
                "--no-defaults",
                "--user=root",
                "--host=127.0.0.1",
                &port,
                tls,
                "--local-infile=1",
                "sbtest",
            ];
            run("mariadb", &[&whole[..], more].concat());
        };
        let events = format!("--events={}", times(100));
        let mysql_ssl = if is_secure { "--mysql-ssl=on" } else { "--mysql-ssl=off" };
        let watching = Watching::start(&["-p", &server.pid(), "--tls"]);
        let before = server.counts();
        for mode in ["--db-ps-mode=disable", "--db-ps-mode=auto"] {
            server.bench(&["--table-size=500", &events, mode, mysql_ssl, "run"]);
        }
        client(&["--delimiter=//", "-e", "select 1; select 2; delete from loaded//"]);
        client(&["-e", &format!("load data local infile '{file}' into table loaded")]);
        client(&["--compress", "-e", "select 'compressed'"]);
        let after = server.counts();
        let watched = watching.finish();
        // As in `mariadb_questions_are_all_counted`.
        let counted = (after.questions - before.questions) - (after.connections - before.connections) - 1;
        let what = format!("{handling}, {tls}");
        check(&what, &watched, server.port, counted, numbers.len() as u64);
    }
}

/// `size` is that of the file which was loaded.
fn check(what: &str, watched: &Watched, port: u16, counted: u64, size: u64) {
    let requests = watched.named(port);
    check_counted(what, requests.iter().map(|(one, _)| u64::from(one.statements)).sum(), counted, watched);
    // Of each mode, and each event: ten by their key.
    assert_eq!(statements(&requests, "select c from sbtest1 where id = ?"), 2 * 10 * times(100), "{what}");
    assert_eq!(statements(&requests, "select ?; select ?; delete from loaded"), 3, "{what}");
    assert_eq!(statements(&requests, "turn, compressed"), 1, "{what}");
    let (turns, known): (Vec<_>, Vec<_>) = requests.iter().partition(|(_, text)| *text == "turn, compressed");
    assert!(turns.iter().all(|(one, _)| one.protocol == Protocol::Turns), "{what}");
    assert!(
        known.iter().all(|(one, _)| one.protocol == Protocol::Mysql),
        "{what}: {:?}",
        watched.results.subject.protocols
    );
    let loads: Vec<u64> = known
        .iter()
        .filter(|(_, text)| text.starts_with("load data"))
        .map(|(one, _)| one.request_bytes)
        .collect();
    // The file, four bytes for each packet, and the statement.
    let [bytes] = loads[..] else { panic!("{what}: {loads:?}") };
    assert!((size..size + size / 100 + 200).contains(&bytes), "{what}: {bytes} of {size}");
}
