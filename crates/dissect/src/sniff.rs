//! Detects the protocol of a connection from its first bytes. Which side is the client is already known.

use crate::event::Protocol;
use crate::http2::is_frames;
use crate::postgres::{CANCEL, ENCRYPT_GSS, ENCRYPT_SSL};

/// What the bytes seen so far show about the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    Is(Protocol),
    /// More bytes are needed.
    Need,
    Not,
}

/// The first bytes of a connection from the client. `hint` is the protocol that the port is known for.
pub(crate) fn client(bytes: &[u8], hint: Option<Protocol>) -> Guess {
    let inline = if hint == Some(Protocol::Redis) { inline_redis(bytes) } else { Guess::Not };
    let first = best(&[tls(bytes), http2(bytes), array(bytes)]);
    // `GET /x` may be a Redis command: the end of the line decides.
    if inline != Guess::Not && !matches!(first, Guess::Is(_)) {
        return inline;
    }
    best(&[first, startup(bytes), http1(bytes)])
}

/// The first bytes of a connection from the server, before the client has sent anything.
pub(crate) fn server(bytes: &[u8], hint: Option<Protocol>) -> Guess {
    match bytes {
        [_, _, high, 0, 10, ..] if *high == 0 => Guess::Is(Protocol::MySql),
        [_, _, 0, 0, 0xff, ..] if hint == Some(Protocol::MySql) => Guess::Is(Protocol::MySql),
        [_, _, 0, 0] | [_, _, 0] | [_, _] | [_] => Guess::Need,
        _ => Guess::Not,
    }
}

/// A piece of the client after one of the server, on a joined connection: whole messages, of which `length` bytes
/// were read and the first are here.
pub(crate) fn joined(bytes: &[u8], length: u64) -> Option<Protocol> {
    let guesses = [tls(bytes), array(bytes), http1(bytes)];
    match best(&guesses) {
        Guess::Is(protocol) => Some(protocol),
        _ if is_frames(bytes, length) => Some(Protocol::Http2),
        _ if is_postgres(bytes, length) => Some(Protocol::Postgres),
        _ if is_command(bytes, length) => Some(Protocol::MySql),
        _ if is_compressed(bytes, length) => Some(Protocol::Compressed),
        _ => None,
    }
}

fn best(guesses: &[Guess]) -> Guess {
    let decided = guesses.iter().find(|guess| matches!(guess, Guess::Is(_)));
    let open = guesses.iter().find(|guess| matches!(guess, Guess::Need));
    *decided.or(open).unwrap_or(&Guess::Not)
}

/// A TLS record: kind, version 3.0 to 3.4, a length within the limit.
fn tls(bytes: &[u8]) -> Guess {
    match bytes {
        [20..=23, 3, 0..=4, high, ..] if *high <= 0x48 => Guess::Is(Protocol::Tls),
        [20..=23, 3, 0..=4] | [20..=23, 3] | [20..=23] => Guess::Need,
        _ => Guess::Not,
    }
}

fn http2(bytes: &[u8]) -> Guess {
    let seen = bytes.len().min(HTTP2.len());
    match bytes[..seen] == HTTP2[..seen] {
        true if seen == HTTP2.len() => Guess::Is(Protocol::Http2),
        true => Guess::Need,
        false => Guess::Not,
    }
}

/// A method, a space, and the beginning of a target.
fn http1(bytes: &[u8]) -> Guess {
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-').count();
    match (&bytes[..method], &bytes[method..]) {
        (_, []) if method <= METHOD_MOST => Guess::Need,
        (_, [b' ']) if (3..=METHOD_MOST).contains(&method) => Guess::Need,
        // HTTP/2 begins with a method that no request has.
        (b"PRI", _) => Guess::Not,
        (b"CONNECT", [b' ', ..]) => Guess::Is(Protocol::Http1),
        (_, [b' ', b'/' | b'*' | b'h', ..]) if (3..=METHOD_MOST).contains(&method) => {
            Guess::Is(Protocol::Http1)
        }
        _ => Guess::Not,
    }
}

/// An array of strings in RESP.
fn array(bytes: &[u8]) -> Guess {
    let [b'*', rest @ ..] = bytes else { return if bytes.is_empty() { Guess::Need } else { Guess::Not } };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match &rest[digits..] {
        [b'\r', b'\n', b'$', ..] if (1..8).contains(&digits) => Guess::Is(Protocol::Redis),
        [] | [b'\r'] | [b'\r', b'\n'] if digits < 8 => Guess::Need,
        _ => Guess::Not,
    }
}

/// A line that is not an HTTP request line.
fn inline_redis(bytes: &[u8]) -> Guess {
    let end = memchr::memchr(b'\n', bytes);
    let line = bytes[..end.unwrap_or(bytes.len())].trim_ascii();
    let http = memchr::memmem::find(line, b" HTTP/1.").is_some();
    if http || !line.iter().all(|byte| *byte >= b' ' || *byte == b'\t') {
        return Guess::Not;
    }
    match (end, line.first()) {
        (Some(_), Some(first)) if first.is_ascii_alphabetic() => Guess::Is(Protocol::Redis),
        (None, _) => Guess::Need,
        _ => Guess::Not,
    }
}

