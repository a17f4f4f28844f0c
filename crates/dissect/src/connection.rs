//! One connection of a server: from pieces to events.
//!
//! ```text
//!   Fresh ─► Sniffing ────────────────────────┐
//!                                             ▼
//!   Joined ─► Seeking ── a request behind ─► Proving ── its turn fits ─► Live
//!               ▲          a response            │                          │
//!               └───────── it does not ─────────┘      pieces missed ──────┤
//!               └──────────────────────────────────────────────────────────┘
//! ```
//!
//! A connection that is joined, or found again after a loss, is followed silently for one turn: only when every
//! request of it had its response, to the byte, is the next one reported. What passes until then is counted.
//! A connection that is followed for a short time only ([`Start::Resumed`]) has no turn to spare: what the first one
//! gave is held until it fits, and reported then.

mod resume;

use crate::digest::Digests;
use crate::event::{Counts, EndBy, Event, Protocol};
use crate::exchanges::{Events, Exchanges};
use crate::http2::{Http2, is_frames};
use crate::piece::{Direction, Piece};
use crate::protocols::{Context, ProtocolReader};
use crate::sessions::SessionId;
use crate::sniff::{self, Guess};
use crate::tap::{Fed, Tap};
use resume::{HELD_MOST, Held};

/// What is known about a connection before its first piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DissectorSettings {
    /// Which piece comes first.
    pub start: Start,
    /// The protocol that the server's port is known for, or that the user gave. Bytes that are clearly of another
    /// protocol override it.
    pub hint: Option<Protocol>,
}

/// Which piece of a connection is given first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// The very first.
    #[default]
    Fresh,
    /// Any piece: the connection existed before.
    Joined,
    /// As [`Start::Joined`], where connections are followed for short times only: the first turn that is seen from its
    /// beginning is reported once it fits, and need not follow a response that was seen.
    Resumed,
}

/// Reads one connection. Owns at most 1 MiB; see the crate's documentation.
#[derive(Debug)]
pub struct Dissector {
    settings: DissectorSettings,
    stage: Stage,
    reader: Option<ProtocolReader>,
    client: Tap,
    server: Tap,
    exchanges: Exchanges,
    /// The server has written since the client was last read.
    server_wrote: bool,
    /// Where the server's bytes since then begin.
    turn_began: u64,
    /// Pieces that could begin a request and were of no known protocol.
    strange: u32,
    /// The number of the first request that will be reported.
    number: u64,
    /// Pieces were lost since the last reported request: what is passed over counts for the loss, which the user of this
    /// crate accounts for.
    lost: bool,
    protocol_reported: bool,
    /// The client's bytes are data of the oldest request, and not framed.
    takes_data: bool,
    /// The reader of the protocol that switched to TLS.
    negotiated: Option<ProtocolReader>,
    /// Nothing was given since the connection was resumed.
    is_first: bool,
    held: Held,
}

#[derive(Debug)]
enum Stage {
    Sniffing { held: Vec<u8>, from: Direction },
    Seeking,
    Proving,
    Live,
}

impl Dissector {
    /// A reader that has seen nothing yet.
    pub fn new(settings: DissectorSettings) -> Dissector {
        let stage = match settings.start {
            Start::Fresh => Stage::Sniffing { held: Vec::new(), from: Direction::FromClient },
            Start::Joined | Start::Resumed => Stage::Seeking,
        };
        Dissector {
            settings,
            stage,
            reader: None,
            client: Tap::default(),
            server: Tap::default(),
            exchanges: Exchanges::default(),
            server_wrote: false,
            turn_began: 0,
            strange: 0,
            number: 0,
            lost: false,
            protocol_reported: false,
            takes_data: false,
            negotiated: None,
            is_first: settings.start == Start::Resumed,
            held: Held::default(),
        }
    }

    /// The protocol, once it is known.
    pub fn protocol(&self) -> Option<Protocol> {
        self.reader.as_ref().map(ProtocolReader::protocol)
    }

    /// The user and schema of the request that is read next.
    pub fn session(&self) -> SessionId {
        self.reader.as_ref().map_or(SessionId::UNKNOWN, ProtocolReader::session)
    }

