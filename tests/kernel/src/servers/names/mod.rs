//! Statements, commands and routes by name: as many as the server counts itself, in each form that its protocol has,
//! with TLS and without.
//!
//! `PARALLAX_SOAK=20` multiplies the loads by 20: `make soak-kernel`.

mod mariadb;
mod nginx;
mod postgres;
mod redis;

use std::fs;
use std::path::Path;

use record::Served;

use crate::support::watched::Watched;

/// A number of requests, times what the long form multiplies it by.
fn times(requests: u64) -> u64 {
    let soak =
        std::env::var("PARALLAX_SOAK").map_or(1, |times| times.parse().expect("PARALLAX_SOAK is a number"));
    requests * soak
}

/// Writes a certificate that trusts itself, and its key.
fn make_certificate(certificate: &Path, key: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(certificate, made.cert.pem()).unwrap();
    fs::write(key, made.signing_key.serialize_pem()).unwrap();
}

impl Watched {
    /// The requests of connections to this port, with their texts.
    fn named(&self, port: u16) -> Vec<(&Served, &str)> {
        let of_port = |one: &&Served| one.local.is_some_and(|local| local.port() == port);
        let text = |one: &Served| self.results.digests[one.digest as usize].text.as_str();
        self.served.iter().filter(of_port).map(|one| (one, text(one))).collect()
    }
}

/// The statements or commands of requests whose text has `part` in it.
fn statements(requests: &[(&Served, &str)], part: &str) -> u64 {
    requests.iter().filter(|(_, text)| text.contains(part)).map(|(one, _)| u64::from(one.statements)).sum()
}

/// What was seen is what the server counted, and nothing was lost.
#[track_caller]
fn check_counted(what: &str, seen: u64, counted: u64, watched: &Watched) {
    println!("{what}: seen {seen} of {counted}");
    assert!(counted > 0, "{what}: the server counted nothing");
    assert_eq!(seen, counted, "{what}: {}", watched.losses());
}
