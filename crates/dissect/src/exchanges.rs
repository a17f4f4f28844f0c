//! The requests of a connection that are under way, and the events that they become.
//!
//! Protocols say what they read; this keeps the order and the law that every request asked is answered, unanswered
//! by nature, dropped, or under way. It reads no bytes.

use std::collections::VecDeque;

use crate::digest::DigestId;
use crate::event::{Answered, Asked, Counts, EndBy, Event, Kind, Sight, Status};

/// A request under way.
#[derive(Debug)]
pub(crate) struct Open {
    n: u64,
    began: u64,
    /// Behind its last byte, as far as it is known.
    complete: u64,
    pub digest: DigestId,
    pub kind: Kind,
    sight: Sight,
    asked: bool,
    /// Its end was not seen: it is complete when the server writes.
    open_ended: bool,
    answer_began: Option<u64>,
    pub status: Status,
    pub until: Until,
}

/// What ends an answer, in the words of its protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Its protocol knows by the answer alone.
    Answer,
    /// An HTTP answer that has no body, whatever its head says.
    Head,
    /// HTTP's CONNECT: an answer of 2xx ends the protocol.
    Tunnel,
    /// PostgreSQL: `ReadyForQuery`.
    Ready,
    /// PostgreSQL: so many replies. Redis: so many messages that confirm a subscription.
    Replies(u32),
}

/// Requests under way at once on a connection; one more is a loss of framing. A read of Redis (16 KiB) holds at most
/// 2,730 of its shortest command.
pub(crate) const OUTSTANDING_MOST: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    open: VecDeque<Open>,
    next: u64,
    /// The newest request ends here, beyond what was read so far.
    complete_due: Option<u64>,
    /// The answer to the oldest ends here, beyond what was written so far.
    end_due: Option<u64>,
    /// Bytes of the client that may hold requests and were not captured.
    unseen: Option<(u64, u64, Unseen)>,
    pub client_at: u64,
    pub counts: Counts,
}

