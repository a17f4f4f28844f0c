//! One Redis connection without TLS: the login, then commands, several of which may be in flight.
//!
//! ```text
//! Hello ─┬─ a map ───────────────────┬─► Select ─ OK ─► Ready ◄─► commands
//!        └─ unknown ─► Auth ─ OK ────┘   (only for another database than 0)
//! ```

use units::Code;

use super::command::push_words;
use super::reply::{Reply, ReplyReader};
use crate::sql::{Ask, Column, Keep, Rows};
use crate::{Answer, Context, Login, Sending, ServerPlan, TlsUse, Wire, WireEvent, printable, refused_login};
use codec::{DecodeError, Judgement};

/// The protocol of one connection.
#[derive(Debug)]
pub(crate) struct RedisWire {
    stage: Stage,
    replies: ReplyReader,
    rows: Rows,
    /// The server's last error.
    message: Option<String>,
    /// The server's version.
    version: String,
    /// After `MULTI` or `WATCH`.
    in_transaction: bool,
    /// Memory for an argument.
    scratch: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Hello,
    Auth,
    Select,
    Ready,
}

/// The values of the reply to `HELLO`: names and values in turn. Redis 7 has 14, modules apart.
const KEPT_OF_HELLO: usize = 14;

impl RedisWire {
    /// A connection of a run whose replies have a limit of `result_bytes`.
    pub(crate) fn new(result_bytes: u64) -> RedisWire {
        RedisWire {
            stage: Stage::Hello,
            replies: ReplyReader::new(result_bytes),
            rows: Rows::default(),
            message: None,
            version: String::new(),
            in_transaction: false,
            scratch: Vec::new(),
        }
    }

    fn handle_login(
        &mut self,
        login: &Login,
        reply: Reply,
        out: &mut Vec<u8>,
    ) -> Result<Option<WireEvent>, DecodeError> {
        match (self.stage, reply.error) {
            // Redis 5 and older.
            (Stage::Hello, Some(error)) if is_unknown(&error) => {
                if login.password.is_empty() {
                    return Ok(self.select(login, out));
                }
                let user = Some(login.user.as_str()).filter(|user| !user.is_empty());
                let words: Vec<&str> =
                    ["AUTH"].into_iter().chain(user).chain([login.password.as_str()]).collect();
                push_words(&words, out);
                self.stage = Stage::Auth;
                Ok(None)
            }
            (_, Some(error)) => {
                // What follows are words of this client's command, of which the last may be a part of the password.
                let error = error.split(", with args beginning with").next().unwrap_or_default();
                self.message = Some(words(error, &login.password));
                Err(refused_login())
            }
            (Stage::Hello, None) => {
                let version = reply.kept.chunks_exact(2).find(|pair| pair[0].as_deref() == Some("version"));
                if let Some([_, Some(version)]) = version {
                    self.version = printable(version.as_bytes());
                }
                Ok(self.select(login, out))
            }
            (Stage::Auth, None) => Ok(self.select(login, out)),
            (Stage::Select | Stage::Ready, None) => {
                self.stage = Stage::Ready;
                Ok(Some(WireEvent::Opened))
            }
        }
    }

    /// Chooses the database, unless it is the one that a connection begins with.
    fn select(&mut self, login: &Login, out: &mut Vec<u8>) -> Option<WireEvent> {
        match login.database.as_deref() {
            None | Some("0") => {
                self.stage = Stage::Ready;
                Some(WireEvent::Opened)
            }
            Some(number) => {
                push_words(&["SELECT", number], out);
                self.stage = Stage::Select;
                None
            }
        }
    }

