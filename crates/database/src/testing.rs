//! What the tests of all databases' protocols share: a script, a conversation with a server whose messages are cut
//! anywhere, and how it ended.

use std::sync::OnceLock;

use super::postgres::ScramCache;
use super::server::{Server, Shared};
use super::{Database, DatabaseKind, DatabaseParts, Login, ServerPlan, TlsUse};
use crate::sql::{After, Ask, Keep, Parameters, Rows, Script, Statement};
use codec::tls::{Resumption, TlsOptions, TlsPlan, Trust, Versions};
use codec::{
    CloseEvent, DecodeError, Encoded, Event, FailedCheck, Judgement, Key, Next, Opening, Origin, Protocol,
    Route, Session, UsedProtocols,
};
use units::Nanos;

/// Statements in order, each with one value, and the rows that were seen.
pub(crate) struct Statements {
    keep: Keep,
    has_value: bool,
    count: u64,
}

impl Script for Statements {
    type Journey = u16;
    type Taken = Rows;

    fn begin(&self, n: u64) -> u16 {
        (n % self.count) as u16
    }

    fn route(&self, _: &u16) -> Route {
        Route::default()
    }

    fn kinds(&self) -> usize {
        1
    }

    fn ask(&self, statement: &u16, parameters: &mut Parameters) -> Ask {
        if self.has_value {
            parameters.integer(7);
        }
        Ask { statement: *statement, step: 0, keep: self.keep }
    }

    fn take(&self, _: u16, rows: &Rows) -> Result<Rows, FailedCheck> {
        Ok(rows.clone())
    }

    fn advance(&self, _: u16, _: After<Rows>) -> Next<u16> {
        Next::End
    }
}

/// What is spoken, and how.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub kind: DatabaseKind,
    pub prepared: bool,
    pub is_local_socket: bool,
    pub trusts_public_key: bool,
    pub keep: Keep,
    pub pipeline: usize,
}

/// A run of one statement, or of two with a value.
pub(crate) fn run(pieces: &[&str], form: Form) -> Database<Statements> {
    run_after(&[], pieces, form)
}

/// The same, after the statements `setup` on each connection.
pub(crate) fn run_after(setup: &[&str], pieces: &[&str], form: Form) -> Database<Statements> {
    let login = Login { user: "app".into(), password: "secret".into(), database: Some("shop".into()) };
    let has_value = pieces.len() > 1;
    let pieces = pieces.iter().map(|&piece| piece.to_owned()).collect();
    // Two with a value; without one, as the recorded servers were sent, one.
    let count = if has_value { 2 } else { 1 };
    let Form { kind, prepared, is_local_socket, trusts_public_key, keep, pipeline } = form;
    let statements = vec![Statement { pieces, prepared }; count];
    let servers = vec![ServerPlan { login, tls: TlsUse::Never, is_local_socket, trusts_public_key }];
    let setup = setup.iter().map(|text| Statement::text(*text)).collect();
    let script = Statements { keep, has_value, count: count as u64 };
    Database::new(script, DatabaseParts { kind, statements, servers, setup, result_bytes: 1_000, pipeline })
        .unwrap()
}

/// TLS that checks no certificate.
pub(crate) fn tls() -> TlsPlan {
    let options = TlsOptions {
        trust: Trust::Anyone,
        identity: None,
        alpn: Vec::new(),
        versions: Versions::Any,
        resumption: Resumption::Off,
        now: || Nanos(0),
    };
    options.config().unwrap().for_server("localhost").unwrap()
}

/// What the connections to one server share, for a test of the protocol alone.
pub(crate) fn shared(kind: DatabaseKind, plan: ServerPlan) -> Shared {
    Shared {
        kind,
        statements: Vec::new(),
        commands: Vec::new(),
        servers: vec![Server { plan, scram: ScramCache::default() }],
        setup: Vec::new(),
        result_bytes: 1_000,
        depth: 1,
        used_protocols: UsedProtocols::default(),
        server_version: OnceLock::new(),
    }
}

/// How a request, or the connection, ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    Opened,
    Reply(u64, String, Judgement, u64),
    Row(Vec<Option<String>>),
    Broke(DecodeError),
    Closed(CloseEvent),
}

