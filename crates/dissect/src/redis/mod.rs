//! RESP2 and RESP3: commands in arrays or inline, replies one after the other.
//!
//! Values are counted, not kept: a value nested to any depth takes one counter. Streamed values of RESP3 (`$?`) are
//! not read; no server sends them.

mod commands;

use crate::digest::DigestId;
use crate::event::{RequestKind, Status};
use crate::exchanges::Until;
use crate::protocols::Context;
use crate::tap::{Step, View};
use commands::Replies;
pub(crate) use commands::{Digested, digested};

#[derive(Debug, Default)]
pub(crate) struct Redis {
    command: Command,
    /// The next command must be an array: inline commands look like anything.
    strict: bool,
    /// CLIENT REPLY OFF.
    silent: bool,
    /// CLIENT REPLY SKIP: the next command gets no reply.
    skip_next: bool,
    /// A SUBSCRIBE was seen: arrays may arrive that are not replies.
    subscribed: bool,
    /// A MONITOR was seen: lines arrive that are not replies.
    monitoring: bool,
    /// A replica, or another kind of stream: what is sent is no longer a reply.
    streaming: bool,
    value: Value,
}

/// The command that is being read.
#[derive(Debug, Default)]
struct Command {
    began: u64,
    /// Arguments to come, and read, with the name.
    left: u32,
    read: u32,
    name: Text<24>,
    first: Text<96>,
    second: Text<8>,
    last_digest: Option<DigestId>,
    last_name: Text<24>,
    last_first: Text<96>,
}

/// The beginning of an argument.
#[derive(Debug, Clone, Copy)]
struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text { bytes: [0; N], length: 0 }
    }
}

impl<const N: usize> Text<N> {
    #[inline]
    fn set(&mut self, bytes: &[u8]) {
        self.length = bytes.len().min(N);
        self.bytes[..self.length].copy_from_slice(&bytes[..self.length]);
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The value of the server that is being read.
#[derive(Debug, Default)]
struct Value {
    /// Values to come until it is whole; 0 between values.
    pending: u64,
    role: Role,
}

/// The role of a value from the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Role {
    #[default]
    Response,
    /// One of the messages that confirm a subscription.
    Confirmation,
    Unsolicited,
}

impl Redis {
    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        if self.command.left > 0 {
            return self.argument(view, context);
        }
        match view.bytes {
            [b'*', ..] => {}
            [] => return Step::Need,
            _ if self.strict => return Step::Bad,
            _ => return self.inline(view, context),
        }
        let (count, length) = match number(view.bytes) {
            Number::Is(count, length) => (count, length),
            Number::Need => return Step::Need,
            Number::Bad => return Step::Bad,
        };
        self.strict = false;
        if count > ARGUMENTS_MOST {
            return Step::Bad;
        }
        // An empty array is not a command, and gets no reply.
        self.command.left = u32::try_from(count).unwrap_or(0);
        self.command.read = 0;
        self.command.began = view.at;
        Step::Taken(length as u64)
    }

    fn argument(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        match view.bytes {
            [] => return Step::Need,
            [b'$', ..] => {}
            _ => return Step::Bad,
        }
        let (length, header) = match number(view.bytes) {
            Number::Is(length, header) if (0..=BULK_MOST).contains(&length) => {
                (length.unsigned_abs(), header)
            }
            Number::Need => return Step::Need,
            _ => return Step::Bad,
        };
        let command = &mut self.command;
        let wanted = match command.read {
            0 => 24,
            1 => 96,
            2 => 8,
            _ => 0,
        };
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(wanted);
        let seen = &view.bytes[header..];
        if seen.len() < wanted && !view.cut {
            return Step::Need;
        }
        let seen = &seen[..wanted.min(seen.len())];
        match command.read {
            0 => {
                command.name.set(seen);
                command.name.bytes[..command.name.length].make_ascii_uppercase();
                command.first.length = 0;
                command.second.length = 0;
            }
            1 => command.first.set(seen),
            2 => command.second.set(seen),
            _ => {}
        }
        command.read += 1;
        command.left -= 1;
        let taken = header as u64 + length + 2;
        if command.left == 0 && !self.command_ends(view.at + taken, context) {
            return Step::Bad;
        }
        Step::Taken(taken)
    }

    /// A line of words. Quotes are not interpreted: only the name and the first word matter.
    fn inline(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let Some(end) = memchr::memchr(b'\n', view.bytes) else { return Step::Need };
        let mut words = view.bytes[..end].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let taken = end as u64 + 1;
        let Some(name) = words.next() else { return Step::Taken(taken) };
        if !name[0].is_ascii_alphabetic() {
            return Step::Bad;
        }
        let command = &mut self.command;
        command.began = view.at;
        command.name.set(name);
        command.name.bytes[..command.name.length].make_ascii_uppercase();
        command.first.set(words.next().unwrap_or_default());
        command.second.set(words.next().unwrap_or_default());
        command.read = 1 + u32::from(command.first.length > 0) + u32::from(command.second.length > 0);
        command.read += u32::try_from(words.count()).unwrap_or(0);
        if self.command_ends(view.at + taken, context) { Step::Taken(taken) } else { Step::Bad }
    }

