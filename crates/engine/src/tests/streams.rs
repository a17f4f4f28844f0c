//! Connections that open with a handshake, carry several requests at once, and get responses in any order; several
//! origins; journeys.
//!
//! The peer sends lines: `ok N` is the response to request N, `rst N` resets it, `cut N` ends its response early and
//! `bad N` makes it malformed, `hello` opens the connection, `room N` sets how many requests it takes, `away` announces
//! that it takes no more; after `deaf` the session refuses the requests it is given.

use codec::{
    CloseEvent, DecodeError, Encoded, Ended, Event, Judgement, Key, Next, Opening, Origin, Protocol, Reply,
    Route, Session, Step, StreamEnd,
};
use testkit::{Acks, Dial, Piece, Script, Service, Text, Then, Turns, Way};

use super::*;
use crate::controls::Order;
use crate::plan::PoolPlan;

/// The properties of a run of [`Lines`].
#[derive(Debug, Clone, Copy)]
struct Lines {
    opening: Opening,
    room: usize,
    origins: u16,
    /// Whether single requests can be cancelled.
    cancels: bool,
    /// Requests per journey, and the pause between two of them.
    steps: u64,
    think: Nanos,
}

const PLAIN: Lines =
    Lines { opening: Opening::Ready, room: 2, origins: 1, cancels: false, steps: 1, think: Nanos::ZERO };

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
        let Lines { opening, room, cancels, .. } = *self;
        LinesSession { opening, room, cancels, outstanding: Vec::new(), deaf: false, refused: Vec::new() }
    }

    fn begin(&self, n: u64) -> Tour {
        Tour { n, step: 0 }
    }

    fn route(&self, tour: &Tour) -> Route {
        let origin = Origin((tour.n % u64::from(self.origins)) as u16);
        Route { origin, kind: tour.step as u16, ..Route::default() }
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
    cancels: bool,
    outstanding: Vec<Key>,
    deaf: bool,
    refused: Vec<Key>,
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
        assert!(self.outstanding.len() < self.room, "more requests than it takes");
        if self.deaf {
            self.refused.push(key);
            return Encoded::Whole;
        }
        self.outstanding.push(key);
        out.extend_from_slice(format!("{}\n", tour.n).as_bytes());
        Encoded::Whole
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        if let Some(key) = self.refused.pop() {
            return Ok(Step::new(0, Some(Event::Failed(key, StreamEnd::Unprocessed))));
        }
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Ok(Step::new(input.len(), None));
        };
        let line = std::str::from_utf8(&input[..end]).unwrap();
        let good = Reply { code: None, judgement: Judgement::Good, body_bytes: 0, keep: true };
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
            ("deaf", _) => {
                self.deaf = true;
                None
            }
            _ => return Err(DecodeError::Handshake { what: "no such word" }),
        };
        Ok(Step { more: end + 1 < input.len(), ..Step::new(end + 1, event) })
    }

    fn handle_close(&mut self) -> CloseEvent {
        if self.outstanding.is_empty() { CloseEvent::Idle } else { CloseEvent::BeforeResponse }
    }

    fn cancel(&mut self, key: Key, out: &mut Vec<u8>) -> bool {
        if self.cancels {
            self.outstanding.retain(|&other| other != key);
            out.extend_from_slice(b"997 cancelled\n");
        }
        self.cancels
    }

    fn survives_early_response(&self) -> bool {
        true
    }
}

fn run(plan: &RunPlan, script: &Script, lines: Lines) -> Simulated {
    simulate_protocol(plan, script, &lines, &Controls::default())
}

/// Sends `text` `after` the request, or nothing if it is empty.
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

/// If this fails, a stream that is reset by the server takes the others on its connection with it.
#[test]
fn a_stream_that_is_given_up_leaves_the_others_alone() {
    let script = Script::serving(Turns::first(vec![says(ms(0), "")], says(ms(2), "rst 0\nok 1\n")));
    let run = run(&closed(1, 2, 2), &script, PLAIN);
    assert_eq!(endings(&run.total), "1 ok; 1 reset/wait/server");
    assert_eq!(run.dials, 1);
}

