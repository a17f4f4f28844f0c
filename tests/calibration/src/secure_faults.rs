//! Each fault of a server over TLS, in its handshake and in HTTP/1.1 over it: the right outcome, phase, blame and
//! reason for every single request, and as many as the server reports.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::certificates::{Authority, ClientCertificate};
use crate::drive::{Run, drive};
use crate::expect::{End, OK};
use crate::quiet;
use crate::scripted::{Peer, Script, Scripted};

const CLOSED: End = ("closed_before_response", "wait", "server");
const INCOMPLETE: End = ("incomplete_response", "receive", "server");
const RESET: End = ("reset", "wait", "server");
const RESET_WITHIN: End = ("reset", "receive", "server");
const MALFORMED: End = ("protocol_error", "receive", "server");
const SILENCE: End = ("request_timeout", "wait", "server");
const UNAVAILABLE: End = ("app_error", "receive", "server");
const UNEXPECTED: End = ("check_failed", "receive", "server");
const REFUSED: End = ("connect_refused", "connect", "server");
const NO_TLS: End = ("tls_failed", "tls", "server");
const SILENT_TLS: End = ("connect_timeout", "tls", "undecided");

const CLOSED_LOOP: &[&str] = &["-c", "4", "-n", "40"];
const OPEN_LOOP: &[&str] = &["-c", "4", "-r", "200/s", "-n", "40"];
const TWO_WORKERS: &[&str] = &["-c", "5", "-w", "2", "-n", "40"];
const LOADS: [&[&str]; 3] = [CLOSED_LOOP, OPEN_LOOP, TWO_WORKERS];
/// No response takes its time: all requests meet it concurrently.
const SIDE_BY_SIDE: [&[&str]; 2] = [&["-c", "20", "-n", "40"], &["-c", "20", "-r", "200/s", "-n", "40"]];
const REQUESTS: u64 = 40;

const FAR: i32 = 2100;

/// `https://localhost` on this port, without a name lookup.
fn over_tls(load: &[&str], options: &[&str], port: u16) -> Run {
    let resolve = format!("localhost:{port}:127.0.0.1");
    drive(&[load, options, &["--resolve", &resolve]].concat(), &format!("https://localhost:{port}/"))
}

fn usual(authority: &Authority) -> Arc<ServerConfig> {
    authority.server(FAR, &["http/1.1"], ClientCertificate::NotAsked)
}

/// Why requests failed, as `outcome: reason`, with counts.
fn reasons(run: &Run) -> Vec<(String, u64)> {
    let rows = run.results().reasons.iter();
    rows.map(|row| (format!("{}: {}", row.outcome, row.reason), row.count)).collect()
}

/// Every handshake fails with `end`, for this reason.
#[track_caller]
fn check_handshake(server: &Scripted, loads: &[&[&str]], options: &[&str], end: End, reason: Option<&str>) {
    for load in loads {
        let before = server.connections();
        let run = over_tls(load, options, server.port());
        run.expect(&[(end, REQUESTS)]);
        // As far as requests are concerned, nothing could be reached.
        run.expect_exit(4);
        let reported = reason.map(|reason| (format!("{}: {reason}", end.0), REQUESTS));
        assert_eq!(reasons(&run), reported.into_iter().collect::<Vec<_>>(), "{}", run.line);
        let counts = run.recording.total.counts;
        assert_eq!(counts.connections_opened, REQUESTS, "{}", run.line);
        assert_eq!(server.connections() - before, REQUESTS, "{}", run.line);
        assert_eq!(server.requests(), 0, "{}", run.line);
    }
}

/// A server without TLS, which runs `script` once the client's hello has arrived.
#[track_caller]
fn check_hello(script: Script, options: &[&str], end: End, reason: Option<&str>) {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let server = Scripted::start(None, script);
    let ca = authority.path("ca.pem");
    let options = [&["--cacert", &ca], options].concat();
    let loads = if end == SILENT_TLS { &SIDE_BY_SIDE[..] } else { &LOADS };
    check_handshake(&server, loads, &options, end, reason);
}

