//! Peers that send too much, announce too much, or send arbitrary bytes.

use super::*;

fn tight() -> Limits {
    Limits { head_bytes: 60, body_bytes: 10, chunk_line_bytes: 8, trailer_bytes: 8, interim_count: 1 }
}

fn check(input: &str, expected: &[Ending]) {
    let connection = Connection { limits: tight(), ..Connection::new(&["GET"]) };
    assert_eq!(connection.read(input.as_bytes()), expected, "{input:?}");
}

#[test]
fn every_part_of_an_answer_is_bounded() {
    let fits = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nX: 2345678901234567\r\n\r\n";
    assert_eq!(fits.len(), 60);
    check(&format!("{fits}0123456789"), &[good(200, 10), IDLE]);
    check(&fits.replace("X: ", "X:  "), &[too_long("bytes of head", 60)]);
    check(&"a: ".repeat(60), &[malformed("status line: not HTTP/1.0 or HTTP/1.1")]);
    check(&"\r\n".repeat(60), &[too_long("bytes of head", 60)]);
    let body = too_long("bytes of body", 10);
    check("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n", &[body]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", &[body]);
    check("HTTP/1.1 200 OK\r\n\r\n01234567890", &[body]);
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunked}a\r\n0123456789\r\n0\r\n\r\n"), &[good(200, 10), IDLE]);
    check(&format!("{chunked}9\r\n012345678\r\n2\r\n"), &[body]);
    check(&format!("{chunked}0;1234567"), &[too_long("bytes of a chunk-size line", 8)]);
    check(&format!("{chunked}0\r\nA: 23456"), &[INCOMPLETE]);
    check(&format!("{chunked}0\r\nA: 234567"), &[too_long("bytes of trailers", 8)]);
}

#[test]
fn header_lines_are_counted() {
    let with = |count| format!("HTTP/1.1 204 No\r\n{}\r\n", "A: b\r\n".repeat(count));
    let read = |count| Connection::new(&["GET"]).read(with(count).as_bytes());
    assert_eq!(read(100), [good(204, 0), IDLE]);
    assert_eq!(read(101), [too_long("header lines", 100)]);
}

#[test]
fn bytes_that_answer_nothing_are_refused() {
    let connection = Connection::new(&["GET"]);
    let mut session = connection.protocol().session(Origin(0));
    let late = session.handle_input(b"HTTP/1.1 408 Request Timeout\r\n\r\n", &mut Vec::new());
    assert_eq!(late, Err(DecodeError::Unsolicited));
    assert!(session.handle_input(b"", &mut Vec::new()).is_ok());
}

/// If this fails, it depends on timing whether a server that sends more than it announced fails this request or the
/// next.
#[test]
fn bytes_behind_a_response_are_reported_with_it() {
    let trailing = |requests: &[&'static str], input: &str| {
        let mut session = Connection::new(requests).protocol().session(Origin(0));
        let out = &mut Vec::new();
        for n in 0..requests.len() as u32 {
            session.request(&n, Key(n.into()), out);
        }
        session.handle_input(input.as_bytes(), out).unwrap().trailing
    };
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert!(!trailing(&["GET"], response));
    assert!(trailing(&["GET"], &format!("{response}!")));
    assert!(trailing(&["GET"], &format!("{response}{response}")));
    assert!(!trailing(&["GET", "GET"], &format!("{response}{response}")));
}

/// If this fails, the reason depends on whether the next request was sent before or after these bytes came.
#[test]
fn bytes_that_come_later_than_the_response_have_the_same_reason() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let late = |next: bool, input: &str| {
        let mut session = Connection::new(&["GET", "GET"]).protocol().session(Origin(0));
        let out = &mut Vec::new();
        session.request(&0, Key(0), out);
        assert!(!session.handle_input(response.as_bytes(), out).unwrap().trailing);
        if next {
            session.request(&1, Key(1), out);
        }
        session.handle_input(input.as_bytes(), out).unwrap_err()
    };
    for input in ["more", "\r\n\0", "H\0", "HTTQ/1.1 200 OK\r\n\r\n"] {
        assert_eq!(late(true, input), DecodeError::AfterResponse, "{input:?}");
        assert_eq!(late(false, input), DecodeError::AfterResponse, "{input:?}");
    }
    // What begins like a response is one.
    assert_eq!(
        late(true, "HTTP/9"),
        DecodeError::Malformed { what: "status line: not HTTP/1.0 or HTTP/1.1" }
    );
    assert_eq!(late(false, response), DecodeError::AfterResponse);
    // Of the first response, nothing came before.
    let mut session = Connection::new(&["GET"]).protocol().session(Origin(0));
    session.request(&0, Key(0), &mut Vec::new());
    let first = session.handle_input(b"more", &mut Vec::new());
    assert!(matches!(first, Err(DecodeError::Malformed { .. })), "{first:?}");
}

#[test]
fn nothing_is_read_after_an_answer_that_could_not_be() {
    let mut session = Connection::new(&["GET", "GET"]).protocol().session(Origin(0));
    let out = &mut Vec::new();
    for n in 0..2 {
        session.request(&n, Key(n.into()), out);
    }
    assert!(matches!(session.handle_input(b"HTTP/9", out), Err(DecodeError::Malformed { .. })));
    assert_eq!(session.handle_input(b"HTTP/1.1 204 No\r\n\r\n", out), Err(DecodeError::Unsolicited));
}

/// Bytes similar enough to responses to reach the deeper states.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"HTTP/1.0 503 \r\n".to_vec()),
        Just(b"HTTP/1.1 100 C\n".to_vec()),
        Just(b"Content-Length: 3\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Connection: close\r\n".to_vec()),
        Just(b"X:\r\n y\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"3\r\nabc\r\n".to_vec()),
        Just(b"0\r\n\r\n".to_vec()),
        Just(b"abc".to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(token, 0..14).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_alike_however_cut(input in noise(), cuts in cuts(), limited in any::<bool>()) {
        let checks = Checks { expect_body_contains: Some(b"bc".to_vec()), ..Checks::default() };
        let limits = if limited { tight() } else { Limits::default() };
        let connection = Connection { checks, limits, ..Connection::new(&["GET", "HEAD", "GET"]) };
        let whole = connection.endings(std::iter::once(&input[..]));
        prop_assert_eq!(&connection.endings(split(&input, &cuts).into_iter()), &whole);
        prop_assert_eq!(connection.endings(input.chunks(1)), whole);
    }
}
