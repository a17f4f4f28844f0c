//! Routes of HTTP and keys of Redis: the parts that vary become `{}`.

use super::CUT_MARK;

/// Appends the route of a request's target: without scheme, host, query and fragment.
pub(super) fn route(target: &[u8], most: usize, out: &mut Vec<u8>) {
    let path = match memchr::memmem::find(target, b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let rest = &target[at + 3..];
            memchr::memchr(b'/', rest).map_or(&b"/"[..], |slash| &rest[slash..])
        }
        _ => target,
    };
    let end = memchr::memchr2(b'?', b'#', path).unwrap_or(path.len());
    pattern(&path[..end], most, out);
}

/// Appends `text` with the parts that vary replaced.
///
/// Parts are separated by the separators of paths and keys. A part becomes `{}` when it is a number, a UUID,
/// hexadecimal with 8 digits or more and a decimal digit among them, over 24 bytes long, or not plain text; in other
/// parts each run of digits does, except in versions (`v1`).
pub(super) fn pattern(text: &[u8], most: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| is_separator(*byte)).unwrap_or(rest.len());
        let uuid = uuid_length(rest);
        if uuid > 0 {
            hole(out);
            rest = &rest[uuid..];
        } else if end > 0 {
            part(&rest[..end], out);
            rest = &rest[end..];
        } else {
            out.push(rest[0]);
            rest = &rest[1..];
        }
        if out.len() - start > most {
            out.truncate(start + most);
            out.extend_from_slice(CUT_MARK.as_bytes());
            return;
        }
    }
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'/' | b':' | b'.' | b'-' | b'_' | b'{' | b'}' | b',' | b';' | b'=' | b'|' | b'#')
}

fn part(part: &[u8], out: &mut Vec<u8>) {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 && part.len() <= PLAIN_MOST && part.iter().all(|byte| is_plain(*byte)) {
        return out.extend_from_slice(part);
    }
    let version = part[0].eq_ignore_ascii_case(&b'v') && part.len() <= 3 && digits + 1 == part.len();
    if version {
        return out.extend_from_slice(part);
    }
    let hexadecimal = digits > 0 && part.len() >= HEX_LEAST && part.iter().all(u8::is_ascii_hexdigit);
    let plain = part.len() <= PLAIN_MOST && part.iter().all(|byte| is_plain(*byte));
    // Letters and digits in repeated alternation are a token, not a word with a number.
    let runs = part.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    if hexadecimal || !plain || digits == part.len() || runs > 2 {
        return hole(out);
    }
    let mut in_number = false;
    for byte in part {
        if !byte.is_ascii_digit() {
            out.push(*byte);
        } else if !in_number {
            out.extend_from_slice(b"{}");
        }
        in_number = byte.is_ascii_digit();
    }
}

/// What a person may have written in a program: not an address, not escaped text, not binary.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'~' | b'!' | b'$' | b'(' | b')' | b'+' | b'\'')
}

fn hole(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{}");
}

/// 36 if `text` begins with a UUID that a separator or the end follows, 0 otherwise.
fn uuid_length(text: &[u8]) -> usize {
    let is_uuid = text.len() >= 36
        && text[..36].iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
        && text.get(36).is_none_or(|byte| is_separator(*byte));
    if is_uuid { 36 } else { 0 }
}

/// Longer than the words in routes and keys, shorter than most tokens.
const PLAIN_MOST: usize = 24;
const HEX_LEAST: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, want: &str) {
        let mut out = Vec::new();
        route(target.as_bytes(), 256, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), want, "{target}");
    }

    #[test]
    fn varying_parts_of_a_path_become_placeholders() {
        check("/", "/");
        check("/users/42/orders/7?page=3#top", "/users/{}/orders/{}");
        check("/api/v1/items/0c8ac9d2-9c8e-4b68-8f3f-1d1d2a3b4c5d/photo", "/api/v1/items/{}/photo");
        check("/o/5f2b1c9d8e7a", "/o/{}");
        check("/cafebabe/deadbeef", "/cafebabe/deadbeef");
        check("/static/app.9f86d081.js", "/static/app.{}.js");
        check("/index2.html", "/index{}.html");
        check("/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "/t/{}");
        check("/u/bob@example.com", "/u/{}.com");
        check("/a%20b/c", "/{}/c");
        check("http://example.com:80/x/1", "/x/{}");
        check("http://example.com", "/");
        check("/go?to=http://example.com/9", "/go");
        check("*", "*");
    }

    #[test]
    fn varying_parts_of_a_key_become_placeholders() {
        check("key:000000000042", "key:{}");
        check("user1000", "user{}");
        check("{user1000}.following", "{user{}}.following");
        check("session:9f86d081884c7d65", "session:{}");
        check("key:__rand_int__", "key:__rand_int__");
    }

    #[test]
    fn a_pattern_is_bounded() {
        let mut out = Vec::new();
        pattern(&b"/ab".repeat(100), 16, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "/ab/ab/ab/ab/ab/…");
    }
}
