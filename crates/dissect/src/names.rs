//! Names of prepared statements and portals, with the digests of their texts. One table per connection.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::digest::DigestId;

/// A bounded table. Names are kept by their hash: two names with the same hash (one pair in 2^64) would share a
/// digest.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The unnamed one is set again and again.
    unnamed: Option<DigestId>,
    named: HashMap<u64, DigestId>,
}

impl Names {
    pub(crate) fn set(&mut self, name: &[u8], digest: DigestId) {
        if name.is_empty() {
            self.unnamed = Some(digest);
        } else {
            self.set_number(hash(name), digest);
        }
    }

    pub(crate) fn digest(&self, name: &[u8]) -> Option<DigestId> {
        if name.is_empty() { self.unnamed } else { self.named.get(&hash(name)).copied() }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.unnamed = None;
        } else {
            self.named.remove(&hash(name));
        }
    }

    pub(crate) fn set_number(&mut self, number: u64, digest: DigestId) {
        if self.named.len() < NAMES_MOST || self.named.contains_key(&number) {
            self.named.insert(number, digest);
        }
    }

    pub(crate) fn digest_of_number(&self, number: u64) -> Option<DigestId> {
        self.named.get(&number).copied()
    }

    pub(crate) fn remove_number(&mut self, number: u64) {
        self.named.remove(&number);
    }
}

fn hash(name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Names that a connection keeps; later ones have the digest of an unseen statement. Drivers cache 256 to 2,048
/// statements.
const NAMES_MOST: usize = 4_096;
