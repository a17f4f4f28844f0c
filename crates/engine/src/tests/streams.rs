//! Connections that open with a handshake, carry several requests at once, and are answered in any order; several
//! origins; journeys.
//!
//! What the peer says is lines: `ok N` answers request N, `rst N` gives it up, `cut N` ends its answer early and
//! `bad N` in nonsense, `hello` opens the connection, `room N` says how many it takes, `away` that it takes no more.

use codec::{
    CloseEvent, DecodeError, Encoded, Ended, Event, Judgement, Key, Next, Opening, Origin, Protocol, Reply,
    Route, Session, Step, StreamEnd,
};
use testkit::{Piece, Script, Service, Text, Then, Turns};

use super::*;
use crate::plan::PoolPlan;

/// What a run of [`Lines`] is like.
#[derive(Debug, Clone, Copy)]
struct Lines {
    opening: Opening,
    room: usize,
    origins: u16,
    /// Requests of each journey, and the pause between two of them.
    steps: u64,
    think: Nanos,
}

const PLAIN: Lines = Lines { opening: Opening::Ready, room: 2, origins: 1, steps: 1, think: Nanos::ZERO };

/// A journey: its number, and which of its requests is next.
#[derive(Debug, Clone, Copy)]
struct Tour {
    n: u64,
    step: u64,
}

impl Protocol for Lines {
    type Journey = Tour;
    type Session = LinesSession;

    fn session(&self, _: Origin) -> LinesSession {
        LinesSession { opening: self.opening, room: self.room, outstanding: Vec::new() }
    }

    fn begin(&self, n: u64) -> Tour {
        Tour { n, step: 0 }
    }

    fn route(&self, tour: &Tour) -> Route {
        Route { origin: Origin((tour.n % u64::from(self.origins)) as u16), kind: tour.step as u16 }
    }

    fn kinds(&self) -> usize {
        self.steps as usize
    }

    fn advance(&self, tour: Tour, ended: Ended<'_, LinesSession>) -> Next<Tour> {
        let good = matches!(ended, Ended::Answered { judgement: Judgement::Good, .. });
        if !good || tour.step + 1 >= self.steps {
            return Next::End;
        }
        Next::Then { journey: Tour { step: tour.step + 1, ..tour }, think: self.think }
    }
}

struct LinesSession {
    opening: Opening,
    room: usize,
    outstanding: Vec<Key>,
}

impl LinesSession {
    fn ended(&mut self, n: &str) -> Key {
        let key = Key(n.parse().unwrap());
        self.outstanding.retain(|&other| other != key);
        key
    }
}

impl Session for LinesSession {
    type Journey = Tour;

    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        if self.opening != Opening::Ready {
            out.extend_from_slice(b"999 hello?\n");
        }
        self.opening
    }

    fn capacity(&self) -> usize {
        self.room
    }

    fn request(&mut self, tour: &Tour, key: Key, out: &mut Vec<u8>) -> Encoded {
        self.outstanding.push(key);
        out.extend_from_slice(format!("{}\n", tour.n).as_bytes());
        Encoded::Whole
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Ok(Step::new(input.len(), None));
        };
        let line = std::str::from_utf8(&input[..end]).unwrap();
        let good = Reply { code: 0, judgement: Judgement::Good, body_bytes: 0, keep: true };
        let event = match line.split_once(' ').unwrap_or((line, "")) {
            ("hello", _) => Some(Event::Opened),
            ("ok", n) => Some(Event::Finished(self.ended(n), good)),
            ("rst", n) => Some(Event::Failed(self.ended(n), StreamEnd::Reset)),
            ("cut", n) => Some(Event::Failed(self.ended(n), StreamEnd::Incomplete)),
            ("bad", n) => Some(Event::Failed(self.ended(n), StreamEnd::Malformed)),
            ("room", n) => {
                self.room = n.parse().unwrap();
                out.extend_from_slice(b"998 noted\n");
                None
            }
            ("away", _) => {
                self.room = 0;
                None
            }
            _ => return Err(DecodeError::Handshake { what: "no such word" }),
        };
        Ok(Step { consumed: end + 1, event, more: end + 1 < input.len() })
    }

    fn handle_close(&mut self) -> CloseEvent {
        if self.outstanding.is_empty() { CloseEvent::Idle } else { CloseEvent::BeforeResponse }
    }

    fn survives_early_answer(&self) -> bool {
        true
    }
}

fn run(plan: &Plan, script: &Script, lines: Lines) -> Simulated {
    simulate_protocol(plan, script, &lines, &Controls::default())
}

/// Answers `text` `after` the request; nothing where it is empty.
fn says(after: Nanos, text: &'static str) -> Service {
    if text.is_empty() {
        Service::nothing(Nanos::ZERO, Then::Keep)
    } else {
        Service::raw(after, text, Then::Keep)
    }
}

#[test]
fn answers_may_come_in_any_order() {
    let script = Script::serving(Turns::first(
        vec![says(ms(0), ""), says(ms(2), "ok 1\n")],
        says(ms(5), "ok 0\nok 2\n"),
    ));
    let run = run(&closed(1, 2, 3), &script, PLAIN);
    assert_eq!(endings(&run.total), "3 ok");
    let response = run.total.response().unwrap();
    // 1 after 2 ms, and 2 with 0 after 5 ms more.
    for (rank, expected) in [(1, ms(2)), (2, ms(5)), (3, ms(7))] {
        check_rank(response, rank, expected);
    }
}

/// If this fails, one stream that a server resets takes the others on its connection with it.
#[test]
fn a_stream_that_is_given_up_leaves_the_others_alone() {
    let script = Script::serving(Turns::first(vec![says(ms(0), "")], says(ms(2), "rst 0\nok 1\n")));
    let run = run(&closed(1, 2, 2), &script, PLAIN);
    assert_eq!(endings(&run.total), "1 ok; 1 reset/wait/server");
    assert_eq!(run.dials, 1);
}

