//! `parallax compare`: whether sets of records, or commands that are run here, differ, and whether that matters.

mod trials;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::{ArgAction, ValueHint};
use comparison::{
    Arm, ComparedMetric, ComparisonCondition, MetricSettings, compare_arms, compared_run, comparison_view,
    judge_conditions,
};
use findings::view::{Outcome, View};

use self::trials::{Arms, TrialArgs};
use crate::command_line::CommandLine;
use crate::exit::Exit;
use crate::output::{printed, report_line};
use crate::{records, terminal};

/// Compare records or commands: does the difference between two sets of runs matter?
///
/// Each record is one repeat. The records after --to are compared with those of the base, and the result is one of
/// these words: better, worse; differs, too small to matter; same; leaning; inconclusive. A verdict needs six records
/// per arm, and ten for a p99; with fewer there are figures only ("look only").
///
/// Records pair by `drive --block`; runs of the arms should take turns. Without blocks they are compared as unpaired,
/// which is weaker. With --run the commands are run here, in blocks of random order, with a hidden twin of the first.
///
/// Exit codes: 0 compared; 1 wrong usage, a record cannot be read, or a command fails; 2 a --fail-if condition is true or
/// has no data; 130 interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  for i in 1 2 3 4 5 6 7 8 9 10; do
    parallax drive http://127.0.0.1:8080/ -d 10s --block $i -o runs/old-$i
    parallax drive http://127.0.0.1:8081/ -d 10s --block $i -o runs/new-$i
  done
  parallax compare runs/old-* --to runs/new-*
  parallax compare runs/old-* --to runs/new-* --to runs/other-*
  parallax compare runs/old-* --to runs/new-* --fail-if 'p99 worse' --junit compare.xml
  parallax compare runs/old-* --to runs/new-* --markdown >> \"$GITHUB_STEP_SUMMARY\"
  parallax compare --run './old --sort' --run './new --sort'
  parallax compare --run 'make -j{jobs}' -L jobs=1,2,4 --prepare 'make clean'
  parallax compare --run 'parallax drive http://127.0.0.1:{port}/' -L port=8080,8081")]
pub struct Args {
    /// Records of the base: results directories of `drive` or `import`. Of two directories without --to, the second is
    /// compared with the first.
    #[arg(value_name = "DIR", required_unless_present = "run", value_hint = ValueHint::DirPath)]
    base: Vec<PathBuf>,

    /// Records that are compared with the base; repeat it for another arm.
    #[arg(long, value_name = "DIR", num_args = 1.., action = ArgAction::Append, value_hint = ValueHint::DirPath)]
    to: Vec<PathBuf>,

    /// Primary metric: that of the first sentence [default: the first one of --fail-if; else response.p95 in an open loop,
    /// throughput in a closed one, wall_time of programs].
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    metric: Option<ComparedMetric>,

    /// Smallest difference that matters: METRIC=SHARE, for example p95=3% [default: 2% for throughput and CPU, 5% for
    /// typical times and memory, 10% for p99].
    #[arg(long, value_name = "METRIC=SHARE", value_parser = margin)]
    margin: Vec<(String, f64)>,

    /// Exit with status 2 if a metric has this verdict, for example 'p99 worse' or 'error_share worse'; repeat it for
    /// more. A verdict for which there are too few records counts as a failure (NO DATA). An inconclusive one is not
    /// worse: add 'p99 inconclusive' to stop at that, too.
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<ComparisonCondition>,

    /// Print the comparison as JSON (formats/view.schema.json).
    #[arg(long)]
    json: bool,

    /// Print the comparison as Markdown, for a pull request or the summary of a job.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,

    /// Also write the results of the conditions to FILE, as JUnit XML.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,

    /// Disable colors, as with NO_COLOR set.
    #[arg(long)]
    no_color: bool,

    #[command(flatten)]
    trials: TrialArgs,
}

fn metric(text: &str) -> Result<ComparedMetric, String> {
    ComparedMetric::from_name(text)
}

fn margin(text: &str) -> Result<(String, f64), String> {
    let (name, share) = text.split_once('=').ok_or("write METRIC=SHARE, for example response.p95=3%")?;
    let metric = ComparedMetric::from_name(name)?;
    let percent = share.strip_suffix('%').map(|percent| percent.trim().parse::<f64>());
    match percent {
        Some(Ok(percent)) if percent > 0.0 && percent <= 100.0 => {
            Ok((metric.name.to_owned(), percent / 100.0))
        }
        _ => Err(format!("`{share}` is no share from 0% to 100%")),
    }
}

