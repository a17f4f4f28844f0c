//! What a watch under a budget saw, and its estimates for the whole time.

use record::observation::watch::{EstimatedRange, WatchResults, Windows};
use units::Nanos;

use crate::arithmetic::share;
use crate::view::{Block, Cell, Phrase, Role, Row, Table, Value, phrase};

/// How much was seen, what it cost, and what follows for all the time; nothing if all was seen.
pub fn windows(windows: &Windows, elapsed: Nanos) -> Vec<Block> {
    if windows.windows == 0 {
        return Vec::new();
    }
    let labelled = |label, text| Block::labelled(Role::Text, label, text);
    let seen = phrase!(
        "{share} of the time, in {windows}; counts and times are of these, and each maximum is a lower bound",
        share = Value::Share(share(windows.seen_ns(), elapsed.0).unwrap_or(0.0)),
        windows = Value::items(windows.windows, "window")
    );
    let cost = phrase!(
        "{cost} of the server's CPU time, by the observer's account; the limit is {limit}",
        cost = Value::Share(share(windows.cost_ns, windows.server_cpu_ns).unwrap_or(0.0)),
        limit = Value::Share(windows.budget)
    );
    let mut blocks = vec![labelled("saw:", seen)];
    // Unknown of a watch that was killed.
    blocks.extend((windows.server_cpu_ns > 0).then(|| labelled("cost:", cost)));
    blocks.extend(windows.slowdown.and_then(|slowdown| slower(slowdown, windows, elapsed)));
    if windows.unanswered > 0 {
        let text = phrase!(
            "{requests} had no response 500 ms after their window: the mean is too low by their times",
            requests = Value::items(windows.unanswered, "request")
        );
        blocks.push(labelled("unanswered:", text));
    }
    blocks.extend(estimates(windows));
    if let Some(why) = windows.rate_by_time.as_ref().filter(|_| windows.rate_per_s.is_some()) {
        let text = phrase!(
            "as many requests per second as within windows, where a server without idle time is slower: {why}",
            why = why.clone()
        );
        blocks.push(labelled("rate:", text));
    }
    blocks
}

/// What being watched costs a server that has no idle time, by what it read; nothing if that may be chance.
fn slower(slowdown: EstimatedRange, windows: &Windows, elapsed: Nanos) -> Option<Block> {
    let (value, low, high) = (slowdown.value?, slowdown.low.filter(|low| *low > 0.0)?, slowdown.high?);
    let watched = share(windows.seen_ns(), elapsed.0).unwrap_or(0.0);
    let text = phrase!(
        "by {slower} within windows ({low} to {high}), by what it read: about {lost} of all",
        slower = Value::Share(value),
        low = Value::Share(low),
        high = Value::Share(high),
        lost = Value::Share(value * watched)
    );
    Some(Block::labelled(Role::Text, "slower:", text))
}

fn estimates(windows: &Windows) -> Vec<Block> {
    let per_s = |value: f64| Value::PerSecond(value);
    let ns = |value: f64| Value::Ns(value.round() as u64);
    let row = |name: &'static str, range: Option<EstimatedRange>, value: &dyn Fn(f64) -> Value| {
        let range = range?;
        let cell = |end: Option<f64>| end.map_or_else(Cell::absent, |end| Cell::from(value(end)));
        Some(Row::new(vec![name.into(), cell(range.value), cell(range.low), cell(range.high)]))
    };
    let rows: Vec<Row> = [
        row("requests per second", windows.rate_per_s, &per_s),
        row("mean", windows.mean_ns, &ns),
        row("p50", windows.p50_ns, &ns),
        row("p99", windows.p99_ns, &ns),
    ]
    .into_iter()
    .flatten()
    .collect();
    if rows.is_empty() {
        let few = Phrase::new("too few windows to estimate the whole time: watch for longer");
        return vec![Block::labelled(Role::Text, "estimated:", few)];
    }
    let columns = [
        ("figure", "", "text", "of all requests of the whole time"),
        ("estimate", "estimate", "figure", "from the windows"),
        ("low", "from", "figure", "lower end of the 95 % interval"),
        ("high", "to", "figure", "upper end of the 95 % interval"),
    ];
    let title = Phrase::new("estimated for the whole time, with 95 % intervals from the windows");
    vec![Block::line(Role::Title, title), Block::Table(Table::new("watch_estimates", &columns, rows))]
}

/// The name of the row of all requests.
pub fn name_of_all(results: &WatchResults) -> &'static str {
    match &results.windows {
        Some(windows) if windows.windows > 0 => "at the server, as seen",
        _ => "at the server",
    }
}
