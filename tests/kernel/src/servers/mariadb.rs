//! MariaDB, with one thread per connection and with its thread pool.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use record::Protocol;
use tempfile::TempDir;
use units::Nanos;

use super::{check_reconciled, require, run};
use crate::support::watched::Watching;
use crate::support::{leash, port, quiet, wait};
use testkit::leash::Leash;

#[test]
fn mariadb_questions_are_all_counted() {
    let _together = quiet::together();
    let data = Data::install();
    for handling in ["one-thread-per-connection", "pool-of-threads"] {
        let server = data.start(handling);
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

/// A database without data, for several servers one after the other.
struct Data {
    folder: TempDir,
}

struct Mariadb<'a> {
    _process: Leash,
    data: &'a Data,
    port: u16,
}

/// What it has counted so far, including the reading itself.
struct Counts {
    questions: u64,
    connections: u64,
}

impl Data {
    fn install() -> Data {
        for program in ["mariadbd", "mariadb-install-db", "mariadb", "mariadb-slap"] {
            require(program);
        }
        let folder = tempfile::tempdir().unwrap();
        let datadir = format!("--datadir={}", folder.path().display());
        let options =
            ["--no-defaults", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"];
        run("mariadb-install-db", &[&options[..], &[&datadir]].concat());
        Data { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn pid_file(&self, port: u16) -> PathBuf {
        self.folder.path().join(format!("pid-{port}"))
    }

    fn start(&self, handling: &str) -> Mariadb<'_> {
        let port = port::free();
        let options = [
            format!("--datadir={}", self.path("")),
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
    fn pid(&self) -> String {
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

    fn counts(&self) -> Counts {
        let socket = format!("--socket={}", self.data.path("socket"));
        let look = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Questions', 'Connections')";
        let output = run("mariadb", &["--no-defaults", "--user=root", &socket, "-N", "-B", "-e", look]);
        let text = String::from_utf8(output.stdout).unwrap();
        let number =
            |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap();
        Counts { questions: number("Questions"), connections: number("Connections") }
    }
}
