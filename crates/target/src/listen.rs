//! Opens the listeners, one per thread.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with, sockopt};

use crate::options::{Options, StartError};

/// Listeners on one address, and the address.
///
/// # Errors
///
/// [`StartError`], naming the address.
pub(crate) fn open(options: &Options) -> Result<(Vec<OwnedFd>, SocketAddr), StartError> {
    let fail = |error| describe(options.listen, error);
    if options.threads == 1 {
        let listener = open_one(options.listen, options.backlog, false).map_err(fail)?;
        let address = local_address(&listener).map_err(fail)?;
        return Ok((vec![listener], address));
    }
    if options.listen.port() != 0 {
        // With SO_REUSEPORT a second server would silently share the port with the first. Without it, the second
        // fails to start.
        drop(open_one(options.listen, options.backlog, false).map_err(fail)?);
    }
    let first = open_one(options.listen, options.backlog, true).map_err(fail)?;
    let address = local_address(&first).map_err(fail)?;
    let mut listeners = vec![first];
    while listeners.len() < options.threads {
        listeners.push(open_one(address, options.backlog, true).map_err(fail)?);
    }
    Ok((listeners, address))
}

fn open_one(address: SocketAddr, backlog: i32, share: bool) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, share)?;
    // Accepted sockets inherit both: no system call per connection, and bytes that arrive before the connection is
    // accepted are stamped too.
    sockopt::set_tcp_nodelay(&socket, true)?;
    // A kernel without stamps leaves requests unstamped, which the truth counts.
    let _ = reactor::stamp::enable(socket.as_fd());
    bind(&socket, &address)?;
    listen(&socket, backlog)?;
    Ok(socket)
}

fn local_address(socket: &OwnedFd) -> Result<SocketAddr, Errno> {
    SocketAddr::try_from(getsockname(socket)?)
}

fn describe(address: SocketAddr, error: Errno) -> StartError {
    match error {
        Errno::ADDRINUSE => StartError::AddressInUse { address },
        Errno::ACCESS | Errno::PERM => StartError::PermissionDenied { address },
        Errno::ADDRNOTAVAIL => StartError::NoSuchAddress { address },
        _ => StartError::Listen { address, source: error.into() },
    }
}
