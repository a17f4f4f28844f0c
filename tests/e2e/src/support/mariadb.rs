//! MariaDB with a private directory and port, and its own counters. Stopped when dropped.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use tempfile::TempDir;

use super::certificates::Certificates;
use super::databases::{PASSWORD, command};
use super::leash::Leash;
use super::port;

/// A server.
pub struct Mariadb {
    process: Option<Leash>,
    options: Vec<String>,
    folder: TempDir,
    pub port: u16,
}

impl Mariadb {
    /// Makes a database `app` and starts its server; with `certificates`, it offers TLS.
    pub fn start(certificates: Option<&Certificates>) -> Mariadb {
        Mariadb::start_as(certificates, &[])
    }

    /// The same without TLS, with these options.
    pub fn start_with(more: &[&str]) -> Mariadb {
        Mariadb::start_as(None, more)
    }

    fn start_as(certificates: Option<&Certificates>, more: &[&str]) -> Mariadb {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let datadir = format!("--datadir={}", path("data"));
        // Two servers that are made at the same time would remove each other's temporary tables.
        let temporary = format!("--tmpdir={}", folder.path().display());
        let install = ["--no-defaults", "--user=root", "--auth-root-authentication-method=normal"];
        command("mariadb-install-db", &[&install[..], &["--skip-test-db", &datadir, &temporary]].concat());
        let port = port::free();
        let mut options = vec![
            datadir,
            temporary,
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
            format!("--bind-address={}", Ipv4Addr::LOCALHOST),
            format!("--port={port}"),
            // 151 unless it is set.
            "--max-connections=600".to_owned(),
            "--innodb-flush-log-at-trx-commit=0".to_owned(),
            "--plugin-load-add=auth_ed25519".to_owned(),
        ];
        options.extend(more.iter().map(|&option| option.to_owned()));
        if let Some(certificates) = certificates {
            options.push(format!("--ssl-cert={}", certificates.path("server.pem")));
            options.push(format!("--ssl-key={}", certificates.path("server.key")));
        }
        let mut server = Mariadb { process: None, options, folder, port };
        server.start_again();
        server.ask(&format!(
            "CREATE DATABASE app;
             CREATE USER app@'%' IDENTIFIED BY '{PASSWORD}';
             CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}');
             GRANT ALL ON *.* TO app@'%', ed@'%';"
        ));
        server
    }

    /// Starts the server, with the data that it had when it was killed.
    pub fn start_again(&mut self) {
        let mut whole = vec!["mariadbd", "--no-defaults", "--user=root"];
        whole.extend(self.options.iter().map(String::as_str));
        let mut process = Leash::start(&whole, &self.folder.path().join("log"));
        process.wait_for(self.port);
        self.process = Some(process);
    }

    /// Kills it in the middle of its work.
    pub fn kill(&mut self) {
        if let Some(process) = &mut self.process {
            process.kill();
        }
    }

    /// `mysql://app@127.0.0.1:PORT/app`, with `more` at its end.
    pub fn url(&self, more: &str) -> String {
        format!("mysql://app@127.0.0.1:{}/app{more}", self.port)
    }

    pub fn socket(&self) -> String {
        self.folder.path().join("socket").to_str().unwrap().to_owned()
    }

    /// The file that `--password-file` takes.
    pub fn password_file(&self) -> String {
        let file: PathBuf = self.folder.path().join("password");
        fs::write(&file, format!("{PASSWORD}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Statements of root, by way of the socket.
    pub fn ask(&self, statements: &str) -> String {
        let socket = format!("--socket={}", self.socket());
        command(
            "mariadb",
            &["--no-defaults", "--user=root", "--skip-ssl", &socket, "-N", "-B", "-e", statements],
        )
    }

    /// The server's counters of these names, read at once.
    pub fn counters<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let text = self.ask(&format!("SHOW GLOBAL STATUS WHERE Variable_name IN ('{}')", names.join("','")));
        let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
        names.map(|name| lines.iter().find(|(known, _)| *known == name).unwrap().1.trim().parse().unwrap())
    }
}
