//! A reactor without a kernel: plays a [`Script`] in simulated time, on one thread, deterministically.
//!
//! Events are edge-triggered, as with epoll: what has been reported is not reported again until more arrives. The link
//! decides what the server does; this file advances time, which happens only in [`Reactor::wait`] and when reading the
//! clock has a cost.

mod link;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;

use clock::{Clock, SimClock};
use reactor::{Address, Ends, Reactor, Ready, Received, Slot, WaitMode};
use units::Nanos;

use self::link::{Dialed, Edge, Link, Surroundings};
use crate::script::{Dial, Lookup, Script, Span, Way};

/// Plays a [`Script`] for one client; see the module.
#[derive(Debug)]
pub struct SimReactor {
    clock: SimClock,
    start: Nanos,
    script: Script,
    freezes: Vec<Span>,
    stalls: Vec<Span>,
    places: Vec<Place>,
    edges: Edges,
    /// Slots that the current wait has events for.
    reported: Vec<u32>,
    begun: Begun,
    guard: Guard,
}

/// One slot's connection. The generation distinguishes its edges from those of an earlier connection.
#[derive(Debug, Default)]
struct Place {
    link: Option<Link>,
    generation: u32,
    news: Option<News>,
}

/// The events of one connection in one wait.
#[derive(Debug, Clone, Copy, Default)]
struct News {
    readable: bool,
    writable: bool,
    closed: bool,
}

/// Future edges, the earliest first; those of the same instant in the order in which they were added.
#[derive(Debug, Default)]
struct Edges {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Nanos,
    order: u64,
    slot: u32,
    generation: u32,
    edge: Edge,
}

/// How often each thing has begun, which determines whose turn it is.
#[derive(Debug, Default)]
struct Begun {
    lookups: usize,
    dials: usize,
    dials_to: Vec<usize>,
    requests: usize,
}

/// Detects endless loops.
#[derive(Debug, Default)]
struct Guard {
    idle_waits: u64,
    calls: u64,
}

impl SimReactor {
    /// A client whose run begins at `start`; its clock begins a little earlier.
    pub fn new(script: Script, start: Nanos) -> SimReactor {
        let on_clock = |spans: &[Span]| -> Vec<Span> {
            spans.iter().map(|span| Span { from: start + span.from, until: start + span.until }).collect()
        };
        SimReactor {
            clock: SimClock::starting_at(start.saturating_sub(LEAD)),
            start,
            freezes: on_clock(&script.freezes),
            stalls: on_clock(&script.stalls),
            places: Vec::new(),
            edges: Edges::default(),
            reported: Vec::new(),
            begun: Begun { dials_to: vec![0; script.dials_to.len()], ..Begun::default() },
            guard: Guard::default(),
            script,
        }
    }

    /// The clock that it advances.
    pub fn clock(&self) -> &SimClock {
        &self.clock
    }

    /// How many connections were attempted.
    pub fn dial_count(&self) -> usize {
        self.begun.dials + self.begun.dials_to.iter().sum::<usize>()
    }

    /// The number of requests whose first byte the server has received or will receive.
    pub fn request_count(&self) -> usize {
        self.begun.requests
    }

    fn place(&mut self, slot: Slot) -> &mut Place {
        let index = slot.0 as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, Place::default);
        }
        &mut self.places[index]
    }

    fn next_dial(&mut self, peer: SocketAddr) -> Dial {
        let named = self.script.dials_to.iter().position(|(address, _)| *address == peer);
        let (turns, count) = match named {
            Some(index) => (&self.script.dials_to[index].1, &mut self.begun.dials_to[index]),
            None => (&self.script.dials, &mut self.begun.dials),
        };
        *count += 1;
        turns.nth(*count - 1).clone()
    }

    /// When the client can run next, from `at` on.
    fn awake_from(&self, mut at: Nanos) -> Nanos {
        for stall in &self.stalls {
            if stall.from <= at && at < stall.until {
                at = stall.until;
            }
        }
        at
    }

    /// Takes the edges until `now`. Returns whether there were any.
    fn take_edges(&mut self, now: Nanos, ready: &mut Vec<Ready>) -> bool {
        let mut any = false;
        while let Some(entry) = self.edges.pop(now) {
            if entry.edge == Edge::Lookup {
                ready.push(self.resolved(entry.at));
                any = true;
                continue;
            }
            let place = &mut self.places[entry.slot as usize];
            let Some(link) = place.link.as_mut().filter(|_| place.generation == entry.generation) else {
                continue;
            };
            if entry.edge == Edge::IdleClose && !link.closes_idle(entry.at) {
                continue;
            }
            if place.news.is_none() {
                self.reported.push(entry.slot);
            }
            place.news.get_or_insert_default().add(entry.edge);
            any = true;
        }
        any
    }

    fn resolved(&self, at: Nanos) -> Ready {
        let result = match self.script.lookups.nth(self.begun.lookups - 1) {
            Lookup::Finds { addresses, .. } => Ok(addresses.clone()),
            Lookup::Fails { .. } => Err(io::Error::other("no such name")),
        };
        Ready::Resolved { result, at }
    }
}

impl Reactor for SimReactor {
    fn now(&self) -> Nanos {
        let now = self.clock.now();
        self.clock.advance_by(self.script.clock_cost);
        now
    }

    fn resolve(&mut self, _: &str, _: u16) {
        self.guard.called();
        let (Lookup::Finds { after, .. } | Lookup::Fails { after }) =
            self.script.lookups.nth(self.begun.lookups);
        let at = self.clock.now() + *after;
        self.begun.lookups += 1;
        self.edges.put(at, (0, 0), Edge::Lookup);
    }

