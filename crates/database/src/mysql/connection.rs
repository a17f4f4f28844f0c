//! One MySQL connection without TLS: the greeting, the login, then one statement after another.
//!
//! ```text
//! Greeting ─┬─ request for TLS ─► Greeted ─ handshake ─┬─► Login ─ OK ─► Ready ◄─► statement
//!           └──────── without ─────────────────────────┘
//! ```

use super::commands::{push_execute, push_prepare, push_query};
use super::greeting::{Greeting, LoginRequest, can, push_tls_request};
use super::login::{LoginProgress, Refusal, Reply, Round};
use super::packets::{ERROR, Interest, Packet, PacketReader, begin_message, end_message};
use super::reading::Reader;
use super::response::{Progress, Refused, Response};
use crate::sql::{Ask, Parameters, Rows};
use crate::{Answer, Context, Sending, ServerPlan, TlsUse, Wire, WireEvent, refused_login};
use codec::{DecodeError, Judgement, Preparation, PreparedStatements};

/// The protocol of one connection.
#[derive(Debug)]
pub(crate) struct MySqlWire {
    stage: Stage,
    packets: PacketReader,
    greeting: Option<Greeting>,
    login: Option<LoginProgress>,
    prepared: PreparedStatements,
    /// The values of the statement in progress, which is executed once it is prepared.
    parameters: Parameters,
    response: Response,
    /// The server's last error.
    message: Option<String>,
    /// The server's version.
    version: String,
    /// The connection takes no more statements.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    /// TLS was requested.
    Greeted,
    Login,
    Ready,
}

impl MySqlWire {
    /// A connection of a run of `statements` statements, whose results have a limit of `result_bytes`.
    pub(crate) fn new(statements: usize, result_bytes: u64) -> MySqlWire {
        MySqlWire {
            stage: Stage::Greeting,
            packets: PacketReader::default(),
            greeting: None,
            login: None,
            prepared: PreparedStatements::new(statements),
            parameters: Parameters::default(),
            response: Response::new(result_bytes),
            message: None,
            version: String::new(),
            ended: false,
        }
    }

    fn handle_packet(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        match self.stage {
            Stage::Greeting => self.handle_greeting(context, payload, out),
            Stage::Greeted => Err(DecodeError::Malformed { what: "packet within the TLS handshake" }),
            Stage::Login => self.handle_login(context, payload, out),
            Stage::Ready => self.handle_response(context, oldest, payload, out),
        }
    }

    fn handle_greeting(
        &mut self,
        context: Context<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        if payload.first() == Some(&ERROR) {
            return Err(self.refused(payload));
        }
        let plan = context.plan();
        let greeting = Greeting::read(payload)?;
        let (used, offers_tls) = (greeting.used(plan.login.database.is_some()), greeting.offers_tls());
        self.version.clone_from(&greeting.version);
        self.greeting = Some(greeting);
        match &plan.tls {
            TlsUse::Required(_) if !offers_tls => {
                Err(DecodeError::Handshake { what: "the server does not offer TLS" })
            }
            TlsUse::Required(_) | TlsUse::Preferred(_) if offers_tls => {
                push_tls_request(used, self.packets.take_sequence(), out);
                self.stage = Stage::Greeted;
                Ok(Some(WireEvent::BeginTls))
            }
            TlsUse::Never => self.begin_login(plan, false, out).map(|()| None),
            _ => self.begin_login(plan, false, out).map(|()| Some(WireEvent::Plaintext)),
        }
    }

    fn begin_login(
        &mut self,
        plan: &ServerPlan,
        is_secured: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        self.stage = Stage::Login;
        let greeting = self.greeting.take().expect("a login follows the greeting");
        // An attacker between the two could have left the TLS out that was only preferred, or offered another certificate.
        let is_required = matches!(plan.tls, TlsUse::Required(_));
        let is_private = (is_secured && is_required) || plan.is_local_socket;
        let login = LoginProgress::new(&greeting.method, &greeting.nonce, is_private);
        let proof = match login.proof(&plan.login) {
            Ok(proof) => proof,
            Err(refusal) => return Err(self.give_up(refusal)),
        };
        let tls = if is_secured { can::SSL } else { 0 };
        let used = greeting.used(plan.login.database.is_some());
        let request = LoginRequest {
            capabilities: used | tls,
            user: &plan.login.user,
            database: plan.login.database.as_deref(),
            method: login.method().name().as_bytes(),
            proof: &proof,
        };
        self.response.set_no_ends(used & can::DEPRECATE_EOF != 0);
        request.push(self.packets.take_sequence(), out);
        self.login = Some(login);
        Ok(())
    }

    fn handle_login(
        &mut self,
        context: Context<'_>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        const OK: u8 = 0;
        const MORE: u8 = 1;
        const SWITCH: u8 = 0xfe;
        let mut reader = Reader::new(payload, "login");
        let round = match reader.u8()? {
            ERROR => return Err(self.refused(payload)),
            OK => {
                // Affected rows, and the last number that a table gave.
                reader.length()?;
                reader.length()?;
                self.response.set_status(reader.u16()?);
                (self.login, self.stage) = (None, Stage::Ready);
                return Ok(Some(WireEvent::Opened));
            }
            MORE => Round::More(reader.rest()),
            // Without a method: that of MySQL 3.23.
            SWITCH if reader.rest().is_empty() => Round::Switch { method: b"mysql_old_password", nonce: &[] },
            SWITCH => Round::Switch { method: reader.until_zero()?, nonce: reader.rest() },
            _ => return Err(reader.malformed()),
        };
        let login = self.login.as_mut().expect("a login is in progress at its stage");
        match login.handle(round, context.plan()) {
            Ok(Reply::Wait) => {}
            Ok(Reply::Send(message)) => {
                let at = begin_message(out);
                out.extend_from_slice(&message);
                end_message(at, self.packets.take_sequence(), out);
            }
            Err(refusal) => return Err(self.give_up(refusal)),
        }
        Ok(None)
    }

