//! The live table drawn into memory, from canned intervals.

use expect_test::{Expect, expect};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use record::Protocol;

use super::*;

const COLOURED: TerminalStyle = TerminalStyle { colour: true, unicode: true };
const ASCII: TerminalStyle = TerminalStyle { colour: false, unicode: false };

fn table(length: Option<Nanos>) -> LiveTable {
    let subject =
        TableSubject { who: "mariadbd (-p 4711)", ports: &[3306], start: Nanos::from_secs(100), length };
    LiveTable::new(&subject, Arc::default())
}

fn glance(requests: u64) -> RequestSample {
    let parts_ns = PartsNs {
        on_cpu: 60_000 * requests,
        run_queue: 25_000 * requests,
        lock: 10_000 * requests,
        loop_wait: 5_000 * requests,
        ..PartsNs::default()
    };
    let known = |us| Shown::Known(Nanos::from_micros(us));
    let quantiles = [known(92), known(310), Shown::TooFew];
    RequestSample {
        requests,
        preempted: requests / 50,
        parts_ns,
        quantiles,
        max: Some(Nanos::from_micros(900)),
    }
}

fn digest(text: &str, count: u64, sum_ns: u64) -> Digest {
    Digest { count, sum_ns, ..Digest::named(text.to_owned(), Protocol::Mysql) }
}

fn preemptor(comm: &str, time_ns: u64) -> Preemptor {
    Preemptor { pid: 17, comm: comm.to_owned(), cgroup: None, time_ns, count: 3 }
}

fn seen() -> TableSnapshot {
    let digests = (0..40)
        .map(|n| digest(&format!("SELECT c{n} FROM world WHERE id = ?"), 900 - n, (40 - n) * 1_000_000));
    TableSnapshot {
        length: Nanos::from_secs(3),
        seen: None,
        lately: glance(90),
        whole: glance(36_000),
        protocols: vec![ProtocolCount { protocol: Protocol::Mysql, requests: 36_000 }],
        connections: 12,
        digests: digests.collect(),
        preemptors: (0..40).map(|n| preemptor(&format!("hog-{n}"), (40 - n) * 3_000_000)).collect(),
        losses: Losses { ring_full: 1_234, unparsed: 2, ..Losses::default() },
        inexact: Inexact { forgotten_slices: 7, ..Inexact::default() },
    }
}

fn shown() -> LiveTable {
    let mut table = table(Some(Nanos::from_secs(30)));
    (0..12).for_each(|_| table.add(seen()));
    table
}

fn text(table: &mut LiveTable, (width, height): (u16, u16), look: TerminalStyle) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| table.draw(frame, Nanos::from_secs(112), look)).unwrap();
    let buffer = terminal.backend().buffer();
    // A margin, because the snapshot would remove the table's first column as indentation.
    let row = |y| {
        let row: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        format!("|{}\n", row.trim_end())
    };
    (0..height).map(row).collect()
}

#[track_caller]
fn check(table: &mut LiveTable, size: (u16, u16), look: TerminalStyle, expected: &Expect) {
    expected.assert_eq(&text(table, size, look));
}

