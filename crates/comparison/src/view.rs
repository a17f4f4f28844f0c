//! The view of a comparison: the sentence with the verdict word first, then what differs, then all figures.

use std::cmp::Ordering;

use record::document::VerdictWord;
use stats::comparison::{Direction, Evidence, FEWEST_BLOCKS, Judgement, Word as VerdictWordOfStats};

use crate::judged::{ArmComparison, Pairing, is_one_after_the_other};
use crate::{Arm, Comparison, Difference, Judged};
use findings::phrase;
use findings::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, Verdict, View, Word};

/// The view. Conditions are added by the caller, who has them.
pub fn comparison_view(comparison: &Comparison) -> View {
    let mut view = View::new(Subject::Compare);
    let matters: Vec<&Difference> = comparison.differences.iter().filter(|one| one.matters).collect();
    let sentences: Vec<(Phrase, Phrase)> =
        (0..comparison.compared.len()).map(|arm| sentence(comparison, arm)).collect();
    let is_decided = comparison.compared.iter().all(|arm| is_decided(&arm.primary));
    let more_fail =
        (0..comparison.compared.len()).any(|arm| comparison.failure_change(arm) == Some(Ordering::Greater));
    let is_doubtful = (0..comparison.compared.len()).any(|arm| comparison.doubt(arm).is_some());
    let is_plain = is_decided && !more_fail && !is_doubtful;
    let word = if is_plain { Word::Valid } else { Word::Degraded };
    let noise = comparison.twin.as_ref().filter(|_| comparison.is_noisy() && matters.is_empty());
    let (head, summary, mut first) = match (&sentences[..], matters.is_empty()) {
        (several, _) if noise.is_some() => {
            let summary = noise.map(|twin| noise_floor(comparison, twin)).unwrap_or_default();
            (Phrase::new("noise floor exceeded"), summary, lines(several))
        }
        ([(head, summary)], true) => (head.clone(), summary.clone(), Vec::new()),
        (several, true) => {
            let count = Value::items(several.len() as u64, "arm");
            (phrase!("{arms} compared", arms = count), base_of(comparison), lines(several))
        }
        (several, false) => (Phrase::new("not the same experiment"), what_differs(&matters), lines(several)),
    };
    view.verdict = Some(Verdict { word, head, summary, reasons: Vec::new(), not_made: Vec::new() });
    first.extend(comparison.twin.iter().filter(|_| noise.is_none()).map(|twin| twin_line(comparison, twin)));
    view.sections.push(Section::new("sentences", first));
    if !comparison.differences.is_empty() {
        view.sections.push(Section::new("differences", vec![differences(comparison)]));
    }
    view.sections.push(Section::new("commands", commands(&comparison.arms)));
    for arm in &comparison.compared {
        view.sections.push(Section::new("figures", figures(comparison, arm)));
    }
    view.sections.push(Section::new("failures", failures(&comparison.arms)));
    view.sections.push(Section::new("notes", notes(comparison)));
    view
}

/// What a twin that came out different says about the host.
fn noise_floor(comparison: &Comparison, twin: &ArmComparison) -> Phrase {
    twin_sentence(comparison, twin)
        .then("; ", Phrase::new("no verdict of this experiment holds on this host"))
}

/// What a twin that did not come out different shows.
fn twin_line(comparison: &Comparison, twin: &ArmComparison) -> Block {
    let text = word_text(&twin.primary).then(": ", twin_sentence(comparison, twin));
    Block::labelled(Role::Note, "twin", text)
}

fn twin_sentence(comparison: &Comparison, twin: &ArmComparison) -> Phrase {
    let (base, metric) = (comparison.arms[0].name.as_str(), twin.primary.metric.words());
    let same = phrase!("{metric} of a second, identical {base}", metric = metric, base = base);
    match twin.primary.judgement.as_ref().and_then(|judgement| judgement.student) {
        Some(evidence) => same.then(" is ", change(twin, evidence, base)),
        None => {
            same.then(": ", phrase!("{because}", because = twin.primary.absent.clone().unwrap_or_default()))
        }
    }
}

/// What was run, one line per arm.
fn commands(arms: &[Arm]) -> Vec<Block> {
    let line = |arm: &Arm| {
        let command = arm.command.as_ref()?;
        Some(Block::labelled(Role::Text, &arm.name, phrase!("{command}", command = command.as_str())))
    };
    arms.iter().filter_map(line).collect()
}

