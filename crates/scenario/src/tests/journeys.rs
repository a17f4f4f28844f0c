//! Journeys over a session of the codec: requests as bytes, responses as bytes, and what follows from them.

use codec::web::{OriginPlan, Parts, Script, Web, WebSettings};
use codec::{Event, Judgement, Key, Next, Origin, Protocol, Session};
use units::Nanos;

use super::{compile, with_target};
use crate::{Journey, Scenario};

const SHOP: &str = r#"
[vars]
unused = "x"
[data.users]
file = "users.csv"
[[journey]]
name = "shop"
think = "1s..2s"
[[journey.step]]
name = "login"
path = "/login"
form = { user = "{{users.name}}" }
capture = { token = "/token", id = { header = "Location", regex = '/items/(\d+)' } }
[[journey.step]]
name = "item"
path = "/items/{{id}}"
headers = { Authorization = "Bearer {{token}}" }
expect = { json = { "/ok" = true } }
think = "5ms"
[[journey.step]]
name = "out"
path = "/logout"
"#;

const USERS: &[(&str, &str)] = &[("users.csv", "name\nann\nbob\n")];

fn web(text: &str, files: &[(&str, &str)]) -> Web<Scenario> {
    let scenario = compile(&with_target(text), &[], files).unwrap();
    let origins: Vec<OriginPlan> = scenario.origins().into_iter().map(OriginPlan::plain).collect();
    let (requests, checks) = (scenario.prepared(), scenario.checks());
    let parts =
        Parts { requests: &requests, origins: &origins, checks: &checks, settings: WebSettings::default() };
    Web::new(scenario, parts).unwrap()
}

/// The result of one step.
struct Taken {
    request: String,
    judgement: Judgement,
    next: Next<Journey>,
}

