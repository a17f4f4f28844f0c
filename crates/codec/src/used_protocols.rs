//! Which protocols the connections of a run have used. The record states them, since the requested ones may differ.

use std::sync::atomic::{AtomicU8, Ordering};

/// A set of [`UsedProtocol`]s. Each worker adds to it once per connection that it opens.
#[derive(Debug, Default)]
pub struct UsedProtocols(AtomicU8);

/// One protocol that a connection may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedProtocol {
    Http1 = 1,
    Http2 = 2,
    Tls12 = 4,
    Tls13 = 8,
    MySql = 16,
    Postgres = 32,
    Redis = 64,
}

impl UsedProtocols {
    /// A connection has used `protocol`.
    pub fn note(&self, protocol: UsedProtocol) {
        self.0.fetch_or(protocol as u8, Ordering::Relaxed);
    }

    /// As text, such as `http/2 over TLS 1.3`. `None` if there was no connection yet.
    pub fn words(&self) -> Option<String> {
        let used = self.0.load(Ordering::Relaxed);
        let named = |list: &[(UsedProtocol, &str)]| {
            let used = list.iter().filter(|(protocol, _)| used & *protocol as u8 != 0).map(|(_, name)| *name);
            used.collect::<Vec<_>>().join(" and ")
        };
        let application = named(&[
            (UsedProtocol::Http1, "http/1.1"),
            (UsedProtocol::Http2, "http/2"),
            (UsedProtocol::MySql, "mysql"),
            (UsedProtocol::Postgres, "postgresql"),
            (UsedProtocol::Redis, "redis"),
        ]);
        let tls = named(&[(UsedProtocol::Tls12, "TLS 1.2"), (UsedProtocol::Tls13, "TLS 1.3")]);
        match (application.is_empty(), tls.is_empty()) {
            (true, _) => None,
            (false, true) => Some(application),
            (false, false) => Some(format!("{application} over {tls}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spoken_is_said_in_words() {
        let used_protocols = UsedProtocols::default();
        assert_eq!(used_protocols.words(), None);
        used_protocols.note(UsedProtocol::Http2);
        assert_eq!(used_protocols.words().unwrap(), "http/2");
        used_protocols.note(UsedProtocol::Tls13);
        assert_eq!(used_protocols.words().unwrap(), "http/2 over TLS 1.3");
        used_protocols.note(UsedProtocol::Http1);
        assert_eq!(used_protocols.words().unwrap(), "http/1.1 and http/2 over TLS 1.3");
    }
}
