//! Requests per second on one core: `cargo bench -p dissect`. A figure for people, not a test.
//!
//! Each case is one connection that is read repeatedly, with digests and events as in real use.

use std::hint::black_box;
use std::io::Write;

use dissect::{Digests, Direction, Dissector, DissectorSettings, Piece, Protocol, Start};

struct Case {
    name: &'static str,
    hint: Protocol,
    requests: Vec<Vec<u8>>,
    response: Vec<u8>,
    /// Requests per piece.
    depth: usize,
}

fn main() {
    let mut out = std::io::stdout();
    for case in cases() {
        let (rate, nanos) = run(&case);
        writeln!(out, "{:<34} {:>6.2} million requests/s {:>7.0} ns each", case.name, rate, nanos)
            .expect("standard output takes a line");
    }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![http(), postgres_query(), postgres_prepared(), mysql_query()];
    for (name, depth) in [("redis GET, one at a time", 1), ("redis GET, 64 deep", 64)] {
        let requests = each(|n| {
            let key = format!("key:{n:012}");
            format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()).into_bytes()
        });
        let response = b"$3\r\nxyz\r\n".to_vec();
        cases.push(Case { name, hint: Protocol::Redis, requests, response, depth });
    }
    cases
}

fn http() -> Case {
    let requests = each(|n| {
        let head = "Host: localhost:8080\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n";
        format!("GET /users/{n}/orders HTTP/1.1\r\n{head}").into_bytes()
    });
    let response = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sun, 22 Nov 2026 08:14:17 GMT\r\n\
        Content-Type: text/plain\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nhello\n";
    Case { name: "http GET", hint: Protocol::Http1, requests, response: response.into(), depth: 1 }
}

/// A statement of 73 bytes or more, a different one each time.
fn statement(n: usize) -> String {
    format!("SELECT abalance FROM pgbench_accounts WHERE aid = {n} AND bid IN (1, 2, 3)")
}

fn postgres_query() -> Case {
    let requests = each(|n| message(b'Q', format!("{}\0", statement(n)).as_bytes()));
    let response = [message(b'T', b"\0\x01abalance\0\0\0\0\0\0\0\0\0\0\0"), postgres_row()].concat();
    Case { name: "postgres simple query", hint: Protocol::Postgres, requests, response, depth: 1 }
}

fn postgres_prepared() -> Case {
    let execute = [
        message(b'B', b"\0P_1\0\0\0\0\x01\0\0\0\x027\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
        message(b'S', b""),
    ];
    let response = [message(b'2', b""), message(b'n', b""), postgres_row()].concat();
    let requests = vec![execute.concat()];
    Case { name: "postgres prepared", hint: Protocol::Postgres, requests, response, depth: 1 }
}

/// One row, and the end of its response.
fn postgres_row() -> Vec<u8> {
    let row = message(b'D', b"\0\x01\0\0\0\x02-7");
    [row, message(b'C', b"SELECT 1\0"), message(b'Z', b"I")].concat()
}

fn mysql_query() -> Case {
    let requests = each(|n| packet(0, format!("\x03{}", statement(n)).as_bytes()));
    let definition = b"\x03def\x04test\x01t\x01t\x01b\x01b\x0c\x3f";
    let payloads: [&[u8]; 4] = [b"\x01", definition, b"\x02-7", b"\xfe\0\0\x02\0\0\0"];
    let response =
        payloads.iter().zip(1..).flat_map(|(payload, sequence)| packet(sequence, payload)).collect();
    Case { name: "mysql query", hint: Protocol::MySql, requests, response, depth: 1 }
}

/// A thousand requests with different values.
fn each(make: impl Fn(usize) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..1_000).map(|n| make(n * 7_919)).collect()
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes =
        u32::try_from(payload.len()).expect("a short packet has a short length").to_le_bytes()[..3].to_vec();
    bytes.push(sequence);
    bytes.extend_from_slice(payload);
    bytes
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message has a short length");
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

/// Million requests per second, and nanoseconds for each: the best of five rounds.
fn run(case: &Case) -> (f64, f64) {
    let mut digests = Digests::default();
    let mut events = Vec::new();
    let asked: Vec<Vec<u8>> = case.requests.chunks(case.depth).map(<[_]>::concat).collect();
    let responses = case.response.repeat(case.depth);
    let settings = DissectorSettings { start: Start::Joined, hint: Some(case.hint) };
    let mut dissector = Dissector::new(settings);
    // The last one may contain fewer requests than there are responses.
    let full: Vec<_> = asked.iter().take(case.requests.len() / case.depth).collect();
    let mut round = |count: &mut u64| {
        for bytes in &full {
            events.clear();
            dissector.handle_piece(&Piece::whole(Direction::FromClient, bytes), &mut digests, &mut events);
            dissector.handle_piece(
                &Piece::whole(Direction::FromServer, &responses),
                &mut digests,
                &mut events,
            );
            *count += black_box(&events).len() as u64 / 2;
        }
    };
    let mut best = f64::MAX;
    for _ in 0..5 {
        let (mut count, began) = (0, cpu_nanos());
        while count < 300_000 {
            let before = count;
            round(&mut count);
            if before == count && cpu_nanos() - began > 2e9 {
                break;
            }
        }
        best = best.min((cpu_nanos() - began) / count as f64);
    }
    (1e3 / best, best)
}

/// CPU time of this process: other processes do not count.
fn cpu_nanos() -> f64 {
    let stat =
        std::fs::read_to_string("/proc/self/schedstat").expect("the kernel keeps scheduler statistics");
    stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("its first number is CPU time")
}
