//! What one thread of the planted server can do: each step of a recipe, with its own account.
//!
//! Each thread has its own partners (which hold its lock and reply to it late) and its own file, so that no step of
//! one thread waits for another thread except as planned.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use units::Nanos;

use crate::account::{Counters, Done};
use crate::recipe::{Recipe, Step};

pub struct Hands {
    pub counters: Counters,
    lock: Holder,
    pipe: Partner<io::PipeReader, io::PipeWriter>,
    socket: Partner<UnixStream, UnixStream>,
    file: File,
}

impl Hands {
    /// For the calling thread only; its file is created in `folder`.
    ///
    /// # Errors
    ///
    /// The host has no more threads, pipes or files.
    pub fn new(folder: &Path) -> io::Result<Hands> {
        let counters = Counters::open()?;
        let file = File::create(folder.join(format!("synced-{}", counters.tid)))?;
        file.write_all_at(&PAGE, 0)?;
        let (from_partner, to_us) = io::pipe()?;
        let (from_us, to_partner) = io::pipe()?;
        let (ours, theirs) = UnixStream::pair()?;
        Ok(Hands {
            counters,
            lock: Holder::start()?,
            pipe: Partner::start((from_partner, to_partner), (from_us, to_us))?,
            socket: Partner::start((ours.try_clone()?, ours), (theirs.try_clone()?, theirs))?,
            file,
        })
    }

    /// Carries out all steps, in order.
    ///
    /// # Errors
    ///
    /// A step failed: then nothing that this server reports can be trusted.
    pub fn perform(&mut self, recipe: &Recipe) -> io::Result<Vec<Done>> {
        recipe.steps.iter().map(|&step| self.measured(step)).collect()
    }

    fn measured(&mut self, step: Step) -> io::Result<Done> {
        let begin = self.counters.moment();
        self.take(step)?;
        let end = self.counters.moment();
        Ok(Done {
            step: step.name().to_owned(),
            planned_ns: step.planned().map(|length| length.0),
            used: begin.until(&end),
        })
    }

    fn take(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Burn(length) => burn(length),
            Step::Sleep(length) => clock::sleep_until(clock::now() + length),
            Step::Lock(length) => self.lock.wait(length),
            Step::Pipe(length) => return self.pipe.ask(length),
            Step::Socket(length) => return self.socket.ask(length),
            Step::Fsync => {
                self.file.write_all_at(&PAGE, 0)?;
                return self.file.sync_all();
            }
            Step::Yield(times) => (0..times).for_each(|_| rustix::thread::sched_yield()),
            Step::Fault(pages) => touch(pages),
        }
        Ok(())
    }
}

const PAGE: [u8; 4096] = [7; 4096];

/// Uses this much of the thread's CPU clock.
pub fn burn(length: Nanos) {
    let end = clock::thread_cpu() + length;
    while clock::thread_cpu() < end {
        for number in 0..200_u64 {
            black_box(number);
        }
    }
}

/// Fresh memory consists of pages that do not exist until they are touched.
fn touch(pages: u32) {
    let bytes = pages as usize * PAGE.len();
    let mut memory = vec![0_u8; bytes];
    memory.iter_mut().step_by(PAGE.len()).for_each(|byte| *byte = 1);
    black_box(&memory);
}

/// A thread that holds a lock for as long as requested.
struct Holder {
    lock: Arc<Mutex<()>>,
    orders: SyncSender<Nanos>,
    held: Receiver<()>,
}

impl Holder {
    fn start() -> io::Result<Holder> {
        let lock = Arc::new(Mutex::new(()));
        let (orders, taken) = sync_channel::<Nanos>(1);
        let (tell, held) = sync_channel(1);
        let theirs = Arc::clone(&lock);
        thread::Builder::new().name("holder".to_owned()).spawn(move || {
            while let Ok(length) = taken.recv() {
                let until = clock::now() + length;
                let held = theirs.lock().unwrap_or_else(PoisonError::into_inner);
                if tell.send(()).is_err() {
                    return;
                }
                clock::sleep_until(until);
                drop(held);
            }
        })?;
        Ok(Holder { lock, orders, held })
    }

    /// Blocked for `length`: first, shortly, until the lock is held, then until it is free. Both are futexes.
    fn wait(&self, length: Nanos) {
        self.orders.send(length).expect("the holder lives as long as its orders");
        self.held.recv().expect("the holder tells before it lets go");
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A thread at the other end of a pipe or a socket, which replies as late as requested.
struct Partner<R, W> {
    answers: R,
    questions: W,
}

impl<R: Read + Send + 'static, W: Write + Send + 'static> Partner<R, W> {
    fn start(ours: (R, W), mut theirs: (R, W)) -> io::Result<Partner<R, W>> {
        thread::Builder::new().name("partner".to_owned()).spawn(move || {
            let mut question = [0; 8];
            while theirs.0.read_exact(&mut question).is_ok() {
                clock::sleep_until(clock::now() + Nanos(u64::from_le_bytes(question)));
                if theirs.1.write_all(&[1]).is_err() {
                    return;
                }
            }
        })?;
        Ok(Partner { answers: ours.0, questions: ours.1 })
    }

    fn ask(&mut self, length: Nanos) -> io::Result<()> {
        self.questions.write_all(&length.0.to_le_bytes())?;
        self.answers.read_exact(&mut [0])
    }
}
