//! One thread for all connections, like Redis: it reads and works on what is ready, one after the other, and then
//! writes all responses. A request waits for those worked on after it.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use super::connection::Connection;
use super::work::Work;
use super::{Listener, Shop};
use crate::hands::Hands;

pub fn run(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    let mut hands = Hands::new(&shop.options.folder)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let (mut next, mut events) = (0_u64, Vec::with_capacity(MOST_EVENTS));
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut done: Vec<(u64, Work)> = Vec::new();
        for event in &events {
            let id = event.data.u64();
            if id == LISTENER {
                let (socket, port) = listener.accept()?;
                let connection = Connection::new(socket, port, &shop.options.folder)?;
                epoll::add(&epoll, &connection, epoll::EventData::new_u64(next), epoll::EventFlags::IN)?;
                connections.insert(next, connection);
                next += 1;
            } else if let Some(connection) = connections.get_mut(&id)
                && !work_all(id, connection, &mut hands, &mut done)?
            {
                connections.remove(&id);
            }
        }
        for (id, work) in done {
            if let Some(connection) = connections.get_mut(&id) {
                work.finish_later(connection, &hands, shop)?;
            }
        }
    }
}

const LISTENER: u64 = u64::MAX;
const MOST_EVENTS: usize = 256;

/// Reads once and works on complete requests; false when the peer has closed.
fn work_all(
    id: u64,
    connection: &mut Connection,
    hands: &mut Hands,
    done: &mut Vec<(u64, Work)>,
) -> io::Result<bool> {
    if connection.receive()? == 0 {
        return Ok(false);
    }
    let mut begun = hands.counters.moment();
    while let Some(request) = connection.next_request()? {
        done.push((id, Work::of(request, begun, connection, hands)?));
        begun = hands.counters.moment();
    }
    Ok(true)
}

impl AsFd for Listener {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }
}
