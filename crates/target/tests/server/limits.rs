//! What a client may not do, and the server's response; and the messages when the server cannot start.

use std::net::TcpListener;

use target::{Freeze, Limits, Options, Server, StartError};
use units::{Bytes, Nanos};

use crate::client::{Client, End, get, start};

fn refused(server: &Server, bytes: &[u8], status: u16) {
    let mut client = Client::connect(server.local_addr());
    client.send(bytes);
    let response = client.response();
    assert_eq!(response.status, status, "{:.60}", String::from_utf8_lossy(bytes));
    assert!(response.head.contains("Connection: close"));
    // The client may keep sending; the response must not be lost to a reset.
    assert_eq!(client.rest(), (vec![], End::Fin));
}

#[test]
fn what_is_not_a_request_is_refused_and_closed() {
    let server = start();
    let host = "Host: a\r\n";
    refused(&server, b"\x16\x03\x01\x02\x00 this is a TLS hello\r\n\r\n", 400);
    refused(&server, b"GET / HTTP/1.1\r\n\r\n", 400);
    refused(&server, format!("POST / HTTP/1.1\r\n{host}Content-Length: x\r\n\r\n").as_bytes(), 400);
    refused(&server, format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(17_000)).as_bytes(), 431);
    refused(&server, format!("GET / HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(200)).as_bytes(), 431);
    let body = vec![b'x'; 200_000];
    let head = format!("POST /echo HTTP/1.1\r\n{host}Content-Length: 1048577\r\n\r\n");
    refused(&server, &[head.as_bytes(), &body].concat(), 413);
    refused(&server, format!("POST / HTTP/1.1\r\n{host}Content-Length: 67108865\r\n\r\n").as_bytes(), 413);
    refused(&server, b"GET / HTTP/9.9\r\n\r\n", 505);
    let truth = server.stop();
    assert_eq!([400, 413, 431, 505].map(|status| truth.refusals_with(status)), [3, 2, 2, 1]);
    assert_eq!((truth.requests(), truth.responses(), truth.response().count()), (0, 0, 0));
}

#[test]
fn a_refusal_waits_for_the_responses_ahead_of_it() {
    let server = start();
    let mut client = Client::connect(server.local_addr());
    client.send([get("/delay?ms=20"), "nonsense\r\n\r\n".to_owned(), get("/json")].concat());
    assert_eq!((client.response().status, client.response().status), (200, 400));
    assert_eq!(client.rest(), (vec![], End::Fin));
}

#[test]
fn slow_requests_time_out_and_idle_connections_do_not() {
    let limits = Limits { request_time: Nanos::from_millis(100), ..Limits::default() };
    let server = Server::start(Options { limits, ..Options::default() }).unwrap();
    let mut idle = Client::connect(server.local_addr());
    assert_eq!(idle.get("/plaintext").status, 200);
    for part in ["GET /plain", "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel"] {
        let began = clock::now();
        refused(&server, part.as_bytes(), 408);
        let took = clock::now() - began;
        assert!(took >= Nanos::from_millis(100), "{took}");
    }
    assert_eq!(idle.get("/plaintext").status, 200);
}

#[test]
fn connections_over_the_limit_are_turned_away() {
    let server = Server::start(Options { max_connections: 1, ..Options::default() }).unwrap();
    let mut first = Client::connect(server.local_addr());
    assert_eq!(first.get("/plaintext").status, 200);
    let mut second = Client::connect(server.local_addr());
    assert_eq!(second.response().status, 503);
    assert_eq!(first.get("/plaintext").status, 200);
    assert_eq!(server.stop().connections().refused, 1);
}

#[test]
fn small_limits_hold() {
    let limits = Limits { head: Bytes(64), body: Bytes(4), ..Limits::default() };
    let server = Server::start(Options { limits, ..Options::default() }).unwrap();
    refused(&server, &[b"GET / HTTP/1.1\r\nHost: a\r\nX: ", [b'x'; 40].as_slice()].concat(), 431);
    refused(&server, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 413);
}

#[test]
fn errors_at_the_start_contain_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    for threads in [1, 2] {
        let options = Options { listen: address, threads, ..Options::default() };
        let error = Server::start(options).err().unwrap();
        assert!(matches!(error, StartError::AddressInUse { .. }), "{error}");
        assert!(error.to_string().starts_with(&format!("cannot listen on {address}: it is in use;")));
    }
    // A server with several threads shares its port among them, not with a second server.
    let several = Server::start(Options { threads: 2, ..Options::default() }).unwrap();
    let again = Options { listen: several.local_addr(), threads: 2, ..Options::default() };
    assert!(matches!(Server::start(again).err().unwrap(), StartError::AddressInUse { .. }));
    let nowhere = Options { listen: "192.0.2.1:0".parse().unwrap(), ..Options::default() };
    assert!(matches!(Server::start(nowhere).err().unwrap(), StartError::NoSuchAddress { .. }));
    let freeze = Freeze { length: Nanos(5), every: Nanos(5), first: Nanos(0), count: None };
    let endless = Options { freeze: Some(freeze), ..Options::default() };
    assert!(matches!(Server::start(endless).err().unwrap(), StartError::BadOption { option: "freeze", .. }));
}
