//! The requests of a connection that are in flight, and the events that they become.
//!
//! The protocols report what they read; this keeps the order, and ensures that every complete request gets a response,
//! has none by nature, is dropped, or is in flight. It reads no bytes.

use std::collections::VecDeque;

use crate::digest::DigestId;
use crate::event::{
    Counts, EndBy, Event, RequestComplete, RequestKind, ResponseComplete, Rows, Sight, Status,
};
use crate::mysql::MySqlCommand;

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Open {
    n: u64,
    began: u64,
    /// The position after its last byte, as far as it is known.
    complete: u64,
    pub digest: DigestId,
    pub kind: RequestKind,
    sight: Sight,
    reported: bool,
    /// Its end was not captured: it is complete when the server writes.
    open_ended: bool,
    response_began: Option<u64>,
    pub status: Status,
    pub until: Until,
    /// What its response has said so far about rows.
    pub rows: Option<Rows>,
    /// Statements in its text, as far as that is known.
    pub statements_most: u32,
    /// Statements that its response has shown so far.
    pub statements: u32,
    data_bytes: u64,
}

/// What ends a response, in terms of its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Known from the response alone.
    Response,
    /// An HTTP response that has no body, whatever its head contains.
    Head,
    /// HTTP's CONNECT: a 2xx response ends the protocol.
    Tunnel,
    /// PostgreSQL: `ReadyForQuery`.
    Ready,
    /// PostgreSQL: this many replies. Redis: this many messages that confirm a subscription.
    Replies(u32),
    /// Redis's `EXEC`: as `Response`; it executes the commands that were queued before it.
    Transaction,
    /// A Redis command that was queued for `EXEC`.
    Queued,
}

/// Maximum number of requests in flight on a connection; one more counts as a loss of framing. One read of Redis (16
/// KiB) contains at most 2,730 of its shortest command.
pub(crate) const OUTSTANDING_MOST: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    open: VecDeque<Open>,
    next: u64,
    /// The newest request ends here, beyond what was read so far.
    complete_due: Option<u64>,
    /// The response to the oldest ends here, beyond what was written so far.
    end_due: Option<u64>,
    /// Bytes of the client that may contain requests and were not captured.
    unseen: Option<(u64, u64, Unseen)>,
    pub client_at: u64,
    pub counts: Counts,
}

/// The list that events are appended to.
pub(crate) type Events = Vec<Event>;

