//! Transcripts of real servers. `crates/codec/testdata/README.md` describes how each was captured.

use super::*;

/// A transcript, the methods of its requests, and the expected result.
struct Golden {
    name: &'static str,
    bytes: &'static [u8],
    methods: &'static [&'static str],
    endings: Vec<Ending>,
}

macro_rules! golden {
    ($name:literal, $methods:expr, $endings:expr) => {
        Golden {
            name: $name,
            bytes: include_bytes!(concat!("../../../testdata/", $name, ".http")),
            methods: &$methods,
            endings: $endings.to_vec(),
        }
    };
}

fn goldens() -> Vec<Golden> {
    let until_close = Ending::Closed(CloseEvent::Finished(Reply {
        code: Some(units::Code::status(200)),
        judgement: Judgement::Good,
        body_bytes: 468,
        keep: false,
    }));
    let pipelined = [
        good(200, 18),
        reply(404, Judgement::RequestError, 153, true),
        good(200, 0),
        good(204, 0),
        good(301, 169),
        reply(503, Judgement::ServerError, 17, true),
        good(200, 18),
        IDLE,
    ];
    let bad_request = [reply(400, Judgement::RequestError, 157, false), IDLE];
    let missing = [reply(404, Judgement::RequestError, 335, false), IDLE];
    vec![
        golden!("nginx-pipelined", ["GET", "GET", "HEAD", "GET", "GET", "GET", "GET"], pipelined),
        golden!("nginx-chunked-gzip", ["GET", "GET"], [good(200, 99), good(200, 18), IDLE]),
        golden!("nginx-chunked-autoindex", ["GET"], [good(200, 468), IDLE]),
        golden!("nginx-304", ["GET", "GET"], [good(304, 0), good(200, 18), IDLE]),
        golden!("nginx-close", ["GET"], [last(200, 18), IDLE]),
        golden!("nginx-http10", ["GET"], [last(200, 18), IDLE]),
        golden!("nginx-http10-keep-alive", ["GET", "GET"], [good(200, 18), good(200, 18), IDLE]),
        golden!("nginx-http10-until-close", ["GET"], [until_close]),
        golden!("nginx-400", ["GET"], bad_request),
        golden!("python-http-server", ["GET"], [last(200, 18), IDLE]),
        golden!("python-http-server-404", ["GET"], missing),
        golden!("node-early-hints", ["GET", "GET"], [good(200, 13), good(200, 5), IDLE]),
        golden!("node-trailers", ["GET", "GET"], [good(200, 12), good(200, 5), IDLE]),
    ]
}

#[test]
fn real_servers_are_read_alike_however_cut() {
    for golden in goldens() {
        let read = Connection::new(golden.methods).read(golden.bytes);
        assert_eq!(read, golden.endings, "{}", golden.name);
    }
}

#[test]
fn real_bodies_pass_their_checks() {
    let golden = goldens().into_iter().find(|golden| golden.name == "node-trailers").unwrap();
    // The text spans two chunks; the digest is of the body without its framing.
    let checks = Checks {
        expect_body_contains: Some(b"rst sec".to_vec()),
        expect_sha256: "92088ec140fc553e4b1ede202edccb65a807bbf8a38d765a3ad38013c0f13688".parse().ok(),
        ..Checks::default()
    };
    let connection = Connection { checks, ..Connection::new(&["GET", "GET"]) };
    let other = reply(200, Judgement::CheckFailed, 5, true);
    assert_eq!(connection.read(golden.bytes), [good(200, 12), other, IDLE]);
}

proptest! {
    #[test]
    fn real_servers_are_read_alike_at_random_cuts(cuts in cuts()) {
        for golden in goldens() {
            let read = Connection::new(golden.methods).endings(split(golden.bytes, &cuts).into_iter());
            prop_assert_eq!(read, golden.endings, "{}", golden.name);
        }
    }
}
