//! What is within one request: its statements, and data that follow it.

#![allow(clippy::unwrap_used, reason = "test code: a panic is the test failing")]

mod transcripts;

use dissect::{Direction, DissectorSettings, Piece, Protocol, RequestKind, Start, Status};
use transcripts::{Dissected, Harness};

fn client(bytes: &[u8]) -> Piece<'_> {
    Piece::whole(Direction::FromClient, bytes)
}

fn server(bytes: &[u8]) -> Piece<'_> {
    Piece::whole(Direction::FromServer, bytes)
}

fn joined(protocol: Protocol, pieces: &[Piece<'_>]) -> Dissected {
    let mut harness = Harness::new(DissectorSettings { start: Start::Joined, hint: Some(protocol) });
    pieces.iter().for_each(|piece| harness.feed(piece));
    harness.close()
}

/// By request: digest, statements, and bytes of data.
fn within(dissected: &Dissected) -> Vec<(&str, u32, u64)> {
    let of = |exchange: &'_ transcripts::Exchange| exchange.response.map(|r| (r.statements, r.data_bytes));
    let all = dissected.exchanges.iter();
    all.filter_map(|one| of(one).map(|(statements, data)| (one.digest.as_str(), statements, data))).collect()
}

fn mysql(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

fn postgres(messages: &[(u8, &[u8])]) -> Vec<u8> {
    let message = |(kind, body): &(u8, &[u8])| {
        [&[*kind][..], &(u32::try_from(body.len()).unwrap() + 4).to_be_bytes(), body].concat()
    };
    messages.iter().flat_map(message).collect()
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const READY: (u8, &[u8]) = (b'Z', b"I");

/// If this fails, the bytes of a file are counted for no request, or as requests.
#[test]
fn a_file_of_mysql_belongs_to_its_statement_whatever_of_it_was_captured() {
    let (ping, load) = (mysql(0, b"\x0e"), mysql(0, b"\x03load data local infile 'f' into table t"));
    let (done, asks, loaded) = (mysql(1, OK), mysql(1, b"\xfbf"), mysql(9, OK));
    let file = Piece { length: 100_000, captured: b"\0\x20\0\x02some", ..client(b"") };
    let pieces = [
        server(&done),
        client(&ping),
        server(&done),
        client(&load),
        server(&asks),
        file,
        file,
        server(&loaded),
    ];
    let dissected = joined(Protocol::MySql, &[&pieces[..], &[client(&ping), server(&done)]].concat());
    let text = "load data local infile ? into table t";
    assert_eq!(within(&dissected), [(text, 1, 200_000), ("PING", 1, 0)]);
    assert_eq!((dissected.counts.cut, dissected.counts.unparsed), (0, 0));
}

#[test]
fn statements_prepared_before_the_connection_was_seen_have_their_number() {
    let (ping, done) = (mysql(0, b"\x0e"), mysql(1, OK));
    let [execute, execute_after] =
        [17_u8, 18].map(|number| mysql(0, &[0x17, number, 0, 0, 0, 0, 1, 0, 0, 0]));
    let before = [server(&done), client(&ping), server(&done), client(&execute), server(&done)];
    let lost = Piece { missed: Some(0), ..server(&done) };
    let after = [lost, client(&ping), server(&done), client(&execute_after), server(&done)];
    let dissected = joined(Protocol::MySql, &[before, after].concat());
    let texts: Vec<&str> = within(&dissected).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(texts, ["statement 17, prepared before watching began", "statement 18, prepared unseen"]);

    let sync = postgres(&[(b'S', b"")]);
    let execute = postgres(&[(b'B', b"\0by_id\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")]);
    let (ready, executed) = (postgres(&[READY]), postgres(&[(b'2', b""), (b'C', b"SELECT 1\0"), READY]));
    let pieces = [server(&ready), client(&sync), server(&ready), client(&execute), server(&executed)];
    let dissected = joined(Protocol::Postgres, &pieces);
    assert_eq!(within(&dissected), [("statement by_id, prepared before watching began", 1, 0)]);
}

/// If this fails, every COPY of the extended protocol shifts the responses of its connection by one.
#[test]
fn a_copy_of_the_extended_protocol_has_one_response_for_its_two_syncs() {
    let sync = postgres(&[(b'S', b"")]);
    let copy = postgres(&[
        (b'P', b"\0copy t from stdin\0\0\0"),
        (b'B', b"\0\0\0\0\0\0\0\0"),
        (b'E', b"\0\0\0\0\0"),
        (b'S', b""),
    ]);
    let begun = postgres(&[(b'1', b""), (b'2', b""), (b'G', b"\0\0\x01\0\0")]);
    let rows = postgres(&[(b'd', b"1\n"), (b'd', b"2\n"), (b'c', b"")]);
    let ends = [rows.as_slice(), &sync].concat();
    let (copied, ready) = (postgres(&[(b'C', b"COPY 2\0"), READY]), postgres(&[READY]));
    let query = postgres(&[(b'Q', b"select 1; select 2\0")]);
    let results = postgres(&[(b'C', b"SELECT 1\0"), (b'C', b"SELECT 1\0"), READY]);
    let start = [server(&ready), client(&sync), server(&ready), client(&copy), server(&begun)];
    let end = [client(&ends), server(&copied), client(&query), server(&results)];
    let dissected = joined(Protocol::Postgres, &[&start[..], &end].concat());
    let copied = ("copy t from stdin", 1, ends.len() as u64);
    assert_eq!(within(&dissected), [copied, ("select ?; select ?", 2, 0)]);
    assert_eq!(dissected.exchanges[0].request.kind, RequestKind::Execute);
}

#[test]
fn statements_of_mysql_end_with_the_one_that_fails() {
    let (ping, done, more) = (mysql(0, b"\x0e"), mysql(1, OK), mysql(1, b"\0\0\0\x0a\0\0\0"));
    let three = mysql(0, b"\x03delete from t; delete from u; delete from v");
    let error = mysql(2, b"\xff\x7a\x04#42S02no u");
    let failing = [more.as_slice(), &error].concat();
    let pieces = [server(&done), client(&ping), server(&done), client(&three), server(&failing)];
    let dissected = joined(Protocol::MySql, &pieces);
    assert_eq!(within(&dissected), [("delete from t; delete from u; delete from v", 2, 0)]);
    assert_eq!(dissected.exchanges[0].response.unwrap().status, Status::MySqlError(1146));
}

#[test]
fn queued_commands_of_redis_are_executed_by_exec_or_not_at_all() {
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n".as_slice();
    let [multi, exec, discard] =
        [&b"*1\r\n$5\r\nMULTI\r\n"[..], b"*1\r\n$4\r\nEXEC\r\n", b"*1\r\n$7\r\nDISCARD\r\n"];
    let commands = [multi, get, get, exec, multi, get, discard].concat();
    let replies = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n$1\r\nx\r\n+OK\r\n+QUEUED\r\n+OK\r\n";
    let mut harness = Harness::new(DissectorSettings { start: Start::Fresh, hint: None });
    harness.feed(&client(&commands));
    harness.feed(&server(replies));
    let dissected = harness.close();
    let statements: Vec<u32> = within(&dissected).into_iter().map(|(_, statements, _)| statements).collect();
    assert_eq!(statements, [1, 0, 0, 3, 1, 0, 1]);
}