#[test]
fn a_usual_terminal_shows_everything() {
    check(
        &mut shown(),
        (80, 24),
        COLOURED,
        &expect![[r#"
            | parallax  mariadbd (-p 4711)                                          watching
            | mysql on port 3306, 12 connections, 36000 requests
            | ██████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 12 s of 30 s, 18 s left
            | throughput       30/s  ▇▇▇▇▇▇▇▇▇▇▇▇
            |
            | at the server        p50        p95        p99        max  preempted
            |   last 3 s       92.0 us     310 us          –     900 us      1.1 %
            |   all            92.0 us     310 us          –     900 us      2.0 %
            |
            | where the time went  last 3 s
            | ███████████████████████████████████████████████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓░░░░
            |   █ on CPU             60.0 %  60.0 us per request
            |   ▒ run queue          25.0 %  25.0 us per request
            |   ▓ blocked: lock      10.0 %  10.0 us per request
            |   ░ loop wait           5.0 %  5.00 us per request
            |
            |    share      count       mean        p99  statement or route
            |    1.1 %        900    44.4 us          –  SELECT c0 FROM world WHERE id = ?
            |    1.1 %        899    43.4 us          –  SELECT c1 FROM world WHERE id = ?
            |     time      times  ran while the server waited for a CPU
            |   120 ms          3  hog-0 (17)
            |   117 ms          3  hog-1 (17)
            | lost 1234 ring full, 2 not understood; inexact: 7 slices
            | q end  Ctrl-C end
        "#]],
    );
}

#[test]
fn a_tall_one_shows_more_rows() {
    check(
        &mut shown(),
        (100, 40),
        COLOURED,
        &expect![[r#"
            | parallax  mariadbd (-p 4711)                                                              watching
            | mysql on port 3306, 12 connections, 36000 requests
            | ████████████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 12 s of 30 s, 18 s left
            | throughput       30/s  ▇▇▇▇▇▇▇▇▇▇▇▇
            |
            | at the server        p50        p95        p99        max  preempted
            |   last 3 s       92.0 us     310 us          –     900 us      1.1 %
            |   all            92.0 us     310 us          –     900 us      2.0 %
            |
            | where the time went  last 3 s
            | ███████████████████████████████████████████████████████████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▓▓▓▓▓▓▓▓▓▓░░░░░
            |   █ on CPU             60.0 %  60.0 us per request
            |   ▒ run queue          25.0 %  25.0 us per request
            |   ▓ blocked: lock      10.0 %  10.0 us per request
            |   ░ loop wait           5.0 %  5.00 us per request
            |
            |    share      count       mean        p99  statement or route
            |    1.1 %        900    44.4 us          –  SELECT c0 FROM world WHERE id = ?
            |    1.1 %        899    43.4 us          –  SELECT c1 FROM world WHERE id = ?
            |    1.1 %        898    42.3 us          –  SELECT c2 FROM world WHERE id = ?
            |    1.0 %        897    41.2 us          –  SELECT c3 FROM world WHERE id = ?
            |    1.0 %        896    40.2 us          –  SELECT c4 FROM world WHERE id = ?
            |    1.0 %        895    39.1 us          –  SELECT c5 FROM world WHERE id = ?
            |    0.9 %        894    38.0 us          –  SELECT c6 FROM world WHERE id = ?
            |    0.9 %        893    37.0 us          –  SELECT c7 FROM world WHERE id = ?
            |    0.9 %        892    35.9 us          –  SELECT c8 FROM world WHERE id = ?
            |    0.9 %        891    34.8 us          –  SELECT c9 FROM world WHERE id = ?
            |    0.8 %        890    33.7 us          –  SELECT c10 FROM world WHERE id = ?
            |    0.8 %        889    32.6 us          –  SELECT c11 FROM world WHERE id = ?
            |
            |     time      times  ran while the server waited for a CPU
            |   120 ms          3  hog-0 (17)
            |   117 ms          3  hog-1 (17)
            |   114 ms          3  hog-2 (17)
            |   111 ms          3  hog-3 (17)
            |   108 ms          3  hog-4 (17)
            |   105 ms          3  hog-5 (17)
            |
            | lost 1234 ring full, 2 not understood; inexact: 7 slices
            | q end  Ctrl-C end
        "#]],
    );
}

#[test]
fn a_narrow_and_low_one_shows_what_one_cannot_do_without() {
    check(
        &mut shown(),
        (40, 10),
        ASCII,
        &expect![[r#"
            | parallax  mariadbd (-p 4711)  watching
            | mysql on port 3306, 12 connections, 36~
            | ######........ 12 s of 30 s, 18 s left
            | throughput       30/s  ############
            |
            | at the server        p50        p95
            |   last 3 s       92.0 us     310 us
            |   all            92.0 us     310 us
            | lost 1234 ring full, 2 not understood;~
            | q end  Ctrl-C end
        "#]],
    );
}

#[test]
fn before_the_first_interval_it_says_who_is_watched() {
    check(
        &mut table(None),
        (80, 6),
        COLOURED,
        &expect![[r#"
            | parallax  mariadbd (-p 4711)                                          watching
            | port 3306, no figures yet
            | 12 s, no end set
            |
            |
            | q end  Ctrl-C end
        "#]],
    );
}

/// If this fails, an interval without requests shows percentiles of nothing.
#[test]
fn an_interval_without_a_request_has_no_figures() {
    let mut table = table(None);
    let nothing = RequestSample::of(&Sums::default());
    table.add(TableSnapshot {
        lately: nothing.clone(),
        whole: nothing,
        protocols: Vec::new(),
        connections: 0,
        digests: Vec::new(),
        preemptors: Vec::new(),
        losses: Losses::default(),
        inexact: Inexact::default(),
        ..seen()
    });
    check(
        &mut table,
        (80, 14),
        COLOURED,
        &expect![[r#"
            | parallax  mariadbd (-p 4711)                                          watching
            | port 3306, 0 connections, 0 requests
            | 12 s, no end set
            | throughput        0/s
            |
            | at the server        p50        p95        p99        max  preempted
            |   last 3 s             –          –          –          –          –
            |   all                  –          –          –          –          –
            |
            | where the time went  last 3 s
            |
            | lost nothing
            |
            | q end  Ctrl-C end
        "#]],
    );
}

/// If this fails, shrinking the window to nothing ends the watch.
#[test]
fn every_window_takes_it() {
    let mut table = shown();
    for width in (0..200).step_by(23) {
        for height in (0..16).chain((16..70).step_by(17)) {
            for look in [COLOURED, ASCII] {
                let _ = text(&mut table, (width, height), look);
            }
        }
    }
}

#[test]
fn keys_end_the_watch() {
    for (key, ends) in [('q', true), ('x', false)] {
        let mut table = shown();
        table.press(KeyEvent::from(KeyCode::Char(key)));
        assert_eq!(table.stop.load(Ordering::Relaxed), ends, "{key}");
    }
    let mut table = shown();
    table.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(table.stop.load(Ordering::Relaxed));
}