    fn answered(&mut self, context: Context<'_>, ask: Ask, reply: Reply) -> WireEvent {
        let Reply { count, bytes, error, kept, .. } = reply;
        if let Some(command) = context.shared.commands.get(usize::from(ask.statement)) {
            match command.name.as_str() {
                "MULTI" | "WATCH" => self.in_transaction |= error.is_none(),
                "EXEC" | "DISCARD" | "UNWATCH" => self.in_transaction = false,
                _ => {}
            }
        }
        self.rows.clear();
        let Some(error) = error else {
            self.rows.count = count;
            if ask.keep == Keep::FirstRow && count > 0 {
                let name = "value".to_owned();
                self.rows.columns.push(Column { name, is_integer: false });
                self.rows.first.extend(kept);
            }
            self.message = None;
            return WireEvent::Answered(Answer { code: None, judgement: Judgement::Good, row_bytes: bytes });
        };
        let word = error.split(' ').next().unwrap_or_default();
        let (code, judgement) = (Code::new(word.as_bytes()), judge(word));
        self.message = Some(words(&error, &context.plan().login.password));
        WireEvent::Answered(Answer { code, judgement, row_bytes: bytes })
    }
}

fn begin_login(login: &Login, out: &mut Vec<u8>) {
    let user = if login.user.is_empty() { "default" } else { &login.user };
    match login.password.is_empty() {
        true => push_words(&["HELLO", "3"], out),
        false => push_words(&["HELLO", "3", "AUTH", user, &login.password], out),
    }
}

/// Whether the server does not know `HELLO`, or not the version of the protocol.
fn is_unknown(error: &str) -> bool {
    error.starts_with("ERR unknown command") || error.starts_with("NOPROTO")
}

/// How much of an error's text is kept.
const LONGEST_WORDS: usize = 300;

/// The beginning of an error's text, without the password.
fn words(error: &str, password: &str) -> String {
    let shown = if password.is_empty() { error.to_owned() } else { error.replace(password, "(redacted)") };
    shown.chars().take(LONGEST_WORDS).collect()
}

/// Whose fault an error is, by its first word.
fn judge(word: &str) -> Judgement {
    match word {
        "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "BUSY" | "MASTERDOWN" | "READONLY"
        | "OOM" | "MISCONF" | "NOREPLICAS" | "UNKILLABLE" => Judgement::ServerError,
        // ERR, WRONGTYPE, NOAUTH, NOPERM, NOSCRIPT, EXECABORT, BUSYKEY and so on.
        _ => Judgement::RequestError,
    }
}

impl Wire for RedisWire {
    fn open(&mut self, plan: &ServerPlan, out: &mut Vec<u8>) -> Option<WireEvent> {
        match plan.tls {
            TlsUse::Never => {
                begin_login(&plan.login, out);
                None
            }
            // Before the first byte.
            TlsUse::Preferred(_) | TlsUse::Required(_) => Some(WireEvent::BeginTls),
        }
    }

    fn begin_secured(&mut self, context: Context<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        begin_login(&context.plan().login, out);
        Ok(())
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
            let keeps = match oldest {
                _ if self.stage == Stage::Hello => KEPT_OF_HELLO,
                Some(ask) if ask.keep == Keep::FirstRow => 1,
                _ => 0,
            };
            let (taken, reply) = self.replies.read(&input[consumed..], keeps)?;
            consumed += taken;
            let event = match reply {
                None => return Ok((consumed, None)),
                Some(reply) if reply.is_push => None,
                Some(reply) if self.stage != Stage::Ready => {
                    self.handle_login(&context.plan().login, reply, out)?
                }
                Some(reply) => {
                    let ask = oldest.ok_or(DecodeError::Unsolicited)?;
                    Some(self.answered(context, ask, reply))
                }
            };
            if event.is_some() {
                return Ok((consumed, event));
            }
        }
    }

    fn send(&mut self, sending: Sending<'_>, out: &mut Vec<u8>) {
        if sending.is_first {
            self.message = None;
        }
        let command = sending.command.expect("the statements of a run of Redis are commands");
        command.push(sending.values, &mut self.scratch, out);
    }

    fn has_begun(&self) -> bool {
        self.stage == Stage::Ready && self.replies.is_within()
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn rows(&self) -> &Rows {
        &self.rows
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
