//! The view of an experiment: a sentence per comparison, a table per metric, and what is missing.

use std::collections::BTreeMap;
use std::fmt;

use findings::phrase;
use findings::view::{Block, Cell, Phrase, Role, Row, Section, Subject, Table, Value, Verdict, View, Word};

use crate::combined::{Combination, Combined};
use crate::judged::{ArmComparison, geometric_mean};
use crate::view::{change, is_decided, needed, word_text};
use crate::{Arm, ComparedMetric, Judged};

/// How far an experiment has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub name: String,
    pub planned: usize,
    pub committed: usize,
    /// Causes of failed runs, with how often.
    pub failures: Vec<(String, usize)>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} runs", self.committed, self.planned)?;
        self.failures.iter().try_for_each(|(cause, count)| write!(f, "; {count}x {cause}"))
    }
}

/// More sentences than this are left to the table.
const MOST_SENTENCES: usize = 8;

/// The view.
pub fn combined_view(combined: &Combined, progress: &Progress) -> View {
    let mut view = View::new(Subject::Lab);
    let arms: Vec<(&Combination, &ArmComparison)> = arms(combined).collect();
    let missing = progress.planned - usable(combined);
    let is_plain =
        missing == 0 && !combined.is_noisy() && arms.iter().all(|(_, arm)| is_decided(&arm.primary));
    let (head, summary) = head(combined, &arms, progress);
    let word = if is_plain { Word::Valid } else { Word::Degraded };
    view.verdict = Some(Verdict { word, head, summary, reasons: Vec::new(), not_made: Vec::new() });
    let mut lines: Vec<Block> = Vec::new();
    if arms.len() > 1 && arms.len() <= MOST_SENTENCES {
        lines.extend(arms.iter().map(|(at, arm)| {
            let (head, rest) = sentence(at, arm);
            Block::line(Role::Text, head.then(": ", rest))
        }));
    }
    lines.extend(gaps(combined, progress, missing));
    view.sections.push(Section::new("sentences", lines));
    if !is_comparison(combined) {
        view.sections.push(Section::new("figures", vec![Block::Table(plain_table(combined))]));
    } else {
        let confirmed = arms.first().map_or(0, |(_, arm)| arm.named.len()) + 1;
        for place in 0..confirmed {
            view.sections.push(Section::new("figures", metric_table(combined, place)));
        }
        view.sections.push(Section::detail("exploratory", exploratory(&arms)));
    }
    view.sections.push(Section::new("twins", twins(combined)));
    let all: Vec<Arm> = combined.combinations.iter().flat_map(named_arms).collect();
    view.sections.push(Section::new("failures", crate::view::failures(&all)));
    view
}

fn arms(combined: &Combined) -> impl Iterator<Item = (&Combination, &ArmComparison)> {
    let pairs = combined.combinations.iter().zip(&combined.compared);
    pairs.flat_map(|(at, arms)| arms.iter().flatten().map(move |arm| (at, arm)))
}

/// Whether there are arms to compare; whether they have figures is another question.
fn is_comparison(combined: &Combined) -> bool {
    combined.combinations.iter().any(|one| one.arms.len() > 1)
}

/// Runs of the plan with figures; twins have their own line.
fn usable(combined: &Combined) -> usize {
    let arms = combined.combinations.iter().flat_map(|one| one.arms.iter().chain(&one.twin));
    arms.map(|arm| arm.usable().count()).sum()
}

fn head(
    combined: &Combined,
    arms: &[(&Combination, &ArmComparison)],
    progress: &Progress,
) -> (Phrase, Phrase) {
    let runs = phrase!(
        "{done} of {runs} of {name}",
        done = Value::Count(progress.committed as u64),
        runs = Value::items(progress.planned as u64, "run"),
        name = progress.name.as_str()
    );
    match arms {
        _ if combined.is_noisy() => (
            Phrase::new("noise floor exceeded"),
            Phrase::new("a second, identical base differs: no verdict of this experiment holds on this host"),
        ),
        [] if is_comparison(combined) => {
            (Phrase::new("not compared"), runs.then(": ", Phrase::new("no arm and its base have figures")))
        }
        [] => (runs, phrase!("{metric} side by side", metric = combined.primary.words())),
        [(at, arm)] => sentence(at, arm),
        several => {
            let mut words: BTreeMap<String, u64> = BTreeMap::new();
            for (_, arm) in several {
                *words.entry(word_text(&arm.primary).to_string()).or_default() += 1;
            }
            let counts = words
                .into_iter()
                .map(|(word, count)| phrase!("{count} {word}", count = Value::Count(count), word = word));
            let compared = Value::items(several.len() as u64, "comparison");
            let head =
                phrase!("{compared} of {metric}", compared = compared, metric = combined.primary.words());
            (head, Phrase::join(counts, ", "))
        }
    }
}

