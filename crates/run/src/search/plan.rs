//! The objective of a search, its probes, and where results are kept. Pure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use findings::search::Objective;
use record::search::ProbeResult;
use stats::search::Aim;
use units::{Nanos, Rate};

use crate::effective::EffectiveOptions;
use crate::environment::Environment;
use crate::options::GivenOptions;
use crate::values::{Count, Length};

/// The options of a search, besides those of its probes.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    /// `p99 < 20ms and error_share < 0.1%`.
    pub objective: String,
    pub from: Option<Rate>,
    pub to: Option<Rate>,
    /// How closely to bracket the maximum rate, as a share of it.
    pub tolerance: f64,
    pub probe_duration: Option<Length>,
    /// Maximum number of probes.
    pub probes: Count,
}

/// The objective, and the rates and lengths of the probes.
pub struct SearchPlan {
    pub objective: Objective,
    pub aim: Aim,
    /// How long a probe is measured, unless its rate needs longer.
    pub usual: Nanos,
}

impl SearchPlan {
    /// # Errors
    ///
    /// One line for an impossible objective, range or number of probes.
    pub fn of(request: &SearchRequest) -> anyhow::Result<SearchPlan> {
        let objective = Objective::parse(&request.objective)?;
        let tolerance = request.tolerance;
        let given = request.probe_duration.map(|length| length.0);
        let usual = given.unwrap_or_else(|| objective.usual_length(tolerance));
        ensure!(
            usual >= Nanos::from_secs(2),
            "--probe-duration {usual} is too short: give 2s or more, so that its two halves can be compared"
        );
        let lowest = objective.lowest_rate(usual);
        let from = request.from.map_or(lowest, Rate::as_per_second_f64);
        let to = request.to.map(Rate::as_per_second_f64);
        ensure!(
            to.is_none_or(|to| to >= from),
            "--search-to {} is below {}; use a higher rate",
            request.to.map(|to| to.to_string()).unwrap_or_default(),
            request.from.map_or(format!("the lowest rate that a probe can measure, {lowest:.1}/s"), |from| {
                format!("--search-from {from}")
            })
        );
        let probes =
            usize::try_from(request.probes.0).context("--probes needs too much memory; use fewer")?;
        ensure!(probes >= 3, "--probes {probes} is too few to bracket a rate; use at least 3");
        Ok(SearchPlan { objective, aim: Aim { from, to, probes, tolerance }, usual })
    }
}

/// Where and with what a search is carried out.
pub struct SearchConduct<'a> {
    /// The options of the search's probes.
    pub given: GivenOptions,
    /// The results directory; each probe has its own within it.
    pub folder: &'a Path,
    /// Options that are not options of a run.
    pub options: EffectiveOptions,
    pub environment: &'a Environment<'a>,
    pub stop: &'a Arc<AtomicBool>,
    /// Gets the number and result of each probe as it ends.
    pub on_probe: &'a mut dyn FnMut(usize, &ProbeResult),
}

/// How a search prints its results, and where it stores them.
#[derive(Debug)]
pub struct SearchOutput {
    pub json: bool,
    pub quiet: bool,
    pub no_color: bool,
    /// The results directory that was given.
    pub folder: Option<PathBuf>,
}

impl SearchOutput {
    /// The output options in `given`.
    pub fn of(given: &GivenOptions) -> SearchOutput {
        SearchOutput {
            json: given.has("json"),
            quiet: given.has("quiet"),
            no_color: given.has("no-color"),
            folder: given.0.get("output").map(|output| PathBuf::from(&output.texts[0])),
        }
    }
}

/// Load and thresholds that a scenario file may set: a probe has its own load, and is judged by the objective.
const OF_ONE_RUN: [&str; 8] =
    ["rate", "stage", "replay", "speed", "replay-column", "think", "count", "fail-if"];

/// The options of one probe: those of the search, at this rate (`None` for the estimate in a closed loop).
///
/// # Errors
///
/// When the rate is not possible.
pub fn probe_options(
    given: &GivenOptions,
    rate: Option<f64>,
    length: Nanos,
    seed: Option<u64>,
) -> anyhow::Result<GivenOptions> {
    let of_the_other_loop: &[&str] = match rate {
        None => &["arrivals", "jitter", "max-in-flight"],
        Some(_) => &["users"],
    };
    let mut options = given.without(of_the_other_loop);
    if rate.is_none() && !given.names_scenario() {
        // A closed loop without think times: nothing is random.
        options = options.without(&["seed"]);
    }
    if given.names_scenario() {
        let others = OF_ONE_RUN.iter().chain(of_the_other_loop).filter(|name| !given.has(name));
        others.for_each(|name| options.withhold(name));
    }
    if let Some(rate) = rate {
        options.set("rate", [exact(rate)?.written()]);
    }
    options.set("duration", [format!("{}s", length.0 / 1_000_000_000)]);
    if let (Some(seed), Some(_)) = (seed, rate) {
        options.set("seed", [seed.to_string()]);
    }
    Ok(options)
}

/// The rate with all the digits that a search gives it: four, so that thousandths of a request carry the lowest.
///
/// # Errors
///
/// When the rate is not possible.
pub fn exact(per_s: f64) -> anyhow::Result<Rate> {
    let events = (per_s * 1e6).round();
    ensure!((1.0..1e15).contains(&events), "{per_s}/s is not a valid rate");
    Rate::new(events as u64, Nanos::from_secs(1_000_000)).context("a search's rates are above 0")
}
