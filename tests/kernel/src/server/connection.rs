//! One connection of the planted server: bytes in, requests out, responses back. HTTP/1.1 and lines of text.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use units::Nanos;

use super::ways::{self, Way, Writing};

pub struct Connection {
    socket: OwnedFd,
    pub peer_port: u16,
    pub way: Way,
    waiting: Vec<u8>,
    /// When the last read returned, and in which thread.
    pub read_at: Nanos,
    reader: u32,
    requests: u64,
    body_file: File,
    body_kept: usize,
}

/// One request on this connection.
pub struct Request {
    pub path: String,
    pub protocol: Protocol,
    pub n: u64,
    pub bytes: u64,
    pub read_at: Nanos,
    pub reader: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http,
    Line,
}

/// No client of these tests sends a longer head.
const LONGEST_HEAD: usize = 64 << 10;

impl Connection {
    pub fn new(socket: OwnedFd, peer_port: u16, folder: &Path) -> io::Result<Connection> {
        // A file without a name: any number of connections may have one.
        let flags = rustix::fs::OFlags::TMPFILE.bits();
        let mut options = OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.cast_signed());
        let body_file = options.read(true).write(true).open(folder)?;
        Ok(Connection {
            socket,
            peer_port,
            way: Way::USUAL,
            waiting: Vec::new(),
            read_at: Nanos::ZERO,
            reader: 0,
            requests: 0,
            body_file,
            body_kept: 0,
        })
    }

    /// Leaves what has arrived in the socket's queue for `length`.
    pub fn leave(&self, length: Nanos) -> io::Result<()> {
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None)?;
        clock::sleep_until(clock::now() + length);
        Ok(())
    }

    /// Reads once; 0 when the peer has closed.
    pub fn receive(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 << 10];
        let length = self.way.reading.read(&self.socket, &mut bytes)?;
        self.take_in(&bytes[..length]);
        Ok(length)
    }

    /// Adds what has just been read.
    pub fn take_in(&mut self, bytes: &[u8]) {
        self.read_at = clock::now();
        self.reader = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        self.waiting.extend_from_slice(bytes);
    }

    /// The next complete request that was read.
    pub fn next_request(&mut self) -> io::Result<Option<Request>> {
        let is_http = self.waiting.starts_with(b"GET ");
        let end: &[u8] = if is_http { b"\r\n\r\n" } else { b"\n" };
        let Some(at) = self.waiting.windows(end.len()).position(|bytes| bytes == end) else {
            return match self.waiting.len() > LONGEST_HEAD {
                true => Err(io::Error::other("a request without an end")),
                false => Ok(None),
            };
        };
        let head: Vec<u8> = self.waiting.drain(..at + end.len()).collect();
        let line =
            String::from_utf8_lossy(head.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or(&[]));
        let path = if is_http { line.split(' ').nth(1).unwrap_or("/") } else { &line };
        let request = Request {
            path: path.to_owned(),
            protocol: if is_http { Protocol::Http } else { Protocol::Line },
            n: self.requests,
            bytes: head.len() as u64,
            read_at: self.read_at,
            reader: self.reader,
        };
        self.requests += 1;
        Ok(Some(request))
    }

    /// Puts the body where it can be sent from.
    pub fn prepare(&mut self, body: &[u8]) -> io::Result<()> {
        if self.way.writing == Writing::Sendfile && self.body_kept != body.len() {
            ways::keep(&self.body_file, body)?;
            self.body_kept = body.len();
        }
        Ok(())
    }

    pub fn write(&self, head: &[u8], body: &[u8]) -> io::Result<()> {
        self.way.writing.write_all(&self.socket, head, body, &self.body_file)
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