/// Where events go.
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
    pub(crate) fn begin(&mut self, began: u64, kind: Kind, digest: DigestId, until: Until) -> bool {
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
            asked: false,
            open_ended: false,
            answer_began: None,
            status: Status::Unknown,
            until,
        });
        true
    }

    /// A request that has no answer.
    pub(crate) fn tell(&mut self, range: (u64, u64), kind: Kind, digest: DigestId, events: &mut Events) {
        let n = self.next;
        self.next += 1;
        let (began, complete) = range;
        let sight = Sight::Framed;
        events.push(Event::Asked(Asked { n, began, complete, digest, kind, sight, unanswered: true }));
    }

    /// A request that is complete at `complete`, which may lie beyond what was read. False when there are too many.
    #[must_use]
    pub(crate) fn begin_whole(
        &mut self,
        (began, complete): (u64, u64),
        kind: Kind,
        digest: DigestId,
        until: Until,
    ) -> bool {
        let room = self.begin(began, kind, digest, until);
        if room {
            self.complete(complete);
        }
        room
    }

    /// The newest request goes on to at least here, and may go on further.
    pub(crate) fn extend(&mut self, to: u64) {
        if let Some(newest) = self.open.back_mut().filter(|newest| !newest.asked) {
            newest.complete = to;
        }
    }

    /// The newest request is complete at `at`, which may lie beyond what was read.
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

    /// Whether the newest request was told, or answered before it was.
    pub(crate) fn newest_is_settled(&self) -> bool {
        self.open.back().is_none_or(|newest| newest.asked)
    }

    /// Where the newest request ends was not seen.
    pub(crate) fn open_end(&mut self) {
        if let Some(newest) = self.open.back_mut().filter(|newest| !newest.asked) {
            newest.open_ended = true;
            newest.sight = Sight::Cut;
        }
    }

    /// Tells the newest request once what is read reaches its end.
    #[inline]
    pub(crate) fn settle_client(&mut self, reached: u64, events: &mut Events) {
        if self.complete_due.is_some_and(|due| due <= reached) {
            self.complete_due = None;
            if let Some(newest) = self.open.back_mut() {
                newest.ask(events);
            }
        }
    }

    /// Tells the oldest request's answer once what is written reaches its end.
    #[inline]
    pub(crate) fn settle_server(&mut self, reached: u64, events: &mut Events) {
        if let Some(due) = self.end_due.filter(|due| *due <= reached) {
            self.end_due = None;
            self.end(due, EndBy::Framing, events);
        }
    }

    /// The server begins to write after it has read: a request whose end was not seen is complete with what it read.
    pub(crate) fn server_turn(&mut self, events: &mut Events) {
        let client_at = self.client_at;
        if let Some(newest) = self.open.back_mut().filter(|newest| newest.open_ended && !newest.asked) {
            newest.complete = client_at;
            newest.ask(events);
        }
    }

    /// Bytes of the client went by that may hold requests.
    pub(crate) fn unseen(&mut self, began: u64, end: u64, taken_for: impl FnOnce() -> Unseen) {
        self.unseen = Some(match self.unseen {
            Some((began, _, taken_for)) => (began, end, taken_for),
            None => (began, end, taken_for()),
        });
    }

    /// The answer to the oldest request goes on at `at`: it begins there if it had not yet. Without a request,
    /// it answers one in bytes that were not captured, if there are such.
    pub(crate) fn answer(&mut self, at: u64, events: &mut Events) -> Option<&mut Open> {
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
        oldest.answer_began.get_or_insert(at);
        Some(oldest)
    }

    /// What was taken for the beginning of an answer was none: an interim answer.
    pub(crate) fn interim(&mut self) {
        self.counts.unsolicited += 1;
        if let Some(oldest) = self.open.front_mut() {
            oldest.answer_began = None;
        }
    }

    /// The answer to the oldest request ends at `at`, which may lie beyond what was written.
    pub(crate) fn end_at(&mut self, at: u64) {
        self.end_due = Some(at);
    }

    /// The answer to the oldest request has ended at `at`.
    pub(crate) fn end(&mut self, at: u64, end_by: EndBy, events: &mut Events) {
        let Some(mut open) = self.open.pop_front() else { return };
        if !open.asked {
            // Answered before it was complete: it is told with what of it was read.
            open.complete = open.complete.clamp(open.began, self.client_at.max(open.began));
            if self.open.is_empty() {
                self.complete_due = None;
            }
            open.ask(events);
        }
        let began = open.answer_began.unwrap_or(at);
        events.push(Event::Answered(Answered { n: open.n, began, end: at, status: open.status, end_by }));
    }

    /// The answers of all requests that are complete have ended with the last write, at `at`; `begun` is where those
    /// begin whose beginning was not seen.
    pub(crate) fn end_all(&mut self, (begun, at): (u64, u64), end_by: EndBy, events: &mut Events) {
        self.end_due = None;
        while self.open.front().is_some_and(|open| open.asked) {
            if let Some(open) = self.open.front_mut() {
                open.answer_began.get_or_insert(begun);
            }
            self.end(at, end_by, events);
        }
    }

    /// What is under way cannot be told any longer.
    pub(crate) fn drop_all(&mut self, events: &mut Events) {
        self.complete_due = None;
        self.end_due = None;
        self.unseen = None;
        for open in self.open.drain(..) {
            if open.asked {
                self.counts.dropped += 1;
                events.push(Event::Dropped { n: open.n });
            }
        }
    }

    /// The client's bytes are framed again: what was not captured before is not waited for any longer.
    pub(crate) fn forget_unseen(&mut self) {
        self.unseen = None;
    }

    /// The number of the next request.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Forgets what is under way without a word, as it was not told; the next request has the number `next`.
    pub(crate) fn forget(&mut self, next: u64) {
        self.open.clear();
        self.complete_due = None;
        self.end_due = None;
        self.unseen = None;
        self.next = next;
    }

    /// Whether the answer to the oldest request has begun.
    pub(crate) fn is_answering(&self) -> bool {
        self.open.front().is_some_and(|open| open.answer_began.is_some())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= OUTSTANDING_MOST
    }

    /// The lowest position of the client's bytes, and of the server's, that events to come may name.
    pub(crate) fn named_from(&self, client: u64, server: u64) -> (u64, u64) {
        let unseen = self.unseen.map_or(client, |(began, ..)| began);
        let began = self.open.front().map_or(client, |open| open.began);
        let answer = self.open.front().and_then(|open| open.answer_began).unwrap_or(server);
        (unseen.min(began).min(client), answer.min(server))
    }
}

/// What a request is taken for of which only the answer is seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unseen {
    pub kind: Kind,
    pub digest: DigestId,
    pub until: Until,
}

impl Open {
    /// Its answer begins at `at`, if it had not begun before.
    pub(crate) fn begin_answer(&mut self, at: u64) {
        self.answer_began.get_or_insert(at);
    }

    fn ask(&mut self, events: &mut Events) {
        if !self.asked {
            self.asked = true;
            events.push(Event::Asked(Asked {
                n: self.n,
                began: self.began,
                complete: self.complete,
                digest: self.digest,
                kind: self.kind,
                sight: self.sight,
                unanswered: false,
            }));
        }
    }
}
