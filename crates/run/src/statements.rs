//! A run of single statements against a database: `--query`.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use database::sql::{Statement, StatementTurns};
use database::{Database, DatabaseKind, DatabaseUrl};
use dissect::{Dialect, DigestLimits, Digests};
use protocols::DriveProtocol;

use crate::databases::{self, refuse_unused};
use crate::environment::Environment;
use crate::options::GivenOptions;
use crate::parts::Parts;
use crate::replay;
use crate::spec::{Request, RunSpec, StatementRequests};

/// The parts of a run of statements that take turns.
///
/// # Errors
///
/// One line for anything that cannot be done as requested.
pub fn parts(spec: &RunSpec, given: &GivenOptions, environment: &Environment<'_>) -> anyhow::Result<Parts> {
    let Request::Statements(requests) = &spec.request else {
        unreachable!("called for statements alone");
    };
    replay::read(spec)?;
    let url = DatabaseUrl::parse(url(requests)?)?;
    refuse_unused(url.kind, given)?;
    ensure!(
        url.kind != DatabaseKind::Redis,
        "Redis is sent commands, not --query; write for example --command 'GET key'"
    );
    ensure!(!requests.query.is_empty(), "nothing to send; give a statement: --query 'SELECT 1'");
    let server = databases::server(&url, spec, environment)?;
    let statements: Vec<Statement> = requests.query.iter().map(|text| statement(text, requests)).collect();
    let (names, kinds) = by_digest(url.kind, &requests.query);
    let parts = databases::parts(url.kind, statements, vec![server.plan], spec);
    let turns = StatementTurns::new(kinds);
    let turns =
        turns.with_context(|| format!("{} statements are too many for a run", requests.query.len()))?;
    let protocol = Database::new(turns, parts)?;
    Ok(Parts {
        spec: spec.clone(),
        given: given.clone(),
        protocol: DriveProtocol::Statements(protocol),
        peers: vec![server.peer],
        depth: databases::depth(spec) as u64,
        url: url.to_string(),
        method: "none: statements".to_owned(),
        names,
        values: BTreeMap::new(),
        seed: None,
        data_limit: None,
        recorded: None,
        replay: None,
    })
}

fn url(requests: &StatementRequests) -> anyhow::Result<&str> {
    let [url] = requests.url.as_slice() else {
        anyhow::bail!("{} databases are given, and a run has one; give one URL", requests.url.len());
    };
    Ok(url)
}

fn statement(text: &str, requests: &StatementRequests) -> Statement {
    let text = text.trim().trim_end_matches(';');
    Statement { prepared: requests.prepared, ..Statement::text(text) }
}

/// The digests of the statements, and which of them each statement has: the names of the figures, as `watch` has them
/// for the same statements.
fn by_digest(kind: DatabaseKind, queries: &[String]) -> (Vec<String>, Vec<u16>) {
    let mut names: Vec<String> = Vec::new();
    let kinds = queries.iter().map(|text| {
        let digest = digest(kind, text);
        let known = names.iter().position(|name| *name == digest).unwrap_or_else(|| {
            names.push(digest);
            names.len() - 1
        });
        // More statements than these are refused later.
        u16::try_from(known).unwrap_or(u16::MAX)
    });
    let kinds = kinds.collect();
    (names, kinds)
}

/// The text that all statements share that differ from `text` in their values alone.
pub fn digest(kind: DatabaseKind, text: &str) -> String {
    let mut digests = Digests::new(DigestLimits::default());
    if kind == DatabaseKind::Redis {
        let words: Vec<&[u8]> = text.split_ascii_whitespace().map(str::as_bytes).collect();
        let id = digests.redis_command(&words);
        return digests.text(id).to_owned();
    }
    let dialect = match kind {
        DatabaseKind::MySql | DatabaseKind::Redis => Dialect::MySql,
        DatabaseKind::Postgres => Dialect::Postgres,
    };
    let id = digests.statement(dialect, text.trim().trim_end_matches(';').as_bytes(), false);
    digests.text(id).to_owned()
}