/// Runs the verb.
///
/// # Errors
///
/// When a record cannot be read, or the records cannot be compared.
pub fn run(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Exit> {
    let is_run_here = !args.trials.run.is_empty();
    // What a condition is about comes first: the first sentence and the exit code then say the same.
    let named: Vec<String> = args.fail_if.iter().filter_map(|one| one.metric()).map(str::to_owned).collect();
    let primary = args.metric.map(|metric| metric.name.to_owned()).or_else(|| named.first().cloned());
    let mut early = None;
    let (arms, twin) = if is_run_here {
        let Some(arms) = trials::run(&args.trials, &args.fail_if, primary.as_deref())? else {
            report_line("interrupted before the first block was complete: there is nothing to compare");
            return Ok(Exit::Interrupted);
        };
        early = ended_early(&arms);
        (arms.compared, arms.twin)
    } else {
        let folders = arms(args, line)?;
        refuse_twice(&folders)?;
        let arms = folders.iter().map(|folders| arm(folders)).collect::<Result<_, _>>()?;
        (arms, None)
    };
    let settings = MetricSettings {
        primary,
        named,
        failures: args.fail_if.iter().any(ComparisonCondition::is_of_failures),
        margins: args.margin.clone(),
        differences_are_meant: is_run_here,
    };
    let comparison = compare_arms(arms, &settings)
        .and_then(|comparison| match twin {
            Some(twin) => comparison.with_twin(twin, &settings),
            None => Ok(comparison),
        })
        .map_err(anyhow::Error::msg)?;
    let mut view = comparison_view(&comparison);
    view.thresholds = judge_conditions(&comparison, &args.fail_if);
    if let Some(path) = &args.junit {
        let shown = path.display();
        let file = File::create(path).with_context(|| format!("cannot write `{shown}`"))?;
        let mut file = BufWriter::new(file);
        report::junit(&view, &mut file)
            .and_then(|()| file.flush())
            .with_context(|| format!("cannot write `{shown}`"))?;
    }
    let mut out = io::stdout();
    if args.markdown {
        printed(report::markdown(&view, &mut out))?;
    } else {
        let style = terminal::style(&out, args.no_color);
        records::print(&view, args.json, &mut out, style)?;
    }
    Ok(early.unwrap_or_else(|| exit(&view)))
}

/// Reports why commands were not run to the end of their plan, and the exit status for that.
fn ended_early(arms: &Arms) -> Option<Exit> {
    arms.failure.iter().chain(&arms.missing).for_each(report_line);
    let failed = arms.failure.as_ref().map(|_| Exit::Refused);
    failed.or(arms.was_interrupted.then_some(Exit::Interrupted))
}

/// The directories of each arm, the base first.
fn arms(args: &Args, line: &CommandLine<'_>) -> anyhow::Result<Vec<Vec<PathBuf>>> {
    let others = line.matches.get_occurrences::<PathBuf>("to").into_iter().flatten();
    let others: Vec<Vec<PathBuf>> = others.map(|arm| arm.cloned().collect()).collect();
    match (&args.base[..], others.is_empty()) {
        ([one, other], true) => Ok(vec![vec![one.clone()], vec![other.clone()]]),
        (_, true) => bail!("nothing to compare with: write `parallax compare BASE... --to OTHER...`"),
        (base, false) => Ok(std::iter::once(base.to_vec()).chain(others).collect()),
    }
}

fn exit(view: &View) -> Exit {
    if view.thresholds.iter().all(|threshold| threshold.result == Outcome::Met) {
        Exit::Done
    } else {
        Exit::Missed
    }
}

/// A record that is given twice, also to two arms and in another spelling, is no second run.
fn refuse_twice(arms: &[Vec<PathBuf>]) -> anyhow::Result<()> {
    let mut seen = BTreeSet::new();
    for folder in arms.iter().flatten() {
        let folder = records::folder(folder);
        let place = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        ensure!(seen.insert(place), "`{}` is given twice", folder.display());
    }
    Ok(())
}

fn arm(folders: &[PathBuf]) -> anyhow::Result<Arm> {
    let mut runs = Vec::new();
    for folder in folders {
        let folder = records::folder(folder);
        let shown = folder.display();
        let run = compared_run(folder).with_context(|| format!("cannot compare `{shown}`"))?;
        let Some(run) = run else {
            bail!("`{shown}` is no record of `drive` or `import`; give the directories of single runs");
        };
        runs.push(run);
    }
    Ok(Arm { name: name(folders), command: None, runs })
}

/// What the names of the directories have in common: `runs/old` for `runs/old-1` and `runs/old-2`.
fn name(folders: &[PathBuf]) -> String {
    let texts: Vec<String> =
        folders.iter().map(|folder| records::folder(folder).display().to_string()).collect();
    let common = texts.iter().skip(1).fold(texts[0].as_str(), |common, text| {
        let same = common.char_indices().zip(text.chars()).find(|((_, a), b)| a != b);
        &common[..same.map_or(common.len().min(text.len()), |((at, _), _)| at)]
    });
    let trimmed = common.trim_end_matches(|c: char| c.is_ascii_digit() || "-_./".contains(c));
    let text = if trimmed.is_empty() || folders.len() == 1 { texts[0].as_str() } else { trimmed };
    let short =
        Path::new(text).file_name().map_or(text.to_owned(), |name| name.to_string_lossy().into_owned());
    units::escape_text(&short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_has_the_common_name_of_its_records() {
        let named = |texts: &[&str]| name(&texts.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["runs/old-1", "runs/old-2"]), "old");
        assert_eq!(named(&["runs/old-1"]), "old-1");
        assert_eq!(named(&["a", "b"]), "a");
        assert_eq!(named(&["runs/x_10", "runs/x_11/"]), "x");
    }

    #[test]
    fn margins_are_shares_of_known_metrics() {
        assert_eq!(margin("p99=3%"), Ok(("response.p99".to_owned(), 0.03)));
        assert!(margin("p99=0.05").is_err(), "5 % or 0.05 %");
        assert!(margin("p99").is_err() && margin("p99=0%").is_err() && margin("p98=3%").is_err());
    }
}