fn lines(sentences: &[(Phrase, Phrase)]) -> Vec<Block> {
    let line =
        |(head, rest): &(Phrase, Phrase)| Block::line(Role::Text, head.clone().then(": ", rest.clone()));
    sentences.iter().map(line).collect()
}

fn base_of(comparison: &Comparison) -> Phrase {
    phrase!("the base is {base}", base = comparison.arms[0].name.as_str())
}

fn what_differs(differences: &[&Difference]) -> Phrase {
    let names: Vec<&str> = differences.iter().map(|difference| difference.what.as_str()).collect();
    let differ = if names.len() == 1 { "differs" } else { "differ" };
    phrase!("{what} {differ} between the records; see below", what = names.join(", "), differ = differ)
}

pub(super) fn is_decided(judged: &Judged) -> bool {
    use VerdictWordOfStats::{Inconclusive, Leaning, LookOnly};
    judged.judgement.as_ref().is_some_and(|judged| !matches!(judged.word, Inconclusive | Leaning | LookOnly))
}

/// The verdict word of a metric, with its margin where that is part of it.
pub(super) fn word_text(judged: &Judged) -> Phrase {
    let margin = Value::Share(judged.metric.metric.margin);
    let Some(judgement) = &judged.judgement else { return Phrase::new("not compared") };
    match judgement.word {
        VerdictWordOfStats::Better => Phrase::new("better"),
        VerdictWordOfStats::Worse => Phrase::new("worse"),
        VerdictWordOfStats::DiffersTooLittle => Phrase::new("differs, too small to matter"),
        VerdictWordOfStats::Same => phrase!("same within {margin}", margin = margin),
        VerdictWordOfStats::Leaning => Phrase::new(leaning(judged, judgement)),
        VerdictWordOfStats::Inconclusive => Phrase::new("inconclusive"),
        VerdictWordOfStats::LookOnly => Phrase::new("look only"),
    }
}

fn leaning(judged: &Judged, judgement: &Judgement) -> &'static str {
    let is_higher = judgement.student.is_some_and(|evidence| evidence.estimate > 0.0);
    let is_better = is_higher == (judged.metric.metric.direction == Direction::HigherIsBetter);
    if is_better { "leaning better" } else { "leaning worse" }
}

/// The word, and the rest of the sentence.
fn sentence(comparison: &Comparison, index: usize) -> (Phrase, Phrase) {
    let arm = &comparison.compared[index];
    let judged = &arm.primary;
    let head = word_text(judged);
    let base = &comparison.arms[0].name;
    let names = phrase!("{metric} of {arm}", metric = judged.metric.words(), arm = arm.name.as_str());
    let Some(evidence) = judged.judgement.as_ref().and_then(|judgement| judgement.student) else {
        let because = judged.absent.clone().unwrap_or_else(|| "one record per arm".to_owned());
        return (head, names.then(": ", phrase!("{because}", because = because)));
    };
    let mut rest = names.then(" is ", change(arm, evidence, base));
    if let Some(needed) = needed(judged) {
        rest = rest.then("; ", needed);
    }
    if let Some(failed) = more_failed(comparison, index) {
        rest = rest.then("; ", failed);
    }
    (head, rest)
}

/// From here on a change is a factor: a share ends at 100 %.
const DOUBLE: f64 = 1.995;

/// `10.0 % higher than with old (95 % interval +9.1% to +10.9%, margin 5.0 %, 10 blocks)`.
pub(super) fn change(arm: &ArmComparison, evidence: Evidence, base: &str) -> Phrase {
    let ratio = evidence.estimate.exp();
    let change = if ratio < DOUBLE {
        let direction = if ratio >= 1.0 { "higher" } else { "lower" };
        let size = Value::Share((ratio - 1.0).abs());
        phrase!("{*size} {direction} than with {base}", size = size, direction = direction, base = base)
    } else {
        phrase!("{*ratio} times that of {base}", ratio = Value::Number(ratio), base = base)
    };
    let (low, high) = changes(evidence);
    let interval = phrase!("95 % interval {low} to {high}", low = low, high = high);
    let margin = phrase!("margin {margin}", margin = Value::Share(arm.primary.metric.metric.margin));
    let runs = match arm.pairing {
        Pairing::Paired { .. } => phrase!("{runs}", runs = Value::items(arm.runs as u64, "block")),
        Pairing::Unpaired { .. } => {
            phrase!("{runs} per arm, unpaired", runs = Value::items(arm.runs as u64, "record"))
        }
    };
    let facts = Phrase::join([interval, margin, runs], ", ");
    change.then(" (", facts).then(")", Phrase::default())
}