fn sentence(at: &Combination, arm: &ArmComparison) -> (Phrase, Phrase) {
    let judged = &arm.primary;
    let mut rest = phrase!("{metric} of {arm}", metric = judged.metric.words(), arm = arm.name.as_str());
    if !at.name.is_empty() {
        rest = rest.then(" at ", phrase!("{at}", at = at.name.as_str()));
    }
    let base = at.arms.first().map_or("", |base| base.name.as_str());
    rest = match judged.judgement.as_ref().and_then(|judgement| judgement.student) {
        Some(evidence) => rest.then(" is ", change(arm, evidence, base)),
        None => {
            let because = judged.absent.clone().unwrap_or_else(|| "one run per arm".to_owned());
            rest.then(": ", phrase!("{because}", because = because))
        }
    };
    if let Some(needed) = needed(judged) {
        rest = rest.then("; ", needed);
    }
    (word_text(judged), rest)
}

/// What is missing, and why.
fn gaps(combined: &Combined, progress: &Progress, missing: usize) -> Vec<Block> {
    if missing == 0 {
        return Vec::new();
    }
    let open = progress.planned - progress.committed;
    let failed: usize = progress.failures.iter().map(|(_, count)| count).sum();
    let invalid = missing.saturating_sub(open + failed);
    let parts = [(open, "not made yet"), (failed, "failed"), (invalid, "invalid")];
    let parts = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| phrase!("{count} {what}", count = Value::Count(count as u64), what = what));
    let runs = Value::items(progress.planned as u64, "run");
    let text =
        phrase!("{missing} of {runs} have no figures", missing = Value::Count(missing as u64), runs = runs);
    let first = Block::line(Role::Warning, text.then(": ", Phrase::join(parts, ", ")));
    let of_failed = progress.failures.iter().map(|(cause, count)| {
        let count = Value::Count(*count as u64);
        Block::line(Role::Warning, phrase!("failed {count}x: {cause}", count = count, cause = cause.as_str()))
    });
    let of_invalid = checks_that_failed(combined).into_iter().map(|(check, count)| {
        let text = phrase!("invalid {count}x: {cause}", count = Value::Count(count), cause = check);
        Block::line(Role::Warning, text.then("; ", Phrase::new("`parallax report` of its record says more")))
    });
    std::iter::once(first).chain(of_failed).chain(of_invalid).collect()
}

/// The checks of the audit that made runs invalid, with how many.
fn checks_that_failed(combined: &Combined) -> BTreeMap<&str, u64> {
    let arms = combined.combinations.iter().flat_map(|one| one.arms.iter().chain(&one.twin));
    let mut found = BTreeMap::new();
    for check in arms.flat_map(|arm| &arm.runs).filter_map(|run| run.invalid_by.as_deref()) {
        *found.entry(check).or_insert(0) += 1;
    }
    found
}

/// The table of the primary metric, or of one that is named with it.
fn metric_table(combined: &Combined, place: usize) -> Vec<Block> {
    let columns = [
        ("at", "at", "text", "the values of the other factors"),
        ("arm", "arm", "text", "the value of the compared factor"),
        ("runs", "runs", "count", "runs with figures, of the arm that has fewer"),
        ("missing", "missing", "count", "planned runs of arm and base without figures"),
        ("base", "base", "", "geometric mean over the runs of the base"),
        ("value", "value", "", "geometric mean over the runs of the arm"),
        ("change", "change", "ratio_change", "value / base - 1"),
        (
            "low",
            "from",
            "ratio_change",
            "95 % interval of the change, not adjusted for the number of comparisons",
        ),
        (
            "high",
            "to",
            "ratio_change",
            "95 % interval of the change, not adjusted for the number of comparisons",
        ),
        ("verdict", "verdict", "text", "at an error of 5 % for all of them together (Holm)"),
    ];
    let mut rows = Vec::new();
    let mut metric = combined.primary;
    for (at, compared) in combined.combinations.iter().zip(&combined.compared) {
        for (index, found) in compared.iter().enumerate() {
            let missing = missing(at, 0) + missing(at, index + 1);
            let judged = found.as_ref().and_then(|arm| confirmed(arm, place));
            metric = judged.map_or(metric, |judged| judged.metric);
            let runs = found.as_ref().map_or(0, |arm| arm.runs);
            let mut cells: Vec<Cell> = vec![at.name.as_str().into(), at.arms[index + 1].name.as_str().into()];
            cells.extend([runs, missing].map(|count| Cell::from(Value::Count(count as u64))));
            cells.extend(figures(judged));
            rows.push(Row::new(cells));
        }
    }
    let base = combined.combinations.first().and_then(|one| one.arms.first());
    let base = base.map_or(String::new(), |base| base.name.clone());
    let title = phrase!(
        "{metric}, compared with {base}; margin {margin}",
        metric = metric.words(),
        base = base,
        margin = Value::Share(metric.metric.margin)
    );
    vec![Block::line(Role::Title, title), Block::Table(Table::new("comparisons", &columns, rows))]
}

fn confirmed(arm: &ArmComparison, place: usize) -> Option<&Judged> {
    std::iter::once(&arm.primary).chain(&arm.named).nth(place)
}

/// Runs of the plan without figures.
fn missing(at: &Combination, arm: usize) -> usize {
    at.planned.get(arm).map_or(0, |planned| planned.saturating_sub(at.arms[arm].usable().count()))
}