/// If this fails, a stream that times out takes the others on its connection with it, although they are fine.
#[test]
fn a_stream_that_times_out_leaves_the_others_alone() {
    let mut plan = open("20/s", 4);
    (plan.pool.users, plan.pool.request_timeout) = (4, Some(ms(120)));
    // Due at 0, 50, 100 and 150. The first gets no response; the fourth turn of the server is its end, at 120.
    let turns = vec![says(ms(0), ""), says(ms(60), "ok 1\n"), says(ms(60), "ok 2\n"), says(ms(0), "")];
    let script = Script::serving(Turns::first(turns, says(ms(60), "ok 3\n")));
    let timed_out = "3 ok; 1 request_timeout/wait/server";
    let run = super::streams::run(&plan, &script, Lines { cancels: true, ..PLAIN });
    assert_eq!((endings(&run.total).as_str(), run.dials), (timed_out, 1));
    // If nothing is received and what was sent is not acknowledged, the network path itself may be dead.
    let way = Way { acks: Acks::Never, ..Way::default() };
    let dead = Script::serving(Turns::always(says(ms(0), "")))
        .dialing(Turns::always(Dial::Stands { after: ms(0), way }));
    let run = super::streams::run(&plan, &dead, Lines { cancels: true, room: 4, ..PLAIN });
    assert_eq!((endings(&run.total).as_str(), run.dials), ("4 request_timeout/wait/undecided", 2));
}

/// If this fails, a malformed response that came in one read is counted as time of the server.
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

/// If this fails, a server that allows one stream at a time is sent more.
#[test]
fn room_may_change_while_the_connection_stands() {
    // The first input makes room for two, and needs a reply.
    let first = says(ms(1), "room 2\nok 0\n");
    let script = Script::serving(Turns::first(
        vec![first, says(ms(0), ""), says(ms(0), "")],
        says(ms(1), "ok 1\nok 2\n"),
    ));
    let run = run(&closed(1, 3, 3), &script, Lines { room: 1, ..PLAIN });
    assert_eq!(endings(&run.total), "3 ok");
    assert_eq!(run.total.phase(Phase::PoolWait).unwrap().count(), 3);
}

/// If this fails, requests assigned to a connection as it broke are lost, and so the run never ends, if a new
/// connection has less room than the broken one had.
#[test]
fn a_fresh_connection_may_have_less_room_than_the_one_that_broke() {
    // The second turn is the reply to the room.
    let services = vec![says(ms(1), "room 2\n"), says(ms(0), ""), says(ms(1), "ok 0\nok 1\nwhat?\n")];
    let script = Script::serving(Turns::first(
        [services, vec![says(ms(1), "ok 2\n")]].concat(),
        says(ms(1), "ok 3\n"),
    ));
    let run = run(&closed(1, 2, 4), &script, Lines { room: 1, ..PLAIN });
    assert_eq!((endings(&run.total).as_str(), run.dials), ("4 ok", 2));
    // The last waits for the one before it.
    assert_eq!(run.elapsed, ms(4));
}

/// If this fails, requests are assigned to a connection whose server takes no more, and are lost there.
#[test]
fn a_connection_that_is_left_with_room_gets_no_more() {
    let text = |text| vec![Text::of(text)];
    let pieces =
        vec![Piece { after: ms(1), text: text("away\n") }, Piece { after: ms(29), text: text("ok 0\n") }];
    let script = Script::serving(Turns::first(vec![Service::pieces(ms(0), pieces)], says(ms(1), "ok 1\n")));
    let mut plan = open("100/s", 2);
    plan.pool.users = 2;
    let run = run(&plan, &script, PLAIN);
    assert_eq!((endings(&run.total).as_str(), run.dials), ("2 ok", 2));
    // Due at 10; the connection can be opened again at 30.
    assert_eq!(run.total.phase(Phase::PoolWait).map(sum), Some(20_000_000));
}

