//! Redis with a private directory and ports, and its own counters. Stopped when dropped.

use tempfile::TempDir;

use super::certificates::Certificates;
use super::databases::{PASSWORD, command};
use super::leash::Leash;
use super::port;

/// A server.
pub struct Redis {
    process: Option<Leash>,
    options: Vec<String>,
    folder: TempDir,
    pub port: u16,
    /// With TLS, if it has certificates.
    pub tls_port: u16,
}

impl Redis {
    /// Starts a server that wants the password of the tests; with `certificates`, it has a port for TLS.
    pub fn start(certificates: Option<&Certificates>) -> Redis {
        let (folder, port, tls_port) = (tempfile::tempdir().unwrap(), port::free(), port::free());
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let mut options: Vec<String> = Vec::new();
        let mut add = |name: &str, value: &str| options.extend([format!("--{name}"), value.to_owned()]);
        add("port", &port.to_string());
        add("bind", "127.0.0.1");
        add("dir", &path(""));
        add("unixsocket", &path("socket"));
        add("requirepass", PASSWORD);
        add("save", "");
        if let Some(certificates) = certificates {
            add("tls-port", &tls_port.to_string());
            add("tls-cert-file", &certificates.path("server.pem"));
            add("tls-key-file", &certificates.path("server.key"));
            add("tls-ca-cert-file", &certificates.path("ca.pem"));
            add("tls-auth-clients", "no");
        }
        let mut server = Redis { process: None, options, folder, port, tls_port };
        server.start_again();
        server
    }

    /// Starts the server, which has forgotten its data.
    pub fn start_again(&mut self) {
        let mut whole = vec!["redis-server"];
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

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    pub fn socket(&self) -> String {
        self.folder.path().join("socket").to_str().unwrap().to_owned()
    }

    /// The file that `--password-file` takes.
    pub fn password_file(&self) -> String {
        let file = self.folder.path().join("password");
        std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A command, by way of the socket.
    pub fn ask(&self, words: &[&str]) -> String {
        let socket = self.socket();
        command("redis-cli", &[&["-s", &socket, "-a", PASSWORD, "--no-auth-warning"][..], words].concat())
    }

    /// How often the server has executed these commands.
    pub fn calls<const N: usize>(&self, names: [&str; N]) -> [u64; N] {
        let text = self.ask(&["INFO", "commandstats"]);
        names.map(|name| {
            let begin = format!("cmdstat_{name}:calls=");
            let line = text.lines().find_map(|line| line.strip_prefix(&begin));
            line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
        })
    }
}
