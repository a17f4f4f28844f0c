//! One connection to a database: TLS if it was agreed on, the login, then statements that the script chooses. The
//! protocol itself is a [`Wire`].

use std::collections::VecDeque;
use std::sync::Arc;

use super::channel::Channel;
use super::protocol::Run;
use super::server::{Context, TlsUse};
use super::wire::{Answer, AnyWire, Sending, Wire, WireEvent};
use crate::sql::{Ask, Keep, Parameters, Script};
use codec::UsedProtocol;
use codec::{
    CloseEvent, DecodeError, Encoded, Event, FailedCheck, Judgement, Key, Opening, Origin, Reply, Session,
    Step,
};

/// The key of the statements of a login, which the engine does not see.
const SETUP_KEY: Key = Key(u64::MAX);

/// The client's side of one connection.
#[derive(Debug)]
pub struct DatabaseSession<S: Script> {
    run: Arc<Run<S>>,
    origin: usize,
    wire: AnyWire,
    /// From the agreement on TLS on, except while it passes on what it decrypted.
    channel: Option<Box<Channel>>,
    /// The version of TLS, once its handshake has ended.
    secured: Option<UsedProtocol>,
    /// Whether the login has ended, with the statements that follow it on each connection.
    is_open: bool,
    /// How many of these statements were sent.
    set_up: usize,
    /// The values of the statement that is sent.
    parameters: Parameters,
    /// The statements that were sent and not answered, in order.
    asked: VecDeque<(Key, Ask)>,
    /// Whether [`Event::Began`] was reported for the oldest of them.
    began_reported: bool,
    taken: Option<S::Taken>,
    failed: Option<FailedCheck>,
}

impl<S: Script> DatabaseSession<S> {
    pub(super) fn new(run: Arc<Run<S>>, origin: Origin) -> DatabaseSession<S> {
        let shared = &run.shared;
        DatabaseSession {
            origin: usize::from(origin.0),
            wire: AnyWire::new(shared.kind, shared.statements.len(), shared.result_bytes),
            channel: None,
            secured: None,
            is_open: false,
            set_up: 0,
            parameters: Parameters::default(),
            asked: VecDeque::new(),
            began_reported: false,
            taken: None,
            failed: None,
            run,
        }
    }

    /// What the script took from the last response.
    pub(crate) fn hand_over(&mut self) -> Option<S::Taken> {
        self.taken.take()
    }

