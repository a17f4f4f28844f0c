//! The meaning of each system call to the kernel's programs, by its number on this machine.

use libc as c;

/// The number of system calls that the kernel's programs know: `CALLS` of `bpf/watch.h`.
pub const CALLS: usize = 512;

/// `enum call`: what a thread that sleeps in the call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Waits {
    Lock = 1,
    Disk = 2,
    Network = 3,
    Poll = 4,
    /// It depends on the file in its first argument.
    File = 5,
}

/// `enum move`: where the bytes that the call moves are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Moves {
    Buffer = 1,
    Vectors = 2,
    Message = 3,
    /// Not given by its arguments, or in several messages.
    Elsewhere = 4,
}

const WAITS: &[(c::c_long, Waits)] = &[
    (c::SYS_futex, Waits::Lock),
    (c::SYS_futex_waitv, Waits::Lock),
    (c::SYS_flock, Waits::Lock),
    (c::SYS_semop, Waits::Lock),
    (c::SYS_semtimedop, Waits::Lock),
    (c::SYS_fsync, Waits::Disk),
    (c::SYS_fdatasync, Waits::Disk),
    (c::SYS_sync_file_range, Waits::Disk),
    (c::SYS_sync, Waits::Disk),
    (c::SYS_syncfs, Waits::Disk),
    (c::SYS_msync, Waits::Disk),
    (c::SYS_io_getevents, Waits::Disk),
    (c::SYS_pread64, Waits::Disk),
    (c::SYS_pwrite64, Waits::Disk),
    (c::SYS_preadv, Waits::Disk),
    (c::SYS_pwritev, Waits::Disk),
    (c::SYS_fallocate, Waits::Disk),
    (c::SYS_ftruncate, Waits::Disk),
    (c::SYS_openat, Waits::Disk),
    (c::SYS_renameat2, Waits::Disk),
    (c::SYS_unlinkat, Waits::Disk),
    (c::SYS_connect, Waits::Network),
    (c::SYS_accept, Waits::Network),
    (c::SYS_accept4, Waits::Network),
    (c::SYS_recvfrom, Waits::Network),
    (c::SYS_recvmsg, Waits::Network),
    (c::SYS_recvmmsg, Waits::Network),
    (c::SYS_sendto, Waits::Network),
    (c::SYS_sendmsg, Waits::Network),
    (c::SYS_sendmmsg, Waits::Network),
    (c::SYS_sendfile, Waits::Network),
    (c::SYS_epoll_pwait, Waits::Poll),
    (SYS_EPOLL_PWAIT2, Waits::Poll),
    (c::SYS_ppoll, Waits::Poll),
    (c::SYS_pselect6, Waits::Poll),
    (c::SYS_io_uring_enter, Waits::Poll),
    (c::SYS_read, Waits::File),
    (c::SYS_readv, Waits::File),
    (c::SYS_write, Waits::File),
    (c::SYS_writev, Waits::File),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_epoll_wait, Waits::Poll),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_poll, Waits::Poll),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_select, Waits::Poll),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_open, Waits::Disk),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_rename, Waits::Disk),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_unlink, Waits::Disk),
];

/// Calls with the same number on every machine: newer than the tables that differ.
const SYS_EPOLL_PWAIT2: c::c_long = 441;

const MOVES: &[(c::c_long, Moves)] = &[
    (c::SYS_read, Moves::Buffer),
    (c::SYS_write, Moves::Buffer),
    (c::SYS_recvfrom, Moves::Buffer),
    (c::SYS_sendto, Moves::Buffer),
    (c::SYS_readv, Moves::Vectors),
    (c::SYS_writev, Moves::Vectors),
    (c::SYS_recvmsg, Moves::Message),
    (c::SYS_sendmsg, Moves::Message),
    (c::SYS_preadv2, Moves::Vectors),
    (c::SYS_pwritev2, Moves::Vectors),
    (c::SYS_recvmmsg, Moves::Elsewhere),
    (c::SYS_sendmmsg, Moves::Elsewhere),
    (c::SYS_sendfile, Moves::Elsewhere),
    (c::SYS_splice, Moves::Elsewhere),
];

/// What a thread that sleeps in each call waits for; 0: something else.
pub fn waits() -> [u8; CALLS] {
    table(WAITS.iter().map(|&(call, waits)| (call, waits as u8)))
}

/// Where the bytes of each call are; 0: it moves none, and a read or write within it is io_uring's.
pub fn moves() -> [u8; CALLS] {
    table(MOVES.iter().map(|&(call, moves)| (call, moves as u8)))
}

fn table(entries: impl Iterator<Item = (c::c_long, u8)>) -> [u8; CALLS] {
    let mut table = [0; CALLS];
    for (call, meaning) in entries {
        if let Some(entry) = usize::try_from(call).ok().and_then(|call| table.get_mut(call)) {
            *entry = meaning;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, a wait for a lock is mistaken for one for the disk.
    #[test]
    fn every_call_is_in_the_table_once() {
        let known = waits().iter().filter(|&&waits| waits != 0).count();
        assert_eq!(known, WAITS.len());
        assert_eq!(moves().iter().filter(|&&moves| moves != 0).count(), MOVES.len());
    }
}
