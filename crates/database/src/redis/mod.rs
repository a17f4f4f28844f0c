//! Redis's protocol (RESP2 and RESP3), the client's side: login, commands, several in flight, replies counted and drained
//! without being stored. What a run sends is in [`Database`](crate::Database).

mod command;
mod connection;
mod reply;

#[cfg(test)]
mod tests;

pub(crate) use command::Command;
pub(crate) use connection::RedisWire;