#[test]
fn a_handshake_refused_by_an_alert() {
    let script: Script = |peer| {
        peer.fill()?;
        // RFC 8446, 6: a fatal alert, handshake_failure.
        peer.write(&[21, 3, 3, 0, 2, 2, 40])?;
        peer.cut()
    };
    check_hello(script, &[], NO_TLS, Some("alert received: handshake failure"));
}

#[test]
fn a_close_within_the_handshake() {
    let script: Script = |peer| {
        peer.fill()?;
        peer.cut()
    };
    check_hello(script, &[], NO_TLS, Some("the server closed the connection"));
}

#[test]
fn a_reset_within_the_handshake() {
    let script: Script = |peer| {
        peer.fill()?;
        peer.reset()
    };
    check_hello(script, &[], NO_TLS, Some("the server reset the connection"));
}

#[test]
fn a_server_that_is_silent_in_the_handshake() {
    check_hello(|peer| peer.hold(), &["--connect-timeout", "300ms"], SILENT_TLS, None);
}

#[test]
fn a_server_that_does_not_speak_tls() {
    let script: Script = |peer| {
        peer.fill()?;
        peer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
        peer.cut()
    };
    check_hello(script, &[], NO_TLS, Some("the server does not speak TLS on this port"));
}

/// Responds to every request.
fn answers(peer: &mut Peer) -> io::Result<()> {
    loop {
        peer.request()?;
        peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
        peer.note_answered();
    }
}

#[test]
fn untrusted_certificates_are_accepted_with_insecure_only() {
    let _together = quiet::together();
    let (authority, other) = (Authority::new("ours"), Authority::new("theirs"));
    let (ca, unknown) = (authority.path("ca.pem"), other.path("ca.pem"));
    for (year, options, reason) in [
        (2021, &["--cacert", &ca][..], "certificate expired"),
        (FAR, &["--cacert", &unknown], "certificate from an unknown issuer"),
        (FAR, &["--cacert", &ca, "--sni", "other.example"], "certificate for another name"),
    ] {
        let tls = authority.server(year, &["http/1.1"], ClientCertificate::NotAsked);
        let server = Scripted::start(Some(tls), answers);
        check_handshake(&server, &LOADS, options, NO_TLS, Some(reason));
        assert_eq!(server.handshakes(), 0, "{reason}");
        let sni = options.iter().position(|option| *option == "--sni").map_or(&[][..], |at| &options[at..]);
        let run = over_tls(CLOSED_LOOP, &[&["-k"], sni].concat(), server.port());
        run.expect(&[(OK, REQUESTS)]);
        assert_eq!((server.handshakes(), server.requests(), server.answered()), (4, 40, 40), "{reason}");
    }
}

/// With TLS 1.3 the client finishes its handshake, and sends its request, before it receives the rejection.
#[test]
fn a_client_certificate_that_is_missing() {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let tls = authority.server(FAR, &["http/1.1"], ClientCertificate::Required);
    let server = Scripted::start(Some(tls), answers);
    let ca = authority.path("ca.pem");
    for version in ["1.3", "1.2"] {
        let options = ["--cacert", &ca, "--tls-version", version];
        check_handshake(&server, &LOADS, &options, NO_TLS, Some("alert received: certificate required"));
        assert_eq!(server.handshakes(), 0, "{version}");
    }
    let (certificate, key) = (authority.path("client.pem"), authority.path("client.key"));
    let options = ["--cacert", &ca, "--cert", &certificate, "--key", &key];
    let run = over_tls(CLOSED_LOOP, &options, server.port());
    run.expect(&[(OK, REQUESTS)]);
    assert_eq!((server.handshakes(), server.answered()), (4, REQUESTS));
}

#[test]
fn a_server_without_the_protocol_that_was_asked_for() {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let ca = authority.path("ca.pem");
    for (alpn, reason) in [
        (&["http/1.1"][..], "alert received: no application protocol"),
        (&[], "ALPN: the server did not choose HTTP/2"),
    ] {
        let tls = authority.server(FAR, alpn, ClientCertificate::NotAsked);
        let server = Scripted::start(Some(tls), answers);
        check_handshake(&server, &LOADS, &["--cacert", &ca, "--http", "2"], NO_TLS, Some(reason));
    }
}

