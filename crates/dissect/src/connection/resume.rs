//! Connections that are followed for short times only: what the first turn gives is held until it fits, because there
//! may be no other.

use super::{Dissector, Stage, Start};
use crate::event::{EndBy, Event, Protocol};
use crate::exchanges::Events;
use crate::protocols::ProtocolReader;

/// What the turn that is followed as a proof has given so far, to be reported if it fits.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) events: Vec<Event>,
    /// Where that turn began in the client's bytes and in the server's.
    pub(super) from: (u64, u64),
    /// Replies of Redis to no request until then: one more may be to a request from before.
    pub(super) unsolicited: u64,
}

/// What is held of a turn: a request and a response of as many as a read of Redis can contain, and some.
pub(super) const HELD_MOST: usize = 8_192;

impl Dissector {
    /// No more pieces are given until the connection is resumed: the next one may be any. What was written last counts
    /// as the end of a turn; other requests in flight are dropped, and not counted as a loss.
    pub fn pause(&mut self, events: &mut Vec<Event>) {
        let written = (self.turn_began, self.server.position());
        let is_turns = matches!(self.reader, Some(ProtocolReader::Turns(_))) || self.server.is_lost();
        match self.stage {
            Stage::Proving if self.server_wrote => {
                self.end_proof(events);
            }
            Stage::Live if self.server_wrote && is_turns => {
                self.exchanges.end_all(written, EndBy::Close, events);
            }
            _ => {}
        }
        let counts = self.exchanges.counts;
        self.lose(events);
        self.exchanges.counts = counts;
        self.settings.start = Start::Resumed;
        self.is_first = true;
    }

    /// Whether the turn that is followed as a proof has requests without a response.
    pub fn proof_awaits_response(&self) -> bool {
        self.holds() && !(self.server_wrote && self.exchanges.is_empty())
    }

    /// Whether what a proof gives is reported once it fits.
    pub(super) fn holds(&self) -> bool {
        self.settings.start == Start::Resumed && matches!(self.stage, Stage::Proving)
    }

    /// The turn that was followed has ended. Returns whether it fits: from here on, requests are reported.
    pub(super) fn end_proof(&mut self, events: &mut Events) -> bool {
        let reported = events.len();
        let requests = self.exchanges.next() - self.number;
        self.turn(events);
        let is_answered = self.exchanges.is_empty() && requests > 0 && !self.client.is_lost();
        let has_more = self.protocol() == Some(Protocol::Redis)
            && self.exchanges.counts.unsolicited > self.held.unsolicited;
        let fits = is_answered && !(self.holds() && has_more);
        self.held.events.extend(events.drain(reported..));
        if !(fits && self.holds()) {
            self.held.events.clear();
            self.pass_over(requests);
            self.exchanges.forget(self.number);
        }
        if fits {
            self.stage = Stage::Live;
            self.lost = false;
            if let Some(reader) = self.reader.take() {
                self.begin(reader, events);
            }
            events.append(&mut self.held.events);
        }
        fits
    }
}
