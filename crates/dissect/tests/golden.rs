//! Every transcript of a real server gives the events in the file next to it, however it is cut.

mod transcripts;

use dissect::{MySqlCommand, RequestKind};
use expect_test::expect_file;
use proptest::prelude::*;
use transcripts::{Dissected, TranscriptPiece, all, dissect_at, folder, hinted, named};

#[test]
fn transcripts_give_the_expected_events() {
    for transcript in all() {
        let text = dissect_at(&transcript.pieces, usize::MAX, hinted(&transcript)).render();
        expect_file![folder().join(format!("{}.expected", transcript.name))].assert_eq(&text);
    }
}

#[test]
fn a_protocol_is_known_without_a_hint() {
    for transcript in all().into_iter().filter(|transcript| transcript.name != "redis-inline") {
        let hinted = dissect_at(&transcript.pieces, usize::MAX, hinted(&transcript));
        let sniffed = dissect_at(&transcript.pieces, usize::MAX, dissect::DissectorSettings::default());
        assert_eq!(sniffed, hinted, "{}", transcript.name);
    }
}

fn requests(name: &str, counted: impl Fn(&str, RequestKind) -> bool) -> usize {
    let dissected: Dissected = dissect_at(&named(name).pieces, usize::MAX, hinted(&named(name)));
    dissected.exchanges.iter().filter(|exchange| counted(&exchange.digest, exchange.request.kind)).count()
}

/// Whether the server's status variable `Questions` counts the command.
///
/// MariaDB 10.11 counts all but PING, STATISTICS, STMT_PREPARE, STMT_CLOSE and STMT_RESET: QUIT is counted, and so are
/// failed commands. One QUERY with several statements counts once per executed statement.
fn is_question(command: MySqlCommand) -> bool {
    !matches!(
        command,
        MySqlCommand::PING
            | MySqlCommand::STATISTICS
            | MySqlCommand::STMT_PREPARE
            | MySqlCommand::STMT_CLOSE
            | MySqlCommand::STMT_RESET
    )
}

/// The increase of the server's own counter while the transcript was taken, from `testdata/README.md`.
#[test]
fn mariadb_counts_the_same_questions() {
    let questions = |name: &str| {
        let dissected: Dissected = dissect_at(&named(name).pieces, usize::MAX, hinted(&named(name)));
        let of = |exchange: &transcripts::Exchange| match exchange.request.kind {
            // Each statement of a query counts.
            RequestKind::MySql(code) if is_question(MySqlCommand(code)) => {
                1 + exchange.digest.matches("; ").count()
            }
            _ => 0,
        };
        dissected.exchanges.iter().map(of).sum::<usize>()
    };
    assert_eq!(questions("mariadb-session"), 14);
    assert_eq!(questions("mariadb-multi"), 5);
    assert_eq!(questions("mariadb-ping"), 1);
    assert_eq!(questions("mariadb-status"), 1);
    assert_eq!(questions("mariadb-sysbench"), 41);
    assert_eq!(questions("mariadb-slap") + questions("mariadb-slap-control"), 12);
}

#[test]
fn as_many_requests_are_reported_as_the_client_sent() {
    assert_eq!(requests("redis-bench-set", |digest, _| digest == "SET key:{}"), 192);
    assert_eq!(requests("redis-bench-get", |digest, _| digest == "GET key:{}"), 192);
    // Three transactions of seven statements.
    assert_eq!(requests("postgres-simple", |_, kind| kind == RequestKind::Query), 21);
    assert_eq!(requests("postgres-extended", |_, kind| kind == RequestKind::Execute), 21);
    assert_eq!(requests("postgres-prepared", |_, kind| kind == RequestKind::Execute), 21);
    // Three times three within a pipeline, and one after it.
    assert_eq!(requests("postgres-pipeline", |_, kind| kind == RequestKind::Execute), 12);
    assert_eq!(requests("postgres-pipeline-prepared", |_, kind| kind == RequestKind::Execute), 12);
    assert_eq!(requests("nginx-pipelined", |_, _| true), 29);
}

/// Cuts each piece into pieces of the lengths that `next` returns.
fn recut(pieces: &[TranscriptPiece], mut next: impl FnMut() -> usize) -> Vec<TranscriptPiece> {
    let mut cut = Vec::new();
    for piece in pieces {
        let mut rest = piece.bytes.as_slice();
        while !rest.is_empty() {
            let (bytes, after) = rest.split_at(next().clamp(1, rest.len()));
            cut.push(TranscriptPiece { direction: piece.direction, bytes: bytes.to_vec() });
            rest = after;
        }
    }
    cut
}

#[test]
fn transcripts_cut_into_bytes_give_the_same_events() {
    for transcript in all() {
        let settings = hinted(&transcript);
        let whole = dissect_at(&transcript.pieces, usize::MAX, settings);
        let bytes = dissect_at(&recut(&transcript.pieces, || 1), usize::MAX, settings);
        assert_eq!(bytes.render(), whole.render(), "{}", transcript.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn transcripts_cut_at_random_give_the_same_events(lengths in proptest::collection::vec(1usize..200, 1..40)) {
        for transcript in all() {
            let settings = hinted(&transcript);
            let whole = dissect_at(&transcript.pieces, usize::MAX, settings);
            let mut turn = lengths.iter().cycle();
            let cut = recut(&transcript.pieces, || *turn.next().unwrap_or(&1));
            prop_assert_eq!(dissect_at(&cut, usize::MAX, settings).render(), whole.render(), "{}", transcript.name);
        }
    }
}
