//! Connections from a chosen address of this host.
#![expect(unsafe_code, reason = "IP_BIND_ADDRESS_NO_PORT has no safe wrapper")]

use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Binds the socket to its source address. The kernel chooses the port at connect, when the peer is known, so that
/// connections to several peers can share a port (`IP_BIND_ADDRESS_NO_PORT`, ip(7), Linux 4.2).
///
/// # Errors
///
/// An error of the kernel, such as an address that is not this host's.
pub(crate) fn bind(socket: BorrowedFd<'_>, source: IpAddr) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is a c_int that outlives the call, and its size is passed with it.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            mem::size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(rustix::net::bind(socket, &SocketAddr::new(source, 0))?)
}
