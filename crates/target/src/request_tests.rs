//! Tables, splits and arbitrary bytes for the request parser.

use proptest::prelude::*;

use super::*;

/// Feeds `parts` one after the other as a connection would; returns the requests found.
fn feed<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Request>, u32, Option<Refusal>) {
    let mut parser = Parser::new(Limits::default());
    let (mut kept, mut requests, mut continues) = (Vec::new(), Vec::new(), 0);
    for part in parts {
        kept.extend_from_slice(part);
        loop {
            match parser.step(&kept) {
                Err(refusal) => return (requests, continues, Some(refusal)),
                Ok((count, step)) => {
                    kept.drain(..count);
                    match step {
                        Step::NeedMore => break,
                        Step::Continue => continues += 1,
                        Step::Request(request) => requests.push(request),
                    }
                }
            }
        }
    }
    (requests, continues, None)
}

fn one(bytes: &str) -> Request {
    let (requests, _, refusal) = feed([bytes.as_bytes()]);
    assert_eq!((requests.len(), refusal), (1, None), "{bytes}");
    requests.into_iter().next().unwrap()
}

fn refused(bytes: &str) -> Refusal {
    feed([bytes.as_bytes()]).2.unwrap_or_else(|| panic!("accepted: {bytes}"))
}

#[test]
fn heads_are_read() {
    let plain = one("GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(plain.route, Route::Plaintext);
    assert!(plain.keep_alive && !plain.http10 && !plain.head_only);
    assert_eq!(plain.wire_bytes, 36);
    assert!(!one("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n").keep_alive);
    let old = one("HEAD / HTTP/1.0\r\n\r\n");
    assert!(!old.keep_alive && old.http10 && old.head_only);
    assert!(one("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
}

#[test]
fn bodies_are_read_to_their_end() {
    let echo = one("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(echo.body, b"hello");
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nTrailer: t\r\n\r\n";
    let request = one(chunked);
    assert_eq!(request.body, b"hello");
    assert_eq!(request.wire_bytes, chunked.len() as u64);
    assert!(one("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello").body.is_empty());
}

#[test]
fn a_waiting_body_is_asked_for_once() {
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(feed([head.as_bytes()]), (vec![], 1, None));
    let (requests, continues, _) = feed([head.as_bytes(), b"hi"]);
    assert_eq!((requests[0].body.as_slice(), continues), (b"hi".as_slice(), 1));
}

#[test]
fn malformed_and_oversized_requests_get_different_refusals() {
    let host = "Host: a\r\n";
    for (bytes, refusal) in [
        ("\0\0\0".to_owned(), Refusal::BadRequest),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), Refusal::BadRequest),
        (format!("GET / HTTP/1.1\r\n{host}{host}\r\n"), Refusal::BadRequest),
        ("GET / HTTP/3.1\r\n\r\n".to_owned(), Refusal::UnknownVersion),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: +5\r\n\r\n"), Refusal::BadRequest),
        (
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n"),
            Refusal::BadRequest,
        ),
        (
            format!("POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Refusal::BadRequest,
        ),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: gzip\r\n\r\n"), Refusal::UnknownCoding),
        (format!("POST / HTTP/1.1\r\n{host}Content-Length: 67108865\r\n\r\n"), Refusal::BodyTooLarge),
        (format!("POST /echo HTTP/1.1\r\n{host}Content-Length: 1048577\r\n\r\n"), Refusal::BodyTooLarge),
        (
            format!("POST /echo HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n100001\r\n"),
            Refusal::BodyTooLarge,
        ),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\nzz\r\n"), Refusal::BadRequest),
        (format!("POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n1\r\nabc"), Refusal::BadRequest),
        (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(100)), Refusal::HeadTooLarge),
        (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(16 << 10)), Refusal::HeadTooLarge),
    ] {
        assert_eq!(refused(&bytes), refusal, "{bytes:.120}");
    }
}

/// Request bytes, some of them broken.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::sample::select(vec![
            "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /delay?us=5 HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
            "HEAD / HTTP/1.0\r\n\r\n",
            "\r\n",
            "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world",
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwiki\r\n0\r\n\r\n",
            "PUT /json HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n2;a=b\r\nhi\r\n0\r\nX: y\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => "[ -~\r\n]{0,60}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// If this fails, how the network splits a client's bytes changes what the server reads.
    #[test]
    fn any_split_gives_the_same_requests(bytes in stream(), cuts in prop::collection::vec(0usize..600, 0..12)) {
        let whole = feed([bytes.as_slice()]);
        prop_assert_eq!(&feed(bytes.chunks(1)), &whole);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(&feed(cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]])), &whole);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        feed(bytes.chunks(97));
    }
}
