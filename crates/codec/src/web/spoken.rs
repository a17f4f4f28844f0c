//! What the connections of a run turned out to speak: the record says it, and what was asked for is not enough.

use std::sync::atomic::{AtomicU8, Ordering};

/// Noted once a connection, by whichever worker opened it.
#[derive(Debug, Default)]
pub(crate) struct Spoken(AtomicU8);

/// One thing that a connection may speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tongue {
    Http1 = 1,
    Http2 = 2,
    Tls12 = 4,
    Tls13 = 8,
}

impl Spoken {
    pub(crate) fn note(&self, tongue: Tongue) {
        self.0.fetch_or(tongue as u8, Ordering::Relaxed);
    }

    /// In words: `http/2 over TLS 1.3`. `None` where no connection came so far.
    pub(crate) fn words(&self) -> Option<String> {
        let heard = self.0.load(Ordering::Relaxed);
        let named = |list: &[(Tongue, &str)]| {
            let heard = list.iter().filter(|(tongue, _)| heard & *tongue as u8 != 0).map(|(_, name)| *name);
            heard.collect::<Vec<_>>().join(" and ")
        };
        let http = named(&[(Tongue::Http1, "http/1.1"), (Tongue::Http2, "http/2")]);
        let tls = named(&[(Tongue::Tls12, "TLS 1.2"), (Tongue::Tls13, "TLS 1.3")]);
        match (http.is_empty(), tls.is_empty()) {
            (true, _) => None,
            (false, true) => Some(http),
            (false, false) => Some(format!("{http} over {tls}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spoken_is_said_in_words() {
        let spoken = Spoken::default();
        assert_eq!(spoken.words(), None);
        spoken.note(Tongue::Http2);
        assert_eq!(spoken.words().unwrap(), "http/2");
        spoken.note(Tongue::Tls13);
        assert_eq!(spoken.words().unwrap(), "http/2 over TLS 1.3");
        spoken.note(Tongue::Http1);
        assert_eq!(spoken.words().unwrap(), "http/1.1 and http/2 over TLS 1.3");
    }
}
