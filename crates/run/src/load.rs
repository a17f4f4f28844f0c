//! From the load of a spec to the engine's load (when each request is due), and what the record contains about it.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::BufReader;
use std::sync::Arc;

use anyhow::{Context, bail};
use engine::{Load, RunPlan};
use record::document::{ArrivalFacts, Pace, StageFacts, ThinkFacts};
use schedule::{Arrivals, Jitter, Process, Reader, Recorded, Shape, Speed, Stage, Stages, Think};
use units::{Nanos, Rate, bounded_lines};

use crate::spec::{Model, Replay, RunSpec, Schedule};
use crate::values::{Spacing, value};

/// Default length of a run.
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);

/// A load, and its length if the load itself has one.
#[derive(Debug)]
pub struct LoadSpec {
    pub load: Load,
    /// The end of the stages or of the recording.
    pub end: Option<Nanos>,
}

/// Computes the load of a spec; `replayed` has the times of a recording whose requests are sent.
///
/// # Errors
///
/// One line for options that exclude each other, and for a recording that cannot be read.
pub fn load(spec: &RunSpec, replayed: Option<Recorded>) -> anyhow::Result<LoadSpec> {
    let open = match &spec.load.model {
        Model::Closed(closed) => {
            let load = match value(&closed.think) {
                None => Load::Closed,
                Some(&think) => Load::Thinking { think, seed: seed(spec) },
            };
            return Ok(LoadSpec { load, end: None });
        }
        Model::Open(open) => open,
    };
    let (is_steady, stages) = match &open.schedule {
        Schedule::Steady { rate, arrivals, jitter } => {
            match steady(rate.value, value(arrivals).copied(), value(jitter).copied(), spec)? {
                Some(stage) => (true, vec![stage]),
                None => return Ok(LoadSpec { load: Load::Open(Arrivals::Constant(rate.value)), end: None }),
            }
        }
        Schedule::Stages { stage } => {
            let stages = stage.iter().flat_map(|stage| stage.value.0.clone()).collect();
            let duration = value(&spec.load.duration).map(|length| length.0);
            let shared = schedule::share_out(stages, duration);
            (false, shared.context("cannot make a schedule of these stages")?)
        }
        Schedule::Replay(replay) => {
            let recorded = match replayed {
                Some(recorded) => recorded,
                None => recorded(replay)?,
            };
            (false, vec![Stage::Recorded(recorded)])
        }
    };
    let stages = Stages::new(stages, seed(spec)).context(if is_steady {
        "cannot make this schedule"
    } else {
        "cannot make a schedule of these stages"
    })?;
    let arrivals = Arrivals::Staged(Arc::new(stages));
    // The end of a steady rate is that of the run.
    let end = if is_steady { None } else { arrivals.end() };
    Ok(LoadSpec { load: Load::Open(arrivals), end })
}

/// One rate for the whole run, unless it is evenly spaced without jitter.
fn steady(
    rate: Rate,
    arrivals: Option<Spacing>,
    jitter: Option<Jitter>,
    spec: &RunSpec,
) -> anyhow::Result<Option<Stage>> {
    let (process, length) = match (arrivals, jitter) {
        (Some(Spacing::Poisson), Some(_)) => {
            bail!("--jitter moves evenly spaced requests; Poisson arrivals are random already, leave one out")
        }
        (Some(Spacing::Poisson), None) => (Process::Poisson, None),
        // Jitter knows the end of the run, so that no request is moved past it.
        (_, Some(jitter)) => (Process::Jittered(jitter), window(spec)),
        (_, None) => return Ok(None),
    };
    Ok(Some(Stage::Shaped { shape: Shape::Constant(Some(rate)), process, length }))
}

/// The times of a recording, without its requests.
fn recorded(replay: &Replay) -> anyhow::Result<Recorded> {
    let shown = &replay.file;
    let cannot = || format!("cannot read the recording `{shown}`");
    let file = File::open(shown).with_context(cannot)?;
    let mut reader = Reader::new(replay.column.clone());
    for line in bounded_lines(BufReader::new(file)) {
        reader
            .line(&line.with_context(cannot)?)
            .with_context(|| format!("cannot use the recording `{shown}`"))?;
    }
    let speed = value(&replay.speed).copied().unwrap_or(Speed::RECORDED);
    reader.finish(speed).with_context(|| format!("cannot use the recording `{shown}`"))
}

/// The given seed, or a fresh one.
pub fn seed(spec: &RunSpec) -> u64 {
    value(&spec.load.seed).copied().unwrap_or_else(fresh_seed)
}

/// A generated seed: short, because people may type it again.
pub fn fresh_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 32
}

/// The seed that reproduces this run; `None` if nothing is random.
pub fn effective_seed(plan: &RunPlan) -> Option<u64> {
    match &plan.load {
        Load::Open(arrivals) => arrivals.seed(),
        Load::Closed => None,
        Load::Thinking { think, seed } => think.is_random().then_some(*seed),
    }
}

