//! Asks the kernel how much of what was sent the peer has not acknowledged.
#![expect(unsafe_code, reason = "SIOCOUTQ has no safe wrapper")]

use std::ffi::c_int;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{Getter, ioctl};

/// `SIOCOUTQ` of `linux/sockios.h`, the same number as `TIOCOUTQ`: the same on every architecture but
/// the few that number terminal calls their own way (mips, powerpc, sparc).
const SIOCOUTQ: rustix::ioctl::Opcode = 0x5411;

/// Bytes of a TCP socket that were handed to the kernel and are not acknowledged yet.
///
/// # Errors
///
/// The kernel's.
pub(crate) fn unacknowledged(socket: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: SIOCOUTQ writes one C int to the address it is given and nothing else.
    let bytes = unsafe { ioctl(socket, Getter::<SIOCOUTQ, c_int>::new())? };
    Ok(u64::try_from(bytes).unwrap_or(0))
}
