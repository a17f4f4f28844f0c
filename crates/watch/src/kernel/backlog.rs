//! Events on their way from the lanes to the assembler, in the order of their time.
//!
//! A thread empties the lanes as fast as they fill and only copies, so it needs little of a CPU and keeps up when the
//! assembler does not: what the assembler has not taken yet is in this process's memory, which grows up to a bound.
//! Beyond that, events stay in the lanes, and when these are full, the kernel's programs count what they lose.

use std::collections::VecDeque;
use std::io;
use std::mem::{size_of, size_of_val};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use units::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use super::lanes::Lanes;

/// Events of one round over all lanes, each lane's in order.
#[derive(Debug, Default)]
pub struct Batch {
    /// The events: their layout needs the alignment of a word.
    words: Vec<u64>,
    places: Vec<Place>,
    /// The time up to which this batch and those before it are complete.
    until: u64,
}

/// Where an event is in its batch, in words.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    lane: u32,
    begin: u32,
    length: u32,
}

impl Batch {
    /// Adds an event of a lane; its length is a multiple of eight bytes.
    pub fn push(&mut self, at: u64, lane: u32, event: &[u8]) {
        let words = <[u64]>::ref_from_bytes(event).expect("events are whole words, in place");
        let in_words = |n: usize| u32::try_from(n).expect("a round is at most as long as all lanes");
        let (begin, length) = (in_words(self.words.len()), in_words(words.len()));
        self.words.extend_from_slice(words);
        self.places.push(Place { at, lane, begin, length });
    }

    /// Sets the time up to which this batch and those before it are complete.
    pub fn complete_until(&mut self, until: u64) {
        self.until = until;
    }

    fn clear(&mut self) {
        self.words.clear();
        self.places.clear();
    }

    /// The memory that its events take.
    fn bytes(&self) -> usize {
        size_of_val(&self.words[..]) + self.places.len() * (size_of::<Place>() + size_of::<Waiting>())
    }
}

/// Puts the events of batches in order.
#[derive(Debug, Default)]
pub struct Order {
    batches: VecDeque<Batch>,
    /// The number of the first of them.
    first: u64,
    /// Events that were not passed on, sorted.
    waiting: Vec<Waiting>,
    until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    at: u64,
    lane: u32,
    batch: u64,
    begin: u32,
    length: u32,
}

impl Order {
    /// Adds the next batch.
    ///
    /// # Cost
    ///
    /// A sort of the waiting events, which are in order except across lanes.
    pub fn add(&mut self, batch: Batch) {
        let number = self.first + self.batches.len() as u64;
        self.until = batch.until;
        self.waiting.extend(batch.places.iter().map(|&Place { at, lane, begin, length }| Waiting {
            at,
            lane,
            batch: number,
            begin,
            length,
        }));
        self.batches.push_back(batch);
        self.waiting.sort();
    }

    /// Passes on the events up to the time for which all are known.
    pub fn give_complete(&mut self, give: impl FnMut(&[u8])) {
        let until = self.until;
        let ready = self.waiting.partition_point(|waiting| waiting.at <= until);
        self.give_first(ready, give);
    }

    /// Passes on all events.
    pub fn give_all(&mut self, give: impl FnMut(&[u8])) {
        self.give_first(self.waiting.len(), give);
    }

    fn give_first(&mut self, n: usize, mut give: impl FnMut(&[u8])) {
        for waiting in self.waiting.drain(..n) {
            let batch = usize::try_from(waiting.batch - self.first).expect("batches are in memory");
            let begin = waiting.begin as usize;
            give(self.batches[batch].words[begin..begin + waiting.length as usize].as_bytes());
        }
    }

    /// A batch whose events were all passed on.
    fn pop_empty(&mut self) -> Option<Batch> {
        let needed = self.waiting.iter().map(|waiting| waiting.batch).min();
        if needed.is_some_and(|needed| needed <= self.first) {
            return None;
        }
        let batch = self.batches.pop_front()?;
        self.first += 1;
        Some(batch)
    }
}

/// All events that were not passed on, and the thread that collects them.
pub struct Backlog {
    shared: Arc<Shared>,
    order: Order,
    collector: Option<JoinHandle<()>>,
}

struct Shared {
    source: Mutex<Source>,
    inbox: Mutex<VecDeque<Batch>>,
    /// Bytes of the batches in the inbox; it takes no more once they are as many as `most`.
    held: AtomicUsize,
    most: usize,
    /// [`Lanes::patience`].
    patience: AtomicU64,
    /// Empty batches, whose memory is used again.
    spare: Mutex<Vec<Batch>>,
    is_over: AtomicBool,
}

struct Source {
    lanes: Lanes,
    /// Of the last batch in the inbox.
    until: u64,
}

/// How many empty batches are kept.
const SPARE: usize = 4;

/// [`Backlog::drain`] passes on about so much at a time: a tenth of a second's work at most.
const PORTION: usize = 1 << 20;

/// Before all others of the host that are no real-time threads: it runs for some microseconds per round.
const PRIORITY: i32 = -20;

