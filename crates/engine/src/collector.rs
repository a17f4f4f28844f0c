//! Merges the workers' intervals, in order, and hands each whole one on.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};

use record::Interval;
use units::Nanos;

use crate::recorder::Part;

/// Takes the workers' parts until all have finished; calls `emit` with each merged interval once no worker can
/// add to it any more. Parts are merged into `spare` intervals, which are used again after `emit`.
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
    // A worker that could not hand over in time lets its interval grow.
    merged.length = merged.length.max(part.length);
    merged.merge(part);
}

fn give_back(emptied: &SyncSender<Box<Interval>>, mut interval: Box<Interval>) {
    interval.clear();
    // A worker that has finished needs no more; one that has enough makes none.
    let _ = emptied.try_send(interval);
}
