//! Rare cases of each protocol that the transcripts do not contain, written by hand.

mod transcripts;

use dissect::{Direction, DissectorSettings, EndBy, Piece, Protocol, RequestKind, Sight, Start, Status};
use transcripts::{Dissected, Harness};

const FRESH: DissectorSettings = DissectorSettings { start: Start::Fresh, hint: None };

fn client(bytes: &[u8]) -> Piece<'_> {
    Piece::whole(Direction::FromClient, bytes)
}

fn server(bytes: &[u8]) -> Piece<'_> {
    Piece::whole(Direction::FromServer, bytes)
}

fn dissect(settings: DissectorSettings, pieces: &[Piece<'_>]) -> Dissected {
    let mut harness = Harness::new(settings);
    pieces.iter().for_each(|piece| harness.feed(piece));
    harness.close()
}

fn statuses(dissected: &Dissected) -> Vec<Status> {
    dissected
        .exchanges
        .iter()
        .filter_map(|exchange| exchange.response)
        .map(|response| response.status)
        .collect()
}

fn ranges(dissected: &Dissected) -> Vec<(u64, u64, EndBy)> {
    let responses = dissected.exchanges.iter().filter_map(|exchange| exchange.response);
    responses.map(|response| (response.began, response.end, response.end_by)).collect()
}

fn joined(protocol: Protocol) -> DissectorSettings {
    DissectorSettings { start: Start::Joined, hint: Some(protocol) }
}

#[test]
fn a_sent_file_is_skipped_by_its_length() {
    let file = Piece { length: 1_000_000, captured: b"", ..server(b"") };
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let again = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let dissected = dissect(FRESH, &[get, server(head), file, get, server(again)]);
    assert_eq!(statuses(&dissected), [Status::Http(200), Status::Http(404)]);
    let first = head.len() as u64 + 1_000_000;
    assert_eq!(
        ranges(&dissected),
        [(0, first, EndBy::Framing), (first, first + again.len() as u64, EndBy::Framing)]
    );
}

#[test]
fn chunks_that_were_not_captured_end_with_the_last_write_before_the_next_read() {
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let head = server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunks = Piece { length: 5_000, captured: b"", ..server(b"") };
    let dissected = dissect(FRESH, &[get, head, chunks, chunks, get, head, server(b"0\r\n\r\n")]);
    let length = head.length;
    let second = length + 10_000;
    assert_eq!(ranges(&dissected), [(0, second, EndBy::Turn), (second, second + length + 5, EndBy::Framing)]);
    assert_eq!((dissected.counts.cut, dissected.counts.unframed), (1, 1));
}

#[test]
fn a_switch_of_protocols_ends_in_turns() {
    let upgrade = client(b"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    let switch = server(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    let dissected =
        dissect(FRESH, &[upgrade, switch, client(b"\x81\x01x"), server(b"\x81\x01y"), client(b"\x81\x01z")]);
    assert_eq!(dissected.protocols, [Protocol::Http1, Protocol::Upgraded]);
    let kinds: Vec<RequestKind> = dissected.exchanges.iter().map(|exchange| exchange.request.kind).collect();
    assert_eq!(kinds, [RequestKind::Http, RequestKind::Turn]);
    assert_eq!(ranges(&dissected)[1], (36, 39, EndBy::Turn));
}

#[test]
fn an_early_response_belongs_to_what_was_read() {
    let head = client(b"POST /big HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc");
    let refuse = server(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    let dissected = dissect(FRESH, &[head, refuse]);
    assert_eq!(statuses(&dissected), [Status::Http(413)]);
    assert_eq!(dissected.exchanges[0].request.complete, head.length);
}

#[test]
fn a_head_that_was_cut_still_has_its_route_and_its_status() {
    let long = format!("GET /a/1 HTTP/1.1\r\nCookie: {}\r\n\r\n", "x".repeat(400));
    let request = Piece { captured: &long.as_bytes()[..64], ..client(long.as_bytes()) };
    let text = format!("HTTP/1.1 500 Oops\r\nContent-Length: 10\r\nX: {}\r\n\r\n0123456789", "x".repeat(400));
    let response = Piece { captured: &text.as_bytes()[..64], ..server(text.as_bytes()) };
    let dissected = dissect(FRESH, &[request, response, request, response]);
    assert_eq!(statuses(&dissected), [Status::Http(500); 2]);
    assert_eq!(dissected.exchanges.len(), 2);
    assert!(
        dissected
            .exchanges
            .iter()
            .all(|exchange| exchange.digest == "GET /a/{}" && exchange.request.sight == Sight::Cut)
    );
    assert_eq!(dissected.exchanges[1].request.complete, 2 * request.length);
    assert_eq!(ranges(&dissected)[0].1, response.length);
}

#[test]
fn tls_is_reported_in_turns_without_its_handshake() {
    let hello = client(b"\x16\x03\x01\0\x02hi");
    let flight = server(b"\x16\x03\x03\0\x02hi\x17\x03\x03\0\x01x");
    let finished = b"\x14\x03\x03\0\x01\x01\x17\x03\x03\0\x02fi".as_slice();
    let data = b"\x17\x03\x03\0\x04data".as_slice();
    let both = [finished, data].concat();
    let dissected = dissect(
        FRESH,
        &[hello, flight, client(&both), server(data), server(data), client(data), server(data)],
    );
    assert_eq!(dissected.protocols, [Protocol::Tls]);
    let request: Vec<_> = dissected
        .exchanges
        .iter()
        .map(|exchange| (exchange.request.began, exchange.request.complete))
        .collect();
    assert_eq!(request, [(20, 29), (29, 38)]);
    assert_eq!(ranges(&dissected), [(13, 31, EndBy::Turn), (31, 40, EndBy::Close)]);
}

#[test]
fn an_encrypted_login_of_postgres_turns_to_tls() {
    let pieces = [
        client(b"\0\0\0\x08\x04\xd2\x16\x2f"),
        server(b"S"),
        client(b"\x16\x03\x01\0\x02hi"),
        server(b"\x16\x03\x03\0\x02hi"),
        client(b"\x16\x03\x03\0\x02hi"),
        server(b"\x14\x03\x03\0\x01\x01"),
        client(b"\x17\x03\x03\0\x01x"),
        server(b"\x17\x03\x03\0\x01y"),
    ];
    let dissected = dissect(FRESH, &pieces);
    assert_eq!(dissected.protocols, [Protocol::Postgres, Protocol::Tls]);
    assert_eq!(dissected.exchanges.len(), 1);
}

#[test]
fn an_unknown_protocol_is_reported_in_turns() {
    let dissected = dissect(
        FRESH,
        &[
            server(b"220 mail\r\n"),
            client(b"EHLO x\r\n"),
            client(b"more\r\n"),
            server(b"250-a\r\n"),
            server(b"250 b\r\n"),
            client(b"QUIT\r\n"),
            server(b"221 bye\r\n"),
        ],
    );
    assert_eq!(dissected.protocols, [Protocol::Unknown]);
    let request: Vec<_> = dissected
        .exchanges
        .iter()
        .map(|exchange| (exchange.request.began, exchange.request.complete))
        .collect();
    assert_eq!(request, [(0, 14), (14, 20)]);
    assert_eq!(ranges(&dissected), [(10, 24, EndBy::Turn), (24, 33, EndBy::Close)]);
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    bytes.push(sequence);
    bytes.extend_from_slice(payload);
    bytes
}

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    payloads.iter().zip(1..).flat_map(|(payload, sequence)| packet(sequence, payload)).collect()
}

/// A turn that proves a joined connection, and then the response to check.
fn mysql(command: &[u8], answer: &[u8]) -> Dissected {
    let (ping, ok) = (packet(0, b"\x0e"), packets(&[b"\0\0\0\x02\0\0\0"]));
    let command = packet(0, command);
    let pieces = [server(&ok), client(&ping), server(&ok), client(&command), server(answer), client(&ping)];
    dissect(joined(Protocol::MySql), &pieces)
}

const DEFINITION: &[u8] = b"\x03def";
const EOF: &[u8] = b"\xfe\0\0\x02\0";
const EOF_MORE: &[u8] = b"\xfe\0\0\x0a\0";
const OK_END: &[u8] = b"\xfe\0\0\x02\0\0\0";

#[test]
fn results_of_mysql_end_with_and_without_eof_packets() {
    let select = b"\x03select 1";
    for answer in [
        packets(&[b"\x01", DEFINITION, EOF, b"\x011", b"\x012", EOF]),
        packets(&[b"\x01", DEFINITION, b"\x011", b"\x012", OK_END]),
        packets(&[b"\x01", DEFINITION, OK_END]),
        packets(&[b"\x01", DEFINITION, EOF, EOF]),
        packets(&[b"\x01", DEFINITION, EOF, b"\x011", EOF_MORE, b"\x01", DEFINITION, EOF, b"\x011", EOF]),
        packets(&[b"\0\0\0\x0a\0\0\0", b"\0\0\0\x02\0\0\0"]),
        // The server knows that the client has the definitions.
        packets(&[b"\x02\0", b"\x011\x012", OK_END]),
        // A progress report, and rows that end with an error.
        packets(&[b"\xff\xff\xff\x01\x01\x01", b"\0\0\0\x02\0\0\0"]),
    ] {
        let dissected = mysql(select, &answer);
        assert_eq!(ranges(&dissected), [(11 + 11, 22 + answer.len() as u64, EndBy::Framing)], "{answer:?}");
        assert_eq!(statuses(&dissected), [Status::Ok]);
    }
    let failed = packets(&[b"\x01", DEFINITION, b"\x011", b"\xff\x28\x04#HY000gone"]);
    assert_eq!(statuses(&mysql(select, &failed)), [Status::MySqlError(0x428)]);
}

#[test]
fn prepared_statements_of_mysql_end_with_and_without_eof_packets() {
    let ok = |columns: u8, parameters: u8| vec![0, 7, 0, 0, 0, columns, 0, parameters, 0, 0, 0, 0];
    for answer in [
        packets(&[&ok(0, 0)]),
        packets(&[&ok(1, 0), DEFINITION]),
        packets(&[&ok(1, 0), DEFINITION, EOF]),
        packets(&[&ok(1, 2), DEFINITION, DEFINITION, EOF, DEFINITION, EOF]),
        packets(&[&ok(1, 2), DEFINITION, DEFINITION, DEFINITION]),
    ] {
        let dissected = mysql(b"\x16select ?", &answer);
        assert_eq!(ranges(&dissected), [(22, 22 + answer.len() as u64, EndBy::Framing)], "{answer:?}");
    }
}

/// If this fails, the end of a response depends on how its bytes were cut into reads: the login tells whether EOF packets
/// follow definitions, also if it agrees on nothing that is known.
#[test]
fn the_login_of_mysql_tells_the_end_of_a_prepared_statement() {
    let capabilities = |low: u16, high: u16| {
        let [low, high] = [low, high].map(u16::to_le_bytes);
        [&b"\x0a5.5.5\0\x01\0\0\0saltsalt\0"[..], &low, b"\x21\x02\0", &high, b"\x15"].concat()
    };
    let greeting = packet(0, &capabilities(0xffff, 0xffff));
    let (ok, prepare) = (packet(2, b"\0\0\0\x02\0\0\0"), packet(0, b"\x16select ?"));
    let definitions =
        |end: &[u8]| [packets(&[&[0, 7, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], DEFINITION]), end.to_vec()].concat();
    for (agreed, end) in [(0_u32, packet(3, EOF)), (1 << 24, Vec::new())] {
        let login = packet(1, &[&agreed.to_le_bytes()[..], &[0; 28], b"app\0\0"].concat());
        let response = definitions(&end);
        let pieces = [server(&greeting), client(&login), server(&ok), client(&prepare), server(&response)];
        let began = (greeting.len() + ok.len()) as u64;
        let expected = [(began, began + response.len() as u64, EndBy::Framing)];
        let fresh = DissectorSettings { start: Start::Fresh, hint: Some(Protocol::MySql) };
        assert_eq!(ranges(&dissect(fresh, &pieces)), expected);
        let bytes: Vec<Piece<'_>> = pieces
            .iter()
            .flat_map(|piece| piece.captured.chunks(1).map(|byte| Piece::whole(piece.direction, byte)))
            .collect();
        assert_eq!(ranges(&dissect(fresh, &bytes)), expected);
    }
}

#[test]
fn a_result_that_was_not_captured_ends_before_the_next_command() {
    let (ping, ok) = (packet(0, b"\x0e"), packets(&[b"\0\0\0\x02\0\0\0"]));
    let select = packet(0, b"\x03select 1");
    let begin = packets(&[b"\x01", DEFINITION]);
    let first = Piece { length: 16_384, captured: &begin, ..server(&begin) };
    let more = Piece { length: 9_000, captured: b"garbage in the middle of rows", ..server(&begin) };
    let pieces =
        [server(&ok), client(&ping), server(&ok), client(&select), first, more, client(&ping), server(&ok)];
    let dissected = dissect(joined(Protocol::MySql), &pieces);
    let end = 22 + 16_384 + 9_000;
    assert_eq!(ranges(&dissected), [(22, end, EndBy::Turn), (end, end + 11, EndBy::Framing)]);
}

fn redis(commands: usize) -> Vec<u8> {
    b"*1\r\n$4\r\nPING\r\n".repeat(commands)
}

#[test]
fn as_many_responses_as_commands_at_any_pipeline_depth() {
    for depth in [1, 2, 16, 64, 1_000, 4_096] {
        let dissected = dissect(FRESH, &[client(&redis(depth)), server(&b"+PONG\r\n".repeat(depth))]);
        assert_eq!((dissected.exchanges.len(), statuses(&dissected).len()), (depth, depth));
    }
}

/// Requests in flight beyond the table's capacity are counted by their responses.
#[test]
fn requests_beyond_the_table_are_counted_by_their_responses() {
    let (request, responses) = (redis(5_000), b"+PONG\r\n".repeat(5_000));
    let (one, pong) = (redis(1), b"+PONG\r\n");
    let pieces = [client(&request), server(&responses), client(&one), server(pong)];
    let dissected = dissect(FRESH, &pieces);
    assert_eq!((dissected.counts.unparsed, dissected.counts.dropped), (1, 0));
    let unseen =
        dissected.exchanges.iter().filter(|exchange| exchange.request.sight == Sight::Unseen).count();
    assert_eq!((dissected.exchanges.len(), unseen), (5_001, 5_000 - 4_096));
}

#[test]
fn requests_to_a_silent_server_are_forgotten() {
    let (request, push) = (redis(4_096), b">1\r\n+x\r\n");
    let (one, pong) = (redis(1), b"+PONG\r\n");
    let pieces = [client(&request), server(push), client(&one), server(pong)];
    let dissected = dissect(FRESH, &pieces);
    assert_eq!((dissected.counts.dropped, dissected.counts.unsolicited), (4_096, 1));
    assert_eq!(statuses(&dissected), [Status::Ok]);
}

/// If this fails, requests of connections that are older than the watch are missing without being counted.
#[test]
fn requests_before_the_first_certain_boundary_are_counted_when_the_connection_ends() {
    let (one, pong) = (redis(1), b"+PONG\r\n");
    for (turns, reported, passed_over) in [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 1, 2)] {
        let turn = [client(&one), server(pong)];
        let dissected = dissect(joined(Protocol::Redis), &turn.repeat(turns));
        let seen = (statuses(&dissected).len(), dissected.counts.mid_connection_requests);
        assert_eq!(seen, (reported, passed_over), "{turns} turns");
    }
}

#[test]
fn a_nested_reply_of_redis_is_one_response() {
    let get = b"*1\r\n$4\r\nPING\r\n".as_slice();
    for answer in [
        b"*2\r\n*1\r\n:1\r\n*0\r\n".as_slice(),
        b"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n,1.5\r\n",
        b"|1\r\n+ttl\r\n:3\r\n*2\r\n#t\r\n_\r\n",
        b"*-1\r\n",
        b"$-1\r\n",
        b"=15\r\ntxt:Some string\r\n",
        b"(3492890328409238509324850943850943825024385\r\n",
    ] {
        let both = [answer, b"-ERR x\r\n"].concat();
        let dissected = dissect(FRESH, &[client(&get.repeat(2)), server(&both)]);
        assert_eq!(statuses(&dissected), [Status::Ok, Status::RedisError], "{}", answer.escape_ascii());
    }
}

#[test]
fn a_length_from_the_wire_takes_no_memory() {
    let settings = |hint| DissectorSettings { start: Start::Fresh, hint: Some(hint) };
    for (hint, bytes) in [
        (Protocol::Redis, b"*2\r\n$4\r\nPING\r\n$1099511627775\r\n".as_slice()),
        (Protocol::Redis, b"*16777216\r\n"),
        (Protocol::Http1, b"PUT / HTTP/1.1\r\nContent-Length: 1125899906842624\r\n\r\n"),
        (Protocol::Postgres, b"\0\0\0\x08\0\x03\0\0Q\x40\0\0\0sel"),
    ] {
        let taken = allocation_counter::measure(|| {
            let mut harness = Harness::new(settings(hint));
            (0..100).for_each(|_| harness.feed(&client(bytes)));
            harness.close();
        });
        assert!(taken.bytes_max < 600_000, "{}: {taken:?}", bytes.escape_ascii());
    }
}

fn resumed(hint: Option<Protocol>) -> DissectorSettings {
    DissectorSettings { start: Start::Resumed, hint }
}

/// Feeds these pieces to a connection that is followed for a short time, which then ends.
fn watched_for_a_while(settings: DissectorSettings, pieces: &[Piece<'_>]) -> (usize, dissect::Counts) {
    let (mut dissector, mut digests, mut events) =
        (dissect::Dissector::new(settings), dissect::Digests::default(), Vec::new());
    pieces.iter().for_each(|piece| dissector.handle_piece(piece, &mut digests, &mut events));
    dissector.pause(&mut events);
    let responses = events.iter().filter(|event| matches!(event, dissect::Event::ResponseComplete(_)));
    (responses.count(), *dissector.counts())
}

/// If this fails, a server whose connections have a request per window is estimated to have none.
#[test]
fn the_only_turn_of_a_resumed_connection_is_reported() {
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let ok = server(b"HTTP/1.1 204 No Content\r\n\r\n");
    let (reported, counts) = watched_for_a_while(resumed(None), &[get, ok]);
    assert_eq!((reported, counts.missed, counts.dropped), (1, 0, 0));
    assert_eq!(watched_for_a_while(resumed(None), &[get, ok, get, ok, get]).0, 2);
    let ping = client(b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    let pong = server(b"+PONG\r\n+PONG\r\n");
    assert_eq!(watched_for_a_while(resumed(Some(Protocol::Redis)), &[ping, pong, ping, pong]).0, 4);
}

#[test]
fn a_resumed_connection_reports_nothing_that_began_before() {
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let ok = server(b"HTTP/1.1 204 No Content\r\n\r\n");
    // The response to a request from before; the rest of a body from before.
    assert_eq!(watched_for_a_while(resumed(None), &[ok, get, ok]).0, 1);
    assert_eq!(watched_for_a_while(resumed(None), &[client(b"rest of a body"), ok, get, ok]).0, 1);
    // A request from before is answered within the turn: one response too many.
    let redis = resumed(Some(Protocol::Redis));
    let ping = client(b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(watched_for_a_while(redis, &[ping, server(b"+PONG\r\n+PONG\r\n")]).0, 0);
}

#[test]
fn a_response_that_has_not_ended_is_not_reported_at_a_pause() {
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let half = server(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    assert_eq!(watched_for_a_while(FRESH, &[get, half]).0, 0);
    assert_eq!(watched_for_a_while(resumed(None), &[get, half]).0, 0);
}

/// Its protocol is known, and it is the same connection.
#[test]
fn a_connection_is_known_after_a_pause() {
    let mut dissector = dissect::Dissector::new(FRESH);
    let (mut digests, mut events) = (dissect::Digests::default(), Vec::new());
    let get = client(b"GET /f HTTP/1.1\r\n\r\n");
    let ok = server(b"HTTP/1.1 204 No Content\r\n\r\n");
    for _ in 0..3 {
        dissector.handle_piece(&get, &mut digests, &mut events);
        dissector.handle_piece(&ok, &mut digests, &mut events);
        dissector.pause(&mut events);
    }
    let known = events.iter().filter(|event| matches!(event, dissect::Event::ProtocolKnown(_))).count();
    let responses = events.iter().filter(|event| matches!(event, dissect::Event::ResponseComplete(_)));
    assert_eq!((known, responses.count()), (1, 3));
}
