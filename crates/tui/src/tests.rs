//! The live view drawn into memory, from canned seconds.

use engine::{Change, Order, Tempo};
use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::Color;
use record::document::{ArrivalStamps, Load, Model as LoadModel, Pace, Stamps};
use record::{Failure, Interval, Outcome, Phase, Second, Timeline};
use units::Nanos;

use super::model::Model;
use super::terminal_style::TerminalStyle;
use super::view::{self, Footer};

const COLOURED: TerminalStyle = TerminalStyle { colour: true, unicode: true };
const ASCII: TerminalStyle = TerminalStyle { colour: false, unicode: false };

fn load() -> Load {
    Load {
        model: LoadModel::Open,
        rate_per_s: Some(200.0),
        arrivals: None,
        think: None,
        pace: None,
        callers: 100_000,
        connections: 20,
        pipeline: 1,
        workers: 1,
        duration_ns: Some(30_000_000_000),
        request_limit: None,
        warmup: None,
        idle_connections: None,
        requests_per_connection: None,
        changes: Vec::new(),
    }
}

fn model(load: Load) -> Model {
    let stamps =
        Stamps { arrival: ArrivalStamps::Kernel, reason: None, pairing_error_ns: None, wall_clock_steps: 0 };
    Model::new("http://127.0.0.1:8080/delay/2ms", load, stamps, Some(Nanos::from_secs(5)))
}

/// A response whose phases take fixed shares of about `wait_us`.
fn answer(wait_us: u64) -> Timeline {
    let mut timeline = Timeline::due(Nanos::ZERO);
    let mut at = Nanos::ZERO;
    for (phase, us) in [
        (Phase::ScheduleLag, 30),
        (Phase::PoolWait, 0),
        (Phase::Send, 12),
        (Phase::Wait, wait_us),
        (Phase::Receive, wait_us / 10),
        (Phase::ClientLag, 40),
    ] {
        at += Nanos::from_micros(us);
        timeline.end(phase, at);
    }
    timeline
}

/// Seconds of 200 responses each, a tenth of them slow; every `failing`-th second has four timeouts.
fn run(mut model: Model, seconds: u64, failing: u64) -> Model {
    for index in 0..seconds {
        let mut interval = Interval::default();
        (interval.index, interval.start, interval.length) =
            (index, Nanos::from_secs(index), Nanos::from_secs(1));
        for n in 0..200 {
            let wait_us = 2_000 + (n * 7 + index * 13) % 300 + if n % 10 == 0 { 6_000 } else { 0 };
            interval.record_ok(&answer(wait_us));
        }
        let failed = if failing > 0 && index % failing == 0 { 4 } else { 0 };
        let failure = Failure::new(Outcome::RequestTimeout, Phase::Wait);
        (0..failed).for_each(|_| interval.record_failure(failure, Nanos::from_secs(1)));
        interval.counts.scheduled = 200 + failed;
        interval.counts.sent = 200 + failed;
        interval.counts.outstanding = 3 + failed * 6;
        interval.worker_cpu = Nanos::from_millis(120);
        interval.worker_cpu_max = Nanos::from_millis(120);
        let second = Second::of(&interval, None);
        model.add(&interval, &second);
    }
    model.now = Nanos::from_millis(seconds * 1_000 + 200);
    model
}

fn terminal(model: &Model, size: (u16, u16), foot: Footer<'_>, look: TerminalStyle) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| view::draw(frame, model, foot, look)).unwrap();
    terminal
}

fn text(model: &Model, size: (u16, u16), foot: Footer<'_>, look: TerminalStyle) -> String {
    let terminal = terminal(model, size, foot, look);
    let buffer = terminal.backend().buffer();
    let row =
        |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..size.1).map(row).collect()
}

#[track_caller]
fn check(model: &Model, size: (u16, u16), look: TerminalStyle, expected: &Expect) {
    // A margin, because the snapshot would remove the view's first column as indentation.
    let text: String =
        text(model, size, Footer::default(), look).lines().map(|line| format!("|{line}\n")).collect();
    expected.assert_eq(&text);
}

