//! Node's HTTP/2 server and nghttpd: our counts are those of the server, failures are the ones that it caused, and a
//! handshake is counted only in the requests that opened a connection.

use crate::secure::{passed, protocol};
use crate::support::certificates::Certificates;
use crate::support::http2::{Nghttpd, Node, Seen};
use crate::support::run::{Run, drive};
use crate::support::turn;

/// Runs `drive` with `https://localhost` on this port.
fn over_tls(certificates: &Certificates, port: u16, path: &str, options: &[&str]) -> Run {
    let resolve = format!("localhost:{port}:127.0.0.1");
    let ca = certificates.path("ca.pem");
    let url = format!("https://localhost:{port}{path}");
    drive(&[options, &["--cacert", &ca, "--resolve", &resolve, &url]].concat())
}

fn in_the_clear(port: u16, path: &str, options: &[&str]) -> Run {
    drive(&[options, &["--http", "h2c", &format!("http://127.0.0.1:{port}{path}")]].concat())
}

/// 400 requests over two connections, all with responses, each connection opened by one of them.
#[track_caller]
fn check_good(run: &Run, spoken: &str) {
    assert_eq!(run.reported(), ["ok - 400"], "{}", run.stderr);
    assert_eq!(run.codes(), ["200 400"]);
    assert!(protocol(run).starts_with(spoken), "{}", protocol(run));
    assert_eq!((run.total("sent"), run.total("connections_opened")), (400, 2));
    assert_eq!(run.total("body_bytes"), 400 * 5);
    let handshakes = if spoken.contains("TLS") { 2 } else { 0 };
    assert_eq!((passed(run, "connect"), passed(run, "tls")), (2, handshakes));
    for phase in ["send", "wait", "receive"] {
        assert_eq!(passed(run, phase), 400, "{phase}");
    }
}

const LOAD: [&str; 4] = ["-n", "400", "-c", "2"];

/// If this fails, Parallax and the most common HTTP/2 server of applications disagree about the requests.
#[test]
fn node_saw_what_was_sent() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    for (options, spoken) in [
        (&["--http", "2", "--streams", "5"][..], "http/2 over TLS"),
        (&["--tls-version", "1.2", "--streams", "5"], "http/2 over TLS 1.2"),
        (&["--http", "1.1"], "http/1.1 over TLS"),
    ] {
        let node = Node::start(&certificates, 100);
        let run = over_tls(&certificates, node.secure, "/", &[&LOAD[..], options].concat());
        check_good(&run, spoken);
        let seen = node.seen();
        assert_eq!((seen.connections, seen.requests), (2, 400), "{options:?}");
    }
    let node = Node::start(&certificates, 100);
    check_good(&in_the_clear(node.clear, "/", &[&LOAD[..], &["--streams", "5"]].concat()), "http/2");
    let seen = node.seen();
    assert_eq!((seen.connections, seen.requests), (2, 400));
}

#[test]
fn what_node_does_to_a_stream_is_reported_as_such() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    for (path, ending) in [
        ("/missing", "app_error receive client 40"),
        ("/broken", "app_error receive server 40"),
        ("/reset", "reset wait server 40"),
        ("/refused", "closed_before_response wait server 40"),
        ("/cut", "incomplete_response receive server 40"),
        ("/gone", "closed_before_response wait server 40"),
        ("/silent", "request_timeout wait server 40"),
    ] {
        let node = Node::start(&certificates, 100);
        // Silence takes its time, and all requests meet it at once; otherwise one after the other, so that nothing
        // interferes.
        let (connections, timeout) = if path == "/silent" { ("20", "500ms") } else { ("2", "20s") };
        let load = ["-n", "40", "-c", connections, "--timeout", timeout];
        let runs = [
            in_the_clear(node.clear, path, &load),
            over_tls(&certificates, node.secure, path, &[&load[..], &["--http", "2"]].concat()),
        ];
        for run in &runs {
            assert_eq!(endings(run), [ending], "{path}");
            assert_eq!(run.total("sent"), 40, "{path}");
        }
        let opened = runs.iter().map(|run| run.total("connections_opened")).sum::<u64>();
        let seen = node.seen();
        assert_eq!((seen.connections, seen.requests), (opened, 80), "{path}");
        // A failed stream leaves its connection intact; so does a timeout.
        let each = match path {
            "/gone" => 40,
            "/silent" => 20,
            _ => 2,
        };
        assert_eq!(opened, 2 * each, "{path}");
    }
}

/// Each as `outcome phase blame count`.
fn endings(run: &Run) -> Vec<String> {
    let word = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let row = |row: &serde_json::Value| {
        let words = ["outcome", "phase", "blame"].map(|name| word(row, name));
        format!("{} {}", words.join(" "), row["count"])
    };
    run.outcomes().map(row).collect()
}

#[test]
fn node_with_one_stream_at_a_time_never_gets_two() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let node = Node::start(&certificates, 1);
    let load = ["-n", "100", "-c", "1", "--streams", "10", "--http", "2"];
    let run = over_tls(&certificates, node.secure, "/slow", &load);
    assert_eq!(run.reported(), ["ok - 100"]);
    assert_eq!(node.seen(), Seen { connections: 1, requests: 100, most_at_once: 1 });
    // Nine requests wait for each that is served.
    assert!(run.share("pool_wait") > 0.7, "{}", run.share("pool_wait"));
}

/// If this fails, a server that closes its connections one by one looks as if it dropped requests.
#[test]
fn a_connection_that_node_leaves_is_replaced() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let node = Node::start(&certificates, 100);
    let run = over_tls(&certificates, node.secure, "/leaving", &["-n", "100", "-c", "1", "--http", "2"]);
    assert_eq!(run.reported(), ["ok - 100"]);
    assert_eq!((run.total("connections_opened"), passed(&run, "tls")), (10, 10));
    let seen = node.seen();
    assert_eq!((seen.connections, seen.requests), (10, 100));
}

#[test]
fn nghttpd_saw_what_was_sent() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let load = [&LOAD[..], &["--streams", "5"]].concat();
    let secure = Nghttpd::start(Some(&certificates), 100);
    let run = over_tls(&certificates, secure.port, "/page", &[&load[..], &["--http", "2"]].concat());
    check_good(&run, "http/2 over TLS");
    let clear = Nghttpd::start(None, 100);
    check_good(&in_the_clear(clear.port, "/page", &load), "http/2");
    for server in [secure, clear] {
        let seen = server.seen(400);
        assert_eq!((seen.connections, seen.requests), (2, 400));
        assert!((2..=5).contains(&seen.most_at_once), "{seen:?}");
    }
}

#[test]
fn nghttpd_with_one_stream_at_a_time_never_gets_two() {
    let _turn = turn::together();
    let server = Nghttpd::start(None, 1);
    let run = in_the_clear(server.port, "/page", &["-n", "100", "-c", "1", "--streams", "10"]);
    assert_eq!(run.reported(), ["ok - 100"]);
    assert_eq!(server.seen(100), Seen { connections: 1, requests: 100, most_at_once: 1 });
}

#[test]
fn what_nghttpd_does_not_have_is_an_error_of_the_request() {
    let _turn = turn::together();
    let server = Nghttpd::start(None, 100);
    let run = in_the_clear(server.port, "/missing", &["-n", "100", "-c", "2"]);
    assert_eq!(
        (endings(&run), run.codes()),
        (vec!["app_error receive client 100".into()], vec!["404 100".into()])
    );
    let seen = server.seen(100);
    assert_eq!((seen.connections, seen.requests), (2, 100));
}
