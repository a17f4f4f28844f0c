//! A run that is killed at any moment leaves a directory that can be read, and at most the last second is missing.

use rustix::process::Signal;
use units::Nanos;

use crate::support::nginx::{Nginx, Seen};
use crate::support::numbers::Numbers;
use crate::support::run::{Running, start};
use crate::support::{turn, wait};

const KILLS: u64 = 15;

/// This many at once: each sends little, and all of them together wait for about as long as one.
const AT_ONCE: u64 = 5;

/// A second that ended this long before the kill is in the directory. Committing it takes the worker's wake-up, the
/// hand-over and some small writes, a few milliseconds; on two CPUs that others use too, each of these may wait for
/// several slices of the scheduler.
const COMMIT: Nanos = Nanos::from_millis(300);

/// Whatever nginx logged this long before the end of the last committed second was read by the client within it.
const READ: Nanos = Nanos::from_millis(300);

/// A run that was killed, and when.
struct Killed {
    running: Running,
    path: String,
    at: Nanos,
}

/// If this fails, a crash in the third hour costs three hours.
#[test]
fn a_killed_run_loses_at_most_its_last_second() {
    let _turn = turn::alone();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let mut numbers = Numbers(20_251_121);
    let mut killed = Vec::new();
    for batch in 0..KILLS / AT_ONCE {
        let mut running: Vec<_> =
            (0..AT_ONCE).map(|index| begin(&nginx, batch * AT_ONCE + index, &mut numbers)).collect();
        running.sort_by_key(|(after, ..)| *after);
        let zero = clock::now();
        for (after, path, mut running) in running {
            clock::sleep_until(zero + after);
            running.signal(Signal::KILL);
            let at = clock::wall();
            running.wait();
            killed.push(Killed { running, path, at });
        }
    }
    let seen = nginx.finish();
    for one in killed {
        check(&one, &seen);
    }
}

/// A running `drive` of 3 s, and the time after which it is to be killed.
fn begin(nginx: &Nginx, index: u64, numbers: &mut Numbers) -> (Nanos, String, Running) {
    let path = format!("/run-{index}");
    let arguments = ["-d", "3s", "-r", "200/s", "-c", "4", "-w", "2", "--quiet", &nginx.url(&path)];
    let running = start(&arguments);
    running.wait_for_record();
    (Nanos::from_micros(numbers.next() % 2_900_000), path, running)
}

#[track_caller]
fn check(killed: &Killed, seen: &[Seen]) {
    let mut recording = record::read(&killed.running.record()).unwrap();
    assert!(recording.is_cut_off());
    let started: jiff::Timestamp = recording.document.time.started.parse().unwrap();
    let started = Nanos(started.as_nanosecond() as u64);
    let ran = killed.at.saturating_sub(started);
    let committed = recording.total.length;
    assert!(committed <= ran, "{committed} committed of {ran}");
    let whole_seconds = ran.saturating_sub(COMMIT).0 / 1_000_000_000;
    assert!(
        recording.seconds.len() as u64 >= whole_seconds,
        "{} committed of {ran}",
        recording.seconds.len()
    );

    let until = |end: Nanos| {
        let ours = seen.iter().filter(|one| one.uri == killed.path);
        ours.filter(|one| one.at_ms * 1_000_000 <= end.0).count() as u64
    };
    let ok = recording.total.counts.ok;
    let end = started + committed;
    let (least, most) = (until(end.saturating_sub(READ)), until(end + READ));
    if !recording.seconds.is_empty() {
        assert!((least..=most).contains(&ok), "{ok} committed, the server answered {least} to {most}");
    }
    recording.settle();
    assert_eq!(recording.total.counts.scheduled, recording.total.ended());
}

/// A directory is created before the first request is sent, so that even the shortest run leaves one.
#[test]
fn a_run_killed_at_its_begin_leaves_a_folder_without_seconds() {
    let _turn = turn::together();
    let nginx = Nginx::start("location / { return 200 'hello'; }");
    let mut running = start(&["-d", "3s", "-r", "50/s", "--quiet", &nginx.url("/")]);
    running.wait_for_record();
    running.signal(Signal::KILL);
    running.wait();
    wait::pause(Nanos::from_millis(1));
    let recording = record::read(&running.record()).unwrap();
    assert!(recording.is_cut_off());
    assert_eq!(recording.seconds, []);
}
