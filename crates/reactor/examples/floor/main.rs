//! The minimum cost: keep-alive requests of a client that does nothing but send and receive.
//!
//! `floor LOOP ADDRESS CONNECTIONS SECONDS [REQUEST]`, run by `bench/driver_cost.py` and `bench/database_cost.py`, which
//! gives the bytes of another protocol. No parser, no histogram, no timeout: every read is a complete and good response.
//! Prints one line of JSON with the number of requests.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an experiment that stops at the first surprise"
)]

mod uring;

use std::env;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::LazyLock;

use reactor::stamp;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags};
use units::Nanos;

/// What is sent, by every loop.
static REQUEST: LazyLock<Vec<u8>> =
    LazyLock::new(|| env::args().nth(5).map_or_else(|| HTTP.to_vec(), String::into_bytes));

/// As long as the request that `parallax drive` sends to such an address.
const HTTP: &[u8] =
    b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: parallax/0.1.0\r\nAccept: */*\r\n\r\n";

/// The counts at the end.
#[derive(Debug, Default)]
struct Done {
    requests: u64,
    stamped: u64,
    waits: u64,
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let [_, name, address, connections, seconds, ..] = arguments.as_slice() else {
        panic!("floor read|stamps|batched|uring|uring16 ADDRESS CONNECTIONS SECONDS [REQUEST]")
    };
    let count: usize = connections.parse().unwrap();
    let sockets: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(address).unwrap()).collect();
    for socket in &sockets {
        socket.set_nodelay(true).unwrap();
        if name != "read" {
            stamp::enable(socket.as_fd()).unwrap();
        }
    }
    let end = clock::now() + Nanos::from_secs(seconds.parse().unwrap());
    let done = match name.as_str() {
        "read" => ready_loop(&sockets, end, 1, read),
        "stamps" => ready_loop(&sockets, end, 1, read_stamped),
        "batched" => ready_loop(&sockets, end, usize::MAX, read_stamped),
        "uring" => uring::completion_loop(&sockets, end, 1),
        "uring16" => uring::completion_loop(&sockets, end, 16),
        other => panic!("no loop {other}"),
    };
    let Done { requests, stamped, waits } = done;
    println!("{{\"requests\": {requests}, \"stamped\": {stamped}, \"waits\": {waits}}}");
}

/// Reads once. Returns `None` if no bytes came, otherwise whether they had a timestamp.
type Read = fn(&TcpStream, &mut [u8]) -> Option<bool>;

fn read(socket: &TcpStream, buffer: &mut [u8]) -> Option<bool> {
    rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT).ok().map(|_| false)
}

fn read_stamped(socket: &TcpStream, buffer: &mut [u8]) -> Option<bool> {
    stamp::receive(socket.as_fd(), buffer).ok().map(|read| read.arrived_realtime_ns.is_some())
}

/// Edge-triggered epoll. A request follows each response at once, or all responses of a wake-up together.
fn ready_loop(sockets: &[TcpStream], end: Nanos, together: usize, read: Read) -> Done {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (index, socket) in sockets.iter().enumerate() {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, socket, epoll::EventData::new_u64(index as u64), flags).unwrap();
        send(socket);
    }
    let (mut done, mut events, mut free) = (Done::default(), Vec::with_capacity(1_024), Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    let timeout = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while clock::now() < end {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout)).unwrap();
        done.waits += 1;
        for event in &events {
            let socket = &sockets[event.data.u64() as usize];
            let Some(stamped) = read(socket, &mut buffer) else { continue };
            done.requests += 1;
            done.stamped += u64::from(stamped);
            free.push(socket);
            if free.len() >= together {
                free.drain(..).for_each(send);
            }
        }
        free.drain(..).for_each(send);
    }
    done
}

fn send(socket: &TcpStream) {
    let sent = rustix::net::send(socket, &REQUEST, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).unwrap();
    assert_eq!(sent, REQUEST.len());
}
