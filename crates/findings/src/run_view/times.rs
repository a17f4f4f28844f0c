//! Response time, service time and the phases, with shares and percentiles.

use record::Outcome;
use record::document::{Distribution, PhaseResult, Results};

use crate::view::{self, Block, Cell, Percentile, Phrase, Role, Row, Table, Value, phrase};
use crate::words::{percentile, quantile_cell, quantile_name};

/// The percentiles that have a column; the others are only in the list of intervals.
const COLUMNS: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Response time, service time and the ten phases, with owner, share and percentiles.
pub(super) fn phases(results: &Results) -> Vec<Block> {
    let sum = |name: &str, what: &str, distribution: &Distribution, max: Cell| {
        let head = vec![Cell::from(name), Cell::from(what), Cell::absent()];
        Row { key: name == "response", ..Row::new(with_times(head, distribution, max)) }
    };
    let mut rows = vec![
        sum("response", "seen by the user", &results.response, response_max(results)),
        sum("service", "sent to arrived", &results.service, Cell::ns(results.service.max_ns)),
    ];
    rows.extend(results.phases.iter().map(phase));
    let columns = [
        ("phase", "", "text", "a part of the request"),
        ("owner", "", "text", "who is responsible for it"),
        ("share", "share", "share", "of the sum of all response times"),
        ("p50", "p50", "ns", "median"),
        ("p90", "p90", "ns", "90th percentile"),
        ("p99", "p99", "ns", "99th percentile"),
        ("p99.9", "p99.9", "ns", "99.9th percentile"),
        ("max", "max", "ns", "longest"),
    ];
    let mut blocks = vec![Block::Table(Table::new("phases", &columns, rows))];
    let unanswered = unanswered(results);
    if unanswered > 0 {
        let text = phrase!(
            "response includes {unanswered}, by final age; the other rows are for ok requests only",
            unanswered = Value::items(unanswered, "unanswered request")
        );
        blocks.push(Block::line(Role::Note, text));
    }
    blocks
}

fn phase(phase: &PhaseResult) -> Row {
    let mut head = vec![Cell::from(phase.phase.as_str()), Cell::from(phase.belongs_to.as_str())];
    let Some(distribution) = &phase.distribution else {
        let because = phase.absent.clone().unwrap_or_else(|| "reason unknown".to_owned());
        head.resize(2 + 1 + COLUMNS.len() + 1, Cell::Absent { because });
        return Row::new(head);
    };
    head.push(Value::Share(phase.share.unwrap_or(0.0)).into());
    Row::new(with_times(head, distribution, Cell::ns(distribution.max_ns)))
}

fn with_times(mut cells: Vec<Cell>, distribution: &Distribution, max: Cell) -> Vec<Cell> {
    cells.extend(COLUMNS.map(|q| percentile(distribution, q)));
    cells.push(max);
    cells
}

/// The number of requests without a response, whose response time has only a lower bound.
fn unanswered(results: &Results) -> u64 {
    results.outcomes.iter().filter(|row| is_unanswered(&row.outcome)).map(|row| row.count).sum()
}

fn is_unanswered(name: &str) -> bool {
    Outcome::from_name(name).is_some_and(Outcome::is_unanswered)
}

/// The longest response. A lower bound if a request got no response: that might have taken any time.
pub(super) fn response_max(results: &Results) -> Cell {
    let longest = ages(results).filter_map(|ages| ages.max_ns).chain(results.response.max_ns).max();
    bound(results, longest)
}

/// The mean of the response time. A lower bound if a request got no response, with its age in place of the time.
fn response_mean(results: &Results) -> Cell {
    let sum_of = |times: &Distribution| (times.count, u128::from(times.sum_ns));
    let all = ages(results).map(sum_of).chain([sum_of(&results.response)]);
    let (count, sum_ns) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mean = sum_ns.checked_div(u128::from(count));
    bound(results, mean.map(|mean| u64::try_from(mean).unwrap_or(u64::MAX)))
}

/// The ages of requests without a response when they ended, by outcome.
fn ages(results: &Results) -> impl Iterator<Item = &Distribution> {
    results.failed.iter().filter(|(name, _)| is_unanswered(name)).map(|(_, ages)| ages)
}

/// A response time that requests without a response make a lower bound.
fn bound(results: &Results, ns: Option<u64>) -> Cell {
    match ns.map(Value::Ns) {
        None => Cell::Absent { because: "no request ended ok".to_owned() },
        Some(time) if unanswered(results) > 0 => Cell::Above(time),
        Some(time) => Cell::Figure(time),
    }
}

/// All percentiles of the response time with their confidence intervals.
pub(super) fn response(results: &Results) -> Block {
    let response = &results.response;
    let percentiles = response.quantiles.iter().map(|quantile| Percentile {
        name: quantile_name(quantile.q),
        q: quantile.q,
        value: quantile_cell(quantile.value),
    });
    Block::Distribution(Box::new(view::Distribution {
        id: "response".to_owned(),
        title: Phrase::new("response time with 95 % confidence intervals"),
        count: Value::Count(response.count).into(),
        min: Cell::ns(response.min_ns),
        mean: response_mean(results),
        max: response_max(results),
        percentiles: percentiles.collect(),
    }))
}
