//! `parallax drive --search`: probes at rates that `stats::search` chooses, each an ordinary run with its own
//! record, and the answer that they give together.

mod objective;
mod probe;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use clap::{ArgMatches, CommandFactory};
use engine::Controls;
use record::document::{EffectiveOption, Envelope, OptionSource, RecordKind, State, Time};
use record::search::{Demanded, Limit, Says, SearchAnswer, SearchDocument, write_search};
use stats::search::{Above, Aim, Length, Probed, Search, Step};
use units::{Nanos, Rate};

use self::objective::Objective;
use self::probe::{Judge, Measured, WARMUP};
use crate::drive::{self, Args, ArrivalsArg, Claim, Conducted, Options};
use crate::exit::Exit;
use crate::progress::Progress;
use crate::{printed, say, signals, terminal};

/// The closed loop at the begin: two seconds say the throughput to a percent.
const ESTIMATE: Nanos = Nanos::from_secs(2);

/// Between probes: what a server has left to do for the one before it must not fall into the next.
const REST: Nanos = Nanos::from_millis(200);

/// The same, where requests were left unanswered: the server may still be at work on them.
const LONG_REST: Nanos = Nanos::from_secs(2);

/// How often a stop is looked for in a rest.
const STOP_EVERY: Nanos = Nanos::from_millis(50);

/// Runs the search that `args` ask for.
///
/// # Errors
///
/// Usage and environment, in one line each. Once a probe has run, its record stays.
pub fn run(args: &Args, matches: &ArgMatches) -> anyhow::Result<Exit> {
    let command = crate::Cli::command();
    let command = command.find_subcommand("drive").expect("drive is a verb of this program");
    let plan = Plan::of(args)?;
    let prepared = drive::prepare(args)?;
    let folder = args.output.clone().unwrap_or_else(drive::new_folder);
    let mut options = drive::effective(command, matches, &prepared, &folder);
    let args = &seeded(args, &mut options);
    let stop = signals::stop_flag()?;
    let claim = Claim::make(&folder)?;
    ensure!(
        !record::search::is_search(&folder),
        "`{}` already holds a search; choose another folder with -o, or remove it",
        folder.display()
    );
    let begun = clock::now();
    let document = opening_document(drive::opening_document(&prepared, options.clone()), &plan);
    let mut run =
        Run { args, plan: &plan, options, folder: folder.clone(), stop: &stop, begun, document, exit: None };
    let ended = run.search();
    if run.document.probes.is_empty() {
        claim.release();
        return ended.map(|()| Exit::Interrupted);
    }
    ended?;
    let mut out = io::stdout();
    printed(if args.json {
        report::json(&run.document, &mut out)
    } else {
        let style = terminal::style(&out, args.no_color);
        report::text(&findings::search_view(&run.document, Some(&folder)), &mut out, style)
    })?;
    Ok(run.exit.unwrap_or_else(|| Exit::of_search(&run.document)))
}

/// With random arrivals, one seed for the whole search, so that one number makes it again.
fn seeded(args: &Args, options: &mut Options) -> Args {
    let is_random = args.jitter.is_some() || args.arrivals == Some(ArrivalsArg::Poisson);
    if !is_random || args.seed.is_some() {
        return args.clone();
    }
    let seed = drive::seed(args);
    let drawn = EffectiveOption { value: seed.to_string(), source: OptionSource::Derived };
    options.insert("seed".to_owned(), drawn);
    Args { seed: Some(seed), ..args.clone() }
}

/// What is searched for, and with which probes.
struct Plan {
    objective: Objective,
    aim: Aim,
    /// How long a probe is measured, unless its rate needs more.
    usual: Nanos,
}

impl Plan {
    fn of(args: &Args) -> anyhow::Result<Plan> {
        let objective = Objective::parse(args.search.as_deref().unwrap_or_default())?;
        let tolerance = args.search_tolerance.0;
        let usual = args.probe_duration.unwrap_or_else(|| objective.usual_length(tolerance));
        ensure!(
            usual >= Nanos::from_secs(2),
            "--probe-duration {usual} is too short: give 2s or more, so that its two halves can be compared"
        );
        let lowest = objective.lowest_rate(usual);
        let from = args.search_from.map_or(lowest, Rate::as_per_second_f64);
        let to = args.search_to.map(Rate::as_per_second_f64);
        ensure!(
            to.is_none_or(|to| to >= from),
            "--search-to {} is below {}; give a higher one",
            args.search_to.map(|to| to.to_string()).unwrap_or_default(),
            args.search_from
                .map_or(format!("the lowest rate that a probe can measure, {lowest:.1}/s"), |from| {
                    format!("--search-from {from}")
                })
        );
        let probes = usize::try_from(args.probes).context("--probes is over what memory can hold")?;
        ensure!(probes >= 3, "--probes {probes} cannot enclose a rate; give at least 3");
        Ok(Plan { objective, aim: Aim { from, to, probes, tolerance }, usual })
    }
}