/// The rate of an open loop that has one rate.
pub fn rate_per_s(load: &Load) -> Option<f64> {
    let Load::Open(arrivals) = load else { return None };
    match arrivals {
        Arrivals::Constant(rate) => Some(rate.as_per_second_f64()),
        Arrivals::Staged(stages) => match stages.iter().map(|(stage, ..)| stage).collect::<Vec<_>>()[..] {
            [Stage::Shaped { shape: Shape::Constant(Some(rate)), .. }] => Some(rate.as_per_second_f64()),
            _ => None,
        },
    }
}

/// The arrival process for the record.
pub fn arrival_facts(load: &Load) -> Option<ArrivalFacts> {
    let Load::Open(arrivals) = load else { return None };
    let facts = match arrivals {
        Arrivals::Constant(rate) => ArrivalFacts {
            words: format!("{}, evenly spaced", rate.written()),
            seed: None,
            peak_per_s: rate.as_per_second_f64(),
            stages: vec![StageFacts {
                stage: format!("constant {}", rate.written()),
                process: "even".to_owned(),
                begin_ns: 0,
                length_ns: None,
                requests: None,
            }],
            replay: None,
        },
        Arrivals::Staged(stages) => ArrivalFacts {
            words: words(arrivals, stages),
            seed: arrivals.seed(),
            peak_per_s: peak_per_s(stages),
            stages: stages
                .iter()
                .map(|(stage, begin, requests)| stage_facts(stage, begin, requests))
                .collect(),
            replay: None,
        },
    };
    Some(facts)
}

/// The highest rate that an open loop reaches; `None` in a closed loop.
pub fn peak_rate(load: &Load) -> Option<f64> {
    match load {
        Load::Open(Arrivals::Constant(rate)) => Some(rate.as_per_second_f64()),
        Load::Open(Arrivals::Staged(stages)) => Some(peak_per_s(stages)),
        Load::Closed | Load::Thinking { .. } => None,
    }
}

fn peak_per_s(stages: &Stages) -> f64 {
    stages.iter().map(|(stage, ..)| stage.peak_per_s()).fold(0.0, f64::max)
}

/// More stages than this are reported only by their number.
const FEW_STAGES: usize = 3;

fn words(arrivals: &Arrivals, stages: &Stages) -> String {
    let seed = arrivals.seed().map(|seed| format!(", seed {seed}")).unwrap_or_default();
    let all: Vec<&Stage> = stages.iter().map(|(stage, ..)| stage).collect();
    match all[..] {
        [Stage::Shaped { shape: Shape::Constant(Some(rate)), process, .. }] => {
            format!("{}{process}{seed}", rate.written())
        }
        _ if all.len() <= FEW_STAGES => {
            let texts: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("{}{seed}", texts.join(", then "))
        }
        _ => format!("{} stages of at most {:.0}/s{seed}", all.len(), peak_per_s(stages)),
    }
}

fn stage_facts(stage: &Stage, begin: Nanos, requests: Option<u64>) -> StageFacts {
    let process = match stage {
        Stage::Recorded(_) => "replay",
        Stage::Shaped { process: Process::Even, .. } => "even",
        Stage::Shaped { process: Process::Jittered(_), .. } => "jitter",
        Stage::Shaped { process: Process::Poisson, .. } => "poisson",
    };
    StageFacts {
        stage: stage.to_string(),
        process: process.to_owned(),
        begin_ns: begin.0,
        length_ns: stage.length().map(|length| length.0),
        requests,
    }
}

/// How long requests are scheduled for if the load does not define it; `None` if only their number ends the run.
pub fn window(spec: &RunSpec) -> Option<Nanos> {
    match (value(&spec.load.duration), &spec.load.count) {
        (None, None) => Some(DEFAULT_DURATION),
        (duration, _) => duration.map(|length| length.0),
    }
}

/// `None` if no request has a due time: virtual users without think time send the next request at once.
pub fn pace_facts(plan: &RunPlan) -> Option<Pace> {
    let RunPlan { load, pace, .. } = plan;
    match load {
        Load::Closed => None,
        Load::Open(_) | Load::Thinking { .. } => {
            Some(Pace { name: pace.name().to_owned(), batch_ns: pace.batch().0 })
        }
    }
}

