//! nginx: a master and a worker, an event loop, and files that are sent by the kernel.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{check_all_counted, check_missed, check_reconciled, require, run};
use crate::support::watched::{STARVED, Watching};
use crate::support::{binary, leash, port, quiet, wait};
use testkit::leash::Leash;
use units::Nanos;

#[test]
fn nginx_requests_are_all_counted() {
    let _together = quiet::together();
    let nginx = Nginx::start();
    // It listens before it writes this.
    let pid = || fs::read_to_string(nginx.folder.path().join("nginx.pid")).unwrap_or_default();
    wait::until(Nanos::from_secs(30), || pid().ends_with('\n'));
    let pid = pid();
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

/// Each request on a separate connection, and many on each.
#[test]
fn nginx_requests_of_ab_are_all_counted() {
    let _together = quiet::together();
    let nginx = Nginx::start();
    for options in [&["-n", "20000"][..], &["-k", "-n", "40000"]] {
        let watching = Watching::start(&["--port", &nginx.port.to_string()]);
        let before = nginx.requests();
        nginx.bench(options);
        let counted = nginx.requests() - before;
        let watched = watching.finish();
        check_all_counted(&options.concat(), watched.results.requests, counted + 1, &watched.results);
    }
}

/// If this fails, requests whose events did not fit are not counted, or without saying how exactly.
#[test]
fn nginx_requests_that_were_missed_are_counted() {
    let _together = quiet::together();
    let nginx = Nginx::start();
    let watching = Watching::start(&["--ring", "1", "--port", &nginx.port.to_string()]);
    let before = nginx.requests();
    watching.starved_during(STARVED, || nginx.bench(&["-k", "-n", "100000"]));
    let counted = nginx.requests() - before + 1;
    let watched = watching.finish();
    check_missed("nginx", watched.results.requests, counted, &watched.results);
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

    fn bench(&self, options: &[&str]) {
        require("ab");
        let url = format!("http://127.0.0.1:{}/small.txt", self.port);
        run("ab", &[&["-q", "-c", "32"], options, &[&url]].concat());
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
