//! What a run sends, in which order, and what its checks make of the answers.

use super::*;

fn requests(weights: &[u32]) -> Vec<Request> {
    let request = |(index, weight): (usize, &u32)| {
        let url = Url::parse(&format!("http://h/{index}")).unwrap();
        Request { weight: *weight, ..Request::get(url) }
    };
    weights.iter().enumerate().map(request).collect()
}

#[test]
fn request_n_depends_on_n_alone() {
    let run = Http1::new(&requests(&[1, 2]), 1, &Checks::default(), Limits::default()).unwrap();
    let paths = |numbers: &mut dyn Iterator<Item = u64>| -> Vec<char> {
        numbers
            .map(|n| {
                let mut out = Vec::new();
                let expect = run.encode(n, &mut out);
                assert_eq!(expect.0 as usize, run.request_index(n));
                char::from(out[5])
            })
            .collect()
    };
    assert_eq!(paths(&mut (0..6)), ['1', '0', '1', '1', '0', '1']);
    assert_eq!(paths(&mut (0..6).rev()), ['1', '0', '1', '1', '0', '1']);
    assert_eq!(paths(&mut [u64::MAX].into_iter()), ['1']);
}

#[test]
fn encoding_appends() {
    let run = Http1::new(&requests(&[1]), 4, &Checks::default(), Limits::default()).unwrap();
    let mut out = b"before".to_vec();
    run.encode(0, &mut out);
    run.encode(1, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("beforeGET /0 HTTP/1.1\r\nHost: h\r\n") && text.matches("GET").count() == 2);
    assert_eq!(run.session().capacity(), 4);
}

#[test]
fn a_run_that_cannot_be_sent_is_refused() {
    let refused = |requests: &[Request], pipeline, checks: &Checks| {
        Http1::new(requests, pipeline, checks, Limits::default()).expect_err("refused")
    };
    let none = Checks::default();
    assert_eq!(refused(&[], 1, &none), RequestError::NoRequests);
    assert_eq!(refused(&requests(&[1]), 0, &none), RequestError::NoPipeline);
    assert_eq!(refused(&requests(&[1, 0]), 1, &none), RequestError::NoWeight { number: 2 });
    let empty = Checks { expect_body_contains: Some(Vec::new()), ..Checks::default() };
    assert_eq!(refused(&requests(&[1]), 1, &empty), RequestError::EmptyCheck);
    let mut two = requests(&[1, 1]);
    two[1].url = Url::parse("http://h:81/").unwrap();
    assert!(matches!(refused(&two, 1, &none), RequestError::TwoOrigins { .. }));
    two[0].method = "G T".to_owned();
    assert!(matches!(refused(&two, 1, &none), RequestError::BadMethod { .. }));
}

#[test]
fn a_request_that_asks_to_close_is_the_last_of_its_connection() {
    let mut request = requests(&[1]);
    request[0].headers.push("Connection: close".parse().unwrap());
    let run = Http1::new(&request, 1, &Checks::default(), Limits::default()).unwrap();
    let mut session = run.session();
    session.expect(run.encode(0, &mut Vec::new()));
    let step = session.handle_input(b"HTTP/1.1 204 No\r\n\r\n").unwrap();
    assert!(matches!(step.event, Some(Event::Finished(Reply { keep: false, .. }))));
}

fn check(checks: &Checks, method: &'static str, input: &str, judgement: Judgement) {
    let connection = Connection { checks: checks.clone(), ..Connection::new(&[method]) };
    let Ending::Reply(reply) = connection.read(input.as_bytes())[0] else { panic!("{input:?}") };
    assert_eq!(reply.judgement, judgement, "{input:?}");
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn bodies_are_checked_when_the_status_was_accepted() {
    let contains = Checks { expect_body_contains: Some(b"needle".to_vec()), ..Checks::default() };
    check(&contains, "GET", &answer(200, "hay needle hay"), Judgement::Good);
    check(&contains, "GET", &answer(200, "hay"), Judgement::CheckFailed);
    check(&contains, "GET", &answer(200, ""), Judgement::CheckFailed);
    check(&contains, "GET", &answer(404, "hay"), Judgement::RequestError);
    check(&contains, "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Judgement::Good);
    let digest = Checks {
        expect_sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".parse().ok(),
        expect_status: "404".parse().ok(),
        ..Checks::default()
    };
    check(&digest, "GET", &answer(404, "hello"), Judgement::Good);
    check(&digest, "GET", &answer(404, "hello!"), Judgement::CheckFailed);
    check(&digest, "GET", &answer(200, "hello"), Judgement::CheckFailed);
    check(&digest, "GET", &answer(500, "hello"), Judgement::ServerError);
}

#[test]
fn one_body_leaves_nothing_behind_for_the_next() {
    let checks = Checks { expect_body_contains: Some(b"ab".to_vec()), ..Checks::default() };
    let connection = Connection { checks, ..Connection::new(&["GET", "GET", "GET"]) };
    let input = [answer(200, "ab"), answer(200, "a"), answer(200, "b")].concat();
    let failed = reply(200, Judgement::CheckFailed, 1, true);
    assert_eq!(connection.read(input.as_bytes()), [good(200, 2), failed, failed, IDLE]);
}
