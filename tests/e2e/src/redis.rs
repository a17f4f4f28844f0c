//! Redis: our counts are the server's own, and each way in which a command can fail has its outcome.

use std::fs;

use crate::secure::{passed, protocol};
use crate::support::certificates::Certificates;
use crate::support::databases::{PASSWORD, check_goes_on, check_password_is_hidden};
use crate::support::redis::Redis;
use crate::support::run::drive;
use crate::support::turn;

/// If this fails, commands are lost or sent twice, or a report counts what the server did not do.
#[test]
fn redis_counts_are_those_of_the_server() {
    let _turn = turn::together();
    let certificates = Certificates::until(2100);
    let server = Redis::start(Some(&certificates));
    let (password, ca) = (server.password_file(), certificates.path("ca.pem"));
    let by_tls = format!("rediss://localhost:{}/2", server.tls_port);
    let by_socket = format!("redis:///0?socket={}", server.socket());
    let plain = server.url();
    let tls = ["--cacert", ca.as_str()];
    for (connections, pipeline, url, more) in [
        ("1", 1, &plain, &[][..]),
        ("64", 1, &plain, &[]),
        ("8", 16, &plain, &[]),
        ("8", 16, &by_tls, &tls),
        ("4", 1, &by_socket, &[]),
    ] {
        let count = 3_000;
        let before = server.calls(["get", "set", "hello"]);
        let (requests, depth) = (count.to_string(), pipeline.to_string());
        let load = ["--password-file", &password, "-c", connections, "-n", &requests, "--pipeline", &depth];
        let what = ["--workload", "redis-get-set", "--rows", "1000", url];
        let run = drive(&[&load[..], more, &what].concat());
        assert_eq!(run.reported(), [format!("ok - {count}")], "{:?} {}", run.reasons(), run.stderr);
        let after = server.calls(["get", "set", "hello"]);
        let opened: u64 = connections.parse().unwrap();
        let counted: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
        assert_eq!(counted, [count / 2, count / 2, opened]);
        assert_eq!(run.total("connections_opened"), opened);
        let handshakes = if more.is_empty() { 0 } else { opened * pipeline };
        assert_eq!((passed(&run, "tls"), passed(&run, "auth")), (handshakes, opened * pipeline));
        let used = if more.is_empty() { "redis, server 7" } else { "redis over TLS 1.3, server 7" };
        assert!(protocol(&run).starts_with(used), "{}", protocol(&run));
    }
    // Commands that differ in their keys alone are one kind, as `watch` sees them.
    let commands = ["--command", "GET key:{{random 1 9}}", "--command", "INCR n", "--command", "PING"];
    let run = drive(&[&["--password-file", &password, "-n", "90"][..], &commands, &[&plain]].concat());
    assert_eq!(run.json["subject"]["targets"], serde_json::json!(["GET key:{}", "INCR n", "PING"]));
    assert_eq!(server.ask(&["GET", "n"]).trim(), "30");
}

/// If this fails, users see that commands failed, and have to guess why, or whose fault it was.
#[test]
fn each_failure_of_redis_has_one_outcome_and_the_servers_words() {
    let _turn = turn::together();
    let server = Redis::start(None);
    let password = server.password_file();
    let wrong = password.clone() + ".wrong";
    fs::write(&wrong, "wrong").unwrap();
    server.ask(&["LPUSH", "list", "a"]);
    server.ask(&["SET", "long", &"x".repeat(100_000)]);
    let url = server.url();
    let nowhere = url.replace("/0", "/99");
    let given = ["--password-file", &password];
    for (arguments, outcome, reason) in [
        (&["--password-file", &wrong, "--command", "PING", &url][..], "auth_failed server", "WRONGPASS"),
        (&["--password-file", "/dev/null", "--command", "PING", &url], "auth_failed server", "NOAUTH"),
        (&[&given[..], &["--command", "PING", &nowhere]].concat(), "auth_failed server", "out of range"),
        (&[&given[..], &["--command", "GET list", &url]].concat(), "app_error client", "WRONGTYPE"),
        (&[&given[..], &["--command", "GETT a", &url]].concat(), "app_error client", "ERR unknown command"),
        (
            &[&given[..], &["--max-body", "64KiB", "--command", "GET long", &url]].concat(),
            "protocol_error server",
            "bytes of result",
        ),
    ] {
        let run = drive(&[&["-n", "3", "-c", "1", "--keep-trying"][..], arguments].concat());
        assert_eq!(run.reported(), [format!("{outcome} 3")], "{arguments:?}: {:?}", run.reasons());
        let reasons = run.reasons();
        assert!(reasons.len() == 1 && reasons[0].contains(reason), "{reasons:?}");
    }
    let url = url.replace("redis://", &format!("redis://default:{PASSWORD}@"));
    check_password_is_hidden(&url, &["--command", "PING"]);
}

#[test]
fn a_run_goes_on_when_redis_is_back() {
    let _turn = turn::together();
    let mut server = Redis::start(None);
    let (password, url) = (server.password_file(), server.url());
    check_goes_on(&["--password-file", &password, "--command", "GET a", &url], || {
        server.kill();
        server.start_again();
    });
}