impl Exchanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn oldest(&mut self) -> Option<&mut Open> {
        self.open.front_mut()
    }

    pub(crate) fn newest(&mut self) -> Option<&mut Open> {
        self.open.back_mut()
    }

    /// A request begins. False when there are too many.
    #[must_use]
    pub(crate) fn begin(&mut self, began: u64, kind: RequestKind, digest: DigestId, until: Until) -> bool {
        if self.open.len() >= OUTSTANDING_MOST {
            return false;
        }
        let n = self.next;
        self.next += 1;
        self.open.push_back(Open {
            n,
            began,
            complete: began,
            digest,
            kind,
            sight: Sight::Framed,
            reported: false,
            open_ended: false,
            response_began: None,
            status: Status::Unknown,
            until,
            rows: None,
            statements_most: 1,
            statements: 0,
            data_bytes: 0,
        });
        true
    }

    /// Reports a request that has no response.
    pub(crate) fn add_without_response(
        &mut self,
        range: (u64, u64),
        kind: RequestKind,
        digest: DigestId,
        events: &mut Events,
    ) {
        let n = self.next;
        self.next += 1;
        let (began, complete) = range;
        let sight = Sight::Framed;
        events.push(Event::RequestComplete(RequestComplete {
            n,
            began,
            complete,
            digest,
            kind,
            sight,
            no_response: true,
        }));
    }

    /// A request that is complete at `complete`, possibly beyond what was read. False when there are too many.
    #[must_use]
    pub(crate) fn begin_whole(
        &mut self,
        (began, complete): (u64, u64),
        kind: RequestKind,
        digest: DigestId,
        until: Until,
    ) -> bool {
        let room = self.begin(began, kind, digest, until);
        if room {
            self.complete(complete);
        }
        room
    }

    /// The newest request continues to at least here, and may continue further.
    pub(crate) fn extend(&mut self, to: u64) {
        if let Some(newest) = self.open.back_mut().filter(|newest| !newest.reported) {
            newest.complete = to;
        }
    }

    /// The newest request is complete at `at`, possibly beyond what was read.
    pub(crate) fn complete(&mut self, at: u64) {
        self.extend(at);
        self.complete_due = Some(at);
    }

    /// The newest request is complete with what it was extended to.
    pub(crate) fn ask_newest(&mut self, events: &mut Events) {
        self.complete_due = None;
        if let Some(newest) = self.open.back_mut() {
            newest.ask(events);
        }
    }

    /// Whether the newest request was reported, or got its response before it was.
    pub(crate) fn newest_is_settled(&self) -> bool {
        self.open.back().is_none_or(|newest| newest.reported)
    }

    /// The end of the newest request was not captured.
    pub(crate) fn open_end(&mut self) {
        if let Some(newest) = self.open.back_mut().filter(|newest| !newest.reported) {
            newest.open_ended = true;
            newest.sight = Sight::Cut;
        }
    }

    /// Reports the newest request once the bytes read reach its end.
    #[inline]
    pub(crate) fn settle_client(&mut self, reached: u64, events: &mut Events) {
        if self.complete_due.is_some_and(|due| due <= reached) {
            self.complete_due = None;
            if let Some(newest) = self.open.back_mut() {
                newest.ask(events);
            }
        }
    }

    /// Reports the response to the oldest request once the bytes written reach its end.
    #[inline]
    pub(crate) fn settle_server(&mut self, reached: u64, events: &mut Events) {
        if let Some(due) = self.end_due.filter(|due| *due <= reached) {
            self.end_due = None;
            self.end(due, EndBy::Framing, events);
        }
    }

    /// The server begins to write after it has read: a request without a known end is complete with what it read.
    pub(crate) fn server_turn(&mut self, events: &mut Events) {
        let client_at = self.client_at;
        if let Some(newest) = self.open.back_mut().filter(|newest| newest.open_ended && !newest.reported) {
            newest.complete = client_at;
            newest.ask(events);
        }
    }

    /// Bytes of the client passed that belong to the oldest request.
    pub(crate) fn add_data(&mut self, bytes: u64) {
        if let Some(oldest) = self.open.front_mut() {
            oldest.data_bytes = oldest.data_bytes.saturating_add(bytes);
        }
    }

    /// Bytes of the client passed that may contain requests.
    pub(crate) fn unseen(&mut self, began: u64, end: u64, taken_for: impl FnOnce() -> Unseen) {
        self.unseen = Some(match self.unseen {
            Some((began, _, taken_for)) => (began, end, taken_for),
            None => (began, end, taken_for()),
        });
    }

    /// The response to the oldest request continues at `at`: it begins there if it had not yet. Without a request, it
    /// belongs to one in bytes that were not captured, if there are any.
    pub(crate) fn begin_response(&mut self, at: u64, events: &mut Events) -> Option<&mut Open> {
        if self.open.is_empty() {
            let (began, complete, unseen) = self.unseen?;
            if !self.begin(began, unseen.kind, unseen.digest, unseen.until) {
                return None;
            }
            let newest = self.open.back_mut()?;
            newest.complete = complete;
            newest.sight = Sight::Unseen;
            newest.ask(events);
        }
        let oldest = self.open.front_mut()?;
        oldest.response_began.get_or_insert(at);
        Some(oldest)
    }

    /// What looked like the beginning of a response was an interim response.
    pub(crate) fn interim(&mut self) {
        self.counts.unsolicited += 1;
        if let Some(oldest) = self.open.front_mut() {
            oldest.response_began = None;
        }
    }

    /// The response to the oldest request ends at `at`, possibly beyond what was written.
    pub(crate) fn end_at(&mut self, at: u64) {
        self.end_due = Some(at);
    }

    /// The response to the oldest request has ended at `at`.
    pub(crate) fn end(&mut self, at: u64, end_by: EndBy, events: &mut Events) {
        let Some(mut open) = self.open.pop_front() else { return };
        if !open.reported {
            // The response came before the request was complete: the request is reported with what was read of it.
            open.complete = open.complete.clamp(open.began, self.client_at.max(open.began));
            if self.open.is_empty() {
                self.complete_due = None;
            }
            open.ask(events);
        }
        let began = open.response_began.unwrap_or(at);
        events.push(Event::ResponseComplete(ResponseComplete {
            n: open.n,
            began,
            end: at,
            status: open.status,
            end_by,
            rows: open.rows.filter(|_| end_by == EndBy::Framing),
            statements: open.statements_executed(),
            data_bytes: open.data_bytes,
        }));
    }

    /// The responses of all complete requests have ended with the last write, at `at`; `begun` is where responses begin
    /// whose beginning was not seen.
    pub(crate) fn end_all(&mut self, (begun, at): (u64, u64), end_by: EndBy, events: &mut Events) {
        self.end_due = None;
        while self.open.front().is_some_and(|open| open.reported) {
            if let Some(open) = self.open.front_mut() {
                open.response_began.get_or_insert(begun);
            }
            self.end(at, end_by, events);
        }
    }

    /// Drops the requests in flight, which can no longer be reported.
    pub(crate) fn drop_all(&mut self, events: &mut Events) {
        self.complete_due = None;
        self.end_due = None;
        self.unseen = None;
        for open in self.open.drain(..) {
            if open.reported {
                self.counts.dropped += 1;
                events.push(Event::Dropped { n: open.n });
            }
        }
    }

    /// The client's bytes are framed again: requests in bytes that were not captured before are no longer expected.
    pub(crate) fn forget_unseen(&mut self) {
        self.unseen = None;
    }

    /// The number of the oldest request in flight, or of the next one.
    pub(crate) fn first_open(&self) -> u64 {
        self.open.front().map_or(self.next, |open| open.n)
    }

    /// The number of a request that is kept elsewhere.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The number of the next request.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Forgets requests in flight silently, because they were not reported; the next request has the number `next`.
    pub(crate) fn forget(&mut self, next: u64) {
        self.open.clear();
        self.complete_due = None;
        self.end_due = None;
        self.unseen = None;
        self.next = next;
    }

    /// Whether the response to the oldest request has begun.
    pub(crate) fn response_has_begun(&self) -> bool {
        self.open.front().is_some_and(|open| open.response_began.is_some())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= OUTSTANDING_MOST
    }

    /// The lowest position in the client's bytes, and in the server's, that future events may refer to.
    pub(crate) fn named_from(&self, client: u64, server: u64) -> (u64, u64) {
        let unseen = self.unseen.map_or(client, |(began, ..)| began);
        let began = self.open.front().map_or(client, |open| open.began);
        let response = self.open.front().and_then(|open| open.response_began).unwrap_or(server);
        (unseen.min(began).min(client), response.min(server))
    }
}

