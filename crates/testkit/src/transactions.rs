//! A toy protocol with everything that databases require of the engine: the server speaks first, TLS begins after a
//! plaintext exchange, login takes several rounds, statements are prepared per connection, messages arrive without a
//! request, and transactions fail in a way that makes retries useful.
//!
//! The client sends lines that begin with a number, as the simulated server expects; the server sends lines that begin
//! with a word.
//!
//! | the server's line | means |
//! |---|---|
//! | `hello` | its greeting |
//! | `tls yes`, `tls no` | whether it supports TLS; sent only if the client requests TLS |
//! | `secured` | the handshake has ended |
//! | `prove it` | another round of the login |
//! | `welcome` | the login has ended |
//! | `denied WORDS` | the login is refused, and why |
//! | `notice WORDS` | a message that was not requested |
//! | `going WORDS` | why it will close the connection |
//! | `prepared N` | the statement of request `N` is prepared |
//! | `row N` | a part of the response to `N` |
//! | `ok N`, `deadlock N`, `error N` | the end of that response |

use std::sync::{Arc, Mutex};

use codec::{
    CloseEvent, ConnectionUse, DecodeError, Encoded, Ended, Event, Judgement, Key, Next, Opening, Origin,
    Preparation, PreparedStatements, Protocol, Reply, Route, Session, Step,
};
use units::{Code, Nanos};

/// What a run of the toy protocol sends: each unit is the transaction `begin`, `read`, `commit`.
#[derive(Debug, Clone)]
pub struct Transactions {
    /// Whether the client requests TLS; it continues without if the server has none.
    pub tls: bool,
    /// Whether a transaction keeps its connection.
    pub connection: ConnectionUse,
    /// The maximum number of retries of a transaction.
    pub retries: u32,
    /// The time from a failed try to the next one.
    pub backoff: Nanos,
    /// The time between two statements.
    pub think: Nanos,
    /// The maximum number of requests on one connection.
    pub room: usize,
    /// Every line that was sent, in order.
    pub sent: Arc<Mutex<Vec<String>>>,
}

impl Default for Transactions {
    /// On a leased connection, without TLS, retries, pauses or pipelining.
    fn default() -> Transactions {
        Transactions {
            tls: false,
            connection: ConnectionUse::Leased,
            retries: 0,
            backoff: Nanos::ZERO,
            think: Nanos::ZERO,
            room: 1,
            sent: Arc::default(),
        }
    }
}

/// One transaction in progress.
#[derive(Debug, Clone, Copy)]
pub struct Transaction {
    n: u64,
    statement: usize,
    attempt: u32,
}

const STATEMENTS: [&str; 3] = ["begin", "read", "commit"];

impl Protocol for Transactions {
    type Journey = Transaction;
    type Session = TransactionSession;

    fn session(&self, _: Origin) -> TransactionSession {
        TransactionSession {
            run: self.clone(),
            stage: Stage::Greeting,
            prepared: PreparedStatements::new(1),
            outstanding: Vec::new(),
            began: false,
            in_transaction: false,
            message: None,
            line: Vec::new(),
        }
    }

    fn begin(&self, n: u64) -> Transaction {
        Transaction { n, statement: 0, attempt: 0 }
    }

    fn route(&self, transaction: &Transaction) -> Route {
        let kind = transaction.statement as u16;
        Route { kind, journey: Some(0), connection: self.connection, ..Route::default() }
    }

    fn kinds(&self) -> usize {
        STATEMENTS.len()
    }

    fn journeys(&self) -> usize {
        1
    }

    fn advance(&self, transaction: Transaction, ended: Ended<'_, TransactionSession>) -> Next<Transaction> {
        let retryable = match ended {
            Ended::Answered { judgement: Judgement::Good, .. } => {
                let statement = transaction.statement + 1;
                if statement == STATEMENTS.len() {
                    return Next::End;
                }
                return Next::Then { journey: Transaction { statement, ..transaction }, think: self.think };
            }
            Ended::Answered { judgement, .. } => judgement == Judgement::Retryable,
            Ended::Unanswered => true,
        };
        if !retryable || transaction.attempt >= self.retries {
            return Next::End;
        }
        let journey = Transaction { statement: 0, attempt: transaction.attempt + 1, ..transaction };
        Next::Retry { journey, think: self.backoff }
    }
}

/// The client's side of one connection.
#[derive(Debug)]
pub struct TransactionSession {
    run: Transactions,
    stage: Stage,
    prepared: PreparedStatements,
    /// Each with the line to send once the statement is prepared.
    outstanding: Vec<(Key, Option<String>)>,
    /// Whether anything of the oldest response has come.
    began: bool,
    in_transaction: bool,
    message: Option<String>,
    /// The beginning of a line whose rest has not come.
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Greeting,
    AskedForTls,
    Handshake,
    Login,
    Ready,
    Refused,
}

