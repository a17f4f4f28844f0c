//! Each rule once where it must apply, and a run that needs no advice.

mod fixture;

use fixture::{MS, Run, US, book_failure, book_ok, kept, timeline};
use record::document::{EffectiveOption, Finding, Model, OptionSource, State, VerdictWord};
use record::{Check, Failure, Outcome, Phase, Timeline};

fn advised(
    mut run: Run,
    requests: impl IntoIterator<Item = Timeline>,
    failures: &[(Outcome, Phase)],
) -> Vec<String> {
    run.second(|interval| {
        requests.into_iter().for_each(|request| book_ok(interval, &request));
        for &(outcome, phase) in failures {
            book_failure(interval, Failure::new(outcome, phase), 1_000 * MS);
        }
    });
    run.finish(State::Finished);
    let document = &run.document;
    let results = document.results.as_ref().expect("a finished run has results");
    let advice = findings::advice(results, document, &run.seconds);
    advice.into_iter().map(|advice| format!("{} {}", advice.finding, advice.reason)).collect()
}

#[track_caller]
fn says(advice: &[String], parts: &[&str]) {
    let [only] = advice else { panic!("one piece of advice, not {advice:#?}") };
    for part in parts {
        assert!(only.contains(part), "{part:?} is not in {only:?}");
    }
}

#[test]
fn a_healthy_run_needs_no_advice() {
    assert_eq!(advised(Run::open(100.0, 8, 1), vec![kept(US, US, 5 * MS); 100], &[]), [""; 0]);
    assert_eq!(advised(Run::closed(4, 4, 100), vec![kept(US, US, 5 * MS); 100], &[]), [""; 0]);
}

#[test]
fn a_small_pool_in_a_closed_loop_is_named() {
    let advice = advised(Run::closed(4, 2, 100), vec![kept(0, 2_000 * MS, 2_000 * MS); 100], &[]);
    says(
        &advice,
        &[
            "The pool, not the server",
            "waited 2.00 s for one of 2 connections",
            "took 2.00 s",
            "; with 4 connections none would wait",
        ],
    );
}

/// 100/s, each holding a connection for 50 ms, keep 5 busy: below 70 % busy means 8.
#[test]
fn a_small_pool_in_an_open_loop_is_sized_by_littles_law() {
    let advice = advised(Run::open(100.0, 4, 1), vec![kept(0, 40 * MS, 50 * MS - 19 * US); 100], &[]);
    says(
        &advice,
        &[
            "waited 40.0 ms for one of 4",
            "for 50.0 ms, keep 5.0 connections busy on average; with 8 connections",
            "(62.5 % busy)",
        ],
    );
}

/// A closed loop of 8 connections whose server freezes in second 3 and responds in the next.
fn frozen(held: u64, stalled: u64) -> Vec<String> {
    let mut run = Run::closed(8, 8, 0);
    for at in 0..6 {
        run.second(|interval| {
            interval.counts.outstanding = 8;
            interval.outstanding_time = Some(u128::from(if at == 3 { held } else { 8 } * 1_000 * MS));
            interval.worker_stall_max = units::Nanos(if at == 3 { stalled } else { 0 });
            let answers = if at == 3 { 4 } else { 800 };
            (0..answers).for_each(|_| book_ok(interval, &kept(0, 0, 10 * MS)));
            if at == 4 {
                (0..8).for_each(|_| book_ok(interval, &kept(0, 0, 996 * MS)));
            }
        });
    }
    run.finish(State::Finished);
    let document = &run.document;
    let results = document.results.as_ref().expect("a finished run has results");
    let advice = findings::advice(results, document, &run.seconds);
    advice.into_iter().map(|advice| format!("{} {}", advice.finding, advice.reason)).collect()
}

/// If this fails, a server that was stalled for a second looks like one with a few slow requests.
#[test]
fn a_server_that_stood_still_is_named() {
    says(
        &frozen(8, 0),
        &[
            "All 8 connections were occupied by requests of up to 996 ms at second 3: the server, or the network path",
            "There were 4 responses in 1.00 s, compared with the usual 800 per second",
        ],
    );
    // Connections without a request, because of think time, and a client that did not run.
    assert_eq!(frozen(4, 0), [""; 0]);
    assert_eq!(frozen(8, 900 * MS), [""; 0]);
}

/// If this fails, every server that takes two seconds counts as stalled.
#[test]
fn callers_who_keep_step_make_no_freeze() {
    let mut run = Run::closed(50, 50, 0);
    for at in 0..10 {
        run.second(|interval| {
            interval.counts.outstanding = 50;
            interval.outstanding_time = Some(u128::from(50 * 1_000 * MS));
            (0..at % 2 * 50).for_each(|_| book_ok(interval, &kept(0, 0, 2_000 * MS)));
        });
    }
    run.finish(State::Finished);
    let results = run.document.results.as_ref().expect("a finished run has results");
    assert_eq!(findings::advice(results, &run.document, &run.seconds), []);
}

