//! One process per connection: the parent accepts, a child serves each.

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::net::getpeername;
use rustix::net::{AddressFamily, SocketAddrV4};

use super::connection::Connection;
use super::{Listener, Shop, spawn, threads};
use crate::hands::Hands;

pub fn run(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    loop {
        let (socket, _) = listener.accept()?;
        let mut child = Command::new(env::current_exe()?)
            .args(["--inherited", "--folder"])
            .arg(&shop.options.folder)
            .stdin(Stdio::from(socket))
            .stdout(Stdio::null())
            .spawn()?;
        shop.one_began();
        let shop = Arc::clone(shop);
        spawn("reaper", move || {
            let ended = child.wait();
            shop.one_ended();
            ended.map(drop)
        })?;
    }
}

/// Serves the connection that is this process's standard input, to its end.
///
/// # Errors
///
/// Standard input is not a connection, or its account cannot be kept.
pub fn serve_inherited(shop: &Shop) -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let peer = getpeername(&socket)?;
    let peer_port = match peer {
        Some(peer) if peer.address_family() == AddressFamily::INET => {
            SocketAddrV4::try_from(peer).map_err(io::Error::other)?.port()
        }
        _ => 0,
    };
    let connection = Connection::new(socket, peer_port, &shop.options.folder)?;
    let served = threads::serve(connection, &mut Hands::new(&shop.options.folder)?, shop);
    shop.book.write(&shop.options.folder)?;
    served
}
