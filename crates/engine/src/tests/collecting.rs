//! From workers to merged intervals: one that lags, one that ends early, a collector that is behind.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use record::{Interval, Timeline};
use units::Nanos;

use super::{START, ms};
use crate::collector::collect;
use crate::recorder::{Boundaries, Part, Recorder};

fn part(worker: usize, index: u64, through: u64) -> Part {
    let mut interval = Box::<Interval>::default();
    (interval.index, interval.start, interval.length) = (index, ms(index * 1_000), ms(1_000));
    interval.counts.scheduled = 1;
    Part { worker, interval: Some(interval), through }
}

/// What is emitted for `parts`: index and count of each interval, and after how many parts.
fn emitted(workers: usize, parts: Vec<Part>) -> Vec<(u64, u64)> {
    let (parts_in, parts_out) = sync_channel(parts.len());
    parts.into_iter().for_each(|part| parts_in.send(part).unwrap());
    drop(parts_in);
    let emptied: Vec<_> = (0..workers).map(|_| sync_channel(1).0).collect();
    let mut seen = Vec::new();
    collect(&parts_out, &emptied, Vec::new(), &mut |interval| {
        seen.push((interval.index, interval.counts.scheduled))
    });
    seen
}

#[test]
fn a_worker_that_lags_holds_its_intervals_back() {
    let lagging =
        vec![part(0, 0, 1), part(0, 1, 2), part(0, 2, u64::MAX), part(1, 0, 1), part(1, 2, u64::MAX)];
    assert_eq!(emitted(2, lagging), [(0, 2), (1, 1), (2, 2)]);
}

#[test]
fn a_worker_that_ends_early_holds_nothing_back() {
    let early = vec![part(0, 0, u64::MAX), part(1, 0, 1), part(1, 1, 2), part(1, 2, u64::MAX)];
    assert_eq!(emitted(2, early), [(0, 2), (1, 1), (2, 1)]);
}

#[test]
fn a_worker_that_broke_loses_only_its_own() {
    // Worker 1 never sends its last part.
    let broken = vec![part(0, 0, 1), part(1, 0, 1), part(0, 1, 2), part(0, 2, u64::MAX)];
    assert_eq!(emitted(2, broken), [(0, 2), (1, 1), (2, 1)]);
}

/// If this fails, everything measured after a worker failed is held in memory until the run ends.
#[test]
fn a_worker_that_says_it_broke_holds_nothing_back() {
    let (parts_in, parts_out) = sync_channel(3);
    for part in [Part { worker: 1, interval: None, through: u64::MAX }, part(0, 0, 1), part(0, 1, 2)] {
        parts_in.send(part).unwrap();
    }
    let emptied: Vec<_> = (0..2).map(|_| sync_channel(1).0).collect();
    let mut seen = Vec::new();
    // The first worker continues until it sees the second interval; its sender stays open until then.
    let mut open = Some(parts_in);
    collect(&parts_out, &emptied, Vec::new(), &mut |interval| {
        seen.push((interval.index, interval.counts.scheduled));
        if interval.index == 1 {
            open.take();
        }
    });
    assert_eq!(seen, [(0, 1), (1, 1)]);
}

/// A recorder with one-second intervals whose collector accepts one part at a time.
fn recorder() -> (Recorder, Receiver<Part>, SyncSender<Box<Interval>>) {
    let (parts_in, parts) = sync_channel(1);
    let (emptied_in, emptied) = sync_channel(1);
    let mut recorder = Recorder::new(0, Boundaries::new(ms(1_000), None), None, parts_in, emptied);
    recorder.begin(START, Nanos::ZERO);
    (recorder, parts, emptied_in)
}

fn response(recorder: &mut Recorder) {
    let mut timeline = Timeline::due(START);
    timeline.skip(record::Phase::ClientLag);
    recorder.current.record_ok(&timeline);
}

/// If this fails, a worker whose collector is behind loses what it measured, or retries without end.
#[test]
fn an_interval_that_cannot_be_handed_over_goes_on() {
    let (mut recorder, parts, _emptied) = recorder();
    for second in 1..=3 {
        response(&mut recorder);
        let now = START + ms(second * 1_000);
        assert!(now >= recorder.ends_at());
        recorder.roll(now, 0, Nanos::ZERO);
        assert!(recorder.ends_at() > now, "the next attempt is one interval away");
    }
    let first = parts.recv().unwrap();
    let of = |part: &Part| {
        let interval = part.interval.as_ref().unwrap();
        (interval.index, interval.start, interval.length, interval.counts.ok)
    };
    assert_eq!(of(&first), (0, ms(0), ms(1_000), 1));
    recorder.roll(START + ms(4_000), 0, Nanos::ZERO);
    let second = parts.recv().unwrap();
    assert_eq!(of(&second), (1, ms(1_000), ms(3_000), 2));
    assert_eq!(second.through, 4);
    recorder.finish(START + ms(4_500), Nanos::ZERO);
    let last = parts.recv().unwrap();
    assert_eq!((of(&last), last.through), ((4, ms(4_000), ms(500), 0), u64::MAX));
}
