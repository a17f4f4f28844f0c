//! Every transcript of a real server is read as it stands in the file beside it, however it is cut.

mod transcripts;

use dissect::{Kind, MySqlCommand};
use expect_test::expect_file;
use proptest::prelude::*;
use transcripts::{Said, Story, all, folder, hinted, named, story};

#[test]
fn transcripts_are_read_as_they_stand() {
    for transcript in all() {
        let text = story(&transcript.pieces, usize::MAX, hinted(&transcript)).render();
        expect_file![folder().join(format!("{}.told", transcript.name))].assert_eq(&text);
    }
}

#[test]
fn a_protocol_is_known_without_a_hint() {
    for transcript in all().into_iter().filter(|transcript| transcript.name != "redis-inline") {
        let hinted = story(&transcript.pieces, usize::MAX, hinted(&transcript));
        let sniffed = story(&transcript.pieces, usize::MAX, dissect::Settings::default());
        assert_eq!(sniffed, hinted, "{}", transcript.name);
    }
}

fn requests(name: &str, counted: impl Fn(&str, Kind) -> bool) -> usize {
    let told: Story = story(&named(name).pieces, usize::MAX, hinted(&named(name)));
    told.told.iter().filter(|told| counted(&told.digest, told.asked.kind)).count()
}

/// What the server's own counter rose by while the transcript was taken, as `testdata/README.md` has it.
#[test]
fn mariadb_counts_the_same_questions() {
    let questions = |name: &str| {
        let told: Story = story(&named(name).pieces, usize::MAX, hinted(&named(name)));
        let of = |told: &transcripts::Told| match told.asked.kind {
            // Each statement of a query counts.
            Kind::MySql(code) if MySqlCommand(code).is_question() => 1 + told.digest.matches("; ").count(),
            _ => 0,
        };
        told.told.iter().map(of).sum::<usize>()
    };
    assert_eq!(questions("mariadb-session"), 14);
    assert_eq!(questions("mariadb-multi"), 5);
    assert_eq!(questions("mariadb-ping"), 1);
    assert_eq!(questions("mariadb-status"), 1);
    assert_eq!(questions("mariadb-sysbench"), 41);
    assert_eq!(questions("mariadb-slap") + questions("mariadb-slap-control"), 12);
}

#[test]
fn as_many_are_told_as_the_client_sent() {
    assert_eq!(requests("redis-bench-set", |digest, _| digest == "SET key:{}"), 192);
    assert_eq!(requests("redis-bench-get", |digest, _| digest == "GET key:{}"), 192);
    // Three transactions of seven statements.
    assert_eq!(requests("postgres-simple", |_, kind| kind == Kind::Query), 21);
    assert_eq!(requests("postgres-extended", |_, kind| kind == Kind::Execute), 21);
    assert_eq!(requests("postgres-prepared", |_, kind| kind == Kind::Execute), 21);
    // Three times three within a pipeline, and one behind it.
    assert_eq!(requests("postgres-pipeline", |_, kind| kind == Kind::Execute), 12);
    assert_eq!(requests("postgres-pipeline-prepared", |_, kind| kind == Kind::Execute), 12);
    assert_eq!(requests("nginx-pipelined", |_, _| true), 29);
}

/// Cuts each piece into pieces of the lengths that `next` gives.
fn recut(pieces: &[Said], mut next: impl FnMut() -> usize) -> Vec<Said> {
    let mut cut = Vec::new();
    for said in pieces {
        let mut rest = said.bytes.as_slice();
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(next().clamp(1, rest.len()));
            cut.push(Said { direction: said.direction, bytes: piece.to_vec() });
            rest = behind;
        }
    }
    cut
}

#[test]
fn transcripts_are_read_alike_byte_by_byte() {
    for transcript in all() {
        let settings = hinted(&transcript);
        let whole = story(&transcript.pieces, usize::MAX, settings);
        let bytes = story(&recut(&transcript.pieces, || 1), usize::MAX, settings);
        assert_eq!(bytes.render(), whole.render(), "{}", transcript.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
    #[test]
    fn transcripts_are_read_alike_at_random_cuts(lengths in proptest::collection::vec(1usize..200, 1..40)) {
        for transcript in all() {
            let settings = hinted(&transcript);
            let whole = story(&transcript.pieces, usize::MAX, settings);
            let mut turn = lengths.iter().cycle();
            let cut = recut(&transcript.pieces, || *turn.next().unwrap_or(&1));
            prop_assert_eq!(story(&cut, usize::MAX, settings).render(), whole.render(), "{}", transcript.name);
        }
    }
}
