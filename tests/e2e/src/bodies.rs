//! Bodies in both directions, byte for byte: large, chunked, compressed, slow, and checked.

use std::fmt::Write as _;
use std::fs;

use sha2::{Digest, Sha256};
use units::Nanos;

use crate::support::nginx::{Nginx, fetch};
use crate::support::numbers::Numbers;
use crate::support::run::{argument, drive, number};
use crate::support::turn;

fn sha256(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

const FIVE_MB: usize = 5 << 20;

/// If this fails, checks of bodies pass whatever arrived, or throughput in bytes is wrong.
#[test]
fn a_large_file_arrives_byte_for_byte() {
    let _turn = turn::together();
    let nginx = Nginx::start("");
    let content = Numbers(1).bytes(FIVE_MB);
    fs::write(nginx.file("large.bin"), &content).unwrap();
    let run = drive(&["-n", "20", "-c", "2", "--expect-sha256", &sha256(&content), &nginx.url("/large.bin")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 20"]);
    assert_eq!(run.total("body_bytes"), 20 * FIVE_MB as u64);
    let receive = &run.phase("receive")["distribution"];
    assert_eq!(number(receive, "/count"), 20);
    assert!(number(receive, "/min_ns") > 0, "five megabytes arrived at one instant");
    let seen = nginx.finish();
    assert_eq!(run.total("bytes_received"), seen.iter().map(|one| one.bytes_sent).sum::<u64>());
}

#[test]
fn a_body_that_is_not_the_expected_one_fails_its_check() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'the quick brown fox'; }");
    let right = sha256(b"the quick brown fox");
    let wrong = sha256(b"the quick brown dog");
    for (check, reported) in [
        (["--expect-sha256", &right], "ok - 30"),
        (["--expect-sha256", &wrong], "check_failed server 30"),
        (["--expect-body-contains", "quick brown"], "ok - 30"),
        (["--expect-body-contains", "quick  brown"], "check_failed server 30"),
    ] {
        let run = drive(&["-n", "30", "-c", "2", check[0], check[1], &nginx.url("/")]);
        assert_eq!(run.reported(), [reported], "{check:?}");
        assert_eq!(run.total("connections_opened"), 2);
    }
    assert_eq!(nginx.finish().len(), 120);
}

/// The body of a chunked response is the content of its chunks, whatever their sizes.
#[track_caller]
fn check_chunked(nginx: &Nginx, path: &str, header: &str) {
    let body = fetch(nginx.port, path);
    let digest = sha256(&body);
    let url = nginx.url(path);
    let run = drive(&["-n", "40", "-c", "2", "-H", header, "--expect-sha256", &digest, &url]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 40"], "{path}");
    assert_eq!(run.total("body_bytes"), 40 * body.len() as u64);
    assert_eq!(run.total("connections_opened"), 2);
}

#[test]
fn chunked_responses_are_read_to_their_end() {
    let _turn = turn::together();
    let nginx = Nginx::start(
        "autoindex on;
         gzip on; gzip_http_version 1.0; gzip_types text/plain;
         location /identity/ { gzip off; }",
    );
    fs::create_dir(nginx.file("identity")).unwrap();
    for index in 0..300 {
        fs::write(nginx.file(&format!("identity/file-{index}.txt")), "content").unwrap();
    }
    let mut words = String::new();
    let mut numbers = Numbers(2);
    while words.len() < 1_000_000 {
        writeln!(words, "{} says {}", numbers.next() % 1_000, numbers.next()).unwrap();
    }
    fs::write(nginx.file("words.txt"), &words).unwrap();
    check_chunked(&nginx, "/identity/", "Accept: text/html");
    check_chunked(&nginx, "/words.txt", "Accept-Encoding: gzip");
}

/// If this fails, clients wait for the timeout if a server ends responses by closing.
#[test]
fn a_body_that_ends_with_the_connection_ends_there() {
    let _turn = turn::together();
    let nginx = Nginx::start("autoindex on; chunked_transfer_encoding off;");
    fs::create_dir(nginx.file("listed")).unwrap();
    let body = fetch(nginx.port, "/listed/");
    let digest = sha256(&body);
    let url = nginx.url("/listed/");
    let run = drive(&["-n", "400", "-c", "4", "--timeout", "10s", "--expect-sha256", &digest, &url]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 400"]);
    assert_eq!(run.total("connections_opened"), 400);
    assert_eq!(run.total("body_bytes"), 400 * body.len() as u64);
    let longest = number(&run.json, "/results/response/max_ns");
    assert!(longest < Nanos::from_secs(10).0, "noticed by the timeout only");
}

/// If this fails, a slow line or a slow sender looks like a slow start of the response.
#[test]
fn a_slow_body_is_received_and_not_waited_for() {
    let _turn = turn::together();
    let nginx = Nginx::start("limit_rate 100k;");
    fs::write(nginx.file("slow.bin"), vec![7; 150_000]).unwrap();
    let run = drive(&["-n", "8", "-c", "4", &nginx.url("/slow.bin")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 8"]);
    // The first half arrives at once and the rest about half a second later: the response starts within milliseconds.
    assert!(run.share("receive") > 0.5, "receive is {}", run.share("receive"));
    assert!(run.share("receive") > 2.0 * run.share("wait"), "wait is {}", run.share("wait"));
}

/// nginx's DAV module stores what it receives.
#[test]
fn a_body_from_a_file_is_sent_whole() {
    let _turn = turn::together();
    let nginx = Nginx::start("location /stored/ { dav_methods PUT; create_full_put_path on; }");
    let content = Numbers(3).bytes(700_001);
    let body = nginx.file("body.bin");
    fs::write(&body, &content).unwrap();
    let from_file = format!("@{}", argument(&body));
    let url = nginx.url("/stored/copy.bin");
    let run = drive(&["-n", "6", "-c", "2", "-X", "PUT", "-b", &from_file, &url]);
    run.assert_done();
    assert_eq!(run.ended("ok"), 6);
    assert_eq!(fs::read(nginx.file("stored/copy.bin")).unwrap(), content);
    let seen = nginx.finish();
    assert!(seen.iter().all(|one| one.method == "PUT" && one.bytes_received > 700_001));
    assert_eq!(run.total("bytes_sent"), seen.iter().map(|one| one.bytes_received).sum::<u64>());
}

#[test]
fn a_body_makes_it_a_post() {
    let _turn = turn::together();
    let nginx = Nginx::start(
        "location /echo { proxy_pass http://127.0.0.1:$server_port/sink; }
         location /sink { access_log off; return 201 $request_method$content_length; }",
    );
    let contains = ["--expect-body-contains", "POST11"];
    let run =
        drive(&["-n", "20", "-c", "2", "-b", "hello world", contains[0], contains[1], &nginx.url("/echo")]);
    run.assert_done();
    assert_eq!(run.reported(), ["ok - 20"]);
    assert_eq!(run.codes(), ["201 20"]);
    assert!(nginx.finish().iter().all(|one| one.method == "POST"));
}
