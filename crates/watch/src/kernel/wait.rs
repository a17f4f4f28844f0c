//! What the kernel's programs tell of long waits, as it is stored in the lanes: the layout of `bpf/watch.h`.

use std::net::SocketAddr;

use record::Stop;
use units::Nanos;
use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::calls::{self, Sleeps};
use super::event::address;

/// What ended a sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A timer that the thread had set.
    ByTimer,
    /// Something from outside the server: bytes that arrived, mostly.
    FromOutside,
    /// Another thread of the server.
    ByFellow(Waker),
    /// This kernel does not say.
    Unknown,
}

/// The thread that has woken another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    pub pid: u32,
    pub tid: u32,
    pub comm: [u8; 16],
}

/// A long sleep of a thread, which has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    pub from: Nanos,
    pub woken: Woken,
    /// It did not sleep but was stopped.
    pub stop: Option<Stop>,
    /// In what it slept.
    pub sleeps: Sleeps,
}

/// Another server has answered, after a long time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// When it was asked.
    pub from: Nanos,
    /// `None` for Unix sockets.
    pub peer: Option<SocketAddr>,
}

/// `struct waited`.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawWaited {
    from: u64,
    object: u64,
    by: u8,
    stop: u8,
    part: u8,
    pad: u8,
    call: i32,
    waker_pid: u32,
    waker_tid: u32,
    waker_comm: [u8; 16],
    waker_call: i32,
    pad2: u32,
}

/// `struct answered`.
#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct RawAnswered {
    from: u64,
    family: u16,
    peer_port: u16,
    pad: u32,
    peer: [u8; 16],
}

/// What stands for the freezer where a signal's number is expected.
const FREEZER: u8 = 0xff;

impl Waited {
    /// `None` when these are not its bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Waited> {
        let (raw, _) = RawWaited::ref_from_prefix(bytes).ok()?;
        let waker = Waker { pid: raw.waker_pid, tid: raw.waker_tid, comm: raw.waker_comm };
        let sleeps = calls::sleeps(raw.call, raw.object);
        let woken = match raw.by {
            1 => Woken::ByTimer,
            2 => Woken::FromOutside,
            // An interrupt in the context of a fellow wakes nobody that waits for a futex, which only threads do.
            3 if matches!(sleeps, Sleeps::Futex(_)) || calls::wakes(raw.waker_call) => Woken::ByFellow(waker),
            3 => Woken::FromOutside,
            // Such a sleep ends in one way only.
            _ if sleeps == Sleeps::Timer => Woken::ByTimer,
            _ => Woken::Unknown,
        };
        let stop = match raw.stop {
            0 => None,
            FREEZER => Some(Stop::Freezer),
            signal => Some(Stop::Signal(signal)),
        };
        Some(Waited { from: Nanos(raw.from), woken, stop, sleeps })
    }
}

impl Answered {
    /// `None` when these are not its bytes.
    pub(super) fn parse(bytes: &[u8]) -> Option<Answered> {
        let (raw, _) = RawAnswered::ref_from_prefix(bytes).ok()?;
        let peer = address(raw.family, raw.peer, raw.peer_port).filter(|peer| peer.port() != 0);
        Some(Answered { from: Nanos(raw.from), peer })
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    /// If this fails, causes of waits are read from the wrong place: `bpf/watch.h` and this file differ.
    #[test]
    fn the_layout_is_that_of_the_kernels_programs() {
        // The header asserts the same numbers.
        assert_eq!((size_of::<RawWaited>(), size_of::<RawAnswered>()), (56, 32));
    }

    #[test]
    fn a_stop_is_told_from_a_sleep() {
        // Words, because events are aligned to them.
        let mut words = [0_u64; 7];
        let bytes = words.as_mut_bytes();
        (bytes[16], bytes[17]) = (3, 19);
        bytes[48..52].copy_from_slice(&(libc::SYS_write as i32).to_ne_bytes());
        let waited = Waited::parse(bytes).unwrap();
        assert_eq!((waited.stop, matches!(waited.woken, Woken::ByFellow(_))), (Some(Stop::Signal(19)), true));
        bytes[17] = 0xff;
        assert_eq!(Waited::parse(bytes).unwrap().stop, Some(Stop::Freezer));
        assert!(Waited::parse(&bytes[..55]).is_none());
    }
}
