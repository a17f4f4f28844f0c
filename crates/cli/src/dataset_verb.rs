//! `parallax prepare` and `parallax clean`: the tables and keys of built-in workloads.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::ValueHint;
use database::sql::Statement;
use database::{Database, DatabaseKind, DatabaseParts, DatabaseUrl};
use dataset::{Client, Progress, Tasks};
use run::databases::{self, DatabaseServer};
use run::options::GivenOptions;
use run::values::Count;
use scenario::workloads::{MOST_TABLES, Size};
use units::Nanos;

use crate::command_line::CommandLine;
use crate::drive::{TlsArgs, given, text};
use crate::environment::Process;
use crate::exit::Exit;
use crate::output::{printed, report_line};

/// Make the tables or keys of the built-in database workloads, or add what is missing of them after an interruption.
///
/// Tables that `parallax prepare` did not make are never changed. `parallax clean` removes those that it made.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  parallax prepare mysql://app@127.0.0.1/test --tables 4 --rows 1000000
  parallax drive mysql://app@127.0.0.1/test --workload oltp-read-write --tables 4 --rows 1000000
  parallax clean mysql://app@127.0.0.1/test
  parallax prepare postgres://app@127.0.0.1/test --workload tpcb-like --scale 10")]
pub struct PrepareArgs {
    #[command(flatten)]
    login: LoginArgs,

    /// What the tables are for: oltp stands for all workloads of these names [default: oltp; for Redis, redis-get-set].
    #[arg(long, value_name = "NAME", value_parser = ["oltp", "oltp-point-select", "oltp-read-only", "oltp-read-write", "oltp-write-only", "tpcb-like", "redis-get-set"])]
    workload: Option<String>,

    /// Tables [default: 1].
    #[arg(long, value_name = "N", value_parser = text("tables"))]
    tables: Option<String>,

    /// Rows in each table; for Redis, keys [default: 10000].
    #[arg(long, value_name = "N", value_parser = text("rows"))]
    rows: Option<String>,

    /// Branches of tpcb-like, with 100000 accounts each, as of pgbench [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=20_000))]
    scale: Option<u16>,

    /// Connections that add rows at the same time.
    #[arg(short = 'c', long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    connections: u16,
}

/// Remove the tables and keys that `parallax prepare` made, and no others.
#[derive(Debug, clap::Args)]
pub struct CleanArgs {
    #[command(flatten)]
    login: LoginArgs,
}

/// How to log in.
#[derive(Debug, Clone, clap::Args)]
struct LoginArgs {
    /// The database: mysql://USER@HOST/DATABASE or postgres://USER@HOST/DATABASE, with ?sslmode=MODE if needed; or
    /// redis://HOST/NUMBER.
    #[arg(value_name = "URL")]
    url: String,

    /// File with the password [default: MYSQL_PWD, PGPASSWORD, .pgpass]. A password in the URL is visible to other users of this host until
    /// the program overwrites it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    password_file: Option<String>,

    /// Connect to this Unix domain socket.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unix: Option<String>,

    #[command(flatten)]
    tls: TlsArgs,
}

/// What `prepare` makes.
#[derive(Debug, Clone, Copy)]
enum Dataset {
    Oltp(Size),
    /// At this scale.
    Tpcb(u64),
    /// So many keys of Redis.
    Keys(u64),
}

impl Dataset {
    /// Refuses options of other workloads.
    fn of(args: &PrepareArgs, kind: DatabaseKind) -> anyhow::Result<Dataset> {
        let number = |text: &Option<String>| -> anyhow::Result<Option<u64>> {
            Ok(text
                .as_ref()
                .map(|text| text.parse::<Count>().map_err(anyhow::Error::msg))
                .transpose()?
                .map(|n| n.0))
        };
        let (tables, rows) = (number(&args.tables)?, number(&args.rows)?);
        let is_redis = kind == DatabaseKind::Redis;
        let workload = match args.workload.as_deref() {
            None if is_redis => "redis-get-set",
            None => "oltp",
            Some(name) => name,
        };
        ensure!(
            is_redis == (workload == "redis-get-set"),
            "--workload {workload} is not for {}; use another workload",
            kind.product()
        );
        let otherwise = Size::default_of(workload);
        let dataset = match workload {
            "tpcb-like" => {
                ensure!(
                    tables.is_none() && rows.is_none(),
                    "tpcb-like has the tables of pgbench, whose size is --scale N; leave --tables and --rows out"
                );
                Dataset::Tpcb(args.scale.map_or(1, u64::from))
            }
            "redis-get-set" => {
                ensure!(tables.is_none(), "Redis has no tables; --rows N is the number of keys");
                Dataset::Keys(rows.unwrap_or(otherwise.rows))
            }
            _ => Dataset::Oltp(Size {
                tables: tables.unwrap_or(otherwise.tables),
                rows: rows.unwrap_or(otherwise.rows),
            }),
        };
        ensure!(
            args.scale.is_none() || matches!(dataset, Dataset::Tpcb(_)),
            "--scale is for --workload tpcb-like; use --tables and --rows"
        );
        match dataset {
            Dataset::Oltp(size) => size.check()?,
            Dataset::Keys(rows) => Size { tables: 1, rows }.check()?,
            Dataset::Tpcb(_) => {}
        }
        Ok(dataset)
    }

