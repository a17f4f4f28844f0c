//! nginx: HTTP/1.1 in pipelines and with bodies in chunks, HTTP/2 with TLS and without.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use record::Protocol;
use rustix::process::geteuid;

use super::super::nginx::drive;
use super::super::{require, run};
use super::{check_counted, make_certificate, statements, times};
use crate::support::watched::{Watched, Watching};
use crate::support::{leash, port, quiet, wait};
use units::Nanos;

#[test]
fn nginx_requests_are_those_of_its_log_in_http_1_and_2_with_tls_and_without() {
    let _together = quiet::together();
    require("nginx");
    require("curl");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [plain, h2c, secure, behind] = [(); 4].map(|()| port::free());
    make_certificate(Path::new(&path("cert.pem")), Path::new(&path("key.pem")));
    fs::write(path("small.txt"), "o".repeat(500)).unwrap();
    fs::write(path("large.bin"), "o".repeat(100_000)).unwrap();
    fs::write(path("nginx.conf"), configuration(&path(""), [plain, h2c, secure, behind])).unwrap();
    let (errors, file, prefix) = (path("error.log"), path("nginx.conf"), path(""));
    let mut process = leash::start(
        &["nginx", "-e", &errors, "-p", &prefix, "-c", &file],
        &folder.path().join("output.log"),
    );
    // It listens before it writes this.
    let pid = || fs::read_to_string(path("nginx.pid")).unwrap_or_default();
    process.wait_until(|| pid().ends_with('\n'));
    process.wait_for(secure);
    let pid = pid();
    let before = lines(&path("access.log"));
    let watching = Watching::start(&["-p", pid.trim(), "--tls"]);
    let number = times(1_000);
    let driven = |name: &str, number: u64, more: &[&str]| {
        let (record, number) = (path(name), number.to_string());
        drive(&[&["drive", "--quiet", "-c", "4", "-n", &number, "-o", &record][..], more].concat());
    };
    driven("h1", number, &["-k", "--http", "1.1", &format!("https://127.0.0.1:{secure}/small.txt?h1")]);
    driven(
        "h2",
        number,
        &["-k", "--http", "2", "--streams", "10", &format!("https://127.0.0.1:{secure}/small.txt?h2")],
    );
    driven(
        "h2c",
        number,
        &["--http", "h2c", "--streams", "10", &format!("http://127.0.0.1:{h2c}/small.txt?h2c")],
    );
    driven(
        "large-h2",
        20,
        &["-k", "--http", "2", "--streams", "4", &format!("https://127.0.0.1:{secure}/large.bin")],
    );
    driven(
        "large-h2c",
        20,
        &["--http", "h2c", "--streams", "4", &format!("http://127.0.0.1:{h2c}/large.bin")],
    );
    pipeline(plain, times(50));
    let body = format!("@{}", path("large.bin"));
    for (version, url) in [
        ("--http1.1", format!("http://127.0.0.1:{plain}/up")),
        ("--http1.1", format!("https://127.0.0.1:{secure}/up")),
        ("--http2", format!("https://127.0.0.1:{secure}/up")),
        ("--http2-prior-knowledge", format!("http://127.0.0.1:{h2c}/up")),
    ] {
        run(
            "curl",
            &["-sS", "-k", version, "-H", "Transfer-Encoding: chunked", "--data-binary", &body, &url],
        );
    }
    // The log is written after the response.
    let expected = before + 3 * number + 40 + times(50) * 8 + 4;
    wait::until(Nanos::from_secs(5), || lines(&path("access.log")) >= expected);
    let watched = watching.finish();
    let log = fs::read_to_string(path("access.log")).unwrap();
    let logged: Vec<&str> = log.lines().skip(usize::try_from(before).unwrap()).collect();
    check(&watched, [plain, h2c, secure], &logged);
}

/// `logged` are the lines of nginx's log.
fn check(watched: &Watched, ports: [u16; 3], logged: &[&str]) {
    let requests: Vec<_> = ports.into_iter().flat_map(|port| watched.named(port)).collect();
    check_counted("nginx", requests.len() as u64, logged.len() as u64, watched);
    let lines = |part: &str| logged.iter().filter(|line| line.contains(part)).count();
    for (version, protocol) in [("HTTP/1.1", Protocol::Http1), ("HTTP/2.0", Protocol::Http2)] {
        let seen = requests.iter().filter(|(one, _)| one.protocol == protocol).count();
        assert_eq!(seen, lines(version), "{version}");
    }
    for (route, text) in
        [("/small.txt", "GET /small.txt"), ("/large.bin", "GET /large.bin"), ("/up", "POST /up")]
    {
        assert_eq!(statements(&requests, text), lines(route) as u64, "{text}");
    }
    for (one, text) in &requests {
        assert_eq!(one.status, Some(200), "{text}: {one:?}");
        assert!(*text != "POST /up" || one.request_bytes > 100_000, "{one:?}");
        assert!(!text.ends_with("large.bin") || one.response_bytes > 100_000, "{one:?}");
    }
}

/// Eight requests in one write, on each of so many connections.
fn pipeline(port: u16, connections: u64) {
    let one = "GET /small.txt HTTP/1.1\r\nHost: nginx\r\n";
    let whole = format!("{}{one}Connection: close\r\n\r\n", format!("{one}\r\n").repeat(7));
    for _ in 0..connections {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        stream.write_all(whole.as_bytes()).unwrap();
        let mut responses = String::new();
        stream.read_to_string(&mut responses).unwrap();
        assert_eq!(responses.matches("200 OK").count(), 8);
    }
}

fn lines(log: &str) -> u64 {
    fs::read_to_string(log).map_or(0, |text| text.lines().count() as u64)
}

fn configuration(folder: &str, [plain, h2c, secure, behind]: [u16; 4]) -> String {
    let user = if geteuid().is_root() { "user root root;" } else { "" };
    format!(
        "{user} daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log {folder}/access.log; sendfile on; keepalive_requests 10000000;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi; client_max_body_size 100m;
    ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    server {{
        listen 127.0.0.1:{plain}; listen 127.0.0.1:{h2c} http2; listen 127.0.0.1:{secure} ssl http2; root {folder};
        location = /up {{ proxy_pass http://127.0.0.1:{behind}/; }}
    }}
    server {{ listen 127.0.0.1:{behind}; access_log off; return 200 accepted; }}
}}
"
    )
}
