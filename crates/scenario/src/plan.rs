//! A compiled scenario: kinds, plays, servers, rows.

use std::path::PathBuf;

use codec::web::Url;
use database::DatabaseKind;
use database::sql::Statement;

use crate::sql::SqlStep;
use crate::table::Table;
use crate::template::{Moment, Template};
use crate::think::Think;
use crate::web::WebStep;

/// A scenario that can be driven: the script of a run, and what the run must know about it.
#[derive(Debug)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) targets: Vec<Server>,
    /// All requests; those of one play are consecutive.
    pub(crate) steps: Vec<Step>,
    pub(crate) plays: Vec<Play>,
    /// The play of each turn; unit `n` takes turn `n` modulo the number of turns.
    pub(crate) turns: Vec<u32>,
    pub(crate) tables: Vec<Table>,
    /// For each table, the ordinal of a unit among the units that use it.
    pub(crate) ordinals: Vec<Ordinals>,
    /// How much of a body is kept.
    pub(crate) keep_body: usize,
    /// When the run begins, in Unix seconds: cookies that expired before that are dropped.
    pub(crate) now: i64,
    /// The statements of all steps, if the servers are databases.
    pub(crate) statements: Vec<Statement>,
    /// The step that undoes a transaction before it is tried again, after all others.
    pub(crate) rollback: Option<u16>,
}

/// A server of the scenario.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    pub address: Address,
    pub tls: Tls,
    pub(crate) base: String,
    /// Its URL with placeholders, if some of it came from the environment.
    pub(crate) hidden: Option<String>,
    pub(crate) headers: Vec<(String, Template)>,
}

/// Where a server is, and what is spoken with it: the same with all servers of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Web(Url),
    /// The URL of a database, as written; it may contain a password.
    Database(String),
}

impl Address {
    /// What kind of database is there; `None` for a server of HTTP.
    pub(crate) fn database_kind(&self) -> Option<DatabaseKind> {
        match self {
            Address::Web(_) => None,
            Address::Database(url) => DatabaseKind::of(url),
        }
    }
}

/// How the server is verified, and the client's certificate. Paths are relative to the scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Accepts any certificate.
    pub insecure: bool,
    /// The certificates to trust.
    pub ca: Option<PathBuf>,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name to send (SNI) and to verify.
    pub server_name: Option<String>,
}

/// A single request, or steps that follow each other.
#[derive(Debug)]
pub(crate) struct Play {
    /// `None` for a single request.
    pub journey: Option<String>,
    /// Its number among the journeys; `None` for a single request.
    pub number: Option<u16>,
    pub weight: u32,
    /// Index of its first step in the list of all.
    pub first: u16,
    pub steps: u16,
    pub cookies: bool,
    /// How often a transaction is tried again after a deadlock or a conflict.
    pub retries: u32,
    /// Values that its steps capture.
    pub slots: Vec<String>,
    /// The tables that its texts use.
    pub tables: Vec<u16>,
}

/// One step of a journey, or a single request.
#[derive(Debug)]
pub(crate) struct Step {
    pub name: String,
    /// The number of its server.
    pub target: u16,
    pub think: Think,
    pub think_draw: u64,
    pub action: Action,
}

/// What a step sends, and what its response must satisfy.
#[derive(Debug)]
pub(crate) enum Action {
    Web(WebStep),
    Sql(SqlStep),
}

impl Step {
    /// The HTTP request.
    pub(crate) fn web(&self) -> &WebStep {
        match &self.action {
            Action::Web(web) => web,
            Action::Sql(_) => unreachable!("a scenario is either of HTTP or of SQL"),
        }
    }

    /// The SQL statement.
    pub(crate) fn sql(&self) -> &SqlStep {
        match &self.action {
            Action::Sql(sql) => sql,
            Action::Web(_) => unreachable!("a scenario is either of HTTP or of SQL"),
        }
    }
}

impl Server {
    /// Its URL, if it is one of HTTP.
    pub(crate) fn url(&self) -> &Url {
        match &self.address {
            Address::Web(url) => url,
            Address::Database(_) => unreachable!("a scenario is either of HTTP or of SQL"),
        }
    }
}

/// The ordinal of a unit among the units that use a table.
#[derive(Debug)]
pub(crate) enum Ordinals {
    /// Every unit uses it.
    All,
    Some {
        /// How many units in one cycle of turns use it.
        per_cycle: u64,
        /// How many turns before each turn of the cycle use it.
        before: Vec<u32>,
    },
}

/// A kind of request, with its own figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKind {
    pub name: String,
    /// The journey that it is a step of.
    pub journey: Option<String>,
    /// Whether it is the first step of its journey.
    pub first: bool,
    /// The statement, with `?` or `$1` for its parameters, if it has no name.
    pub statement: Option<String>,
}

