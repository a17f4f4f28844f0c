//! Each fault of a server that uses HTTP/2, with and without TLS: of its streams and of its connections. The right
//! outcome, phase and blame for every single request, and as many as the server reports.

use std::io;

use record::Phase;
use units::Nanos;

use crate::certificates::{Authority, ClientCertificate};
use crate::connecting::closed_port;
use crate::drive::{Run, drive, quantile};
use crate::expect::{End, OK};
use crate::quiet;
use crate::scripted::{Peer, Script, Scripted};
use crate::scripted_http2::{
    ALL_STREAMS, DATA, INTERNAL_ERROR, NO_ERROR, OK_AND_TEN_BYTES, REFUSED_STREAM, UNAVAILABLE, data, frame,
    go_away, head, last_data, last_head, reset,
};

const CLOSED: End = ("closed_before_response", "wait", "server");
const INCOMPLETE: End = ("incomplete_response", "receive", "server");
const RESET: End = ("reset", "wait", "server");
const RESET_WITHIN: End = ("reset", "receive", "server");
const MALFORMED: End = ("protocol_error", "receive", "server");
const SILENCE: End = ("request_timeout", "wait", "server");
const APP_ERROR: End = ("app_error", "receive", "server");
const UNEXPECTED: End = ("check_failed", "receive", "server");
const REFUSED: End = ("connect_refused", "connect", "server");

/// One stream at a time: nothing can come between a request and its fault.
const ONE_BY_ONE: [&[&str]; 3] =
    [&["-c", "4", "-n", "40"], &["-c", "4", "-r", "200/s", "-n", "40"], &["-c", "5", "-w", "2", "-n", "40"]];
/// Ten at once on one connection.
const TOGETHER: [&[&str]; 2] =
    [&["-c", "1", "--streams", "10", "-n", "40"], &["-c", "1", "--streams", "10", "-r", "400/s", "-n", "40"]];
const REQUESTS: u64 = 40;

/// How many streams a server allows at once, unless its script tests that.
const STREAMS: u32 = 100;

/// No response takes its time: all requests meet it concurrently.
const SIDE_BY_SIDE: [&[&str]; 2] = [&["-c", "20", "-n", "40"], &["-c", "20", "-r", "200/s", "-n", "40"]];

/// Runs `server` with `script` and each load, with and without TLS, and checks each run.
fn each(script: Script, loads: &[&[&str]], options: &[&str], look: impl Fn(&Run, &Scripted)) {
    let _together = quiet::together();
    let authority = Authority::new("ours");
    let ca = authority.path("ca.pem");
    let tls = authority.server(2100, &["h2"], ClientCertificate::NotAsked);
    for load in loads {
        let server = Scripted::start(None, script);
        let url = format!("http://127.0.0.1:{}/", server.port());
        look(&drive(&[load, options, &["--http", "h2c"]].concat(), &url), &server);

        let server = Scripted::start(Some(tls.clone()), script);
        let port = server.port();
        let resolve = format!("localhost:{port}:127.0.0.1");
        let secure = ["--http", "2", "--cacert", &ca, "--resolve", &resolve];
        let run = drive(&[load, options, &secure].concat(), &format!("https://localhost:{port}/"));
        look(&run, &server);
        assert_eq!(server.handshakes(), server.connections(), "{}", run.line);
    }
}

/// Requests, responses, faults and connections, as counted by both sides.
#[track_caller]
fn check_counts(run: &Run, server: &Scripted, answered: u64) {
    let counts = run.recording.total.counts;
    let seen = [server.requests(), server.answered(), server.faults(), server.connections()];
    let own = [counts.sent, answered, REQUESTS - answered, counts.connections_opened];
    assert_eq!(seen, own, "{}", run.line);
    assert_eq!(counts.sent, REQUESTS, "{}", run.line);
}

/// Every request meets the fault, one at a time.
#[track_caller]
fn check_alone(script: Script, end: End, loads: &[&[&str]], options: &[&str]) {
    each(script, loads, options, |run, server| {
        run.expect(&[(end, REQUESTS)]);
        run.expect_exit(3);
        check_counts(run, server, 0);
    });
}

