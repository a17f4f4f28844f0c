//! What the kernel's side tells, as it lies in the ring: the layout of `bpf/watch.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use units::Nanos;
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// How many parts an account has: those of a request, and [`IDLE`].
pub const PARTS: usize = 10;

/// The last part: it polled for whatever comes next.
pub const IDLE: usize = 9;

const ARRIVALS: usize = 8;

const WAKES: usize = 4;

/// A thread's time by part since its previous event, in nanoseconds; sums to the time between the two.
pub type Account = [u64; PARTS];

/// What a thread did at the instant of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Its read of a connection returned.
    Read,
    /// Its write to a connection was completed.
    Write,
    /// It began to poll.
    Idle,
    /// The connection is gone; no thread's doing.
    Closed,
}

/// When bytes that were read had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Arrival {
    pub at: u64,
    /// One past its last byte, counted from the first byte of the read.
    pub end: u32,
    pad: u32,
}

#[cfg(test)]
impl Arrival {
    pub(crate) fn new(at: u64, end: u32) -> Arrival {
        Arrival { at, end, pad: 0 }
    }
}

/// Who ran longest while a thread waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Culprit {
    pub pid: u32,
    pub comm: [u8; 16],
    pub time: Nanos,
}

/// Where a connection leads, told with its first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Absent for Unix sockets.
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// It was made under watch: nothing was read or written on it before.
    pub fresh: bool,
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Head {
    at: u64,
    socket: u64,
    pid: u32,
    tid: u32,
    kind: u8,
    flags: u8,
    arrivals: u8,
    pad: u8,
    length: u32,
    captured: u32,
    preemptions: u32,
    preempted_ns: u64,
    parts: Account,
    arrived: Arrival,
}

/// A fellow thread woke it: from then on its time can be for what that one handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Wake {
    pub at: u64,
    /// The account until then.
    pub parts: Account,
}

/// What only some events have to say; it comes before them.
#[derive(FromBytes, Immutable, KnownLayout, Clone)]
#[repr(C)]
pub struct Note {
    at: u64,
    socket: u64,
    pid: u32,
    tid: u32,
    kind: u8,
    classified: u8,
    family: u16,
    culprit: u32,
    culprit_ns: u64,
    culprit_comm: [u8; 16],
    class: i64,
    woken_at: u64,
    woken_parts: Account,
    local_port: u16,
    peer_port: u16,
    wakes: u8,
    pad: [u8; 3],
    local: [u8; 16],
    peer: [u8; 16],
    arrived: [Arrival; ARRIVALS],
    woken_by_fellows: [Wake; WAKES],
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Gone {
    at: u64,
    socket: u64,
    pid: u32,
    tid: u32,
    kind: u8,
    flags: u8,
    pad: [u8; 6],
}

/// One event, read where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub at: Nanos,
    pub edge: Edge,
    /// The kernel's cookie of the connection; 0 where there is none.
    pub socket: u64,
    pub pid: u32,
    pub tid: u32,
    /// How many bytes the call moved.
    pub length: u32,
    /// The first of them; fewer than `length` where they were not copied.
    pub bytes: &'a [u8],
    pub parts: &'a Account,
    /// Of the run queue: pushed off a CPU, for so long and so often.
    pub preempted: Nanos,
    pub preemptions: u32,
    pub culprit: Option<Culprit>,
    /// When the thread was last woken within the account, by whom ever, and the account until then.
    pub woken: Option<(Nanos, &'a Account)>,
    /// When fellow threads woke it, in order.
    pub wakes: &'a [Wake],
    /// What the classifying function returned since the last read.
    pub class: Option<i64>,
    pub arrived: &'a [Arrival],
    pub opened: Option<Opened>,
    /// Events of this connection before this one were lost.
    pub missed: bool,
    /// Done on the thread's behalf by io_uring: it learns of it later.
    pub asynchronous: bool,
}

static NOTHING: Account = [0; PARTS];

const NEW: u8 = 1;
const MISSED: u8 = 2;
const FRESH: u8 = 4;
const NOTED: u8 = 8;
const ASYNC: u8 = 16;

/// What lies in the ring.
pub enum Told<'a> {
    Note(&'a Note),
    /// An edge, and whether a note of the same thread belongs to it.
    Edge {
        tid: u32,
        noted: bool,
    },
}

/// Looks at what lies in the ring; `None` for what is of no known kind: then the object and the binary do not belong
/// together.
pub fn told(raw: &[u8]) -> Option<Told<'_>> {
    let (gone, _) = Gone::ref_from_prefix(raw).ok()?;
    match gone.kind {
        1..=4 => Some(Told::Edge { tid: gone.tid, noted: gone.flags & NOTED != 0 }),
        5 => Some(Told::Note(Note::ref_from_prefix(raw).ok()?.0)),
        _ => None,
    }
}