    fn statements(self, kind: DatabaseKind) -> Vec<Statement> {
        match self {
            Dataset::Oltp(size) => dataset::parts(kind, size),
            Dataset::Tpcb(scale) => dataset::tpcb::parts(kind, scale),
            Dataset::Keys(keys) => dataset::keys::parts(keys),
        }
    }

    /// Rows of each table of `oltp-*`.
    fn rows(self) -> u64 {
        match self {
            Dataset::Oltp(size) => size.rows,
            Dataset::Tpcb(_) | Dataset::Keys(_) => 1,
        }
    }

    /// What there is now, and how `drive` uses it.
    fn words(self, url: &DatabaseUrl) -> String {
        match self {
            Dataset::Oltp(size) => format!("{} of {} rows in {url}", plural(size.tables, "table"), size.rows),
            Dataset::Tpcb(scale) => format!(
                "tpcb-like at scale {scale} in {url} (drive --workload tpcb-like --rows {})",
                scale * dataset::tpcb::ACCOUNTS
            ),
            Dataset::Keys(keys) => format!("{keys} keys in {url}"),
        }
    }
}

/// Runs `prepare`.
///
/// # Errors
///
/// One line: wrong usage, a table of somebody else, or what the server refused.
pub fn prepare(args: &PrepareArgs, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    let dataset = Dataset::of(args, DatabaseUrl::parse(&args.login.url)?.kind)?;
    let database = Place::of(&args.login, &given::given(line), dataset)?;
    let mut bar = Bar::new();
    let (connect, connections) = (|| database.connect(), usize::from(args.connections));
    let mut tell = |progress| bar.show(progress);
    let loaded = match dataset {
        Dataset::Oltp(size) => dataset::prepare(&connect, size, connections, &mut tell),
        Dataset::Tpcb(scale) => dataset::tpcb::prepare(&connect, scale, connections, &mut tell),
        Dataset::Keys(keys) => {
            connect().and_then(|mut client| dataset::keys::prepare(&mut client, keys, &mut tell))
        }
    };
    bar.end();
    let rows = loaded.with_context(|| format!("cannot prepare {}", database.url))?.rows;
    let what = if matches!(dataset, Dataset::Keys(_)) { "keys" } else { "rows" };
    let found = if rows.found > 0 { format!(", {} were there", rows.found) } else { String::new() };
    printed(writeln!(io::stdout(), "{}: {} {what} added{found}", dataset.words(&database.url), rows.added))?;
    Ok(Exit::Done)
}

/// Runs `clean`.
///
/// # Errors
///
/// One line: wrong usage, or what the server refused.
pub fn clean(args: &CleanArgs, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    let given = given::given(line);
    let url = DatabaseUrl::parse(&args.login.url)?;
    let removed = match url.kind {
        DatabaseKind::Redis => clean_keys(args, &given),
        DatabaseKind::MySql | DatabaseKind::Postgres => clean_tables(args, &given),
    };
    let removed = removed.with_context(|| format!("cannot clean {url}"))?;
    match removed {
        Some(words) => printed(writeln!(io::stdout(), "removed {words}"))?,
        None => report_line(format_args!("nothing in {url} was made by `parallax prepare`")),
    }
    Ok(Exit::Done)
}

/// Removes keys. Returns what was removed; `None` if there was nothing.
fn clean_keys(args: &CleanArgs, given: &GivenOptions) -> anyhow::Result<Option<String>> {
    let marked = Place::of(&args.login, given, Dataset::Keys(1))?.connect();
    let Some(keys) = marked.and_then(|mut client| dataset::keys::marked(&mut client))? else {
        return Ok(None);
    };
    let database = Place::of(&args.login, given, Dataset::Keys(keys))?;
    database.connect().and_then(|mut client| dataset::keys::clean(&mut client, keys))?;
    Ok(Some(format!("{} from {}", plural(keys, "key"), database.url)))
}

