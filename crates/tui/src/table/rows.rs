//! The parts of the live table as lines of text, each for a width and a number of rows. Pure.

use findings::{largest_shares, mean, part_words, share};
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use record::Part;
use record::document::QuantileValue;
use units::Nanos;
use units::{count, percent, plural, rate};

use super::{LiveTable, RequestSample, TableSnapshot};
use crate::TerminalStyle;
use crate::widgets::{self, Lines, seconds, shortened, shown_text, stacked};

pub const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// The watched server, its protocol, and the progress.
pub fn header(table: &LiveTable, width: usize, look: TerminalStyle) -> Lines {
    let state = "watching";
    let who = shortened(&table.who, width.saturating_sub(state.len() + " parallax   ".len()), look);
    let left = format!(" parallax  {who}");
    let gap = width.saturating_sub(left.chars().count() + state.len() + 1).max(1);
    let title = Line::from(vec![
        look.title(left),
        Span::raw(" ".repeat(gap)),
        look.paint(state, Color::Green).patch_style(Modifier::BOLD),
    ]);
    vec![
        title,
        Line::from(shortened(&format!(" {}", subject(table)), width, look)),
        progress(table, width, look),
    ]
}

fn subject(table: &LiveTable) -> String {
    let ports: Vec<String> = table.ports.iter().map(u16::to_string).collect();
    let place = match ports.as_slice() {
        [] => "no TCP port".to_owned(),
        [port] => format!("port {port}"),
        ports => format!("ports {}", ports.join(", ")),
    };
    let Some(seen) = &table.seen else { return format!("{place}, no figures yet") };
    let protocols: Vec<&str> = seen.protocols.iter().map(|one| one.protocol.name()).collect();
    let spoken =
        if protocols.is_empty() { String::new() } else { format!("{} on ", protocols.join(" and ")) };
    let connections = plural(seen.connections, "connection");
    format!("{spoken}{place}, {connections}, {}", plural(seen.whole.requests, "request"))
}

fn progress(table: &LiveTable, width: usize, look: TerminalStyle) -> Line<'static> {
    let now = seconds(table.now);
    let Some(length) = table.length else {
        return widgets::progress(&format!("{now}, no end set"), None, width, look);
    };
    // Rounded up, so that a partial second still counts.
    let left = length.saturating_sub(table.now).saturating_add(Nanos::from_millis(999));
    let text = format!("{now} of {}, {} left", seconds(length), seconds(left));
    widgets::progress(&text, share(table.now.0, length.0), width, look)
}

/// Throughput of the last interval, with a sparkline of the earlier ones.
pub fn throughput(table: &LiveTable, width: usize, look: TerminalStyle) -> Line<'static> {
    let cells = width.saturating_sub(12 + 10 + 2).min(120);
    let shown = || table.per_s.iter().rev().take(cells).rev().copied();
    // Some space above: a steady rate is a line, not a solid block.
    let top = shown().fold(0.0, f64::max) * 1.1;
    let mut now = table.per_s.back().map_or_else(String::new, |&per_s| rate(per_s));
    let seen = table.seen.as_ref().and_then(|seen| Some((seen.seen?, seen.length)));
    if let Some((seen, length)) = seen.filter(|(seen, length)| seen < length) {
        let share = percent(seen.0 as f64 / length.0 as f64);
        now = format!("{now}, saw {share} of the time");
    }
    Line::from(vec![
        look.title(format!(" {:<11}", "throughput")),
        Span::raw(format!("{now:>10}  ")),
        look.paint(look.sparkline(shown(), top), Color::Cyan),
    ])
}

/// The time at the server, recently and over the whole watch.
pub fn response(seen: &TableSnapshot, width: usize, look: TerminalStyle) -> Lines {
    let cells = |cells: Vec<String>| -> String {
        let cell = cells.into_iter().map(|cell| format!("{cell:>11}"));
        // A figure that does not fit is left out whole: cut short it would be another figure.
        cell.take(width.saturating_sub(14) / 11).collect()
    };
    let names = QUANTILES.map(|(name, _)| name).into_iter().chain(["max", "preempted"]);
    let row = |head: String, glance: &RequestSample| {
        let mut values: Vec<String> = glance.quantiles.map(|value| shown_text(value, look)).to_vec();
        values.push(glance.max.map_or_else(|| absent(look), |max| max.to_string()));
        values.push(share(glance.preempted, glance.requests).map_or_else(|| absent(look), percent));
        Line::from(format!("   {head:<11}{}", cells(values)))
    };
    vec![
        Line::from(vec![
            look.title(format!(" {:<13}", "at the server")),
            look.faint(cells(names.map(str::to_owned).collect())),
        ]),
        row(lately(seen), &seen.lately),
        row("all".to_owned(), &seen.whole),
    ]
}

fn lately(seen: &TableSnapshot) -> String {
    format!("last {}", seen.length.to_string().replace(".00", ""))
}

fn absent(look: TerminalStyle) -> String {
    if look.unicode { "–".to_owned() } else { "-".to_owned() }
}

