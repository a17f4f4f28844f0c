//! nginx over TLS, HTTP/2 and a Unix domain socket: our counts are those of nginx's log, and failures have their
//! reasons.

use std::path::Path;

use crate::support::certificates::Certificates;
use crate::support::nginx::Nginx;
use crate::support::port;
use crate::support::run::{Run, drive};
use crate::support::turn;

/// nginx that also listens on `port` with TLS and HTTP/2.
fn nginx(certificates: &Certificates, port: u16, inside: &str) -> Nginx {
    let path = |name| certificates.path(name);
    Nginx::start(&format!(
        "listen 127.0.0.1:{port} ssl http2;
         ssl_certificate {}; ssl_certificate_key {};
         {inside}
         location / {{ return 200 'hello'; }}",
        path("server.pem"),
        path("server.key")
    ))
}

pub fn protocol(run: &Run) -> &str {
    run.json.pointer("/subject/protocol").unwrap().as_str().unwrap()
}

/// The number of requests that passed the phase.
pub fn passed(run: &Run, name: &str) -> u64 {
    let phases = run.json.pointer("/results/phases").unwrap().as_array().unwrap();
    let phase = phases.iter().find(|phase| phase["phase"] == name).unwrap();
    phase.pointer("/distribution/count").map_or(0, |count| count.as_u64().unwrap())
}

fn reasons(run: &Run) -> Vec<String> {
    let rows = run.json.pointer("/results/reasons").and_then(|rows| rows.as_array());
    let text = |row: &serde_json::Value| format!("{} {} {}", row["outcome"], row["reason"], row["count"]);
    rows.into_iter().flatten().map(text).map(|row| row.replace('"', "")).collect()
}

/// If this fails, figures over TLS are not those of the requests, or the handshake is counted in another phase.
#[test]
fn every_request_over_tls_is_in_the_servers_log() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let port = port::free();
    let server = nginx(&certificates, port, "");
    let url = format!("https://localhost:{port}/x");
    for (options, spoken) in [
        (&["--http", "1.1"][..], "http/1.1 over TLS"),
        (&["--http", "2", "--streams", "5"], "http/2 over TLS"),
        (&["--tls-version", "1.2"], "http/2 over TLS 1.2"),
    ] {
        let fixed = ["-n", "400", "-c", "2", "--cacert", &certificates.path("ca.pem"), "--resolve"];
        let resolve = format!("localhost:{port}:127.0.0.1");
        let run = drive(&[&fixed[..], &[&resolve], options, &[&url]].concat());
        assert_eq!(run.reported(), ["ok - 400"], "{options:?}: {}", run.stderr);
        assert!(protocol(&run).starts_with(spoken), "{}", protocol(&run));
        assert_eq!(run.total("connections_opened"), 2);
        assert_eq!(run.total("body_bytes"), 400 * 5);
        // One handshake per connection, in the request that opened it; none on a reused connection.
        assert_eq!((passed(&run, "connect"), passed(&run, "tls")), (2, 2));
    }
    let seen = server.finish();
    assert_eq!(seen.len(), 1_200);
    assert!(seen.iter().all(|one| one.uri == "/x" && one.status == 200));
}

/// If this fails, users see that TLS failed, and have to guess why.
#[test]
fn a_failed_handshake_has_its_reason() {
    let _turn = turn::together();
    let (good, old) = (Certificates::until(2100), Certificates::until(2021));
    let (port, old_port) = (port::free(), port::free());
    let (server, old_server) = (nginx(&good, port, ""), nginx(&old, old_port, ""));
    let ca = good.path("ca.pem");
    let old_ca = old.path("ca.pem");
    for (port, options, reason) in [
        (port, &["--cacert", &old_ca][..], "certificate from an unknown issuer"),
        (port, &["--cacert", &ca, "--sni", "other.example"], "certificate for another name"),
        (old_port, &["--cacert", &old_ca], "certificate expired"),
        (server.port, &["--cacert", &ca], "the server does not speak TLS on this port"),
    ] {
        let url = format!("https://localhost:{port}/");
        let resolve = format!("localhost:{port}:127.0.0.1");
        let run = drive(&[&["-n", "6", "-c", "2", "--resolve", &resolve], options, &[&url]].concat());
        assert_eq!(run.reported(), ["tls_failed server 6"]);
        assert_eq!(reasons(&run), [format!("tls_failed {reason} 6")]);
    }
    let believed = drive(&["-n", "6", "-c", "2", "-k", &format!("https://127.0.0.1:{old_port}/")]);
    assert_eq!(believed.reported(), ["ok - 6"]);
    assert_eq!(old_server.finish().len(), 6);
}

