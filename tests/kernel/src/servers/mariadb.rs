//! MariaDB, with one thread per connection and with its thread pool.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use record::Protocol;
use tempfile::TempDir;
use units::Nanos;

use super::{check_all_counted, check_missed, check_reconciled, require, run};
use crate::support::watched::{STARVED, Watched, Watching};
use crate::support::{leash, port, quiet, wait};
use testkit::leash::Leash;

#[test]
fn mariadb_questions_are_all_counted() {
    let _together = quiet::together();
    let data = Data::install();
    for handling in ["one-thread-per-connection", "pool-of-threads"] {
        let server = data.start(handling, &[]);
        let watching = Watching::start(&["-p", &server.pid()]);
        let before = server.counts();
        server.load(20_000);
        let after = server.counts();
        let watched = watching.finish();
        // The end of a connection counts as a question too, and has no response. Between the readings are the end of
        // the first reading's connection, the load, and the second one's, which has begun and not ended.
        let counted = (after.questions - before.questions) - (after.connections - before.connections) - 1;
        assert!(counted >= 20_000, "{counted}");
        // The readings use the socket of the local host.
        let of_load = |one: &&record::Served| one.local.is_some_and(|local| local.port() == server.port);
        let seen = watched.served.iter().filter(of_load).count();
        check_reconciled(handling, seen as u64, counted, &watched.results);
        let is_mysql = watched.served.iter().filter(of_load).all(|one| one.protocol == Protocol::Mysql);
        assert!(is_mysql, "{handling}: {:?}", watched.results.subject.protocols);
    }
}

#[test]
fn mariadb_statements_of_sysbench_are_all_counted() {
    let _together = quiet::together();
    require("sysbench");
    let data = Data::install();
    let server = data.start("one-thread-per-connection", &[]);
    server.prepare_bench();
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        let watching = Watching::start(&["--port", &server.port.to_string()]);
        let counted =
            server.statements_of(|| server.bench(&["--table-size=500", "--events=800", mode, "run"]));
        let watched = watching.finish();
        check_all_counted(mode, server.seen_of_load(&watched), counted, &watched.results);
    }
}

/// If this fails, statements whose events did not fit are not counted, or without saying how exactly.
#[test]
fn mariadb_statements_that_were_missed_are_counted() {
    let _together = quiet::together();
    require("sysbench");
    let data = Data::install();
    let server = data.start("one-thread-per-connection", &[]);
    server.prepare_bench();
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        let watching = Watching::start(&["--ring", "1", "--port", &server.port.to_string()]);
        let load = || server.bench(&["--table-size=500", "--events=2500", mode, "run"]);
        let counted = server.statements_of(|| watching.starved_during(STARVED, load));
        let watched = watching.finish();
        check_missed(mode, server.seen_of_load(&watched), counted, &watched.results);
    }
}

/// If this fails, a response from the query cache is not a hit, or a statement that the cache was not asked for is a
/// miss. Both protocols, with TLS and without.
#[test]
fn mariadb_query_cache_hits_and_misses_are_those_of_the_server() {
    let _together = quiet::together();
    require("sysbench");
    let data = Data::install();
    data.make_certificate();
    let secure = [("cert", CERTIFICATE[0]), ("key", CERTIFICATE[1]), ("ca", CERTIFICATE[2])];
    let secure = secure.map(|(what, name)| format!("--ssl-{what}={}", data.path(name)));
    let mut options = vec!["--query-cache-type=1", "--query-cache-size=32M"];
    options.extend(secure.iter().map(String::as_str));
    for handling in ["one-thread-per-connection", "pool-of-threads"] {
        let server = data.start(handling, &options);
        server.prepare_bench();
        for (mode, is_secure, others) in [
            // BEGIN and COMMIT of 300 transactions are no questions to the cache.
            (&["--db-ps-mode=disable"][..], false, 600),
            (&["--db-ps-mode=auto"], false, 600),
            (&["--db-ps-mode=disable", "--mysql-ssl=on", "--skip-trx=on"], true, 0),
            (&["--db-ps-mode=auto", "--mysql-ssl=on", "--skip-trx=on"], true, 0),
        ] {
            server.ask("RESET QUERY CACHE");
            let watching = Watching::start(&["-p", &server.pid(), "--class", "mariadb-query-cache"]);
            let before = server.cache();
            server.bench(&[&["--table-size=500", "--events=300"], mode, &["run"]].concat());
            let after = server.cache();
            let watched = watching.finish();
            let of_load = |one: &&record::Served| one.local.is_some_and(|local| local.port() == server.port);
            let seen =
                |class| watched.served.iter().filter(of_load).filter(|one| one.class == class).count() as u64;
            let what = format!("{handling} {mode:?}: {:?}", watched.results.losses);
            let [hits, misses] = [after[0] - before[0], after[1] + after[2] - before[1] - before[2]];
            assert!(hits > 1_000 && misses > 100, "{what}: {hits}, {misses}");
            assert_eq!((seen(Some(1)), seen(Some(0))), (hits, misses), "{what}");
            // Besides these, logins and, of prepared statements, their preparation; the readings are on a Unix socket.
            let rest = seen(None);
            assert!((others..others + 60).contains(&rest), "{what}: {rest}");
            let is_mysql = watched.served.iter().filter(of_load).any(|one| one.protocol == Protocol::Mysql);
            assert!(is_mysql != is_secure, "{what}");
            let rows: Vec<&str> = watched.results.classes.iter().map(|class| class.class.as_str()).collect();
            assert_eq!(rows, ["not classified", "miss", "hit"], "{what}");
        }
    }
}

/// The names by which sysbench finds them in its directory.
pub(super) const CERTIFICATE: [&str; 3] = ["client-cert.pem", "client-key.pem", "cacert.pem"];

