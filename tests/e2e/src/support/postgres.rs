//! PostgreSQL with a private directory and port, and its own counters. Stopped when dropped.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use units::Nanos;

use super::certificates::Certificates;
use super::databases::{PASSWORD, command};
use super::leash::Leash;
use super::{port, wait};

/// A server.
pub struct Postgres {
    process: Option<Leash>,
    settings: Vec<String>,
    programs: PathBuf,
    folder: TempDir,
    pub port: u16,
}

/// Who may log in, and how: the method is named like the user.
const METHODS: &str = "local all postgres trust
local all all scram-sha-256
host all md5 127.0.0.1/32 md5
host all cleartext 127.0.0.1/32 password
hostnossl all plain 127.0.0.1/32 scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
";

impl Postgres {
    /// Makes a database `app` and starts its server; with `certificates`, it offers TLS.
    pub fn start(certificates: Option<&Certificates>) -> Postgres {
        let (programs, folder, port) = (programs(), tempfile::tempdir().unwrap(), port::free());
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        own(folder.path());
        // It refuses to run as root: it runs as the user that its package created.
        let initdb = programs.join("initdb").to_str().unwrap().to_owned();
        let as_user = ["-u", "postgres", "--", &initdb, "--no-sync", "-A", "trust", "-D", &path("data")];
        command("runuser", &as_user);
        fs::write(path("data/pg_hba.conf"), METHODS).unwrap();
        let mut settings = vec![
            "listen_addresses=127.0.0.1".to_owned(),
            "fsync=off".to_owned(),
            "max_connections=100".to_owned(),
            // Long enough to be measured, short enough for a test.
            "deadlock_timeout=20ms".to_owned(),
            "shared_preload_libraries=pg_stat_statements".to_owned(),
        ];
        if let Some(certificates) = certificates {
            for name in ["server.pem", "server.key"] {
                fs::copy(certificates.path(name), path(name)).unwrap();
                fs::set_permissions(path(name), Permissions::from_mode(0o600)).unwrap();
                own(Path::new(&path(name)));
            }
            settings.push("ssl=on".to_owned());
            settings.push(format!("ssl_cert_file={}", path("server.pem")));
            settings.push(format!("ssl_key_file={}", path("server.key")));
        }
        let mut server = Postgres { process: None, settings, programs, folder, port };
        server.start_again();
        server.ask_in("postgres", "CREATE DATABASE app");
        server.ask_in("postgres", "CREATE EXTENSION pg_stat_statements");
        for user in ["app", "plain", "cleartext", "slow", "reader"] {
            server.ask(&format!("CREATE ROLE {user} SUPERUSER LOGIN PASSWORD '{PASSWORD}'"));
        }
        server.ask(&format!(
            "SET password_encryption = md5; CREATE ROLE md5 SUPERUSER LOGIN PASSWORD '{PASSWORD}'"
        ));
        server.ask("ALTER ROLE slow SET statement_timeout = '50ms'");
        server.ask("ALTER ROLE reader SET default_transaction_read_only = on");
        server
    }

    /// Starts the server, with the data that it had when it was stopped.
    pub fn start_again(&mut self) {
        let path = |name: &str| self.folder.path().join(name).to_str().unwrap().to_owned();
        let (server, port) = (self.programs.join("postgres"), self.port.to_string());
        let (data, sockets) = (path("data"), path(""));
        let mut whole = vec!["runuser", "-u", "postgres", "--", server.to_str().unwrap()];
        whole.extend(["-D", &data, "-p", &port, "-k", &sockets]);
        whole.extend(self.settings.iter().flat_map(|setting| ["-c", setting.as_str()]));
        let mut process = Leash::start(&whole, &self.folder.path().join("log"));
        process.wait_for(self.port);
        self.process = Some(process);
        // It listens a moment before it responds.
        let responds = || self.try_ask("postgres", "SELECT 1").is_some();
        assert!(wait::until(Nanos::from_secs(20), responds), "PostgreSQL does not respond");
    }

    /// Ends all its processes in the middle of their work, as a crash does.
    pub fn crash(&mut self) {
        let (data, control) = (self.folder.path().join("data"), self.programs.join("pg_ctl"));
        let (data, control) = (data.to_str().unwrap(), control.to_str().unwrap());
        command("runuser", &["-u", "postgres", "--", control, "-D", data, "-m", "immediate", "stop"]);
        self.process.take().unwrap().wait_for_end();
    }

    /// `postgres://app@127.0.0.1:PORT/app`, with `more` at its end.
    pub fn url(&self, more: &str) -> String {
        self.url_of("app", more)
    }

    pub fn url_of(&self, user: &str, more: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/app{more}", self.port)
    }

    /// The directory of its socket.
    pub fn sockets(&self) -> String {
        self.folder.path().to_str().unwrap().to_owned()
    }

    /// The file that `--password-file` takes.
    pub fn password_file(&self) -> String {
        let file = self.folder.path().join("password");
        fs::write(&file, format!("{PASSWORD}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Statements of its superuser in the database `app`, by way of the socket.
    pub fn ask(&self, statements: &str) -> String {
        self.ask_in("app", statements)
    }

    fn ask_in(&self, database: &str, statements: &str) -> String {
        self.try_ask(database, statements).unwrap_or_else(|| panic!("PostgreSQL refuses {statements}"))
    }

    fn try_ask(&self, database: &str, statements: &str) -> Option<String> {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-U", "postgres", "-At", "-p", &self.port.to_string(), "-d", database]);
        psql.args(["-h", &self.sockets(), "-c", statements]);
        let output = psql.output().unwrap_or_else(|error| panic!("psql: {error}: run scripts/setup test"));
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// The server's own count of the executions of the statements whose text is like `pattern`.
    pub fn calls(&self, pattern: &str) -> u64 {
        let query = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query LIKE";
        // From another database, so that it does not count there.
        self.ask_in("postgres", &format!("{query} '{pattern}'")).trim().parse().unwrap()
    }

    /// Transactions that were committed in the database `app`, as far as the server's processes have reported them:
    /// each does so when it ends.
    pub fn commits(&self) -> u64 {
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'app'";
        self.ask_in("postgres", query).trim().parse().unwrap()
    }
}

fn own(path: &Path) {
    let id = |what: &str| command("id", &[what, "postgres"]).trim().parse().ok();
    chown(path, id("-u"), id("-g")).unwrap();
}

/// Debian has a directory for each version.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|programs| programs.join("postgres").exists());
    found.sort();
    found.pop().expect("PostgreSQL is not here: run scripts/setup test")
}
