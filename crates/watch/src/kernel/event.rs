//! The events of the kernel's programs, as they are stored in the lanes: the layout of `bpf/watch.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use units::Nanos;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::wait::{Answered, Waited};

/// The number of parts of an account: those of a request, and [`IDLE`].
pub const PARTS: usize = 10;

/// The index of the last part: polling for whatever comes next.
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
    /// The connection has ended; no thread did this.
    Closed,
    /// The function that classifies requests returned; the thread's account continues.
    Classified,
    /// A TLS library has returned plain text of the client; the thread's account continues.
    PlainRead,
    /// A TLS library has taken plain text of the server; the thread's account continues.
    PlainWrite,
    /// A long sleep of it has ended; its account continues.
    Waited,
    /// Another server has answered it after a long time; its account continues.
    Answered,
}

/// When bytes that were read had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Arrival {
    pub at: u64,
    /// The position after its last byte, counted from the first byte of the read.
    pub end: u32,
    pad: u32,
}

impl Arrival {
    pub(crate) fn new(at: u64, end: u32) -> Arrival {
        Arrival { at, end, pad: 0 }
    }
}

/// The arrivals of the bytes of a read, in order. A single one is copied, because its layout in the event differs.
#[derive(Debug, Clone, Copy)]
pub enum Arrived<'a> {
    None,
    One(Arrival),
    Several(&'a [Arrival]),
}

impl Arrived<'_> {
    /// All arrivals, in order.
    pub fn as_slice(&self) -> &[Arrival] {
        match self {
            Arrived::None => &[],
            Arrived::One(one) => std::slice::from_ref(one),
            Arrived::Several(several) => several,
        }
    }
}

/// The thread that ran longest while another one waited for a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Culprit {
    pub pid: u32,
    pub comm: [u8; 16],
    pub time: Nanos,
}

/// A thread's sleep in a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slept {
    /// The call's number on this machine.
    pub call: u32,
    /// The lower half of its first argument: a file descriptor of some calls.
    pub argument: i32,
    pub time: Nanos,
}

/// The ends of a connection, sent with its first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// `None` for Unix sockets.
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// It was opened while watched, or nothing was read or written on it before.
    pub fresh: bool,
}

/// What was read of a connection under watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoFar {
    /// How often it was read after it had been written to.
    pub turns: u32,
    pub bytes: u64,
}

impl SoFar {
    /// What was read since `before`.
    pub fn since(self, before: SoFar) -> SoFar {
        SoFar {
            turns: self.turns.saturating_sub(before.turns),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }
}

/// What the function that classifies requests returned for the request that its thread served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// When the function was called.
    pub since: Nanos,
    pub value: i64,
}

/// The part that every event has, sufficient for a thread that only ran.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Head {
    /// The event's position combined with the lanes' secret, once it is complete.
    pub stamp: u64,
    pub at: u64,
    socket: u64,
    on_cpu: u64,
    pid: u32,
    tid: u32,
    length: u32,
    captured: u16,
    /// The size of the event in words of eight bytes.
    pub words: u16,
    arrived_at: u64,
    arrived_end: u32,
    kind: u8,
    flags: u8,
    arrivals: u8,
    pad: u8,
}

/// What the thread did besides running; follows the head.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct DidMore {
    parts: Account,
    preempted_ns: u64,
    preemptions: u32,
    contended_us: u32,
    woken_at: u64,
    woken_parts: Account,
    sleep_ns: u64,
    sleep_call: u32,
    sleep_fd: i32,
}

/// A fellow thread woke it: from then on it may work on what that one handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Wake {
    pub at: u64,
    /// The account until then.
    pub parts: Account,
}

/// Present in some events only; follows that.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Note {
    culprit: u32,
    wakes: u8,
    /// More follows it: several arrivals, or wakes.
    has_more: u8,
    family: u16,
    culprit_ns: u64,
    culprit_comm: [u8; 16],
    local_port: u16,
    peer_port: u16,
    turns: u32,
    read_bytes: u64,
    local: [u8; 16],
    peer: [u8; 16],
}

/// Follows the notes that need it.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct NoteMore {
    arrived: [Arrival; ARRIVALS],
    woken_by_fellows: [Wake; WAKES],
}

