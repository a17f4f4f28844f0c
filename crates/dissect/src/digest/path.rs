//! Replaces the parts that vary in HTTP routes and Redis keys by `{}`.

use super::CUT_MARK;

/// A request's target without scheme, host, query and fragment.
pub(super) fn path_of(target: &[u8]) -> &[u8] {
    let path = match memchr::memmem::find(target, b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let rest = &target[at + 3..];
            memchr::memchr(b'/', rest).map_or(&b"/"[..], |slash| &rest[slash..])
        }
        _ => target,
    };
    &path[..memchr::memchr2(b'?', b'#', path).unwrap_or(path.len())]
}

/// Appends the route of a path.
pub(super) fn route(path: &[u8], most: usize, out: &mut Vec<u8>) {
    // Whether the next segment is a credential.
    let (start, mut is_secret) = (out.len(), false);
    for (number, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if number > 0 {
            out.push(b'/');
        }
        // Parameters of a segment (`;jsessionid=…`) contain only users' values.
        let name = memchr::memchr(b';', segment).map_or(segment, |at| &segment[..at]);
        match name {
            [] => {}
            name if is_secret && SUBJECTS.iter().any(|word| name.eq_ignore_ascii_case(word)) => {
                out.extend_from_slice(name);
                continue;
            }
            name if is_secret || name.starts_with(JWT) => hole(out),
            name => pattern(name, most, out),
        }
        if name.len() < segment.len() {
            out.extend_from_slice(b";{}");
        }
        if out.len() - start > most {
            out.truncate(start + most);
            out.extend_from_slice(CUT_MARK.as_bytes());
            return;
        }
        is_secret = announces_secret(name);
    }
}

/// Whether one of the words of a segment (`password-reset`, `resetPassword`, `tokens`) is in [`BEFORE_SECRETS`].
fn announces_secret(segment: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        let singular = word.strip_suffix(b"s").or(word.strip_suffix(b"S")).unwrap_or(word);
        BEFORE_SECRETS.iter().any(|marker| singular.eq_ignore_ascii_case(marker))
    };
    let in_one_case = |piece: &[u8]| {
        piece.chunk_by(|before, next| !before.is_ascii_lowercase() || !next.is_ascii_uppercase()).any(is_word)
    };
    segment.split(|byte| !byte.is_ascii_alphabetic()).any(in_one_case)
}

