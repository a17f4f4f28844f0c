//! Servers that close, die, or are absent: each request has a specific outcome, and none is unknown.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;

use units::Nanos;

use crate::support::nginx::Nginx;
use crate::support::run::{drive, start};
use crate::support::{port, turn, wait};

#[test]
fn a_server_that_closes_without_a_response_is_blamed() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 444; }");
    let run = drive(&["-n", "60", "-c", "3", &nginx.url("/")]);
    assert_eq!(run.reported(), ["closed_before_response server 60"]);
    assert_eq!(run.total("connections_opened"), 60);
    assert_eq!(run.total("sent"), 60);
    // Something was reached, but nothing was measured.
    assert_eq!(run.code, Some(3));
    let seen = nginx.finish();
    assert!(seen.iter().all(|one| one.status == 444));
    assert_eq!(seen.len(), 60);
}

/// If this fails, a crash of the server leaves requests with the outcome unknown.
#[test]
fn a_server_killed_in_mid_run_leaves_no_request_unknown() {
    let _turn = turn::together();
    let mut nginx = Nginx::start("location / { return 200 'hello'; }");
    let running = start(&["--json", "--quiet", "-d", "2s", "-r", "500/s", "-c", "4", &nginx.url("/")]);
    running.wait_for_record();
    wait::pause(Nanos::from_millis(700));
    nginx.kill();
    let run = running.finish();
    let after = run.ended("reset") + run.ended("closed_before_response") + run.ended("connect_refused");
    assert!(run.ended("ok") > 0 && run.ended("connect_refused") > 0, "{:?}", run.reported());
    assert_eq!(run.ended("ok") + after, run.total("scheduled"), "{:?}", run.reported());
    assert_eq!(run.total("scheduled"), 1_000);
}

#[test]
fn a_port_without_a_listener_refuses_the_connection() {
    let _turn = turn::together();
    let run = drive(&["-n", "30", "-c", "3", &format!("http://127.0.0.1:{}/", port::free())]);
    assert_eq!(run.reported(), ["connect_refused server 30"]);
    assert_eq!(run.total("sent"), 0);
    assert_eq!(run.code, Some(4));
}

#[test]
fn a_name_that_does_not_exist_cannot_be_looked_up() {
    let _turn = turn::together();
    let begin = clock::now();
    let run = drive(&["-n", "4", "-c", "2", "http://nonexistent.invalid/"]);
    assert_eq!(run.reported(), ["resolve_failed network 4"]);
    assert_eq!(run.total("sent"), 0);
    assert_eq!(run.code, Some(4));
    // A resolver without a reply gives up after its own 5 s, twice for each server it knows.
    assert!(clock::now() - begin < Nanos::from_secs(60));
}

/// The kernel of a listener that never accepts nevertheless accepts the connection and the request.
#[test]
fn a_server_that_never_responds_runs_into_the_timeout() {
    let _turn = turn::together();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/");
    let run = drive(&["-n", "6", "-c", "2", "--timeout", "200ms", &url]);
    assert_eq!(run.reported(), ["request_timeout server 6"]);
    assert_eq!(run.total("sent"), 6);
    let run = drive(&["-d", "300ms", "-c", "2", "--drain", "100ms", &url]);
    assert_eq!(run.reported(), ["in_flight undecided 2"]);
}

/// A server that sends more than it announced, but only when the next request has come. If this fails, these bytes have
/// another outcome or reason than those that come with the response.
#[test]
fn bytes_that_come_later_than_the_response_fail_the_next_request() {
    let _turn = turn::together();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        for _ in 0..3 {
            let (mut stream, _) = listener.accept().unwrap();
            read_request(&mut stream);
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
            read_request(&mut stream);
            stream.write_all(b"more").unwrap();
            let _ = stream.read(&mut [0; 64]);
        }
    });
    let run = drive(&["-n", "6", "-c", "1", &url]);
    assert_eq!(run.reported(), ["ok - 3", "protocol_error server 3"]);
    assert_eq!(run.reasons(), ["protocol_error bytes after the response 3"]);
    server.join().unwrap();
}

fn read_request(stream: &mut TcpStream) {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        request.extend(byte);
    }
}