/// The think time for the record; `None` without one. Its seed is kept only if it is random.
pub fn think_facts(load: &Load) -> Option<ThinkFacts> {
    let Load::Thinking { think, seed } = load else { return None };
    Some(ThinkFacts { words: think.to_string(), seed: Think::is_random(think).then_some(*seed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(options: &[&str]) -> anyhow::Result<RunPlan> {
        let line: Vec<&str> = options.iter().chain(&["http://127.0.0.1:1/"]).copied().collect();
        Ok(crate::testing::prepared(&line)?.plan)
    }

    #[track_caller]
    fn words_of(options: &[&str], words: &str) {
        assert_eq!(arrival_facts(&prepared(options).unwrap().load).unwrap().words, words);
    }

    #[test]
    fn the_record_says_the_arrivals_in_words() {
        words_of(&["-r", "500"], "500/s, evenly spaced");
        words_of(&["-r", "500", "--arrivals", "poisson", "--seed", "7"], "500/s poisson, seed 7");
        words_of(&["-r", "500", "--jitter", "10%", "--seed", "7"], "500/s jitter 10%, seed 7");
        words_of(
            &["--stage", "ramp 0/s..1k/s 30s", "--stage", "pause 1s"],
            "ramp 0/s..1000/s 30s, then pause 1s",
        );
        words_of(
            &["--stage", "steps 1/s,2/s,3/s,4/s 3s poisson", "--seed", "9"],
            "4 stages of at most 4/s, seed 9",
        );
    }

    #[test]
    fn weighted_stages_share_the_duration() {
        let stages = ["--stage", "constant 500/s weight 1", "--stage", "ramp 500/s..1k/s weight 3"];
        let plan = prepared(&[&stages[..], &["-d", "60s"]].concat()).unwrap();
        assert_eq!(plan.window, Some(Nanos::from_secs(60)));
        let words = arrival_facts(&plan.load).unwrap().words;
        assert_eq!(words, "constant 500/s 15s, then ramp 500/s..1000/s 45s");
    }

    #[test]
    fn stages_say_how_long_a_run_takes_and_so_does_a_recording() {
        let plan = prepared(&["--stage", "ramp 0/s..1k/s 30s", "--stage", "pause 1s"]).unwrap();
        assert_eq!((plan.window, plan.window()), (Some(Nanos::from_secs(31)), Some(Nanos::from_secs(31))));
        assert_eq!(plan.drain, Some(Nanos::from_secs(5)));
        assert_eq!(rate_per_s(&plan.load), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "1\n2\n3\n5\n").unwrap();
        let replay = |more: &[&str]| prepared(&[&["--replay", path.to_str().unwrap()], more].concat());
        let plan = replay(&["--speed", "2x"]).unwrap();
        assert_eq!(plan.window, Some(Nanos(2_666_666_666)));
        assert_eq!(arrival_facts(&plan.load).unwrap().words, "replay of 4 times over 2.67 s");
        assert_eq!(replay(&["-d", "1s"]).unwrap().window, Some(Nanos::from_secs(1)));
        assert!(
            replay(&["--replay-column", "when"]).unwrap_err().root_cause().to_string().starts_with("line 1")
        );
    }

    /// If this fails, a run cannot be reproduced from its record.
    #[test]
    fn a_fresh_seed_is_another_one_each_time_and_a_given_one_is_kept() {
        let fresh = || effective_seed(&prepared(&["-r", "5", "--arrivals", "poisson"]).unwrap()).unwrap();
        assert!([fresh(), fresh(), fresh()].windows(2).any(|pair| pair[0] != pair[1]));
        let given = prepared(&["--think", "exp:1s", "--seed", "18446744073709551615"]).unwrap();
        assert_eq!(effective_seed(&given), Some(u64::MAX));
        // An ignored seed would be mistaken for one that reproduces the run.
        refused(&["-r", "5", "--seed", "3"], "--seed 3 has no effect");
        assert_eq!(think_facts(&given.load).unwrap().words, "exp:1s");
    }

    #[track_caller]
    fn refused(options: &[&str], wanted: &str) {
        let error = format!("{:#}", prepared(options).unwrap_err());
        assert!(error.contains(wanted), "{error}");
    }

    #[test]
    fn options_that_do_not_go_together_are_refused() {
        refused(&["-r", "5", "--stage", "pause 1s"], "'--rate' cannot be used with '--stage'");
        refused(&["-d", "5s", "--stage", "constant 3/s 1s"], "cannot be combined with");
        refused(&["--stage", "constant 3/s weight 1"], "for example -d 60s");
        refused(&["-d", "5s", "--stage", "pause 1s", "--stage", "pause weight 1"], "stage 2 has a weight");
        refused(&["--replay", "x", "--rate", "3/s"], "cannot be used with");
        refused(&["--jitter", "5ms"], "needs --rate or --search");
        refused(&["--stage", "constant 3/s 1s", "--arrivals", "poisson"], "add it to the stage");
        refused(&["-r", "5", "--arrivals", "poisson", "--jitter", "1%"], "leave one out");
        refused(&["-r", "5", "--think", "1s"], "--think is for the virtual users");
        refused(&["--speed", "2x"], "needs --replay");
        refused(&["--stage", "ramp 1/s..x 3s"], "at `1/s..x`, word 2");
        refused(&["--stage", "pause 3s"], "no request is due");
        refused(&["-r", "1M/s", "--jitter", "1s"], "at most 65536 may change places");
        refused(&["--replay", "/nowhere"], "cannot read the recording `/nowhere`");
    }

    /// If this fails, a 10 s run at a rate that cannot be reached takes minutes.
    #[test]
    fn a_rate_above_what_a_schedule_hands_over_is_refused_with_the_ceiling() {
        refused(&["-r", "1G/s", "-w", "1"], "more than the schedule can hand to 1 worker (5M/s)");
        refused(&["--stage", "ramp 1/s..11M/s 1s", "-c", "2", "-w", "2"], "to 2 workers (10M/s)");
        assert!(prepared(&["-r", "1M/s", "-w", "1"]).is_ok());
    }
}