/// Where the time of the last interval went: one stacked bar, and its largest parts in order of time.
pub fn parts(seen: &TableSnapshot, width: usize, rows: usize, look: TerminalStyle) -> Lines {
    let title = Line::from(vec![
        look.title(" where the time went"),
        look.faint(shortened(&format!("  {}", lately(seen)), width.saturating_sub(20), look)),
    ]);
    let sums: [Nanos; Part::COUNT] = seen.lately.parts_ns.into();
    let each = Part::ALL.into_iter().zip(sums.map(|sum| u128::from(sum.0)));
    let largest = largest_shares(each, rows.saturating_sub(2));
    if largest.is_empty() {
        return vec![title];
    }
    let bar: Vec<(f64, Color)> = largest.iter().map(|&(part, share)| (share, colour_of(part))).collect();
    let mut lines = vec![title, stacked(&bar, width.saturating_sub(2).min(100), look)];
    for (index, &(part, share)) in largest.iter().enumerate() {
        let mean = mean(sums[part as usize].0, seen.lately.requests);
        let text = format!(" {:<17}{:>8}  {mean} per request", part_words(part), percent(share));
        let text = shortened(&text, width.saturating_sub(4), look);
        let sign = look.paint(look.part(index), colour_of(part));
        lines.push(Line::from(vec![Span::raw("   "), sign, Span::raw(text)]));
    }
    lines
}

/// By what can be done about it.
fn colour_of(part: Part) -> Color {
    match part {
        Part::OnCpu => Color::Cyan,
        Part::Stolen => Color::Magenta,
        Part::RunQueue | Part::Yielded | Part::Throttled => Color::Yellow,
        Part::Disk | Part::Lock | Part::Network | Part::Other => Color::Blue,
        Part::LoopWait => Color::Green,
    }
}

/// Statements or routes by their share of the time.
pub fn digests(seen: &TableSnapshot, width: usize, rows: usize, look: TerminalStyle) -> Lines {
    // There may be more digests than are listed here.
    let total = seen.whole.parts_ns.total();
    if seen.digests.is_empty() || rows < 2 {
        return Lines::new();
    }
    let head = format!("{:>9}{:>11}{:>11}{:>11}  statement or route", "share", "count", "mean", "p99");
    let mut lines = vec![Line::from(look.title(shortened(&head, width, look)))];
    for digest in seen.digests.iter().take(rows - 1) {
        let mean = mean(digest.sum_ns, digest.count).to_string();
        let share = share(digest.sum_ns, total).map_or_else(String::new, percent);
        let p99 = match digest.times.map(|times| times.p99) {
            Some(QuantileValue::Known { ns, .. }) => Nanos(ns).to_string(),
            _ => absent(look),
        };
        let text = record::escape_text(&digest.text);
        let line = format!("{share:>9}{:>11}{mean:>11}{p99:>11}  {text}", count(digest.count));
        lines.push(Line::from(shortened(&line, width, look)));
    }
    lines
}

/// Threads that ran while the server's threads waited for a CPU.
pub fn preemptors(seen: &TableSnapshot, width: usize, rows: usize, look: TerminalStyle) -> Lines {
    if seen.preemptors.is_empty() || rows < 2 {
        return Lines::new();
    }
    let head = format!("{:>9}{:>11}  ran while the server waited for a CPU", "time", "times");
    let mut lines = vec![Line::from(look.title(shortened(&head, width, look)))];
    for one in seen.preemptors.iter().take(rows - 1) {
        let time = Nanos(one.time_ns).to_string();
        let line =
            format!("{time:>9}{:>11}  {} ({})", count(one.count), record::escape_text(&one.comm), one.pid);
        lines.push(Line::from(shortened(&line, width, look)));
    }
    lines
}

/// What was lost, by cause; and what is inexact.
pub fn losses(seen: &TableSnapshot, width: usize, look: TerminalStyle) -> Line<'static> {
    let (lost, inexact) = (seen.losses, seen.inexact);
    let reported = |counts: &[(u64, &str)]| -> Vec<String> {
        let happened = counts.iter().filter(|(n, _)| *n > 0);
        happened.map(|(n, what)| format!("{} {what}", count(*n))).collect()
    };
    let mut words = reported(&[
        (lost.ring_full, "ring full"),
        (lost.map_full, "no memory"),
        (lost.recursion, "skipped"),
        (lost.mid_connection, "in progress at the start"),
        (lost.unparsed, "not understood"),
    ]);
    if words.is_empty() {
        words.push("nothing".to_owned());
    }
    let doubts = reported(&[
        (inexact.forgotten_slices, "slices"),
        (inexact.joined_arrivals, "arrivals"),
        (inexact.missed_switches, "switches"),
    ]);
    let doubts = if doubts.is_empty() { String::new() } else { format!("; inexact: {}", doubts.join(", ")) };
    let text = shortened(&format!(" {}{doubts}", words.join(", ")), width.saturating_sub(5), look);
    let is_bad = lost.ring_full + lost.map_full + lost.recursion > 0;
    Line::from(vec![look.title(" lost"), if is_bad { look.bad(text) } else { Span::raw(text) }])
}

/// The line that lists the keys.
pub fn keys(look: TerminalStyle) -> Line<'static> {
    let key = |key: &'static str, does: &'static str| {
        [Span::raw(" "), look.key(key), look.faint(format!(" {does} "))]
    };
    Line::from([key("q", "end"), key("Ctrl-C", "end")].concat())
}