#[test]
fn a_pool_that_is_large_enough_sends_one_to_the_stalls() {
    let advice = advised(Run::open(100.0, 64, 1), vec![kept(0, 40 * MS, 50 * MS); 100], &[]);
    says(&advice, &["so 64 are enough", "look at the slowest seconds"]);
}

#[test]
fn a_few_long_waits_are_named_by_their_mean() {
    let mut requests = vec![kept(0, 0, MS); 80];
    requests.extend(vec![kept(0, 100 * MS, MS); 20]);
    says(&advised(Run::closed(8, 2, 100), requests, &[]), &["waited 20.0 ms on average for"]);
}

#[test]
fn pipelines_share_connections() {
    let mut run = Run::closed(8, 1, 100);
    run.document.load.pipeline = 4;
    let advice = advised(run, vec![kept(0, 9 * MS, MS); 100], &[]);
    says(&advice, &["1 connection can carry only 4 at a time; with 2 connections"]);
}

#[test]
fn a_client_behind_its_schedule_is_named() {
    says(
        &advised(Run::open(100.0, 8, 1), vec![kept(MS, 0, 9 * MS); 100], &[]),
        &["10.0 % of the response time is schedule lag (typically 1.00 ms"],
    );
}

#[test]
fn a_client_that_reads_late_is_named() {
    let late = timeline([Some(0), Some(0), None, None, None, None, Some(0), Some(9 * MS), Some(0), Some(MS)]);
    says(
        &advised(Run::open(100.0, 8, 1), vec![late; 100], &[]),
        &["read responses late: for 10.0 %", "(typically 1.00 ms)"],
    );
}

#[test]
fn connections_that_are_not_kept_are_named() {
    let new =
        timeline([Some(0), Some(0), None, Some(MS), None, None, Some(0), Some(9 * MS), Some(0), Some(0)]);
    says(
        &advised(Run::open(100.0, 8, 1), vec![new; 100], &[]),
        &["100 of 100 successful requests opened a new connection (10.0 %"],
    );
    // A short run in which each connection was used once and kept does not count.
    assert_eq!(advised(Run::open(8.0, 8, 1), vec![new; 8], &[]), [""; 0]);
}

#[test]
fn name_lookups_are_named() {
    let slow =
        timeline([Some(0), Some(0), Some(MS), Some(MS), None, None, Some(0), Some(8 * MS), Some(0), Some(0)]);
    let advice = advised(Run::open(100.0, 200, 1), vec![slow; 100], &[]);
    says(&advice, &["lookups take 10.0 %"]);
}

#[test]
fn unanswered_requests_say_from_where_on_nothing_is_known() {
    let failures = [(Outcome::RequestTimeout, Phase::Wait); 2];
    says(
        &advised(Run::open(100.0, 8, 1), vec![kept(0, 0, MS); 98], &failures),
        &["2 requests (2.0 %)", "above p98.0"],
    );
}

#[test]
fn the_reason_follows_what_became_of_most_of_the_unanswered() {
    use Outcome::{InFlight, NotSent, QueueFull, RequestTimeout, Reset};
    for (outcomes, part) in [
        ([RequestTimeout, RequestTimeout, Reset], "a longer one would show"),
        ([Reset, RequestTimeout, Reset], "Check the server's listen queue"),
        ([QueueFull, QueueFull, Reset], "not help: use more connections"),
        ([InFlight, NotSent, InFlight], "longer -d or --drain"),
    ] {
        let failures = outcomes.map(|outcome| (outcome, Phase::Wait));
        let advice = advised(Run::open(100.0, 8, 1), vec![kept(0, 0, MS); 97], &failures);
        says(&advice, &["3 requests (3.0 %) never got a complete response", part]);
    }
}

/// The median service time is three times the shortest: the server is slower under this load, and no number of
/// connections helps.
#[test]
fn a_pool_before_a_server_that_slows_down_is_no_cure() {
    let mut requests = vec![kept(0, 40 * MS, 10 * MS); 20];
    requests.extend(vec![kept(0, 40 * MS, 30 * MS); 80]);
    for run in [Run::closed(16, 4, 100), Run::open(200.0, 4, 1)] {
        let advice = advised(run, requests.clone(), &[]);
        says(
            &advice,
            &["Requests waited 40.0 ms for one of", "as an experiment (service time is already 3.0 times"],
        );
        assert!(!advice[0].contains("none would wait") && !advice[0].contains("headroom"), "{advice:?}");
    }
}

/// If this fails, a pool is sized by the requests that got a response, when others occupied its connections for far
/// longer.
#[test]
fn timeouts_leave_the_size_of_a_pool_unknown() {
    let requests = vec![kept(0, 40 * MS, 10 * MS); 100];
    let about_the_pool = |failures: &[(Outcome, Phase)]| {
        let advice = advised(Run::open(500.0, 4, 1), requests.clone(), failures);
        advice.iter().any(|advice| advice.contains("Little's law"))
    };
    assert!(about_the_pool(&[]));
    // Those of a run that ended are on their connections as usual.
    assert!(about_the_pool(&[(Outcome::InFlight, Phase::Wait); 4]));
    assert!(!about_the_pool(&[(Outcome::RequestTimeout, Phase::Wait); 2]));
}

