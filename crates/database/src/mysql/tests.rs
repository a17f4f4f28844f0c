//! Servers written by hand and recorded ones, read whole, byte by byte and at random cuts; and what no server should
//! send.

use std::collections::VecDeque;

use num_bigint::BigUint;
use proptest::prelude::*;
use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::MySqlWire;
use super::greeting::can;
use super::packets::{begin_message, end_message};
use crate::sql::{Ask, Keep, Parameters, Statement};
use crate::testing::{self, Ending, Form, Statements, check, converse, reply};
use crate::{Context, Database, DatabaseKind, Login, Sending, ServerPlan, TlsUse, Wire, WireEvent};
use codec::{CloseEvent, DecodeError, Judgement, Key, Origin, Protocol, Session};

fn run(prepared: bool, is_local_socket: bool, keep: Keep) -> Database<Statements> {
    run_of(&["SELECT ", ""], prepared, is_local_socket, keep)
}

fn run_of(pieces: &[&str], prepared: bool, is_local_socket: bool, keep: Keep) -> Database<Statements> {
    testing::run(pieces, Form { prepared, is_local_socket, keep, ..PLAIN })
}

const PLAIN: Form = Form {
    kind: DatabaseKind::MySql,
    prepared: false,
    is_local_socket: false,
    trusts_public_key: false,
    keep: Keep::Nothing,
    pipeline: 1,
};

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";

/// Everything but compression, TLS and files.
const CAPABILITIES: u32 = 0x01ff_f75e;

fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let at = begin_message(&mut out);
    out.extend_from_slice(payload);
    end_message(at, number, &mut out);
    out
}

fn greeting(method: &str, capabilities: u32) -> Vec<u8> {
    let [a, b, c, d] = capabilities.to_le_bytes();
    let head =
        [&[10][..], b"8.4.3-hand\0", &[1, 0, 0, 0], &NONCE[..8], &[0, a, b, 45, 2, 0, c, d, 21]].concat();
    packet(0, &[&head[..], &[0; 10], &NONCE[8..], &[0], method.as_bytes(), &[0]].concat())
}

/// OK: 3 rows affected, in this state.
fn ok(number: u8, status: u8) -> Vec<u8> {
    packet(number, &[0, 3, 0, status, 0, 0, 0])
}

/// The end of rows, as an OK.
fn end(number: u8, status: u8) -> Vec<u8> {
    packet(number, &[0xfe, 0, 0, status, 0, 0, 0])
}

fn error(number: u8, code: u16, state: &str, text: &str) -> Vec<u8> {
    let [low, high] = code.to_le_bytes();
    packet(number, &[&[0xff, low, high, b'#'][..], state.as_bytes(), text.as_bytes()].concat())
}

fn column(number: u8, name: &str, kind: u8) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    let names = [text("def"), text("shop"), text("t"), text("t"), text(name), text(name)].concat();
    packet(number, &[&names[..], &[12, 45, 0, 100, 0, 0, 0, kind, 0, 0, 0, 0, 0]].concat())
}

/// One column, and these rows of one byte each, from packet 1 on.
fn rows(values: &[u8], status: u8) -> Vec<u8> {
    let mut all = [packet(1, &[1]), column(2, "a", 3)].concat();
    for (number, &value) in (3..).zip(values) {
        all.extend(packet(number, &[1, value]));
    }
    all.extend(end(3 + values.len() as u8, status));
    all
}

fn logged_in(answers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let login = [greeting("mysql_native_password", CAPABILITIES), ok(2, 2)];
    [&login[..], answers].concat()
}

#[test]
fn rows_are_counted_and_drained() {
    let run = run(false, false, Keep::Nothing);
    // A row of 2 bytes has 6 with its packet's header.
    let answers = logged_in(&[rows(b"12345", 2), ok(1, 2), rows(b"", 2)]);
    let (endings, sent, _) = check(&run, &answers, 3);
    let idle = Ending::Closed(CloseEvent::Idle);
    assert_eq!(endings, [Ending::Opened, reply(0, 30), reply(1, 0), reply(2, 0), idle]);
    assert!(sent.ends_with(&b"\x09\0\0\0\x03SELECT 7".repeat(3)));
}

