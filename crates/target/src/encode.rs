//! Bytes of responses. Decides nothing about when or in what order they are sent.

/// The head of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub status: u16,
    pub content_type: &'static str,
    pub framing: Framing,
    /// Written as `Connection: close`.
    pub close: bool,
    /// Written as `Connection: keep-alive`, which HTTP/1.0 clients need.
    pub write_keep_alive: bool,
    /// The value of `Date`.
    pub date: &'a [u8],
}

/// How the peer learns where the body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    /// The status has no body and no length (RFC 9110, 8.6).
    Nothing,
}

#[inline]
pub(crate) fn head(out: &mut Vec<u8>, head: Head<'_>) {
    status_line(out, head.status);
    out.extend_from_slice(b"Server: parallax\r\nDate: ");
    out.extend_from_slice(head.date);
    match head.framing {
        Framing::Length(length) => {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(head.content_type.as_bytes());
            out.extend_from_slice(b"\r\nContent-Length: ");
            decimal(out, length);
        }
        Framing::Chunked => {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(head.content_type.as_bytes());
            out.extend_from_slice(b"\r\nTransfer-Encoding: chunked");
        }
        Framing::Nothing => {}
    }
    if head.close {
        out.extend_from_slice(b"\r\nConnection: close");
    } else if head.write_keep_alive {
        out.extend_from_slice(b"\r\nConnection: keep-alive");
    }
    out.extend_from_slice(b"\r\n\r\n");
}

/// An interim response (1xx): a status line and nothing else.
pub(crate) fn interim(out: &mut Vec<u8>, status: u16) {
    status_line(out, status);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn status_line(out: &mut Vec<u8>, status: u16) {
    if status == 200 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Begins a chunk of `size` bytes.
pub(crate) fn chunk_head(out: &mut Vec<u8>, size: usize) {
    out.extend_from_slice(format!("{size:x}\r\n").as_bytes());
}

#[inline]
pub(crate) fn decimal(out: &mut Vec<u8>, mut number: u64) {
    // Twenty digits hold any u64. No formatting machinery: every response passes here.
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The body of `/bytes` and `/drip` at `offset`: the 64 characters of the alphabet below, repeated.
pub(crate) fn pattern(out: &mut Vec<u8>, offset: u64, mut count: usize) {
    let mut at = (offset % BLOCK.len() as u64) as usize;
    while count > 0 {
        let part = count.min(BLOCK.len() - at);
        out.extend_from_slice(&BLOCK[at..at + part]);
        count -= part;
        at = 0;
    }
}

static BLOCK: [u8; 16 << 10] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-\n";
    let mut block = [0; 16 << 10];
    let mut at = 0;
    while at < block.len() {
        block[at] = alphabet[at % alphabet.len()];
        at += 1;
    }
    block
};

/// The registered reason phrases of common statuses; the others have none, which is legal.
fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        102 => "Processing",
        103 => "Early Hints",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        418 => "I'm a teapot",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, 13, 999, 1_000, u64::MAX] {
            let mut out = Vec::new();
            decimal(&mut out, number);
            assert_eq!(out, number.to_string().into_bytes());
        }
    }

    /// If this fails, a body streamed in parts differs from the same body sent whole.
    #[test]
    fn the_pattern_depends_on_the_offset_alone() {
        let mut whole = Vec::new();
        pattern(&mut whole, 0, 40_000);
        let mut pieces = Vec::new();
        for offset in (0..40_000).step_by(800) {
            pattern(&mut pieces, offset, 800);
        }
        assert!(whole == pieces);
        assert_eq!(&whole[62..66], b"-\nAB");
    }
}
