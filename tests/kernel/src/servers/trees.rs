//! `parallax cpu PID` on servers with several processes: what the tree used is what the account of a control group
//! contains that has only the server in it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use units::Nanos;

use super::nginx::drive;
use super::postgres::Postgres;
use super::require;
use crate::support::accounted::Accounted;
use crate::support::{binary, leash, port, quiet, wait};
use testkit::leash::Leash;

/// A burst of requests, each of which costs the server milliseconds.
fn requests(port: u16, path: &str, count: u32, header: &str) {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let (url, count) = (format!("http://127.0.0.1:{port}{path}"), count.to_string());
    let record = record.to_str().unwrap();
    drive(&["drive", "--quiet", "-c", "4", "-n", &count, "-H", header, "-o", record, &url]);
}

#[test]
fn nginx_with_two_workers_uses_what_its_control_group_used() {
    let group = Accounted::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let port = port::free();
    require("nginx");
    let numbers: Vec<String> = (0..120_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    fs::write(path("large.txt"), numbers.join(" ")).unwrap();
    fs::write(path("nginx.conf"), nginx(&path(""), port)).unwrap();
    let (errors, file, prefix) = (path("error.log"), path("nginx.conf"), path(""));
    let command = group.command(&["nginx", "-e", &errors, "-p", &prefix, "-c", &file]);
    let _server = started(&command, &folder, port);
    let pid = number(&folder.path().join("nginx.pid"));
    check("nginx", &group, pid, || requests(port, "/large.txt", 40, "Accept-Encoding: gzip"));
}

/// Each connection is a process. With `-C` each transaction has its own, which ends before it can be looked at.
#[test]
fn postgres_under_pgbench_uses_what_its_control_group_used() {
    let group = Accounted::new();
    let postgres = Postgres::start_by(|command| group.command(command));
    postgres.prepare();
    let pid = postgres.pid();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("burn.sql");
    fs::write(&script, "SELECT sum(n) FROM generate_series(1, 40000) AS n;\n").unwrap();
    let script = script.to_str().unwrap();
    check("pgbench", &group, pid, || postgres.bench(&["-n", "-f", script, "-c", "4", "-t", "60"]));
    check("pgbench -C", &group, pid, || postgres.bench(&["-n", "-C", "-f", script, "-c", "4", "-t", "60"]));
}

/// Workers end after 50 requests each, and others begin.
#[test]
fn uwsgi_uses_what_its_control_group_used() {
    require("uwsgi");
    let group = Accounted::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let port = port::free();
    fs::write(path("burn.py"), PYTHON).unwrap();
    let (socket, python, pids) = (format!("127.0.0.1:{port}"), path("burn.py"), path("pid"));
    let arguments = ["uwsgi", "--plugins", "http,python3", "--http-socket", &socket, "--wsgi-file", &python];
    let more = ["--master", "--processes", "2", "--max-requests", "50", "--pidfile", &pids, "--die-on-term"];
    let whole = [&arguments[..], &more].concat();
    let _server = started(&group.command(&whole), &folder, port);
    let pid = number(&folder.path().join("pid"));
    check("uwsgi", &group, pid, || requests(port, "/", 300, "Connection: close"));
}

#[test]
fn a_cluster_of_node_uses_what_its_control_group_used() {
    require("node");
    let group = Accounted::new();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("cluster.js");
    let port = port::free();
    fs::write(&script, NODE).unwrap();
    let (file, pids, number_text) = (script.to_str().unwrap(), folder.path().join("pid"), port.to_string());
    let whole = ["node", file, &number_text, pids.to_str().unwrap()];
    let _server = started(&group.command(&whole), &folder, port);
    check("node", &group, number(&pids), || requests(port, "/", 300, "Accept: */*"));

    // The load generator's own account of the same server.
    let _alone = quiet::alone();
    rest(&group);
    let before = group.used();
    let record = folder.path().join("run");
    let (url, pid) = (format!("http://127.0.0.1:{port}/"), number(&pids).to_string());
    let place = record.to_str().unwrap();
    drive(&["drive", "--quiet", "-c", "4", "-n", "200", "--watch-cpu", &pid, "-o", place, &url]);
    rest(&group);
    let used = (group.used() - before).0;
    let run: Value = serde_json::from_slice(&fs::read(record.join("run.json")).unwrap()).unwrap();
    let of_run = run["results"]["cpu"]["server_ns"].as_u64().unwrap();
    println!("node: {of_run} ns by drive, {used} by the control group");
    assert!(used > 1_000_000_000 && of_run.abs_diff(used) * 100 <= used, "{of_run} of {used}");
}

/// A parent that ignores SIGCHLD, and a grandchild whose parent ends at once: nobody gets the account of these, and
/// most end before they can be looked at. If this fails, a server that forks for each request seems to use nothing.
#[test]
fn children_that_nobody_waits_for_are_seen_by_ebpf_and_named_without() {
    let group = Accounted::new();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("forks.py");
    let port = port::free();
    fs::write(&script, FORKS).unwrap();
    let (file, pids, port_text) = (script.to_str().unwrap(), folder.path().join("pid"), port.to_string());
    let _server =
        started(&group.command(&["python3", file, &port_text, pids.to_str().unwrap()]), &folder, port);
    let pid = number(&pids).to_string();
    let _alone = quiet::alone();
    rest(&group);
    let before = group.used();
    let seen = Measuring::start_with("ebpf", &["-p", &pid]);
    let unseen = Measuring::start(&["-p", &pid]);
    for _ in 0..20 {
        requests(port, "/", 100, "Connection: close");
        if group.used() - before > Nanos::from_millis(1_200) {
            break;
        }
    }
    rest(&group);
    let (seen, unseen) = (seen.finish(), unseen.finish());
    let used = group.used() - before;
    let [of_seen, of_unseen] = [&seen, &unseen].map(|record| record["used"]["run_ns"].as_u64().unwrap());
    println!("{of_seen} ns by eBPF, {of_unseen} without, {} by the control group", used.0);
    assert!(of_seen.abs_diff(used.0) * 100 <= used.0, "{of_seen} of {}: {seen:#}", used.0);
    assert!(of_unseen * 2 < used.0, "the children are waited for: {of_unseen} of {}", used.0);
    assert_eq!((seen["discarding"].as_str(), unseen["discarding"].as_str()), (None, Some("python3")));
}

const FORKS: &str = "
import os, signal, socket, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = socket.create_server(('127.0.0.1', int(sys.argv[1])), backlog=64)
with open(sys.argv[2], 'w') as file:
    file.write(str(os.getpid()))
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
while True:
    connection, _ = server.accept()
    if os.fork() == 0:
        if os.fork() == 0:
            burn(0.01)
            os._exit(0)
        burn(0.005)
        connection.recv(4096)
        connection.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nok')
        os._exit(0)
    connection.close()
";

const PYTHON: &str = "
import time
def application(environ, start_response):
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass
    start_response('200 OK', [('Content-Type', 'text/plain'), ('Content-Length', '2')])
    return [b'ok']
";

const NODE: &str = "
const cluster = require('cluster'), http = require('http'), fs = require('fs');
if (cluster.isPrimary) {
  fs.writeFileSync(process.argv[3], String(process.pid));
  for (let n = 0; n < 2; n++) cluster.fork();
} else {
  http.createServer((request, response) => {
    const begin = process.cpuUsage();
    const used = () => { const { user, system } = process.cpuUsage(begin); return user + system; };
    while (used() < 10000);
    response.end('ok');
  }).listen(Number(process.argv[2]), '127.0.0.1');
}
";

fn nginx(folder: &str, port: u16) -> String {
    format!(
        "user root root; daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
    access_log off; gzip on; gzip_comp_level 9; gzip_types text/plain; types {{ text/plain txt; }}
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} reuseport; root {folder}; }}
}}
"
    )
}

