//! Numbers that look random and are the same in every run.

/// splitmix64: the values depend only on the seed.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        schedule::next_splitmix64(&mut self.0)
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 32) as u8).collect()
    }
}
