//! PostgreSQL's protocol 3: simple and extended queries, pipelines, COPY.
//!
//! One `Query` is one request. In the extended protocol one `Execute` is one, with the `Parse`, `Bind` and `Describe`
//! before it; messages up to a `Sync` or `Flush` without an `Execute` are one request too. `ReadyForQuery` ends the
//! response to what a `Sync` or `Query` closed; within a pipeline the end of the command does. COPY FROM is complete
//! with its `Query`, not with the data that follows.

use crate::digest::{Dialect, DigestId};
use crate::event::{EndBy, Protocol, RequestKind, Status};
use crate::exchanges::Until;
use crate::names::Names;
use crate::protocols::Context;
use crate::tap::{Step, View};

#[derive(Debug, Default)]
pub(crate) struct Postgres {
    /// The client's first packet has no type.
    startup: bool,
    /// The server replies with one byte whether it encrypts.
    negotiating: bool,
    /// The first `ReadyForQuery` ends the login.
    login: bool,
    /// A statement failed: what follows is not executed until `ReadyForQuery`.
    failed: bool,
    unit: Unit,
    statements: Names,
    portals: Names,
    /// Text and digest of the last statement: most connections repeat the same one.
    memo: (Vec<u8>, DigestId),
}

/// The request of the extended protocol that is being collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Unit {
    #[default]
    None,
    /// Messages before an `Execute`, and the replies that they will get.
    Begun {
        replies: u32,
    },
    Executed,
}

impl Postgres {
    pub(crate) fn fresh() -> Postgres {
        Postgres { startup: true, login: true, ..Postgres::default() }
    }

    pub(crate) fn joined() -> Postgres {
        Postgres::default()
    }

    pub(crate) fn restart_client(&mut self) {
        self.unit = Unit::None;
        self.startup = false;
    }

    /// The rest of a unit was not captured. It is taken for an `Execute`, which ends with its command: more of them
    /// may follow before the `Sync`, and each counts as one that was not seen.
    pub(crate) fn client_cut(&mut self, context: &mut Context<'_>) {
        if std::mem::take(&mut self.unit) == Unit::None {
            return;
        }
        if let Some(newest) = context.exchanges.newest() {
            newest.kind = RequestKind::Execute;
            newest.until = Until::Replies(0);
        }
    }

