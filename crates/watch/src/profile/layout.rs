//! The layout of the maps of `bpf/profile.bpf.c`, byte for byte as in `bpf/profile.h`.

use record::observation::profile::Picture;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Maximum number of frames of one stack; a deeper one is cut at the root.
pub const FRAMES: usize = 127;
/// Set in the number of a stack that is in the second table.
pub const SECOND_TABLE: i64 = 1 << 30;
/// Set in the number of a stack that the program walked itself: the other bits are its hash.
pub const WALKED: i64 = 1 << 62;
/// Also set if a caller was found by searching the stack.
pub const GUESSED: i64 = 1 << 61;
/// Libraries of one process that have rules.
pub const LIBRARIES: usize = 3;
/// Rules of all libraries together.
pub const RULES: u32 = 1 << 17;
/// The rule's base is not known: the walk ends.
pub const BASE_UNKNOWN: u8 = 0;
/// The caller's stack pointer is relative to the stack pointer.
pub const BASE_STACK: u8 = 1;
/// The caller's stack pointer is relative to the frame pointer.
pub const BASE_FRAME: u8 = 2;
/// There is no stack.
pub const STACK_NONE: i64 = -1;
/// Both tables were full.
pub const STACK_LOST: i64 = -2;
/// The thread went to sleep before the profile began.
pub const STACK_BEFORE: i64 = -3;

#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Control {
    pub began: u64,
    pub ended: u64,
    pub only_process: u32,
    pub pad: u32,
}

/// From an address on: where the stack pointer and the frame pointer of the caller are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Rule {
    pub at: u32,
    pub words: u16,
    pub base: u8,
    pub saved: u8,
}

/// A library's code in a process.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Library {
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    pub first: u32,
    pub count: u32,
}

#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Libraries {
    pub of: [Library; LIBRARIES],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Key {
    pub pid: u32,
    pub tid: u32,
    pub user: i64,
    kernel: i32,
    pub picture: u32,
    pub comm: [u8; 16],
}

impl Key {
    /// The picture it belongs to; `None` for a number that is not one.
    pub fn picture(&self) -> Option<Picture> {
        Picture::ALL.get(self.picture as usize).copied()
    }

    /// The number of the kernel part of the stack.
    pub fn kernel(&self) -> i64 {
        i64::from(self.kernel)
    }

    /// The thread's name.
    pub fn name(&self) -> String {
        let end = self.comm.iter().position(|byte| *byte == 0).unwrap_or(self.comm.len());
        String::from_utf8_lossy(&self.comm[..end]).into_owned()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Weight {
    pub count: u64,
    pub ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, FromBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Totals {
    pub on_cpu_ns: u64,
    pub weights: [Weight; 3],
    pub stacks_lost: u64,
    pub weights_lost: [u64; 3],
    pub threads_lost: u64,
    pub processes_lost: u64,
    pub missed_switches: u64,
}

impl Totals {
    /// Adds the totals of another CPU.
    pub fn add(&mut self, other: &Totals) {
        self.on_cpu_ns += other.on_cpu_ns;
        for (sum, more) in self.weights.iter_mut().zip(&other.weights) {
            sum.count += more.count;
            sum.ns += more.ns;
        }
        for (sum, more) in self.weights_lost.iter_mut().zip(&other.weights_lost) {
            *sum += more;
        }
        self.stacks_lost += other.stacks_lost;
        self.threads_lost += other.threads_lost;
        self.processes_lost += other.processes_lost;
        self.missed_switches += other.missed_switches;
    }
}

/// The addresses of a stack's frames, the leaf first.
pub fn addresses(raw: &[u8]) -> Vec<u64> {
    let words =
        raw.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("a chunk of eight")));
    words.take(FRAMES).take_while(|address| *address != 0).collect()
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// If this fails, user space reads something other than the kernel wrote: see `bpf/profile.h`.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!((size_of::<Control>(), offset_of!(Control, only_process)), (24, 16));
        assert_eq!((size_of::<Key>(), offset_of!(Key, picture), offset_of!(Key, comm)), (40, 20, 24));
        assert_eq!(size_of::<Weight>(), 16);
        assert_eq!((size_of::<Totals>(), offset_of!(Totals, stacks_lost)), (112, 56));
        let header = include_str!("../../bpf/profile.h");
        assert!(header.contains(&format!("FRAMES = {FRAMES},")));
        assert!(header.contains(&format!("STACK_LOST = {STACK_LOST},")));
        assert!(header.contains(&format!("STACK_NONE = {STACK_NONE},")));
        assert!(header.contains(&format!("STACK_BEFORE = {STACK_BEFORE},")));
        assert!(header.contains("SECOND_TABLE = 1 << 30,") && SECOND_TABLE == 1 << 30);
        assert!(header.contains("#define WALKED (1LL << 62)") && WALKED == 1 << 62);
        assert!(header.contains("#define GUESSED (1LL << 61)") && GUESSED == 1 << 61);
        assert_eq!((size_of::<Rule>(), offset_of!(Rule, base), offset_of!(Rule, saved)), (8, 6, 7));
        assert_eq!((size_of::<Library>(), size_of::<Libraries>()), (32, 32 * LIBRARIES));
        assert!(header.contains(&format!("LIBRARIES = {LIBRARIES},")));
        assert!(header.contains("RULES = 1 << 17,") && RULES == 1 << 17);
        assert!(header.contains("BASE_UNKNOWN = 0, BASE_STACK, BASE_FRAME"));
        assert!(header.contains("ON_CPU = 0,\n\tOFF_CPU,\n\tRUN_QUEUE,"), "the order of `Picture::ALL`");
    }

    #[test]
    fn a_stack_ends_at_its_first_zero() {
        let raw: Vec<u8> = [7_u64, 8, 0, 9].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(addresses(&raw), [7, 8]);
        assert_eq!(addresses(&raw[..13]), [7], "half an address is none");
        assert_eq!(addresses(&vec![1; 8 * 200]).len(), FRAMES);
    }
}
