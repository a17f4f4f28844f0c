//! `compare --run`: runs commands in turn, and compares what they used or recorded.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::ValueHint;
use comparison::{Arm, ComparisonCondition, blocks_for};
use lab::{Conducted, Hooks, Lab, Parameter, Plan, Progress, Trial, conduct, variants};
use run::folder::new_folder;
use units::Nanos;

use crate::output::one_line;
use crate::signals;

/// The options of commands that are run here.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running commands")]
pub struct TrialArgs {
    /// Command to run and compare; give it twice or more, the first is the base. A line of `parallax drive` is compared
    /// by its record, any other program by its wall time, CPU time and peak memory. It runs without a shell if it needs
    /// none; its output is discarded.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["base", "to"])]
    pub run: Vec<String>,

    /// Times that every command runs: once per block, in random order. A block with an invalid run is replaced, up to
    /// half as many as there are blocks.
    #[arg(long, value_name = "N", default_value_t = 10, requires = "run", value_parser = clap::value_parser!(u16).range(1..=1000))]
    blocks: u16,

    /// Name of a command in the report, in the order of --run [default: A, B, ...].
    #[arg(short, long, value_name = "NAME", requires = "run")]
    name: Vec<String>,

    /// Run every command with each of these values in place of {NAME}, for example threads=1,2,4; repeat it for all
    /// combinations.
    #[arg(short = 'L', long, value_name = "NAME=VALUE,VALUE", requires = "run")]
    parameter_list: Vec<Parameter>,

    /// Run each command N times before the first block, without measuring.
    #[arg(short, long, value_name = "N", default_value_t = 0, requires = "run", value_parser = clap::value_parser!(u16).range(0..=1000))]
    warmup: u16,

    /// Command to run once before the first run of each command; may contain {NAME}. What it leaves running is ended.
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    setup: Option<String>,

    /// Command to run before every run; may contain {NAME}.
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    prepare: Option<String>,

    /// Command to run after the last run of each command, also after Ctrl-C; may contain {NAME}.
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    cleanup: Option<String>,

    /// Random seed for the order of the runs; the same seed gives the same order [default: random].
    #[arg(long, value_name = "N", requires = "run")]
    seed: Option<u64>,

    /// Longest time that one run may take; then it is ended, and counts as failed.
    #[arg(long, value_name = "TIME", default_value = "10m", requires = "run")]
    time_limit: Nanos,

    /// Do without the hidden twin of the base: it takes one more run per block, and shows the noise of this host.
    #[arg(long, requires = "run")]
    no_twin: bool,

    /// New directory for the records and trials.ndjson [default: in parallax-runs/].
    #[arg(short, long, value_name = "DIR", requires = "run", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Suppress progress output.
    #[arg(short, long, requires = "run")]
    quiet: bool,
}

/// The arms that were run.
pub struct Arms {
    /// The base first.
    pub compared: Vec<Arm>,
    pub twin: Option<Arm>,
    pub was_interrupted: bool,
    /// What ended it early, in one line.
    pub failure: Option<String>,
    /// That blocks are missing, in one line.
    pub missing: Option<String>,
}

/// Runs the commands. `None` if the user ended them before there was anything to compare.
///
/// # Errors
///
/// When the options do not fit together, and as [`conduct`].
pub fn run(
    args: &TrialArgs,
    fail_if: &[ComparisonCondition],
    primary: Option<&str>,
) -> anyhow::Result<Option<Arms>> {
    let plan = plan(args)?;
    let needed = blocks_for(fail_if, primary, plan.variants.len() - 1);
    ensure!(
        fail_if.is_empty() || plan.blocks >= needed,
        "{} blocks cannot decide --fail-if: {needed} are needed; give --blocks {needed}",
        plan.blocks
    );
    let program = std::env::current_exe().context("cannot find the parallax binary")?;
    let folder = args.output.clone().unwrap_or_else(new_folder);
    let stop = signals::patient_stop_flag()?;
    let lab = Lab { folder: &folder, program: &program, longest: args.time_limit, stop: &stop };
    let mut shown = Shown::new(&plan, args.quiet);
    shown.begin(&plan, &folder.display());
    let Conducted { mut arms, was_interrupted, complete_blocks, failure } = conduct(&plan, lab, &mut shown)?;
    if arms[0].runs.is_empty() {
        return Ok(None);
    }
    let twin = if plan.twin { arms.pop() } else { None };
    let failure = failure.map(|error| one_line(&error));
    let missing = (complete_blocks < plan.blocks).then(|| {
        let blocks = plan.blocks;
        format!("{complete_blocks} of {blocks} blocks are complete: the plan allows smaller conclusions than it promised")
    });
    Ok(Some(Arms { compared: arms, twin, was_interrupted, failure, missing }))
}

fn plan(args: &TrialArgs) -> anyhow::Result<Plan> {
    let variants = variants(&args.run, &args.name, &args.parameter_list).map_err(anyhow::Error::msg)?;
    let hooks =
        Hooks { setup: args.setup.clone(), prepare: args.prepare.clone(), cleanup: args.cleanup.clone() };
    Ok(Plan {
        variants,
        hooks,
        blocks: usize::from(args.blocks),
        warmup: usize::from(args.warmup),
        // Any number: it is printed, so that the order can be repeated.
        seed: args.seed.unwrap_or_else(|| clock::wall().0 % 1_000_000),
        twin: !args.no_twin,
    })
}

/// One line per block on standard error.
struct Shown {
    quiet: bool,
    runs: usize,
    per_block: usize,
    began: Nanos,
    /// The runs of the block so far.
    line: Vec<String>,
}

impl Shown {
    fn new(plan: &Plan, quiet: bool) -> Shown {
        let per_block = plan.runs() / plan.blocks.max(1);
        Shown { quiet, runs: plan.runs(), per_block, began: Nanos::ZERO, line: Vec::new() }
    }

    fn begin(&self, plan: &Plan, folder: &dyn Display) {
        let names: Vec<&str> = plan.variants.iter().map(|one| one.name.as_str()).collect();
        let twin = if plan.twin { format!(" and a twin of {}", names[0]) } else { String::new() };
        self.print(&format!(
            "{} runs: {} blocks of {}{twin}, each in a random order (seed {}); records in {folder}",
            self.runs,
            plan.blocks,
            names.join(", "),
            plan.seed
        ));
    }

    fn print(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", units::escape_text(line));
        }
    }
}

impl Progress for Shown {
    fn ran(&mut self, block: usize, arm: &str, trial: &Trial, runs: usize) {
        if block == 0 {
            self.print(&format!("warm-up   {arm} {}", trial.usage.wall));
            return;
        }
        let now = clock::now();
        if self.began == Nanos::ZERO {
            self.began = now.saturating_sub(trial.usage.wall);
        }
        self.line.push(format!("{arm} {}", trial.usage.wall));
        if self.line.len() < self.per_block {
            return;
        }
        let taken = now.saturating_sub(self.began).0 as f64;
        let left = Nanos((taken / runs as f64 * self.runs.saturating_sub(runs) as f64) as u64);
        let rest = match runs {
            _ if left > Nanos::ZERO => format!("   {left} left"),
            runs if runs > self.runs => "   in place of a block with an invalid run".to_owned(),
            _ => String::new(),
        };
        // In the order of the names, so that blocks read as columns.
        self.line.sort();
        let line = format!("block {block:<4}{}{rest}", std::mem::take(&mut self.line).join("   "));
        self.print(&line);
    }
}