/// One event, read in place.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub at: Nanos,
    pub edge: Edge,
    /// The kernel's cookie of the connection; 0 if there is none.
    pub socket: u64,
    pub pid: u32,
    pub tid: u32,
    /// How many bytes the call moved.
    pub length: u32,
    /// The first of them; fewer than `length` where they were not copied.
    pub bytes: &'a [u8],
    pub parts: Account,
    /// The part of the run-queue latency after being preempted, and how often that happened.
    pub preempted: Nanos,
    pub preemptions: u32,
    /// How long other processes ran while the thread waited for a CPU.
    pub contended: Nanos,
    pub culprit: Option<Culprit>,
    /// The longest sleep of the thread within the account.
    pub sleep: Option<Slept>,
    /// When the thread was last woken within the account, by any thread, and the account until then.
    pub woken: Option<(Nanos, &'a Account)>,
    /// When fellow threads woke it, in order.
    pub wakes: &'a [Wake],
    /// What the function that classifies returned.
    pub class: Option<Class>,
    /// The sleep that has ended.
    pub waited: Option<Waited>,
    /// The answer of another server.
    pub answered: Option<Answered>,
    /// Of a write: its last bytes wait until the other side has acknowledged those before.
    pub held_back: bool,
    /// The arrivals of the bytes of a read.
    pub arrived: Arrived<'a>,
    pub opened: Option<Opened>,
    /// Events of this connection before this one were lost.
    pub missed: bool,
    /// The first read of its connection, or the first after a write.
    pub begins_turn: bool,
    /// What was read of its connection up to and with this event, if events before it may have been lost; of plain text,
    /// always.
    pub so_far: Option<SoFar>,
    /// Done by io_uring for the thread, which notices later.
    pub asynchronous: bool,
}

const NEW: u8 = 1;
const MISSED: u8 = 2;
const FRESH: u8 = 4;
const NOTED: u8 = 8;
const ASYNC: u8 = 16;
const ACCOUNT: u8 = 32;
const TURN: u8 = 64;
const HELD_BACK: u8 = 128;

