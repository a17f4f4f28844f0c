//! Reads replies (RESP2, RESP3) from input that is cut anywhere. Bytes are counted and skipped; only an error's text and
//! the first values that are asked for are kept. Depth, lengths and lines have limits.

use codec::DecodeError;

/// The longest line: everything but the bytes of a bulk string.
const LONGEST_LINE: usize = 64 << 10;

/// How deep replies may be nested. Those of `COMMAND DOCS` are 7 deep.
const DEEPEST: usize = 32;

/// How much of a value is kept.
const LONGEST_KEPT: usize = 64 << 10;

/// A complete reply.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// The elements of an array, set or map; 1 for a single value, 0 for null.
    pub count: u64,
    pub bytes: u64,
    /// The text of an error.
    pub error: Option<String>,
    /// The server sent it without being asked.
    pub is_push: bool,
    /// The first single values, as many as were asked for; `None` is null.
    pub kept: Vec<Option<String>>,
}

/// Elements that are still to come.
#[derive(Debug, Clone, Copy)]
struct Level {
    left: u64,
    /// Its elements describe the value that follows.
    is_attribute: bool,
}

/// Reads replies.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    line: Vec<u8>,
    levels: Vec<Level>,
    /// The bytes of a bulk string that are still to come, with the end of its line.
    bulk_left: u64,
    /// What is kept of the bulk string in progress; `None` if nothing is.
    bulk: Option<Vec<u8>>,
    bulk_is_error: bool,
    /// The last bytes of the bulk string that were seen: its end must be that of a line.
    last: u8,
    has_begun: bool,
    /// How many single values are kept.
    keeps: usize,
    limit: u64,
    reply: Reply,
}

impl ReplyReader {
    /// Replies of more than `limit` bytes are refused.
    pub(super) fn new(limit: u64) -> ReplyReader {
        ReplyReader { limit, ..ReplyReader::default() }
    }

    /// Whether a reply has begun and not ended, other than one that nobody asked for.
    pub(super) fn is_within(&self) -> bool {
        !self.reply.is_push && (self.has_begun || self.line.first().is_some_and(|kind| *kind != b'>'))
    }

