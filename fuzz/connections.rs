//! What the targets of databases share: a run of one statement, a connection that is fed pieces, and how it ended.

use database::{Database, DatabaseKind, DatabaseParts, Login, ServerPlan, TlsUse};
use database::sql::{Statement, StatementTurns};
use codec::{CloseEvent, DecodeError, Event, Key, Origin, Protocol, Reply, Session};

/// Checks that the connections of `run` end alike however `input` is cut, by `seed` or everywhere.
pub fn check(run: &Database<StatementTurns>, input: &[u8], seed: u8) {
    let whole = endings(run, std::iter::once(input));
    assert_eq!(endings(run, input.chunks(1)), whole);
    assert_eq!(endings(run, cuts(input, seed).into_iter()), whole);
}

/// A run that sends `SELECT 1`.
pub fn run(kind: DatabaseKind, prepared: bool, is_local_socket: bool, pipeline: usize) -> Database<StatementTurns> {
    let login = Login { user: "u".into(), password: "p".into(), database: None };
    let statement = Statement { prepared, ..Statement::text("SELECT 1") };
    let parts = DatabaseParts {
        kind,
        statements: vec![statement],
        servers: vec![ServerPlan { login, tls: TlsUse::Never, is_local_socket, trusts_public_key: true }],
        setup: Vec::new(),
        result_bytes: 4_096,
        pipeline,
    };
    Database::new(StatementTurns::new(vec![0]).expect("one statement"), parts).expect("a statement that can be sent")
}

/// How the login, a statement or the connection ended.
#[derive(Debug, PartialEq)]
enum Ending {
    Opened,
    Reply(Reply),
    Failed(DecodeError),
    Closed(CloseEvent),
}

fn endings<'a>(run: &Database<StatementTurns>, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Ending> {
    let mut session = run.session(Origin(0));
    let (mut out, mut endings, mut asked) = (Vec::new(), Vec::new(), 0);
    session.open(&mut out);
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let step = match session.handle_input(rest, &mut out) {
                Ok(step) => step,
                Err(error) => {
                    endings.push(Ending::Failed(error));
                    return endings;
                }
            };
            assert!(step.consumed > 0 && step.consumed <= rest.len());
            rest = &rest[step.consumed..];
            match step.event {
                Some(Event::Opened) => endings.push(Ending::Opened),
                Some(Event::Finished(_, reply)) => endings.push(Ending::Reply(reply)),
                Some(Event::Began(_)) | None => assert!(rest.is_empty()),
                Some(other) => panic!("{other:?} is nothing that a connection without TLS meets"),
            }
            // One ending is that of the login.
            let is_open = endings.first() == Some(&Ending::Opened);
            while is_open && asked + 1 < (endings.len() + session.capacity()) as u64 {
                session.request(&run.begin(asked), Key(asked), &mut out);
                asked += 1;
            }
            assert!(out.len() < 1 << 20);
            out.clear();
        }
    }
    endings.push(Ending::Closed(session.handle_close()));
    endings
}

/// Pieces of 0 to 15 bytes, by a small generator.
fn cuts(input: &[u8], seed: u8) -> Vec<&[u8]> {
    let (mut state, mut rest, mut pieces) = (u32::from(seed) + 1, input, Vec::new());
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, after) = rest.split_at((state >> 28).min(rest.len() as u32) as usize);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