impl Note {
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

impl DidMore {
    /// The longest sleep, if there was one.
    fn slept(&self) -> Option<Slept> {
        let slept = || Slept { call: self.sleep_call, argument: self.sleep_fd, time: Nanos(self.sleep_ns) };
        (self.sleep_ns > 0).then(slept)
    }
}

impl<'a> Event<'a> {
    /// `None` for what is not an event of this version: the object and the binary do not match then.
    ///
    /// # Cost
    ///
    /// None of the bytes are copied.
    pub fn parse(raw: &'a [u8]) -> Option<Event<'a>> {
        let (head, rest) = Head::ref_from_prefix(raw).ok()?;
        let edge = match head.kind {
            1 => Edge::Read,
            2 => Edge::Write,
            3 => Edge::Idle,
            4 => Edge::Closed,
            5 => Edge::Classified,
            6 => Edge::PlainRead,
            7 => Edge::PlainWrite,
            8 => Edge::Waited,
            9 => Edge::Answered,
            _ => return None,
        };
        let is_edge = matches!(edge, Edge::Read | Edge::Write | Edge::Idle);
        let missed = head.flags & MISSED != 0;
        let (more, rest) = leading::<DidMore>(head.flags & ACCOUNT != 0, rest)?;
        let (note, rest) = leading::<Note>(head.flags & NOTED != 0, rest)?;
        let (note_more, bytes) = leading::<NoteMore>(note.is_some_and(|note| note.has_more != 0), rest)?;
        let waited = (edge == Edge::Waited).then(|| Waited::parse(bytes));
        let answered = (edge == Edge::Answered).then(|| Answered::parse(bytes));
        Some(Event {
            at: Nanos(head.at),
            edge,
            socket: head.socket,
            pid: head.pid,
            tid: head.tid,
            length: head.length,
            bytes: bytes.get(..usize::from(head.captured))?,
            parts: more.map_or_else(|| ran(if is_edge { head.on_cpu } else { 0 }), |more| more.parts),
            preempted: more.map_or(Nanos::ZERO, |more| Nanos(more.preempted_ns)),
            preemptions: more.map_or(0, |more| more.preemptions),
            contended: more.map_or(Nanos::ZERO, |more| Nanos::from_micros(u64::from(more.contended_us))),
            culprit: note.and_then(Note::culprit),
            sleep: more.and_then(DidMore::slept),
            woken: more
                .filter(|more| more.woken_at != 0)
                .map(|more| (Nanos(more.woken_at), &more.woken_parts)),
            wakes: match (note, note_more) {
                (Some(note), Some(more)) => more.woken_by_fellows.get(..usize::from(note.wakes))?,
                _ => &[],
            },
            class: (edge == Edge::Classified)
                .then_some(Class { since: Nanos(head.arrived_at), value: head.on_cpu.cast_signed() }),
            waited: match waited {
                Some(waited) => Some(waited?),
                None => None,
            },
            answered: match answered {
                Some(answered) => Some(answered?),
                None => None,
            },
            held_back: head.flags & HELD_BACK != 0,
            arrived: match head.arrivals {
                0 => Arrived::None,
                1 => Arrived::One(Arrival::new(head.arrived_at, head.arrived_end)),
                several => Arrived::Several(note_more?.arrived.get(..usize::from(several))?),
            },
            opened: note.filter(|_| head.flags & NEW != 0).map(|note| note.opened(head.flags & FRESH != 0)),
            missed,
            begins_turn: head.flags & TURN != 0,
            so_far: match edge {
                Edge::Closed => Some(SoFar { turns: head.arrived_end, bytes: head.on_cpu }),
                Edge::PlainRead | Edge::PlainWrite => Some(SoFar { turns: 0, bytes: head.on_cpu }),
                _ => note.filter(|_| missed).map(|note| SoFar { turns: note.turns, bytes: note.read_bytes }),
            },
            asynchronous: head.flags & ASYNC != 0,
        })
    }
}

/// The structure at the front of `rest`, if it is there, and the rest after it.
fn leading<T: FromBytes + Immutable + KnownLayout>(
    is_there: bool,
    rest: &[u8],
) -> Option<(Option<&T>, &[u8])> {
    if !is_there {
        return Some((None, rest));
    }
    let (there, rest) = T::ref_from_prefix(rest).ok()?;
    Some((Some(there), rest))
}

/// The account of a thread that only ran.
fn ran(on_cpu: u64) -> Account {
    let mut account = [0; PARTS];
    account[0] = on_cpu;
    account
}

pub(super) fn address(family: u16, bytes: [u8; 16], port: u16) -> Option<SocketAddr> {
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])),
        // A listener for both families sees IPv4 peers as mapped addresses.
        libc::AF_INET6 => Ipv6Addr::from(bytes).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    /// If this fails, every figure is read from the wrong place: `bpf/watch.h` and this file differ.
    #[test]
    fn the_layout_is_that_of_the_kernels_programs() {
        // The header asserts the same numbers.
        assert_eq!((std::mem::offset_of!(Head, kind), size_of::<Head>()), (60, 64));
        assert_eq!((std::mem::offset_of!(DidMore, woken_at), size_of::<DidMore>()), (96, 200));
        assert_eq!((std::mem::offset_of!(Note, local), size_of::<Note>()), (48, 80));
        assert_eq!(size_of::<NoteMore>(), 480);
    }

    #[test]
    fn a_thread_that_only_ran_has_all_its_time_on_a_cpu() {
        let mut words = [0_u64; 8];
        (words[3], words[7]) = (70, 1 << 32);
        let event = Event::parse(words.as_bytes()).unwrap();
        assert_eq!((event.parts[0], event.parts.iter().sum::<u64>(), event.woken), (70, 70, None));
    }

    #[test]
    fn bytes_that_are_not_an_event_are_refused() {
        assert!(Event::parse(&[]).is_none());
        let mut words = [0_u64; 8];
        assert!(Event::parse(words.as_bytes()).is_none());
        // The last word: its upper half has kind, flags and arrivals.
        words[7] = 1 << 32;
        assert_eq!(Event::parse(words.as_bytes()).map(|event| event.edge), Some(Edge::Read));
        assert!(Event::parse(&words.as_bytes()[..56]).is_none());
        // Bytes, a note, an account, and arrivals that are missing.
        for (word, bits) in [(5, 1 << 32), (7, 8 << 40), (7, 32 << 40), (7, 2 << 48)] {
            let mut broken = words;
            broken[word] |= bits;
            assert!(Event::parse(broken.as_bytes()).is_none());
        }
    }
}
