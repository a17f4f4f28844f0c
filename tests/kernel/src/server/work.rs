//! From a request to its response and its account: picked up, worked on, written.

use std::io;

use units::Nanos;

use super::Shop;
use super::connection::{Connection, Protocol, Request};
use super::ways::Way;
use crate::account::{Account, Done, Moment, Used};
use crate::hands::Hands;
use crate::recipe::Recipe;

/// A request whose steps are done and whose response is not yet written.
pub struct Work {
    request: Request,
    begun: Moment,
    worked: Moment,
    steps: Vec<Done>,
    way: Way,
    next_way: Option<Way>,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
}

impl Work {
    /// Carries out the steps of a request that the calling thread picked up at `begun`.
    pub fn of(
        request: Request,
        begun: Moment,
        connection: &Connection,
        hands: &mut Hands,
    ) -> io::Result<Work> {
        let way = connection.way;
        let mut steps = Vec::new();
        let mut next_way = None;
        let (status, body) = match order(&request.path) {
            Ok(Order::Way(way)) => {
                next_way = Some(way);
                ("200 OK", body(3))
            }
            Ok(Order::Do(recipe)) => {
                steps = hands.perform(&recipe)?;
                ("200 OK", body(recipe.answer))
            }
            Err(error) => ("400 Bad Request", format!("{error}\n").into_bytes()),
        };
        let head = match request.protocol {
            Protocol::Http => head(status, body.len()),
            Protocol::Line => Vec::new(),
        };
        let worked = hands.counters.moment();
        Ok(Work { request, begun, worked, steps, way, next_way, head, body })
    }

    /// Writes the response and keeps the account. The thread has worked on nothing else since it picked the request up.
    pub fn finish(self, connection: &mut Connection, hands: &Hands, shop: &Shop) -> io::Result<()> {
        connection.prepare(&self.body)?;
        shop.one_began();
        let writing = clock::now();
        connection.write(&self.head, &self.body).inspect_err(|_| shop.one_ended())?;
        let written = hands.counters.moment();
        let used = self.begun.until(&written);
        self.close(connection, Ends { writing, written: written.at, used }, hands, shop);
        Ok(())
    }

    /// The same, for a thread that did other work in between, which does not count for this request.
    pub fn finish_later(self, connection: &mut Connection, hands: &Hands, shop: &Shop) -> io::Result<()> {
        connection.prepare(&self.body)?;
        shop.one_began();
        let writing = hands.counters.moment();
        connection.write(&self.head, &self.body).inspect_err(|_| shop.one_ended())?;
        self.written_since(&writing, connection, hands, shop);
        Ok(())
    }

    /// Another thread has written the response, beginning at `writing`; it was reported with `one_began`.
    pub fn written_since(self, writing: &Moment, connection: &mut Connection, hands: &Hands, shop: &Shop) {
        let written = hands.counters.moment();
        let used = sum(self.begun.until(&self.worked), writing.until(&written));
        self.close(connection, Ends { writing: writing.at, written: written.at, used }, hands, shop);
    }

    fn close(self, connection: &mut Connection, ends: Ends, hands: &Hands, shop: &Shop) {
        if let Some(way) = self.next_way {
            connection.way = way;
        }
        let response_bytes = (self.head.len() + self.body.len()) as u64;
        shop.book.add(Account {
            peer_port: connection.peer_port,
            n: self.request.n,
            path: self.request.path,
            pid: std::process::id(),
            tid: hands.counters.tid,
            reader: self.request.reader,
            read_ns: self.request.read_at.0,
            begun_ns: self.begun.at.0,
            worked_ns: self.worked.at.0,
            writing_ns: ends.writing.0,
            written_ns: ends.written.0,
            used: ends.used,
            steps: self.steps,
            request_bytes: self.request.bytes,
            response_bytes,
            io: self.way.to_string(),
        });
        shop.one_ended();
    }
}

#[derive(Clone, Copy)]
struct Ends {
    writing: Nanos,
    written: Nanos,
    used: Used,
}

enum Order {
    /// From now on the connection's requests are read and written in another way.
    Way(Way),
    Do(Recipe),
}

fn order(path: &str) -> Result<Order, String> {
    match path.strip_prefix("/io=") {
        Some(way) => way.parse().map(Order::Way),
        None => path.parse().map(Order::Do),
    }
}

fn head(status: &str, length: usize) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// Ends with a line end, so that it is also a response to a line.
fn body(length: usize) -> Vec<u8> {
    let mut body = vec![b'o'; length.max(1)];
    *body.last_mut().expect("a body has a byte at least") = b'\n';
    body
}

fn sum(one: Used, other: Used) -> Used {
    Used {
        wall_ns: one.wall_ns + other.wall_ns,
        cpu_ns: one.cpu_ns + other.cpu_ns,
        run_delay_ns: one.run_delay_ns + other.run_delay_ns,
        slices: one.slices + other.slices,
    }
}