impl Backlog {
    /// Starts to collect. `most`: bytes of events that may wait for [`Backlog::drain`] in this process.
    ///
    /// # Errors
    ///
    /// When no thread can be started.
    pub fn start(lanes: Lanes, most: usize) -> io::Result<Backlog> {
        let shared = Arc::new(Shared {
            patience: AtomicU64::new(lanes.patience().0),
            source: Mutex::new(Source { lanes, until: 0 }),
            inbox: Mutex::default(),
            held: AtomicUsize::new(0),
            most,
            spare: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let its = Arc::clone(&shared);
        let collector =
            std::thread::Builder::new().name("lanes".to_owned()).spawn(move || its.keep_collecting())?;
        Ok(Backlog { shared, order: Order::default(), collector: Some(collector) })
    }

    /// How long [`Backlog::drain`] can wait: not at all if there is more.
    pub fn patience(&self) -> Nanos {
        if self.shared.held.load(Ordering::Relaxed) > 0 { Nanos::ZERO } else { self.shared.patience() }
    }

    /// Passes on what was collected, in the order of time, or the first part of it.
    pub fn drain(&mut self, mut give: impl FnMut(&[u8])) {
        let mut passed = 0;
        while passed < PORTION
            && let Some(batch) = self.shared.next()
        {
            passed += self.pass(batch, &mut give);
        }
    }

    /// Up to when all events were passed on.
    pub fn complete_until(&self) -> Nanos {
        Nanos(self.order.until)
    }

    /// Collects what the programs have written so far.
    pub fn collect(&self) {
        self.shared.collect();
    }

    /// Collects what the programs have written, and no more from then on.
    pub fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(collector) = self.collector.take() {
            collector.thread().unpark();
            // A panic of the thread was printed; what it had collected is complete.
            let _ = collector.join();
            self.shared.collect();
        }
    }

    /// Passes on everything that the programs have written.
    pub fn drain_all(&mut self, mut give: impl FnMut(&[u8])) {
        self.shared.collect();
        while let Some(batch) = self.shared.next() {
            self.pass(batch, &mut give);
        }
        self.order.give_all(give);
    }

    fn pass(&mut self, batch: Batch, give: impl FnMut(&[u8])) -> usize {
        let bytes = batch.bytes();
        self.order.add(batch);
        self.order.give_complete(give);
        while let Some(batch) = self.order.pop_empty() {
            self.shared.take_back(batch);
        }
        self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
        bytes
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn keep_collecting(&self) {
        // Without the privilege it runs among the others.
        let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), PRIORITY);
        while !self.is_over.load(Ordering::Relaxed) {
            if self.held.load(Ordering::Relaxed) < self.most {
                self.collect();
            }
            std::thread::park_timeout(Duration::from_nanos(self.patience().0));
        }
    }

    fn patience(&self) -> Nanos {
        Nanos(self.patience.load(Ordering::Relaxed))
    }

    /// Moves what is new in the lanes to the inbox.
    fn collect(&self) {
        let mut source = lock(&self.source);
        let mut batch = lock(&self.spare).pop().unwrap_or_default();
        source.lanes.collect(&mut batch);
        self.patience.store(source.lanes.patience().0, Ordering::Relaxed);
        // Without an event it may still say that those before it are complete.
        if batch.places.is_empty() && batch.until <= source.until {
            return self.take_back(batch);
        }
        source.until = batch.until;
        self.held.fetch_add(batch.bytes(), Ordering::Relaxed);
        lock(&self.inbox).push_back(batch);
    }

    fn next(&self) -> Option<Batch> {
        lock(&self.inbox).pop_front()
    }

    fn take_back(&self, mut batch: Batch) {
        batch.clear();
        let mut spare = lock(&self.spare);
        if spare.len() < SPARE {
            spare.push(batch);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(events: &[(u64, u32)], until: u64) -> Batch {
        let mut batch = Batch::default();
        for &(at, lane) in events {
            batch.push(at, lane, [at, 0].as_bytes());
        }
        batch.complete_until(until);
        batch
    }

    fn complete(order: &mut Order) -> Vec<u64> {
        let mut given = Vec::new();
        order.give_complete(|event| given.push(u64::from_ne_bytes(event[..8].try_into().unwrap())));
        given
    }

    /// If this fails, the memory of a watch grows with its length, or an event is passed on with the bytes of another.
    #[test]
    fn a_batch_is_kept_until_its_last_event_was_passed_on() {
        let mut order = Order::default();
        order.add(batch(&[(10, 0), (30, 0)], 0));
        assert_eq!(complete(&mut order), [0_u64; 0]);
        order.add(batch(&[(20, 1)], 20));
        assert_eq!(complete(&mut order), [10, 20]);
        assert!(order.pop_empty().is_none(), "an event of the first batch waits");
        order.add(batch(&[], 30));
        assert_eq!(complete(&mut order), [30]);
        let freed = std::iter::from_fn(|| order.pop_empty()).count();
        assert_eq!((freed, order.pop_empty().is_none()), (3, true));
        order.add(batch(&[(40, 1)], 40));
        assert_eq!(complete(&mut order), [40]);
    }
}