/// Feeds what the server sends, one answer after each message of the client, in pieces of the sizes that `cut` gives.
/// The client sends statement 0, then 1, then 0 and so on, `statements` of them, as many at once as the run has in
/// flight.
pub(crate) fn converse(
    run: &Database<Statements>,
    answers: &[Vec<u8>],
    statements: u64,
    mut cut: impl FnMut() -> usize,
) -> (Vec<Ending>, Vec<u8>, Option<String>) {
    let mut session = run.session(Origin(0));
    let (mut sent, mut out, mut endings) = (Vec::new(), Vec::new(), Vec::new());
    assert_eq!(session.open(&mut out), Opening::Auth);
    let mut next = 0;
    'all: for answer in answers {
        let mut rest = answer.as_slice();
        let mut began = false;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(cut().clamp(1, rest.len()));
            rest = after;
            let mut piece = piece;
            while !piece.is_empty() {
                let step = match session.handle_input(piece, &mut out) {
                    Ok(step) => step,
                    Err(error) => {
                        endings.push(Ending::Broke(error));
                        break 'all;
                    }
                };
                assert!(step.consumed <= piece.len() && !step.more);
                piece = &piece[step.consumed..];
                match step.event {
                    Some(Event::Opened) => endings.push(Ending::Opened),
                    Some(Event::Finished(key, reply)) => {
                        let code = reply.code.map(|code| code.to_string()).unwrap_or_default();
                        endings.push(Ending::Reply(key.0, code, reply.judgement, reply.body_bytes));
                        let row = session.hand_over().map(|rows| rows.first).filter(|row| !row.is_empty());
                        endings.extend(row.map(Ending::Row));
                        began = false;
                    }
                    Some(Event::Began(_)) => {
                        assert!(piece.is_empty() && !std::mem::replace(&mut began, true))
                    }
                    Some(other) => panic!("{other:?} is nothing without TLS"),
                    None => assert!(piece.is_empty()),
                }
            }
        }
        let replies = endings.iter().filter(|ending| matches!(ending, Ending::Reply(..))).count() as u64;
        let is_open = endings.first() == Some(&Ending::Opened);
        while is_open && next < statements && next - replies < session.capacity() as u64 {
            let journey = run.begin(next);
            assert_eq!(session.request(&journey, Key(next), &mut out), Encoded::Whole);
            next += 1;
        }
        sent.append(&mut out);
    }
    if !matches!(endings.last(), Some(Ending::Broke(_))) {
        endings.push(Ending::Closed(session.handle_close()));
    }
    (endings, sent, session.server_message().map(str::to_owned))
}

/// The same endings however the input is cut.
#[track_caller]
pub(crate) fn check(
    run: &Database<Statements>,
    answers: &[Vec<u8>],
    statements: u64,
) -> (Vec<Ending>, Vec<u8>, Option<String>) {
    let whole = converse(run, answers, statements, || usize::MAX);
    let bytes = converse(run, answers, statements, || 1);
    assert_eq!((&bytes.0, &bytes.2), (&whole.0, &whole.2));
    let mut state = 1u32;
    for _ in 0..50 {
        let cut = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 28) as usize
        };
        let cuts = converse(run, answers, statements, cut);
        assert_eq!((&cuts.0, &cuts.2), (&whole.0, &whole.2));
    }
    whole
}

pub(crate) fn reply(key: u64, bytes: u64) -> Ending {
    Ending::Reply(key, String::new(), Judgement::Good, bytes)
}

/// Checks the conversations of a recorded server. In `text` they are apart by empty lines; each begins with its title
/// and how it ends, and has a line of what the server sent, in hexadecimal digits, for each message of the client.
#[track_caller]
pub(crate) fn check_recorded(text: &str, run: impl Fn(&str) -> Database<Statements>) {
    let byte = |pair: &str| u8::from_str_radix(pair, 16).unwrap();
    let bytes = |line: &str| (0..line.len() / 2).map(|at| byte(&line[2 * at..2 * at + 2])).collect();
    let mut wrong = Vec::new();
    for block in text.split("\n\n") {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let Some(head) = lines.next() else { continue };
        let (title, expected) = head.split_once(": ").unwrap();
        let answers: Vec<Vec<u8>> = lines.map(bytes).collect();
        let (endings, _, message) = check(&run(title), &answers, 2);
        let shown: Vec<String> = endings.iter().map(|ending| format!("{ending:?}")).collect();
        let shown = format!("{} {}", shown.join(" "), message.unwrap_or_default()).trim().to_owned();
        wrong.extend((shown != expected).then(|| format!("{title}: {shown}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
