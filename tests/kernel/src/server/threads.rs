//! One thread per connection.

use std::io;
use std::sync::Arc;

use units::Nanos;

use super::connection::Connection;
use super::work::Work;
use super::{Listener, Shop, spawn};
use crate::hands::Hands;

pub fn run(shop: &Arc<Shop>, listener: &Listener) -> io::Result<()> {
    loop {
        let (socket, port) = listener.accept()?;
        let shop = Arc::clone(shop);
        spawn("connection", move || {
            let connection = Connection::new(socket, port, &shop.options.folder)?;
            serve(connection, &mut Hands::new(&shop.options.folder)?, &shop)
        })?;
    }
}

/// Serves one connection to its end.
pub fn serve(mut connection: Connection, hands: &mut Hands, shop: &Shop) -> io::Result<()> {
    loop {
        if shop.options.late_read > Nanos::ZERO {
            connection.leave(shop.options.late_read)?;
        }
        if connection.receive()? == 0 {
            return Ok(());
        }
        serve_read(&mut connection, hands, shop)?;
    }
}

/// Serves everything that was read.
pub fn serve_read(connection: &mut Connection, hands: &mut Hands, shop: &Shop) -> io::Result<()> {
    let mut begun = hands.counters.moment();
    while let Some(request) = connection.next_request()? {
        Work::of(request, begun, connection, hands)?.finish(connection, hands, shop)?;
        begun = hands.counters.moment();
    }
    Ok(())
}
