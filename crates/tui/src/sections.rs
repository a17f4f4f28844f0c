//! The parts of the live view as lines of text, each for a width and a number of rows. Pure.

use findings::{IntervalRates, largest_shares, share};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use record::Phase;
use record::document::Model as LoadModel;
use units::Nanos;
use units::{count, percent, rate};

use super::lights::{CheckStatus, lights};
use super::model::Model;
use super::tally::RECENT;
use super::terminal_style::TerminalStyle;
use super::widgets::{self, Lines, seconds, shortened, shown_text, stacked};

/// The target, the load, and the progress.
pub fn header(model: &Model, width: usize, look: TerminalStyle) -> Lines {
    let state = match model.steering {
        _ if model.is_draining() => ("draining", Color::Cyan),
        steering if steering.ended => ("ending", Color::Cyan),
        steering if steering.paused => ("paused", Color::Yellow),
        _ => ("running", Color::Green),
    };
    let room = width.saturating_sub(state.0.len() + 4);
    let url = shortened(&model.url, room.saturating_sub("parallax  ".len()), look);
    let left = format!(" parallax  {url}");
    let gap = width.saturating_sub(left.chars().count() + state.0.len() + 1);
    vec![
        Line::from(vec![
            look.title(left),
            Span::raw(" ".repeat(gap.max(1))),
            look.paint(state.0, state.1).patch_style(ratatui::style::Modifier::BOLD),
        ]),
        Line::from(shortened(&format!(" {}", load(model, look)), width, look)),
        progress(model, width, look),
    ]
}

fn load(model: &Model, look: TerminalStyle) -> String {
    let load = &model.load;
    let over = format!("{} connections, {} workers", count(load.connections), load.workers);
    let over = over.replace("1 workers", "1 worker");
    let factor = model.steering.tempo.factor();
    let bent = (factor - 1.0).abs() > 1e-9;
    let times = if bent { format!(" {} {factor:.2}", look.cross()) } else { String::new() };
    match (load.model, load.rate_per_s) {
        (LoadModel::Open, Some(planned)) => {
            let bent = if bent { format!(" ({}{times})", rate(planned)) } else { String::new() };
            format!("open loop {}{bent} over {over}", rate(model.asked_per_s().unwrap_or(planned)))
        }
        (LoadModel::Open, None) => {
            let words = load.arrivals.as_ref().map(|arrivals| record::escape_text(&arrivals.words));
            format!("open loop {}{times} over {over}", words.unwrap_or_default())
        }
        (LoadModel::Closed, _) => format!("closed loop, {} virtual users over {over}", count(load.callers)),
    }
}

fn progress(model: &Model, width: usize, look: TerminalStyle) -> Line<'static> {
    let by_time = model.window.filter(|window| window.0 > 0);
    let requests = model.load.request_limit;
    let time = by_time.and_then(|window| share(model.now.0, window.0));
    let count_share = requests.and_then(|limit| share(model.totals.scheduled, limit));
    let furthest = time.into_iter().chain(count_share).reduce(f64::max);
    let now = seconds(model.now);
    let text = if model.is_draining() {
        let under_way = model.latest().outstanding;
        format!("{now}, waiting for the last responses ({} outstanding)", count(under_way))
    } else {
        match (by_time, requests) {
            (Some(window), None) => {
                // Rounded up, so that a partial second still counts.
                let left = window.saturating_sub(model.now).saturating_add(Nanos::from_millis(999));
                format!("{now} of {}, {} left", seconds(window), seconds(left))
            }
            (_, Some(limit)) => {
                let left = limit.saturating_sub(model.totals.scheduled);
                let by = by_time.map(|window| format!(" or {}", seconds(window))).unwrap_or_default();
                format!("{now}, {} of {} requests left{by}", count(left), count(limit))
            }
            (None, None) => format!("{now}, no end set"),
        }
    };
    widgets::progress(&text, furthest, width, look)
}