    pub(crate) fn client_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        if self.startup {
            return self.startup_packet(view);
        }
        let (kind, length) = match header(view.bytes) {
            Ok(header) => header,
            Err(step) => return step,
        };
        let wanted = match kind {
            b'Q' | b'P' => TEXT_BYTES,
            b'B' | b'E' | b'D' | b'C' => NAMES_BYTES,
            b'S' | b'H' | b'F' | b'd' | b'c' | b'f' | b'p' | b'X' => 0,
            _ => return Step::Bad,
        };
        let Some(body) = body(view, length, wanted) else { return Step::Need };
        let end = view.at + length;
        // No client sends a query before it is logged in: the end of the login was not captured.
        self.login &= matches!(kind, b'p' | b'X');
        let began = match kind {
            b'Q' => {
                self.close_unit(context);
                let digest = self.statement(text(body), length, view, context);
                context.exchanges.begin_whole((view.at, end), RequestKind::Query, digest, Until::Ready)
            }
            b'F' => {
                let digest = context.digests.named(Protocol::Postgres, "(function call)");
                context.exchanges.begin_whole((view.at, end), RequestKind::Function, digest, Until::Ready)
            }
            b'P' | b'B' | b'D' | b'E' | b'C' => self.extended(kind, body, (length, view), context),
            b'S' | b'H' => self.close(kind, view.at, end, context),
            _ => true,
        };
        if began { Step::Taken(length) } else { Step::Bad }
    }

    /// The packet that opens a connection, requests encryption, or cancels a query of another connection.
    fn startup_packet(&mut self, view: View<'_>) -> Step {
        let [a, b, c, d, code @ ..] = view.bytes else { return Step::Need };
        let &[e, f, g, h, ..] = code else { return Step::Need };
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        if !(8..=STARTUP_MOST).contains(&length) {
            return Step::Bad;
        }
        match u32::from_be_bytes([e, f, g, h]) {
            ENCRYPT_SSL | ENCRYPT_GSS => self.negotiating = true,
            CANCEL => self.startup = false,
            code if code >> 16 == 3 => self.startup = false,
            _ => return Step::Bad,
        }
        Step::Taken(u64::from(length))
    }

    /// `Parse`, `Bind`, `Describe`, `Execute`, `Close`. False when too many requests are in flight.
    fn extended(
        &mut self,
        kind: u8,
        body: &[u8],
        (length, view): (u64, View<'_>),
        context: &mut Context<'_>,
    ) -> bool {
        let end = view.at + length;
        if self.unit == Unit::Executed && kind != b'C' {
            self.close_unit(context);
        }
        if self.unit == Unit::None {
            let digest = context.digests.named(Protocol::Postgres, NO_STATEMENT);
            if !context.exchanges.begin(view.at, RequestKind::Prepare, digest, Until::Ready) {
                return false;
            }
            self.unit = Unit::Begun { replies: 0 };
        }
        let digest = match kind {
            b'P' => {
                let name = text(body);
                let query = text(body.get(name.len() + 1..).unwrap_or_default());
                let digest = self.statement(query, length, view, context);
                self.statements.set(name, digest);
                Some(digest)
            }
            b'B' => {
                let portal = text(body);
                let name = text(body.get(portal.len() + 1..).unwrap_or_default());
                let digest = self.statements.digest(name);
                let digest = digest.unwrap_or_else(|| context.unseen_statement(Protocol::Postgres));
                self.portals.set(portal, digest);
                Some(digest)
            }
            b'D' if body.first() == Some(&b'S') => self.statements.digest(text(&body[1..])),
            b'E' => {
                let digest = self.portals.digest(text(body));
                Some(digest.unwrap_or_else(|| context.unseen_statement(Protocol::Postgres)))
            }
            b'C' => {
                let name = text(body.get(1..).unwrap_or_default());
                match body.first() {
                    Some(b'S') => self.statements.remove(name),
                    _ => self.portals.remove(name),
                }
                None
            }
            _ => None,
        };
        self.unit = match self.unit {
            _ if kind == b'E' => Unit::Executed,
            Unit::Begun { replies } => Unit::Begun { replies: replies.saturating_add(1) },
            unit => unit,
        };
        if let Some(newest) = context.exchanges.newest() {
            newest.digest = digest.unwrap_or(newest.digest);
            if self.unit == Unit::Executed {
                newest.kind = RequestKind::Execute;
                newest.until = Until::Replies(0);
            }
        }
        context.exchanges.extend(end);
        true
    }

    /// The unit ends with its last message: another begins.
    fn close_unit(&mut self, context: &mut Context<'_>) {
        if self.unit != Unit::None {
            self.unit = Unit::None;
            context.exchanges.ask_newest(context.events);
        }
    }

    /// `Sync` or `Flush`, from `at` to `end`. False when too many requests are in flight.
    fn close(&mut self, kind: u8, at: u64, end: u64, context: &mut Context<'_>) -> bool {
        let unit = std::mem::take(&mut self.unit);
        // A unit whose response came before its Sync is over.
        let has_response = unit != Unit::None && context.exchanges.newest_is_settled();
        if unit == Unit::None || has_response {
            if kind == b'H' {
                return true;
            }
            let digest = context.digests.named(Protocol::Postgres, NO_STATEMENT);
            return context.exchanges.begin_whole((at, end), RequestKind::Prepare, digest, Until::Ready);
        }
        if let Some(newest) = context.exchanges.newest() {
            newest.until = match unit {
                _ if kind == b'S' => Until::Ready,
                Unit::Begun { replies } => Until::Replies(replies),
                _ => Until::Replies(0),
            };
        }
        context.exchanges.complete(end);
        true
    }

    fn statement(&mut self, text: &[u8], length: u64, view: View<'_>, context: &mut Context<'_>) -> DigestId {
        if *self.memo.0 == *text && !text.is_empty() {
            return self.memo.1;
        }
        let wanted = usize::try_from(length).unwrap_or(usize::MAX).min(HEADER_BYTES + TEXT_BYTES) as u64;
        let cut = wanted < length || (view.bytes.len() as u64) < wanted;
        let digest = context.digests.statement(Dialect::Postgres, text, cut);
        if text.len() <= MEMO_BYTES && !cut {
            self.memo.0.clear();
            self.memo.0.extend_from_slice(text);
            self.memo.1 = digest;
        }
        digest
    }

    pub(crate) fn server_frame(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        if self.negotiating {
            return self.negotiated(view, context);
        }
        let (kind, length) = match header(view.bytes) {
            Ok(header) => header,
            Err(step) => return step,
        };
        let wanted = match kind {
            b'Z' => 1,
            b'E' => ERROR_BYTES,
            b'1' | b'2' | b'3' | b'A' | b'C' | b'D' | b'G' | b'H' | b'I' | b'K' | b'N' | b'R' | b'S'
            | b'T' => 0,
            b'V' | b'W' | b'c' | b'd' | b'n' | b's' | b't' | b'v' => 0,
            _ => return Step::Bad,
        };
        let Some(body) = body(view, length, wanted) else { return Step::Need };
        let end = view.at + length;
        match kind {
            b'A' => context.exchanges.counts.unsolicited += 1,
            b'R' | b'K' | b'v' => {}
            b'Z' if self.login => self.login = false,
            b'Z' => self.ready(view.at, end, context),
            _ if self.login => {}
            // A notice or a parameter may come at any time.
            b'N' | b'S' if context.exchanges.is_empty() => context.exchanges.counts.unsolicited += 1,
            _ => self.reply(kind, body, (view.at, end), context),
        }
        Step::Taken(length)
    }

    fn negotiated(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let Some(response) = view.bytes.first() else { return Step::Need };
        self.negotiating = false;
        match response {
            b'S' | b'G' => {
                *context.switch = Some(Protocol::Tls);
                Step::Taken(view.bytes.len() as u64)
            }
            b'N' => Step::Taken(1),
            // A server from before encryption: an error message follows.
            _ => self.server_frame(view, context),
        }
    }

    /// A message that belongs to the response of the oldest request.
    fn reply(&mut self, kind: u8, body: &[u8], (at, end): (u64, u64), context: &mut Context<'_>) {
        let Some(oldest) = context.exchanges.begin_response(at, context.events) else { return };
        match kind {
            b'E' => {
                oldest.status = Status::SqlState(sql_state(body));
                if oldest.until != Until::Ready {
                    self.failed = true;
                    context.exchanges.end_at(end);
                }
                return;
            }
            b'C' | b'I' | b's' if oldest.status == Status::Unknown => oldest.status = Status::Ok,
            _ => {}
        }
        let ends_command = matches!(kind, b'C' | b'I' | b's') && oldest.kind == RequestKind::Execute;
        match &mut oldest.until {
            Until::Replies(0) if ends_command => context.exchanges.end_at(end),
            Until::Replies(1) if matches!(kind, b'1' | b'2' | b'3' | b'T' | b'n') => {
                oldest.status = Status::Ok;
                context.exchanges.end_at(end);
            }
            Until::Replies(left) if *left > 1 && matches!(kind, b'1' | b'2' | b'3' | b'T' | b'n') => {
                *left -= 1
            }
            _ => {}
        }
    }

    /// `ReadyForQuery`: all requests up to the one that waits for it have their responses. Earlier ones were not
    /// executed, because one before them failed.
    fn ready(&mut self, at: u64, end: u64, context: &mut Context<'_>) {
        let mut failed = std::mem::take(&mut self.failed);
        while let Some(oldest) = context.exchanges.oldest() {
            oldest.begin_response(at);
            let last = oldest.until == Until::Ready;
            if failed && oldest.status == Status::Unknown {
                oldest.status = Status::Skipped;
            }
            failed |= oldest.status.is_error() == Some(true);
            if oldest.status == Status::Unknown {
                oldest.status = Status::Ok;
            }
            context.exchanges.end(end, EndBy::Framing, context.events);
            if last {
                break;
            }
        }
    }
}

