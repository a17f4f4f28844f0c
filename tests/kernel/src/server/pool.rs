//! A pool of threads: connections move between them, or one thread reads for all of them.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::connection::{Connection, Request};
use super::threads::serve_read;
use super::work::Work;
use super::{Listener, Shop, spawn};
use crate::hands::Hands;

/// The connections that no thread has at the moment; each is reported once and then taken.
struct Resting {
    epoll: OwnedFd,
    connections: Mutex<HashMap<u64, Connection>>,
    next: AtomicU64,
}

impl Resting {
    fn new() -> io::Result<Resting> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Resting { epoll, connections: Mutex::default(), next: AtomicU64::new(0) })
    }

    fn add(&self, connection: Connection) -> io::Result<()> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        epoll::add(&self.epoll, &connection, epoll::EventData::new_u64(id), once())?;
        connections.insert(id, connection);
        Ok(())
    }

    /// Waits until one of them is readable.
    fn take(&self) -> io::Result<(u64, Connection)> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(1);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let Some(event) = events.first() else { continue };
            let (id, data) = (event.data.u64(), &self.connections);
            if let Some(connection) = data.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
                return Ok((id, connection));
            }
        }
    }

    fn give_back(&self, id: u64, connection: Connection) -> io::Result<()> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        epoll::modify(&self.epoll, &connection, epoll::EventData::new_u64(id), once())?;
        connections.insert(id, connection);
        Ok(())
    }
}

fn once() -> epoll::EventFlags {
    epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ONESHOT
}

pub fn run_hopping(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    let resting = Arc::new(Resting::new()?);
    for _ in 0..shop.options.workers {
        let (shop, resting) = (Arc::clone(shop), Arc::clone(&resting));
        spawn("worker", move || {
            let mut hands = Hands::new(&shop.options.folder)?;
            loop {
                let (id, mut connection) = resting.take()?;
                if connection.receive()? > 0 {
                    serve_read(&mut connection, &mut hands, &shop)?;
                    resting.give_back(id, connection)?;
                }
            }
        })?;
    }
    accept_all(shop, listener, &resting)
}

pub fn run_handing_over(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    let resting = Arc::new(Resting::new()?);
    let (hand_over, orders) = sync_channel::<(u64, Connection, Vec<Request>)>(1_024);
    let orders = Arc::new(Mutex::new(orders));
    for _ in 0..shop.options.workers {
        let (shop, resting, orders) = (Arc::clone(shop), Arc::clone(&resting), Arc::clone(&orders));
        spawn("worker", move || {
            let mut hands = Hands::new(&shop.options.folder)?;
            loop {
                let order = orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((id, mut connection, requests)) = order else { return Ok(()) };
                for request in requests {
                    let begun = hands.counters.moment();
                    let work = Work::of(request, begun, &connection, &mut hands)?;
                    work.finish(&mut connection, &hands, &shop)?;
                }
                resting.give_back(id, connection)?;
            }
        })?;
    }
    let read_from = Arc::clone(&resting);
    spawn("reader", move || {
        loop {
            let (id, mut connection) = read_from.take()?;
            if connection.receive()? == 0 {
                continue;
            }
            let mut requests = Vec::new();
            while let Some(request) = connection.next_request()? {
                requests.push(request);
            }
            if hand_over.send((id, connection, requests)).is_err() {
                return Ok(());
            }
        }
    })?;
    accept_all(shop, listener, &resting)
}

fn accept_all(shop: &Shop, listener: &Listener, resting: &Resting) -> io::Result<()> {
    loop {
        let (socket, port) = listener.accept()?;
        resting.add(Connection::new(socket, port, &shop.options.folder)?)?;
    }
}