/// A server that fails fast looks fast: that more requests failed belongs to the sentence.
fn more_failed(comparison: &Comparison, index: usize) -> Option<Phrase> {
    let is_more = comparison.failure_change(index) == Some(Ordering::Greater);
    let (base, arm) = (comparison.failures(0)?, comparison.failures(index + 1)?);
    is_more.then(|| {
        phrase!(
            "but {*arm} of its requests failed, of the base {base}",
            arm = Value::Share(arm.share),
            base = Value::Share(base.share)
        )
    })
}

/// The limits of the interval as changes.
fn changes(evidence: Evidence) -> (Value, Value) {
    let interval = evidence.interval_95;
    (Value::RatioChange(interval.low.exp_m1()), Value::RatioChange(interval.high.exp_m1()))
}

/// What would make an open comparison certain.
pub(super) fn needed(judged: &Judged) -> Option<Phrase> {
    let judgement = judged.judgement.as_ref()?;
    let blocks = |count: usize| Value::Count(count as u64);
    match (judgement.word, judgement.disagreement, judgement.blocks_needed) {
        (VerdictWordOfStats::LookOnly, ..) => {
            Some(phrase!("a verdict needs {fewest} per arm", fewest = blocks(judgement.fewest_blocks)))
        }
        (VerdictWordOfStats::Inconclusive, Some(_), _) => {
            Some(Phrase::new("Student's t and the signed-rank test disagree: look at the single records"))
        }
        (VerdictWordOfStats::Inconclusive, None, Some(needed)) => {
            Some(phrase!("about {needed} per arm would decide it", needed = blocks(needed)))
        }
        (VerdictWordOfStats::Inconclusive, None, None) => {
            Some(Phrase::new("more than 1,000 per arm would be needed"))
        }
        _ => None,
    }
}

fn differences(comparison: &Comparison) -> Block {
    let mut columns = vec![("what", "differs", "text", "an option, or a fact of the record")];
    let ids: Vec<String> = (0..comparison.arms.len()).map(|arm| format!("arm_{arm}")).collect();
    for (id, arm) in ids.iter().zip(&comparison.arms) {
        columns.push((id, &arm.name, "text", "the value in the records of this arm"));
    }
    let row = |difference: &Difference| {
        let values = difference.values.iter().map(|value| Cell::from(value.as_str()));
        Row::new(std::iter::once(Cell::from(difference.what.as_str())).chain(values).collect())
    };
    Block::Table(Table::new("differences", &columns, comparison.differences.iter().map(row).collect()))
}

fn figures(comparison: &Comparison, arm: &ArmComparison) -> Vec<Block> {
    let columns = [
        (
            "metric",
            "metric",
            "text",
            "the primary one, those of conditions, then the others, which are exploratory",
        ),
        ("base", &comparison.arms[0].name, "", "geometric mean over the records of the base"),
        ("arm", &arm.name, "", "geometric mean over the records of the arm"),
        ("change", "change", "ratio_change", "arm / base - 1"),
        (
            "low",
            "from",
            "ratio_change",
            "95 % interval of the change, not adjusted for the number of metrics",
        ),
        ("high", "to", "ratio_change", "95 % interval of the change, not adjusted for the number of metrics"),
        (
            "verdict",
            "verdict",
            "text",
            "primary and conditions: 5 %, Holm over them and the arms; others: 10 %, Benjamini-Hochberg over all",
        ),
    ];
    let row = |(index, judged): (usize, &Judged)| {
        let row = Row::new(cells(judged));
        if index == 0 { Row { key: true, ..row } } else { row }
    };
    let rows = arm.all().enumerate().map(row).collect();
    vec![Block::Table(Table::new("comparison", &columns, rows)), Block::line(Role::Note, errors_of(arm))]
}

/// With which error the verdicts of the table are made.
fn errors_of(arm: &ArmComparison) -> Phrase {
    match arm.named.len() {
        0 => phrase!(
            "the first row is judged at an error of 5 %, the others are exploratory: 10 % of their verdicts may be wrong"
        ),
        named => phrase!(
            "the first {rows} are judged at an error of 5 % for all of them, the others are exploratory: 10 % of their verdicts may be wrong",
            rows = Value::items(named as u64 + 1, "row")
        ),
    }
}