    /// What could not be reported so far.
    pub fn counts(&self) -> &Counts {
        &self.exchanges.counts
    }

    /// The lowest positions in the client's bytes and in the server's that future events may refer to: marks of
    /// anything that ends before them can be dropped.
    pub fn named_from(&self) -> (u64, u64) {
        // A response may have begun before the client sent more: a part of it is held until it is whole.
        let held = self.turn_began.min(self.server.frame_began());
        // The last write before the next read may end a response.
        let server = self.server.position().saturating_sub(1).min(held);
        let began = self.reader.as_ref().and_then(ProtocolReader::began);
        let client = self.client.frame_began().min(began.unwrap_or(u64::MAX));
        let (client, server) = self.exchanges.named_from(client, server);
        let streams = self.reader.as_ref().map_or((None, None), ProtocolReader::named_from);
        if self.holds() {
            return self.held.from;
        }
        (client.min(streams.0.unwrap_or(client)), server.min(streams.1.unwrap_or(server)))
    }

    /// Takes the next piece, and appends the events that follow from it.
    ///
    /// # Cost
    ///
    /// Hot path: no allocation for requests that are whole in their piece and whose digest is known, once the
    /// buffers have grown.
    pub fn handle_piece(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Vec<Event>) {
        if let Some(bytes) = piece.missed {
            self.lose(events);
            self.client.pass(bytes);
            self.exchanges.client_at = self.client.position();
        }
        if piece.length == 0 {
            return;
        }
        match &self.stage {
            Stage::Live => self.run(piece, digests, events),
            Stage::Sniffing { .. } => self.sniff(piece, digests, events),
            Stage::Seeking => self.seek(piece, digests, events),
            Stage::Proving => self.prove(piece, digests, events),
        }
    }

    /// From here on, pieces are the plain text of this connection, which was encrypted so far. Positions begin again at
    /// 0. Requests in flight were turns of encrypted bytes: nothing more is reported of them, and the next request has
    /// the number of the first of them.
    pub fn decrypt(&mut self, events: &mut Vec<Event>) {
        let is_fresh = self.settings.start == Start::Fresh && self.exchanges.counts.missed == 0;
        let start = if is_fresh { Start::Fresh } else { Start::Joined };
        let negotiated = self.negotiated.take();
        let protocol = negotiated.as_ref().map(ProtocolReader::protocol);
        let hint = self.settings.hint.or(protocol);
        let number = self.exchanges.first_open();
        *self = Dissector::new(DissectorSettings { start, hint });
        self.number = number;
        self.exchanges.forget(number);
        if let Some(reader) = negotiated.filter(|_| is_fresh) {
            self.begin(reader, events);
        }
    }

    /// The connection has ended: this ends responses without a length, and the last turn.
    pub fn handle_close(&mut self, events: &mut Vec<Event>) {
        let written = (self.turn_began, self.server.position());
        if matches!(self.stage, Stage::Live) {
            let turns = matches!(self.reader, Some(ProtocolReader::Turns(_))) || self.server.is_lost();
            if self.server_wrote && turns {
                self.exchanges.end_all(written, EndBy::Close, events);
            } else if self.exchanges.response_has_begun() {
                self.exchanges.end(written.1, EndBy::Close, events);
            }
            self.drop_in_flight(events);
        } else if matches!(self.stage, Stage::Proving) && self.server_wrote {
            self.pass_over(self.exchanges.next() - self.number);
        }
        self.exchanges.forget(self.exchanges.next());
        self.stage = Stage::Seeking;
    }

    /// Pieces were lost: nothing in flight is certain any more.
    fn lose(&mut self, events: &mut Events) {
        self.exchanges.counts.missed += 1;
        self.lost = true;
        self.takes_data = false;
        if let Some(reader) = &mut self.reader {
            reader.lose();
        }
        match self.stage {
            Stage::Live => self.drop_in_flight(events),
            _ => self.exchanges.forget(self.number),
        }
        self.give_up();
    }