/// If this fails, a server that allows one stream at a time looks as if it refused requests.
#[test]
fn nginx_with_one_stream_at_a_time_refuses_none() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let port = port::free();
    let server = nginx(&certificates, port, "http2_max_concurrent_streams 1;");
    let resolve = format!("localhost:{port}:127.0.0.1");
    let ca = certificates.path("ca.pem");
    let fixed = ["-n", "400", "-c", "2", "--streams", "10", "--cacert", &ca, "--resolve", &resolve];
    let run = drive(&[&fixed[..], &[&format!("https://localhost:{port}/")]].concat());
    assert_eq!(run.reported(), ["ok - 400"]);
    assert_eq!((run.total("connections_opened"), passed(&run, "tls")), (2, 2));
    // Twenty virtual users share two streams: all but those that began the run have waited.
    assert_eq!(passed(&run, "pool_wait"), 400);
    assert_eq!(server.finish().len(), 400);
}

/// nginx sends GOAWAY with the last response that it allows on a connection.
#[test]
fn a_connection_that_nginx_leaves_is_replaced() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let port = port::free();
    let server = nginx(&certificates, port, "keepalive_requests 10;");
    let resolve = format!("localhost:{port}:127.0.0.1");
    let ca = certificates.path("ca.pem");
    let fixed = ["-n", "100", "-c", "1", "--http", "2", "--cacert", &ca, "--resolve", &resolve];
    let run = drive(&[&fixed[..], &[&format!("https://localhost:{port}/")]].concat());
    assert_eq!(run.reported(), ["ok - 100"]);
    assert_eq!((run.total("connections_opened"), passed(&run, "tls")), (10, 10));
    assert_eq!(server.finish().len(), 100);
}

#[test]
fn a_socket_of_the_file_system_is_driven_like_a_port() {
    let _turn = turn::together();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nginx.sock");
    let nginx = Nginx::start(&format!("listen unix:{}; location / {{ return 200 'hello'; }}", show(&socket)));
    let run = drive(&["-n", "100", "-c", "2", &format!("unix:{}:/a", show(&socket))]);
    assert_eq!(run.reported(), ["ok - 100"]);
    // The kernel does not timestamp what arrives on such a socket: absent, not zero.
    assert_eq!((run.total("unstamped"), passed(&run, "client_lag")), (100, 0));
    let run = drive(&["-n", "100", "-c", "2", "--unix", show(&socket), "http://example.com/b"]);
    assert_eq!(run.reported(), ["ok - 100"]);
    let seen = nginx.finish();
    assert_eq!(seen.iter().filter(|one| one.uri == "/a").count(), 100);
    assert_eq!(seen.iter().filter(|one| one.uri == "/b").count(), 100);
}

fn show(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// If this fails, a slow target is hidden by a fast one, or its requests are counted for another.
#[test]
fn each_target_has_its_own_figures() {
    let _turn = turn::together();
    let one = Nginx::start("location / { return 200 'hello'; }");
    let two = Nginx::start("location /fine { return 200 'hello'; } location / { return 503; }");
    let urls = [one.url("/a"), two.url("/fine"), two.url("/broken")];
    let run = drive(&["-n", "300", "-c", "2", &urls[0], &urls[1], &urls[2]]);
    let targets = run.json.pointer("/results/targets").unwrap().as_array().unwrap();
    let figures: Vec<_> = targets
        .iter()
        .map(|target| ["requests", "ok", "failed"].map(|name| target[name].as_u64().unwrap()))
        .collect();
    assert_eq!(figures, [[100, 100, 0], [100, 100, 0], [100, 0, 100]]);
    assert_eq!(targets[0].pointer("/response/count").unwrap(), 100);
    let names = run.json.pointer("/subject/targets").unwrap().as_array().unwrap();
    assert!(names.iter().zip(&urls).all(|(name, url)| *name == format!("GET {url}")), "{names:?}");
    assert_eq!((one.finish().len(), two.finish().len()), (100, 200));
}