fn started(command: &[String], folder: &TempDir, port: u16) -> Leash {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let mut server = leash::start(&command, &folder.path().join("output.log"));
    server.wait_for(port);
    server
}

fn number(file: &Path) -> u32 {
    let read = || fs::read_to_string(file).ok()?.trim().parse::<u32>().ok();
    assert!(wait::until(Nanos::from_secs(20), || read().is_some()), "{} has no number", file.display());
    read().unwrap()
}

/// The server is idle at both ends, so the two accounts cover the same time. They differ by at most the printed error
/// and a hundredth: the kernel closes the account of a process that ends some 10 us before its last switch.
#[track_caller]
fn check(what: &str, group: &Accounted, pid: u32, load: impl Fn()) {
    let _alone = quiet::alone();
    rest(group);
    let before = group.used();
    let (tree, own) =
        (Measuring::start(&["-p", &pid.to_string()]), Measuring::start(&["--cgroup", group.path()]));
    // As often as the machine's speed requires.
    for _ in 0..20 {
        load();
        if group.used() - before > Nanos::from_millis(1_200) {
            break;
        }
    }
    rest(group);
    let (tree, own) = (tree.finish(), own.finish());
    let used = group.used() - before;
    let [of_tree, of_group] = [&tree, &own].map(|record| record["used"]["run_ns"].as_u64().unwrap());
    let error = tree["used"]["error_ns"].as_u64().unwrap();
    println!("{what}: {of_tree} ns by the tree (+- {error}), {} by the control group", used.0);
    assert!(used > Nanos::from_secs(1), "{what}: the load is too small to be compared: {used}");
    let off = of_tree.abs_diff(used.0);
    assert!(off * 100 <= used.0, "{what}: {of_tree} by the tree, {} by the control group: {tree:#}", used.0);
    // The account is read first and last by this test.
    assert!(of_group.abs_diff(used.0) * 1_000 <= used.0, "{what}: {of_group} of {}: {own:#}", used.0);
    assert!(tree["resources"]["processes"].as_u64() > Some(2), "{what}: {tree:#}");
    assert!(tree["memory"]["proportional_after"].as_u64() > Some(0), "{what}: {tree:#}");
}

/// Waits until the group uses next to nothing.
fn rest(group: &Accounted) {
    let mut last = group.used();
    let rests = || {
        clock::sleep_until(clock::now() + Nanos::from_millis(200));
        let before = std::mem::replace(&mut last, group.used());
        last - before < Nanos::from_micros(500)
    };
    assert!(wait::until(Nanos::from_secs(60), rests), "the server does not come to rest");
}

/// `parallax cpu` until it is interrupted.
struct Measuring {
    child: Child,
    folder: TempDir,
}

impl Measuring {
    fn start(which: &[&str]) -> Measuring {
        Measuring::start_with("ticks", which)
    }

    fn start_with(split: &str, which: &[&str]) -> Measuring {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(binary::parallax());
        command.args(["cpu", "--split", split, "600"]).args(which).arg("-o").arg(folder.path().join("cpu"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let mut measuring = Measuring { child, folder };
        let run = measuring.folder.path().join("cpu/run.json");
        let begun = wait::until(Nanos::from_secs(30), || {
            run.exists() || measuring.child.try_wait().unwrap().is_some()
        });
        assert!(begun && run.exists(), "cpu {which:?} does not begin");
        measuring
    }

    /// The only group of the record.
    fn finish(mut self) -> Value {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap();
        let text = fs::read_to_string(self.folder.path().join("cpu/run.json")).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        record["cpu"]["groups"][0].clone()
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
