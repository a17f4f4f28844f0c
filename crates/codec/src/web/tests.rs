//! A script whose second request uses the response to the first, over each version of HTTP.

use super::*;
use crate::{Ended, Event, FailedCheck, Judgement, Key, Next, Origin, Protocol, Route, Session};

/// Logs in, then requests what the login named.
struct Login {
    keep: Keep,
}

enum Step {
    First,
    Second(Rendered),
}

impl Script for Login {
    type Journey = Step;
    type Taken = ReceivedResponse;

    fn begin(&self, _: u64) -> Step {
        Step::First
    }

    fn ask<'a>(&'a self, journey: &'a Step) -> Ask<'a> {
        match journey {
            Step::First => Ask { request: Asked::Prepared(0), checks: 0, keep: self.keep },
            Step::Second(rendered) => {
                Ask { request: Asked::Rendered(rendered), checks: 1, keep: Keep::Nothing }
            }
        }
    }

    fn route(&self, journey: &Step) -> Route {
        Route { origin: Origin(0), kind: u16::from(matches!(journey, Step::Second(_))), ..Route::default() }
    }

    fn kinds(&self) -> usize {
        2
    }

    fn take(&self, _: u16, response: ReceivedResponse) -> Result<ReceivedResponse, FailedCheck> {
        match response.body.starts_with(b"id=") {
            true => Ok(response),
            false => Err(FailedCheck::new("id: expected one".to_owned(), &response.body)),
        }
    }

    fn advance(&self, journey: Step, response: Option<ReceivedResponse>) -> Next<Step> {
        let (Step::First, Some(response)) = (journey, response) else { return Next::End };
        let id = String::from_utf8_lossy(&response.body[3..]).into_owned();
        let token = String::from_utf8_lossy(response.header("x-token").unwrap()).into_owned();
        let url = Url::parse("http://h/").unwrap().with_path(&format!("/of/{id}"));
        let header = Header { name: "X-Token".to_owned(), value: token };
        let request = Request { headers: vec![header], ..Request::get(url) };
        let journey = Step::Second(Rendered::new(Origin(0), request).unwrap());
        Next::Then { journey, think: units::Nanos::from_millis(3) }
    }
}

fn login(keep: Keep) -> Web<Login> {
    let request = Request::get(Url::parse("http://h/login").unwrap());
    let plans = [OriginPlan::plain(request.url.clone())];
    let missing = Checks { expect_body_contains: Some(b"found".to_vec()), ..Checks::default() };
    let parts = Parts {
        requests: &[request],
        origins: &plans,
        checks: &[Checks::default(), missing],
        settings: WebSettings::default(),
    };
    Web::new(Login { keep }, parts).unwrap()
}

fn answered<S>(session: &mut S) -> Ended<'_, S> {
    Ended::Answered { session, judgement: Judgement::Good }
}

fn judged(session: &mut impl Session, input: &[u8]) -> Judgement {
    match session.handle_input(input, &mut Vec::new()).unwrap().event {
        Some(Event::Finished(_, reply)) => reply.judgement,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_was_kept_makes_the_next_request() {
    let web = login(Keep::ReceivedResponse { body_bytes: 100 });
    let mut session = web.session(Origin(0));
    let mut out = Vec::new();
    let first = web.begin(0);
    session.request(&first, Key(0), &mut out);
    let head = b"HTTP/1.1 200 OK\r\nX-Tok";
    assert_eq!(session.handle_input(head, &mut out).unwrap().event, Some(Event::Began(Key(0))));
    let rest = b"en: t0\r\nContent-Length: 6\r\n\r\nid=a b";
    assert_eq!(judged(&mut session, rest), Judgement::Good);
    let Next::Then { journey, think } = web.advance(first, answered(&mut session)) else {
        panic!("it goes on")
    };
    assert_eq!(think, units::Nanos::from_millis(3));
    out.clear();
    session.request(&journey, Key(1), &mut out);
    let sent = String::from_utf8(out).unwrap();
    assert!(
        sent.starts_with("GET /of/a%20b HTTP/1.1\r\nHost: h\r\n") && sent.contains("\r\nX-Token: t0\r\n")
    );
    // The second request has its own checks.
    assert_eq!(
        judged(&mut session, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlost"),
        Judgement::CheckFailed
    );
    assert!(matches!(web.advance(journey, answered(&mut session)), Next::End));
}

/// If this fails, a journey continues from a response that its own checks had refused.
#[test]
fn a_script_judges_what_was_kept_and_no_more_is_kept_than_was_asked() {
    for (keep, body, judgement, kept) in [
        (Keep::ReceivedResponse { body_bytes: 3 }, "id=ab", Judgement::Good, Some(("id=", true))),
        (Keep::ReceivedResponse { body_bytes: 5 }, "id=ab", Judgement::Good, Some(("id=ab", false))),
        (Keep::ReceivedResponse { body_bytes: 9 }, "other", Judgement::CheckFailed, None),
        (Keep::Nothing, "other", Judgement::Good, None),
    ] {
        let web = login(keep);
        let mut session = web.session(Origin(0));
        session.request(&web.begin(0), Key(0), &mut Vec::new());
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}");
        assert_eq!(judged(&mut session, input.as_bytes()), judgement, "{keep:?}");
        let response = session.hand_over();
        let kept = kept.map(|(body, cut)| (body.as_bytes().to_vec(), cut));
        assert_eq!(response.map(|response| (response.body, response.cut)), kept);
    }
}