    fn drop_in_flight(&mut self, events: &mut Events) {
        if let Some(streams) = self.reader.as_mut().and_then(ProtocolReader::streams) {
            streams.drop_all(&mut self.exchanges, events);
        }
        self.exchanges.drop_all(events);
    }

    /// Returns to looking for a request after a response.
    fn give_up(&mut self) {
        if matches!(self.stage, Stage::Live) {
            self.number = self.exchanges.next();
        }
        self.exchanges.forget(self.number);
        self.held.events.clear();
        self.stage = Stage::Seeking;
        self.server_wrote = false;
    }

    fn sniff(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        let Stage::Sniffing { held, from } = &mut self.stage else { return };
        if held.is_empty() && piece.direction == Direction::FromServer && self.server.position() > 0 {
            // It kept writing before the client sent anything.
            return self.server.pass(piece.length);
        }
        let seen = piece.bytes();
        let cut = (seen.len() as u64) < piece.length;
        let turned = !held.is_empty() && *from != piece.direction;
        if !turned {
            *from = piece.direction;
            held.extend_from_slice(&seen[..seen.len().min(SNIFF_BYTES)]);
        }
        // The result depends on the bytes only, however they were cut.
        let first = &held[..held.len().min(SNIFF_BYTES)];
        let guess = match from {
            Direction::FromClient => sniff::client(first, self.settings.hint),
            Direction::FromServer => sniff::server(first, self.settings.hint),
        };
        let full = cut || turned || held.len() >= SNIFF_BYTES;
        let of_piece = if turned { 0 } else { seen.len().min(SNIFF_BYTES) };
        let before = held.len() - of_piece;
        let protocol = match guess {
            Guess::Need if !full => return,
            Guess::Is(protocol) => protocol,
            // Too little was captured: only the hint is left.
            Guess::Need if !turned => self.settings.hint.unwrap_or(Protocol::Unknown),
            _ if held.is_empty() => self.settings.hint.unwrap_or(Protocol::Unknown),
            _ if turned || *from == Direction::FromClient => Protocol::Unknown,
            // The server speaks first, and it is not MySQL: the client's reply shows the protocol.
            _ => {
                held.clear();
                return self.server.pass(before as u64 + piece.length);
            }
        };
        let (held, from) = (std::mem::take(held), *from);
        self.begin(ProtocolReader::fresh(protocol), events);
        if before > 0 {
            self.run(&Piece::whole(from, &held[..before]), digests, events);
        }
        self.run(piece, digests, events);
    }

    fn seek(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        let is_first = std::mem::take(&mut self.is_first);
        let may_begin = piece.direction == Direction::FromClient && (self.server_wrote || is_first);
        if may_begin && self.choose(piece, events) {
            self.held.from = (self.client.position(), self.server.position());
            self.held.unsolicited = self.exchanges.counts.unsolicited;
            self.client.restart();
            self.server.restart();
            self.server_wrote = false;
            if let Some(reader) = &mut self.reader {
                reader.restart_client();
                reader.restart_server();
                reader.streams().into_iter().for_each(Http2::join);
            }
            // Turns need no proof, and frames of HTTP/2 are one.
            if self.protocol().is_some_and(|known| !known.is_framed() || known == Protocol::Http2) {
                self.stage = Stage::Live;
                self.lost = false;
                return self.run(piece, digests, events);
            }
            self.stage = Stage::Proving;
            return self.prove(piece, digests, events);
        }
        self.exchanges.counts.mid_connection += 1;
        match piece.direction {
            Direction::FromClient => {
                self.client.pass(piece.length);
                self.server_wrote = false;
            }
            Direction::FromServer => {
                self.server.pass(piece.length);
                // A response to something: at least one request that will not be reported.
                self.pass_over(u64::from(!self.server_wrote));
                self.server_wrote = true;
            }
        }
        self.exchanges.client_at = self.client.position();
    }