/// Rates of the last seconds, and sums.
pub fn rates(model: &Model, width: usize, look: TerminalStyle) -> Lines {
    type Of = fn(&IntervalRates) -> f64;
    let mut rows: Vec<(&str, Of, u64)> = vec![
        ("due", |beat| beat.due_per_s, model.totals.scheduled),
        ("sent", |beat| beat.sent_per_s, model.totals.sent),
        ("ok", |beat| beat.ok_per_s, model.totals.ok),
    ];
    if let Some(journeys) = model.totals.journeys {
        rows.push(("journeys", |beat| beat.journeys_per_s, journeys));
    }
    if model.totals.failed > 0 {
        rows.push(("failed", |beat| beat.failed_per_s, model.totals.failed));
    }
    let sums = rows.iter().map(|(_, _, sum)| count(*sum).len()).max().unwrap_or(1);
    let names = rows.iter().map(|(name, _, _)| name.len()).max().unwrap_or(0).max(6);
    let cells = width.saturating_sub(names + 1 + 1 + 10 + 2 + 2 + sums + 1).min(120);
    // One scale for all rows, so that they can be compared by eye.
    let shown = || model.beats.iter().rev().take(cells).rev();
    let top = shown().map(|beat| beat.due_per_s.max(beat.ok_per_s)).fold(0.0, f64::max);
    // Some space above: a steady rate is a line, not a solid block.
    let top = top * 1.1;
    let latest = model.latest();
    let mut lines: Lines = rows
        .into_iter()
        .map(|(name, of, sum)| {
            let now = if model.beats.is_empty() { "".to_owned() } else { rate(of(&latest)) };
            let spark = look.sparkline(shown().map(of), top);
            let spark = format!("{spark:<cells$}");
            let spark = if name == "failed" { look.bad(spark) } else { look.paint(spark, Color::Cyan) };
            let sum = format!("  {:>sums$}", count(sum));
            Line::from(vec![
                look.title(format!(" {name:<names$}")),
                Span::raw(format!(" {now:>10}  ")),
                spark,
                look.faint(sum),
            ])
        })
        .collect();
    lines.push(under_way(model, width, look));
    lines
}

fn under_way(model: &Model, width: usize, look: TerminalStyle) -> Line<'static> {
    let (outstanding, slots) = (model.latest().outstanding, model.load.slots());
    let queueing = outstanding.saturating_sub(slots);
    // Workers report only their sum: even if it fits the connections, one worker may queue while another has room.
    let queue = if queueing > 0 {
        format!(", at least {} of them wait for a connection", count(queueing))
    } else {
        format!(", connections carry {}", count(slots))
    };
    let text = shortened(&format!(" {}{queue}", count(outstanding)), width.saturating_sub(12), look);
    let text = if queueing > 0 { look.paint(text, Color::Yellow) } else { Span::raw(text) };
    Line::from(vec![look.title(" outstanding"), text])
}

const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The response time, recently and over the whole run.
pub fn response(model: &Model, width: usize, look: TerminalStyle) -> Lines {
    let names = QUANTILES.map(|(name, _)| name).into_iter().chain(["max"]);
    let shown = if width < 66 { 3 } else { QUANTILES.len() };
    let is_shown = |index: &usize| *index < shown || *index == QUANTILES.len();
    let cells = |cells: Vec<String>| -> String {
        let cells = cells.into_iter().enumerate().filter(|(index, _)| is_shown(index));
        cells.map(|(_, cell)| format!("{cell:>11}")).collect()
    };
    let row = |head: &str, of: &super::tally::Response| {
        let values = QUANTILES.map(|(_, q)| of.quantile(q)).into_iter().chain([of.max()]);
        let head = Span::raw(format!("   {head:<9}"));
        Line::from(vec![head, Span::raw(cells(values.map(|value| shown_text(value, look)).collect()))])
    };
    let titles = cells(names.map(str::to_owned).collect());
    vec![
        Line::from(vec![look.title(format!(" {:<11}", "response")), look.faint(titles)]),
        row(&format!("last {RECENT} s"), &model.recent.sum),
        row("whole run", &model.whole),
    ]
}

