//! Messages between threads: a letter in a mailbox, and a wake-up. Never used to serve a request, except one to
//! `/truth`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use units::Nanos;

use crate::capacity::Buckets;
use crate::fault::Fault;
use crate::freeze::Schedule;
use crate::options::Options;
use crate::slab::Key;
use crate::tally::Tally;

/// What all threads of one server can see.
pub(crate) struct Shared {
    pub options: Options,
    pub schedule: Schedule,
    pub buckets: Buckets,
    boxes: Vec<Mailbox>,
    stop: AtomicBool,
    /// How many shares were drawn for each fault, and last for jittered delays: over all threads, so that there is
    /// one sequence. Used only by requests that ask for a share or a jitter.
    draws: [AtomicU64; Fault::COUNT + 1],
}

struct Mailbox {
    waker: OwnedFd,
    letters: Mutex<Vec<Letter>>,
}

pub(crate) enum Letter {
    /// Add your tally to the collection.
    Add(Arc<Collection>),
    /// Every thread has added its tally; the connection that requested it is one of this thread's.
    Complete(Arc<Collection>, Key),
}

/// One collection of the truth, in progress.
pub(crate) struct Collection {
    /// Whether each thread starts a new tally after adding its own.
    pub reset: bool,
    /// The requesting thread and connection; `None`: a caller blocks in [`Collection::wait`].
    origin: Option<(usize, Key)>,
    state: Mutex<(Tally, usize)>,
    complete: Condvar,
}

impl Shared {
    pub(crate) fn new(options: Options, schedule: Schedule) -> io::Result<Shared> {
        let open = || {
            let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            Ok(Mailbox { waker, letters: Mutex::new(Vec::new()) })
        };
        let boxes = (0..options.threads).map(|_| open()).collect::<io::Result<_>>()?;
        Ok(Shared {
            options,
            schedule,
            buckets: Buckets::default(),
            boxes,
            stop: AtomicBool::new(false),
            draws: Default::default(),
        })
    }

    pub(crate) fn waker(&self, thread: usize) -> BorrowedFd<'_> {
        self.boxes[thread].waker.as_fd()
    }

    /// Takes the letters that have arrived, and resets the waker.
    pub(crate) fn collect_letters(&self, thread: usize) -> Vec<Letter> {
        // Reading clears the counter. It must come before the letters are taken: the other way round, a letter
        // between the two would wake nobody. An empty counter only means there was no wake-up.
        let _ = rustix::io::read(&self.boxes[thread].waker, &mut [0; 8]);
        std::mem::take(&mut *lock(&self.boxes[thread].letters))
    }

    pub(crate) fn clear_waker(&self, thread: usize) {
        let _ = rustix::io::read(&self.boxes[thread].waker, &mut [0; 8]);
    }

    pub(crate) fn send(&self, thread: usize, letter: Letter) {
        lock(&self.boxes[thread].letters).push(letter);
        self.wake(thread);
    }

    /// Requests the tally of every thread except the requesting one.
    pub(crate) fn ask(&self, reset: bool, origin: Option<(usize, Key)>) -> Arc<Collection> {
        if reset {
            self.draws.iter().for_each(|draw| draw.store(0, Ordering::Relaxed));
        }
        let state = Mutex::new((Tally::new(Nanos::ZERO), self.boxes.len()));
        let collection = Arc::new(Collection { reset, origin, state, complete: Condvar::new() });
        for thread in 0..self.boxes.len() {
            if origin.is_none_or(|(asker, _)| asker != thread) {
                self.send(thread, Letter::Add(Arc::clone(&collection)));
            }
        }
        collection
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        (0..self.boxes.len()).for_each(|thread| self.wake(thread));
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// The number of this draw, for `fault` or for a jittered delay.
    pub(crate) fn next_draw(&self, fault: Option<Fault>) -> u64 {
        let place = fault.map_or(Fault::COUNT, Fault::index);
        self.draws[place].fetch_add(1, Ordering::Relaxed)
    }

    fn wake(&self, thread: usize) {
        // It fails only when the counter is full, and then the thread is already awake.
        let _ = rustix::io::write(&self.boxes[thread].waker, &1u64.to_ne_bytes());
    }
}

impl Collection {
    /// Adds one thread's part. The last thread to do so notifies the requesting one; `true` if that is the same thread.
    pub(crate) fn add(self: &Arc<Self>, thread: usize, tally: &Tally, shared: &Shared) -> bool {
        let left = {
            let mut state = lock(&self.state);
            state.0.merge(tally);
            state.1 -= 1;
            state.1
        };
        match self.origin {
            _ if left > 0 => false,
            None => {
                self.complete.notify_all();
                false
            }
            Some((asker, _)) if asker == thread => true,
            Some((asker, key)) => {
                shared.send(asker, Letter::Complete(Arc::clone(self), key));
                false
            }
        }
    }

    /// Waits for at most the given time; returns whether all parts have been added.
    pub(crate) fn wait(&self, for_at_most: Nanos) -> bool {
        let state = lock(&self.state);
        let waited = self.complete.wait_timeout_while(state, for_at_most.into(), |state| state.1 > 0);
        waited.unwrap_or_else(PoisonError::into_inner).0.1 == 0
    }

    /// The sum of what has been added so far.
    pub(crate) fn tally(&self) -> Tally {
        lock(&self.state).0.clone()
    }
}

/// A poisoned lock is fine: a tally only ever grows by additions.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
