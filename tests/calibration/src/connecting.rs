//! Requests that never get a connection: nothing listens, nothing accepts, no such name.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use units::Nanos;

use crate::drive::drive;
use crate::expect::End;
use crate::quiet;
use crate::serve::Serve;

const REFUSED: End = ("connect_refused", "connect", "server");
const NO_ANSWER: End = ("connect_timeout", "connect", "undecided");
const NO_NAME: End = ("resolve_failed", "resolve", "network");
const SILENCE: End = ("request_timeout", "wait", "server");

/// A port that is bound, so that nothing else takes it while the socket exists; nothing listens on it.
pub fn closed_port() -> (OwnedFd, u16) {
    let holder = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&holder, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&holder).unwrap()).unwrap();
    (holder, address.port())
}

#[test]
fn a_port_without_a_listener() {
    let _together = quiet::together();
    let (_holder, port) = closed_port();
    let url = format!("http://127.0.0.1:{port}/");
    for load in [
        &["-c", "4", "-n", "100"][..],
        &["-c", "4", "-r", "200/s", "-d", "500ms"],
        &["-c", "4", "-n", "100", "--pipeline", "4"],
        &["-c", "5", "-w", "2", "-n", "100"],
    ] {
        let run = drive(load, &url);
        run.expect(&[(REFUSED, 100)]);
        run.expect_exit(4);
        assert_eq!(run.recording.total.counts.sent, 0, "{}", run.line);
    }
}

/// If this fails, a typo in a port costs the whole length of a run; or a slow server ends one.
#[test]
fn a_run_that_can_reach_nothing_ends_after_a_second() {
    let _together = quiet::together();
    let (_holder, port) = closed_port();
    let url = format!("http://127.0.0.1:{port}/");
    for load in
        [&["-c", "4", "-d", "30s"][..], &["-r", "20/s", "-d", "30s"], &["-c", "4", "-w", "2", "-d", "30s"]]
    {
        let run = drive(load, &url);
        run.expect_exit(4);
        let elapsed = Nanos(run.recording.document.time.elapsed_ns.unwrap());
        assert!(elapsed < Nanos::from_secs(10), "{}: {elapsed}", run.line);
        assert_eq!(run.stdout, "", "{}: one line on standard error is all", run.line);
        let event = run.recording.events.iter().find(|event| event.kind == "unreachable").unwrap();
        assert!(event.text.contains(&format!("connection refused by 127.0.0.1:{port}")), "{}", event.text);
    }
    let kept = drive(&["-c", "1", "-d", "2500ms", "--keep-trying"], &url);
    kept.expect_exit(4);
    assert_eq!(kept.recording.document.time.window_ns, Some(2_500_000_000));
}

/// A server that is slower than a second is not one that cannot be reached.
#[test]
fn a_connection_that_waits_for_its_response_does_not_end_a_run() {
    let _together = quiet::together();
    let serve = Serve::start(&[]);
    let run = drive(&["-c", "2", "-n", "2"], &serve.url("/delay/2"));
    assert_eq!(run.recording.total.counts.ok, 2, "{}", run.line);
}

/// A backlog of 1 holds two connections that are never accepted (Linux takes one more than requested). Requests on
/// those are sent and acknowledged but get no response; the client closes them, but they stay in the backlog. All other
/// connects get no reply.
#[test]
fn a_listener_whose_backlog_is_full() {
    let _together = quiet::together();
    for load in [&["-c", "8", "-n", "24"][..], &["-c", "8", "-r", "40/s", "-n", "24"]] {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 1).unwrap();
        let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        let limits = ["--connect-timeout", "300ms", "--timeout", "300ms"];
        let run = drive(&[load, &limits].concat(), &format!("http://{address}/"));
        run.expect(&[(SILENCE, 2), (NO_ANSWER, 22)]);
        run.expect_exit(3);
        let counts = run.recording.total.counts;
        assert_eq!((counts.sent, counts.connections_opened), (2, 2), "{}", run.line);
    }
}

/// The same, with the backlog filled by others: this client reaches nothing.
#[test]
fn a_listener_whose_backlog_others_filled() {
    let _together = quiet::together();
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&listener, 1).unwrap();
    let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
    let _others = [0, 1].map(|_| std::net::TcpStream::connect(address).unwrap());
    let run = drive(&["-c", "4", "-n", "8", "--connect-timeout", "300ms"], &format!("http://{address}/"));
    run.expect(&[(NO_ANSWER, 8)]);
    run.expect_exit(4);
}

/// `.invalid` is guaranteed never to exist (RFC 6761, 6.4). Without a network the lookup fails as well.
#[test]
fn a_name_that_does_not_resolve() {
    let _together = quiet::together();
    let url = "http://no-such-host.invalid/";
    for load in [
        &["-c", "4", "-n", "8"][..],
        &["-c", "4", "-r", "100/s", "-n", "8"],
        &["-c", "2", "-n", "8", "--pipeline", "4"],
    ] {
        let run = drive(load, url);
        run.expect(&[(NO_NAME, 8)]);
        run.expect_exit(4);
    }
}

/// A server that accepts and closes before it has read anything: broken, but not refusing.
#[test]
fn an_accepting_socket_that_closes_at_once() {
    let _together = quiet::together();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let acceptor = std::thread::spawn(move || {
        for _ in 0..50 {
            drop(listener.accept().unwrap());
        }
    });
    let run = drive(&["-c", "1", "-n", "50"], &url);
    acceptor.join().unwrap();
    // A close with nothing read ends in a FIN; with the request unread, in a reset. Both happen, depending on whether
    // the request came before the close.
    let ends = run.ends();
    let closed = ends.iter().filter(|((outcome, _, blame), _)| {
        ["closed_before_response", "reset"].contains(outcome) && *blame == "server"
    });
    assert_eq!(closed.map(|(_, count)| count).sum::<u64>(), 50, "{}: {ends:?}", run.line);
    run.expect_exit(3);
}