/// If this fails, more connections are recommended for a load generator that is too slow.
#[test]
fn a_pool_that_a_slow_client_cannot_use_gets_no_advice() {
    let mut run = Run::open(500.0, 4, 1);
    run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(0, 40 * MS, 10 * MS))));
    run.finish(State::Finished);
    let advised = |run: &Run| {
        let results = run.document.results.as_ref().unwrap();
        let advice = findings::advice(results, &run.document, &run.seconds);
        advice.iter().any(|advice| advice.rule == "pool-owns")
    };
    assert!(advised(&run));
    let slow = Finding {
        check: Check::OfferedLoad,
        makes: VerdictWord::Invalid,
        measured: String::new(),
        limit: String::new(),
        advice: String::new(),
    };
    run.document.verdict.as_mut().unwrap().findings.push(slow);
    assert!(!advised(&run));
}

/// If this fails, a few requests during a stall make a pool the only culprit.
#[test]
fn a_pool_behind_a_server_that_stalled_is_not_the_only_culprit() {
    let mut requests = vec![kept(0, 400 * MS, 5 * MS); 90];
    requests.extend(vec![kept(0, 400 * MS, 800 * MS); 10]);
    let advice = advised(Run::open(100.0, 4, 1), requests, &[]);
    assert!(advice.iter().any(|advice| advice.starts_with("Requests waited 400 ms")), "{advice:?}");
}

/// If this fails, connections that the client closed after a timeout count as closed by the server.
#[test]
fn connections_closed_after_timeouts_are_no_fault_of_keep_alive() {
    let new =
        timeline([Some(0), Some(0), None, Some(MS), None, None, Some(0), Some(9 * MS), Some(0), Some(0)]);
    let timeouts = [(Outcome::RequestTimeout, Phase::Wait); 95];
    let advice = advised(Run::open(200.0, 8, 1), vec![new; 100], &timeouts);
    assert!(!advice.iter().any(|advice| advice.contains("Keep-alive")), "{advice:?}");
}

#[test]
fn nothing_ok_names_what_happened() {
    let failures = [(Outcome::ConnectRefused, Phase::Connect); 3];
    says(
        &advised(Run::open(100.0, 8, 1), [], &failures),
        &["3 of 3 ended in connect_refused", "on the port", "`curl -v URL`"],
    );
}

/// A record names every option, also those that were not given. If this fails, someone whose port is closed looks for a
/// socket.
#[test]
fn nothing_ok_names_the_port_where_no_socket_was_given() {
    let failures = [(Outcome::ConnectRefused, Phase::Connect); 3];
    let mut run = Run::open(100.0, 8, 1);
    let unix = EffectiveOption { value: "none".to_owned(), source: OptionSource::Derived };
    run.document.envelope.options.insert("unix".to_owned(), unix);
    says(&advised(run, [], &failures), &["(nothing listens on the port)", "`curl -v URL`"]);
}

/// If this fails, someone whose Unix domain socket is missing looks for a port.
#[test]
fn nothing_ok_names_the_socket_of_a_unix_domain() {
    let failures = [(Outcome::ConnectRefused, Phase::Connect); 3];
    let mut by_url = Run::open(100.0, 8, 1);
    by_url.document.subject.url = "unix:/no/such:/".to_owned();
    let mut by_option = Run::open(100.0, 8, 1);
    let unix = EffectiveOption { value: "/no/such".to_owned(), source: OptionSource::Given };
    by_option.document.envelope.options.insert("unix".to_owned(), unix);
    for run in [by_url, by_option] {
        let advice = advised(run, [], &failures);
        let parts =
            ["(nothing listens on the socket)", "the socket exists", "`curl -v --unix-socket PATH URL`"];
        says(&advice, &parts);
    }
}

#[test]
fn the_trap_tells_the_three_numbers() {
    let mut run = Run::closed(4, 2, 100);
    assert_eq!(run.document.load.model, Model::Closed);
    run.second(|interval| (0..100).for_each(|_| book_ok(interval, &kept(3 * US, 2_000 * MS, 2_000 * MS))));
    run.finish(State::Finished);
    let trap = findings::trap(run.document.results.as_ref().unwrap()).unwrap();
    assert!(trap.is_median);
    for (value, seconds) in [(trap.interceptor, 4.0), (trap.service, 2.0), (trap.pool_wait, 2.0)] {
        assert!((value.as_secs_f64() / seconds - 1.0).abs() < 2e-3, "{value}");
    }
    assert_eq!(trap.lag.0, 3 * US);
}

#[test]
fn without_an_answer_there_is_no_trap() {
    let mut run = Run::closed(4, 2, 0);
    run.finish(State::Finished);
    assert_eq!(findings::trap(run.document.results.as_ref().unwrap()), None);
}
