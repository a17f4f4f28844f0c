//! Counts, rows, users and schemas per statement are those that the databases have of them.

use std::collections::BTreeMap;

use record::Protocol;

use super::mariadb::Data;
use super::postgres::Postgres;
use crate::support::quiet;
use crate::support::watched::{Watched, Watching};

/// Count, rows sent and rows affected per statement, by what the normalised texts have in common.
type Statements = BTreeMap<String, [u64; 3]>;

/// Letters, digits, `_` and `*` alone: placeholders and lists are written differently.
fn key(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '*')).collect()
}

fn add(statements: &mut Statements, text: &str, figures: [u64; 3]) {
    let sums = statements.entry(key(text)).or_default();
    sums.iter_mut().zip(figures).for_each(|(sum, more)| *sum += more);
}

/// Those of the watch that a user and schema have sent.
fn watched_statements(watched: &Watched, session: (&str, &str)) -> Statements {
    let mut statements = Statements::new();
    for digest in watched.results.digests.iter().filter(|digest| digest.count > 0) {
        let sessions: Vec<_> =
            digest.sessions.iter().map(|&id| &watched.results.sessions[id as usize]).collect();
        let is_own = |of: &&record::observation::watch::SessionUse| {
            (of.user.as_deref(), of.schema.as_deref()) == (Some(session.0), Some(session.1))
        };
        if sessions.iter().all(is_own) {
            let rows = digest.rows.unwrap_or_default();
            assert_eq!(rows.requests, digest.count, "all rows of {} are known", digest.text);
            add(&mut statements, &digest.text, [digest.count, rows.sent, rows.affected]);
        }
    }
    statements
}

/// If this fails, a DBA reads other figures than the database's own.
#[test]
fn mariadb_statements_have_the_counts_and_rows_of_its_digests() {
    let _together = quiet::together();
    let data = Data::install();
    let server = data.start("one-thread-per-connection", &["--performance-schema=ON"]);
    server.ask("CREATE DATABASE sbtest; CREATE USER app@'%'; GRANT ALL ON sbtest.* TO app@'%'");
    let load = ["--mysql-user=app", "--mysql-db=sbtest", "--table-size=500", "--skip-trx=on"];
    server.bench(&[&load[..], &["prepare"]].concat());
    server.ask("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest");
    let watching = Watching::start(&["-p", &server.pid(), "--capture", "16384"]);
    // One client: concurrent ones may insert the same key.
    let run = ["--threads=1", "--db-ps-mode=disable", "--events=200", "run"];
    server.bench_of("oltp_read_write", &[&load[..], &run].concat());
    let watched = watching.finish();
    let text = server.ask(
        "SELECT COUNT_STAR, SUM_ROWS_SENT, SUM_ROWS_AFFECTED, DIGEST_TEXT \
         FROM performance_schema.events_statements_summary_by_digest WHERE SCHEMA_NAME = 'sbtest'",
    );
    let mut counted = Statements::new();
    for line in text.lines() {
        let mut words = line.splitn(4, '\t');
        let figures = [(); 3].map(|()| words.next().unwrap().parse().unwrap());
        // Its digests have this synonym for what the client wrote.
        let text = words.next().unwrap().replace("DISTINCTROW", "DISTINCT");
        add(&mut counted, &text, figures);
    }
    let seen = watched_statements(&watched, ("app", "sbtest"));
    let (rows, affected) = counted.values().fold((0, 0), |(sent, own), row| (sent + row[1], own + row[2]));
    println!("{} statements, {rows} rows sent, {affected} affected", counted.len());
    assert!(rows > 50_000 && affected > 500, "{counted:?}");
    // Quitting is a command to us and no statement to the server.
    let is_statement = |(text, _): &(&String, &[u64; 3])| counted.contains_key(*text);
    let of_both: Statements = seen.iter().filter(is_statement).map(|(a, b)| (a.clone(), *b)).collect();
    assert_eq!(of_both, counted, "more was seen: {seen:?}");
    // The server's digests have a schema from the login on; sysbench sends nothing else.
    let addresses: Vec<_> = watched.results.peers.iter().filter_map(|peer| peer.address.as_deref()).collect();
    assert!(addresses.contains(&"127.0.0.1"), "{addresses:?}");
}

#[test]
fn postgres_statements_have_the_calls_and_rows_of_pg_stat_statements() {
    let _together = quiet::together();
    let postgres = Postgres::start();
    postgres.prepare();
    for mode in ["simple", "extended"] {
        postgres.ask("SELECT pg_stat_statements_reset()");
        let port = postgres.port().to_string();
        let watching = Watching::start(&["--port", &port, "--capture", "16384"]);
        postgres.bench(&["-n", "-c", "2", "-t", "250", "-M", mode]);
        let watched = watching.finish();
        let text = postgres.ask(
            "SELECT calls || E'\\t' || rows || E'\\t' || replace(query, E'\\n', ' ') FROM pg_stat_statements \
             WHERE query ILIKE '%pgbench%' OR query IN ('BEGIN', 'END')",
        );
        let mut counted: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for line in text.lines() {
            let mut words = line.splitn(3, '\t');
            let [calls, rows] = [(); 2].map(|()| words.next().unwrap().parse::<u64>().unwrap());
            // `$1` where the watch has `?`.
            let query = words.next().unwrap();
            let query = (1..=9).fold(query.to_owned(), |query, n| query.replace(&format!("${n}"), "?"));
            let sums = counted.entry(key(&query)).or_default();
            *sums = [sums[0] + calls, sums[1] + rows];
        }
        let seen: BTreeMap<String, [u64; 2]> = watched_statements(&watched, ("postgres", "postgres"))
            .into_iter()
            .filter(|(text, _)| counted.contains_key(text))
            .map(|(text, [count, sent, affected])| (text, [count, sent + affected]))
            .collect();
        println!("{mode}: {counted:?}");
        assert!(counted.len() >= 6, "{counted:?}");
        assert_eq!(seen, counted, "{mode}");
        let is_postgres = watched.served.iter().all(|one| one.protocol == Protocol::Postgres);
        assert!(is_postgres, "{:?}", watched.results.subject.protocols);
    }
}
