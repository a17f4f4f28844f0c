//! Random numbers and random damage, the same for the same case on every host.

/// Numbers drawn from a case's number (SplitMix64).
pub struct Draw {
    state: u64,
}

/// Numbers that parsers stumble over.
const NUMBERS: [&str; 10] = [
    "0",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "1e308",
    "1e-308",
    "NaN",
    "65536",
    "4294967296",
];
const TEXTS: [&str; 10] = [
    "\"",
    "{",
    "[[[[[[[[[[[[[[[[",
    "\\u0000",
    "null",
    "\n",
    "\u{1b}[2J",
    "../../outside",
    "true",
    "\r\n\r\n",
];

impl Draw {
    pub fn new(case: u64) -> Draw {
        Draw { state: schedule::splitmix64(case) }
    }

    pub fn number(&mut self) -> u64 {
        schedule::next_splitmix64(&mut self.state)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Damages `bytes` in one to four places.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + 1 + self.below(64)).min(bytes.len());
            match self.below(8) {
                0 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                1 if at < bytes.len() => bytes[at] = self.number() as u8,
                2 => bytes.truncate(at),
                3 if at < end => drop(bytes.drain(at..end)),
                4 if at < end => {
                    let copy = bytes[at..end].repeat(1 + self.below(32));
                    bytes.splice(at..at, copy);
                }
                5 => self.replace_number(bytes, at),
                6 => {
                    let text = self.of(&TEXTS).as_bytes();
                    bytes.splice(at..at, text.iter().copied());
                }
                _ => {
                    let noise: Vec<u8> = (0..self.below(16)).map(|_| self.number() as u8).collect();
                    bytes.splice(at..end.max(at), noise);
                }
            }
        }
    }

    /// Replaces the digits after `at` by another number.
    fn replace_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|from| at + from) else {
            return;
        };
        let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = *self.of(&NUMBERS);
        bytes.splice(from..from + length, number.bytes());
    }
}
