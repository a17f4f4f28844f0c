//! One PostgreSQL connection without TLS: the request for TLS, the login, then statements, several of which may be in
//! flight.
//!
//! ```text
//! Start ─┬─ SSLRequest ─► Asked ─ S ─ handshake ─┬─► Login ─ ReadyForQuery ─► Ready ◄─► statements
//!        │                  └─── N ──────────────┤
//!        └─ without ─────────────────────────────┘
//! ```

use std::collections::VecDeque;

use super::commands::{push_execute, push_prepare, push_query, push_start_up, push_tls_request};
use super::login::LoginProgress;
use super::messages::{Message, MessageReader, Reader, kind};
use super::response::{Progress, Refused, Response};
use crate::sql::{Ask, Keep, Rows};
use crate::{Answer, Context, Sending, ServerPlan, TlsUse, Wire, WireEvent, printable, refused_login};
use codec::{DecodeError, Judgement, Preparation, PreparedStatements};

/// The protocol of one connection.
#[derive(Debug)]
pub(crate) struct PostgresWire {
    stage: Stage,
    messages: MessageReader,
    login: LoginProgress,
    /// Nobody else can read what is sent.
    is_private: bool,
    prepared: PreparedStatements,
    /// How each statement was sent that was not answered, in order.
    sent: VecDeque<Sent>,
    response: Response,
    /// The server's last error.
    message: Option<String>,
    /// The server's version.
    version: String,
    /// The server takes a backslash in a text for an escape.
    backslash: bool,
    in_transaction: bool,
    /// The connection takes no more statements.
    ended: bool,
}

/// How a statement was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Text,
    /// Prepared by its name, and executed.
    Preparing,
    /// Prepared without a name, and executed, while it is not known whether preparing it by its name succeeds.
    Unnamed,
    /// Executed by its name.
    Named,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// TLS was requested.
    Asked,
    Login,
    /// The server accepts the login, and says more about itself.
    Accepted,
    Ready,
}

impl PostgresWire {
    /// A connection of a run of `statements` statements, whose results have a limit of `result_bytes`.
    pub(crate) fn new(statements: usize, result_bytes: u64) -> PostgresWire {
        PostgresWire {
            stage: Stage::Asked,
            messages: MessageReader::default(),
            login: LoginProgress::default(),
            is_private: false,
            prepared: PreparedStatements::new(statements),
            sent: VecDeque::new(),
            response: Response::new(result_bytes),
            message: None,
            version: String::new(),
            backslash: false,
            in_transaction: false,
            ended: false,
        }
    }

    fn begin_login(&mut self, plan: &ServerPlan, is_secured: bool, out: &mut Vec<u8>) {
        self.stage = Stage::Login;
        // An attacker between the two could have refused the TLS that was only preferred, or offered another certificate.
        let is_required = matches!(plan.tls, TlsUse::Required(_));
        self.is_private = plan.is_local_socket || (is_secured && is_required);
        push_start_up(&plan.login, out);
    }

    /// The reply to the request for TLS.
    fn handle_tls_reply(
        &mut self,
        plan: &ServerPlan,
        reply: u8,
        out: &mut Vec<u8>,
    ) -> Result<WireEvent, DecodeError> {
        match (reply, &plan.tls) {
            (b'S', _) => Ok(WireEvent::BeginTls),
            (b'N', TlsUse::Required(_)) => {
                Err(DecodeError::Handshake { what: "the server does not offer TLS" })
            }
            (b'N', _) => {
                self.begin_login(plan, false, out);
                Ok(WireEvent::Plaintext)
            }
            // Its text is not shown: anybody who can write into the connection could have written it.
            (b'E', _) => Err(DecodeError::Handshake {
                what: "the server replied to the request for TLS with an error",
            }),
            _ => Err(DecodeError::Malformed { what: "reply to the request for TLS" }),
        }
    }

    fn handle_message(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        match (self.stage, self.messages.kind()) {
            (_, kind::PARAMETER_STATUS) => self.set_parameter(payload).map(|()| None),
            (Stage::Ready, kind) => self.handle_response(oldest, kind, payload),
            (_, kind::ERROR) => {
                self.message = Some(Refused::read(payload).words);
                Err(refused_login())
            }
            (Stage::Login, kind::AUTHENTICATION) => {
                self.login.handle(context, self.is_private, payload, out)?;
                if payload == [0; 4] {
                    self.stage = Stage::Accepted;
                }
                Ok(None)
            }
            (Stage::Accepted, kind::READY) => {
                (self.stage, self.login) = (Stage::Ready, LoginProgress::default());
                Ok(Some(WireEvent::Opened))
            }
            (Stage::Accepted, kind::BACKEND_KEY_DATA) | (Stage::Login, kind::NEGOTIATE_VERSION) => Ok(None),
            _ => Err(DecodeError::Malformed { what: "login" }),
        }
    }

