//! What a run sends, in which order, and how its checks judge the responses.

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
    let run = Web::turns(&requests(&[1, 2]), &Checks::default(), WebSettings::default()).unwrap();
    let paths = |numbers: &mut dyn Iterator<Item = u64>| -> Vec<char> {
        numbers
            .map(|n| {
                let mut out = Vec::new();
                run.session(Origin(0)).request(&run.begin(n), Key(n), &mut out);
                assert_eq!(u32::from(run.route(&run.begin(n)).kind), run.begin(n));
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
    let run = Web::turns(
        &requests(&[1]),
        &Checks::default(),
        WebSettings { pipeline: 4, ..WebSettings::default() },
    )
    .unwrap();
    let mut out = b"before".to_vec();
    let mut session = run.session(Origin(0));
    for n in 0..2 {
        assert_eq!(session.request(&run.begin(n), Key(n), &mut out), Encoded::Whole);
    }
    let text = String::from_utf8(out).unwrap();
    assert!(text.starts_with("beforeGET /0 HTTP/1.1\r\nHost: h\r\n") && text.matches("GET").count() == 2);
    assert_eq!(session.capacity(), 4);
}

#[test]
fn a_run_that_cannot_be_sent_is_refused() {
    let refused = |requests: &[Request], pipeline, checks: &Checks| {
        Web::turns(requests, checks, WebSettings { pipeline, ..WebSettings::default() }).expect_err("refused")
    };
    let none = Checks::default();
    assert_eq!(refused(&[], 1, &none), RequestError::NoRequests);
    assert_eq!(refused(&requests(&[1]), 0, &none), RequestError::NoPipeline);
    assert_eq!(refused(&requests(&[1, 0]), 1, &none), RequestError::NoWeight { number: 2 });
    let empty = Checks { expect_body_contains: Some(Vec::new()), ..Checks::default() };
    assert_eq!(refused(&requests(&[1]), 1, &empty), RequestError::EmptyCheck);
    let mut two = requests(&[1, 1]);
    two[0].method = "G T".to_owned();
    assert!(matches!(refused(&two, 1, &none), RequestError::BadMethod { .. }));
}

#[test]
fn a_request_that_asks_to_close_is_the_last_of_its_connection() {
    let mut request = requests(&[1]);
    request[0].headers.push("Connection: close".parse().unwrap());
    let run = Web::turns(&request, &Checks::default(), WebSettings::default()).unwrap();
    let mut session = run.session(Origin(0));
    session.request(&0, Key(7), &mut Vec::new());
    let step = session.handle_input(b"HTTP/1.1 204 No\r\n\r\n", &mut Vec::new()).unwrap();
    assert!(matches!(step.event, Some(Event::Finished(Key(7), Reply { keep: false, .. }))));
}

#[test]
fn requests_to_several_servers_know_theirs() {
    let mut three = requests(&[1, 1, 1]);
    three[1].url = Url::parse("http://h:81/").unwrap();
    let run = Web::turns(&three, &Checks::default(), WebSettings::default()).unwrap();
    let routes: Vec<_> = (0..3).map(|n| run.route(&run.begin(n))).map(|r| (r.origin.0, r.kind)).collect();
    assert_eq!(routes, [(0, 0), (1, 1), (0, 2)]);
    assert_eq!(run.kinds(), 3);
}

fn check(checks: &Checks, method: &'static str, input: &str, judgement: Judgement) {
    let connection = Connection { checks: checks.clone(), ..Connection::new(&[method]) };
    let Ending::Reply(reply) = connection.read(input.as_bytes())[0] else { panic!("{input:?}") };
    assert_eq!(reply.judgement, judgement, "{input:?}");
}

fn response(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn bodies_are_checked_when_the_status_was_accepted() {
    let contains = Checks { expect_body_contains: Some(b"needle".to_vec()), ..Checks::default() };
    check(&contains, "GET", &response(200, "hay needle hay"), Judgement::Good);
    check(&contains, "GET", &response(200, "hay"), Judgement::CheckFailed);
    check(&contains, "GET", &response(200, ""), Judgement::CheckFailed);
    check(&contains, "GET", &response(404, "hay"), Judgement::RequestError);
    check(&contains, "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Judgement::Good);
    let digest = Checks {
        expect_sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824".parse().ok(),
        expect_status: "404".parse().ok(),
        ..Checks::default()
    };
    check(&digest, "GET", &response(404, "hello"), Judgement::Good);
    check(&digest, "GET", &response(404, "hello!"), Judgement::CheckFailed);
    check(&digest, "GET", &response(200, "hello"), Judgement::CheckFailed);
    check(&digest, "GET", &response(500, "hello"), Judgement::ServerError);
}

#[test]
fn one_body_leaves_nothing_behind_for_the_next() {
    let checks = Checks { expect_body_contains: Some(b"ab".to_vec()), ..Checks::default() };
    let connection = Connection { checks, ..Connection::new(&["GET", "GET", "GET"]) };
    let input = [response(200, "ab"), response(200, "a"), response(200, "b")].concat();
    let failed = reply(200, Judgement::CheckFailed, 1, true);
    assert_eq!(connection.read(input.as_bytes()), [good(200, 2), failed, failed, IDLE]);
}
