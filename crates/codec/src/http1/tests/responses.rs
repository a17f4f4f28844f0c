//! Responses written by hand: framing, keep-alive, pipelining and the meaning of a close.

use super::*;

fn check(input: &str, expected: &[Ending]) {
    check_methods(&["GET"], input, expected);
}

fn check_methods(methods: &[&'static str], input: &str, expected: &[Ending]) {
    assert_eq!(Connection::new(methods).read(input.as_bytes()), expected, "{input:?}");
}

#[test]
fn bodies_end_where_their_framing_says() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", &[good(200, 5), IDLE]);
    check("HTTP/1.1 200 OK\r\ncontent-LENGTH:\t5 \r\n\r\nhello", &[good(200, 5), IDLE]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", &[good(200, 0), IDLE]);
    check("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", &[good(200, 0), IDLE]);
    check("HTTP/1.1 200 OK\nContent-Length: 1\n\nx", &[good(200, 1), IDLE]);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\nA: b\r\n\r\n",
        &[good(200, 6), IDLE],
    );
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n0\r\n\r\n", &[good(200, 0), IDLE]);
    let last = Ending::Closed(CloseEvent::Finished(Reply {
        code: Some(units::Code::status(200)),
        judgement: Judgement::Good,
        body_bytes: 5,
        keep: false,
    }));
    check("HTTP/1.1 200 OK\r\n\r\nhello", &[last]);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", &[last]);
    check(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
        &[good(200, 5), IDLE],
    );
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    check("HTTP/1.1 204 No Content\r\n\r\n", &[good(204, 0), IDLE]);
    check("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", &[good(304, 0), IDLE]);
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n";
    check_methods(&["HEAD"], huge, &[good(200, 0), IDLE]);
    check_methods(&["HEAD"], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &[good(200, 0), IDLE]);
    check_methods(&["HEAD"], "HTTP/1.1 200 OK\r\n\r\n", &[good(200, 0), IDLE]);
}

#[test]
fn interim_answers_are_passed_over() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    let whole = format!("{interim}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    check(&whole, &[good(200, 1), IDLE]);
    check_methods(&["HEAD"], &format!("{interim}HTTP/1.1 200 OK\r\n\r\n"), &[good(200, 0), IDLE]);
    check(interim, &[INCOMPLETE]);
    let switch = Ending::Failed(DecodeError::Unsupported { what: "switch of protocols (101)" });
    check("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", &[switch]);
    check(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(17), &[too_long("interim responses", 16)]);
}

#[test]
fn a_connection_is_kept_as_the_rules_say() {
    let with =
        |version: &str, header: &str| format!("HTTP/{version} 200 OK\r\n{header}Content-Length: 0\r\n\r\n");
    check(&with("1.1", ""), &[good(200, 0), IDLE]);
    check(&with("1.1", "Connection: close\r\n"), &[last(200, 0), IDLE]);
    check(&with("1.1", "connection: x , CLOSE\r\n"), &[last(200, 0), IDLE]);
    check(&with("1.1", "Connection:\r\n close\r\n"), &[last(200, 0), IDLE]);
    check(&with("1.1", "Connection: keep-alive\r\nConnection: close\r\n"), &[last(200, 0), IDLE]);
    check(&with("1.1", "Connection: closed\r\n"), &[good(200, 0), IDLE]);
    check(&with("1.0", ""), &[last(200, 0), IDLE]);
    check(&with("1.0", "Connection: Keep-Alive\r\n"), &[good(200, 0), IDLE]);
    check(&with("1.0", "Connection: keep-alive, close\r\n"), &[last(200, 0), IDLE]);
    // A coding together with a length, and a coding in HTTP/1.0: accepted, but the connection is not kept.
    let both = with("1.1", "Transfer-Encoding: chunked\r\n") + "1\r\nx\r\n0\r\n\r\n";
    check(&both, &[last(200, 1), IDLE]);
    check(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        &[last(200, 0), IDLE],
    );
}

#[test]
fn pipelined_answers_come_in_order() {
    let responses = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
                   HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\
                   HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n";
    let missing = reply(404, Judgement::RequestError, 2, true);
    let methods = ["GET", "HEAD", "GET"];
    check_methods(&methods, responses, &[good(200, 3), good(200, 0), missing, IDLE]);
    check_methods(
        &["GET", "HEAD", "GET", "GET"],
        responses,
        &[good(200, 3), good(200, 0), missing, BEFORE_RESPONSE],
    );
    let after = Ending::Failed(DecodeError::AfterResponse);
    check_methods(&methods, &format!("{responses}!"), &[good(200, 3), good(200, 0), missing, after]);
}

#[test]
fn nothing_is_read_after_the_last_answer() {
    let closing = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    check_methods(&["GET", "GET"], closing, &[last(200, 0), BEFORE_RESPONSE]);
    check_methods(&["GET", "GET"], &closing.repeat(2), &[last(200, 0), UNSOLICITED]);
}

#[test]
fn a_close_means_what_had_come() {
    check("", &[BEFORE_RESPONSE]);
    assert_eq!(Connection::new(&["GET"]).protocol().session(Origin(0)).handle_close(), CloseEvent::Idle);
    check("H", &[INCOMPLETE]);
    check("\r\n", &[INCOMPLETE]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", &[INCOMPLETE]);
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nx", &[INCOMPLETE]);
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", &[INCOMPLETE]);
}

#[test]
fn what_is_no_answer_is_refused() {
    check("SSH-2.0-OpenSSH_9.2\r\n", &[malformed("status line: not HTTP/1.0 or HTTP/1.1")]);
    check("HTTP/2 200\r\n\r\n", &[malformed("status line: not HTTP/1.0 or HTTP/1.1")]);
    check("HTTP/1.1 2x0 OK\r\n\r\n", &[malformed("status line")]);
    check("HTTP/1.1 099 Odd\r\n\r\n", &[malformed("status code")]);
    check("HTTP/1.1 200 OK\r\nA B: c\r\n\r\n", &[malformed("header name")]);
    check("HTTP/1.1 200 OK\r\nA: \0\r\n\r\n", &[malformed("header value")]);
    for lengths in [
        "5\r\nContent-Length: 5",
        "5\r\nContent-Length: 6",
        "5, 5",
        "",
        "+5",
        "-5",
        "5x",
        "0x5",
        "1 2",
        "1\r\n 2",
    ] {
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {lengths}\r\n\r\nhello");
        check(&input, &[malformed("content-length")]);
    }
    let coding = |value: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {value}\r\n\r\n");
    check(&coding("chunked, chunked"), &[malformed("transfer-encoding")]);
    check(&coding("gizp, chunked"), &[Ending::Failed(DecodeError::Unsupported { what: "transfer coding" })]);
}

proptest! {
    #[test]
    fn cuts_do_not_change_the_replies(cuts in cuts()) {
        let connection = Connection::new(&["GET", "HEAD", "GET", "GET", "GET"]);
        let input = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\
                      HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\
                      HTTP/1.1 503 Busy\nTransfer-Encoding: chunked\n\n2;x\r\nno\r\n0\r\nA: b\r\n\r\n\
                      HTTP/1.1 204 No\r\nX:\r\n folded\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the close";
        let whole = connection.endings(std::iter::once(&input[..]));
        prop_assert_eq!(whole.len(), 5);
        prop_assert_eq!(connection.endings(split(input, &cuts).into_iter()), whole);
    }
}