    /// The command is known; its last byte is before `end`. False when too many are in flight.
    fn command_ends(&mut self, end: u64, context: &mut Context<'_>) -> bool {
        let digest = self.command.digest(context);
        let command = &self.command;
        let arguments = command.read.saturating_sub(1);
        let replies = commands::replies(command.name.bytes(), command.first.bytes(), command.second.bytes());
        let silent = self.silent;
        let skipped = std::mem::take(&mut self.skip_next);
        let mut until = Until::Response;
        match replies {
            Replies::One => {}
            Replies::Transaction => until = Until::Transaction,
            Replies::Subscription => {
                self.subscribed = true;
                until = Until::Replies(arguments.max(1));
            }
            Replies::Monitor => self.monitoring = true,
            Replies::Stream => self.streaming = true,
            Replies::ReplyOn => self.silent = false,
            Replies::ReplyOff => self.silent = true,
            Replies::ReplySkip => self.skip_next = true,
        }
        let no_response = match replies {
            Replies::ReplyOn => false,
            Replies::ReplyOff | Replies::ReplySkip | Replies::Stream => true,
            _ => silent || skipped,
        };
        if no_response {
            context.exchanges.add_without_response(
                (command.began, end),
                RequestKind::Redis,
                digest,
                context.events,
            );
            return true;
        }
        context.exchanges.begin_whole((command.began, end), RequestKind::Redis, digest, until)
    }

    /// The rest of the command that was being read will not be seen.
    pub(crate) fn client_cut(&mut self, context: &mut Context<'_>) {
        if self.command.left > 0 && self.command.read > 0 {
            let digest = self.command.digest(context);
            if context.exchanges.begin(self.command.began, RequestKind::Redis, digest, Until::Response) {
                context.exchanges.open_end();
            }
        }
        self.command.left = 0;
    }

    /// Where the command that is being read begins.
    pub(crate) fn began(&self) -> Option<u64> {
        (self.command.left > 0).then_some(self.command.began)
    }

    pub(crate) fn restart_client(&mut self) {
        self.command.left = 0;
        self.strict = true;
    }

    pub(crate) fn restart_server(&mut self) {
        self.value.pending = 0;
    }

    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let Some(&kind) = view.bytes.first() else { return Step::Need };
        let frame = match self.element(kind, view) {
            Ok(frame) => frame,
            Err(step) => return step,
        };
        if self.value.pending == 0 {
            match self.role(kind, view) {
                Some(role) => self.value.role = role,
                None => return Step::Need,
            }
            self.value.pending = 1;
            self.begin_value(kind, view, context);
        }
        let own = u64::from(kind != b'|');
        match (self.value.pending - own).checked_add(frame.children) {
            Some(pending) => self.value.pending = pending,
            None => return Step::Bad,
        }
        if self.value.pending == 0 {
            self.value_ends(view.at + frame.length, context);
        }
        Step::Taken(frame.length)
    }

    /// The length of an element's own bytes, and how many follow within it.
    fn element(&self, kind: u8, view: View<'_>) -> Result<Element, Step> {
        match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => {
                let end = memchr::memchr(b'\n', view.bytes).ok_or(Step::Need)?;
                Ok(Element { length: end as u64 + 1, children: 0 })
            }
            b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|' => {
                let (count, header) = match number(view.bytes) {
                    Number::Is(count, header) => (count, header as u64),
                    Number::Need => return Err(Step::Need),
                    Number::Bad => return Err(Step::Bad),
                };
                let (most, is_bulk) = (BULK_MOST, matches!(kind, b'$' | b'=' | b'!'));
                match count {
                    -1 => Ok(Element { length: header, children: 0 }),
                    0.. if count > most => Err(Step::Bad),
                    0.. if is_bulk => Ok(Element { length: header + count.unsigned_abs() + 2, children: 0 }),
                    0.. => {
                        let each = 1 + u64::from(matches!(kind, b'%' | b'|'));
                        Ok(Element { length: header, children: count.unsigned_abs() * each })
                    }
                    _ => Err(Step::Bad),
                }
            }
            _ => Err(Step::Bad),
        }
    }

    /// The role of the value that begins here. `None` while too little of it is seen.
    fn role(&self, kind: u8, view: View<'_>) -> Option<Role> {
        if self.streaming {
            return Some(Role::Unsolicited);
        }
        if kind == b'+' && self.monitoring && view.bytes.get(1).is_some_and(u8::is_ascii_digit) {
            return Some(Role::Unsolicited);
        }
        if !(kind == b'>' || kind == b'*' && self.subscribed) {
            return Some(Role::Response);
        }
        let word = match first_word(view.bytes) {
            Some(word) => word,
            None if view.cut => return Some(Role::Unsolicited),
            None => return None,
        };
        let confirms =
            word.strip_prefix(b"p").or(word.strip_prefix(b"s")).filter(|rest| *rest != b"ubscribe");
        match (confirms.unwrap_or(word), kind) {
            (b"subscribe" | b"unsubscribe", _) => Some(Role::Confirmation),
            (b"message", _) | (_, b'>') => Some(Role::Unsolicited),
            _ => Some(Role::Response),
        }
    }

    fn begin_value(&mut self, kind: u8, view: View<'_>, context: &mut Context<'_>) {
        let wants_confirmation = |until: Until| -> bool { matches!(until, Until::Replies(_)) };
        if self.value.role == Role::Confirmation
            && !context.exchanges.oldest().is_some_and(|oldest| wants_confirmation(oldest.until))
        {
            // One more confirmation of an UNSUBSCRIBE from all.
            self.value.role = Role::Unsolicited;
        }
        if self.value.role == Role::Unsolicited {
            return;
        }
        let status = if matches!(kind, b'-' | b'!') { Status::RedisError } else { Status::Ok };
        match context.exchanges.begin_response(view.at, context.events) {
            Some(oldest) => {
                oldest.status = status;
                match oldest.until {
                    Until::Response if view.bytes.starts_with(b"+QUEUED\r") => oldest.until = Until::Queued,
                    Until::Transaction => {
                        oldest.add_statement();
                        // Without commands: null, or an error.
                        if let (b'*' | b'~', Number::Is(commands, _)) = (kind, number(view.bytes)) {
                            oldest.statements =
                                oldest.statements.saturating_add(u32::try_from(commands).unwrap_or(0));
                        }
                    }
                    _ => {}
                }
                // An error is the only reply to a refused subscription.
                if status == Status::RedisError {
                    oldest.until = Until::Response;
                    self.value.role = Role::Response;
                }
            }
            None => self.value.role = Role::Unsolicited,
        }
    }

    fn value_ends(&mut self, end: u64, context: &mut Context<'_>) {
        match self.value.role {
            Role::Unsolicited => context.exchanges.counts.unsolicited += 1,
            Role::Response => context.exchanges.end_at(end),
            Role::Confirmation => match context.exchanges.oldest().map(|oldest| &mut oldest.until) {
                Some(Until::Replies(left)) if *left > 1 => *left -= 1,
                _ => context.exchanges.end_at(end),
            },
        }
    }
}