    fn connect(&mut self, slot: Slot, address: &Address) -> io::Result<()> {
        let Address::Tcp { peer, .. } = *address else {
            return Err(io::Error::other("the simulated network knows no file system"));
        };
        self.guard.called();
        self.close(slot);
        let now = self.clock.now();
        let (dialed, way) = match self.next_dial(peer) {
            Dial::FailsAtOnce { errno } => return Err(io::Error::from_raw_os_error(errno)),
            Dial::Stands { after, way } => (Dialed::Until { at: now + after, errno: None }, way),
            Dial::Fails { after, errno } => {
                (Dialed::Until { at: now + after, errno: Some(errno) }, Way::default())
            }
            Dial::Silent => (Dialed::Silent, Way::default()),
        };
        let owner = (slot.0, self.place(slot).generation);
        let mut link = Link::new(dialed, way);
        if let Dialed::Until { at, errno } = dialed {
            if errno.is_none() {
                link.stands_from(at, &mut |at, edge| self.edges.put(at, owner, edge));
            }
            self.edges.put(at, owner, Edge::Dialed);
        }
        self.place(slot).link = Some(link);
        Ok(())
    }

    fn connected(&mut self, slot: Slot) -> io::Result<bool> {
        let now = self.clock.now();
        self.place(slot).link.as_ref().map_or(Err(io::ErrorKind::NotConnected.into()), |l| l.connected(now))
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) -> io::Result<usize> {
        self.guard.called();
        let now = self.clock.now();
        let place = self.places.get_mut(slot.0 as usize).ok_or(io::ErrorKind::NotConnected)?;
        let owner = (slot.0, place.generation);
        let link = place.link.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let edges = &mut self.edges;
        link.send(
            bytes,
            &mut Surroundings {
                now,
                script: &self.script,
                freezes: &self.freezes,
                requests: &mut self.begun.requests,
                report: &mut |at, edge| edges.put(at, owner, edge),
            },
        )
    }

    fn receive(&mut self, slot: Slot, buffer: &mut [u8]) -> io::Result<Received> {
        let (now, stamps) = (self.clock.now(), self.script.stamps);
        let link = self.place(slot).link.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        link.receive(buffer, now, stamps)
    }

    fn unacknowledged(&self, slot: Slot) -> Option<u64> {
        self.places.get(slot.0 as usize)?.link.as_ref()?.unacknowledged(self.clock.now())
    }

    fn ends(&self, _slot: Slot) -> Option<Ends> {
        None
    }

    fn close(&mut self, slot: Slot) {
        let place = self.place(slot);
        place.link = None;
        place.generation = place.generation.wrapping_add(1);
    }

    fn wait(&mut self, until: Nanos, mode: WaitMode, ready: &mut Vec<Ready>) -> io::Result<()> {
        let now = self.clock.now();
        let disturbed = match mode {
            WaitMode::Asleep | WaitMode::Awake => self.edges.next_at(),
            WaitMode::Undisturbed => None,
        };
        let next = disturbed.map_or(until, |at| at.min(until));
        let wake = self.awake_from(next.max(now));
        assert!(wake < Nanos::MAX, "nothing will ever happen again");
        self.clock.advance_to(wake);
        let any = self.take_edges(wake, ready);
        self.guard.waited(any || wake > now, wake.saturating_sub(self.start));
        for slot in self.reported.drain(..) {
            let place = &mut self.places[slot as usize];
            if let Some(News { readable, writable, closed }) = place.news.take() {
                ready.push(Ready::Socket { slot: Slot(slot), readable, writable, closed });
            }
        }
        Ok(())
    }
}

impl News {
    fn add(&mut self, edge: Edge) {
        match edge {
            Edge::Readable => self.readable = true,
            Edge::Writable => self.writable = true,
            Edge::Dialed => (self.writable, self.readable) = (true, true),
            Edge::Closed | Edge::IdleClose => (self.readable, self.closed) = (true, true),
            Edge::Broken => (self.readable, self.writable, self.closed) = (true, true, true),
            Edge::Lookup => unreachable!("a lookup belongs to no connection"),
        }
    }
}

impl Edges {
    fn put(&mut self, at: Nanos, (slot, generation): (u32, u32), edge: Edge) {
        self.count += 1;
        self.heap.push(Reverse(Entry { at, order: self.count, slot, generation, edge }));
    }

    fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    fn pop(&mut self, now: Nanos) -> Option<Entry> {
        self.next_at().filter(|&at| at <= now)?;
        self.heap.pop().map(|Reverse(entry)| entry)
    }
}

impl Guard {
    fn called(&mut self) {
        self.idle_waits = 0;
        self.calls += 1;
        assert!(self.calls < MOST_CALLS, "the client calls the network without end");
    }

    fn waited(&mut self, progress: bool, offset: Nanos) {
        self.idle_waits = if progress { 0 } else { self.idle_waits + 1 };
        assert!(self.idle_waits < MOST_IDLE_WAITS, "the client spins {offset} into the run");
    }
}

/// How long before the run begins the client's clock starts.
const LEAD: Nanos = Nanos::from_millis(1);

/// Waits that neither wait nor report anything are allowed occasionally. This many in a row would burn a core.
const MOST_IDLE_WAITS: u64 = 1_000;

/// More than any test needs, and reached within seconds.
const MOST_CALLS: u64 = 20_000_000;
