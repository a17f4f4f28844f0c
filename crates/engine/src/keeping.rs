//! Keeps single requests (all, a sample, or the slowest) and hands them over in batches.
//!
//! A worker never waits for the thread that writes them: requests that find no room are counted and dropped.

use std::ops::Deref;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use record::{KeptRequest, Slowest};
use schedule::Sample;

/// Which requests are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    All,
    /// Each with a fixed probability, whatever its outcome; a journey is kept with all its requests or not at all.
    Sample(Sample),
    /// The given number of slowest requests of the whole run, by age. Each worker holds that many.
    Slowest(usize),
}

/// Which requests are kept, and where they are sent.
#[derive(Debug)]
pub struct Keeping {
    pub keep: Keep,
    /// Disconnected once the last worker has ended.
    pub to: SyncSender<Batch>,
}

/// How many requests are handed over at once. A batch is less than 1 MB.
const BATCH: usize = 4_096;

/// How many batches a worker has in total, filled or in transit. This bounds its memory.
const BATCHES: usize = 32;

/// A batch of ended requests from one worker. Its memory is returned to the worker on drop.
#[derive(Debug)]
pub struct Batch {
    requests: Vec<KeptRequest>,
    home: SyncSender<Vec<KeptRequest>>,
}

impl Deref for Batch {
    type Target = [KeptRequest];

    fn deref(&self) -> &[KeptRequest] {
        &self.requests
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.clear();
        // A worker that has ended needs no more.
        let _ = self.home.try_send(requests);
    }
}

/// Keeps the requests of one worker.
#[derive(Debug)]
pub(crate) struct Keeper {
    which: Which,
    batch: Vec<KeptRequest>,
    /// Batches that may still be allocated.
    unmade: usize,
    to: SyncSender<Batch>,
    home: SyncSender<Vec<KeptRequest>>,
    emptied: Receiver<Vec<KeptRequest>>,
    lost: u64,
}

#[derive(Debug)]
enum Which {
    All,
    Sample(Sample),
    Slowest(Slowest),
}

impl Keeper {
    pub(crate) fn new(keep: Keep, to: SyncSender<Batch>) -> Keeper {
        let (home, emptied) = sync_channel(BATCHES);
        let which = match keep {
            Keep::All => Which::All,
            Keep::Sample(sample) => Which::Sample(sample),
            Keep::Slowest(most) => Which::Slowest(Slowest::new(most)),
        };
        Keeper { which, batch: Vec::with_capacity(BATCH), unmade: BATCHES - 1, to, home, emptied, lost: 0 }
    }

    /// Keeps `request` if it is selected.
    ///
    /// # Cost
    ///
    /// A hash or a comparison if it is not kept; otherwise a copy of 210 bytes, and a message for every 4096 of them.
    #[inline]
    pub(crate) fn offer(&mut self, request: &KeptRequest) {
        match &mut self.which {
            Which::All => {}
            Which::Sample(sample) if sample.has(request.n) => {}
            Which::Sample(_) => return,
            Which::Slowest(slowest) => return slowest.offer(request),
        }
        self.batch.push(*request);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let fresh = self.emptied.try_recv().ok().or_else(|| {
            self.unmade = self.unmade.checked_sub(1)?;
            Some(Vec::with_capacity(BATCH))
        });
        let Some(fresh) = fresh else { return self.lose() };
        let requests = std::mem::replace(&mut self.batch, fresh);
        let batch = Batch { requests, home: self.home.clone() };
        if let Err(TrySendError::Full(batch) | TrySendError::Disconnected(batch)) = self.to.try_send(batch) {
            self.lost += batch.len() as u64;
        }
    }

    fn lose(&mut self) {
        self.lost += self.batch.len() as u64;
        self.batch.clear();
    }

    /// Hands over the rest, waiting for the reader if necessary. Returns how many requests were dropped.
    pub(crate) fn finish(mut self) -> u64 {
        let rest = match self.which {
            Which::Slowest(slowest) => slowest.into_sorted(),
            Which::All | Which::Sample(_) => std::mem::take(&mut self.batch),
        };
        for requests in rest.chunks(BATCH) {
            let batch = Batch { requests: requests.to_vec(), home: self.home.clone() };
            if self.to.send(batch).is_err() {
                self.lost += requests.len() as u64;
            }
        }
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use record::Timeline;
    use units::Nanos;

    use super::*;

    fn request(n: u64, age: u64) -> KeptRequest {
        let timeline = Timeline::due(Nanos(1));
        KeptRequest {
            n,
            kind: 0,
            connection: None,
            carried: None,
            timeline,
            ended: Nanos(1 + age),
            failure: None,
            code: None,
        }
    }

    /// If this fails, a slow disk makes a worker wait or allocate without bound, or requests are dropped uncounted.
    #[test]
    fn what_finds_no_room_is_counted() {
        let (to, batches) = sync_channel(4);
        let mut keeper = Keeper::new(Keep::All, to);
        for n in 0..10 * BATCH as u64 + 5 {
            keeper.offer(&request(n, 1));
        }
        let reader = std::thread::spawn(move || batches.iter().map(|batch| batch.len() as u64).sum::<u64>());
        let lost = keeper.finish();
        assert_eq!(lost, 6 * BATCH as u64);
        assert_eq!(reader.join().unwrap() + lost, 10 * BATCH as u64 + 5);
    }

    /// If this fails, memory is allocated for every batch although the reader keeps up.
    #[test]
    fn a_batch_that_was_read_is_used_again() {
        let (to, batches) = sync_channel(4);
        let mut keeper = Keeper::new(Keep::All, to);
        for n in 0..100 * BATCH as u64 {
            keeper.offer(&request(n, 1));
            drop(batches.try_recv());
        }
        assert_eq!(keeper.unmade, BATCHES - 2);
        assert_eq!(keeper.finish(), 0);
    }

    #[test]
    fn the_slowest_of_a_worker_come_at_its_end() {
        let (to, batches) = sync_channel(4);
        let mut keeper = Keeper::new(Keep::Slowest(3), to);
        for (n, age) in [5, 1, 9, 7, 2].into_iter().enumerate() {
            keeper.offer(&request(n as u64, age));
        }
        assert!(batches.try_recv().is_err());
        assert_eq!(keeper.finish(), 0);
        let kept: Vec<u64> = batches.recv().unwrap().iter().map(|request| request.n).collect();
        assert_eq!(kept, [2, 3, 0]);
    }
}