    /// Reads up to the end of a reply, of which the first `keeps` single values are kept.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] for what is malformed, unsupported or too long.
    pub(super) fn read(&mut self, input: &[u8], keeps: usize) -> Result<(usize, Option<Reply>), DecodeError> {
        self.keeps = keeps;
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let (count, is_value) =
                if self.bulk_left > 0 { self.read_bulk(rest)? } else { self.read_line(rest)? };
            taken += count;
            self.reply.bytes += count as u64;
            if self.reply.bytes > self.limit {
                return Err(DecodeError::TooLong { what: "bytes of result", limit: self.limit });
            }
            if is_value && self.complete() {
                self.has_begun = false;
                return Ok((taken, Some(std::mem::take(&mut self.reply))));
            }
        }
        Ok((taken, None))
    }

    /// Reads bytes of a bulk string; whether it has ended.
    fn read_bulk(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let count = self.bulk_left.min(input.len() as u64) as usize;
        let piece = &input[..count];
        if let Some(bulk) = &mut self.bulk {
            // Two bytes more than are kept: those of the line's end.
            let room = (LONGEST_KEPT + 2).saturating_sub(bulk.len());
            bulk.extend_from_slice(&piece[..count.min(room)]);
        }
        self.bulk_left -= count as u64;
        let before = if count > 1 { piece[count - 2] } else { self.last };
        self.last = piece[count - 1];
        // The last byte but one, once it is known.
        let is_wrong = match self.bulk_left {
            0 => self.last != b'\n' || before != b'\r',
            1 => self.last != b'\r',
            _ => false,
        };
        if is_wrong {
            return Err(DecodeError::Malformed { what: "end of a bulk string" });
        }
        if self.bulk_left > 0 {
            return Ok((count, false));
        }
        if let Some(mut bulk) = self.bulk.take() {
            bulk.truncate(bulk.len().saturating_sub(2).min(LONGEST_KEPT));
            let text = String::from_utf8_lossy(&bulk).into_owned();
            match std::mem::take(&mut self.bulk_is_error) {
                true => self.reply.error = Some(text),
                false => self.reply.kept.push(Some(text)),
            }
        }
        Ok((count, true))
    }

    /// Reads bytes of a line; whether a value has ended with them.
    fn read_line(&mut self, input: &[u8]) -> Result<(usize, bool), DecodeError> {
        let end = memchr::memchr(b'\n', input).map(|at| at + 1);
        let count = end.unwrap_or(input.len());
        if self.line.len() + count > LONGEST_LINE {
            return Err(DecodeError::TooLong { what: "bytes of a line", limit: LONGEST_LINE as u64 });
        }
        self.line.extend_from_slice(&input[..count]);
        if end.is_none() {
            return Ok((count, false));
        }
        let mut line = std::mem::take(&mut self.line);
        let is_value = self.take_line(&line);
        line.clear();
        self.line = line;
        Ok((count, is_value?))
    }

    /// Takes a whole line; whether a value has ended with it.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, DecodeError> {
        const MALFORMED: DecodeError = DecodeError::Malformed { what: "line of a reply" };
        let line = line.strip_suffix(b"\r\n").ok_or(MALFORMED)?;
        let (&kind, rest) = line.split_first().ok_or(MALFORMED)?;
        self.has_begun = true;
        let is_top = self.levels.is_empty();
        let text = || String::from_utf8_lossy(rest).into_owned();
        match kind {
            b'-' if is_top => self.reply.error = Some(text()),
            b'+' | b'-' | b':' | b'#' | b',' | b'(' => self.keep(|| Some(text())),
            b'_' => return Ok(self.null(is_top)),
            b'$' | b'=' | b'!' => {
                let Some(length) = length(rest)? else { return Ok(self.null(is_top)) };
                if self.reply.bytes + length > self.limit {
                    return Err(DecodeError::TooLong { what: "bytes of result", limit: self.limit });
                }
                self.bulk_is_error = kind == b'!' && is_top;
                let is_kept = self.bulk_is_error || self.wants_value();
                self.bulk = is_kept.then(Vec::new);
                self.bulk_left = length + 2;
                self.reply.count = if is_top { 1 } else { self.reply.count };
                return Ok(false);
            }
            b'*' | b'~' | b'%' | b'>' | b'|' => return self.aggregate(kind, rest, is_top),
            _ => return Err(DecodeError::Malformed { what: "kind of a reply" }),
        }
        self.reply.count = if is_top { 1 } else { self.reply.count };
        Ok(true)
    }

    fn null(&mut self, is_top: bool) -> bool {
        self.keep(|| None);
        self.reply.count = if is_top { 0 } else { self.reply.count };
        true
    }

    fn keep(&mut self, value: impl FnOnce() -> Option<String>) {
        if self.wants_value() {
            self.reply.kept.push(value());
        }
    }

    /// Whether the next value is one of those that are kept.
    fn wants_value(&self) -> bool {
        self.reply.kept.len() < self.keeps && !self.levels.iter().any(|level| level.is_attribute)
    }

    fn aggregate(&mut self, kind: u8, rest: &[u8], is_top: bool) -> Result<bool, DecodeError> {
        let Some(elements) = length(rest)? else { return Ok(self.null(is_top)) };
        let is_attribute = kind == b'|';
        if is_top && !is_attribute {
            self.reply.count = elements;
            self.reply.is_push = kind == b'>';
        }
        let left = if matches!(kind, b'%' | b'|') { elements * 2 } else { elements };
        if left == 0 {
            return Ok(!is_attribute);
        }
        if self.levels.len() == DEEPEST {
            return Err(DecodeError::TooLong { what: "levels of a reply", limit: DEEPEST as u64 });
        }
        self.levels.push(Level { left, is_attribute });
        Ok(false)
    }

    /// A value has ended; whether the reply has.
    fn complete(&mut self) -> bool {
        while let Some(level) = self.levels.last_mut() {
            level.left -= 1;
            if level.left > 0 {
                return false;
            }
            let is_attribute = level.is_attribute;
            self.levels.pop();
            if is_attribute {
                // The value that it describes follows.
                return false;
            }
        }
        true
    }
}

/// A length; `None` for -1, which is null in RESP2.
fn length(text: &[u8]) -> Result<Option<u64>, DecodeError> {
    if text == b"-1" {
        return Ok(None);
    }
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u32>().ok());
    number.map(|number| Some(u64::from(number))).ok_or(DecodeError::Malformed { what: "length in a reply" })
}
