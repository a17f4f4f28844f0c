//! The pipe in memory that `h2` uses as a socket, and wakers that only set flags.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The pipe, shared by both ends. The lock is never contended, since one connection belongs to one thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(Arc<Mutex<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    /// From the peer; `h2` has read the first `read` bytes.
    input: Vec<u8>,
    read: usize,
    /// To the peer.
    output: Vec<u8>,
}

impl Pipe {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes from the peer, which `h2` reads at the next poll.
    pub(super) fn put_input(&self, bytes: &[u8]) {
        let mut ends = self.ends();
        if ends.read == ends.input.len() {
            ends.input.clear();
            ends.read = 0;
        }
        ends.input.extend_from_slice(bytes);
    }

    /// Moves the bytes to be sent to the end of `out`.
    pub(super) fn take_output(&self, out: &mut Vec<u8>) {
        out.append(&mut self.ends().output);
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut ends = self.ends();
        let waiting = ends.input.len() - ends.read;
        if waiting == 0 {
            // No waker is needed: the session polls again whenever there is more input.
            return Poll::Pending;
        }
        let taken = waiting.min(buffer.remaining());
        buffer.put_slice(&ends.input[ends.read..ends.read + taken]);
        ends.read += taken;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.ends().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A waker that records that it was woken.
#[derive(Debug, Default)]
pub(super) struct Flag(AtomicBool);

impl Flag {
    /// Whether it was woken since the last call.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
