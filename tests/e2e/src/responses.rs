//! Runs against nginx in which every request gets a response: our counts are those of nginx's log.

use std::collections::HashSet;
use std::fs;

use crate::support::nginx::{Nginx, Seen, has_ipv6};
use crate::support::run::{drive, number};
use crate::support::turn;

fn connections(seen: &[Seen]) -> u64 {
    seen.iter().map(|request| request.connection).collect::<HashSet<_>>().len() as u64
}

/// If this fails, requests are lost or counted twice.
#[test]
fn every_request_is_in_the_servers_log() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-n", "2000", "-c", "8", "-w", "2", &nginx.url("/some/path?a=1 2")]);
    run.assert_done();
    let seen = nginx.finish();
    assert_eq!(run.reported(), ["ok - 2000"]);
    assert_eq!(seen.len(), 2_000);
    assert!(
        seen.iter().all(|one| one.method == "GET" && one.uri == "/some/path?a=1%202" && one.status == 200)
    );
    assert_eq!(run.total("sent"), 2_000);
    assert_eq!(run.total("connections_opened"), 8);
    assert_eq!(connections(&seen), 8);
    assert_eq!(run.total("bytes_sent"), seen.iter().map(|one| one.bytes_received).sum::<u64>());
    assert_eq!(run.total("bytes_received"), seen.iter().map(|one| one.bytes_sent).sum::<u64>());
    assert_eq!(run.total("body_bytes"), 2_000 * 5);
}

#[test]
fn an_open_loop_sends_what_is_due() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-r", "400/s", "-d", "2s", "-c", "4", "-w", "2", &nginx.url("/")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 800"]);
    assert_eq!(nginx.finish().len(), 800);
}

#[test]
fn a_status_of_400_and_above_is_an_error_of_the_application() {
    let _turn = turn::together();
    let nginx = Nginx::start("location /teapot { return 418; } location /broken { return 503; }");
    for (path, reported, code) in [
        ("/missing", "app_error client 50", "404 50"),
        ("/teapot", "app_error client 50", "418 50"),
        ("/broken", "app_error server 50", "503 50"),
    ] {
        let run = drive(&["-n", "50", "-c", "2", &nginx.url(path)]);
        assert_eq!(run.reported(), [reported]);
        assert_eq!(run.codes(), [code]);
        // A run in which every request failed is no measurement.
        assert_eq!(run.code, Some(3));
    }
    assert_eq!(nginx.finish().len(), 150);
}

#[test]
fn an_expected_status_is_good_and_any_other_is_not() {
    let _turn = turn::together();
    let nginx = Nginx::start("location /teapot { return 418; } location /fine { return 200 'fine'; }");
    let run = drive(&["-n", "50", "-c", "2", "--expect-status", "418", &nginx.url("/teapot")]);
    run.assert_done();
    assert_eq!((run.reported(), run.codes()), (vec!["ok - 50".to_owned()], vec!["418 50".to_owned()]));
    let run = drive(&["-n", "50", "-c", "2", "--expect-status", "404,500-599", &nginx.url("/fine")]);
    assert_eq!(run.reported(), ["check_failed server 50"]);
}

#[test]
fn responses_without_a_body_keep_the_connection() {
    let _turn = turn::together();
    let nginx = Nginx::start("location = /none { return 204; }");
    fs::write(nginx.file("page.txt"), vec![b'x'; 100_000]).unwrap();
    let url = nginx.url("/page.txt");
    for (arguments, code) in [
        (vec!["-X", "HEAD", url.as_str()], "200 60"),
        (vec!["-H", "If-None-Match: *", url.as_str()], "304 60"),
        (vec![nginx.url("/none").as_str()], "204 60"),
    ] {
        let mut all = vec!["-n", "60", "-c", "2"];
        all.extend(arguments);
        let run = drive(&all);
        run.assert_done();
        assert_eq!(run.codes(), [code]);
        assert_eq!(run.total("body_bytes"), 0);
        assert_eq!(run.total("connections_opened"), 2);
    }
    assert_eq!(nginx.finish().len(), 180);
}

/// If this fails, a server that closes connections now and then looks broken.
#[test]
fn a_connection_that_the_server_ends_with_a_response_is_replaced() {
    let _turn = turn::together();
    let nginx = Nginx::start("keepalive_requests 10; location / { return 200 'hello'; }");
    let run = drive(&["-n", "95", "-c", "1", &nginx.url("/")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 95"]);
    assert_eq!(run.total("connections_opened"), 10);
    // The last connection is not used up yet: nothing ends it.
    assert_eq!(number(run.phase("connect"), "/distribution/count"), 10);
    let seen = nginx.finish();
    assert_eq!((seen.len(), connections(&seen)), (95, 10));
}

#[test]
fn pipelined_requests_all_arrive_and_all_get_responses() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-n", "1000", "-c", "2", "--pipeline", "4", &nginx.url("/")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 1000"]);
    let seen = nginx.finish();
    assert_eq!((seen.len(), connections(&seen)), (1_000, 2));
    assert!(seen.iter().any(|one| one.pipelined), "nothing was pipelined");
}

#[test]
fn an_address_of_ipv6_is_driven() {
    if !has_ipv6() {
        println!("this host has no IPv6 loopback address");
        return;
    }
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-n", "40", "-c", "2", &format!("http://[::1]:{}/", nginx.port)]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 40"]);
    assert_eq!(run.json["subject"]["address"], format!("[::1]:{}", nginx.port));
    assert_eq!(nginx.finish().len(), 40);
}

#[test]
fn a_name_is_looked_up_once_and_its_phase_shows() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let run = drive(&["-n", "40", "-c", "2", &format!("http://localhost:{}/", nginx.port)]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 40"]);
    // Both connections waited for the same lookup; no request on them waited again.
    assert_eq!(number(run.phase("resolve"), "/distribution/count"), 2);
    assert_eq!(nginx.finish().len(), 40);
}