/// Where the time of the last seconds went: one stacked bar, and its largest parts in order of time.
pub fn phases(model: &Model, width: usize, rows: usize, look: TerminalStyle) -> Lines {
    let title =
        vec![look.title(" phases"), look.faint(format!("  of the ok requests of the last {RECENT} s"))];
    let sums = Phase::ALL.into_iter().zip(model.phases.iter().map(|phase| phase.sum_ns));
    let largest = largest_shares(sums, rows.saturating_sub(2));
    if largest.is_empty() {
        return vec![Line::from(title)];
    }
    let parts: Vec<(f64, Color)> = largest.iter().map(|&(phase, share)| (share, colour_of(phase))).collect();
    let mut lines = vec![Line::from(title), stacked(&parts, width.saturating_sub(2).min(100), look)];
    for (index, &(phase, share)) in largest.iter().enumerate() {
        let tally = &model.phases[phase as usize].tally;
        let quantile = |q| shown_text(tally.quantile(q), look);
        let max = tally.max().map(|max| max.to_string()).unwrap_or_default();
        let mut text = format!(
            " {:<12} {:>8}  p50 {:<8} p99 {:<8} max {max}",
            phase.name(),
            percent(share),
            quantile(0.5),
            quantile(0.99),
        );
        if width >= 84 {
            text.push_str(&format!(
                "{:>pad$}{}",
                "",
                phase.belongs_to(),
                pad = 10usize.saturating_sub(max.len())
            ));
        }
        let sign = look.paint(look.part(index), colour_of(phase));
        lines.push(Line::from(vec![Span::raw("   "), sign, Span::raw(text)]));
    }
    lines
}

/// By the owner of the phase.
fn colour_of(phase: Phase) -> Color {
    match phase {
        Phase::ScheduleLag | Phase::ClientLag => Color::Yellow,
        Phase::PoolWait => Color::Magenta,
        Phase::Resolve | Phase::Connect | Phase::Tls | Phase::Auth => Color::Blue,
        Phase::Send => Color::Green,
        Phase::Wait | Phase::Receive => Color::Cyan,
    }
}

/// How requests ended, and who is to blame.
pub fn outcomes(model: &Model, width: usize, rows: usize, look: TerminalStyle) -> Lines {
    let totals = &model.totals;
    let of_all = |count: u64| percent(share(count, totals.ok + totals.failed).unwrap_or(0.0));
    let ok = format!(" {} ok", of_all(totals.ok));
    if totals.failed == 0 {
        let text = if totals.ok == 0 { "none yet".to_owned() } else { format!("{ok}, none failed") };
        return vec![Line::from(vec![look.title(" outcomes"), Span::raw(text)])];
    }
    let failed = look.bad(format!("{} failed", of_all(totals.failed)));
    let mut lines = vec![Line::from(vec![look.title(" outcomes"), Span::raw(format!("{ok}, ")), failed])];
    let room = rows.saturating_sub(1);
    let shown = if model.failures.len() > room { room.saturating_sub(1) } else { room };
    for (failure, number) in model.failures.iter().take(shown) {
        let text = format!(
            "   {:>9} {:<22} blame {:<9} in {}",
            count(*number),
            failure.outcome.name(),
            failure.blame.name(),
            failure.phase.name()
        );
        lines.push(Line::from(shortened(&text, width, look)));
    }
    if let Some(rest) = model.failures.get(shown..).filter(|rest| !rest.is_empty() && room > 0) {
        let sum: u64 = rest.iter().map(|(_, count)| count).sum();
        lines.push(Line::from(look.faint(format!("   {:>9} in {} other ways", count(sum), rest.len()))));
    }
    lines
}

/// The audit's lights, in as many lines as the width requires.
pub fn audit(model: &Model, width: usize, look: TerminalStyle) -> Lines {
    let mut lines: Lines = Vec::new();
    let mut spans = vec![look.title(" audit ")];
    let mut used = 7;
    for CheckStatus { light, name, figure } in lights(model) {
        let sign = look.light(light);
        let text = format!(" {name} {figure}");
        let length = sign.width() + text.chars().count() + 2;
        if used + length > width && used > 7 {
            lines.push(Line::from(std::mem::replace(&mut spans, vec![Span::raw("       ")])));
            used = 7;
        }
        used += length;
        spans.extend([Span::raw(" "), sign, Span::raw(text), Span::raw(" ")]);
    }
    lines.push(Line::from(spans));
    lines
}