/// If this fails, a request refused by its session vanishes when the connection closes, and the counts do not add up.
#[test]
fn what_a_session_refuses_gets_another_connection() {
    let text = |text| vec![Text::of(text)];
    let pieces =
        vec![Piece { after: ms(1), text: text("deaf\nok 0\n") }, Piece { after: ms(29), text: text("") }];
    let deaf = Service { then: Then::Close, ..Service::pieces(ms(0), pieces) };
    let script = Script::serving(Turns::first(vec![deaf], says(ms(1), "ok 1\n")));
    let mut plan = open("100/s", 2);
    plan.pool.users = 2;
    let run = run(&plan, &script, PLAIN);
    assert_eq!((endings(&run.total).as_str(), run.dials), ("2 ok", 2));
    assert_eq!(run.elapsed, ms(31));
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

/// If this fails, a server that closes after each handshake is retried forever, and time goes backwards in a request.
#[test]
fn a_close_right_behind_the_handshake_ends_what_waited_for_it() {
    let script = Script::serving(Turns::always(Service::raw(ms(1), "hello\n", Then::Close)));
    let run = run(&closed(1, 1, 3), &script, Lines { opening: Opening::Tls, ..PLAIN });
    assert_eq!((endings(&run.total).as_str(), run.dials), ("3 closed_before_response/send/server", 3));
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

/// If this fails, the second step of a journey is measured from the journey's start, or from nothing.
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
    // Two journeys of three requests, one after the other, by one virtual user: 3 × 2 ms and 2 × 10 ms each.
    assert_eq!((endings(&run.total).as_str(), run.elapsed), ("6 ok", ms(52)));
    check_rank(run.total.response().unwrap(), 6, ms(2));
    let by_step: Vec<u64> = run.total.kinds().iter().map(|kind| kind.ok).collect();
    assert_eq!(by_step, [2, 2, 2]);
    // A journey ends with a request that fails.
    let fails = Script::serving(Turns::first(vec![says(ms(2), "ok 0\n")], says(ms(2), "rst 0\n")));
    let cut = super::streams::run(&closed(1, 1, 1), &fails, lines);
    assert_eq!(endings(&cut.total), "1 ok; 1 reset/wait/server");
}

/// The line protocol whose run is ended in order when the journey of this number has its first response.
struct EndedBy<'a> {
    lines: Lines,
    controls: &'a Controls,
    n: u64,
}

impl Protocol for EndedBy<'_> {
    type Journey = Tour;
    type Session = LinesSession;

    fn session(&self, origin: Origin) -> LinesSession {
        self.lines.session(origin)
    }

    fn begin(&self, n: u64) -> Tour {
        self.lines.begin(n)
    }

    fn route(&self, tour: &Tour) -> Route {
        self.lines.route(tour)
    }

    fn kinds(&self) -> usize {
        self.lines.kinds()
    }

    fn advance(&self, tour: Tour, ended: Ended<'_, LinesSession>) -> Next<Tour> {
        if tour.n == self.n {
            self.controls.order_at(Order::End, ms(40));
        }
        self.lines.advance(tour, ended)
    }
}

/// If this fails, a run that is ended with a key continues until every journey's think time is over.
#[test]
fn ending_a_run_well_ends_the_journeys_that_wait() {
    let controls = Controls::default();
    let lines = Lines { steps: 3, think: Nanos::from_secs(2), ..PLAIN };
    let script = Script::serving(Turns::first(vec![says(ms(2), "ok 0\n")], says(ms(2), "ok 1\n")));
    let ended = EndedBy { lines, controls: &controls, n: 1 };
    let run = simulate_protocol(&closed(1, 2, 100), &script, &ended, &controls);
    assert_eq!(endings(&run.total), "2 ok");
    assert!(run.elapsed < ms(200), "{}", run.elapsed);
}
