//! Redis: transactions, publications, commands that block, RESP3, and TLS.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};

use super::super::redis::Redis;
use super::super::run;
use super::{check_counted, make_certificate, statements, times};
use crate::support::port;
use crate::support::quiet;
use crate::support::watched::Watching;

/// A connection that sends lines and waits for lines.
struct Client {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Client {
    fn of(redis: &Redis) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, redis.port)).unwrap();
        let replies = BufReader::new(stream.try_clone().unwrap());
        Client { stream, replies }
    }

    fn send(&mut self, commands: &[&str]) {
        let array = |command: &str| {
            let words: Vec<String> =
                command.split(' ').map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
            format!("*{}\r\n{}", words.len(), words.concat())
        };
        let whole: String = commands.iter().map(|command| array(command)).collect();
        self.stream.write_all(whole.as_bytes()).unwrap();
    }

    /// Reads up to the line that begins like this.
    fn wait_for(&mut self, line: &str) {
        let mut read = String::new();
        while !read.starts_with(line) {
            read.clear();
            assert!(self.replies.read_line(&mut read).unwrap() > 0, "no {line}");
        }
    }

    fn ask(&mut self, commands: &[&str], last: &str) {
        self.send(commands);
        self.wait_for(last);
    }
}

#[test]
fn redis_commands_are_those_of_the_server_in_transactions_and_publications_and_while_they_block() {
    let _together = quiet::together();
    let redis = Redis::start();
    let watching = Watching::start(&["--port", &redis.port.to_string()]);
    let before = redis.commands();
    let number = times(100);
    for version in ["2", "3"] {
        let [mut one, mut other, mut listener] = [(); 3].map(|()| Client::of(&redis));
        for client in [&mut one, &mut other, &mut listener] {
            client.ask(&["HELLO 3", &format!("HELLO {version}"), "PING"], "+PONG");
        }
        listener.ask(&["SUBSCRIBE news sport"], if version == "3" { ">3" } else { "*3" });
        for n in 0..number {
            one.ask(&["MULTI", "SET a 1", "INCR a", "EXEC"], ":2");
            one.ask(&["MULTI", "SET a 5", "DISCARD", "PING"], "+PONG");
            other.ask(&["PUBLISH news hello", "PUBLISH sport goal"], ":1");
            other.wait_for(":1");
            listener.wait_for("goal");
            one.send(&["BLPOP queue 10"]);
            // Blocked, or not yet: the counts are the same.
            other.ask(&["LPUSH queue work"], ":1");
            one.wait_for("work");
            let key = format!("HSET h{n} field value");
            one.ask(&[&key, "HGETALL h0", "GET none"], if version == "3" { "_" } else { "$-1" });
        }
        listener.ask(&["UNSUBSCRIBE news", "PING"], if version == "3" { "+PONG" } else { "pong" });
    }
    let counted = redis.commands() - before + 1;
    let watched = watching.finish();
    let requests = watched.named(redis.port);
    check_counted(
        "redis",
        requests.iter().map(|(one, _)| u64::from(one.statements)).sum(),
        counted,
        &watched,
    );
    for (text, each) in
        [("BLPOP queue", 1), ("PUBLISH news", 1), ("MULTI", 2), ("EXEC", 3), ("SET a", 0), ("HGETALL", 1)]
    {
        assert_eq!(statements(&requests, text), 2 * each * number, "{text}");
    }
    assert_eq!(statements(&requests, "SUBSCRIBE news"), 4);
}

#[test]
fn redis_commands_under_tls_are_those_of_the_server() {
    let _together = quiet::together();
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name));
    make_certificate(&certificate, &key);
    let secure = port::free();
    let (number, certificate) = (secure.to_string(), certificate.to_str().unwrap());
    let key = key.to_str().unwrap();
    let tls = [
        "--tls-port",
        &number,
        "--tls-cert-file",
        certificate,
        "--tls-key-file",
        key,
        "--tls-ca-cert-file",
        certificate,
    ];
    let redis = Redis::start_with(&[&tls[..], &["--tls-auth-clients", "no"]].concat());
    let watching = Watching::start(&["-p", &redis.pid().to_string(), "--tls"]);
    let before = redis.commands();
    // Whole pipelines: redis-benchmark sends no part of one.
    let (large, small) = (times(300 * 64).to_string(), times(2_000).to_string());
    let load =
        ["-p", &number, "--tls", "--cacert", certificate, "-c", "4", "-q", "-r", "1000", "-t", "set,get"];
    run("redis-benchmark", &[&load[..], &["-n", &large, "-P", "64"]].concat());
    run("redis-benchmark", &[&load[..], &["-n", &small]].concat());
    // Its own reading is on the other port.
    let counted = redis.commands() - before - 1;
    let watched = watching.finish();
    let requests = watched.named(secure);
    check_counted(
        "redis with TLS",
        requests.iter().map(|(one, _)| u64::from(one.statements)).sum(),
        counted,
        &watched,
    );
    assert_eq!(statements(&requests, "SET key:{}"), times(300 * 64 + 2_000));
    assert_eq!(statements(&requests, "GET key:{}"), times(300 * 64 + 2_000));
}