    fn set_parameter(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload, "parameter");
        let (name, value) = (reader.until_zero()?, reader.until_zero()?);
        match name {
            b"server_version" => self.version = printable(value),
            b"standard_conforming_strings" => self.backslash = value == b"off",
            _ => {}
        }
        Ok(())
    }

    fn handle_response(
        &mut self,
        oldest: Option<Ask>,
        kind: u8,
        payload: &[u8],
    ) -> Result<Option<WireEvent>, DecodeError> {
        if kind == kind::ERROR && (oldest.is_none() || !self.response.has_begun) {
            let refused = Refused::read(payload);
            // An error that belongs to no statement is a farewell, also if a statement was sent before it was read.
            if refused.is_fatal || oldest.is_none() {
                self.message = Some(refused.words);
                self.ended = true;
                return Ok(None);
            }
        }
        let ask = oldest.ok_or(DecodeError::Unsolicited)?;
        self.begin_response(ask);
        match self.response.handle(kind, payload)? {
            Progress::More if kind == kind::DATA_ROW => self.response.count_row(self.messages.bytes()),
            Progress::More => {}
            Progress::Prepared if self.sent.front() == Some(&Sent::Preparing) => {
                self.prepared.set(ask.statement, Preparation::Ready(0));
            }
            Progress::Prepared => {}
            Progress::Done { in_transaction } => {
                self.in_transaction = in_transaction;
                return Ok(Some(self.answered(ask)));
            }
            Progress::Fatal => {
                self.ended = true;
                return Ok(Some(self.answered(ask)));
            }
        }
        Ok(None)
    }

    fn begin_response(&mut self, ask: Ask) {
        if !self.response.has_begun {
            self.response.begin(ask.keep);
            self.message = None;
        }
    }

    /// The response to `ask` has ended.
    fn answered(&mut self, ask: Ask) -> WireEvent {
        let row_bytes = self.response.row_bytes;
        let sent = self.sent.pop_front();
        self.response.end();
        let Some(refused) = self.response.refused.take() else {
            return WireEvent::Answered(Answer { code: None, judgement: Judgement::Good, row_bytes });
        };
        let is_requested = self.prepared.get(ask.statement) == Preparation::Requested;
        let is_absent = match sent {
            Some(Sent::Preparing) => is_requested,
            Some(Sent::Named) => refused.is_unprepared,
            _ => false,
        };
        if is_absent {
            self.prepared.set(ask.statement, Preparation::Absent);
        }
        self.message = Some(refused.words);
        WireEvent::Answered(Answer { code: refused.code, judgement: refused.judgement, row_bytes })
    }
}

impl Wire for PostgresWire {
    fn open(&mut self, plan: &ServerPlan, out: &mut Vec<u8>) -> Option<WireEvent> {
        match plan.tls {
            TlsUse::Never => self.begin_login(plan, false, out),
            TlsUse::Preferred(_) | TlsUse::Required(_) => push_tls_request(out),
        }
        None
    }

    fn begin_secured(&mut self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.begin_login(context.plan(), true, out);
        Ok(())
    }

    fn handle(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<WireEvent>), DecodeError> {
        if self.stage == Stage::Asked {
            let Some(&reply) = input.first() else { return Ok((0, None)) };
            return self.handle_tls_reply(context.plan(), reply, out).map(|event| (1, Some(event)));
        }
        let mut consumed = 0;
        loop {
            let (taken, message) = self.messages.read(&input[consumed..], self.response.expected_rows())?;
            consumed += taken;
            let event = match message {
                None => return Ok((consumed, None)),
                Some(Message::InPlace(length)) => {
                    self.handle_message(context, oldest, &input[consumed - length..consumed], out)?
                }
                Some(Message::Held) => {
                    let held = self.messages.take_held();
                    let event = self.handle_message(context, oldest, &held, out);
                    self.messages.put_back(held);
                    event?
                }
                Some(Message::Skipped) => {
                    if matches!(self.messages.kind(), kind::DATA_ROW | kind::COPY_DATA) {
                        let ask = oldest.filter(|_| self.stage == Stage::Ready);
                        self.begin_response(ask.ok_or(DecodeError::Unsolicited)?);
                        self.response.count_row(self.messages.bytes());
                    }
                    None
                }
            };
            if event.is_some() {
                return Ok((consumed, event));
            }
        }
    }

    /// Appends a statement, and first the request to prepare it if that is needed; the server reads both at once.
    fn send(&mut self, sending: Sending<'_>, out: &mut Vec<u8>) {
        if sending.is_first {
            self.message = None;
        }
        let Sending { ask, statement, values, .. } = sending;
        let sent = match self.prepared.get(ask.statement) {
            _ if !statement.prepared => Sent::Text,
            Preparation::Absent => Sent::Preparing,
            Preparation::Requested => Sent::Unnamed,
            Preparation::Ready(_) => Sent::Named,
        };
        self.sent.push_back(sent);
        if sent == Sent::Text {
            return push_query(statement, values, self.backslash, out);
        }
        let name = Some(ask.statement).filter(|_| sent != Sent::Unnamed);
        if sent != Sent::Named {
            push_prepare(name, statement, out);
        }
        if sent == Sent::Preparing {
            self.prepared.set(ask.statement, Preparation::Requested);
        }
        push_execute(name, values, ask.keep == Keep::FirstRow, out);
    }

    /// Notices and parameters come at any time, and belong to no response; an error may be a farewell.
    fn has_begun(&self) -> bool {
        let is_of_response = !matches!(
            self.messages.kind(),
            kind::NOTICE | kind::NOTIFICATION | kind::PARAMETER_STATUS | kind::ERROR
        );
        self.response.has_begun || (self.stage == Stage::Ready && self.messages.is_within() && is_of_response)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn rows(&self) -> &Rows {
        &self.response.rows
    }

    fn is_in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn version(&self) -> &str {
        &self.version
    }
}