/// The type of a message and its length in all.
#[inline]
fn header(bytes: &[u8]) -> Result<(u8, u64), Step> {
    let &[kind, a, b, c, d, ..] = bytes else { return Err(Step::Need) };
    let length = u32::from_be_bytes([a, b, c, d]);
    if !(4..=MESSAGE_MOST).contains(&length) {
        return Err(Step::Bad);
    }
    Ok((kind, 1 + u64::from(length)))
}

/// The first `wanted` bytes after a message's header, or as many as the message has or were captured. `None` while they
/// are incomplete.
#[inline]
fn body<'a>(view: View<'a>, length: u64, wanted: usize) -> Option<&'a [u8]> {
    let end = usize::try_from(length).unwrap_or(usize::MAX).min(HEADER_BYTES + wanted);
    match view.bytes.get(HEADER_BYTES..end) {
        Some(body) => Some(body),
        None if view.cut => Some(&view.bytes[HEADER_BYTES..]),
        None => None,
    }
}

/// Up to the first zero byte.
fn text(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memchr(0, bytes).unwrap_or(bytes.len())]
}

/// The SQLSTATE among the fields of an error; without one, that of an internal error.
fn sql_state(mut fields: &[u8]) -> [u8; 5] {
    while let [kind, rest @ ..] = fields {
        let value = text(rest);
        if let (b'C', Ok(state)) = (kind, value.try_into()) {
            return state;
        }
        fields = rest.get(value.len() + 1..).unwrap_or_default();
    }
    *b"?????"
}

const HEADER_BYTES: usize = 5;
/// How much of a statement is read for its digest.
const TEXT_BYTES: usize = 4_096;
/// Two names of at most 63 bytes each, the server's limit, and what is around them.
const NAMES_BYTES: usize = 160;
/// Severity twice, and the SQLSTATE after it, even where severities are long words in the server's language.
const ERROR_BYTES: usize = 64;
/// The server accepts no message over 1 GiB.
const MESSAGE_MOST: u32 = 1 << 30;
/// The server's own limit.
const STARTUP_MOST: u32 = 10_000;
/// A longer statement is normalised again each time.
const MEMO_BYTES: usize = 512;
const NO_STATEMENT: &str = "(no statement)";

pub(crate) const CANCEL: u32 = 80_877_102;
pub(crate) const ENCRYPT_SSL: u32 = 80_877_103;
pub(crate) const ENCRYPT_GSS: u32 = 80_877_104;
