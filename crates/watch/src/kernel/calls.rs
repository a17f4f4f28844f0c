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

/// In what a thread slept, as far as it matters for what has woken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sleeps {
    /// In a call that only waits for time to pass.
    Timer,
    /// For whatever comes first: the event loop of a server, mostly.
    Poll,
    /// For the futex at this address.
    Futex(u64),
    /// For something else.
    Otherwise,
}

/// In what a thread sleeps in this call; `object` is the call's first argument.
pub fn sleeps(call: i32, object: u64) -> Sleeps {
    let call = c::c_long::from(call);
    if [c::SYS_nanosleep, c::SYS_clock_nanosleep].contains(&call) {
        return Sleeps::Timer;
    }
    match WAITS.iter().find(|(known, _)| *known == call) {
        Some((_, Waits::Poll)) => Sleeps::Poll,
        Some((_, Waits::Lock)) if call == c::SYS_futex => Sleeps::Futex(object),
        _ => Sleeps::Otherwise,
    }
}

/// Whether a thread that is in this call may wake another one by it, rather than an interrupt that came meanwhile.
pub fn wakes(call: i32) -> bool {
    let known = [
        c::SYS_futex,
        c::SYS_write,
        c::SYS_writev,
        c::SYS_kill,
        c::SYS_tkill,
        c::SYS_tgkill,
        c::SYS_semop,
        c::SYS_semtimedop,
        c::SYS_io_uring_enter,
    ];
    known.contains(&c::c_long::from(call))
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

/// Whether the first argument of a call is a file descriptor whose file or address is what the call waits for.
pub fn takes_descriptor(call: u32) -> bool {
    let call = c::c_long::from(call);
    let known = [
        c::SYS_read,
        c::SYS_readv,
        c::SYS_write,
        c::SYS_writev,
        c::SYS_pread64,
        c::SYS_pwrite64,
        c::SYS_preadv,
        c::SYS_pwritev,
        c::SYS_fsync,
        c::SYS_fdatasync,
        c::SYS_sync_file_range,
        c::SYS_fallocate,
        c::SYS_ftruncate,
        c::SYS_flock,
        c::SYS_connect,
        c::SYS_accept,
        c::SYS_accept4,
        c::SYS_recvfrom,
        c::SYS_recvmsg,
        c::SYS_sendto,
        c::SYS_sendmsg,
        c::SYS_sendfile,
    ];
    known.contains(&call)
}

/// The name of a system call that servers sleep in; `call 999` of any other.
pub fn name(call: u32) -> String {
    let known = NAMES.iter().find(|(number, _)| *number == c::c_long::from(call));
    known.map_or_else(|| format!("call {call}"), |(_, name)| (*name).to_owned())
}

/// Calls that servers were seen to sleep in.
const NAMES: &[(c::c_long, &str)] = &[
    (c::SYS_futex, "futex"),
    (c::SYS_futex_waitv, "futex_waitv"),
    (c::SYS_flock, "flock"),
    (c::SYS_semop, "semop"),
    (c::SYS_semtimedop, "semtimedop"),
    (c::SYS_fsync, "fsync"),
    (c::SYS_fdatasync, "fdatasync"),
    (c::SYS_sync_file_range, "sync_file_range"),
    (c::SYS_sync, "sync"),
    (c::SYS_syncfs, "syncfs"),
    (c::SYS_msync, "msync"),
    (c::SYS_io_getevents, "io_getevents"),
    (c::SYS_pread64, "pread64"),
    (c::SYS_pwrite64, "pwrite64"),
    (c::SYS_preadv, "preadv"),
    (c::SYS_pwritev, "pwritev"),
    (c::SYS_preadv2, "preadv2"),
    (c::SYS_pwritev2, "pwritev2"),
    (c::SYS_fallocate, "fallocate"),
    (c::SYS_ftruncate, "ftruncate"),
    (c::SYS_openat, "openat"),
    (c::SYS_renameat2, "renameat2"),
    (c::SYS_unlinkat, "unlinkat"),
    (c::SYS_connect, "connect"),
    (c::SYS_accept, "accept"),
    (c::SYS_accept4, "accept4"),
    (c::SYS_recvfrom, "recvfrom"),
    (c::SYS_recvmsg, "recvmsg"),
    (c::SYS_recvmmsg, "recvmmsg"),
    (c::SYS_sendto, "sendto"),
    (c::SYS_sendmsg, "sendmsg"),
    (c::SYS_sendmmsg, "sendmmsg"),
    (c::SYS_sendfile, "sendfile"),
    (c::SYS_splice, "splice"),
    (c::SYS_epoll_pwait, "epoll_pwait"),
    (c::SYS_ppoll, "ppoll"),
    (c::SYS_pselect6, "pselect6"),
    (c::SYS_io_uring_enter, "io_uring_enter"),
    (c::SYS_read, "read"),
    (c::SYS_readv, "readv"),
    (c::SYS_write, "write"),
    (c::SYS_writev, "writev"),
    (c::SYS_nanosleep, "nanosleep"),
    (c::SYS_clock_nanosleep, "clock_nanosleep"),
    (c::SYS_wait4, "wait4"),
    (c::SYS_waitid, "waitid"),
    (c::SYS_exit_group, "exit_group"),
    (c::SYS_mmap, "mmap"),
    (c::SYS_munmap, "munmap"),
    (c::SYS_madvise, "madvise"),
    (c::SYS_close, "close"),
    (c::SYS_lseek, "lseek"),
    (c::SYS_getdents64, "getdents64"),
    (c::SYS_rt_sigtimedwait, "rt_sigtimedwait"),
    (c::SYS_rt_sigsuspend, "rt_sigsuspend"),
    (c::SYS_mkdirat, "mkdirat"),
    (c::SYS_linkat, "linkat"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_epoll_wait, "epoll_wait"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_poll, "poll"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_select, "select"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_open, "open"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_rename, "rename"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_unlink, "unlink"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_pause, "pause"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_stat, "stat"),
    #[cfg(target_arch = "x86_64")]
    (c::SYS_access, "access"),
    (SYS_EPOLL_PWAIT2, "epoll_pwait2"),
];

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

    #[test]
    fn a_sleep_is_named_by_its_call() {
        let of = |call: c::c_long| sleeps(i32::try_from(call).unwrap(), 64);
        assert_eq!(of(c::SYS_clock_nanosleep), Sleeps::Timer);
        assert_eq!(of(c::SYS_epoll_pwait), Sleeps::Poll);
        assert_eq!(of(c::SYS_futex), Sleeps::Futex(64));
        assert_eq!(of(c::SYS_fsync), Sleeps::Otherwise);
        assert_eq!(sleeps(-1, 0), Sleeps::Otherwise);
    }

    /// If this fails, a wait for a lock is mistaken for one for the disk.
    #[test]
    fn every_call_is_in_the_table_once() {
        let known = waits().iter().filter(|&&waits| waits != 0).count();
        assert_eq!(known, WAITS.len());
        assert_eq!(moves().iter().filter(|&&moves| moves != 0).count(), MOVES.len());
    }
}
