//! One thread and an io_uring: the kernel reads and writes, the thread sees completions.

#![expect(unsafe_code, reason = "the kernel writes into memory that an entry of the ring names")]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};

use super::connection::Connection;
use super::work::Work;
use super::{Listener, Shop, spawn};
use crate::account::Moment;
use crate::hands::Hands;

pub fn run(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    // Connections come from this thread; the ring's own thread learns of each through a counter it reads.
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let theirs = bell.try_clone()?;
    let (send, arrivals) = sync_channel(1_024);
    let its_shop = Arc::clone(shop);
    spawn("ring", move || {
        let hands = Hands::new(&its_shop.options.folder)?;
        let ring = IoUring::new(ENTRIES)?;
        Server { ring, hands, slots: HashMap::new(), shop: its_shop, next: BELL + 1 }.run(&theirs, &arrivals)
    })?;
    loop {
        let (socket, port) = listener.accept()?;
        let connection = Connection::new(socket, port, &shop.options.folder)?;
        if send.send(connection).is_err() {
            return Err(io::Error::other("the ring's thread has ended"));
        }
        rustix::io::write(&bell, &1_u64.to_ne_bytes())?;
    }
}

const ENTRIES: u32 = 256;
const BELL: u64 = 0;

struct Server {
    ring: IoUring,
    hands: Hands,
    slots: HashMap<u64, Box<Slot>>,
    shop: Arc<Shop>,
    next: u64,
}

/// A connection and the memory that the kernel may use for it, which must not move while an entry refers to it.
struct Slot {
    connection: Connection,
    inbox: Box<[u8]>,
    outbox: Vec<u8>,
    sent: usize,
    writing: Option<(Work, Moment)>,
}

impl Server {
    fn run(mut self, bell: impl AsFd, arrivals: &Receiver<Connection>) -> io::Result<()> {
        let mut rings = Box::new([0_u8; 8]);
        let bell = types::Fd(bell.as_fd().as_raw_fd());
        let mut hear = opcode::Read::new(bell, rings.as_mut_ptr(), 8).build().user_data(BELL);
        self.push(&hear)?;
        loop {
            self.ring.submit_and_wait(1)?;
            let completions: Vec<(u64, i32)> =
                self.ring.completion().map(|entry| (entry.user_data(), entry.result())).collect();
            for (id, result) in completions {
                if id != BELL {
                    // Failures are caused by the peer, and end its connection.
                    self.completed(id, usize::try_from(result).unwrap_or(0))?;
                    continue;
                }
                for connection in arrivals.try_iter() {
                    self.slot(connection)?;
                }
                hear = opcode::Read::new(bell, rings.as_mut_ptr(), 8).build().user_data(BELL);
                self.push(&hear)?;
            }
        }
    }

    fn slot(&mut self, connection: Connection) -> io::Result<()> {
        let (id, inbox) = (self.next, vec![0; 16 << 10].into_boxed_slice());
        self.next += 1;
        let slot = Slot { connection, inbox, outbox: Vec::new(), sent: 0, writing: None };
        self.slots.insert(id, Box::new(slot));
        self.receive(id)
    }

    fn completed(&mut self, id: u64, length: usize) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        if length == 0 {
            if slot.writing.is_some() {
                self.shop.one_ended();
            }
            self.slots.remove(&id);
            return Ok(());
        }
        if let Some((work, writing)) = slot.writing.take() {
            slot.sent += length;
            if slot.sent < slot.outbox.len() {
                slot.writing = Some((work, writing));
                return self.send(id);
            }
            work.written_since(&writing, &mut slot.connection, &self.hands, &self.shop);
        } else {
            slot.connection.take_in(&slot.inbox[..length]);
        }
        self.go_on(id)
    }

    /// Continues with the next request, or the next read.
    fn go_on(&mut self, id: u64) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let begun = self.hands.counters.moment();
        let Some(request) = slot.connection.next_request()? else { return self.receive(id) };
        let work = Work::of(request, begun, &slot.connection, &mut self.hands)?;
        slot.outbox = [&work.head[..], &work.body].concat();
        slot.sent = 0;
        self.shop.one_began();
        slot.writing = Some((work, self.hands.counters.moment()));
        self.send(id)
    }

    fn receive(&mut self, id: u64) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let socket = types::Fd(slot.connection.as_fd().as_raw_fd());
        let entry = opcode::Recv::new(socket, slot.inbox.as_mut_ptr(), slot.inbox.len() as u32);
        self.push(&entry.build().user_data(id))
    }

    fn send(&mut self, id: u64) -> io::Result<()> {
        let Some(slot) = self.slots.get_mut(&id) else { return Ok(()) };
        let socket = types::Fd(slot.connection.as_fd().as_raw_fd());
        let rest = &slot.outbox[slot.sent..];
        let length = u32::try_from(rest.len()).unwrap_or(u32::MAX);
        let entry = opcode::Send::new(socket, rest.as_ptr(), length).flags(NO_SIGNAL);
        self.push(&entry.build().user_data(id))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the memory that an entry names belongs to a slot or to `run`. A slot goes only when its one entry
        // has completed, and its boxes do not move; `run` returns only by an error, with the ring and the process.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

const NO_SIGNAL: i32 = 0x4000;