    /// Whether a transaction is open, as far as the server has said.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.wire.is_in_transaction()
    }

    fn tls(&self) -> &TlsUse {
        &self.run.shared.servers[self.origin].plan.tls
    }

    /// Processes plaintext up to an event. Returns the bytes taken, and the event.
    fn handle_plaintext(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<WireEvent>), DecodeError> {
        let shared = &self.run.shared;
        let context = Context { shared, server: &shared.servers[self.origin] };
        let oldest = self.asked.front().map(|(_, ask)| *ask);
        self.wire.handle(context, oldest, input, out)
    }

    /// What the engine gets for an event; `None` also if the response in progress has begun before, and for the
    /// responses to the statements of the login. Appends the next of these to `out`.
    fn reported(
        &mut self,
        event: Option<WireEvent>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, DecodeError> {
        Ok(match event {
            None => self.begun(),
            Some(WireEvent::BeginTls) => None,
            Some(WireEvent::Plaintext) => Some(Event::Plaintext),
            Some(WireEvent::Opened) => self.set_up(out),
            Some(WireEvent::Answered(answer)) if !self.is_open => {
                self.asked.pop_front();
                if answer.judgement != Judgement::Good {
                    return Err(DecodeError::Login { what: "--setup-query refused" });
                }
                self.set_up(out)
            }
            Some(WireEvent::Answered(answer)) => Some(self.answered(answer)),
        })
    }

    /// Sends the next statement of the login, or ends the login.
    fn set_up(&mut self, out: &mut Vec<u8>) -> Option<Event> {
        let shared = &self.run.shared;
        if let Some(statement) = shared.setup.get(self.set_up).filter(|_| !self.wire.has_ended()) {
            let ask = Ask { statement: 0, step: 0, keep: Keep::Nothing };
            self.asked.push_back((SETUP_KEY, ask));
            self.parameters.clear();
            let sending = Sending { ask, statement, command: None, values: &self.parameters, is_first: true };
            self.wire.send(sending, out);
            self.set_up += 1;
            return None;
        }
        self.is_open = true;
        shared.note_used(self.secured, self.wire.version());
        Some(Event::Opened)
    }

    /// The input ended: reports that the response has begun, once.
    fn begun(&mut self) -> Option<Event> {
        if !self.is_open {
            return None;
        }
        let (key, _) = self.asked.front().filter(|_| !self.began_reported && self.wire.has_begun())?;
        self.began_reported = true;
        Some(Event::Began(*key))
    }

    /// Lets the script check a response that the server did not refuse, and take what it needs.
    #[inline]
    fn answered(&mut self, answer: Answer) -> Event {
        let (key, ask) = self.asked.pop_front().expect("only a statement that was sent is answered");
        self.began_reported = false;
        (self.taken, self.failed) = (None, None);
        let mut judgement = answer.judgement;
        if judgement == Judgement::Good && ask.keep != Keep::Nothing {
            match self.run.script.take(ask.step, self.wire.rows()) {
                Ok(taken) => self.taken = Some(taken),
                Err(failed) => {
                    self.failed = Some(failed);
                    judgement = Judgement::CheckFailed;
                }
            }
        }
        let keep = !self.wire.has_ended();
        Event::Finished(key, Reply { code: answer.code, judgement, body_bytes: answer.row_bytes, keep })
    }

    fn begin_tls(&mut self, out: &mut Vec<u8>) {
        let (TlsUse::Preferred(plan) | TlsUse::Required(plan)) = self.tls() else {
            unreachable!("TLS was agreed on because of its plan")
        };
        self.channel = Some(Box::new(Channel::begin(plan, out)));
    }

    fn handle_encrypted(
        &mut self,
        mut channel: Box<Channel>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, DecodeError> {
        channel.decrypt(input, self.is_open, out);
        let event = self.handle_content(&mut channel);
        channel.encrypt(out);
        let (failure, has_more) = (channel.failure(self.is_open), channel.has_more());
        self.channel = Some(channel);
        match (event?, failure) {
            (None, Some(error)) => Err(error),
            (event, _) => Ok(Step { more: has_more && event.is_some(), ..Step::new(input.len(), event) }),
        }
    }

    /// Processes what was decrypted up to an event; the end of the handshake is one.
    fn handle_content(&mut self, channel: &mut Channel) -> Result<Option<Event>, DecodeError> {
        if self.secured.is_none() {
            let Some(version) = channel.agreed() else { return Ok(None) };
            self.secured = Some(version);
            let shared = &self.run.shared;
            let context = Context { shared, server: &shared.servers[self.origin] };
            self.wire.begin_secured(context, &mut channel.plaintext)?;
            return Ok(Some(Event::Secured));
        }
        loop {
            let (content, plaintext) = channel.content();
            let (count, event) = self.handle_plaintext(content, plaintext)?;
            channel.take(count);
            let is_over = event.is_none();
            let reported = self.reported(event, &mut channel.plaintext)?;
            if is_over || reported.is_some() {
                return Ok(reported);
            }
        }
    }
}

impl<S: Script> Session for DatabaseSession<S> {
    type Journey = S::Journey;

    fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        let first = self.wire.open(&self.run.shared.servers[self.origin].plan, out);
        if first == Some(WireEvent::BeginTls) {
            self.begin_tls(out);
        }
        match self.tls() {
            TlsUse::Never => Opening::Auth,
            TlsUse::Preferred(_) | TlsUse::Required(_) => Opening::Tls,
        }
    }

    #[inline]
    fn capacity(&self) -> usize {
        if self.wire.has_ended() { 0 } else { self.run.shared.depth }
    }

    #[inline]
    fn request(&mut self, journey: &S::Journey, key: Key, out: &mut Vec<u8>) -> Encoded {
        debug_assert!(self.asked.len() < self.run.shared.depth, "within the capacity");
        self.parameters.clear();
        let ask = self.run.script.ask(journey, &mut self.parameters);
        let is_first = self.asked.is_empty();
        self.asked.push_back((key, ask));
        let at = usize::from(ask.statement);
        let (statement, command) = (&self.run.shared.statements[at], self.run.shared.commands.get(at));
        let sending = Sending { ask, statement, command, values: &self.parameters, is_first };
        match &mut self.channel {
            None => self.wire.send(sending, out),
            Some(channel) => {
                self.wire.send(sending, &mut channel.plaintext);
                channel.encrypt(out);
            }
        }
        Encoded::Whole
    }

    #[inline]
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        if let Some(channel) = self.channel.take() {
            return self.handle_encrypted(channel, input, out);
        }
        let (consumed, event) = self.handle_plaintext(input, out)?;
        if event == Some(WireEvent::BeginTls) {
            if consumed < input.len() {
                // Anybody who can write into the connection could have added it.
                return Err(DecodeError::Handshake { what: "bytes before the TLS handshake" });
            }
            self.begin_tls(out);
        }
        Ok(Step::new(consumed, self.reported(event, out)?))
    }

    fn handle_close(&mut self) -> CloseEvent {
        match self.asked.front() {
            None => CloseEvent::Idle,
            Some(_) if self.wire.has_begun() => CloseEvent::Incomplete,
            Some(_) => CloseEvent::BeforeResponse,
        }
    }

    fn is_reusable(&self) -> bool {
        !self.wire.is_in_transaction()
    }

    fn failed_check(&mut self) -> Option<FailedCheck> {
        self.failed.take()
    }

    fn server_message(&self) -> Option<&str> {
        self.wire.message()
    }
}