/// Ten requests are in flight on each connection when the fault comes.
#[track_caller]
fn check_together(script: Script, ends: &[(End, u64)], options: &[&str]) {
    let ok = ends.iter().find(|(end, _)| *end == OK).map_or(0, |(_, count)| *count);
    each(script, &TOGETHER, options, |run, server| {
        run.expect(ends);
        if ok == 0 {
            run.expect_exit(3);
        }
        check_counts(run, server, ok);
        assert_eq!(server.connections(), REQUESTS / 10, "{}", run.line);
    });
}

/// Responds to one request after the other with `each`.
fn one_by_one(peer: &mut Peer, each: fn(&mut Peer, u32) -> io::Result<()>) -> io::Result<()> {
    peer.begin_http2(STREAMS)?;
    loop {
        let stream = peer.stream()?;
        each(peer, stream)?;
    }
}

fn fault(peer: &mut Peer, frames: &[u8]) -> io::Result<()> {
    peer.note_faults(1);
    peer.write(frames)
}

// One stream fails, and its connection continues.

/// Every fifth stream meets the fault, among others that get their responses.
#[track_caller]
fn check_among_others(script: Script, end: End) {
    let fifth = REQUESTS / 5;
    each(script, &TOGETHER, &[], |run, server| {
        run.expect(&[(OK, REQUESTS - fifth), (end, fifth)]);
        check_counts(run, server, REQUESTS - fifth);
        assert_eq!(server.connections(), 1, "{}", run.line);
    });
    // The client chooses how they are spread over four connections.
    each(script, &ONE_BY_ONE[..1], &[], |run, server| {
        let faults = server.faults();
        assert!(faults > 0, "{}", run.line);
        run.expect(&[(OK, REQUESTS - faults), (end, faults)]);
        check_counts(run, server, REQUESTS - faults);
        assert_eq!(server.connections(), 4, "{}", run.line);
    });
}

/// Streams are numbered 1, 3, 5 and so on: every fifth has a number that ends in 9.
fn every_fifth(peer: &mut Peer, fifth: fn(u32) -> Vec<u8>) -> io::Result<()> {
    peer.begin_http2(STREAMS)?;
    loop {
        match peer.stream()? {
            stream if stream % 10 == 9 => fault(peer, &fifth(stream))?,
            stream => peer.answer(stream)?,
        }
    }
}

#[test]
fn a_stream_that_the_server_resets() {
    check_among_others(|peer| every_fifth(peer, |stream| reset(stream, INTERNAL_ERROR)), RESET);
}

#[test]
fn a_stream_that_the_server_refuses() {
    check_among_others(|peer| every_fifth(peer, |stream| reset(stream, REFUSED_STREAM)), CLOSED);
}

#[test]
fn a_stream_that_is_reset_within_its_response() {
    let script: Script = |peer| {
        every_fifth(peer, |stream| {
            [head(stream, OK_AND_TEN_BYTES), data(stream, b"abc"), reset(stream, INTERNAL_ERROR)].concat()
        })
    };
    check_among_others(script, RESET_WITHIN);
}

#[test]
fn a_stream_that_ends_before_its_announced_length() {
    let script: Script = |peer| {
        every_fifth(peer, |stream| [head(stream, OK_AND_TEN_BYTES), last_data(stream, b"abc")].concat())
    };
    check_among_others(script, INCOMPLETE);
}

/// Such a response is malformed (RFC 9113, 8.1.1), but none of its body was cut off.
#[test]
fn a_head_that_announces_a_body_and_ends_the_stream() {
    check_among_others(|peer| every_fifth(peer, |stream| last_head(stream, OK_AND_TEN_BYTES)), MALFORMED);
}

#[test]
fn a_status_that_is_an_error() {
    let script: Script = |peer| every_fifth(peer, |stream| last_head(stream, UNAVAILABLE));
    check_among_others(script, APP_ERROR);
}