impl Note {
    pub fn tid(&self) -> u32 {
        self.tid
    }

    fn culprit(&self) -> Option<Culprit> {
        let time = Nanos(self.culprit_ns);
        (self.culprit != 0).then_some(Culprit { pid: self.culprit, comm: self.culprit_comm, time })
    }

    fn opened(&self, fresh: bool) -> Opened {
        Opened {
            local: address(self.family, self.local, self.local_port),
            peer: address(self.family, self.peer, self.peer_port),
            fresh,
        }
    }
}

impl<'a> Event<'a> {
    /// An edge, with its note where it has one. `None` for what is no event of this version.
    ///
    /// # Cost
    ///
    /// Nothing is copied.
    pub fn parse(raw: &'a [u8], note: Option<&'a Note>) -> Option<Event<'a>> {
        let kind = *raw.get(std::mem::offset_of!(Gone, kind))?;
        let edge = match kind {
            1 => Edge::Read,
            2 => Edge::Write,
            3 => Edge::Idle,
            4 => return Event::gone(raw),
            _ => return None,
        };
        let (head, bytes) = Head::ref_from_prefix(raw).ok()?;
        let is_new = head.flags & NEW != 0;
        Some(Event {
            at: Nanos(head.at),
            edge,
            socket: head.socket,
            pid: head.pid,
            tid: head.tid,
            length: head.length,
            bytes: bytes.get(..head.captured as usize)?,
            parts: &head.parts,
            preempted: Nanos(head.preempted_ns),
            preemptions: head.preemptions,
            culprit: note.and_then(Note::culprit),
            woken: note
                .filter(|note| note.woken_at != 0)
                .map(|note| (Nanos(note.woken_at), &note.woken_parts)),
            wakes: match note {
                Some(note) => note.woken_by_fellows.get(..usize::from(note.wakes))?,
                None => &[],
            },
            class: note.filter(|note| note.classified != 0).map(|note| note.class),
            arrived: match head.arrivals {
                0 => &[],
                1 => std::slice::from_ref(&head.arrived),
                several => note?.arrived.get(..usize::from(several))?,
            },
            opened: note.filter(|_| is_new).map(|note| note.opened(head.flags & FRESH != 0)),
            missed: head.flags & MISSED != 0,
            asynchronous: head.flags & ASYNC != 0,
        })
    }

    fn gone(raw: &'a [u8]) -> Option<Event<'a>> {
        let (gone, _) = Gone::ref_from_prefix(raw).ok()?;
        Some(Event {
            at: Nanos(gone.at),
            edge: Edge::Closed,
            socket: gone.socket,
            pid: gone.pid,
            tid: gone.tid,
            length: 0,
            bytes: &[],
            parts: &NOTHING,
            preempted: Nanos(0),
            preemptions: 0,
            culprit: None,
            woken: None,
            wakes: &[],
            class: None,
            arrived: &[],
            opened: None,
            missed: false,
            asynchronous: false,
        })
    }
}

fn address(family: u16, bytes: [u8; 16], port: u16) -> Option<SocketAddr> {
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        // A listener for both families has callers of the old one under mapped addresses.
        libc::AF_INET6 => Ipv6Addr::from(bytes).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, every figure is read from the wrong place: `bpf/watch.h` and this file have parted.
    #[test]
    fn the_layout_is_that_of_the_kernels_side() {
        // The header asserts the same numbers.
        assert_eq!(std::mem::offset_of!(Head, parts), 48);
        assert_eq!(size_of::<Head>(), 144);
        assert_eq!(std::mem::offset_of!(Note, woken_parts), 72);
        assert_eq!(size_of::<Note>(), 672);
        assert_eq!(std::mem::offset_of!(Gone, kind), std::mem::offset_of!(Head, kind));
        assert_eq!(std::mem::offset_of!(Gone, flags), std::mem::offset_of!(Head, flags));
    }

    #[test]
    fn bytes_that_are_no_event_are_none() {
        assert!(told(&[]).is_none() && Event::parse(&[], None).is_none());
        assert!(told(&[9; 64]).is_none());
        let mut short = [0_u64; 8];
        short[3] = 1;
        let bytes: Vec<u8> = short.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert!(Event::parse(&bytes, None).is_none());
    }
}