    fn give_up(&mut self, refusal: Refusal) -> DecodeError {
        if !refusal.words.is_empty() {
            self.message = Some(refusal.words);
        }
        refusal.error
    }

    /// The server refused the connection or the login.
    fn refused(&mut self, payload: &[u8]) -> DecodeError {
        match Refused::read(payload) {
            Ok(refused) => {
                self.message = Some(refused.words);
                refused_login()
            }
            Err(error) => error,
        }
    }

    fn handle_response(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        // Within a response, the numbers of packets begin again at 0 after 255.
        let is_within = oldest.is_some() && self.response.has_begun;
        if payload.first() == Some(&ERROR) && self.packets.number() == 0 && !is_within {
            // A farewell belongs to no statement: the server ends the connection.
            self.message = Some(Refused::read(payload)?.words);
            self.ended = true;
            return Ok(None);
        }
        let ask = oldest.ok_or(DecodeError::Unsolicited)?;
        match self.response.handle(payload)? {
            Progress::More => Ok(None),
            Progress::Prepared { id, parameters } => {
                let wanted = context.shared.statements[usize::from(ask.statement)].parameters();
                if wanted != usize::from(parameters) {
                    return Err(DecodeError::Unsupported {
                        what: "`?` in a prepared statement; use {{name}}",
                    });
                }
                self.prepared.set(ask.statement, Preparation::Ready(id));
                push_execute(id, &self.parameters, out);
                self.expect_executed(ask);
                Ok(None)
            }
            Progress::Done => Ok(Some(self.answered(None, Judgement::Good))),
            Progress::Refused(refused) => {
                if self.prepared.get(ask.statement) == Preparation::Requested
                    || matches!(refused.number, UNKNOWN_STATEMENT | NEEDS_REPREPARE)
                {
                    self.prepared.set(ask.statement, Preparation::Absent);
                }
                self.response.in_transaction &= !refused.ends_transaction();
                self.ended |= refused.ends_connection();
                let judgement = refused.judgement;
                self.message = Some(refused.words);
                Ok(Some(self.answered(refused.code, judgement)))
            }
        }
    }

    fn answered(&self, code: Option<units::Code>, judgement: Judgement) -> WireEvent {
        WireEvent::Answered(Answer { code, judgement, row_bytes: self.response.row_bytes })
    }

    fn expect_executed(&mut self, ask: Ask) {
        self.packets.expect_response();
        self.response.expect_result(true, ask.keep);
    }
}

/// `ER_UNKNOWN_STMT_HANDLER`: the server dropped the prepared statement.
const UNKNOWN_STATEMENT: u16 = 1_243;
/// `ER_NEED_REPREPARE`: its tables have changed.
const NEEDS_REPREPARE: u16 = 1_615;

impl Wire for MySqlWire {
    fn open(&mut self, _: &ServerPlan, _: &mut Vec<u8>) -> Option<WireEvent> {
        // The server speaks first.
        None
    }

    fn begin_secured(&mut self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.begin_login(context.plan(), true, out)
    }

    fn handle(
        &mut self,
        context: Context<'_>,
        oldest: Option<Ask>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Option<WireEvent>), DecodeError> {
        let mut consumed = 0;
        loop {
            let interest =
                if self.stage == Stage::Ready { self.response.interest() } else { Interest::Whole };
            let (taken, packet) = self.packets.read(&input[consumed..], interest)?;
            consumed += taken;
            let event = match packet {
                None => return Ok((consumed, None)),
                Some(Packet::InPlace(length)) => {
                    self.handle_packet(context, oldest, &input[consumed - length..consumed], out)?
                }
                Some(Packet::Held) => {
                    let held = self.packets.take_held();
                    let event = self.handle_packet(context, oldest, &held, out);
                    self.packets.put_back(held);
                    event?
                }
                Some(Packet::Skipped) => {
                    self.response.skip_row(self.packets.length(), self.packets.continues())?;
                    None
                }
            };
            if event.is_some() {
                return Ok((consumed, event));
            }
        }
    }

    /// Appends the statement of `ask`, or the request to prepare it.
    fn send(&mut self, sending: Sending<'_>, out: &mut Vec<u8>) {
        self.message = None;
        let Sending { ask, statement, values, .. } = sending;
        match self.prepared.get(ask.statement) {
            _ if !statement.prepared => {
                push_query(statement, values, self.response.backslash, out);
                self.packets.expect_response();
                self.response.expect_result(false, ask.keep);
            }
            Preparation::Ready(id) => {
                push_execute(id, values, out);
                self.expect_executed(ask);
            }
            Preparation::Absent | Preparation::Requested => {
                self.parameters.clone_from(values);
                push_prepare(statement, out);
                self.prepared.set(ask.statement, Preparation::Requested);
                self.packets.expect_response();
                self.response.expect_prepared();
            }
        }
    }

    /// A packet without a number is the server's farewell.
    fn has_begun(&self) -> bool {
        let is_within = self.packets.is_within() && self.packets.number() != 0;
        self.response.has_begun || (self.response.is_of_result() && is_within)
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn rows(&self) -> &Rows {
        &self.response.rows
    }

    fn is_in_transaction(&self) -> bool {
        self.response.in_transaction
    }

    fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    fn version(&self) -> &str {
        &self.version
    }
}