#[test]
fn a_check_that_does_not_hold() {
    let script: Script = |peer| one_by_one(peer, |peer, stream| peer.answer(stream));
    let check = ["--expect-body-contains", "Good-bye"];
    for loads in [&ONE_BY_ONE[..], &TOGETHER] {
        each(script, loads, &check, |run, server| {
            run.expect(&[(UNEXPECTED, REQUESTS)]);
            run.expect_exit(3);
            assert_eq!((server.requests(), server.answered()), (REQUESTS, REQUESTS), "{}", run.line);
        });
    }
}

// The connection fails, and everything on it.

#[test]
fn a_close_without_a_response() {
    check_alone(
        |peer| {
            one_by_one(peer, |peer, _| {
                peer.note_faults(1);
                peer.close()
            })
        },
        CLOSED,
        &ONE_BY_ONE,
        &[],
    );
}

#[test]
fn a_reset_without_a_response() {
    check_alone(
        |peer| {
            peer.begin_http2(STREAMS)?;
            peer.stream()?;
            peer.note_faults(1);
            // The client must have read the settings; whether they arrive with the reset would be irrelevant.
            peer.let_it_be_read();
            peer.reset()
        },
        RESET,
        &ONE_BY_ONE,
        &[],
    );
}

#[test]
fn no_response_at_all() {
    check_alone(
        |peer| {
            // A request that was given up makes room for the next one on the same connection.
            one_by_one(peer, |peer, _| {
                peer.note_faults(1);
                Ok(())
            })
        },
        SILENCE,
        &SIDE_BY_SIDE,
        &["--timeout", "300ms"],
    );
}

#[test]
fn no_response_to_any_of_ten() {
    let script: Script = |peer| {
        one_by_one(peer, |peer, _| {
            peer.note_faults(1);
            Ok(())
        })
    };
    each(script, &TOGETHER, &["--timeout", "300ms"], |run, server| {
        run.expect(&[(SILENCE, REQUESTS)]);
        check_counts(run, server, 0);
        assert_eq!(server.connections(), 1, "{}", run.line);
    });
}

/// Only the first gets no response, and nothing else is in flight when its timeout expires.
#[test]
fn no_response_to_the_first_of_many() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        peer.stream()?;
        peer.note_faults(1);
        loop {
            let stream = peer.stream()?;
            peer.answer(stream)?;
        }
    };
    each(script, &TOGETHER, &["--timeout", "300ms"], |run, server| {
        run.expect(&[(OK, REQUESTS - 1), (SILENCE, 1)]);
        check_counts(run, server, REQUESTS - 1);
        assert_eq!(server.connections(), 1, "{}", run.line);
    });
}

#[test]
fn a_close_within_a_response() {
    let script: Script = |peer| {
        one_by_one(peer, |peer, stream| {
            fault(peer, &[head(stream, OK_AND_TEN_BYTES), data(stream, b"abc")].concat())?;
            peer.close()
        })
    };
    check_alone(script, INCOMPLETE, &ONE_BY_ONE, &[]);
}

/// The oldest response was in progress; not one byte had arrived for the others.
#[test]
fn a_close_in_the_middle_of_ten() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        let streams = peer.streams(10)?;
        peer.note_faults(10);
        peer.write(&[head(streams[0], OK_AND_TEN_BYTES), data(streams[0], b"abc")].concat())?;
        peer.close()
    };
    check_together(script, &[(INCOMPLETE, 4), (CLOSED, 36)], &[]);
}

/// A response other than the oldest was in progress: each request is counted by what arrived for it.
#[test]
fn a_close_within_the_response_to_the_last_of_ten() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        let streams = peer.streams(10)?;
        peer.note_faults(10);
        peer.write(&[head(streams[9], OK_AND_TEN_BYTES), data(streams[9], b"abc")].concat())?;
        peer.close()
    };
    check_together(script, &[(INCOMPLETE, 4), (CLOSED, 36)], &[]);
}