/// A database without data, for several servers one after the other.
pub(super) struct Data {
    folder: TempDir,
    /// A server removes what others have of temporary tables in the folder that they share by default.
    temporary: TempDir,
}

pub(super) struct Mariadb<'a> {
    _process: Leash,
    data: &'a Data,
    pub(super) port: u16,
}

/// What it has counted so far, including the reading itself.
pub(super) struct Counts {
    pub(super) questions: u64,
    pub(super) connections: u64,
}

impl Data {
    pub(super) fn install() -> Data {
        for program in ["mariadbd", "mariadb-install-db", "mariadb", "mariadb-slap"] {
            require(program);
        }
        let folder = tempfile::tempdir().unwrap();
        let datadir = format!("--datadir={}", folder.path().display());
        let options =
            ["--no-defaults", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"];
        let data = Data { folder, temporary: tempfile::tempdir().unwrap() };
        run("mariadb-install-db", &[&options[..], &[&datadir, &data.temporary_option()]].concat());
        data
    }

    /// One that trusts itself, for the server and its clients.
    pub(super) fn make_certificate(&self) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let [certificate, key, authority] = CERTIFICATE.map(|name| self.path(name));
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::copy(&certificate, &authority).unwrap();
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn temporary_option(&self) -> String {
        format!("--tmpdir={}", self.temporary.path().display())
    }

    fn pid_file(&self, port: u16) -> PathBuf {
        self.folder.path().join(format!("pid-{port}"))
    }

    pub(super) fn start(&self, handling: &str, more: &[&str]) -> Mariadb<'_> {
        let port = port::free();
        let options = [
            format!("--datadir={}", self.path("")),
            self.temporary_option(),
            format!("--socket={}", self.path("socket")),
            // One file per server: a server that was killed leaves its file behind.
            format!("--pid-file={}", self.pid_file(port).display()),
            format!("--bind-address={}", Ipv4Addr::LOCALHOST),
            format!("--port={port}"),
            format!("--thread-handling={handling}"),
        ];
        let mut command =
            vec!["mariadbd", "--no-defaults", "--user=root", "--innodb-flush-log-at-trx-commit=0"];
        command.extend(options.iter().map(String::as_str));
        command.extend(more);
        let mut process = leash::start(&command, self.folder.path().join("output.log").as_path());
        process.wait_for(port);
        // It listens before it writes its pid file.
        let pid = self.pid_file(port);
        let is_there = || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'));
        assert!(wait::until(Nanos::from_secs(30), is_there), "no {}", pid.display());
        Mariadb { _process: process, data: self, port }
    }
}

impl Mariadb<'_> {
    pub(super) fn pid(&self) -> String {
        fs::read_to_string(self.data.pid_file(self.port)).unwrap().trim().to_owned()
    }

    fn load(&self, queries: u64) {
        let (port, number) = (format!("--port={}", self.port), format!("--number-of-queries={queries}"));
        let options =
            ["--no-defaults", "--user=root", "--host=127.0.0.1", "--create-schema=mysql", "--no-drop"];
        let load = [&port, "--concurrency=8", &number, "--query=SELECT 1"];
        let message = run("mariadb-slap", &[&options[..], &load].concat());
        let message = String::from_utf8_lossy(&message.stderr).into_owned();
        assert!(!message.contains("Error"), "{message}");
    }

    pub(super) fn counts(&self) -> Counts {
        let [questions, connections] = self.numbers(["Questions", "Connections"]);
        Counts { questions, connections }
    }

    fn prepare_bench(&self) {
        self.ask("CREATE DATABASE IF NOT EXISTS sbtest");
        self.bench(&["--table-size=500", "prepare"]);
    }

    /// The requests with a response that the server counts during `load`: questions, without the ends of connections,
    /// and preparations.
    fn statements_of(&self, load: impl FnOnce()) -> u64 {
        let names = ["Questions", "Connections", "Com_stmt_prepare"];
        let before = self.numbers(names);
        load();
        let [questions, connections, prepared] = self.numbers(names);
        // As in `mariadb_questions_are_all_counted`.
        questions - before[0] - (connections - before[1]) - 1 + prepared - before[2]
    }

    /// The requests of the load; the readings use the socket of the local host.
    fn seen_of_load(&self, watched: &Watched) -> u64 {
        let of_load = |one: &&record::Served| one.local.is_some_and(|local| local.port() == self.port);
        watched.served.iter().filter(of_load).count() as u64
    }

    /// Hits of the query cache, and what it did not have: what it kept then, and what it must not keep.
    fn cache(&self) -> [u64; 3] {
        self.numbers(["Qcache_hits", "Qcache_inserts", "Qcache_not_cached"])
    }

    /// The server's variables of these names, read at once.
    fn numbers<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let text = self.ask(&format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("','")));
        names.map(|name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap())
    }

    /// One statement, by way of the socket of the local host.
    pub(super) fn ask(&self, statement: &str) -> String {
        let socket = format!("--socket={}", self.data.path("socket"));
        let output = run(
            "mariadb",
            &["--no-defaults", "--user=root", "--skip-ssl", &socket, "-N", "-B", "-e", statement],
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs sysbench where it finds its certificate.
    pub(super) fn bench(&self, options: &[&str]) {
        self.bench_of("oltp_read_only", options);
    }

    pub(super) fn bench_of(&self, test: &str, options: &[&str]) {
        let port = format!("--mysql-port={}", self.port);
        let server = [test, "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-user=root", &port];
        let mut line = vec!["-C", self.data.folder.path().to_str().unwrap(), "sysbench"];
        line.extend(server.into_iter().chain(["--threads=4", "--time=0"]).chain(options.iter().copied()));
        run("env", &line);
    }
}