    /// Whether the protocol is known from this client piece, or was before.
    fn choose(&mut self, piece: &Piece<'_>, events: &mut Events) -> bool {
        if let Some(reader) = &self.reader {
            return reader.protocol() != Protocol::Http2 || is_frames(piece.bytes(), piece.length);
        }
        let seen = sniff::joined(piece.bytes(), piece.length);
        let hint = self.settings.hint.filter(|_| !piece.bytes().is_empty());
        let protocol = match (seen, hint) {
            (Some(protocol @ (Protocol::Tls | Protocol::Http2)), _) => protocol,
            (_, Some(hint)) => hint,
            (Some(seen), None) => seen,
            (None, None) => {
                self.strange += 1;
                if self.strange < STRANGE_MOST {
                    return false;
                }
                Protocol::Unknown
            }
        };
        let reader = ProtocolReader::joined(protocol);
        if protocol.is_framed() && protocol != Protocol::Http2 {
            self.reader = Some(reader);
        } else {
            self.begin(reader, events);
        }
        true
    }

    /// Follows one turn silently.
    fn prove(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        let reported = events.len();
        let next_turn = piece.direction == Direction::FromClient && self.server_wrote;
        if next_turn {
            if self.end_proof(events) {
                return self.run(piece, digests, events);
            }
            self.give_up();
            self.server_wrote = true;
            // The piece may begin the turn that fits.
            return self.seek(piece, digests, events);
        }
        self.exchanges.counts.mid_connection += 1;
        let unparsed = self.exchanges.counts.unparsed;
        self.run(piece, digests, events);
        self.held.events.extend(events.drain(reported..));
        let is_full = self.held.events.len() > HELD_MOST;
        if !self.holds() {
            self.held.events.clear();
        }
        if is_full || self.exchanges.counts.unparsed > unparsed {
            let spoke = piece.direction == Direction::FromServer;
            self.pass_over(self.exchanges.next() - self.number);
            if self.lost {
                self.exchanges.counts.unparsed = unparsed;
            }
            self.give_up();
            self.server_wrote = spoke;
            if !self.protocol_reported {
                self.strange += 1;
                self.reader = None;
                if self.strange >= STRANGE_MOST {
                    self.begin(ProtocolReader::joined(Protocol::Unknown), events);
                }
            }
        }
    }

    /// Requests are not reported: their responses are uncertain.
    fn pass_over(&mut self, requests: u64) {
        if !self.lost {
            self.exchanges.counts.mid_connection_requests += requests;
        }
    }

    fn begin(&mut self, reader: ProtocolReader, events: &mut Events) {
        if !self.protocol_reported {
            self.protocol_reported = true;
            events.push(Event::ProtocolKnown(reader.protocol()));
        }
        self.reader = Some(reader);
        if matches!(self.stage, Stage::Sniffing { .. }) {
            self.stage = Stage::Live;
        }
    }

    #[inline]
    fn run(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        match piece.direction {
            Direction::FromClient => self.run_client(piece, digests, events),
            Direction::FromServer => self.run_server(piece, digests, events),
        }
    }

    fn run_client(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        if self.server_wrote {
            self.turn(events);
        }
        let began = self.client.position();
        let Some(reader) = &mut self.reader else { return };
        let took_data = std::mem::replace(&mut self.takes_data, reader.takes_data());
        if took_data != self.takes_data {
            self.client.restart();
            reader.restart_client();
        }
        let mut switch = None;
        let exchanges = &mut self.exchanges;
        exchanges.client_at = began.saturating_add(piece.length);
        if self.takes_data {
            exchanges.add_data(piece.length);
            return self.client.pass(piece.length);
        }
        let mut context = Context { exchanges, digests, events, switch: &mut switch };
        let fed = match &mut *reader {
            ProtocolReader::Turns(turns) if turns.protocol() != Protocol::Tls => {
                turns.begin(began, &mut context);
                self.client.pass(piece.length);
                Fed::InStep
            }
            reader => self.client.feed(piece, |view| reader.client_frame(view, &mut context)),
        };
        match fed {
            Fed::InStep => {}
            Fed::Cut => {
                context.exchanges.counts.cut += 1;
                reader.client_cut(&mut context);
            }
            Fed::Bad => context.exchanges.counts.unparsed += 1,
            Fed::Lost => context.exchanges.counts.unframed += 1,
        }
        if self.client.is_lost() {
            self.client_lost(began, digests, events);
        }
        if let Some(streams) = self.reader.as_mut().and_then(ProtocolReader::streams) {
            streams.settle_client(self.client.position(), &mut self.exchanges, events);
        }
        self.exchanges.settle_client(self.client.position(), events);
        self.switch_to(switch, events);
    }