/// Sends the journey's request, and feeds it `response`.
fn take(web: &Web<Scenario>, journey: Journey, response: &str) -> Taken {
    let mut session = web.session(Origin(0));
    let mut out = Vec::new();
    session.open(&mut Vec::new());
    session.request(&journey, Key(1), &mut out);
    let step = session.handle_input(response.as_bytes(), &mut Vec::new()).unwrap();
    let Some(Event::Finished(Key(1), reply)) = step.event else { panic!("no answer: {step:?}") };
    let end = codec::Ended::Answered { session: &mut session, judgement: reply.judgement };
    let next = web.advance(journey, end);
    Taken { request: String::from_utf8(out).unwrap(), judgement: reply.judgement, next }
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[track_caller]
fn then(next: Next<Journey>) -> (Journey, Nanos) {
    match next {
        Next::Then { journey, think } => (journey, think),
        Next::End | Next::Retry { .. } => panic!("the journey does not go on"),
    }
}

const LOGIN: &str = "Location: http://127.0.0.1:8080/items/42\r\nSet-Cookie: sid=s1; HttpOnly\r\n";

#[test]
fn what_an_answer_gave_goes_with_the_next_request() {
    let web = web(SHOP, USERS);
    let login = take(&web, web.begin(1), &response("200 OK", LOGIN, r#"{"token":"t 1"}"#));
    assert!(login.request.starts_with("POST /login HTTP/1.1\r\n"), "{}", login.request);
    assert!(login.request.ends_with("\r\n\r\nuser=bob"), "{}", login.request);
    assert!(!login.request.contains("Cookie"), "{}", login.request);
    let (journey, think) = then(login.next);
    assert!((Nanos::from_secs(1)..=Nanos::from_secs(2)).contains(&think), "{think}");

    let item = take(&web, journey, &response("200 OK", "", r#"{"ok":true}"#));
    assert_eq!(item.judgement, Judgement::Good);
    assert!(item.request.starts_with("GET /items/42 HTTP/1.1\r\n"), "{}", item.request);
    assert!(item.request.contains("\r\nAuthorization: Bearer t 1\r\n"), "{}", item.request);
    assert!(item.request.contains("\r\nCookie: sid=s1\r\n"), "{}", item.request);
    let (journey, think) = then(item.next);
    assert_eq!(think, Nanos::from_millis(5));
    assert_eq!(web.route(&journey).kind, 2);

    // Nothing in it is filled in except the cookie.
    let out = take(&web, journey, &response("204 No Content", "", ""));
    assert!(out.request.starts_with("GET /logout HTTP/1.1\r\n") && out.request.contains("Cookie: sid=s1"));
    assert!(matches!(out.next, Next::End));
}

/// If this fails, a step continues from an unexpected response, and its figures measure something else.
#[test]
fn a_journey_ends_with_the_first_step_that_fails() {
    let web = web(SHOP, USERS);
    for (status, headers, body, judgement) in [
        ("500 Oops", LOGIN, r#"{"token":"t"}"#, Judgement::ServerError),
        ("401 No", LOGIN, r#"{"token":"t"}"#, Judgement::RequestError),
        ("200 OK", LOGIN, r#"{"other":"t"}"#, Judgement::CheckFailed),
        ("200 OK", "", r#"{"token":"t"}"#, Judgement::CheckFailed),
        ("200 OK", LOGIN, r#"{"token":"t""#, Judgement::CheckFailed),
        // It would end the header line.
        ("200 OK", LOGIN, r#"{"token":"t\r\nX: y"}"#, Judgement::CheckFailed),
    ] {
        let taken = take(&web, web.begin(0), &response(status, headers, body));
        assert_eq!(taken.judgement, judgement, "{status} {body}");
        assert!(matches!(taken.next, Next::End), "{status} {body}");
    }
    let journey = web.begin(0);
    assert!(matches!(web.advance(journey, codec::Ended::Unanswered), Next::End));

    let (journey, _) = then(take(&web, web.begin(0), &response("200 OK", LOGIN, r#"{"token":"t"}"#)).next);
    let item = take(&web, journey, &response("200 OK", "", r#"{"ok":false}"#));
    assert_eq!(item.judgement, Judgement::CheckFailed);
    assert!(matches!(item.next, Next::End));
}

/// If this fails, a server that responds without end uses up the client's memory.
#[test]
fn of_a_long_answer_only_the_beginning_is_looked_at() {
    let text = format!("[defaults]\nkeep_body = \"64B\"\n{}", SHOP.replace("[vars]\nunused = \"x\"", ""));
    let web = web(&text, USERS);
    let long = format!(r#"{{"token":"t","rest":"{}"}}"#, "x".repeat(100));
    let taken = take(&web, web.begin(0), &response("200 OK", LOGIN, &long));
    assert_eq!(taken.judgement, Judgement::CheckFailed);
    let short = r#"{"token":"t"}"#;
    assert_eq!(take(&web, web.begin(0), &response("200 OK", LOGIN, short)).judgement, Judgement::Good);
}

#[test]
fn a_request_in_which_nothing_is_filled_in_is_prepared() {
    let text = "[[request]]\npath = \"/a\"\n[[request]]\npath = \"/b/{{n}}\"\n[[request]]\npath = \"/c\"\nweight = 2";
    let web = web(text, &[]);
    let script: &Scenario = web.script();
    assert_eq!(script.prepared().len(), 2);
    let mut sorted: Vec<String> = (0..4)
        .map(|n| {
            let taken = take(&web, web.begin(n), &response("200 OK", "", ""));
            assert!(matches!(taken.next, Next::End));
            taken.request.lines().next().unwrap().to_owned()
        })
        .collect();
    sorted.sort();
    let number = (0..4).find(|n| script.route(&script.begin(*n)).kind == 1).unwrap();
    let own = format!("GET /b/{number} HTTP/1.1");
    assert_eq!(sorted, ["GET /a HTTP/1.1", own.as_str(), "GET /c HTTP/1.1", "GET /c HTTP/1.1"]);
}

/// If this fails, a run cannot be repeated, or depends on the number of workers.
#[test]
fn the_same_seed_gives_the_same_journeys_in_whatever_order_they_begin() {
    let text = "[[request]]\npath = \"/{{random 1 1000000}}/{{uuid}}\"";
    let line = |web: &Web<Scenario>, n| {
        take(web, web.begin(n), &response("200 OK", "", "")).request.lines().next().unwrap().to_owned()
    };
    let (one, other) = (web(text, &[]), web(text, &[]));
    let forth: Vec<String> = (0..20).map(|n| line(&one, n)).collect();
    let mut back: Vec<String> = (0..20).rev().map(|n| line(&other, n)).collect();
    back.reverse();
    assert_eq!(forth, back);
    assert!(forth.windows(2).all(|pair| pair[0] != pair[1]));
}
