//! The Huffman code of HPACK (RFC 7541, appendix B).
//!
//! The code is canonical: the lengths of its codes define it.

/// Decodes `coded` into the front of `text`; returns how much of it fits. `None` for what is not in the code.
///
/// # Cost
///
/// One step per bit; no allocation.
pub(super) fn decode<'t>(coded: &[u8], text: &'t mut [u8]) -> Option<&'t [u8]> {
    let mut filled = 0;
    let (mut code, mut length) = (0_u32, 0_usize);
    let bits = coded.iter().flat_map(|byte| (0..8).rev().map(move |bit| u32::from(byte >> bit & 1)));
    for bit in bits {
        code = code << 1 | bit;
        length += 1;
        if length >= CODE.first.len() {
            return None;
        }
        let place = code.wrapping_sub(CODE.first[length]);
        if place < u32::from(CODE.count[length]) {
            let symbol = CODE.symbols[usize::from(CODE.before[length]) + place as usize];
            let Some(next) = text.get_mut(filled) else { break };
            *next = symbol;
            filled += 1;
            (code, length) = (0, 0);
        }
    }
    // What is left are the first bits of the code of the end: ones, fewer than 8.
    let is_padding = length < 8 && code == (1 << length) - 1;
    (is_padding || filled == text.len()).then_some(&text[..filled])
}

/// By length of a code: the first one, how many there are, and how many symbols have shorter ones.
struct Code {
    first: [u32; 31],
    count: [u16; 31],
    before: [u16; 31],
    /// By code.
    symbols: [u8; 256],
}

const CODE: Code = code();

const fn code() -> Code {
    let mut code = Code { first: [0; 31], count: [0; 31], before: [0; 31], symbols: [0; 256] };
    let (mut length, mut next, mut place) = (1, 0_u32, 0_usize);
    while length < 31 {
        code.first[length] = next;
        code.before[length] = place as u16;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place] = symbol as u8;
                code.count[length] += 1;
                place += 1;
            }
            symbol += 1;
        }
        next = (next + code.count[length] as u32) << 1;
        length += 1;
    }
    code
}

/// The lengths of the codes of all bytes, in bits. That of the end has 30.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(coded: &[u8], want: Option<&[u8]>) {
        assert_eq!(decode(coded, &mut [0; 64]), want);
    }

    /// Examples of RFC 7541, appendix C.4 and C.6.
    #[test]
    fn the_examples_of_the_standard_are_decoded() {
        check(b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff", Some(b"www.example.com"));
        check(b"\xa8\xeb\x10\x64\x9c\xbf", Some(b"no-cache"));
        check(b"\x64\x02", Some(b"302"));
        check(b"", Some(b""));
    }

    #[test]
    fn what_is_not_in_the_code_is_refused() {
        check(b"\xff\xff\xff\xff\xff", None);
        check(b"\x00", None);
        assert_eq!(decode(b"\x64\x02", &mut [0; 2]), Some(&b"30"[..]), "as much as fits");
    }
}