impl Command {
    /// Most connections repeat the same command: the last digest is kept.
    fn digest(&mut self, context: &mut Context<'_>) -> DigestId {
        let same =
            self.name.bytes() == self.last_name.bytes() && self.first.bytes() == self.last_first.bytes();
        if let Some(digest) = self.last_digest.filter(|_| same) {
            return digest;
        }
        let name = self.name.bytes();
        let first = self.first.bytes();
        let digest = match digested(name) {
            Digested::Name => context.digests.command(name, None),
            Digested::Key if first.is_empty() => context.digests.command(name, None),
            Digested::Key => context.digests.command(name, Some(first)),
            Digested::Subcommand => {
                let mut upper = self.first;
                upper.bytes[..upper.length].make_ascii_uppercase();
                context.digests.command(name, Some(upper.bytes()))
            }
        };
        self.last_name = self.name;
        self.last_first = self.first;
        self.last_digest = Some(digest);
        digest
    }
}

struct Element {
    length: u64,
    children: u64,
}

/// A number between a type byte and a line end, and the length of the line.
enum Number {
    Is(i64, usize),
    Need,
    Bad,
}

#[inline]
fn number(line: &[u8]) -> Number {
    let (mut value, mut at, mut negative) = (0i64, 1, false);
    if line.get(1) == Some(&b'-') {
        negative = true;
        at = 2;
    }
    let digits = at;
    loop {
        match line.get(at) {
            Some(byte @ b'0'..=b'9') if at - digits < DIGITS_MOST => {
                value = value * 10 + i64::from(byte - b'0')
            }
            Some(b'\r') if at > digits => break,
            None => return Number::Need,
            _ => return Number::Bad,
        }
        at += 1;
    }
    match line.get(at + 1) {
        Some(b'\n') => Number::Is(if negative { -value } else { value }, at + 2),
        None => Number::Need,
        _ => Number::Bad,
    }
}

/// The first element of an array, when it is a string. `None` while it is not whole.
fn first_word(array: &[u8]) -> Option<&[u8]> {
    let Number::Is(count, header) = number(array) else { return None };
    if count <= 0 {
        return Some(b"");
    }
    let element = &array[header..];
    match element.first()? {
        b'$' => match number(element) {
            Number::Is(length, start) => {
                let length = usize::try_from(length).unwrap_or(0).min(WORD_MOST);
                element.get(start..start + length)
            }
            Number::Need => None,
            Number::Bad => Some(b""),
        },
        b'+' => memchr::memchr(b'\r', element).map(|end| &element[1..end]),
        _ => Some(b""),
    }
}

/// `1024 * 1024` in the server; a few lift it.
const ARGUMENTS_MOST: i64 = 1 << 24;
/// Far above `proto-max-bulk-len`, far below what could overflow a position.
const BULK_MOST: i64 = 1 << 40;
const DIGITS_MOST: usize = 15;
/// `punsubscribe`, `sunsubscribe`, `invalidate`.
const WORD_MOST: usize = 12;