#[test]
fn a_beginning_that_is_not_http2() {
    let script: Script = |peer| {
        peer.fill()?;
        peer.note_request();
        fault(peer, b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
        peer.close()
    };
    check_alone(script, MALFORMED, &ONE_BY_ONE, &[]);
}

/// DATA on stream 0, which has none (RFC 9113, 6.1).
#[test]
fn a_frame_where_none_is_allowed() {
    let script: Script = |peer| {
        one_by_one(peer, |peer, _| {
            fault(peer, &frame(DATA, 0, 0, b"abc"))?;
            peer.close()
        })
    };
    check_alone(script, MALFORMED, &ONE_BY_ONE, &[]);
}

#[test]
fn a_head_that_cannot_be_decompressed() {
    let script: Script = |peer| {
        one_by_one(peer, |peer, stream| {
            // Entry 127 of a table that has only 61 (RFC 7541, 2.3.3).
            fault(peer, &head(stream, &[0xff, 0x00]))?;
            peer.close()
        })
    };
    check_alone(script, MALFORMED, &ONE_BY_ONE, &[]);
}

#[test]
fn a_malformed_frame_in_the_middle_of_ten() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        peer.streams(10)?;
        peer.note_faults(10);
        peer.write(&frame(DATA, 0, 0, b"abc"))?;
        peer.close()
    };
    check_together(script, &[(MALFORMED, 4), (CLOSED, 36)], &[]);
}

/// Half have numbers up to the one that the server names, and get responses; the server has not processed the others.
#[test]
fn a_server_that_goes_away_from_half_of_its_streams() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        let streams = peer.streams(10)?;
        peer.write(&go_away(streams[4], NO_ERROR))?;
        peer.note_faults(5);
        for stream in &streams[..5] {
            peer.answer(*stream)?;
        }
        peer.close()
    };
    check_together(script, &[(OK, 20), (CLOSED, 20)], &[]);
}

/// A server that ends its connections now and then causes no failures.
#[test]
fn a_server_that_goes_away_but_responds_to_all() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        let streams = peer.streams(10)?;
        peer.write(&go_away(ALL_STREAMS, NO_ERROR))?;
        for stream in streams {
            peer.answer(stream)?;
        }
        peer.write(&go_away(ALL_STREAMS, NO_ERROR))?;
        peer.close()
    };
    check_together(script, &[(OK, REQUESTS)], &[]);
}

#[test]
fn a_server_that_goes_away_with_an_error() {
    let script: Script = |peer| {
        peer.begin_http2(STREAMS)?;
        peer.streams(10)?;
        peer.note_faults(10);
        peer.write(&go_away(0, INTERNAL_ERROR))?;
        peer.close()
    };
    check_together(script, &[(CLOSED, REQUESTS)], &[]);
}

#[test]
fn a_port_without_a_listener() {
    let _together = quiet::together();
    let (_holder, port) = closed_port();
    for load in ONE_BY_ONE.iter().chain(&TOGETHER) {
        let run = drive(&[load, &["--http", "h2c"][..]].concat(), &format!("http://127.0.0.1:{port}/"));
        run.expect(&[(REFUSED, REQUESTS)]);
        run.expect_exit(4);
    }
}

// A limit is not a fault.

/// How long the server below takes for each.
const SERVICE: Nanos = Nanos::from_millis(5);

/// Ten virtual users share a connection with one stream: nine wait while one is served, and none is refused.
#[test]
fn a_server_that_allows_one_stream_at_a_time() {
    let script: Script = |peer| {
        peer.begin_http2(1)?;
        loop {
            let stream = peer.stream()?;
            let served = clock::now() + SERVICE;
            // A request that comes before the response exceeds the limit.
            peer.give_up_reading_after(Some(SERVICE));
            if peer.stream().is_ok() {
                peer.note_faults(1);
            }
            peer.give_up_reading_after(None);
            clock::sleep_until(served);
            peer.answer(stream)?;
        }
    };
    each(script, &TOGETHER[..1], &[], |run, server| {
        run.expect(&[(OK, REQUESTS)]);
        check_counts(run, server, REQUESTS);
        assert_eq!(server.connections(), 1, "{}", run.line);
        // All but the first ten come back while nine others wait, each of which is served for at least this long.
        let waited = run.phase(Phase::PoolWait);
        assert!(quantile(waited, 500) >= Nanos(9 * SERVICE.0), "{}: {:?}", run.line, quantile(waited, 500));
    });
}
