//! Merges the workers' intervals in order and emits each one once it is complete.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};

use record::Interval;
use units::Nanos;

use crate::recorder::Part;

/// Receives the workers' parts until every worker has finished, and calls `emit` with each merged interval once no
/// worker can add to it. Parts are merged into `spare` intervals, which are reused after `emit`.
pub(crate) fn collect(
    parts: &Receiver<Part>,
    emptied: &[SyncSender<Box<Interval>>],
    mut spare: Vec<Interval>,
    emit: &mut dyn FnMut(&mut Interval),
) {
    let mut through = vec![0; emptied.len()];
    let mut open: BTreeMap<u64, Interval> = BTreeMap::new();
    // Ends when the last worker has dropped its sender.
    while let Ok(part) = parts.recv() {
        through[part.worker] = part.through;
        if let Some(mut interval) = part.interval {
            interval.describe_worker(part.worker as u64);
            add(&mut open, &mut spare, &interval);
            give_back(&emptied[part.worker], interval);
        }
        let complete = through.iter().copied().min().unwrap_or(u64::MAX);
        while let Some(entry) = open.first_entry().filter(|entry| *entry.key() < complete) {
            let mut interval = entry.remove();
            emit(&mut interval);
            interval.clear();
            spare.push(interval);
        }
    }
    open.into_values().for_each(|mut interval| emit(&mut interval));
}

fn add(open: &mut BTreeMap<u64, Interval>, spare: &mut Vec<Interval>, part: &Interval) {
    let merged = open.entry(part.index).or_insert_with(|| {
        let mut interval = spare.pop().unwrap_or_default();
        (interval.index, interval.start, interval.length) = (part.index, part.start, Nanos::ZERO);
        interval
    });
    // A worker that cannot hand over in time extends its interval, so its part can be longer than the others.
    merged.length = merged.length.max(part.length);
    merged.merge(part);
}

fn give_back(emptied: &SyncSender<Box<Interval>>, mut interval: Box<Interval>) {
    interval.clear();
    // A worker that has finished needs no more. If the channel is full, the worker has enough, and this one is dropped.
    let _ = emptied.try_send(interval);
}