    /// The client's bytes are not framed: they may contain requests.
    fn client_lost(&mut self, began: u64, digests: &mut Digests, events: &mut Events) {
        let Some(reader) = &mut self.reader else { return };
        let end = self.client.position();
        if let ProtocolReader::Turns(turns) = reader {
            // Records that were not captured belong to the turn, too.
            let exchanges = &mut self.exchanges;
            let mut context = Context { exchanges, digests, events, switch: &mut None };
            return turns.begin(began, &mut context);
        }
        if reader.streams().is_none() {
            self.exchanges.unseen(began, end, || reader.unseen(digests));
        }
    }

    fn run_server(&mut self, piece: &Piece<'_>, digests: &mut Digests, events: &mut Events) {
        if !self.server_wrote {
            self.server_wrote = true;
            self.turn_began = self.server.position();
            self.exchanges.server_turn(events);
        }
        let Some(reader) = &mut self.reader else { return };
        let mut switch = None;
        let exchanges = &mut self.exchanges;
        let mut context = Context { exchanges, digests, events, switch: &mut switch };
        let fed = match &mut *reader {
            ProtocolReader::Turns(turns) => {
                turns.begin_response(self.server.position(), &mut context);
                self.server.pass(piece.length);
                Fed::InStep
            }
            reader => self.server.feed(piece, |view| reader.server_frame(view, &mut context)),
        };
        match fed {
            Fed::InStep => {}
            Fed::Cut => self.exchanges.counts.cut += 1,
            Fed::Bad => self.exchanges.counts.unparsed += 1,
            Fed::Lost => self.exchanges.counts.unframed += 1,
        }
        if let Some(streams) = self.reader.as_mut().and_then(ProtocolReader::streams) {
            streams.settle_server(self.server.position(), &mut self.exchanges, events);
        }
        self.exchanges.settle_server(self.server.position(), events);
        self.switch_to(switch, events);
    }

    /// The server reads again after it wrote: if framing was lost, it starts again.
    fn turn(&mut self, events: &mut Events) {
        self.server_wrote = false;
        let written = (self.turn_began, self.server.position());
        let Some(reader) = &mut self.reader else { return };
        if let ProtocolReader::Turns(turns) = reader {
            turns.end();
            self.exchanges.end_all(written, EndBy::Turn, events);
        } else if self.server.is_lost() {
            if let Some(streams) = reader.streams() {
                streams.end_all(written, EndBy::Turn, &mut self.exchanges, events);
            }
            self.exchanges.end_all(written, EndBy::Turn, events);
            self.server.restart();
            reader.restart_server();
        }
        if self.exchanges.is_full() {
            // What the server wrote completed none of them: it was misread.
            self.exchanges.drop_all(events);
            self.server.restart();
            reader.restart_server();
        }
        if self.client.is_lost() {
            self.client.restart();
            reader.restart_client();
            self.exchanges.forget_unseen();
        }
    }

    fn switch_to(&mut self, protocol: Option<Protocol>, events: &mut Events) {
        let Some(protocol) = protocol else { return };
        self.exchanges.settle_server(u64::MAX, events);
        self.exchanges.drop_all(events);
        self.client.restart();
        self.server.restart();
        let before = self.reader.replace(ProtocolReader::fresh(protocol));
        self.negotiated = before.filter(|_| protocol == Protocol::Tls);
        events.push(Event::ProtocolKnown(protocol));
    }
}

/// The most bytes to hold before the protocol is known: the longest line of an inline command, or a method.
const SNIFF_BYTES: usize = 64;
/// After this many pieces that could begin a request and do not, the protocol is not one of ours.
const STRANGE_MOST: u32 = 8;
