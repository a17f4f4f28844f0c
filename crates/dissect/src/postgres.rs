//! PostgreSQL's protocol 3: simple and extended queries, pipelines, COPY.
//!
//! One `Query` is one request. In the extended protocol one `Execute` is one, with the `Parse`, `Bind` and `Describe`
//! before it; messages up to a `Sync` or `Flush` without an `Execute` are one request too. `ReadyForQuery` ends the
//! response to what a `Sync` or `Query` closed; within a pipeline the end of the command does. COPY FROM STDIN is
//! complete with its `Query`; the data that follow are counted, not read.

use crate::digest::{Dialect, DigestId};
use crate::event::{EndBy, Protocol, RequestKind, Rows, Status};
use crate::exchanges::Until;
use crate::names::Names;
use crate::protocols::Context;
use crate::sessions::{Session, SessionId, name};
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
    /// The server reads the rows of a COPY.
    copying: bool,
    /// The server passed over a `Sync` before these rows: another one follows.
    sync_again: bool,
    /// A statement that is not known was prepared before the connection was seen.
    prepared_before: bool,
    unit: Unit,
    statements: Names,
    portals: Names,
    /// Text and digest of the last statement: most connections repeat the same one.
    memo: (Vec<u8>, DigestId),
    session: SessionId,
    /// The server sends a table: its command ends with the number of rows sent.
    copies_out: bool,
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
        Postgres { prepared_before: true, ..Postgres::default() }
    }

    pub(crate) fn takes_data(&self) -> bool {
        self.copying
    }

    pub(crate) fn lose(&mut self) {
        (self.copying, self.sync_again, self.prepared_before) = (false, false, false);
    }

    pub(crate) fn session(&self) -> SessionId {
        self.session
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
            return self.startup_packet(view, context);
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
                let began =
                    context.exchanges.begin_whole((view.at, end), RequestKind::Query, digest, Until::Ready);
                if let Some(newest) = context.exchanges.newest().filter(|_| began) {
                    newest.statements_most = u32::MAX;
                }
                began
            }
            b'F' => {
                let digest = context.digests.named(Protocol::Postgres, "(function call)");
                context.exchanges.begin_whole((view.at, end), RequestKind::Function, digest, Until::Ready)
            }
            b'P' | b'B' | b'D' | b'E' | b'C' => self.extended(kind, body, (length, view), context),
            b'S' if std::mem::take(&mut self.sync_again) => true,
            b'S' | b'H' => self.close(kind, view.at, end, context),
            _ => true,
        };
        if began { Step::Taken(length) } else { Step::Bad }
    }

    /// The packet that opens a connection, requests encryption, or cancels a query of another connection.
    fn startup_packet(&mut self, view: View<'_>, context: &mut Context<'_>) -> Step {
        let [a, b, c, d, code @ ..] = view.bytes else { return Step::Need };
        let &[e, f, g, h, ..] = code else { return Step::Need };
        let length = u32::from_be_bytes([*a, *b, *c, *d]);
        if !(8..=STARTUP_MOST).contains(&length) {
            return Step::Bad;
        }
        match u32::from_be_bytes([e, f, g, h]) {
            ENCRYPT_SSL | ENCRYPT_GSS => self.negotiating = true,
            CANCEL => self.startup = false,
            code if code >> 16 == 3 => {
                let whole = length as usize;
                if view.bytes.len() < whole && !view.cut {
                    return Step::Need;
                }
                let parameters = &view.bytes[STARTUP_HEAD..view.bytes.len().min(whole)];
                self.session = context.digests.session_id(session_of(parameters));
                self.startup = false;
            }
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
                let digest = digest.unwrap_or_else(|| {
                    let unseen = self.unseen(name, context);
                    self.statements.set(name, unseen);
                    unseen
                });
                self.portals.set(portal, digest);
                Some(digest)
            }
            b'D' if body.first() == Some(&b'S') => self.statements.digest(text(&body[1..])),
            b'E' => {
                let digest = self.portals.digest(text(body));
                Some(digest.unwrap_or_else(|| self.unseen(b"", context)))
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

    /// The digest of a statement that was not seen when it was prepared.
    fn unseen(&self, name: &[u8], context: &mut Context<'_>) -> DigestId {
        let name = name[..name.len().min(NAME_BYTES)].escape_ascii().to_string();
        let name = if name.is_empty() { "(unnamed)" } else { name.as_str() };
        context.unseen_statement(Protocol::Postgres, name, self.prepared_before)
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
            b'C' => TAG_BYTES,
            b'1' | b'2' | b'3' | b'A' | b'D' | b'G' | b'H' | b'I' | b'K' | b'N' | b'R' | b'S' | b'T' => 0,
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
            b'N' | b'S' if self.copying => {}
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
        if kind == b'H' {
            self.copies_out = true;
        }
        if matches!(kind, b'C' | b'E' | b'I' | b's') {
            let sum = oldest.rows.get_or_insert_default();
            let rows = if kind == b'C' { tag_rows(text(body), self.copies_out) } else { Rows::default() };
            sum.sent = sum.sent.saturating_add(rows.sent);
            sum.affected = sum.affected.saturating_add(rows.affected);
            self.copies_out = false;
        }
        self.copying = kind == b'G';
        if matches!(kind, b'C' | b'E' | b's') {
            oldest.add_statement();
        }
        match kind {
            b'G' => self.sync_again = oldest.kind == RequestKind::Execute && oldest.until == Until::Ready,
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
        self.copying = false;
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

/// The user and database among the parameters of a start-up packet: names and values, each ended by a zero byte. The
/// database has the user's name unless it is named.
fn session_of(mut parameters: &[u8]) -> Session {
    let mut session = Session::default();
    while let (key, Some(rest)) = (text(parameters), parameters.get(text(parameters).len() + 1..)) {
        let value = text(rest);
        match key {
            b"" => break,
            b"user" => session.user = name(value),
            b"database" => session.schema = name(value),
            _ => {}
        }
        parameters = rest.get(value.len() + 1..).unwrap_or_default();
    }
    session.schema = session.schema.or_else(|| session.user.clone());
    session
}

/// The rows that a command's tag counts: `SELECT 5`, `INSERT 0 5`, `COPY 5`. A row that `RETURNING` sends is counted
/// as affected.
fn tag_rows(tag: &[u8], copies_out: bool) -> Rows {
    let mut words = tag.split(|&byte| byte == b' ');
    let verb = words.next().unwrap_or_default();
    let number = words.next_back().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    let number = number.unwrap_or(0);
    match verb {
        b"SELECT" | b"FETCH" => Rows { sent: number, affected: 0 },
        b"COPY" if copies_out => Rows { sent: number, affected: 0 },
        b"INSERT" | b"UPDATE" | b"DELETE" | b"MERGE" | b"COPY" => Rows { sent: 0, affected: number },
        _ => Rows::default(),
    }
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
/// The server's limit.
const NAME_BYTES: usize = 63;
/// A verb, the ID that an insertion once had, and a number of 20 digits.
const TAG_BYTES: usize = 40;
/// The length and the version.
const STARTUP_HEAD: usize = 8;
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
