//! From the URL of a database to its server: the address, the login, and whether connections use TLS.

use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use codec::tls::Trust;
use database::sql::Statement;
use database::{
    DatabaseKind, DatabaseParts, DatabaseUrl, Login, ServerPlan, SslMode, TlsUse, password_in_pgpass,
};
use engine::{Peer, Place};
use units::{Bytes, read_text_at_most};

use crate::environment::Environment;
use crate::options::{GivenOptions, or_default};
use crate::servers::{asks_for_tls, tls_config, trust};
use crate::spec::{Connection, RunSpec, Tls};
use crate::values::Count;

/// How the servers of a run are reached and logged in to, by [`codec::Origin`].
#[derive(Debug)]
pub struct DatabaseServer {
    pub plan: ServerPlan,
    pub peer: Peer,
}

/// Works out the server of `url`.
///
/// # Errors
///
/// One line for anything that cannot be done as requested; it does not contain the password.
pub fn server(
    url: &DatabaseUrl,
    spec: &RunSpec,
    environment: &Environment<'_>,
) -> anyhow::Result<DatabaseServer> {
    let socket = spec.connection.unix.as_ref().or(url.socket.as_ref());
    let user = user(url, environment)?;
    let login = Login {
        password: password(url, &user, &spec.connection, environment)?,
        // Without a name, PostgreSQL takes that of the user.
        database: url.database.clone(),
        user,
    };
    let peer = match socket {
        Some(socket) => Peer::at(Place::Unix(PathBuf::from(socket))),
        None => {
            let sources: Vec<IpAddr> = spec.connection.source.iter().map(|source| source.value).collect();
            let place = match url.host.parse::<IpAddr>() {
                Ok(address) => Place::Address(SocketAddr::new(address, url.port)),
                Err(_) => Place::Name { host: url.host.clone(), port: url.port },
            };
            Peer { place, sources }
        }
    };
    ensure!(
        socket.is_none() || spec.connection.source.is_empty(),
        "--source is for TCP, and the server has a Unix domain socket; leave it out"
    );
    let is_local_socket = socket.is_some();
    let tls = tls(url, is_local_socket, &spec.tls)?;
    let plan = ServerPlan { login, tls, is_local_socket, trusts_public_key: url.trusts_public_key };
    Ok(DatabaseServer { plan, peer })
}

/// What is sent to the servers of `plans`, besides a script: `statements`, within the limits of `spec`.
pub fn parts(
    kind: DatabaseKind,
    statements: Vec<Statement>,
    servers: Vec<ServerPlan>,
    spec: &RunSpec,
) -> DatabaseParts {
    let result_bytes = or_default::<Bytes>(&spec.checks.max_body, "max-body").0;
    let setup = spec.connection.setup_query.iter().map(|text| text.trim().trim_end_matches(';'));
    let setup = setup.map(Statement::text).collect();
    DatabaseParts { kind, statements, servers, setup, result_bytes, pipeline: depth(spec) }
}

/// Maximum statements in flight on one connection.
pub fn depth(spec: &RunSpec) -> usize {
    usize::try_from(or_default::<Count>(&spec.pool.pipeline, "pipeline").0).unwrap_or(usize::MAX)
}

/// Refuses options of HTTP, and pipelining where the protocol has none.
///
/// # Errors
///
/// One line for the first of them.
pub fn refuse_unused(kind: DatabaseKind, given: &GivenOptions) -> anyhow::Result<()> {
    const OF_HTTP: [&str; 5] = ["http", "streams", "resolve", "alpn", "max-head"];
    if let Some(name) = OF_HTTP.iter().find(|name| given.has(name)) {
        bail!("--{name} is for HTTP, and the server is a database; leave it out");
    }
    ensure!(
        kind != DatabaseKind::Redis || !given.has("setup-query"),
        "--setup-query is SQL, and the server is Redis; leave it out"
    );
    ensure!(
        kind.has_pipelining() || !given.has("pipeline"),
        "--pipeline is not for {}, whose protocol has one statement at a time on a connection; leave it out",
        kind.product()
    );
    Ok(())
}

fn user(url: &DatabaseUrl, environment: &Environment<'_>) -> anyhow::Result<String> {
    if url.kind == DatabaseKind::Redis {
        // Without a name, it is that of the server's default account.
        return Ok(url.user.clone().unwrap_or_default());
    }
    let user = url.user.clone().or_else(|| (environment.variable)("USER"));
    user.with_context(|| format!("{url} names no user; write {}USER@HOST/DATABASE", url.kind.scheme()))
}