/// Base, value, change, its interval, and the verdict.
fn figures(judged: Option<&Judged>) -> Vec<Cell> {
    let Some(judged) = judged else {
        let absent = std::iter::repeat_with(Cell::absent).take(5);
        return absent.chain([Cell::from("no figures")]).collect();
    };
    let figure = |value: Option<f64>| Cell::maybe(value.map(|value| judged.metric.value(value)));
    let evidence = judged.judgement.as_ref().and_then(|judgement| judgement.student);
    let change = |log: Option<f64>| Cell::maybe(log.map(|log| Value::RatioChange(log.exp_m1())));
    let verdict = match &judged.absent {
        Some(because) => Cell::from(because.as_str()),
        None => Cell::from(word_text(judged).to_string()),
    };
    vec![
        figure(judged.means.map(|(base, _)| base)),
        figure(judged.means.map(|(_, arm)| arm)),
        change(evidence.map(|evidence| evidence.estimate)),
        change(evidence.map(|evidence| evidence.interval_95.low)),
        change(evidence.map(|evidence| evidence.interval_95.high)),
        verdict,
    ]
}

/// All other metrics, for readers who look around.
fn exploratory(arms: &[(&Combination, &ArmComparison)]) -> Vec<Block> {
    let columns = [
        ("metric", "metric", "text", "a metric that the experiment does not name"),
        ("at", "at", "text", "the values of the other factors"),
        ("arm", "arm", "text", "the value of the compared factor"),
        ("base", "base", "", "geometric mean over the runs of the base"),
        ("value", "value", "", "geometric mean over the runs of the arm"),
        ("change", "change", "ratio_change", "value / base - 1"),
        ("low", "from", "ratio_change", "95 % interval of the change, not adjusted"),
        ("high", "to", "ratio_change", "95 % interval of the change, not adjusted"),
        ("verdict", "verdict", "text", "10 % of them may be wrong (Benjamini-Hochberg)"),
    ];
    let mut rows = Vec::new();
    for (at, arm) in arms {
        for judged in &arm.others {
            let mut cells: Vec<Cell> =
                vec![judged.metric.name.into(), at.name.as_str().into(), arm.name.as_str().into()];
            cells.extend(figures(Some(judged)));
            rows.push(Row::new(cells));
        }
    }
    vec![
        Block::line(Role::Title, Phrase::new("other metrics, exploratory")),
        Block::Table(Table::new("exploratory", &columns, rows)),
    ]
}

/// What this host calls a difference: identical servers, compared.
fn twins(combined: &Combined) -> Vec<Block> {
    let line = |(at, twin): (&Combination, &Option<ArmComparison>)| {
        let twin = twin.as_ref()?;
        let (head, rest) = sentence(at, twin);
        Some(Block::labelled(Role::Note, "twin", head.then(": ", rest)))
    };
    let lines = combined.combinations.iter().zip(&combined.twins).filter_map(line);
    lines.take(MOST_SENTENCES).collect()
}

/// The arms with the combination in their names.
fn named_arms(one: &Combination) -> Vec<Arm> {
    let named = |arm: &Arm| {
        let name = [arm.name.as_str(), one.name.as_str()].join(" ").trim().to_owned();
        Arm { name, ..arm.clone() }
    };
    one.arms.iter().map(named).collect()
}

/// Without a compared factor: the primary metric of each combination, without a verdict.
fn plain_table(combined: &Combined) -> Table {
    let columns = [
        ("at", "at", "text", "the values of the factors"),
        ("runs", "runs", "count", "runs with figures"),
        ("missing", "missing", "count", "planned runs without figures"),
        ("value", "value", "", "geometric mean over the runs"),
        ("low", "from", "", "95 % interval by Student's t on logs"),
        ("high", "to", "", "95 % interval by Student's t on logs"),
    ];
    let row = |one: &Combination| {
        let metric = &combined.primary;
        let values: Vec<f64> = one.arms[0].usable().filter_map(|run| run.value(metric).ok()).collect();
        let mut cells: Vec<Cell> = vec![one.name.as_str().into()];
        cells.extend([values.len(), missing(one, 0)].map(|count| Cell::from(Value::Count(count as u64))));
        cells.extend(plain_figures(metric, &values));
        Row::new(cells)
    };
    Table::new("combinations", &columns, combined.combinations.iter().map(row).collect())
}

fn plain_figures(metric: &ComparedMetric, values: &[f64]) -> Vec<Cell> {
    let figure = |value: Option<f64>| Cell::maybe(value.map(|value| metric.value(value)));
    let is_positive = !values.is_empty() && values.iter().all(|value| *value > 0.0);
    let logs = stats::comparison::Paired::from_log_ratios(values.iter().map(|value| value.ln()).collect());
    let evidence = if is_positive { logs.student(metric.metric.margin) } else { None };
    vec![
        figure(is_positive.then(|| geometric_mean(values))),
        figure(evidence.map(|evidence| evidence.interval_95.low.exp())),
        figure(evidence.map(|evidence| evidence.interval_95.high.exp())),
    ]
}