/// PostgreSQL's first packet.
fn startup(bytes: &[u8]) -> Guess {
    let zeros = bytes.len().min(2);
    if bytes[..zeros].iter().any(|byte| *byte != 0) {
        return Guess::Not;
    }
    let Some(&[_, _, a, b, c, d, e, f]) = bytes.first_chunk() else { return Guess::Need };
    let length = u16::from_be_bytes([a, b]);
    let code = u32::from_be_bytes([c, d, e, f]);
    let known = matches!(code, CANCEL | ENCRYPT_SSL | ENCRYPT_GSS) || code >> 16 == 3;
    if known && (8..=10_000).contains(&length) { Guess::Is(Protocol::Postgres) } else { Guess::Not }
}

/// PostgreSQL messages back to back that fill the piece, as far as it was captured.
fn is_postgres(bytes: &[u8], length: u64) -> bool {
    let mut at = 0u64;
    while at < length {
        let here = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
        let &[kind, a, b, c, d, ..] = here else { return at > 0 && (bytes.len() as u64) < length };
        let message = u64::from(u32::from_be_bytes([a, b, c, d]));
        if !b"QPBEDCSHF".contains(&kind) || message < 4 {
            return false;
        }
        at += 1 + message;
    }
    at == length
}

/// One MySQL command that fills the piece.
fn is_command(bytes: &[u8], length: u64) -> bool {
    matches!(bytes, [a, b, c, 0, 1..=0x1f, ..]
        if 4 + u64::from(u32::from_le_bytes([*a, *b, *c, 0])) == length)
}

/// One compressed packet of MySQL that fills the piece: its own length, its number, the length without compression,
/// and either a command or a zlib stream.
fn is_compressed(bytes: &[u8], length: u64) -> bool {
    let &[a, b, c, 0, d, e, f, ref payload @ ..] = bytes else { return false };
    let [packed, plain] = [[a, b, c, 0], [d, e, f, 0]].map(u32::from_le_bytes);
    let fills = 7 + u64::from(packed) == length;
    fills
        && if plain == 0 {
            is_command(payload, length - 7)
        } else {
            plain > packed && payload.first() == Some(&0x78)
        }
}

const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n";
/// `UPDATEREDIRECTREF` has 17 letters, and is the longest registered method.
const METHOD_MOST: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], hint: Option<Protocol>, want: Guess) {
        assert_eq!(client(bytes, hint), want, "{}", bytes.escape_ascii());
        for length in 0..bytes.len() {
            let early = client(&bytes[..length], hint);
            assert!(early == Guess::Need || early == want, "{length} of {}: {early:?}", bytes.escape_ascii());
        }
    }

    #[test]
    fn protocols_are_detected_by_their_first_bytes() {
        check(b"GET / HTTP/1.1\r\n", None, Guess::Is(Protocol::Http1));
        check(b"OPTIONS * HTTP/1.1\r\n", Some(Protocol::Redis), Guess::Is(Protocol::Http1));
        check(b"PRI * HTTP/2.0\r\n\r\nSM", None, Guess::Is(Protocol::Http2));
        check(b"*1\r\n$4\r\nPING\r\n", None, Guess::Is(Protocol::Redis));
        check(b"*1048576\r\n$4\r\n", None, Guess::Is(Protocol::Redis));
        check(b"*00000000837\r\n$3\r\n", None, Guess::Not);
        check(b"PING\r\n", Some(Protocol::Redis), Guess::Is(Protocol::Redis));
        check(b"GET /9\r\n", Some(Protocol::Redis), Guess::Is(Protocol::Redis));
        check(b"\0\0\0\x08\x04\xd2\x16\x2f", None, Guess::Is(Protocol::Postgres));
        check(b"\0\0\0\x21\0\x03\0\0user\0", None, Guess::Is(Protocol::Postgres));
        check(b"\x16\x03\x01\x02\0\x01", Some(Protocol::Postgres), Guess::Is(Protocol::Tls));
        check(b"SSH-2.0-OpenSSH\r\n", None, Guess::Not);
        check(b"\x01\x02\x03", Some(Protocol::Http1), Guess::Not);
    }

    #[test]
    fn mysql_is_detected_by_its_greeting() {
        assert_eq!(server(b"\x6e\0\0\0\x0a5.5.5-10.11", None), Guess::Is(Protocol::MySql));
        assert_eq!(server(b"220 mail ESMTP\r\n", None), Guess::Not);
        assert_eq!(server(b"\x6e\0\0", None), Guess::Need);
    }

    #[test]
    fn joining_accepts_whole_messages_only() {
        assert_eq!(joined(b"Q\0\0\0\x0dselect 1\0", 14), Some(Protocol::Postgres));
        assert_eq!(joined(b"Q\0\0\0\x0dselect 1\0x", 15), None);
        assert_eq!(joined(b"\x09\0\0\0\x03select 1", 13), Some(Protocol::MySql));
        assert_eq!(joined(b"\x09\0\0\0\x03select 1", 14), None);
        assert_eq!(joined(b"\x0d\0\0\0\0\0\0\x09\0\0\0\x03select 1", 20), Some(Protocol::Compressed));
        assert_eq!(joined(b"\x20\0\0\0\x90\0\0\x78\x9c", 39), Some(Protocol::Compressed));
        let update_and_get = b"\0\0\x04\x08\0\0\0\0\0\0\0\x01\0\0\0\x02\x01\x05\0\0\0\x03\x82\x84";
        assert_eq!(joined(update_and_get, 24), Some(Protocol::Http2));
        assert_eq!(joined(update_and_get, 23), None);
        assert_eq!(joined(b"some rows", 9), None);
    }
}