/// The longest file with a password.
const LARGEST_PASSWORD: u64 = 4 << 10;

/// The longest file with passwords.
const LARGEST_PGPASS: u64 = 1 << 20;

/// The password: from its file, the URL, or where the clients of this kind of database look for it; empty without them.
fn password(
    url: &DatabaseUrl,
    user: &str,
    connection: &Connection,
    environment: &Environment<'_>,
) -> anyhow::Result<String> {
    match (&connection.password_file, &url.password) {
        (Some(_), Some(_)) => bail!("there are two passwords, in --password-file and in the URL; give one"),
        (Some(path), None) => {
            let text = File::open(path).and_then(|file| read_text_at_most(file, LARGEST_PASSWORD));
            let text = text.with_context(|| format!("cannot read the password in `{path}`"))?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        (None, Some(password)) => Ok(password.clone()),
        (None, None) => match url.kind {
            DatabaseKind::MySql => Ok((environment.variable)("MYSQL_PWD").unwrap_or_default()),
            DatabaseKind::Redis => Ok((environment.variable)("REDISCLI_AUTH").unwrap_or_default()),
            DatabaseKind::Postgres => match (environment.variable)("PGPASSWORD") {
                Some(password) => Ok(password),
                None => Ok(from_pgpass(url, user, environment)?.unwrap_or_default()),
            },
        },
    }
}

/// The password in PostgreSQL's password file, if there is such a file.
fn from_pgpass(
    url: &DatabaseUrl,
    user: &str,
    environment: &Environment<'_>,
) -> anyhow::Result<Option<String>> {
    let variable = environment.variable;
    let at_home = || variable("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let path = variable("PGPASSFILE").map(PathBuf::from).or_else(at_home);
    let Some((path, file)) = path.and_then(|path| File::open(&path).ok().map(|file| (path, file))) else {
        return Ok(None);
    };
    let mode = file.metadata().map_or(0, |metadata| metadata.mode());
    if mode & 0o077 != 0 {
        // As libpq.
        (environment.notice)(&format!(
            "`{}` is ignored, because other users may read it; run chmod 600",
            path.display()
        ));
        return Ok(None);
    }
    let text = read_text_at_most(file, LARGEST_PGPASS);
    let text = text.with_context(|| format!("cannot read the passwords in `{}`", path.display()))?;
    Ok(password_in_pgpass(&text, url, user))
}

fn tls(url: &DatabaseUrl, is_local_socket: bool, tls: &Tls) -> anyhow::Result<TlsUse> {
    let mode = match (url.ssl, url.kind) {
        // PostgreSQL has no TLS on such a socket, and libpq ignores the mode.
        (_, DatabaseKind::Postgres) if is_local_socket => SslMode::Disable,
        // rediss:// and -k.
        (Some(mode), DatabaseKind::Redis) if tls.insecure && mode != SslMode::Disable => SslMode::Require,
        (None, DatabaseKind::Redis) => SslMode::Disable,
        (Some(mode), _) => mode,
        (None, _) if tls.insecure => SslMode::Require,
        (None, _) if asks_for_tls(tls) => SslMode::VerifyFull,
        // As libpq.
        (None, DatabaseKind::Postgres) => SslMode::Prefer,
        (None, DatabaseKind::MySql) => SslMode::Disable,
    };
    ensure!(
        mode != SslMode::Disable || !asks_for_tls(tls),
        "TLS options have no effect with sslmode=disable, redis:// or a Unix domain socket; leave them out (Redis over TLS is rediss://)"
    );
    let verifies = matches!(mode, SslMode::VerifyCa | SslMode::VerifyFull);
    ensure!(
        !verifies || !tls.insecure,
        "--insecure (-k) excludes sslmode=verify-ca and verify-full; leave one out"
    );
    if mode == SslMode::Disable {
        return Ok(TlsUse::Never);
    }
    // As libpq: the certificate is verified if that was asked for, or if there is something to verify it with; and its
    // name only with verify-full.
    let trust = match (mode, trust(tls)?) {
        _ if !verifies && tls.cacert.is_none() => Trust::Anyone,
        (SslMode::VerifyFull, trust) => trust,
        (_, Trust::Roots(roots)) => Trust::AnyName(roots),
        (_, trust) => trust,
    };
    let config = tls_config(tls, trust, Vec::new())?;
    let plan = config.for_server(tls.sni.as_deref().unwrap_or(&url.host))?;
    Ok(if mode == SslMode::Prefer { TlsUse::Preferred(plan) } else { TlsUse::Required(plan) })
}