/// HTTP/1.1 over TLS: each connection has one request, and ends with the fault.
#[track_caller]
fn check(script: Script, end: End, options: &[&str]) {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let ca = authority.path("ca.pem");
    let loads = if end == SILENCE { &SIDE_BY_SIDE[..] } else { &LOADS };
    for load in loads {
        let server = Scripted::start(Some(usual(&authority)), script);
        let run = over_tls(load, &[&["--http", "1.1", "--cacert", &ca], options].concat(), server.port());
        run.expect(&[(end, REQUESTS)]);
        run.expect_exit(3);
        let counts = run.recording.total.counts;
        assert_eq!(counts.sent, REQUESTS, "{}", run.line);
        let seen = [server.requests(), server.connections(), server.handshakes(), server.faults()];
        let own = [REQUESTS, counts.connections_opened, counts.connections_opened, REQUESTS];
        assert_eq!(seen, own, "{}", run.line);
    }
}

#[test]
fn a_close_without_a_response() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.close()
        },
        CLOSED,
        &[],
    );
}

#[test]
fn an_end_without_a_response_and_without_a_tls_close() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.cut()
        },
        CLOSED,
        &[],
    );
}

#[test]
fn a_body_shorter_than_announced() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")?;
            peer.close()
        },
        INCOMPLETE,
        &[],
    );
}

/// An attacker who cuts the connection would decide where such a body ends: TLS shows whether it was the server.
#[test]
fn a_body_that_ends_with_the_connection_and_is_cut() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.write(b"HTTP/1.1 200 OK\r\n\r\nabc")?;
            peer.cut()
        },
        INCOMPLETE,
        &[],
    );
}

#[test]
fn a_reset_without_a_response() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.reset()
        },
        RESET,
        &[],
    );
}

#[test]
fn a_reset_within_the_body() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")?;
            peer.let_it_be_read();
            peer.reset()
        },
        RESET_WITHIN,
        &[],
    );
}

#[test]
fn no_response_at_all() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.hold()
        },
        SILENCE,
        &["--timeout", "300ms"],
    );
}

#[test]
fn bytes_that_are_not_a_response() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.write(b"\x00\x01\x02 garbage\r\n\r\n")?;
            peer.close()
        },
        MALFORMED,
        &[],
    );
}

/// A record that was altered in transit, or forged.
#[test]
fn a_record_that_does_not_decrypt() {
    check(
        |peer| {
            peer.request()?;
            peer.note_faults(1);
            peer.write_raw(&[&[23, 3, 3, 0, 32][..], &[0x55; 32]].concat())?;
            peer.cut()
        },
        MALFORMED,
        &[],
    );
}

/// An error response is a response: the connection is kept.
#[track_caller]
fn answered(script: Script, end: End, options: &[&str]) {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let ca = authority.path("ca.pem");
    for load in LOADS {
        let server = Scripted::start(Some(usual(&authority)), script);
        let run = over_tls(load, &[&["--http", "1.1", "--cacert", &ca], options].concat(), server.port());
        run.expect(&[(end, REQUESTS)]);
        run.expect_exit(3);
        assert_eq!((server.requests(), server.answered()), (REQUESTS, REQUESTS), "{}", run.line);
        let opened = run.recording.total.counts.connections_opened;
        assert_eq!((server.connections(), server.handshakes()), (opened, opened), "{}", run.line);
        assert!(opened <= 5, "{}: {opened} connections", run.line);
    }
}

#[test]
fn a_status_that_is_an_error() {
    answered(
        |peer| {
            loop {
                peer.request()?;
                peer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")?;
                peer.note_answered();
            }
        },
        UNAVAILABLE,
        &[],
    );
}

#[test]
fn a_check_that_does_not_hold() {
    answered(answers, UNEXPECTED, &["--expect-body-contains", "Good-bye"]);
}

#[test]
fn a_port_without_a_listener() {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let ca = authority.path("ca.pem");
    let (_holder, port) = crate::connecting::closed_port();
    for http in ["1.1", "2"] {
        for load in LOADS {
            let run = over_tls(load, &["--cacert", &ca, "--http", http], port);
            run.expect(&[(REFUSED, REQUESTS)]);
            run.expect_exit(4);
        }
    }
}
