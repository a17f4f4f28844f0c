//! SCRAM-SHA-256 (RFC 5802, RFC 7677), the client's side, without channel binding, as PostgreSQL uses it.
//!
//! The key of a password takes the server's number of iterations of a hash, a millisecond or more. It depends on the
//! password, the salt and the iterations alone, so it is derived once per run and server.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};

/// The name of the mechanism.
pub(super) const MECHANISM: &str = "SCRAM-SHA-256";

/// The most iterations: 4096 is PostgreSQL's default, and a million take some tenths of a second.
const MOST_ITERATIONS: u32 = 1_000_000;

/// The longest salt: PostgreSQL's has 16 bytes.
const LONGEST_SALT: usize = 256;

type Hash = [u8; 32];

/// What proves the password, and what the server's own proof is checked with.
#[derive(Clone, PartialEq, Eq)]
struct Keys {
    client: Hash,
    server: Hash,
}

/// The keys that were derived last, and from what.
#[derive(Default)]
pub(crate) struct ScramCache(Mutex<Option<(Vec<u8>, NonZeroU32, Keys)>>);

/// Without the keys.
impl fmt::Debug for ScramCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScramCache")
    }
}

impl ScramCache {
    /// The keys of `password`, which is the same in all calls. Derives them if the salt or the iterations are not those
    /// of the last call; others who ask in the meantime wait.
    fn keys(&self, password: &str, salt: &[u8], iterations: NonZeroU32) -> Keys {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((of, count, keys)) if of == salt && *count == iterations => keys.clone(),
            _ => {
                let keys = derive(password, salt, iterations);
                *known = Some((salt.to_vec(), iterations, keys.clone()));
                keys
            }
        }
    }
}

fn derive(password: &str, salt: &[u8], iterations: NonZeroU32) -> Keys {
    // As the server: what cannot be prepared is used as it is.
    let prepared = stringprep::saslprep(password).map_or(password.into(), |prepared| prepared);
    let mut salted = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, prepared.as_bytes(), &mut salted);
    Keys { client: mac(&salted, b"Client Key"), server: mac(&salted, b"Server Key") }
}

fn mac(key: &[u8], text: &[u8]) -> Hash {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// One login in progress.
#[derive(Debug)]
pub(super) struct Scram {
    nonce: String,
    /// The proof that the server must send at the end, once this client has sent its own.
    expected: Option<Hash>,
}

impl Scram {
    pub(super) fn new() -> Scram {
        let mut random = [0; 18];
        // The operating system's random numbers do not fail once it has started.
        SystemRandom::new().fill(&mut random).expect("the operating system has random numbers");
        Scram { nonce: STANDARD.encode(random), expected: None }
    }

    /// The first message. PostgreSQL ignores the name in it: it has that of the start-up.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// The last message, in reply to the server's first one. `None` if that is malformed, is for another client, or
    /// wants more iterations than is reasonable.
    pub(super) fn last(&mut self, server_first: &[u8], password: &str, cache: &ScramCache) -> Option<String> {
        let server_first = std::str::from_utf8(server_first).ok()?;
        let mut parts = server_first.split(',');
        let nonce = parts.next()?.strip_prefix("r=")?;
        let salt = STANDARD.decode(parts.next()?.strip_prefix("s=")?).ok()?;
        let iterations: u32 = parts.next()?.strip_prefix("i=")?.parse().ok()?;
        let iterations = NonZeroU32::new(iterations).filter(|count| count.get() <= MOST_ITERATIONS)?;
        let is_ours = nonce.len() > self.nonce.len() && nonce.starts_with(&self.nonce);
        if !is_ours || salt.is_empty() || salt.len() > LONGEST_SALT || self.expected.is_some() {
            return None;
        }
        let keys = cache.keys(password, &salt, iterations);
        // `biws` is `n,,`: no channel binding.
        let without_proof = format!("c=biws,r={nonce}");
        let signed = format!("{},{server_first},{without_proof}", self.first_bare());
        let stored = digest::digest(&digest::SHA256, &keys.client);
        let signature = mac(stored.as_ref(), signed.as_bytes());
        let mut proof = keys.client;
        proof.iter_mut().zip(signature).for_each(|(byte, with)| *byte ^= with);
        self.expected = Some(mac(&keys.server, signed.as_bytes()));
        Some(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Whether the server's last message proves that it knows the password too.
    pub(super) fn is_proven_by(&self, server_last: &[u8]) -> bool {
        let proof = server_last.strip_prefix(b"v=").and_then(|text| STANDARD.decode(text).ok());
        proof.is_some() && proof.as_deref() == self.expected.as_ref().map(|hash| &hash[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, whose user is in the message; PostgreSQL's has none.
    #[test]
    fn the_keys_are_those_of_the_standard() {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let keys = ScramCache::default().keys("pencil", &salt, NonZeroU32::new(4096).unwrap());
        let signed = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let signature = mac(digest::digest(&digest::SHA256, &keys.client).as_ref(), signed.as_bytes());
        let proof: Vec<u8> = keys.client.iter().zip(signature).map(|(byte, with)| byte ^ with).collect();
        assert_eq!(STANDARD.encode(proof), "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let server = STANDARD.encode(mac(&keys.server, signed.as_bytes()));
        assert_eq!(server, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    /// If this fails, each connection of a storm costs a millisecond of this client, and looks like a slow server.
    #[test]
    fn the_key_is_derived_once() {
        let cache = ScramCache::default();
        let count = NonZeroU32::new(2).unwrap();
        let one = cache.keys("secret", b"salt", count);
        // The cache does not look at the password, which is the same in a run.
        assert!(cache.keys("other", b"salt", count) == one);
        assert!(cache.keys("other", b"other", count) != one);
    }

    #[test]
    fn what_no_server_should_send_is_refused() {
        let cache = ScramCache::default();
        for text in
            ["", "r=,s=c2FsdA==,i=1", "r={}x,s=c2FsdA==,i=0", "r={}x,s=c2FsdA==,i=99999999", "r={}x,s=,i=1"]
        {
            let mut scram = Scram::new();
            let text = text.replace("{}", &scram.nonce);
            assert_eq!(scram.last(text.as_bytes(), "secret", &cache), None, "{text}");
        }
        let mut scram = Scram::new();
        assert!(!scram.is_proven_by(b"v="));
        let text = format!("r={}x,s=c2FsdA==,i=1", scram.nonce);
        assert!(scram.last(text.as_bytes(), "secret", &cache).is_some());
        assert!(!scram.is_proven_by(b"v=") && !scram.is_proven_by(b"e=other-error"));
    }
}
