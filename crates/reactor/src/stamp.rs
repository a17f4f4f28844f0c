//! The kernel's receive timestamps: when bytes reached this host, not when a program read them.
//!
//! `SO_TIMESTAMPNS` (Linux, `Documentation/networking/timestamping.rst`) gives the kernel's software receive
//! timestamps, on every device, loopback included, and needs no privilege. TCP reports the timestamp of the *last*
//! segment a read took bytes from, so it gives the arrival of the last of these bytes.
#![expect(unsafe_code, reason = "recvmsg with control data has no safe wrapper that parses SCM_TIMESTAMPNS")]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

static ON: libc::c_int = 1;

/// Requests timestamps from the kernel for what arrives on this socket.
///
/// # Errors
///
/// An error of the kernel if it does not support such timestamps.
pub fn enable(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the option's value is a c_int that outlives the call, and its size is passed with it.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const ON).cast(),
            mem::size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The result of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// The number of bytes; 0 if the peer has closed its side.
    pub count: usize,
    /// `CLOCK_REALTIME` of the arrival of the last of them, in ns since 1970; `None` without a timestamp.
    pub arrived_realtime_ns: Option<u64>,
}

/// Reads what has arrived, with its timestamp.
///
/// # Errors
///
/// An error of the kernel; `WouldBlock` when nothing is waiting.
///
/// # Cost
///
/// One system call, no allocation.
#[inline]
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Read> {
    // Left unset: the kernel writes what it uses and returns the length.
    let mut control = mem::MaybeUninit::<Control>::uninit();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all-zero is a valid msghdr: no name, no parts, no control data.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the message points to a live buffer and control space, each with its true length.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    match usize::try_from(count) {
        Ok(count) => Ok(Read { count, arrived_realtime_ns: find_stamp(&message) }),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Bytes handed to the kernel that the peer's kernel has not acknowledged (`SIOCOUTQ`), or `None` if the kernel does
/// not report it.
pub fn unacknowledged(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ (the same number as SIOCOUTQ) writes one c_int, which outlives the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if status == 0 { u64::try_from(bytes).ok() } else { None }
}

/// Room for the header and the timespec of `SCM_TIMESTAMPNS`, and as much again.
const CONTROL_BYTES: usize = 64;

/// Space aligned as required for control headers.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

#[inline]
fn find_stamp(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has filled the control space that `message` points to and set its length; the CMSG
    // macros walk it within that length, and an SCM_TIMESTAMPNS payload is a timespec, read unaligned.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let software: libc::timespec =
                    libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned();
                let ns = software.tv_sec as u64 * 1_000_000_000 + software.tv_nsec as u64;
                return (ns != 0).then_some(ns);
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use clock::Pairing;
    use units::Nanos;

    use super::*;

    /// If this fails, a client that was not running is reported as a slow server.
    #[test]
    fn a_late_read_still_has_the_arrival_time_of_the_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        enable(socket.as_fd()).unwrap();
        let mut buffer = [0; 64];
        // The kernel switches timestamping on a little after the first socket requests it: retry until there is one.
        for _ in 0..100 {
            let before = clock::now();
            peer.write_all(b"hello").unwrap();
            let written = clock::now();
            clock::sleep_until(written + Nanos::from_millis(5));
            let read = receive(socket.as_fd(), &mut buffer).unwrap();
            assert_eq!(read.count, 5);
            if let Some(stamp) = read.arrived_realtime_ns {
                let arrived = Pairing::measure().to_monotonic(stamp);
                let slack = Nanos::from_micros(2);
                assert!(
                    arrived + slack >= before && arrived <= written + slack,
                    "{before:?} {arrived:?} {written:?}"
                );
                return;
            }
        }
        panic!("no stamp in 100 reads");
    }

    #[test]
    fn nothing_waiting_and_a_closed_peer_are_distinguished() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let mut buffer = [0; 8];
        let nothing = receive(socket.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        drop(peer);
        let deadline = clock::now() + Nanos::from_secs(2);
        while clock::now() < deadline {
            match receive(socket.as_fd(), &mut buffer) {
                Ok(read) => return assert_eq!(read.count, 0),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        panic!("the close never came");
    }
}
