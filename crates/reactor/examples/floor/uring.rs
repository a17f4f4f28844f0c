//! The same on `io_uring`, with everything that makes it cheap: a single submitter, completions run on request,
//! registered sockets, receives that stay armed, a ring of buffers, and no completions for successful sends.
#![expect(unsafe_code, reason = "the rings are shared with the kernel")]

use std::alloc::{Layout, alloc_zeroed};
use std::mem;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fixed, RecvMsgOut};
use io_uring::{IoUring, cqueue, opcode, squeue};
use units::Nanos;

use crate::{Done, REQUEST};

const BUFFERS: u16 = 256;
const BUFFER_BYTES: usize = 2_048;
const CONTROL_BYTES: usize = 64;

/// Marks the completion of a send, which only a failed send has.
const SEND: u64 = 1 << 32;

/// Buffers that the kernel takes and that are then given back.
struct Buffers {
    ring: *mut BufRingEntry,
    space: Vec<u8>,
    tail: u16,
}

impl Buffers {
    fn register(ring: &IoUring) -> Buffers {
        let entries = usize::from(BUFFERS) * mem::size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(entries, 4_096).unwrap();
        // SAFETY: the layout has a size; the ring lives as long as the process.
        let entries = unsafe { alloc_zeroed(layout) }.cast::<BufRingEntry>();
        // SAFETY: the memory is a page-aligned array of that many entries.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, BUFFERS, 0, 0) }.unwrap();
        let space = vec![0; usize::from(BUFFERS) * BUFFER_BYTES];
        let mut buffers = Buffers { ring: entries, space, tail: 0 };
        (0..BUFFERS).for_each(|id| buffers.give_back(id));
        buffers
    }

    fn bytes(&self, id: u16) -> &[u8] {
        &self.space[usize::from(id) * BUFFER_BYTES..][..BUFFER_BYTES]
    }

    fn give_back(&mut self, id: u16) {
        let address = self.bytes(id).as_ptr() as u64;
        // SAFETY: the index is within the ring, and the kernel reads no entry at or beyond the tail.
        let entry = unsafe { &mut *self.ring.add(usize::from(self.tail % BUFFERS)) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is in the ring's first entry, aligned, and is written by us alone.
        unsafe { &*BufRingEntry::tail(self.ring).cast::<AtomicU16>() }.store(self.tail, Ordering::Release);
    }
}

/// Waits for `at_least` completions, then sends the next request for each of them in one submission.
pub fn completion_loop(sockets: &[TcpStream], end: Nanos, at_least: usize) -> Done {
    let mut builder = IoUring::builder();
    builder.setup_single_issuer().setup_defer_taskrun().setup_cqsize(4_096);
    let mut ring: IoUring = builder.build(1_024).unwrap();
    let descriptors: Vec<i32> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
    ring.submitter().register_files(&descriptors).unwrap();
    let mut buffers = Buffers::register(&ring);
    // SAFETY: all-zero is a valid msghdr; of it only the length of the control data is used.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_controllen = CONTROL_BYTES as _;
    for index in 0..sockets.len() as u32 {
        push(&mut ring, &receive(index, &message));
        push(&mut ring, &send(index));
    }
    let (mut done, mut again) = (Done::default(), Vec::new());
    while clock::now() < end {
        ring.submit_and_wait(at_least).unwrap();
        done.waits += 1;
        for completion in ring.completion() {
            let index = completion.user_data() as u32;
            assert!(completion.user_data() < SEND, "a send failed: {}", completion.result());
            let armed = cqueue::more(completion.flags());
            if completion.result() == -libc::ENOBUFS {
                again.push(receive(index, &message));
                continue;
            }
            assert!(completion.result() > 0, "a receive failed: {}", completion.result());
            let id = cqueue::buffer_select(completion.flags()).unwrap();
            let out = RecvMsgOut::parse(buffers.bytes(id), &message).unwrap();
            done.stamped += u64::from(!out.control_data().is_empty());
            done.requests += 1;
            buffers.give_back(id);
            again.push(send(index));
            if !armed {
                again.push(receive(index, &message));
            }
        }
        again.drain(..).for_each(|entry| push(&mut ring, &entry));
    }
    done
}

fn push(ring: &mut IoUring, entry: &squeue::Entry) {
    // SAFETY: what the entry points to, the request and the message, outlives the ring.
    while unsafe { ring.submission().push(entry) }.is_err() {
        ring.submit().unwrap();
    }
}

fn receive(index: u32, message: &libc::msghdr) -> squeue::Entry {
    opcode::RecvMsgMulti::new(Fixed(index), message, 0).build().user_data(index.into())
}

fn send(index: u32) -> squeue::Entry {
    let send =
        opcode::Send::new(Fixed(index), REQUEST.as_ptr(), REQUEST.len() as u32).flags(libc::MSG_NOSIGNAL);
    send.build().flags(squeue::Flags::SKIP_SUCCESS).user_data(SEND | u64::from(index))
}
