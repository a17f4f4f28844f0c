//! nginx: a master and a worker, an event loop, and files that are sent by the kernel.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{check_reconciled, require, run};
use crate::support::watched::Watching;
use crate::support::{binary, leash, port, quiet};
use testkit::leash::Leash;

#[test]
fn nginx_requests_are_all_counted() {
    let _together = quiet::together();
    let nginx = Nginx::start();
    let pid = fs::read_to_string(nginx.folder.path().join("nginx.pid")).unwrap();
    let watching = Watching::start(&["-p", pid.trim()]);
    let before = nginx.requests();
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let folder = nginx.folder.path().join("run");
    for (name, path, number) in [("small", "/small.txt", "40000"), ("large", "/large.bin", "200")] {
        let url = format!("{url}{path}");
        let record = folder.with_extension(name);
        let arguments = ["drive", "--quiet", "-c", "16", "-n", number, "-o", record.to_str().unwrap(), &url];
        drive(&arguments);
    }
    let counted = nginx.requests() - before;
    let watched = watching.finish();
    assert!(counted >= 40_200, "{counted}");
    // The first reading is in its own count; the second is seen and counted, too.
    check_reconciled("nginx", watched.results.requests, counted + 1, &watched.results);
    let small: u64 = watched
        .results
        .digests
        .iter()
        .filter(|digest| digest.text.contains("small"))
        .map(|one| one.count)
        .sum();
    assert_eq!(small, 40_000, "{:#?}", watched.results.digests);
}

/// Only the load matters, not how steady this host was: the run's verdict may be that it was not.
pub(super) fn drive(arguments: &[&str]) {
    let whole =
        [&["-c", r#""$@" || [ $? = 3 ]"#, "sh", binary::parallax().to_str().unwrap()], arguments].concat();
    run("sh", &whole);
}

struct Nginx {
    _process: Leash,
    folder: TempDir,
    port: u16,
}

impl Nginx {
    fn start() -> Nginx {
        require("nginx");
        let (folder, port) = (tempfile::tempdir().unwrap(), port::free());
        let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(path("small.txt"), "o".repeat(500)).unwrap();
        fs::write(path("large.bin"), "o".repeat(3_000_000)).unwrap();
        fs::write(path("nginx.conf"), configuration(&path(""), port)).unwrap();
        let (errors, file, prefix) = (path("error.log"), path("nginx.conf"), path(""));
        let command = ["nginx", "-e", &errors, "-p", &prefix, "-c", &file];
        let mut process = leash::start(&command, &folder.path().join("output.log"));
        process.wait_for(port);
        Nginx { _process: process, folder, port }
    }

    /// What it has counted so far, including the request that reads it.
    fn requests(&self) -> u64 {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.write_all(b"GET /status HTTP/1.1\r\nHost: nginx\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let line = text.lines().skip_while(|line| !line.starts_with("server accepts")).nth(1).unwrap();
        line.split_whitespace().nth(2).unwrap().parse().unwrap()
    }
}

fn configuration(folder: &str, port: u16) -> String {
    // The workers of root's nginx run as another user by default, who cannot access a temporary directory.
    let user = if geteuid().is_root() { "user root root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off; sendfile on; keepalive_requests 10000000;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port}; root {folder};
        location = /status {{ stub_status; }}
    }}
}}
"
    )
}
