//! Whole reports. Read a changed snapshot as a reader of tickets would, before accepting it.

mod fixture;

use expect_test::{Expect, expect};
use fixture::{MS, Run, US, book_failure, book_ok, failing, good, kept, pool};
use record::document::State;
use record::{Failure, Outcome, Phase};
use report::Style;
use units::Nanos;

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(text);
    assert!(text.lines().count() <= 50, "{} lines", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
    assert!(!text.to_lowercase().contains("latency"));
}

#[test]
fn a_good_run() {
    check(
        &good().text(Style::PLAIN),
        &expect![[r#"
            valid: 1000/s ok of 1000/s requested
            response  p50 1.10 ms   p90 1.78 ms   p99 21.3 ms   max 25.3 ms
            errors    0 of 30000 requests
              independence (note): these 30000 requests are worth only 28 independent samples, because response…

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                    1.10 ms   1.78 ms   21.3 ms   22.2 ms   25.3 ms
              service      sent to arrived                     1.09 ms   1.77 ms   21.2 ms   22.2 ms   25.3 ms
              schedule_lag client                     < 0.1 %  1.50 us   2.71 us   2.98 us   4.00 us   4.00 us
              pool_wait    pool                         0.1 %  2.00 us   2.00 us   2.00 us   2.00 us   2.00 us
              resolve      network                         –    the target is an address
              connect      network or server          < 0.1 %  60.0 us   60.0 us  too few   too few    60.0 us
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server            0.5 %  9.01 us   9.01 us   9.01 us   9.01 us   9.01 us
              wait         server and network ██████▉  98.8 %  1.08 ms   1.76 ms   21.2 ms   22.2 ms   25.2 ms
              receive      server and network           0.2 %  4.00 us   4.00 us   4.00 us   4.00 us   4.00 us
              client_lag   client                       0.3 %  6.00 us   6.00 us   6.00 us   6.00 us   6.00 us

              codes     200 × 30000

              ok per second, 1000/s requested
                   1000/s ████████████████████████████████████████████████████████████
                          ████████████████████████████████████████████████████████████
                      0/s ████████████████████████████████████████████████████████████
                          0 s                                                     30 s

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 1000/s requested over 64 connections, 2 workers, for 30.0 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn ascii_and_eighty_columns_lose_no_number() {
    let text = good().text(Style { unicode: false, width: 80, details: true, ..Style::PLAIN });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    check(
        &good().text(Style { unicode: false, width: 80, details: true, ..Style::PLAIN }),
        &expect![[r#"
            valid: 1000/s ok of 1000/s requested
            response  p50 1.10 ms   p90 1.78 ms   p99 21.3 ms   max 25.3 ms
            errors    0 of 30000 requests
            checks    all checks passed, with 1 note
              independence (note): these 30000 requests are worth only 28 independent
              samples, because response times differ from second to second: the p95, p99 and
              p99.9 confidence intervals are too narrow; limit: 72 for p95, 368 for p99,
              3688 for p99.9
                the figures are correct, but another run can differ by more than the
                intervals say: run longer, or several times

                                               share    p50       p90       p99       max
              response     seen by the user            1.10 ms   1.78 ms   21.3 ms   25.3 ms
              service      sent to arrived             1.09 ms   1.77 ms   21.2 ms   25.3 ms
              schedule_lag client             < 0.1 %  1.50 us   2.71 us   2.98 us   4.00 us
              pool_wait    pool                 0.1 %  2.00 us   2.00 us   2.00 us   2.00 us
              resolve      network                 -    the target is an address
              connect      network or server  < 0.1 %  60.0 us   60.0 us  too few    60.0 us
              tls          network or server       -    no TLS
              auth         server                  -    the protocol has no login
              send         network or server    0.5 %  9.01 us   9.01 us   9.01 us   9.01 us
              wait         server and network  98.8 %  1.08 ms   1.76 ms   21.2 ms   25.2 ms
              receive      server and network   0.2 %  4.00 us   4.00 us   4.00 us   4.00 us
              client_lag   client               0.3 %  6.00 us   6.00 us   6.00 us   6.00 us

              codes     200 x 30000

              ok per second, 1000/s requested
                   1000/s ############################################################
                          ############################################################
                      0/s ############################################################
                          0 s                                                     30 s

              response time with 95 % confidence intervals
              p50   1.10 ms [1.10, 1.11]   p75   1.33 ms [1.32, 1.34]
              p90   1.78 ms [1.76, 1.80]   p95   2.50 ms [2.42, 2.61]
              p99   21.3 ms [21.2, 21.3]   p99.9 22.2 ms [22.0, 22.4]
              too few samples: p99.99 needs 36887

              requests  30000 scheduled = 30000 ok + 0 failed; 5.1 MiB received
              client    40.0 us of CPU per request, busiest worker 2.0 % of a core, 64
                        connections opened
              given     --duration=30s --rate=1000/s
              default   --connect-timeout=5s --connections=64 --timeout=10s --workers=2

              2025-11-21T21:53:00Z, on bench1, Linux 6.8.0, 8 CPUs, parallax 0.1.0

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 1000/s requested over 64 connections, 2 workers, for 30.0 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn what_others_wrote_cannot_command_the_terminal() {
    let mut run = good().option("header", "a: \u{1b}]0;x\u{7}\r\nb", record::document::OptionSource::Given);
    run.document.host.name = Some("\u{1b}[2J\u{202e}evil".to_owned());
    run.document.subject.url = "http://h/\u{9b}1m\n".to_owned();
    let details = Style { details: true, ..Style::PLAIN };
    for text in [run.text(details), run.demo(details)] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'));
        assert!(text.contains("http://h/\\u{9b}1m\\u{a}"), "{text}");
    }
    assert_eq!(run.text(details).lines().count(), good().text(details).lines().count());
    assert!(run.text(details).contains("on \\u{1b}[2J\\u{202e}evil, Linux"));
}

#[test]
fn a_positional_is_written_as_it_is_typed() {
    let given = record::document::OptionSource::Given;
    let text = good()
        .option("url", "http://127.0.0.1:8080/json", given)
        .text(Style { details: true, ..Style::PLAIN });
    assert!(text.contains("--rate=1000/s http://127.0.0.1:8080/json\n"), "{text}");
}

#[test]
fn colour_changes_no_word() {
    let coloured = good().text(Style { colour: true, ..Style::PLAIN });
    assert!(coloured.contains('\u{1b}'));
    let plain: String = coloured
        .split('\u{1b}')
        .enumerate()
        .map(|(i, part)| if i == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(
        plain.lines().map(str::trim_end).collect::<Vec<_>>(),
        good().text(Style::PLAIN).lines().collect::<Vec<_>>()
    );
}

#[test]
fn the_pool_trap() {
    check(
        &pool().text(Style::PLAIN),
        &expect![[r#"
            valid: 1/s ok
            response  p50 4.00 s   p90 too few   p99 too few   max 4.00 s
            errors    0 of 10 requests
              checks not made: independence (responses in 5 seconds, needs 8)

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                    4.00 s   too few   too few   too few    4.00 s
              service      sent to arrived                     2.00 s   too few   too few   too few    2.00 s
              schedule_lag client                     < 0.1 %  3.00 us  too few   too few   too few    3.00 us
              pool_wait    pool               ███▏     44.4 %  2.00 s   too few   too few   too few    2.00 s
              resolve      network                         –    the target is an address
              connect      network or server          < 0.1 % too few   too few   too few   too few    80.1 us
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server          < 0.1 %  9.01 us  too few   too few   too few    12.0 us
              wait         server and network ███▉     55.6 %  2.00 s   too few   too few   too few    2.00 s
              receive      server and network         < 0.1 %  4.00 us  too few   too few   too few    4.00 us
              client_lag   client                     < 0.1 %  6.00 us  too few   too few   too few    9.01 us

              The pool, not the server: requests waited 2.00 s for one of 2 connections (44.4 % of total
              response time); the request itself typically took 2.00 s.
                Little's law: 4 virtual users have 4 requests outstanding, but 2 connections can carry only 2 at
                a time; with 4 connections none would wait.

              codes     200 × 10

              ok per second
                      2/s     ████    ████    ████    ████    ████
                              ████    ████    ████    ████    ████
                      0/s     ████    ████    ████    ████    ████
                          0 s                                 10 s

              http://127.0.0.1:9091/delay/2  http/1.1, at 127.0.0.1:9091
              closed loop, 4 virtual users over 2 connections, 1 worker, 10 requests in 10.0 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn the_demonstration() {
    check(
        &pool().demo(Style::PLAIN),
        &expect![[r#"
            valid: all checks that were made passed; not made: independence (responses in 5 seconds, needs 8)

              4 virtual users share 2 connections to http://127.0.0.1:9091/delay/2

                4.00 s   reported by an interceptor: a timer around the pooled client
                2.00 s   the request itself: first byte sent to last byte arrived
                2.00 s   waiting for one of 2 connections
                         medians of 10 ok requests; the timer starts when a request is picked up, 3.00 us after
                         its intended start

                          pool wait               request
              one request ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒████████████████████████
                          0                       2.00 s            4.00 s

              The pool, not the server: requests waited 2.00 s for one of 2 connections (44.4 % of total
              response time); the request itself typically took 2.00 s.
                Little's law: 4 virtual users have 4 requests outstanding, but 2 connections can carry only 2 at
                a time; with 4 connections none would wait.

              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn the_demonstration_in_ascii() {
    check(
        &pool().demo(Style { unicode: false, ..Style::PLAIN }),
        &expect![[r#"
            valid: all checks that were made passed; not made: independence (responses in 5 seconds, needs 8)

              4 virtual users share 2 connections to http://127.0.0.1:9091/delay/2

                4.00 s   reported by an interceptor: a timer around the pooled client
                2.00 s   the request itself: first byte sent to last byte arrived
                2.00 s   waiting for one of 2 connections
                         medians of 10 ok requests; the timer starts when a request is picked up, 3.00 us after
                         its intended start

                          pool wait               request
              one request ........................########################
                          0                       2.00 s            4.00 s

              The pool, not the server: requests waited 2.00 s for one of 2 connections (44.4 % of total
              response time); the request itself typically took 2.00 s.
                Little's law: 4 virtual users have 4 requests outstanding, but 2 connections can carry only 2 at
                a time; with 4 connections none would wait.

              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn a_run_with_failures_and_censored_percentiles() {
    check(
        &failing().text(Style::PLAIN),
        &expect![[r#"
            valid: 488/s ok of 500/s requested
            response  p50 5.55 ms   p90 6.77 ms   p99 > 1.00 s   max > 1.00 s
            errors    231 of 10000 requests (2.3 %)

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                    5.55 ms   6.77 ms > 1.00 s  > 1.00 s  > 1.00 s
              service      sent to arrived                     5.52 ms   6.72 ms   6.99 ms   7.01 ms   7.01 ms
              schedule_lag client                     < 0.1 %  2.00 us   2.00 us   2.00 us   2.00 us   2.00 us
              pool_wait    pool                       < 0.1 %  1.00 us   1.00 us   1.00 us   1.00 us   1.00 us
              resolve      network                         –    the target is an address
              connect      network or server               –    no ok request opened a connection
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server            0.2 %  9.01 us   9.01 us   9.01 us   9.01 us   9.01 us
              wait         server and network ███████  99.6 %  5.51 ms   6.71 ms   6.98 ms   7.00 ms   7.00 ms
              receive      server and network         < 0.1 %  4.00 us   4.00 us   4.00 us   4.00 us   4.00 us
              client_lag   client                       0.1 %  6.00 us   6.00 us   6.00 us   6.00 us   6.00 us
              response includes 171 unanswered requests, by final age; the other rows are for ok requests only

              171 requests (1.7 %) never got a complete response: above p98.2, response times are lower bounds.
                They waited for the whole --timeout; a longer one would show how long the responses really take.

               requests    share  outcome                blame     in phase
                   9769   97.7 %  ok                     –         –            response passed every check
                    170    1.7 %  request_timeout        undecided wait         sent, no response in time
                     60    0.6 %  app_error              server    receive      response was an error
                      1  < 0.1 %  reset                  server    wait         the connection was reset
              codes     200 × 9769, 503 × 60

              ok per second, 500/s requested
                    500/s ████████████▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
                          ████████████████████████████████████████████████████████████████████████████████
                      0/s ████████████████████████████████████████████████████████████████████████████████
                 failures ××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××××
                          0 s                                                                         20 s

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 500/s requested over 32 connections, 2 workers, for 20.0 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn an_invalid_run() {
    let mut run = Run::open(20_000.0, 8, 5);
    for second in 0..5 {
        run.second(|interval| {
            for i in 0..2_000 {
                let lag = (second * 300 + i / 10) * MS;
                book_ok(interval, &kept(lag, 200 * US, 300 * US));
            }
            interval.counts.sent += 20_000;
        });
    }
    run.document.stamps.wall_clock_steps = 1;
    run.finish(State::Finished);
    check(
        &run.text(Style::PLAIN),
        &expect![[r#"
            invalid: 2000/s ok of 20k/s requested
            response  p50 700 ms   p90 1.30 s   p99 1.39 s   max 1.40 s
            errors    0 of 10000 requests
              schedule_lag: 98.9 % of requests (9890 of 10000) were started more than 10.0 ms behind schedule, …
              client_late (degraded): a request waited 1.40 s for the load generator (schedule_lag)
              wall_clock (degraded): the wall clock was set during the run
              checks not made: drift, independence (4 full seconds, needs 8)

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                     700 ms   1.30 s    1.39 s    1.40 s    1.40 s
              service      sent to arrived                      313 us    313 us    313 us    313 us    313 us
              schedule_lag client             ███████  99.9 %   699 ms   1.30 s    1.39 s    1.40 s    1.40 s
              pool_wait    pool                       < 0.1 %   200 us    200 us    200 us    200 us    200 us
              resolve      network                         –    the target is an address
              connect      network or server               –    no ok request opened a connection
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server          < 0.1 %  9.01 us   9.01 us   9.01 us   9.01 us   9.01 us
              wait         server and network         < 0.1 %   300 us    300 us    300 us    300 us    300 us
              receive      server and network         < 0.1 %  4.00 us   4.00 us   4.00 us   4.00 us   4.00 us
              client_lag   client                     < 0.1 %  6.00 us   6.00 us   6.00 us   6.00 us   6.00 us

              The load generator fell behind its schedule: 99.9 % of the response time is schedule lag
              (typically 699 ms).
                Requests queued inside the load generator. Add workers or machines, or lower the rate; until
                then only `service` reflects the server.

              codes     200 × 10000

              ok per second, 20k/s requested
                   2000/s ████████████████████
                          ████████████████████
                      0/s ████████████████████
                          0 s              5 s

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 20k/s requested over 8 connections, 2 workers, for 5.00 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn an_interrupted_run() {
    let mut run = Run::open(100.0, 4, 60);
    for second in 0..4 {
        run.second(|interval| {
            (0..100).for_each(|i| book_ok(interval, &kept(US, US, 5 * MS + i * 10 * US)));
            if second == 3 {
                book_failure(interval, Failure::new(Outcome::InFlight, Phase::Wait), 2 * MS);
            }
        });
    }
    run.finish(State::Interrupted);
    check(
        &run.text(Style::PLAIN),
        &expect![[r#"
            valid: 100/s ok of 100/s requested
            response  p50 5.51 ms   p90 5.91 ms   p99 6.00 ms   max > 6.01 ms
            errors    1 of 401 requests (0.2 %)
              checks not made: drift, independence (3 full seconds, needs 8)

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                    5.51 ms   5.91 ms   6.00 ms  too few  > 6.01 ms
              service      sent to arrived                     5.51 ms   5.91 ms   6.00 ms  too few    6.00 ms
              schedule_lag client                     < 0.1 %  1.00 us   1.00 us   1.00 us  too few    1.00 us
              pool_wait    pool                       < 0.1 %  1.00 us   1.00 us   1.00 us  too few    1.00 us
              resolve      network                         –    the target is an address
              connect      network or server               –    no ok request opened a connection
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server            0.2 %  9.01 us   9.01 us   9.01 us  too few    9.01 us
              wait         server and network ███████  99.6 %  5.49 ms   5.89 ms   5.98 ms  too few    5.99 ms
              receive      server and network         < 0.1 %  4.00 us   4.00 us   4.00 us  too few    4.00 us
              client_lag   client                       0.1 %  6.00 us   6.00 us   6.00 us  too few    6.00 us
              response includes 1 unanswered request, by final age; the other rows are for ok requests only

               requests    share  outcome                blame     in phase
                    400   99.8 %  ok                     –         –            response passed every check
                      1    0.2 %  in_flight              undecided wait         sent, but the run ended first
              codes     200 × 400

              ok per second, 100/s requested
                    110/s ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆▆
                          ████████████████
                      0/s ████████████████
                 failures             ××××
                          0 s          4 s

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 100/s requested over 4 connections, 2 workers, interrupted after 4.00 s (60.0 s
              requested)
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn a_run_that_reached_nobody() {
    let mut run = Run::open(10.0, 2, 2);
    for _ in 0..2 {
        run.second(|interval| {
            (0..10).for_each(|_| {
                book_failure(interval, Failure::new(Outcome::ConnectRefused, Phase::Connect), 90 * US);
            });
            interval.counts.sent = 0;
        });
    }
    run.document.subject.address = None;
    run.finish(State::Finished);
    check(
        &run.text(Style::PLAIN),
        &expect![[r#"
            invalid: 0/s ok of 10/s requested
            response  p50 > 90.0 us   p90 too few   p99 too few   max > 90.0 us
            errors    20 of 20 requests (100 %)
              nothing_measured: no request succeeded: 20 of 20 ended in connect_refused
              checks not made: drift, independence (1 full second, needs 8)

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                  > 90.0 us  too few   too few   too few  > 90.0 us
              service      sent to arrived                    too few   too few   too few   too few         –
              schedule_lag client                          –    no request ended ok
              pool_wait    pool                            –    no request ended ok
              resolve      network                         –    the target is an address
              connect      network or server               –    no request ended ok
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server               –    no request ended ok
              wait         server and network              –    no request ended ok
              receive      server and network              –    no request ended ok
              client_lag   client                          –    no request ended ok
              response includes 20 unanswered requests, by final age; the other rows are for ok requests only

              No request succeeded: 20 of 20 ended in connect_refused (nothing listens on the port).
                There were no responses, so there are no latencies to report. Try `curl -v URL` first.

               requests    share  outcome                blame     in phase
                     20    100 %  connect_refused        server    connect      nothing listens on the port

              ok per second, 10/s requested
                     10/s

                      0/s
                 failures ××××××××
                          0 s  2 s

              http://127.0.0.1:8080/json  http/1.1
              open loop, 10/s requested over 2 connections, 2 workers, for 2.00 s
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn an_empty_run() {
    let mut run = Run::closed(1, 1, 0);
    run.finish(State::Interrupted);
    check(
        &run.text(Style::PLAIN),
        &expect![[r#"
            invalid
            response  p50 too few   p90 too few   p99 too few   max -
            errors    0 of 0 requests
              nothing_measured: no request succeeded: 0 were scheduled
              checks not made: worker_cpu, process_cpu, run_queue (no full second), ports (several servers, or …

                                                       share    p50       p90       p99     p99.9       max
              response     seen by the user                   too few   too few   too few   too few      none
              service      sent to arrived                    too few   too few   too few   too few         –
              schedule_lag client                          –    no request ended ok
              pool_wait    pool                            –    no request ended ok
              resolve      network                         –    the target is an address
              connect      network or server               –    no request ended ok
              tls          network or server               –    no TLS
              auth         server                          –    the protocol has no login
              send         network or server               –    no request ended ok
              wait         server and network              –    no request ended ok
              receive      server and network              –    no request ended ok
              client_lag   client                          –    no request ended ok

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              closed loop, 1 virtual user over 1 connection, 1 worker, interrupted after 0 (0 requests
              requested)
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
    check(
        &run.demo(Style::PLAIN),
        &expect![[r#"
            invalid: one check failed; not made: worker_cpu, process_cpu, run_queue, ports, drift, independence
              nothing_measured: no request succeeded: 0 were scheduled; limit: at least one ok
                see the outcomes below, and fix their cause first

              No request ended ok, so there is nothing to show.
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

#[test]
fn a_run_under_way() {
    let run = Run::open(100.0, 4, 60);
    check(
        &run.text(Style::PLAIN),
        &expect![[r#"
            no verdict: the run has not ended

              http://127.0.0.1:8080/json  http/1.1, at 127.0.0.1:8080
              open loop, 100/s requested over 4 connections, 2 workers, running, 60.0 s requested
              2025-11-21T21:53:00Z, on bench1, Linux 6.8.0, 8 CPUs, parallax 0.1.0
              record    parallax-runs/2025-11-21T21-53-00
        "#]],
    );
}

/// If this fails, a scenario of many steps fills the screen, or hides the slow step.
#[test]
fn of_many_requests_the_worst_are_shown() {
    let mut run = Run::open(300.0, 8, 2);
    run.document.subject.targets = (0..150).map(|n| format!("step {n}")).collect();
    run.second(|interval| {
        for n in 0..150 {
            // Later ones are slower.
            let request = kept(US, US, MS + u64::from(n) * 100 * US);
            book_ok(interval, &request);
            interval.kind(n).record_ok(&request);
        }
        let failure = Failure::new(Outcome::AppError, Phase::Receive);
        book_failure(interval, failure, MS);
        interval.kind(3).record_failure(failure, Nanos(MS));
    });
    run.finish(State::Finished);
    let text = run.text(Style::PLAIN);
    let note = "the worst 100 of 150 requests, by share of failures, then by response p99";
    assert!(text.contains(note), "{text}");
    let steps = text.lines().filter_map(|line| line.rsplit_once("step ")?.1.parse().ok());
    let expected: Vec<u64> = [3].into_iter().chain(51..150).collect();
    assert_eq!(steps.collect::<Vec<u64>>(), expected, "{text}");
}
