//! Debian's nginx with a separate configuration, and its access log as the other side of a run.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::leash::Leash;
use super::port;

pub struct Nginx {
    process: Leash,
    folder: TempDir,
    pub port: u16,
}

/// One request as nginx saw it.
#[derive(Debug)]
pub struct Seen {
    pub method: String,
    pub uri: String,
    pub status: u16,
    /// Bytes of the response, including header and framing.
    pub bytes_sent: u64,
    /// Bytes of the request, header and body.
    pub bytes_received: u64,
    /// The connection's number.
    pub connection: u64,
    /// When it was logged, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether it arrived before the response to its predecessor.
    pub pipelined: bool,
}

impl Nginx {
    /// One worker that keeps connections alive; `inside` is inserted into its server block.
    pub fn start(inside: &str) -> Nginx {
        assert!(Command::new("nginx").arg("-v").output().is_ok(), "no nginx here: run scripts/setup test");
        let folder = tempfile::tempdir().unwrap();
        let port = port::free();
        fs::create_dir(folder.path().join("www")).unwrap();
        fs::write(folder.path().join("nginx.conf"), configuration(folder.path(), port, inside)).unwrap();
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        let (errors, file) = (path("error.log"), path("nginx.conf"));
        let command = ["nginx", "-e", &errors, "-p", folder.path().to_str().unwrap(), "-c", &file];
        let mut process = Leash::start(&command, &folder.path().join("output.log"));
        process.wait_for(port);
        Nginx { process, folder, port }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The file that is served as `/name`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("www").join(name)
    }

    /// Waits until it has finished its requests, and reads everything that it logged.
    pub fn finish(mut self) -> Vec<Seen> {
        let pid = fs::read_to_string(self.folder.path().join("nginx.pid")).unwrap();
        kill_process(Pid::from_raw(pid.trim().parse().unwrap()).unwrap(), Signal::QUIT).unwrap();
        self.process.wait_for_end();
        self.seen()
    }

    /// Kills it in the middle of its work.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    fn seen(&self) -> Vec<Seen> {
        let log = fs::read_to_string(self.folder.path().join("access.log")).unwrap();
        log.lines().map(seen).collect()
    }
}

/// The body of `path` over HTTP/1.0, which has no chunks: everything up to the close.
pub fn fetch(port: u16, path: &str) -> Vec<u8> {
    try_fetch(port, path).unwrap()
}

/// The same of a server that may not respond yet.
pub fn try_fetch(port: u16, path: &str) -> io::Result<Vec<u8>> {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    Ok(answer.split_off(head.ok_or(io::ErrorKind::UnexpectedEof)? + 4))
}

/// Whether this host has the IPv6 loopback address.
pub fn has_ipv6() -> bool {
    let interfaces = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let has = interfaces.lines().any(|line| line.ends_with(" lo"));
    assert!(!has || TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok(), "[::1] is there and cannot be used");
    has
}

fn configuration(folder: &Path, port: u16, inside: &str) -> String {
    let folder = folder.display();
    // The workers of root's nginx run as another user by default, who cannot access a temporary directory.
    let user = if geteuid().is_root() { "user root root;" } else { "" };
    let ipv6 = if has_ipv6() { format!("listen [::1]:{port};") } else { String::new() };
    format!(
        "
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    log_format e2e '{LOG}';
    access_log {folder}/access.log e2e;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    client_max_body_size 64m;
    keepalive_timeout 75s;
    keepalive_requests 10000000;
    types {{ text/plain txt; application/octet-stream bin; }}
    default_type text/plain;
    server {{
        listen 127.0.0.1:{port};
        {ipv6}
        root {folder}/www;
        {inside}
    }}
}}
"
    )
}

const LOG: &str = "$request_method $request_uri $status $bytes_sent $request_length $connection $msec $pipe";

fn seen(line: &str) -> Seen {
    let fields: Vec<&str> = line.split(' ').collect();
    let [method, uri, status, sent, received, connection, at, pipe] = fields[..] else {
        panic!("not a line of the access log: {line}");
    };
    Seen {
        method: method.to_owned(),
        uri: uri.to_owned(),
        status: status.parse().unwrap(),
        bytes_sent: sent.parse().unwrap(),
        bytes_received: received.parse().unwrap(),
        connection: connection.parse().unwrap(),
        at_ms: at.replace('.', "").parse().unwrap(),
        pipelined: pipe == "p",
    }
}