fn opening_document(run: record::document::Document, plan: &Plan) -> SearchDocument {
    let demanded = |(condition, implied): &(findings::Condition, bool)| Demanded {
        condition: condition.to_string(),
        implied: *implied,
    };
    let time = Time {
        started: drive::timestamp(clock::wall()).to_string(),
        started_monotonic_ns: clock::now().0,
        elapsed_ns: Some(0),
        window_ns: None,
    };
    SearchDocument {
        envelope: Envelope { kind: RecordKind::Search, time, ..run.envelope },
        answer: None,
        subject: run.subject,
        objective: plan.objective.conditions.iter().map(demanded).collect(),
        tolerance: plan.aim.tolerance,
        probes_allowed: plan.aim.probes as u64,
        probes: Vec::new(),
    }
}

/// A search under way.
struct Run<'a> {
    args: &'a Args,
    plan: &'a Plan,
    options: Options,
    folder: PathBuf,
    stop: &'a Arc<AtomicBool>,
    begun: Nanos,
    document: SearchDocument,
    /// Set where the search ended for a reason of its own.
    exit: Option<Exit>,
}

impl Run<'_> {
    fn search(&mut self) -> anyhow::Result<()> {
        let mut search = Search::new(self.plan.aim);
        loop {
            let step = search.step();
            let (rate, length) = match step {
                Step::Done => break,
                Step::Estimate => (None, ESTIMATE),
                Step::Probe { rate, length } => {
                    let usual = self.plan.objective.length_at(rate, self.plan.usual);
                    let times = if length == Length::Twice { 2 } else { 1 };
                    (Some(rate), Nanos(usual.0 * times))
                }
            };
            let ended = self.probe(rate, length, &mut search)?;
            match ended {
                None => self.keep(&search, State::Running)?,
                Some(state) => return self.keep(&search, state),
            }
        }
        self.keep(&search, State::Finished)
    }

    /// Carries out one probe. The search goes on unless it ended in a state of its own.
    fn probe(
        &mut self,
        rate: Option<f64>,
        length: Nanos,
        search: &mut Search,
    ) -> anyhow::Result<Option<State>> {
        let number = self.document.probes.len() + 1;
        let name = format!("probe-{number:02}");
        let folder = self.folder.join(&name);
        let conducted = self.drive(rate, length, &folder)?;
        let cut_short = conducted.document.state != State::Finished;
        self.document.subject.address.clone_from(&conducted.document.subject.address);
        let measured = Measured::read(&folder, &conducted, length)?;
        let judge = Judge { objective: &self.plan.objective, tolerance: self.plan.aim.tolerance };
        let (finding, mut result) = judge.judge(&conducted, &measured, rate);
        result.folder = name;
        match rate {
            _ if cut_short => (result.says, result.why) = (Says::Interrupted, String::new()),
            None => {
                (result.says, result.why) = (Says::Estimate, String::new());
                search.note_estimate(Some(measured.ok_per_s()));
            }
            Some(rate) => search.note(Probed { rate, finding, served: measured.ok_per_s() }),
        }
        if !self.args.quiet {
            let _ = writeln!(io::stderr(), "{}", findings::probe_line(number, &result));
        }
        self.document.probes.push(result);
        if let Some(error) = &conducted.broken {
            say(error);
        }
        let end = Exit::of(&conducted.document);
        if cut_short || end == Exit::Unreachable {
            self.exit = Some(end);
            return Ok(Some(conducted.document.state));
        }
        self.rest(&conducted);
        Ok(self.stop.load(Ordering::Relaxed).then_some(State::Interrupted))
    }

    /// Through the same door as everybody: a probe is a run that can be typed.
    fn drive(&self, rate: Option<f64>, length: Nanos, folder: &Path) -> anyhow::Result<Conducted> {
        let mut args = self.args.clone();
        args.rate = rate.map(exact).transpose()?;
        args.duration = Some(WARMUP + length);
        // Of each probe its own: a rate that is probed again meets another draw of its arrivals.
        args.seed = args.seed.map(|seed| seed.wrapping_add(self.document.probes.len() as u64));
        let prepared = drive::prepare(&args)?;
        let mut options = self.options.clone();
        let mut derive = |name: &str, value: String| {
            options.insert(name.to_owned(), EffectiveOption { value, source: OptionSource::Derived });
        };
        derive("rate", args.rate.map_or("none: closed loop".to_owned(), |rate| rate.to_string()));
        if args.arrivals.is_none() {
            derive("arrivals", if args.rate.is_some() { "even" } else { "none: closed loop" }.to_owned());
        }
        if let Some(seed) = drive::effective_seed(&prepared.plan) {
            derive("seed", seed.to_string());
        }
        derive("duration", format!("{}s", (WARMUP + length).0 / 1_000_000_000));
        derive("callers", prepared.plan.pool.callers.to_string());
        derive("workers", prepared.plan.workers.to_string());
        derive("output", folder.to_string_lossy().into_owned());
        // Of each probe its own: what is ordered of one run is not of the next.
        let controls = Controls::new(Arc::clone(self.stop));
        let conducted = drive::conduct(&prepared, options, folder, Progress::Quiet, &controls)?;
        match conducted.damage {
            Some(error) => Err(error).context("the record of a probe is incomplete, so it cannot be judged"),
            None => Ok(conducted),
        }
    }

    fn rest(&self, conducted: &Conducted) {
        let left = |name: &str| ["in_flight", "not_sent"].contains(&name);
        let outcomes = conducted.document.results.iter().flat_map(|results| &results.outcomes);
        let unanswered = outcomes.into_iter().any(|row| left(&row.outcome));
        let end = clock::now() + if unanswered { LONG_REST } else { REST };
        while clock::now() < end && !self.stop.load(Ordering::Relaxed) {
            clock::sleep_until(end.min(clock::now() + STOP_EVERY));
        }
    }

    /// Puts what is known into the folder.
    fn keep(&mut self, search: &Search, state: State) -> anyhow::Result<()> {
        self.document.state = state;
        self.document.time.elapsed_ns = Some(clock::now().saturating_sub(self.begun).0);
        self.document.answer = Some(self.answer(search));
        write_search(&self.folder, &self.document)?;
        Ok(())
    }

    /// Why the search was given up: what the last probe met.
    fn disturbance(&self) -> String {
        let why = self.document.probes.last().map_or("", |probe| probe.why.as_str());
        format!("given up: this host is too busy at any rate ({why}); free it of other work, or use another")
    }

    fn answer(&self, search: &Search) -> SearchAnswer {
        let answer = search.result();
        let limit = match answer.above {
            Above::Server => Limit::Server,
            Above::Client => Limit::Client,
            Above::Range => Limit::Range,
            Above::Untried => Limit::Unknown,
        };
        // Of the probes there, those that decided it.
        let says: &[Says] =
            if limit == Limit::Server { &[Says::Fails, Says::Unsettled] } else { &[Says::Client] };
        let at = |rate: f64| {
            let probes = self.document.probes.iter().filter(move |probe| probe.rate_per_s == Some(rate));
            probes.filter(|probe| says.contains(&probe.says)).map(|probe| probe.why.as_str()).next_back()
        };
        let why = answer.fails.and_then(at).filter(|why| !why.is_empty());
        let reason = match (answer.fails, why) {
            (Some(fails), Some(why)) if answer.given_up && limit == Limit::Server => {
                format!("at {fails}/s {why}; {}", self.disturbance())
            }
            _ if answer.given_up => self.disturbance(),
            (Some(fails), Some(why)) => format!("at {fails}/s {why}"),
            (None, _) if answer.holds.is_none() && self.document.probes.len() < self.plan.aim.probes => {
                "too little was answered well to begin with".to_owned()
            }
            _ if limit == Limit::Range => "it held at the highest rate that --search-to allows".to_owned(),
            _ => "more probes are needed to say more (--probes)".to_owned(),
        };
        SearchAnswer {
            holds_per_s: answer.holds,
            fails_per_s: answer.fails,
            confirmed: answer.confirmed,
            limit,
            reason,
        }
    }
}

/// The rate with all the digits that a search gives it: four, so that thousandths of a request carry the lowest.
fn exact(per_s: f64) -> anyhow::Result<Rate> {
    let events = (per_s * 1e6).round();
    ensure!((1.0..1e15).contains(&events), "{per_s}/s is no rate that can be driven");
    Rate::new(events as u64, Nanos::from_secs(1_000_000)).context("a search's rates are above 0")
}
