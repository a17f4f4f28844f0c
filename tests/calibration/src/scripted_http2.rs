//! HTTP/2 for a scripted server: frames written by hand, so that each fault is exact.

use std::io;

use crate::scripted::Peer;

/// The largest stream number: a server that goes away with it has processed all streams.
pub const ALL_STREAMS: u32 = (1 << 31) - 1;

/// ":status: 200", entry 8 of HPACK's static table (RFC 7541, appendix A).
pub const OK: &[u8] = &[0x88];
/// ":status" by the name of entry 8, with a literal value, not indexed.
pub const UNAVAILABLE: &[u8] = b"\x08\x03503";
/// ":status: 200", and "content-length" by the name of entry 28.
pub const OK_AND_TEN_BYTES: &[u8] = b"\x88\x0f\x0d\x0210";

pub const NO_ERROR: u32 = 0;
pub const INTERNAL_ERROR: u32 = 2;
pub const REFUSED_STREAM: u32 = 7;

/// RFC 9113, section 6: the frames used in scripts.
pub fn head(stream: u32, fields: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, fields)
}

pub fn last_head(stream: u32, fields: &[u8]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, fields)
}

pub fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, 0, stream, bytes)
}

pub fn last_data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, END_STREAM, stream, bytes)
}

/// A whole response with a body of two bytes.
pub fn answer(stream: u32) -> Vec<u8> {
    [head(stream, OK), last_data(stream, b"ok")].concat()
}

pub fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

pub fn go_away(last: u32, code: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Peer {
    /// Reads the client's preface and sends settings, with this many streams at once allowed.
    pub fn begin_http2(&mut self, streams: u32) -> io::Result<()> {
        while self.inbox.len() < PREFACE.len() {
            self.fill()?;
        }
        assert!(self.inbox.starts_with(PREFACE), "this is not the beginning of HTTP/2");
        self.inbox.drain(..PREFACE.len());
        self.write(&settings(streams))
    }

    /// The number of the next stream that the client opens.
    pub fn stream(&mut self) -> io::Result<u32> {
        loop {
            let (kind, flags, stream) = self.frame()?;
            match kind {
                HEADERS => {
                    assert!(flags & END_STREAM != 0, "a request of these tests has no body");
                    self.note_request();
                    return Ok(stream);
                }
                SETTINGS if flags & ACK == 0 => self.write(&frame(SETTINGS, ACK, 0, &[]))?,
                _ => {}
            }
        }
    }

    /// Reads this many streams, none of which gets a response.
    pub fn streams(&mut self, count: usize) -> io::Result<Vec<u32>> {
        (0..count).map(|_| self.stream()).collect()
    }

    pub fn answer(&mut self, stream: u32) -> io::Result<()> {
        self.write(&answer(stream))?;
        self.note_answered();
        Ok(())
    }

    /// Kind, flags and stream of the next frame.
    fn frame(&mut self) -> io::Result<(u8, u8, u32)> {
        loop {
            if let [a, b, c, kind, flags, stream @ ..] = self.inbox.as_slice()
                && let Some(stream) = stream.first_chunk::<4>()
            {
                let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
                if self.inbox.len() >= HEADER_BYTES + length {
                    let reported = (*kind, *flags, u32::from_be_bytes(*stream) & ALL_STREAMS);
                    self.inbox.drain(..HEADER_BYTES + length);
                    return Ok(reported);
                }
            }
            self.fill()?;
        }
    }
}

/// SETTINGS_MAX_CONCURRENT_STREAMS is setting 3.
fn settings(streams: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&[0, 3], streams.to_be_bytes().as_slice()].concat())
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADER_BYTES: usize = 9;
pub const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
