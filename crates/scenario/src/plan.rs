//! What a scenario came to, once everything in it was found good: kinds, plays, servers, rows.

use std::path::PathBuf;

use codec::web::{Checks, Header, Request, Url};
use units::Nanos;

use crate::capture::{Capture, Look};
use crate::cookies::{Jar, Place};
use crate::table::Table;
use crate::template::{Moment, Template};
use crate::think::Think;

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

/// One request.
#[derive(Debug)]
pub(crate) struct Step {
    pub name: String,
    pub target: u16,
    pub method: String,
    pub path: Template,
    pub headers: Vec<(String, Template)>,
    pub body: Body,
    /// Its place among the prepared requests, where nothing in it has to be filled in.
    pub prepared: Option<u32>,
    pub checks: Checks,
    pub looks: Vec<Look>,
    pub captures: Vec<Capture>,
    pub think: Think,
    pub think_draw: u64,
}

#[derive(Debug)]
pub(crate) enum Body {
    None,
    /// As it is in a file.
    File(Vec<u8>),
    Template(Template),
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

    /// What the servers are to the codec.
    pub fn origins(&self) -> Vec<Url> {
        self.targets.iter().map(|target| target.url.clone()).collect()
    }

    /// The requests in which nothing has to be filled in, in the order of their numbers.
    pub fn prepared(&self) -> Vec<Request> {
        let fixed = self.steps.iter().filter(|step| step.prepared.is_some());
        fixed.map(|step| self.request(step, &Nothing, None)).collect()
    }

    /// What the responses of each kind are held to.
    pub fn checks(&self) -> Vec<Checks> {
        self.steps.iter().map(|step| step.checks.clone()).collect()
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

    /// Where a step's request goes.
    pub(crate) fn url(&self, step: &Step, moment: &impl Moment) -> Url {
        let target = &self.targets[usize::from(step.target)];
        let mut path = target.base.clone();
        step.path.render_into(moment, &mut path);
        target.url.with_path(&path)
    }

    /// A step's request, filled in.
    pub(crate) fn request(&self, step: &Step, moment: &impl Moment, jar: Option<&Jar>) -> Request {
        let url = self.url(step, moment);
        let filled = step
            .headers
            .iter()
            .map(|(name, value)| Header { name: name.clone(), value: value.render(moment) });
        let mut headers: Vec<Header> = filled.collect();
        if let Some(cookies) = jar.and_then(|jar| jar.header(place(&url))) {
            match headers.iter_mut().find(|header| header.name.eq_ignore_ascii_case("cookie")) {
                Some(own) => own.value = format!("{}; {cookies}", own.value),
                None => headers.push(Header { name: "Cookie".to_owned(), value: cookies }),
            }
        }
        let body = match &step.body {
            Body::None => Vec::new(),
            Body::File(bytes) => bytes.clone(),
            Body::Template(template) => template.render(moment).into_bytes(),
        };
        Request { method: step.method.clone(), url, headers, body, weight: 1 }
    }
}

/// Where a URL lies for cookies.
pub(crate) fn place(url: &Url) -> Place<'_> {
    let secure = url.scheme() == codec::web::Scheme::Https;
    Place { host: url.host(), path: url.path_and_query(), secure }
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

/// The wait after a step of unit `n`.
pub(crate) fn think(scenario: &Scenario, step: &Step, n: u64) -> Nanos {
    step.think.time(scenario.seed, n, step.think_draw)
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