#[test]
fn a_usual_terminal_shows_everything() {
    check(
        &run(model(load()), 12, 0),
        (80, 24),
        COLOURED,
        &expect![[r#"
            | parallax  http://127.0.0.1:8080/delay/2ms                              running
            | open loop 200/s over 20 connections, 1 worker
            | ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 12 s of 30 s, 18 s left
            |
            | due         200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                                           2400
            | sent        200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                                           2400
            | ok          200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                                           2400
            | outstanding 3, connections carry 20
            | response           p50        p90        p99      p99.9        max
            |   last 10 s    2.47 ms    2.61 ms    9.18 ms          –    9.22 ms
            |   whole run    2.47 ms    2.61 ms    9.18 ms          –    9.22 ms
            | phases  of the ok requests of the last 10 s
            | █████████████████████████████████████████████████████████████████████▒▒▒▒▒▒▒
            |   █ wait           88.5 %  p50 2.17 ms  p99 8.27 ms  max 8.30 ms
            |   ▒ receive         8.8 %  p50 217 us   p99 826 us   max 829 us
            | outcomes 100 % ok, none failed
            | response  last 60 s, newest right, share of each: · ░ 1 % ▒ 5 % ▓ 20 % █ 50 %
            |   7.00 ms                                                 ▒▒▒▒▒▒▒▒▒▒▒▒
            |   5.00 ms
            |   3.00 ms
            |   2.00 ms                                                 ████████████
            | audit  ✓ schedule p99 30.0 us  ✓ client lag p99 40.0 us  ✓ worker CPU 12 %
            |        ✓ stalls none  ✓ stamps kernel
            | p pause  + - rate by 10 %  q end gracefully  ? help
        "#]],
    );
}

#[test]
fn plain_characters_say_the_same() {
    check(
        &run(model(load()), 12, 5),
        (80, 24),
        ASCII,
        &expect![[r#"
            | parallax  http://127.0.0.1:8080/delay/2ms                              running
            | open loop 200/s over 20 connections, 1 worker
            | ######################................................ 12 s of 30 s, 18 s left
            | due         200/s  ############                                           2412
            | sent        200/s  ############                                           2412
            | ok          200/s  ############                                           2400
            | failed        0/s  .    .    .                                              12
            | outstanding 3, connections carry 20
            | response           p50        p90        p99      p99.9        max
            |   last 10 s    2.47 ms    8.90 ms    9.19 ms          -   > 1.00 s
            |   whole run    2.47 ms    8.90 ms    9.19 ms          -   > 1.00 s
            | phases  of the ok requests of the last 10 s
            | #####################################################################-------
            |   # wait           88.5 %  p50 2.17 ms  p99 8.27 ms  max 8.30 ms
            |   - receive         8.8 %  p50 217 us   p99 826 us   max 829 us
            | outcomes 99.5 % ok, 0.5 % failed
            |          12 request_timeout        blame undecided in wait
            | response  last 60 s, newest right, share of each: . : 1 % + 5 % % 20 % # 50 %
            |  failures                                                 x    x    x
            |   5.00 ms                                                 ++++++++++++
            |   2.00 ms                                                 ############
            | audit  ok schedule p99 30.0 us  ok client lag p99 40.0 us  ok worker CPU 12 %
            |        ok stalls none  ok stamps kernel
            | p pause  + - rate by 10 %  q end gracefully  ? help
        "#]],
    );
}

#[test]
fn a_small_window_keeps_what_nobody_can_do_without() {
    check(
        &run(model(load()), 12, 5),
        (60, 15),
        COLOURED,
        &expect![[r#"
            | parallax  http://127.0.0.1:8080/delay/2ms          running
            | open loop 200/s over 20 connections, 1 worker
            | ██████████████░░░░░░░░░░░░░░░░░░░░ 12 s of 30 s, 18 s left
            |
            | due         200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                       2412
            | sent        200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                       2412
            | ok          200/s  ▇▇▇▇▇▇▇▇▇▇▇▇                       2400
            | failed        0/s  ▁    ▁    ▁                          12
            | outstanding 3, connections carry 20
            | response           p50        p90        p99        max
            |   last 10 s    2.47 ms    8.90 ms    9.19 ms   > 1.00 s
            |   whole run    2.47 ms    8.90 ms    9.19 ms   > 1.00 s
            | audit  ✓ schedule p99 30.0 us  ✓ client lag p99 40.0 us
            |        ✓ worker CPU 12 %  ✓ stalls none  ✓ stamps kernel
            | p pause  + - rate by 10 %  q end gracefully  ? help
        "#]],
    );
}

#[test]
fn a_large_window_has_two_columns_and_a_tall_strip() {
    check(
        &run(model(load()), 70, 9),
        (140, 36),
        COLOURED,
        &expect![[r#"
            | parallax  http://127.0.0.1:8080/delay/2ms                                                                                         draining
            | open loop 200/s over 20 connections, 1 worker
            | ████████████████████████████████████████████████████████████ 70 s, waiting for the last responses (3 outstanding)
            |
            | due         200/s  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  14032    phases  of the ok requests of the last 10 s
            | sent        200/s  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  14032    █▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░█
            | ok          200/s  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇  14000      █ schedule_lag    1.0 %  p50 30.0 us  p99 30.0 us  max 30.0 us
            | failed        0/s         ▁        ▁        ▁        ▁           32      ▒ send            0.4 %  p50 12.0 us  p99 12.0 us  max 12.0 us
            | outstanding 3, connections carry 20                                      ▓ wait           88.5 %  p50 2.16 ms  p99 8.27 ms  max 8.30 ms
            |                                                                          ░ receive         8.8 %  p50 216 us   p99 827 us   max 829 us
            | response           p50        p90        p99      p99.9        max       █ client_lag      1.3 %  p50 40.0 us  p99 40.0 us  max 40.0 us
            |   last 10 s    2.46 ms    8.89 ms    9.19 ms          –   > 1.00 s
            |   whole run    2.47 ms    8.89 ms    9.19 ms   > 1.00 s   > 1.00 s     outcomes 99.8 % ok, 0.2 % failed
            |                                                                                 32 request_timeout        blame undecided in wait
            |
            | response  last 60 s, newest right, share of each: · ░ 1 % ▒ 5 % ▓ 20 % █ 50 %
            |  failures                 ××                ××                ××                ××                ××                ××
            |   7.00 ms ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
            |   5.00 ms
            |   3.00 ms
            |   2.00 ms ████████████████████████████████████████████████████████████████████████████████████████████████████████████████████████
            |
            | audit  ✓ schedule p99 30.0 us  ✓ client lag p99 40.0 us  ✓ worker CPU 12 %  ✓ stalls none  ✓ stamps kernel
            |
            |
            |
            |
            |
            |
            |
            |
            |
            |
            |
            |
            | p pause  + - rate by 10 %  q stop immediately  ? help
        "#]],
    );
}

#[test]
fn a_steered_run_says_so() {
    let mut model = run(model(load()), 12, 0);
    model.steer(Change { at: Nanos::from_secs(4), order: Order::Tempo(Tempo::of_steps(2)) });
    model.steer(Change { at: Nanos::from_secs(5), order: Order::Pause });
    let foot = Footer { message: Some("paused: nothing becomes due"), help: false };
    let text = text(&model, (80, 24), foot, COLOURED);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("paused"), "{}", lines[0]);
    assert!(lines[1].contains("open loop 242/s (200/s × 1.21)"), "{}", lines[1]);
    assert_eq!(lines[23], " paused: nothing becomes due");
}

#[test]
fn help_lies_over_the_view() {
    let foot = Footer { message: None, help: true };
    let text = text(&run(model(load()), 3, 0), (80, 24), foot, ASCII);
    assert!(text.contains("+ keys ---"), "{text}");
    assert!(text.contains("q q           end gracefully: wait for outstanding requests"), "{text}");
    assert!(text.contains("up to 5.00 s"), "{text}");
}

#[test]
fn a_number_of_requests_and_a_closed_loop_have_their_own_words() {
    let load = Load {
        model: LoadModel::Closed,
        rate_per_s: None,
        callers: 20,
        duration_ns: None,
        request_limit: Some(10_000),
        warmup: None,
        idle_connections: None,
        requests_per_connection: None,
        ..load()
    };
    let text = text(&run(model(load), 12, 0), (80, 24), Footer::default(), COLOURED);
    assert!(text.contains("closed loop, 20 virtual users over 20 connections, 1 worker"), "{text}");
    assert!(text.contains("12 s, 7600 of 10000 requests left"), "{text}");
    assert!(text.contains("– schedule none"), "{text}");
    assert!(!text.contains("rate by 10 %"), "{text}");
}

/// If this fails, the rate of a scenario's requests is read as that of its journeys.
#[test]
fn journeys_and_requests_have_rates_of_their_own() {
    let mut model = model(load());
    for index in 0..3 {
        let mut interval = Interval::default();
        (interval.index, interval.start, interval.length) =
            (index, Nanos::from_secs(index), Nanos::from_secs(1));
        // Forty visits of five requests and ten of a single one.
        (0..210).for_each(|_| interval.record_ok(&answer(2_000)));
        interval.counts.scheduled = 210;
        interval.counts.sent = 210;
        interval.journey(0).ok = 40;
        interval.journey(1).ok = 10;
        let second = Second::of(&interval, None);
        model.add(&interval, &second);
    }
    model.now = Nanos::from_millis(3_200);
    let text = text(&model, (80, 24), Footer::default(), ASCII);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |name: &str| rows.iter().find(|row| row.first() == Some(&name)).unwrap();
    for (name, rate, sum) in [("due", "210/s", "630"), ("ok", "210/s", "630"), ("journeys", "50/s", "150")] {
        let row = row(name);
        assert_eq!((row[1], row[row.len() - 1]), (rate, sum), "{text}");
    }
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
}

#[test]
fn before_the_first_second_there_is_nothing_to_show_and_nothing_breaks() {
    let text = text(&model(load()), (80, 24), Footer::default(), COLOURED);
    assert!(text.contains("0 s of 30 s"), "{text}");
    assert!(text.contains("none yet"), "{text}");
}

/// If this fails, shrinking the window ends the run with a panic.
#[test]
fn no_size_breaks_it() {
    let model = run(model(load()), 70, 3);
    for width in (0..=40).chain([59, 60, 79, 80, 81, 100, 131, 132, 133, 200, 400]) {
        for height in (0..=30).chain([50, 100]) {
            for help in [false, true] {
                terminal(&model, (width, height), Footer { message: None, help }, COLOURED);
            }
        }
    }
}

/// If this fails, colours appear although NO_COLOR is set.
#[test]
fn without_colour_no_cell_has_one() {
    let model = run(model(load()), 70, 3);
    let look = TerminalStyle { colour: false, ..COLOURED };
    let terminal = terminal(&model, (120, 40), Footer::default(), look);
    let cells = &terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

/// If this fails, a stalled client or a late schedule shows green.
#[test]
fn lights_turn_with_what_was_measured() {
    let mut model = run(model(load()), 12, 0);
    let mut interval = Interval::default();
    (interval.index, interval.start, interval.length) = (12, Nanos::from_secs(12), Nanos::from_secs(1));
    interval.worker_stall_max = Nanos::from_millis(300);
    interval.worker_cpu_max = Nanos::from_millis(990);
    for _ in 0..400 {
        let mut late = Timeline::due(Nanos::ZERO);
        for (phase, ms) in [
            (Phase::ScheduleLag, 5),
            (Phase::Send, 5),
            (Phase::Wait, 7),
            (Phase::Receive, 7),
            (Phase::ClientLag, 47),
        ] {
            late.end(phase, Nanos::from_millis(ms));
        }
        interval.record_ok(&late);
    }
    let second = Second::of(&interval, None);
    model.add(&interval, &second);
    let text = text(&model, (120, 40), Footer::default(), ASCII);
    let audit = text.split(" audit ").nth(1).unwrap();
    for message in
        ["! schedule p99 5.00 ms", "X client lag p99 40.0 ms", "X worker CPU 99 %", "! stalls 300 ms at 12 s"]
    {
        assert!(audit.contains(message), "{message}: {audit}");
    }

    // Lateness that the pace allows does not count.
    model.load.pace = Some(Pace { name: "efficient".to_owned(), batch_ns: 5_000_000 });
    let shown = self::text(&model, (120, 40), Footer::default(), ASCII);
    let audit = shown.split(" audit ").nth(1).unwrap();
    for message in ["ok schedule p99 5.00 ms", "! client lag p99 40.0 ms"] {
        assert!(audit.contains(message), "{message}: {audit}");
    }
}