/// If this fails, an answer that came in one read and was wrong is booked as time that the server took.
#[test]
fn an_answer_that_is_wrong_is_one_that_came() {
    for (line, ending) in
        [("cut 0\n", "1 incomplete_response/receive/server"), ("bad 0\n", "1 protocol_error/receive/server")]
    {
        let run = run(&closed(1, 1, 1), &Script::serving(Turns::always(says(ms(2), line))), PLAIN);
        assert_eq!(endings(&run.total), ending);
    }
}

#[test]
fn a_connection_that_takes_no_more_finishes_what_it_has() {
    let away = says(ms(2), "away\nok 0\n");
    let script = Script::serving(Turns::first(vec![away, says(ms(2), "ok 1\n")], says(ms(2), "ok 2\n")));
    let run = run(&closed(1, 1, 3), &script, Lines { room: 1, ..PLAIN });
    assert_eq!(endings(&run.total), "3 ok");
    assert_eq!((run.dials, run.total.counts.idle_closes), (2, 0));
}

/// If this fails, a server that allows one stream at a time is asked for more.
#[test]
fn room_may_change_while_the_connection_stands() {
    // The first input makes room for two, and has to be answered.
    let first = says(ms(1), "room 2\nok 0\n");
    let script = Script::serving(Turns::first(
        vec![first, says(ms(0), ""), says(ms(0), "")],
        says(ms(1), "ok 1\nok 2\n"),
    ));
    let run = run(&closed(1, 3, 3), &script, Lines { room: 1, ..PLAIN });
    assert_eq!(endings(&run.total), "3 ok");
    assert_eq!(run.total.phase(Phase::PoolWait).unwrap().count(), 3);
}

#[test]
fn a_handshake_is_a_phase_of_its_own() {
    let script = Script::serving(Turns::first(
        vec![says(ms(7), "hello\n"), says(ms(2), "ok 0\n")],
        says(ms(2), "ok 1\n"),
    ));
    let run = run(&closed(1, 1, 2), &script, Lines { opening: Opening::Tls, ..PLAIN });
    assert_eq!(endings(&run.total), "2 ok");
    let sums = phase_sums_us(&run.total);
    let of = |phase| sums.iter().find(|(other, _)| *other == phase).map(|(_, sum)| *sum);
    assert_eq!((of(Phase::Tls), of(Phase::Connect), of(Phase::Wait)), (Some(7e3), Some(0.0), Some(4e3)));
    assert_eq!(run.total.phase(Phase::Tls).unwrap().count(), 1);
}

#[test]
fn a_handshake_that_fails_is_booked_as_such() {
    let one = |service, opening| {
        let mut plan = closed(1, 1, 1);
        plan.pool = PoolPlan { connect_timeout: Some(ms(50)), ..plan.pool };
        let run = run(&plan, &Script::serving(Turns::always(service)), Lines { opening, ..PLAIN });
        endings(&run.total)
    };
    let failed = "1 tls_failed/tls/server";
    assert_eq!(one(says(ms(1), "what?\n"), Opening::Tls), failed);
    assert_eq!(one(Service::nothing(ms(1), Then::Close), Opening::Tls), failed);
    assert_eq!(one(Service::nothing(ms(1), Then::Reset), Opening::Tls), failed);
    assert_eq!(one(says(ms(1), "what?\n"), Opening::Auth), "1 auth_failed/auth/server");
    let silent = Service::nothing(ms(1), Then::Hang);
    assert_eq!(one(silent, Opening::Tls), "1 connect_timeout/tls/undecided");
}

#[test]
fn each_origin_has_its_own_pool() {
    let mut plan = closed(1, 4, 40);
    plan.peers = vec![plan.peers[0].clone(), plan.peers[0].clone()];
    let script = Script::serving(Turns::always(Service {
        early_bytes: None,
        after: ms(1),
        pieces: vec![Piece { after: ms(0), text: vec![Text::of("ok "), Text::Number, Text::of("\n")] }],
        then: Then::Keep,
    }));
    let run = run(&plan, &script, Lines { origins: 2, room: 1, ..PLAIN });
    assert_eq!((endings(&run.total).as_str(), run.dials), ("40 ok", 2));
    assert_eq!(run.elapsed, ms(20));
}

/// If this fails, the second step of a session is measured from the session's start, or from nothing.
#[test]
fn the_steps_of_a_journey_follow_each_other() {
    let script = Script::serving(Turns::always(Service {
        early_bytes: None,
        after: ms(2),
        pieces: vec![Piece { after: ms(0), text: vec![Text::of("ok "), Text::Number, Text::of("\n")] }],
        then: Then::Keep,
    }));
    let lines = Lines { steps: 3, think: ms(10), ..PLAIN };
    let run = run(&closed(1, 1, 2), &script, lines);
    // Two journeys of three requests, one after the other, by one caller: 3 × 2 ms and 2 × 10 ms each.
    assert_eq!((endings(&run.total).as_str(), run.elapsed), ("6 ok", ms(52)));
    check_rank(run.total.response().unwrap(), 6, ms(2));
    let by_step: Vec<u64> = run.total.kinds().iter().map(|kind| kind.ok).collect();
    assert_eq!(by_step, [2, 2, 2]);
    // A journey ends with a request that fails.
    let fails = Script::serving(Turns::first(vec![says(ms(2), "ok 0\n")], says(ms(2), "rst 0\n")));
    let cut = super::streams::run(&closed(1, 1, 1), &fails, lines);
    assert_eq!(endings(&cut.total), "1 ok; 1 reset/wait/server");
}