/// What is reported about a request of which only the response is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unseen {
    pub kind: RequestKind,
    pub digest: DigestId,
    pub until: Until,
}

impl Open {
    /// Its response begins at `at`, if it had not begun before.
    pub(crate) fn begin_response(&mut self, at: u64) {
        self.response_began.get_or_insert(at);
    }

    /// The response shows one more statement.
    pub(crate) fn add_statement(&mut self) {
        self.statements = self.statements.saturating_add(1);
    }

    /// A response that was not followed to its end, or whose protocol does not show it, is of one statement.
    fn statements_executed(&self) -> u32 {
        match self.until {
            Until::Transaction | Until::Queued => self.statements,
            _ if self.status == Status::Skipped || self.only_prepares() => 0,
            _ => self.statements.min(self.statements_most).max(1),
        }
    }

    fn only_prepares(&self) -> bool {
        matches!(self.kind, RequestKind::Prepare)
            || self.kind == RequestKind::MySql(MySqlCommand::STMT_PREPARE.0)
    }

    fn ask(&mut self, events: &mut Events) {
        if !self.reported {
            self.reported = true;
            events.push(Event::RequestComplete(RequestComplete {
                n: self.n,
                began: self.began,
                complete: self.complete,
                digest: self.digest,
                kind: self.kind,
                sight: self.sight,
                no_response: false,
            }));
        }
    }
}
