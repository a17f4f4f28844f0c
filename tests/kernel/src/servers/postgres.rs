//! PostgreSQL: one process per connection, simple and extended protocol, and statements by their digest.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::{check_all_counted, check_missed, require, run};
use crate::support::watched::{STARVED, Watching};
use crate::support::{leash, port, quiet};
use testkit::leash::Leash;

#[test]
fn postgres_statements_are_all_counted() {
    let _together = quiet::together();
    let postgres = Postgres::start();
    postgres.prepare();
    // Each of the four connections prepares once: a request for this statement that is not a call of it.
    for (mode, prepared) in [("simple", 0), ("extended", 0), ("prepared", 4), ("connecting", 0)] {
        postgres.ask("SELECT pg_stat_statements_reset()");
        let watching = Watching::start(&["--port", &postgres.port.to_string()]);
        let load = ["-n", "-S", "-c", "4"];
        let options =
            if mode == "connecting" { ["-C", "-t", "100"].as_slice() } else { &["-t", "2500", "-M", mode] };
        postgres.bench(&[&load[..], options].concat());
        let watched = watching.finish();
        let digests = watched.results.digests.iter().filter(|digest| digest.text.contains("abalance"));
        let seen = digests.map(|digest| digest.count).sum();
        check_all_counted(mode, seen, postgres.calls() + prepared, &watched.results);
    }
}

/// If this fails, statements whose events did not fit are not counted, or without saying how exactly.
#[test]
fn postgres_statements_that_were_missed_are_counted() {
    let _together = quiet::together();
    let postgres = Postgres::start();
    postgres.prepare();
    let port = postgres.port.to_string();
    let load =
        |transactions: &str| postgres.bench(&["-n", "-S", "-c", "4", "-M", "prepared", "-t", transactions]);
    let watching = Watching::start(&["--port", &port]);
    let before = postgres.calls();
    load("10");
    let others = watching.finish().results.requests - (postgres.calls() - before);
    let watching = Watching::start(&["--ring", "1", "--port", &port]);
    let before = postgres.calls();
    watching.starved_during(STARVED, || load("15000"));
    let watched = watching.finish();
    let counted = postgres.calls() - before + others;
    check_missed("prepared", watched.results.requests, counted, &watched.results);
}

const CALLS: &str =
    "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE 'SELECT abalance%'";

pub(super) struct Postgres {
    _process: Leash,
    folder: TempDir,
    pub(super) programs: PathBuf,
    pub(super) port: u16,
}

impl Postgres {
    pub(super) fn start() -> Postgres {
        Postgres::start_by(|command| command.iter().map(|word| (*word).to_owned()).collect())
    }

    /// It refuses to run as root: it runs as the user that its package created. `by` wraps its command.
    pub(super) fn start_by(by: impl Fn(&[&str]) -> Vec<String>) -> Postgres {
        for program in ["runuser", "psql"] {
            require(program);
        }
        let (programs, folder, port) = (programs(), tempfile::tempdir().unwrap(), port::free());
        let user = id("-u");
        chown(folder.path(), Some(user), Some(id("-g"))).unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let program = |name: &str| programs.join(name).to_str().unwrap().to_owned();
        let (initdb, data) = (program("initdb"), path("data"));
        run("runuser", &["-u", "postgres", "--", &initdb, "-D", &data, "-A", "trust", "--no-sync"]);
        let (server, number, sockets) = (program("postgres"), port.to_string(), path(""));
        let command =
            ["runuser", "-u", "postgres", "--", &server, "-D", &data, "-p", &number, "-k", &sockets];
        let settings =
            ["listen_addresses=127.0.0.1", "fsync=off", "shared_preload_libraries=pg_stat_statements"];
        let settings: Vec<&str> = settings.iter().flat_map(|setting| ["-c", setting]).collect();
        let whole = by(&[&command[..], &settings].concat());
        let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
        let mut process = leash::start(&whole, &folder.path().join("output.log"));
        process.wait_for(port);
        Postgres { _process: process, folder, programs, port }
    }

    pub(super) fn prepare(&self) {
        // It listens a moment before it responds.
        let ready = || self.try_ask("SELECT 1").is_some();
        assert!(
            crate::support::wait::until(units::Nanos::from_secs(20), ready),
            "PostgreSQL does not answer"
        );
        self.ask("CREATE EXTENSION pg_stat_statements");
        self.bench(&["-i", "-I", "dtgp"]);
    }

    pub(super) fn bench(&self, arguments: &[&str]) {
        let (program, port) = (self.programs.join("pgbench"), self.port.to_string());
        let whole = ["-U", "postgres", "-h", "127.0.0.1", "-p", &port];
        run(program.to_str().unwrap(), &[&whole[..], arguments, &["postgres"]].concat());
    }

    /// Its first process.
    pub(super) fn pid(&self) -> u32 {
        let text = fs::read_to_string(self.folder.path().join("data/postmaster.pid")).unwrap();
        text.lines().next().unwrap().trim().parse().unwrap()
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The statements of `pgbench -S` that it has executed so far.
    fn calls(&self) -> u64 {
        self.ask(CALLS).trim().parse().unwrap()
    }

    pub(super) fn ask(&self, statement: &str) -> String {
        self.try_ask(statement).unwrap_or_else(|| panic!("PostgreSQL refuses {statement}"))
    }

    fn try_ask(&self, statement: &str) -> Option<String> {
        let mut command = Command::new("psql");
        command.args(["-U", "postgres", "-At", "-p", &self.port.to_string(), "-c", statement, "-h"]);
        let output = command.arg(self.folder.path()).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }
}

/// Debian has a directory for each version.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|programs| programs.join("postgres").exists() && programs.join("pgbench").exists());
    found.sort();
    found.pop().expect("PostgreSQL is not here: run scripts/setup test")
}

pub(super) fn id(what: &str) -> u32 {
    let output = Command::new("id").args([what, "postgres"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim().parse().expect("there is no user postgres: run scripts/setup test")
}
