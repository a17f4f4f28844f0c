//! The system calls that a connection is read and written with.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::str::FromStr;

use rustix::fs::sendfile;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, send, sendmsg,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Read,
    Recv,
    Readv,
    Recvmsg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writing {
    Write,
    Send,
    Writev,
    Sendmsg,
    /// The head by `write`, the body from a file.
    Sendfile,
}

/// How a connection is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub reading: Reading,
    pub writing: Writing,
}

impl Way {
    pub const USUAL: Way = Way { reading: Reading::Read, writing: Writing::Write };
}

impl FromStr for Way {
    type Err = String;

    /// `readv+sendfile`
    fn from_str(text: &str) -> Result<Way, String> {
        let (reading, writing) = text.split_once('+').ok_or_else(|| format!("`{text}` has no `+`"))?;
        let reading = match reading {
            "read" => Reading::Read,
            "recv" => Reading::Recv,
            "readv" => Reading::Readv,
            "recvmsg" => Reading::Recvmsg,
            _ => return Err(format!("nobody reads by `{reading}`")),
        };
        let writing = match writing {
            "write" => Writing::Write,
            "send" => Writing::Send,
            "writev" => Writing::Writev,
            "sendmsg" => Writing::Sendmsg,
            "sendfile" => Writing::Sendfile,
            _ => return Err(format!("nobody writes by `{writing}`")),
        };
        Ok(Way { reading, writing })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:?}+{:?}", self.reading, self.writing).to_lowercase();
        f.write_str(&text)
    }
}

impl Reading {
    /// Reads once.
    pub fn read(self, socket: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
        let half = into.len() / 2;
        Ok(match self {
            Reading::Read => rustix::io::read(socket, into)?,
            Reading::Recv => recv(socket, into, RecvFlags::empty())?.1,
            Reading::Readv => {
                let (first, second) = into.split_at_mut(half);
                rustix::io::readv(socket, &mut [IoSliceMut::new(first), IoSliceMut::new(second)])?
            }
            Reading::Recvmsg => {
                let (first, second) = into.split_at_mut(half);
                let mut parts = [IoSliceMut::new(first), IoSliceMut::new(second)];
                recvmsg(socket, &mut parts, &mut RecvAncillaryBuffer::default(), RecvFlags::empty())?.bytes
            }
        })
    }
}

impl Writing {
    /// Writes a head and a body; `file` holds the body too.
    pub fn write_all(self, socket: impl AsFd, head: &[u8], body: &[u8], file: &File) -> io::Result<()> {
        let (socket, whole) = (socket.as_fd(), [head, body].concat());
        match self {
            Writing::Write => repeat(&whole, |rest| Ok(rustix::io::write(socket, rest)?)),
            Writing::Send => repeat(&whole, |rest| Ok(send(socket, rest, SendFlags::NOSIGNAL)?)),
            Writing::Writev => repeat(&whole, |rest| Ok(rustix::io::writev(socket, &halves(rest))?)),
            Writing::Sendmsg => repeat(&whole, |rest| {
                let mut nothing = SendAncillaryBuffer::default();
                Ok(sendmsg(socket, &halves(rest), &mut nothing, SendFlags::NOSIGNAL)?)
            }),
            Writing::Sendfile => {
                repeat(head, |rest| Ok(rustix::io::write(socket, rest)?))?;
                let mut offset = 0;
                repeat(body, |rest| Ok(sendfile(socket, file, Some(&mut offset), rest.len())?))
            }
        }
    }
}

fn repeat(mut rest: &[u8], mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<()> {
    while !rest.is_empty() {
        let written = write(rest)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = &rest[written..];
    }
    Ok(())
}

fn halves(bytes: &[u8]) -> [IoSlice<'_>; 2] {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    [IoSlice::new(first), IoSlice::new(second)]
}

/// Replaces the beginning of `file` by `body`.
pub fn keep(file: &File, body: &[u8]) -> io::Result<()> {
    file.write_all_at(body, 0)
}