impl TransactionSession {
    fn send(&self, line: &str, out: &mut Vec<u8>) {
        self.run.sent.lock().expect("no test breaks while it logs").push(line.to_owned());
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }

    fn opening_line(&mut self, line: &str, out: &mut Vec<u8>) -> Result<Option<Event>, DecodeError> {
        if line.starts_with("notice ") {
            return Ok(None);
        }
        let (stage, event, next) = match (self.stage, line) {
            (Stage::Greeting, "hello") if self.run.tls => (Stage::AskedForTls, None, "0 tls?"),
            (Stage::Greeting, "hello") => (Stage::Login, None, "0 login"),
            (Stage::AskedForTls, "tls yes") => (Stage::Handshake, None, "0 handshake"),
            (Stage::AskedForTls, "tls no") => (Stage::Login, Some(Event::Plaintext), "0 login"),
            (Stage::Handshake, "secured") => (Stage::Login, Some(Event::Secured), "0 login"),
            (Stage::Login, "prove it") => (Stage::Login, None, "0 proof"),
            (Stage::Login, "welcome") => {
                self.stage = Stage::Ready;
                return Ok(Some(Event::Opened));
            }
            _ => {
                let Some(words) = line.strip_prefix("denied ") else {
                    return Err(DecodeError::Malformed { what: "greeting" });
                };
                self.stage = Stage::Refused;
                self.message = Some(words.to_owned());
                return Err(DecodeError::Login { what: "login refused" });
            }
        };
        self.stage = stage;
        self.send(next, out);
        Ok(event)
    }

    fn response_line(&mut self, line: &str, out: &mut Vec<u8>) -> Result<Option<Event>, DecodeError> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "notice" => return Ok(None),
            "going" => {
                self.message = Some(rest.to_owned());
                return Ok(None);
            }
            _ => {}
        }
        let Some(index) = self.outstanding.iter().position(|(key, _)| key.0.to_string() == rest) else {
            return Err(DecodeError::Unsolicited);
        };
        let key = self.outstanding[index].0;
        let (code, judgement) = match word {
            "prepared" => {
                self.prepared.set(0, Preparation::Ready(7));
                if let Some(next) = self.outstanding[index].1.take() {
                    self.send(&next, out);
                }
                return Ok(None);
            }
            "row" => {
                let event = (!self.began).then_some(Event::Began(key));
                self.began = true;
                return Ok(event);
            }
            "ok" => (None, Judgement::Good),
            "deadlock" => {
                // The server has rolled back.
                self.in_transaction = false;
                (Code::new(b"40001/1213"), Judgement::Retryable)
            }
            "error" => (Code::new(b"42000/1064"), Judgement::RequestError),
            _ => return Err(DecodeError::Malformed { what: "response" }),
        };
        self.outstanding.remove(index);
        self.began = false;
        Ok(Some(Event::Finished(key, Reply { code, judgement, body_bytes: 0, keep: true })))
    }
}

impl Session for TransactionSession {
    type Journey = Transaction;

    fn open(&mut self, _: &mut Vec<u8>) -> Opening {
        if self.run.tls { Opening::Tls } else { Opening::Auth }
    }

    fn capacity(&self) -> usize {
        if self.stage == Stage::Refused { 0 } else { self.run.room }
    }

    fn request(&mut self, transaction: &Transaction, key: Key, out: &mut Vec<u8>) -> Encoded {
        assert_eq!(self.stage, Stage::Ready, "requests follow the login");
        let name = STATEMENTS[transaction.statement];
        let line = format!("{} {name} try {}", transaction.n, transaction.attempt);
        self.in_transaction = name != "commit";
        let prepares = name == "read" && self.prepared.get(0) == Preparation::Absent;
        if prepares {
            self.prepared.set(0, Preparation::Requested);
            self.send(&format!("{} prepare", transaction.n), out);
        } else {
            self.send(&line, out);
        }
        self.outstanding.push((key, prepares.then_some(line)));
        Encoded::Whole
    }

    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, DecodeError> {
        let mut consumed = 0;
        while let Some(length) = input[consumed..].iter().position(|&byte| byte == b'\n') {
            self.line.extend_from_slice(&input[consumed..consumed + length]);
            consumed += length + 1;
            let line = String::from_utf8(std::mem::take(&mut self.line)).expect("a test's server sends text");
            let event = match self.stage {
                Stage::Ready => self.response_line(&line, out)?,
                _ => self.opening_line(&line, out)?,
            };
            if event.is_some() {
                return Ok(Step::new(consumed, event));
            }
        }
        self.line.extend_from_slice(&input[consumed..]);
        Ok(Step::new(input.len(), None))
    }

    fn handle_close(&mut self) -> CloseEvent {
        match (self.outstanding.is_empty(), self.began) {
            (true, _) => CloseEvent::Idle,
            (false, false) => CloseEvent::BeforeResponse,
            (false, true) => CloseEvent::Incomplete,
        }
    }

    fn is_reusable(&self) -> bool {
        !self.in_transaction
    }

    fn server_message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}
