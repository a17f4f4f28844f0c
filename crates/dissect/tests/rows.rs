//! Rows, users and schemas of real servers' transcripts, however they are cut.

#![allow(clippy::unwrap_used, reason = "test code: a panic is the test failing")]

mod transcripts;

use std::fmt::Write;

use dissect::{Digests, Dissector, DissectorSettings, Event, Piece};
use expect_test::{Expect, expect};
use transcripts::named;

/// One line per statement with rows: user, schema, rows sent and affected, digest.
fn rows(name: &str, at_most: usize) -> String {
    let mut dissector = Dissector::new(DissectorSettings::default());
    let (mut digests, mut events, mut text) = (Digests::default(), Vec::new(), String::new());
    let mut asked = Vec::new();
    for piece in named(name).pieces {
        for bytes in piece.bytes.chunks(at_most) {
            dissector.handle_piece(&Piece::whole(piece.direction, bytes), &mut digests, &mut events);
            for event in events.drain(..) {
                match event {
                    Event::RequestComplete(request) => asked.push((request, dissector.session())),
                    Event::ResponseComplete(response) => {
                        let at = asked.iter().position(|(request, _)| request.n == response.n).unwrap();
                        let (request, session) = asked.remove(at);
                        let (session, digest) = (digests.session(session), digests.text(request.digest));
                        let user = session.user.as_deref().unwrap_or("-");
                        let schema = session.schema.as_deref().unwrap_or("-");
                        if let Some(rows) = response.rows {
                            let digest: String = digest.chars().take(40).collect();
                            writeln!(text, "{user}@{schema} {} {} {digest}", rows.sent, rows.affected)
                                .unwrap();
                        }
                    }
                    Event::ProtocolKnown(_) | Event::Dropped { .. } => {}
                }
            }
        }
    }
    text
}

#[track_caller]
fn check(name: &str, expected: &Expect) {
    let whole = rows(name, usize::MAX);
    expected.assert_eq(&whole);
    for at_most in [1, 7, 100] {
        assert_eq!(rows(name, at_most), whole, "pieces of {at_most} bytes");
    }
}

#[test]
fn mariadb_rows_are_those_of_its_responses() {
    check(
        "mariadb-session",
        &expect![[r#"
        root@w 1 0 select * from t where id = ?
        root@w 2 0 select b from t where id in (?+)
        root@w 0 2 insert into t values (?+)
        root@w 0 0 select no_such from t
        root@w 2 0 call two()
        root@w 0 1 update t set b = ? where id = ?
        root@w 3 0 select repeat(?, ?), n from numbers limi
        root@w 0 2 load data local infile ? into table t
        root@w 0 4 delete from t where id >= ?
        root@w 0 0 prepare p from ?
        root@w 0 0 set @a = ?
        root@w 1 0 execute p using @a
        root@w 0 0 select ?, ? where ?
    "#]],
    );
    check(
        "mariadb-multi",
        &expect![[r#"
        root@w 4 1 select ?; select n from numbers limit ?;
    "#]],
    );
}

#[test]
fn postgres_rows_are_those_of_its_tags() {
    check(
        "postgres-simple",
        &expect![[r#"
        postgres@bench 0 0 begin
        postgres@bench 0 1 update pgbench_accounts set abalance = a
        postgres@bench 1 0 select abalance from pgbench_accounts wh
        postgres@bench 0 1 update pgbench_tellers set tbalance = tb
        postgres@bench 0 1 update pgbench_branches set bbalance = b
        postgres@bench 0 1 insert into pgbench_history(tid, bid, ai
        postgres@bench 0 0 end
        postgres@bench 0 0 begin
        postgres@bench 0 1 update pgbench_accounts set abalance = a
        postgres@bench 1 0 select abalance from pgbench_accounts wh
        postgres@bench 0 1 update pgbench_tellers set tbalance = tb
        postgres@bench 0 1 update pgbench_branches set bbalance = b
        postgres@bench 0 1 insert into pgbench_history(tid, bid, ai
        postgres@bench 0 0 end
        postgres@bench 0 0 begin
        postgres@bench 0 1 update pgbench_accounts set abalance = a
        postgres@bench 1 0 select abalance from pgbench_accounts wh
        postgres@bench 0 1 update pgbench_tellers set tbalance = tb
        postgres@bench 0 1 update pgbench_branches set bbalance = b
        postgres@bench 0 1 insert into pgbench_history(tid, bid, ai
        postgres@bench 0 0 end
    "#]],
    );
    check(
        "postgres-libpq",
        &expect![[r#"
        postgres@postgres 1 0 select b from t where id = ?
        postgres@postgres 1 0 select ?::int + ?
        postgres@postgres 0 0 select ? / (?::int - ?)
        postgres@postgres 1 0 select b from t where id = ?
        postgres@postgres 1 0 select b from t where id = ?
        postgres@postgres 1 0 select b from t where id = ?
        postgres@postgres 0 0 select ? / (?::int - ?)
        postgres@postgres 1 0 select b from t where id = ?
        postgres@postgres 0 0 select pg_sleep(?)
        postgres@postgres 49 0 select id, b from t where id < ?
    "#]],
    );
}