/// The same for tables.
fn clean_tables(args: &CleanArgs, given: &GivenOptions) -> anyhow::Result<Option<String>> {
    let oltp = Place::of(&args.login, given, Dataset::Oltp(Size { tables: MOST_TABLES, rows: 1 }))?;
    let mut removed = oltp.connect().and_then(|mut client| dataset::clean(&mut client, MOST_TABLES))?;
    let tpcb = Place::of(&args.login, given, Dataset::Tpcb(1))?;
    removed.extend(tpcb.connect().and_then(|mut client| dataset::tpcb::clean(&mut client))?);
    let words =
        || format!("{} from {}: {}", plural(removed.len() as u64, "table"), oltp.url, removed.join(", "));
    Ok((!removed.is_empty()).then(words))
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Where the tables are: where connections go, and what they send.
struct Place {
    url: DatabaseUrl,
    protocol: Arc<Database<Tasks>>,
    place: engine::Place,
}

impl Place {
    fn of(login: &LoginArgs, given: &GivenOptions, dataset: Dataset) -> anyhow::Result<Place> {
        let url = DatabaseUrl::parse(&login.url)?;
        ensure!(
            url.kind == DatabaseKind::Redis || url.database.is_some(),
            "{url} names no database; write it as mysql://USER@HOST/DATABASE"
        );
        let mut given = given.clone();
        // Those that do not say how to log in.
        for other in ["workload", "tables", "rows", "scale", "connections"] {
            given.0.remove(other);
        }
        let process = Process::new();
        let DatabaseServer { plan, peer } = databases::server(&url, &given.spec()?, &process.environment())?;
        let parts = DatabaseParts {
            setup: Vec::new(),
            kind: url.kind,
            statements: dataset.statements(url.kind),
            servers: vec![plan],
            result_bytes: 1 << 20,
            pipeline: 1,
        };
        let protocol = Arc::new(Database::new(Tasks { rows: dataset.rows() }, parts)?);
        Ok(Place { url, protocol, place: peer.place })
    }

    fn connect(&self) -> anyhow::Result<Client<Database<Tasks>>> {
        Client::connect(&self.protocol, &self.place)
    }
}

/// The line on standard error that shows how far the loading is.
struct Bar {
    began: Nanos,
    is_terminal: bool,
    shown: bool,
    /// When a line was last written that stays.
    last: Nanos,
}

/// How often a line is written where none can be overwritten.
const EVERY: Nanos = Nanos::from_secs(10);

impl Bar {
    fn new() -> Bar {
        let now = clock::now();
        Bar { began: now, is_terminal: io::stderr().is_terminal(), shown: false, last: now }
    }

    fn show(&mut self, progress: Progress) {
        let now = clock::now();
        let text = progress_text(progress, now.saturating_sub(self.began));
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\u{1b}[K{text}");
            self.shown = true;
        } else if now.saturating_sub(self.last) >= EVERY {
            self.last = now;
            report_line(text);
        }
    }

    fn end(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

/// `1200000 of 4000000 rows (30 %), 48000/s, 58 s left`.
fn progress_text(progress: Progress, passed: Nanos) -> String {
    let Progress { found, added, all } = progress;
    let there = found + added;
    let head = format!("{there} of {all} rows ({} %)", there * 100 / all.max(1));
    if there >= all {
        return format!("{head}, making indexes");
    }
    let seconds = passed.0 as f64 / 1e9;
    let rate = added as f64 / seconds.max(1e-9);
    if added == 0 {
        return head;
    }
    format!("{head}, {rate:.0}/s, {:.0} s left", (all - there) as f64 / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_says_when_it_ends() {
        let text = |found, added, all, seconds| {
            progress_text(Progress { found, added, all }, Nanos::from_secs(seconds))
        };
        assert_eq!(text(0, 0, 4_000, 1), "0 of 4000 rows (0 %)");
        // Rows that were there say nothing about the speed.
        assert_eq!(text(1_000, 2_000, 4_000, 4), "3000 of 4000 rows (75 %), 500/s, 2 s left");
        assert_eq!(text(0, 4_000, 4_000, 8), "4000 of 4000 rows (100 %), making indexes");
    }
}