/// Appends `text` with the parts that vary replaced.
///
/// Parts are separated by the separators of paths and keys. A part becomes `{}` if it is a number, a UUID, hexadecimal
/// with at least 8 digits of which one is decimal, over 24 bytes long, over 9 and without lower case as the keys of cloud
/// services, not plain text, or has letters that are not words; in other parts each run of digits does, except in versions (`v1`).
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
    if part.len() > UPPER_MOST && !part.iter().any(u8::is_ascii_lowercase) {
        return hole(out);
    }
    if digits == 0 && part.len() <= PLAIN_MOST && part.iter().all(|byte| is_plain(*byte)) {
        return if is_words(part) { out.extend_from_slice(part) } else { hole(out) };
    }
    let version = part[0].eq_ignore_ascii_case(&b'v') && part.len() <= 3 && digits + 1 == part.len();
    if version {
        return out.extend_from_slice(part);
    }
    let hexadecimal = digits > 0 && part.len() >= HEX_LEAST && part.iter().all(u8::is_ascii_hexdigit);
    let plain = part.len() <= PLAIN_MOST && part.iter().all(|byte| is_plain(*byte));
    // Letters and digits in repeated alternation are a token, not a word with a number.
    let runs = part.windows(2).filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit()).count();
    let words = part.split(u8::is_ascii_digit).all(is_words);
    if hexadecimal || !plain || digits == part.len() || runs > 2 || !words {
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

/// Whether letters are words, perhaps in camel case, rather than drawn at random: words have vowels, rarely more than
/// five consonants in a row, at most one abbreviation in capitals, and some letters after each capital.
///
/// Of random texts of 16 letters, six in ten of one case are recognised, and nine in ten of mixed case.
fn is_words(part: &[u8]) -> bool {
    let is_vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    let is_upper = !part.iter().any(u8::is_ascii_lowercase);
    let (mut humps, mut abbreviations, mut vowels) = (0, 0, 0);
    let (mut capitals, mut consonants, mut before) = (0, 0, 0u8);
    for byte in part {
        let is_capital = byte.is_ascii_uppercase();
        humps += usize::from(is_capital && before.is_ascii_lowercase());
        capitals = if is_capital { capitals + 1 } else { 0 };
        abbreviations += usize::from(capitals == 2 && !is_upper);
        vowels += usize::from(is_vowel(byte));
        let is_consonant = byte.is_ascii_alphabetic() && !is_vowel(byte) && (is_upper || !is_capital);
        consonants = if is_consonant { consonants + 1 } else { 0 };
        if consonants > CONSONANTS_MOST {
            return false;
        }
        before = *byte;
    }
    humps <= 1 + part.len() / 5 && abbreviations <= 1 && (part.len() < HEX_LEAST || vowels * 6 >= part.len())
}

/// A byte that a person may have written in a program: not part of an address, escaped text or binary data.
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

/// Words in capitals are mostly short (`SOAP`, `PRODUCTS`); the key IDs of AWS have 20 letters and digits.
const UPPER_MOST: usize = 9;

/// As in "lengths".
const CONSONANTS_MOST: usize = 5;

/// What every JSON Web Token begins with: `{"` in Base64.
const JWT: &[u8] = b"eyJ";

/// A segment after one with one of these words is a credential, even when it reads as a word itself.
const BEFORE_SECRETS: [&[u8]; 28] = [
    b"activate",
    b"activation",
    b"apikey",
    b"confirm",
    b"confirmation",
    b"credential",
    b"hook",
    b"invitation",
    b"invite",
    b"key",
    b"login",
    b"magic",
    b"otp",
    b"passcode",
    b"password",
    b"recover",
    b"recovery",
    b"reset",
    b"secret",
    b"session",
    b"signin",
    b"signup",
    b"token",
    b"unlock",
    b"unsubscribe",
    b"verification",
    b"verify",
    b"webhook",
];

/// Between such a segment and its credential, as in `/verify/email/…`.
const SUBJECTS: [&[u8]; 8] = [b"account", b"address", b"code", b"email", b"link", b"mail", b"phone", b"user"];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, want: &str) {
        let mut out = Vec::new();
        route(path_of(target.as_bytes()), 256, &mut out);
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

    /// If this fails, a record that is passed on contains credentials of the server's users.
    #[test]
    fn credentials_of_letters_become_placeholders() {
        check("/reset/hunterabc", "/reset/{}");
        check("/Reset/hunterabc/done", "/Reset/{}/done");
        check("/reset", "/reset");
        check("/reset/", "/reset/");
        check("/password-reset/swordfish", "/password-reset/{}");
        check("/resets/hunterabc", "/resets/{}");
        check("/login/swordfish/done", "/login/{}/done");
        check("/auth_tokens/swordfish", "/auth_tokens/{}");
        check("/resetPassword/swordfish", "/resetPassword/{}");
        check("/verify-email/swordfish", "/verify-email/{}");
        check("/verify/email/swordfish", "/verify/email/{}");
        check("/monkeys/gorilla", "/monkeys/gorilla");
        check("/k/AKIAIOSFODNN", "/k/{}");
        check("/k/AKIAIOSFODNN7EXAMPLE", "/k/{}");
        check("/k/qzxkwvbnmtrp7", "/k/{}");
        check("/cart;jsessionid=ABCDEFGHIJ", "/cart;{}");
        check("/cart;jsessionid=ABC;x=y/items", "/cart;{}/items");
        check("/sso/eyJhbGciOiJI.eyJzdWIi.SflKxwRJ-adQ_c/done", "/sso/{}/done");
        check("/u/qzxkwvbnmtrp", "/u/{}");
        check("/u/aBcDeFgHiJkL", "/u/{}");
        for words in [
            "/customers",
            "/getUserById",
            "/getCustomerOrderHistory",
            "/XMLHttpRequest",
            "/lengths",
            "/https",
            "/PRODUCTS",
        ] {
            check(words, words);
        }
    }

    /// Letters drawn at random, like tokens; the share that is recognised is stated at `is_words`.
    #[test]
    fn most_random_letters_are_no_words() {
        let mut state = 1u64;
        let mut draw = |letters: &[u8]| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            letters[(state >> 33) as usize % letters.len()]
        };
        let lower: Vec<u8> = (b'a'..=b'z').collect();
        let mixed: Vec<u8> = (b'a'..=b'z').chain(b'A'..=b'Z').collect();
        for (letters, least) in [(lower, 580), (mixed, 820)] {
            let texts = (0..1_000).map(|_| [(); 16].map(|()| draw(&letters)));
            let recognised = texts.filter(|text| !is_words(text)).count();
            assert!(recognised >= least, "{recognised} of 1000");
        }
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
