//! The RSA public key of a server, and what is encrypted with it.
//!
//! `mysql_common` reads such keys too, but its reader panics on a malformed one, and a key comes from a peer.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use num_bigint::BigUint;

/// Encrypts `secret` with the key in `pem`, as MySQL 8.0.5 and later expect it (PKCS #1, OAEP with SHA-1). `None` if
/// the key is malformed or too small for `secret`.
pub(super) fn encrypt(secret: &[u8], pem: &[u8]) -> Option<Vec<u8>> {
    let (modulus, exponent) = read(pem)?;
    let room = modulus.len().checked_sub(PADDING)?;
    if secret.len() > room {
        return None;
    }
    let key = PublicKey::new(BigUint::from_bytes_be(modulus.as_slice()), BigUint::from_bytes_be(&exponent));
    key.encrypt_block(secret, Pkcs1OaepPadding::new(GetRandom)).ok()
}

/// What the padding needs: two digests, two bytes, and the one that a modulus may have too many.
const PADDING: usize = 2 * 20 + 3;

/// Sizes of a modulus in bytes: from 1024 bits, which old servers have, to 8192, whose cost is bounded.
const SIZES: std::ops::RangeInclusive<usize> = 128..=1024;

/// The modulus and the exponent of `-----BEGIN PUBLIC KEY-----` or `-----BEGIN RSA PUBLIC KEY-----`.
fn read(pem: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = std::str::from_utf8(pem).ok()?;
    let (before, rest) = text.split_once("PUBLIC KEY-----")?;
    let (body, _) = rest.split_once("-----END")?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    let (sequence, _) = element(&der, SEQUENCE)?;
    let numbers = if before.ends_with("RSA ") {
        sequence
    } else {
        let (_, rest) = element(sequence, SEQUENCE)?;
        let (bits, _) = element(rest, BITS)?;
        element(bits.strip_prefix(&[0])?, SEQUENCE)?.0
    };
    let (modulus, rest) = element(numbers, INTEGER)?;
    let (exponent, _) = element(rest, INTEGER)?;
    let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let is_odd = modulus.last().is_some_and(|last| last % 2 == 1);
    let is_sound = SIZES.contains(&modulus.len()) && modulus[0] != 0 && is_odd;
    // The exponent is 65537; eight bytes bound what a strange one costs.
    let is_usable = is_sound && (1..=8).contains(&exponent.len());
    is_usable.then(|| (modulus.to_vec(), exponent.to_vec()))
}

const SEQUENCE: u8 = 0x30;
const BITS: u8 = 0x03;
const INTEGER: u8 = 0x02;

/// The content of the element of this kind that `der` begins with, and what follows it.
fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let rest = der.strip_prefix(&[kind])?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), &rest[2..]),
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `openssl genrsa -traditional 1024` and `openssl rsa -pubout`, 2026-11-25.
    const KEY: &str = include_str!("../../testdata/mysql/public-key.pem");

    #[test]
    fn a_secret_is_as_long_as_the_key_once_encrypted() {
        let one = encrypt(b"secret", KEY.as_bytes()).unwrap();
        assert_eq!(one.len(), 128);
        // The padding is random.
        assert_ne!(encrypt(b"secret", KEY.as_bytes()).unwrap(), one);
        assert_eq!(encrypt(&[7; 128 - PADDING + 1], KEY.as_bytes()), None);
    }

    /// If this fails, a server ends this client with a key that is none.
    #[test]
    fn keys_that_are_none_are_refused() {
        for length in 0..KEY.len() - 30 {
            assert_eq!(encrypt(b"secret", &KEY.as_bytes()[..length]), None, "{length}");
        }
        let (head, rest) = KEY.split_once('\n').unwrap();
        let (body, tail) = rest.split_once("-----").unwrap();
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).unwrap();
        for at in 0..40 {
            for byte in [0, 1, 0x7f, 0x80, 0x81, 0x82, 0xff] {
                let mut der = der.clone();
                der[at] = byte;
                let pem = format!("{head}\n{}\n-----{tail}", STANDARD.encode(der));
                let _ = encrypt(b"secret", pem.as_bytes());
            }
        }
    }
}
