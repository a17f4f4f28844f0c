//! What a scenario came to, once everything in it was found good: kinds, plays, servers, rows.

use std::path::PathBuf;

use codec::web::Url;

use crate::table::Table;
use crate::template::{Moment, Template};
use crate::think::Think;
use crate::web::WebStep;

/// A scenario that may be driven: the script of a run, and what the run must know of it.
#[derive(Debug)]
pub struct Scenario {
    pub(crate) seed: u64,
    pub(crate) targets: Vec<Server>,
    /// Every request, those of one play next to each other.
    pub(crate) steps: Vec<Step>,
    pub(crate) plays: Vec<Play>,
    /// The play of each turn; unit `n` takes turn `n` modulo its length.
    pub(crate) turns: Vec<u32>,
    pub(crate) tables: Vec<Table>,
    /// For each table, which of the units that use it a unit is.
    pub(crate) ordinals: Vec<Ordinals>,
    /// How much of a body is kept.
    pub(crate) keep_body: usize,
    /// When the run begins, in seconds of Unix time: cookies that ended before it are over.
    pub(crate) now: i64,
}

/// A server of the scenario.
#[derive(Debug, Clone)]
pub struct Server {
    pub name: String,
    pub url: Url,
    pub tls: Tls,
    pub(crate) base: String,
    /// Its URL as it is written, where some of it came from the environment.
    pub(crate) hidden: Option<String>,
    pub(crate) headers: Vec<(String, Template)>,
}

/// How a server proves itself, and how we do. Files stand next to the scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Any certificate will do.
    pub insecure: bool,
    /// The certificates to trust.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name to ask for and to expect.
    pub server_name: Option<String>,
}

/// A request that stands alone, or steps that follow each other.
#[derive(Debug)]
pub(crate) struct Play {
    /// `None` for a request that stands alone.
    pub journey: Option<String>,
    /// Its number among the journeys; `None` for a request that stands alone.
    pub number: Option<u16>,
    pub weight: u32,
    /// Its steps' places in the list of all.
    pub first: u16,
    pub steps: u16,
    pub cookies: bool,
    /// Values that its steps capture.
    pub slots: Vec<String>,
    /// Which tables its texts use.
    pub tables: Vec<u16>,
}

/// One step of a journey, or a request that stands alone.
#[derive(Debug)]
pub(crate) struct Step {
    pub name: String,
    /// The number of its server.
    pub target: u16,
    pub think: Think,
    pub think_draw: u64,
    /// What is asked for over HTTP.
    pub web: WebStep,
}

/// Which of the units that use a table a unit is.
#[derive(Debug)]
pub(crate) enum Ordinals {
    /// Every unit does.
    All,
    Some {
        /// How many units of one cycle of turns do.
        per_cycle: u64,
        /// How many before each turn of the cycle do.
        before: Vec<u32>,
    },
}

/// A kind of request, whose figures stand apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKind {
    pub name: String,
    /// The journey that it is a step of.
    pub journey: Option<String>,
    /// No step of its journey comes before it.
    pub first: bool,
}

/// Why a run of a scenario ends before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Arrivals, at most.
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
        plays
            .map(|(at, first, journey)| RequestKind { name: self.steps[at].name.clone(), journey, first })
            .collect()
    }

    /// The servers, in the order of their numbers.
    pub fn servers(&self) -> &[Server] {
        &self.targets
    }

    /// How many units of demand there are rows for, where data is used once.
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
    /// When `uses` is empty: there is no run without turns.
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

    /// Which one unit `n` is, from 0.
    pub(crate) fn of(&self, n: u64) -> u64 {
        match self {
            Ordinals::All => n,
            Ordinals::Some { per_cycle, before } => {
                let length = before.len() as u64;
                (n / length) * per_cycle + u64::from(before[(n % length) as usize])
            }
        }
    }

    /// The number of the first unit for which there is no row any more.
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

/// For texts in which nothing has to be filled in.
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
        // With four rows the units 1, 2, 5 and 6 have one; unit 9 would be the first without.
        assert_eq!(ordinals.units_for(4), 9);
        assert_eq!(ordinals.units_for(3), 6);
        assert_eq!(ordinals.units_for(1), 2);
        assert_eq!(Ordinals::new(&[true]).units_for(7), 7);
        assert_eq!(Ordinals::new(&[false]).units_for(7), u64::MAX);
    }
}
