//! A plan as text: every run in its order, and what the comparisons can show.

use std::fmt::{self, Write};

use record::escape_text;
use stats::comparison::{Plan, fewest_blocks, smallest_detectable};
use units::Nanos;

use super::forecast::{Forecast, ForecastRun};
use super::spec::Experiment;

/// Paired standard deviations for which it is shown what can be found.
const DEVIATIONS: [f64; 4] = [0.01, 0.02, 0.03, 0.05];

/// The chance of finding what is called detectable.
const POWER: f64 = 0.8;

/// The margin of a metric that the experiment does not name.
const MARGIN: f64 = 0.05;

impl Forecast {
    /// What a user reads before anything is started.
    ///
    /// # Cost
    ///
    /// Some seconds of CPU time: the rule is carried out on simulated blocks.
    pub fn text(&self, experiment: &Experiment) -> String {
        let mut text = String::new();
        whole(experiment, self, &mut text).expect("a text in memory takes every line");
        text
    }
}

fn whole(experiment: &Experiment, forecast: &Forecast, out: &mut String) -> fmt::Result {
    if let Some(description) = &experiment.description {
        writeln!(out, "{}", escape_text(description))?;
    }
    for build in &forecast.builds {
        writeln!(out, "build: {}", escape_text(build))?;
    }
    commands(experiment, forecast, out)?;
    let mut block = 0;
    for one in &forecast.runs {
        if one.run.block != block {
            block = one.run.block;
            writeln!(out, "block {block}")?;
        }
        let time = one.expected.map_or("unknown time".to_owned(), |time| time.to_string());
        writeln!(out, "  {:>4}  {}  {time}", one.run.number, escape_text(&one.name))?;
    }
    let twin = if experiment.twin { ", with a hidden twin of the base" } else { "" };
    let runs = forecast.runs.len();
    writeln!(out, "{runs} runs in {} blocks (seed {}){twin}", experiment.blocks, experiment.seed)?;
    let times: Option<Vec<Nanos>> = forecast.runs.iter().map(|one| one.expected).collect();
    match times {
        Some(times) => {
            let all = times.into_iter().fold(Nanos::ZERO, |sum, time| sum + time);
            writeln!(out, "expected time: {all}, besides builds")?;
        }
        None => writeln!(out, "expected time: unknown; give `load.window`, or --from an earlier directory")?,
    }
    detectable(experiment, forecast.comparisons, out)
}

/// The commands of each combination of values, as in the first block.
fn commands(experiment: &Experiment, forecast: &Forecast, out: &mut String) -> fmt::Result {
    let first = |one: &&ForecastRun| one.run.block == 1 && !one.run.is_twin;
    for one in forecast.runs.iter().filter(first) {
        writeln!(out, "{}", if one.name.is_empty() { "run" } else { &one.name })?;
        for (name, text) in experiment.commands(&one.run) {
            writeln!(out, "  {name}: {}", escape_text(&text))?;
        }
    }
    Ok(())
}

fn detectable(experiment: &Experiment, comparisons: usize, out: &mut String) -> fmt::Result {
    if comparisons == 0 {
        return writeln!(out, "nothing is compared: no factor has role = \"compare\"");
    }
    let blocks = experiment.blocks;
    let needed = fewest_blocks(comparisons);
    let name = experiment.primary.map_or("the primary metric", |metric| metric.name);
    if blocks < needed {
        let why =
            if comparisons > 1 { format!(" for {comparisons} comparisons together") } else { String::new() };
        return writeln!(out, "{blocks} blocks carry no verdict on {name}: {needed} are needed{why}");
    }
    let margin = experiment.margin().unwrap_or(MARGIN);
    writeln!(
        out,
        "smallest change of {name} that is found in 4 of 5 such experiments (margin {:.1} %):",
        margin * 100.0
    )?;
    for deviation in DEVIATIONS {
        let plan = Plan { blocks, deviation, margin, effect: 0.0, comparisons };
        let effect = smallest_detectable(plan, POWER);
        let effect = effect.map_or("more than 100 %".to_owned(), |effect| format!("{:.1} %", effect * 100.0));
        writeln!(out, "  SD between blocks {:.0} %: {effect}", deviation * 100.0)?;
    }
    Ok(())
}