/// Why a run of a scenario ends early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Maximum number of arrivals.
    pub arrivals: u64,
    /// The data that is used up then.
    pub data: String,
    pub rows: u64,
}

impl Scenario {
    /// Every kind of request, in the order of their numbers.
    pub fn kinds_named(&self) -> Vec<RequestKind> {
        let of = |play: &Play| (usize::from(play.first), usize::from(play.first) + usize::from(play.steps));
        let plays = self.plays.iter().flat_map(|play| {
            let (first, end) = of(play);
            (first..end).map(move |at| (at, at == first, play.journey.clone()))
        });
        let kind = |(at, first, journey)| {
            let step: &Step = &self.steps[at];
            let statement = match &step.action {
                Action::Sql(sql) if sql.is_unnamed => Some(self.statement_of(sql)),
                _ => None,
            };
            RequestKind { name: step.name.clone(), journey, first, statement }
        };
        let rollback = self.rollback.map(|at| (usize::from(at), false, None));
        plays.chain(rollback).map(kind).collect()
    }

    /// What kind of databases its servers are; `None` for HTTP.
    pub fn database_kind(&self) -> Option<DatabaseKind> {
        self.targets.first().and_then(|target| target.address.database_kind())
    }

    /// The servers, in the order of their numbers.
    pub fn servers(&self) -> &[Server] {
        &self.targets
    }

    /// The number of units of demand for which there are rows, if some data is used only once.
    pub fn limit(&self) -> Option<Limit> {
        let once = self
            .tables
            .iter()
            .zip(&self.ordinals)
            .filter(|(table, _)| table.order == crate::format::Order::Once && table.rows() > 0);
        let limits = once.map(|(table, ordinals)| Limit {
            arrivals: ordinals.units_for(table.rows()),
            data: table.name.clone(),
            rows: table.rows(),
        });
        limits.min_by_key(|limit| limit.arrivals)
    }
}

impl Ordinals {
    /// # Panics
    ///
    /// When `uses` is empty: every run has turns.
    pub(crate) fn new(uses: &[bool]) -> Ordinals {
        if uses.iter().all(|uses| *uses) {
            return Ordinals::All;
        }
        let mut count = 0u32;
        let before = uses.iter().map(|uses| {
            let before = count;
            count += u32::from(*uses);
            before
        });
        let before = before.collect();
        Ordinals::Some { per_cycle: u64::from(count), before }
    }

    /// The ordinal of unit `n`, from 0.
    pub(crate) fn of(&self, n: u64) -> u64 {
        match self {
            Ordinals::All => n,
            Ordinals::Some { per_cycle, before } => {
                let length = before.len() as u64;
                (n / length) * per_cycle + u64::from(before[(n % length) as usize])
            }
        }
    }

    /// The number of the first unit for which there is no row left.
    fn units_for(&self, rows: u64) -> u64 {
        match self {
            Ordinals::All => rows,
            Ordinals::Some { per_cycle, .. } if *per_cycle == 0 => u64::MAX,
            Ordinals::Some { per_cycle, before } => {
                let (cycles, rest) = (rows / per_cycle, rows % per_cycle);
                let used = |at: usize| {
                    before.get(at + 1).map_or(*per_cycle, |next| u64::from(*next)) > u64::from(before[at])
                };
                let turn = (0..before.len()).find(|at| u64::from(before[*at]) == rest && used(*at));
                cycles * before.len() as u64 + turn.unwrap_or(0) as u64
            }
        }
    }
}

/// For texts without placeholders.
pub(crate) struct Nothing;

impl Moment for Nothing {
    fn captured(&self, _: u16) -> &str {
        ""
    }

    fn cell(&self, _: u16, _: u16) -> &str {
        ""
    }

    fn seed(&self) -> u64 {
        0
    }

    fn n(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_to_the_units_that_use_them_one_after_the_other() {
        let ordinals = Ordinals::new(&[false, true, true, false]);
        let users: Vec<u64> = [1, 2, 5, 6, 9].iter().map(|n| ordinals.of(*n)).collect();
        assert_eq!(users, [0, 1, 2, 3, 4]);
        // With four rows, units 1, 2, 5 and 6 have one; unit 9 would be the first without.
        assert_eq!(ordinals.units_for(4), 9);
        assert_eq!(ordinals.units_for(3), 6);
        assert_eq!(ordinals.units_for(1), 2);
        assert_eq!(Ordinals::new(&[true]).units_for(7), 7);
        assert_eq!(Ordinals::new(&[false]).units_for(7), u64::MAX);
    }
}