/// If this fails, statements are prepared again for each execution, or executed by the wrong number.
#[test]
fn a_statement_is_prepared_once_per_connection() {
    let run = run(true, false, Keep::Nothing);
    let prepared = |id: u8| {
        let head = packet(1, &[0, id, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
        [head, column(2, "?", 8), column(3, "a", 3)].concat()
    };
    let row = [packet(1, &[1]), column(2, "a", 3), packet(3, &[0, 0, 1, 0, 0, 0]), end(4, 2)].concat();
    let answers = logged_in(&[prepared(5), row.clone(), prepared(6), row.clone(), row.clone(), row]);
    let (endings, sent, _) = check(&run, &answers, 4);
    let replies: Vec<Ending> = (0..4).map(|key| reply(key, 10)).collect();
    let idle = Ending::Closed(CloseEvent::Idle);
    assert_eq!(endings, [&[Ending::Opened][..], &replies, &[idle]].concat());
    let count = |what: &[u8]| sent.windows(what.len()).filter(|window| *window == what).count();
    assert_eq!(count(b"\x16SELECT ?"), 2);
    let executed = |id| [&[0x17, id, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0][..], &7i64.to_le_bytes()].concat();
    assert_eq!((count(&executed(5)), count(&executed(6))), (2, 2));
}

#[test]
fn the_first_row_and_the_counts_are_kept() {
    for (prepared, row) in [(false, &[2, b'4', b'2', 0xfb][..]), (true, &[0, 0b1000, 42, 0, 0, 0])] {
        let run = run(prepared, false, Keep::FirstRow);
        let result = |first: u8, status| {
            let defined = [packet(first, &[2]), column(first + 1, "id", 3), column(first + 2, "name", 253)];
            let end = end(first + 5, status);
            [&defined.concat()[..], &packet(first + 3, row), &packet(first + 4, row), &end].concat()
        };
        // Two results: the first row of the first one is kept, the rows of both are counted.
        let both = [result(1, 2 | 8), result(7, 2)].concat();
        let prepared_ok = [packet(1, &[0, 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]), column(2, "?", 8)].concat();
        let answers = if prepared { vec![prepared_ok, both] } else { vec![both] };
        let mut session = run.session(Origin(0));
        let mut out = Vec::new();
        session.handle_input(&greeting("mysql_native_password", CAPABILITIES), &mut out).unwrap();
        session.handle_input(&ok(2, 2), &mut out).unwrap();
        session.request(&0, Key(0), &mut out);
        for answer in answers {
            session.handle_input(&answer, &mut out).unwrap();
        }
        let rows = session.hand_over().unwrap();
        assert_eq!((rows.count, rows.value("ID"), rows.value("name")), (4, Some(Some("42")), Some(None)));
        assert!(rows.columns[0].is_integer && !rows.columns[1].is_integer && rows.value("x").is_none());
    }
}

/// If this fails, a request is sent on a connection whose settings are not made yet, or a refused setting is a response
/// to a request.
#[test]
fn statements_of_the_login_come_before_the_connection_opens() {
    let run = testing::run_after(&["SET a = 1", "SELECT 2"], &["SELECT ", ""], PLAIN);
    let answers = logged_in(&[ok(1, 2), rows(b"123", 2), rows(b"12345", 2)]);
    let (endings, sent, _) = check(&run, &answers, 1);
    assert_eq!(endings, [Ending::Opened, reply(0, 30), Ending::Closed(CloseEvent::Idle)]);
    assert!(sent.ends_with(b"\x0a\0\0\0\x03SET a = 1\x09\0\0\0\x03SELECT 2\x09\0\0\0\x03SELECT 7"));
    let refused = logged_in(&[ok(1, 2), error(1, 1193, "HY000", "Unknown system variable")]);
    let (endings, _, message) = check(&run, &refused, 1);
    assert_eq!(endings, [Ending::Broke(DecodeError::Login { what: "--setup-query refused" })]);
    assert_eq!(message.as_deref(), Some("1193 (HY000): Unknown system variable"));
}

#[test]
fn ends_of_definitions_may_be_there() {
    let run = run(false, false, Keep::Nothing);
    let old = packet(3, &[0xfe, 0, 0, 2, 0]);
    let result =
        [packet(1, &[1]), column(2, "a", 3), old, packet(4, b"\x011"), packet(5, &[0xfe, 0, 0, 2, 0])];
    let login = [greeting("mysql_native_password", CAPABILITIES & !0x0100_0000), ok(2, 2)];
    let (endings, ..) = check(&run, &[&login[..], &[result.concat()]].concat(), 1);
    assert_eq!(endings, [Ending::Opened, reply(0, 6), Ending::Closed(CloseEvent::Idle)]);
}

/// If this fails, an error of the server is counted as a failure of the connection, or a deadlock is not retried.
#[test]
fn an_error_has_its_code_and_its_words() {
    for (code, state, judgement) in [
        (1064, "42000", Judgement::RequestError),
        (1062, "23000", Judgement::RequestError),
        (1213, "40001", Judgement::Retryable),
        (1205, "HY000", Judgement::Retryable),
        (1317, "70100", Judgement::ServerError),
    ] {
        for prepared in [false, true] {
            let run = run(prepared, false, Keep::Nothing);
            let answers = logged_in(&[error(1, code, state, "so it is")]);
            let (endings, _, message) = check(&run, &answers, 1);
            let reply = Ending::Reply(0, format!("{state}/{code}"), judgement, 0);
            assert_eq!(endings, [Ending::Opened, reply, Ending::Closed(CloseEvent::Idle)]);
            assert_eq!(message.unwrap(), format!("{code} ({state}): so it is"));
        }
    }
}

#[test]
fn an_error_may_end_rows() {
    let run = run(false, false, Keep::Nothing);
    let mut cut = [packet(1, &[1]), column(2, "a", 3), packet(3, b"\x011")].concat();
    cut.extend(error(4, 1317, "70100", "Query execution was interrupted"));
    let (endings, ..) = check(&run, &logged_in(&[cut]), 1);
    assert_eq!(endings[1], Ending::Reply(0, "70100/1317".into(), Judgement::ServerError, 6));
}

#[test]
fn refusals_have_the_servers_words() {
    let run = run(false, false, Keep::Nothing);
    let refused = Ending::Broke(DecodeError::Login { what: "login refused" });
    let full = packet(0, b"\xff\x10\x04Too many connections");
    let (endings, _, message) = check(&run, &[full], 1);
    assert_eq!(
        (endings, message.unwrap()),
        (vec![refused.clone()], "1040 (HY000): Too many connections".into())
    );
    let denied = error(2, 1045, "28000", "Access denied for user 'app'@'localhost'");
    let (endings, _, message) = check(&run, &[greeting("mysql_native_password", CAPABILITIES), denied], 1);
    assert_eq!(endings, [refused]);
    assert_eq!(message.unwrap(), "1045 (28000): Access denied for user 'app'@'localhost'");
    let (endings, ..) = check(&run, &[greeting("", 0x0000_f5ff & !0x200)], 1);
    assert!(matches!(endings[..], [Ending::Broke(DecodeError::Login { what })] if what.contains("too old")));
}

/// If this fails, the reason for which a server ended a connection is taken for the response to the next statement.
#[test]
fn a_farewell_is_no_response() {
    let run = run(false, false, Keep::Nothing);
    let farewell = error(0, 1927, "70100", "Connection was killed");
    let (endings, _, message) = check(&run, &logged_in(std::slice::from_ref(&farewell)), 1);
    assert_eq!(endings, [Ending::Opened, Ending::Closed(CloseEvent::BeforeResponse)]);
    assert_eq!(message.unwrap(), "1927 (70100): Connection was killed");
    let (endings, ..) = check(&run, &logged_in(&[rows(b"1", 2), farewell]), 1);
    assert_eq!(endings[2], Ending::Closed(CloseEvent::Idle));
    // The packet after 255 has number 0 again: its error ends the rows before it.
    let mut cut = packet(1, &[0xfc, 252, 0]);
    (2..=253).for_each(|number| cut.extend(column(number, "a", 3)));
    cut.extend([packet(254, &[1, b'1']), packet(255, &[1, b'2'])].concat());
    cut.extend(error(0, 1317, "70100", "Query execution was interrupted"));
    let (endings, ..) = check(&run, &logged_in(&[cut]), 1);
    assert_eq!(endings[1], Ending::Reply(0, "70100/1317".into(), Judgement::ServerError, 12));
}

/// If this fails, a connection with an open transaction is taken for one without, or a value ends its own text.
#[test]
fn the_servers_status_is_known_after_each_response() {
    let session = |answers: &[Vec<u8>]| {
        let mut session = run_of(&["SELECT 1"], false, false, Keep::Nothing).session(Origin(0));
        let mut out = Vec::new();
        session.handle_input(&greeting("mysql_native_password", CAPABILITIES), &mut out).unwrap();
        session.handle_input(&ok(2, 2), &mut out).unwrap();
        for (key, answer) in (0..).zip(answers) {
            session.request(&0, Key(key), &mut out);
            session.handle_input(answer, &mut out).unwrap();
        }
        session
    };
    // `BEGIN; SELEC 1`: the first of two results opened a transaction.
    let begun = [ok(1, 1 | 2 | 8), error(2, 1064, "42000", "so it is")].concat();
    let deadlock = error(1, 1213, "40001", "Deadlock found");
    let wrong = error(1, 1064, "42000", "so it is");
    for (answers, is_in_transaction) in [
        (vec![begun.clone()], true),
        (vec![begun.clone(), deadlock.clone()], false),
        (vec![begun, deadlock, wrong], false),
    ] {
        assert_eq!(session(&answers).is_in_transaction(), is_in_transaction);
    }
}

/// If this fails, a value with a backslash is sent as another one to servers with `NO_BACKSLASH_ESCAPES`.
#[test]
fn the_status_after_the_login_decides_how_values_are_written() {
    let login = Login { user: "app".into(), password: "secret".into(), database: None };
    let tls = TlsUse::Never;
    let plan = ServerPlan { login, tls, is_local_socket: false, trusts_public_key: false };
    let shared = testing::shared(DatabaseKind::MySql, plan);
    let context = Context { shared: &shared, server: &shared.servers[0] };
    let statement = Statement { pieces: vec!["SELECT ".into(), String::new()], prepared: false };
    let mut values = Parameters::default();
    values.text(|text| text.push_str(r"a\b"));
    for (status, sent) in [(0, r"SELECT 'a\\b'"), (2, r"SELECT 'a\b'")] {
        let (mut wire, mut out) = (MySqlWire::new(1, 1_000), Vec::new());
        let opening =
            [greeting("mysql_native_password", CAPABILITIES), packet(2, &[0, 0, 0, 2, status, 0, 0])];
        let (_, event) = wire.handle(context, None, &opening.concat(), &mut out).unwrap();
        assert_eq!(event, Some(WireEvent::Opened));
        let ask = Ask { statement: 0, step: 0, keep: Keep::Nothing };
        wire.send(
            Sending { ask, statement: &statement, command: None, values: &values, is_first: true },
            &mut out,
        );
        assert!(out.ends_with(sent.as_bytes()), "{}", String::from_utf8_lossy(&out));
    }
}

/// If this fails, a server chooses how much memory the names of columns take.
#[test]
fn of_a_columns_name_the_beginning_is_kept() {
    let mut session = run_of(&["SELECT 1"], false, false, Keep::FirstRow).session(Origin(0));
    let mut out = Vec::new();
    session.handle_input(&greeting("mysql_native_password", CAPABILITIES), &mut out).unwrap();
    session.handle_input(&ok(2, 2), &mut out).unwrap();
    session.request(&0, Key(0), &mut out);
    let name = [&[0xfc, 0x60, 0xea][..], &[b'n'; 60_000]].concat();
    let definition = [&[0, 0, 0, 0][..], &name, &[0, 12, 45, 0, 100, 0, 0, 0, 3, 0, 0, 0, 0, 0]].concat();
    let answer = [packet(1, &[1]), packet(2, &definition), packet(3, &[1, b'1']), end(4, 2)].concat();
    session.handle_input(&answer, &mut out).unwrap();
    assert_eq!(session.hand_over().unwrap().columns[0].name.len(), 1_024);
}

/// If this fails, a server reads the files of this host, chooses how much memory it takes, or ends the program.
#[test]
fn what_no_server_should_send_is_refused() {
    let run = run(false, false, Keep::FirstRow);
    let long_row = || packet(3, &[b'x'; 2_000]);
    for (answer, what) in [
        (packet(1, b"\xfb/etc/passwd"), "LOCAL INFILE"),
        (packet(2, &[0, 0, 0, 0, 0, 0, 0]), "packet number"),
        (packet(1, &[]), "empty packet"),
        (packet(1, &[0]), "OK"),
        (packet(1, &[0xfd, 0xff, 0xff, 0xff]), "columns"),
        (packet(1, &[0xff]), "error"),
        ([packet(1, &[1]), packet(2, &[200])].concat(), "column"),
        ([packet(1, &[1]), column(2, "a", 3), packet(3, &[9])].concat(), "row"),
        (vec![0xff, 0xff, 0xff, 1, 0], "bytes of a packet"),
    ] {
        let (endings, ..) = check(&run, &logged_in(std::slice::from_ref(&answer)), 1);
        let Some(Ending::Broke(error)) = endings.last() else { panic!("{what}: {endings:?}") };
        assert!(error.what().contains(what), "{what}: {error}");
    }
    let run = self::run(false, false, Keep::Nothing);
    let (endings, ..) =
        check(&run, &logged_in(&[[packet(1, &[1]), column(2, "a", 3), long_row()].concat()]), 1);
    let limit = DecodeError::TooLong { what: "bytes of result", limit: 1_000 };
    assert_eq!(endings[1], Ending::Broke(limit));
    let (endings, ..) = check(&run, &logged_in(&[ok(1, 2), ok(2, 2)]), 1);
    assert_eq!(endings[2], Ending::Broke(DecodeError::Unsolicited));
}

/// Everything the client sent after the greeting, cut into its messages.
fn messages(sent: &[u8]) -> VecDeque<Vec<u8>> {
    let (mut rest, mut all) = (sent, VecDeque::new());
    while let [a, b, _, _, after @ ..] = rest {
        let (payload, after) = after.split_at(usize::from(*a) + 256 * usize::from(*b));
        all.push_back(payload.to_vec());
        rest = after;
    }
    all
}

/// What MySQL 8 keeps of a password, and how it checks a proof.
fn proves_sha2(proof: &[u8]) -> bool {
    let once = Sha256::digest(b"secret");
    let stored = Sha256::digest(once);
    let with = Sha256::digest([&stored[..], NONCE].concat());
    let opened: Vec<u8> = proof.iter().zip(with).map(|(a, b)| a ^ b).collect();
    opened[..] == once[..]
}

#[test]
fn caching_sha2_is_fast_if_the_server_knows_the_password() {
    let run = run(false, false, Keep::Nothing);
    let answers = [greeting("caching_sha2_password", CAPABILITIES), [packet(2, &[1, 3]), ok(3, 2)].concat()];
    let (endings, sent, _) = check(&run, &answers, 0);
    assert_eq!(endings, [Ending::Opened, Ending::Closed(CloseEvent::Idle)]);
    let login = &messages(&sent)[0];
    let at = login.windows(5).position(|window| window == b"app\0\x20").unwrap() + 5;
    assert!(proves_sha2(&login[at..at + 32]));
    assert!(login[at + 32..].starts_with(b"shop\0caching_sha2_password\0"));
}

/// If this fails, a password is sent readable over TCP.
#[test]
fn caching_sha2_in_full_encrypts_the_password_unless_nobody_can_read_it() {
    let begin = greeting("caching_sha2_password", CAPABILITIES);
    let key = [&[1][..], include_bytes!("../../testdata/mysql/public-key.pem")].concat();
    let answers = [begin.clone(), packet(2, &[1, 4]), packet(4, &key), ok(6, 2)];
    let trusting = testing::run(&["SELECT ", ""], Form { trusts_public_key: true, ..PLAIN });
    let (endings, sent, _) = check(&trusting, &answers, 0);
    assert_eq!(endings[0], Ending::Opened);
    let messages = messages(&sent);
    assert_eq!(messages[1], [2]);
    let mut secret = b"secret\0".to_vec();
    secret.iter_mut().zip(NONCE).for_each(|(byte, with)| *byte ^= with);
    assert_eq!(decrypt(&messages[2]), secret);
    let (_, sent, _) =
        check(&run(false, true, Keep::Nothing), &[begin.clone(), packet(2, &[1, 4]), ok(4, 2)], 0);
    assert_eq!(self::messages(&sent)[1], b"secret\0");
    // An attacker between the two could send another key, also after a switch of the method.
    let switch = packet(2, &[&b"\xfecaching_sha2_password\0"[..], NONCE, &[0]].concat());
    let other = greeting("mysql_native_password", CAPABILITIES);
    for answers in [
        vec![begin, packet(2, &[1, 4]), packet(4, &key)],
        vec![other, switch, packet(4, &[1, 4]), packet(6, &key)],
    ] {
        let (endings, sent, _) = check(&run(false, false, Keep::Nothing), &answers, 0);
        assert!(
            matches!(endings[..], [Ending::Broke(DecodeError::Login { what })] if what.contains("get-server-public-key=1"))
        );
        assert_eq!(self::messages(&sent).len(), answers.len() - 2);
    }
}

/// If this fails, an attacker between the two gets the password by offering TLS, which was only preferred.
#[test]
fn tls_that_is_only_preferred_hides_no_password() {
    let tls = testing::tls();
    for (tls, is_sent) in [(TlsUse::Preferred(tls.clone()), false), (TlsUse::Required(tls), true)] {
        let login = Login { user: "app".into(), password: "secret".into(), database: None };
        let plan = ServerPlan { login, tls, is_local_socket: false, trusts_public_key: false };
        let shared = testing::shared(DatabaseKind::MySql, plan);
        let context = Context { shared: &shared, server: &shared.servers[0] };
        let (mut wire, mut out) = (MySqlWire::new(0, 1_000), Vec::new());
        wire.open(context.plan(), &mut out);
        let greeting = greeting("caching_sha2_password", CAPABILITIES | can::SSL);
        let begin = wire.handle(context, None, &greeting, &mut out).unwrap();
        assert_eq!(begin.1, Some(WireEvent::BeginTls));
        wire.begin_secured(context, &mut out).unwrap();
        let asked = wire.handle(context, None, &packet(3, &[1, 4]), &mut out);
        assert_eq!((asked.is_ok(), out.ends_with(b"secret\0")), (is_sent, is_sent));
    }
}

/// Undoes RSA and OAEP with the private key of the tests.
fn decrypt(bytes: &[u8]) -> Vec<u8> {
    let number = |hex: &str| BigUint::parse_bytes(hex.as_bytes(), 16).unwrap();
    let key = include_str!("../../testdata/mysql/private-key.txt");
    let (modulus, exponent) = key.trim().split_once(' ').unwrap();
    let plain = BigUint::from_bytes_be(bytes).modpow(&number(exponent), &number(modulus)).to_bytes_be();
    let plain = [vec![0; 128 - plain.len()], plain].concat();
    // The library's block has no leading zero: 20 bytes of seed, then the data.
    let (seed, data) = plain.split_at(plain.len() - 107);
    let mask = |seed: &[u8], length: usize| -> Vec<u8> {
        (0u32..7).flat_map(|count| Sha1::digest([seed, &count.to_be_bytes()].concat())).take(length).collect()
    };
    let xor = |one: &[u8], other: &[u8]| -> Vec<u8> { one.iter().zip(other).map(|(a, b)| a ^ b).collect() };
    let seed = xor(&seed[1..], &mask(data, 20));
    let data = xor(data, &mask(&seed, data.len()));
    assert_eq!(data[..20], Sha1::digest([])[..]);
    let begin = 20 + data[20..].iter().position(|byte| *byte == 1).unwrap() + 1;
    data[begin..].to_vec()
}

#[test]
fn a_login_may_switch_its_method() {
    let run = run(false, false, Keep::Nothing);
    let switch = |method: &str| packet(2, &[&[0xfe][..], method.as_bytes(), &[0], NONCE, &[0]].concat());
    let begin = greeting("dialog", CAPABILITIES);
    let (endings, sent, _) = check(&run, &[begin.clone(), switch("mysql_native_password"), ok(4, 2)], 0);
    assert_eq!((endings[0].clone(), messages(&sent)[1].len()), (Ending::Opened, 20));
    for (method, what, words) in [
        ("auth_gssapi_client", "not known", Some("auth_gssapi_client")),
        ("mysql_clear_password", "only over TLS", None),
        ("client_ed25519", "wrong length", None),
    ] {
        let (endings, _, message) = check(&run, &[begin.clone(), switch(method)], 0);
        let [Ending::Broke(DecodeError::Login { what: said })] = endings[..] else { panic!("{endings:?}") };
        assert!(said.contains(what), "{said}");
        assert_eq!(message.as_deref(), words);
    }
}

/// If this fails, one login in 256 is refused: the random bytes of the server may end with a zero.
#[test]
fn a_nonce_may_end_with_a_zero() {
    let begin = greeting("mysql_native_password", CAPABILITIES);
    for last in [0, 7] {
        let nonce = [[1; 31].as_slice(), &[last]].concat();
        let switch = packet(2, &[&[0xfe][..], b"client_ed25519\0", &nonce].concat());
        let (endings, sent, _) =
            check(&run(false, false, Keep::Nothing), &[begin.clone(), switch, ok(4, 2)], 0);
        assert_eq!((endings[0].clone(), messages(&sent)[1].len()), (Ending::Opened, 64));
    }
}

/// Recorded from MariaDB 10.11.19: see `testdata/README.md`.
#[test]
fn a_recorded_server_is_understood() {
    testing::check_recorded(include_str!("../../testdata/mysql/mariadb-10.11.19.txt"), |title| {
        run_of(&["SELECT 1"], title == "prepared", false, Keep::FirstRow)
    });
}

proptest! {
    #[test]
    fn no_bytes_end_the_program(bytes in prop::collection::vec(any::<u8>(), 0..200), prepared: bool) {
        let run = run(prepared, false, Keep::FirstRow);
        let _ = converse(&run, std::slice::from_ref(&bytes), 1, || usize::MAX);
        let _ = converse(&run, &logged_in(&[bytes]), 1, || 3);
    }

    /// Well-formed packets get further than any bytes.
    #[test]
    fn no_packets_end_the_program(
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
        prepared: bool,
    ) {
        let run = run(prepared, false, Keep::FirstRow);
        let all: Vec<u8> = (1..).zip(&payloads).flat_map(|(number, payload)| packet(number, payload)).collect();
        check(&run, &logged_in(&[all]), 1);
        let login: Vec<u8> = (0..).zip(&payloads).flat_map(|(number, payload)| packet(number, payload)).collect();
        check(&run, &[login], 0);
    }
}