fn cells(judged: &Judged) -> Vec<Cell> {
    let figure = |value: Option<f64>| Cell::maybe(value.map(|value| judged.metric.value(value)));
    let evidence = judged.judgement.as_ref().and_then(|judgement| judgement.student);
    let change = |value: Option<f64>| Cell::maybe(value.map(|log| Value::RatioChange(log.exp_m1())));
    let verdict = match &judged.absent {
        Some(because) => Cell::from(because.as_str()),
        None => Cell::from(word_text(judged).to_string()),
    };
    vec![
        Cell::from(judged.metric.name),
        figure(judged.means.map(|(base, _)| base)),
        figure(judged.means.map(|(_, arm)| arm)),
        change(evidence.map(|evidence| evidence.estimate)),
        change(evidence.map(|evidence| evidence.interval_95.low)),
        change(evidence.map(|evidence| evidence.interval_95.high)),
        verdict,
    ]
}

/// Failed requests of each arm: shares, because counts grow with the run.
pub(super) fn failures(arms: &[Arm]) -> Vec<Block> {
    let columns = [
        ("arm", "records of", "text", "the arm"),
        ("failed", "failed", "count", "requests that did not end ok"),
        ("requests", "requests", "count", "all that were scheduled"),
        ("share", "share", "share", "failed / requests over all records"),
        ("low", "from", "share", "95 % interval by Wilson, with the design effect of the records"),
        ("high", "to", "share", "95 % interval by Wilson, with the design effect of the records"),
    ];
    let row = |arm: &Arm| {
        let counts = || arm.usable().filter_map(|run| run.failures);
        let (failed, all) = (counts().map(|(failed, _)| failed).sum(), counts().map(|(_, all)| all).sum());
        let share = crate::judged::failures(arm)?;
        Some(Row::new(vec![
            Cell::from(arm.name.as_str()),
            Value::Count(failed).into(),
            Value::Count(all).into(),
            Value::Share(share.share).into(),
            Value::Share(share.low).into(),
            Value::Share(share.high).into(),
        ]))
    };
    let rows: Vec<Row> = arms.iter().filter_map(row).collect();
    if rows.is_empty() { Vec::new() } else { vec![Block::Table(Table::new("failures", &columns, rows))] }
}

fn notes(comparison: &Comparison) -> Vec<Block> {
    let mut notes = Vec::new();
    for arm in &comparison.arms {
        let unused = arm.runs.len() - arm.usable().count();
        if unused > 0 {
            let unused = Value::items(unused as u64, "record");
            let text = phrase!(
                "{unused} of {arm} not used: invalid or unfinished",
                unused = unused,
                arm = arm.name.as_str()
            );
            notes.push(Block::line(Role::Warning, text));
        }
    }
    for arm in &comparison.arms {
        let degraded = arm.usable().filter(|run| run.verdict == Some(VerdictWord::Degraded)).count();
        if degraded > 0 {
            let records = Value::items(degraded as u64, "record");
            let text = phrase!(
                "{records} of {arm} degraded: `parallax report` names the reasons",
                records = records,
                arm = arm.name.as_str()
            );
            notes.push(Block::line(Role::Note, text));
        }
    }
    for (index, arm) in comparison.compared.iter().enumerate() {
        let name = arm.name.as_str();
        if is_one_after_the_other(&comparison.arms[0], &comparison.arms[index + 1]) {
            let text = phrase!(
                "all records of one arm were made before those of {arm}, or after: a machine that drifted looks like a difference; let the arms take turns",
                arm = name
            );
            notes.push(Block::line(Role::Warning, text));
        }
        match arm.pairing {
            Pairing::Paired { left_over: 0 } => {}
            Pairing::Paired { left_over } => {
                let records = Value::items(left_over as u64, "record");
                let text = phrase!("{records} not used: no counterpart in the same block", records = records);
                notes.push(Block::line(Role::Warning, text));
            }
            Pairing::Unpaired { because } if arm.runs >= FEWEST_BLOCKS => {
                let words = format!(
                    "{{arm}} is unpaired, because {because}: if the machine drifted between the arms, the verdict is wrong"
                );
                notes.push(Block::line(Role::Note, Phrase::new(words).with("arm", name)));
            }
            Pairing::Unpaired { .. } => {}
        }
    }
    notes
}
