//! The report of a watched server: how fast it answered, where the time went, who was in the way.

use std::collections::BTreeMap;
use std::io::{self, Write};

use record::document::Distribution;
use record::observation::Observation;
use record::observation::watch::{
    self, Digest, Inexact, Losses, PREEMPTED, PartsNs, RESPONSE, UNDISTURBED, WatchResults,
};
use record::{Durations, Part};
use units::Nanos;

use crate::style::{Style, aligned, wrap};
use crate::table::value_cell;
use units::{count, percent, plural, rate};

pub(crate) mod powers;

/// What a report is made of: the document, and the histograms of the whole watch by their names.
#[derive(Clone, Copy)]
pub struct WatchReport<'a> {
    pub document: &'a Observation,
    pub results: &'a WatchResults,
    pub logs: &'a BTreeMap<String, Durations>,
}

/// Writes the report.
///
/// # Errors
///
/// Those of `out`.
pub fn watch_text(report: &WatchReport<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let WatchReport { document, results, .. } = *report;
    head(document, results, out, style)?;
    if results.requests == 0 {
        return Ok(());
    }
    writeln!(out)?;
    times(results, out, style)?;
    writeln!(out)?;
    parts(results, out, style)?;
    writeln!(out)?;
    preemptors(results, out, style)?;
    digests(results, out, style)?;
    distributions(report, out, style)
}

/// What watching cost the server, by the kernel's own account.
///
/// # Errors
///
/// Those of `out`.
pub fn watch_cost(
    results: &WatchResults,
    elapsed: Nanos,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.strong("what watching cost"))?;
    let total: u64 = results.self_cost.iter().map(|program| program.ns).sum();
    if let Some(each) = total.checked_div(results.requests) {
        let each = Nanos(each);
        writeln!(out, "  {each} of kernel time a request, measured by the kernel")?;
    }
    for program in &results.self_cost {
        let each = program.ns / program.runs.max(1);
        writeln!(
            out,
            "  {:<14} {:>14} runs {:>8} each",
            program.name,
            count(program.runs),
            Nanos(each).to_string()
        )?;
    }
    match results.self_cpu_ns {
        Some(cpu) => {
            let share = cpu as f64 / elapsed.0.max(1) as f64;
            writeln!(out, "  this process: {} of CPU, {} of one", Nanos(cpu), percent(share))
        }
        None => writeln!(out, "  this process: its CPU time could not be read"),
    }
}

fn head(document: &Observation, results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let subject = &results.subject;
    let name =
        subject.comm.as_deref().map_or(String::new(), |comm| format!("{} ", record::escape_text(comm)));
    let elapsed = Nanos(document.time.elapsed_ns.unwrap_or(0));
    let per_s = results.requests as f64 * 1e9 / elapsed.0.max(1) as f64;
    let told = format!("{name}({})", record::escape_text(&subject.named));
    let protocols: Vec<&str> = subject.protocols.iter().map(|count| count.protocol.name()).collect();
    writeln!(
        out,
        "{}: {} in {elapsed}, {} on {}{}{}",
        style.strong(told),
        style.strong(plural(results.requests, "request")),
        rate(per_s),
        plural(results.connections, "connection"),
        if protocols.is_empty() { "" } else { ", " },
        protocols.join(" and "),
    )?;
    for line in losses(&results.losses) {
        writeln!(out, "{}", style.bad(wrap("  lost: ", &line, style.width)))?;
    }
    for line in inexact(&results.inexact) {
        writeln!(out, "{}", wrap("  inexact: ", &line, style.width))?;
    }
    for missing in &document.missing {
        let line = format!("{}: {}", missing.what, missing.why);
        writeln!(out, "{}", wrap("  not seen: ", &record::escape_text(&line), style.width))?;
    }
    if results.requests == 0 {
        let ports: Vec<String> = subject.ports.iter().map(u16::to_string).collect();
        let where_to = match ports.as_slice() {
            [] => "it listens on no TCP port; of Unix sockets a request is seen when it is read".to_owned(),
            ports => format!("looked at port {}", ports.join(", ")),
        };
        writeln!(out, "{}", wrap("  no request: ", &where_to, style.width))?;
    }
    Ok(())
}

/// Each loss in words; none for one that did not happen.
fn losses(losses: &Losses) -> Vec<String> {
    told(&[
        (
            losses.ring_full,
            "the way to user space was full: a larger --ring takes more; counts are too small by it",
        ),
        (losses.map_full, "the kernel's side had no memory left for them"),
        (losses.recursion, "runs that the kernel skipped"),
        (losses.mid_connection, "pieces of requests that were under way when watching began"),
        (losses.unparsed, "places whose bytes were not understood; they are timed as turns"),
    ])
}

/// Likewise, of what cannot be told exactly.
fn inexact(inexact: &Inexact) -> Vec<String> {
    told(&[
        (
            inexact.forgotten_slices,
            "waits for a CPU in which more others ran than are remembered: the table of those has only the latest",
        ),
        (
            inexact.joined_arrivals,
            "lots of bytes took the stamp of later ones: the socket queue of their requests is too short",
        ),
        (
            inexact.missed_switches,
            "switches and wake-ups were not told: the time is the scheduler's, and who ran meanwhile is not known",
        ),
    ])
}

fn told(lines: &[(u64, &str)]) -> Vec<String> {
    let happened = lines.iter().filter(|(n, _)| *n > 0);
    happened.map(|(n, what)| format!("{} – {what}", count(*n))).collect()
}

const NAME: usize = 18;
const VALUE: usize = 11;
const QUANTILES: [f64; 4] = [0.5, 0.95, 0.99, 0.999];

fn times(results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let names = ["mean", "p50", "p95", "p99", "p99.9", "max"];
    let head: String = names.iter().map(|name| format!("{:>VALUE$}", format!("{name}  "))).collect();
    writeln!(out, "  {}", style.faint(format!("{:<NAME$}{:>12}{head}", "", "requests")))?;
    let mut row = |name: &str, distribution: &Option<Distribution>| match distribution {
        Some(distribution) => writeln!(out, "  {name:<NAME$}{}", numbers(distribution, style)),
        None => Ok(()),
    };
    row("at the server", &results.response)?;
    row("not pre-empted", &results.undisturbed_response)?;
    row("pre-empted", &results.preempted_response)?;
    for class in &results.classes {
        row(&format!("class {}", record::escape_text(&class.class)), &class.response)?;
    }
    row("socket queue", &results.socket_queue)?;
    if results.socket_queue.is_some() {
        let note = "socket queue: arrived and not yet read; it comes before the time at the server";
        writeln!(out, "  {}", style.faint(note))?;
    }
    Ok(())
}

fn numbers(distribution: &Distribution, style: Style) -> String {
    let cell = |ns: Option<u64>| ns.map_or_else(|| style.absent().to_owned(), |ns| aligned(Nanos(ns)));
    let mut cells = vec![cell(distribution.mean_ns)];
    cells.extend(QUANTILES.map(|q| value_cell(distribution, q, style)));
    cells.push(cell(distribution.max_ns));
    let cells: String = cells.iter().map(|cell| format!("{cell:>VALUE$}")).collect();
    format!("{:>12}{cells}", count(distribution.count))
}

/// A part as people say it.
pub fn part_words(part: Part) -> &'static str {
    match part {
        Part::OnCpu => "on CPU",
        Part::Stolen => "stolen or irq",
        Part::RunQueue => "run queue",
        Part::Yielded => "yielded",
        Part::Throttled => "throttled",
        Part::Disk => "blocked: disk",
        Part::Lock => "blocked: lock",
        Part::Network => "blocked: network",
        Part::Other => "blocked: other",
        Part::LoopWait => "loop wait",
    }
}

fn parts(results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.strong("where the time at the server went"))?;
    let total = results.parts_ns.total().max(1) as f64;
    let sums: [Nanos; Part::COUNT] = results.parts_ns.into();
    for (part, sum) in Part::ALL.into_iter().zip(sums) {
        if sum == Nanos::ZERO {
            continue;
        }
        let share = sum.0 as f64 / total;
        let mean = Nanos(sum.0 / results.requests.max(1));
        let bar = style.bar(share, 30);
        writeln!(
            out,
            "  {:<NAME$}{bar} {:>8} {:>12} a request",
            part_words(part),
            percent(share),
            aligned(mean).trim_end()
        )?;
    }
    Ok(())
}

fn distributions(report: &WatchReport<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let all =
        report.logs.get(RESPONSE).into_iter().map(|log| ("time at the server, all requests".to_owned(), log));
    let classes = report.results.classes.iter().filter_map(|class| {
        let log = report.logs.get(&watch::class_log(&class.class))?;
        Some((format!("time at the server, class {}", record::escape_text(&class.class)), log))
    });
    let split = [(UNDISTURBED, "not pre-empted"), (PREEMPTED, "pre-empted")];
    let preempted = report.results.preempted > 0;
    let split = split
        .into_iter()
        .filter(|_| preempted)
        .filter_map(|(name, words)| Some((format!("time at the server, {words}"), report.logs.get(name)?)));
    for (title, log) in all.chain(classes).chain(split) {
        if !log.is_empty() {
            writeln!(out, "\n{}", style.strong(title))?;
            powers::draw(log, out, style)?;
        }
    }
    Ok(())
}

/// Rows of the table of pre-emptors; the rest is one row.
const PREEMPTORS: usize = 12;

fn preemptors(results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    if results.preemptors.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", style.strong("who ran while the server's threads waited for a CPU"))?;
    writeln!(
        out,
        "  {}",
        style.faint(format!(
            "{:>12} {:>10}  {:<16} {:>9}  {}",
            "time taken", "times", "name", "pid", "control group"
        ))
    )?;
    let (shown, rest) = results.preemptors.split_at(results.preemptors.len().min(PREEMPTORS));
    for one in shown {
        let cgroup = one.cgroup.as_deref().map_or(style.absent().to_owned(), record::escape_text);
        writeln!(
            out,
            "  {:>12} {:>10}  {:<16} {:>9}  {cgroup}",
            aligned(Nanos(one.time_ns)),
            count(one.count),
            record::escape_text(&one.comm),
            one.pid,
        )?;
    }
    if !rest.is_empty() {
        let (time, times) =
            rest.iter().fold((0, 0), |(time, times), one| (time + one.time_ns, times + one.count));
        writeln!(out, "  {:>12} {:>10}  {} others", aligned(Nanos(time)), count(times), rest.len())?;
    }
    writeln!(out)
}

const DIGESTS: usize = 15;

fn digests(results: &WatchResults, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let mut rows: Vec<&Digest> = results.digests.iter().filter(|digest| digest.count > 0).collect();
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|digest| std::cmp::Reverse(digest.sum_ns));
    let total: u64 = rows.iter().map(|digest| digest.sum_ns).sum();
    writeln!(out, "{}", style.strong("requests by their share of the time"))?;
    let head = format!(
        "{:>8} {:>10} {:>10}  {:>6} {:>6} {:>6} {:>6}  ",
        "share", "count", "mean", "CPU", "queue", "block", "loop"
    );
    writeln!(out, "  {}", style.faint(format!("{head}statement or route")))?;
    for digest in rows.iter().take(DIGESTS) {
        let share = digest.sum_ns as f64 / total.max(1) as f64;
        let [cpu, queue, blocked, waited] = groups(&digest.parts_ns)
            .map(|part| format!("{:.0} %", part as f64 * 100.0 / digest.sum_ns.max(1) as f64));
        let mean = aligned(Nanos(digest.sum_ns / digest.count.max(1)));
        let line = format!(
            "{:>8} {:>10} {mean:>10}  {cpu:>6} {queue:>6} {blocked:>6} {waited:>6}  ",
            percent(share),
            count(digest.count),
        );
        let room = style.width.saturating_sub(line.chars().count() + 2).max(20);
        let text: String = record::escape_text(&digest.text).chars().take(room).collect();
        writeln!(out, "  {line}{text}")?;
    }
    if rows.len() > DIGESTS {
        writeln!(out, "  {}", style.faint(format!("and {} more: run.json has them", rows.len() - DIGESTS)))?;
    }
    Ok(())
}

/// On CPU; waiting for one; blocked; waiting for the loop.
fn groups(parts: &PartsNs) -> [u64; 4] {
    [
        parts.on_cpu + parts.stolen,
        parts.run_queue + parts.yielded + parts.throttled,
        parts.disk + parts.lock + parts.network + parts.other,
        parts.loop_wait,
    ]
}

/// One line of a live view: what happened in an interval.
pub fn watch_line(line: &watch::WatchLine, length: Nanos) -> String {
    let per_s = line.requests as f64 * 1e9 / length.0.max(1) as f64;
    let times = match line.response_ns {
        Some(times) => format!(
            "p50 {:>9}  p95 {:>9}  p99 {:>9}",
            Nanos(times.p50).to_string(),
            Nanos(times.p95).to_string(),
            Nanos(times.p99).to_string()
        ),
        None => "no request".to_owned(),
    };
    let preempted = match line.requests {
        0 => String::new(),
        requests => format!("  pre-empted {}", percent(line.preempted as f64 / requests as f64)),
    };
    let lost = match line.losses.ring_full + line.losses.map_full {
        0 => String::new(),
        lost => format!("  LOST {}", count(lost)),
    };
    format!("throughput {:>10}  {times}{preempted}{lost}", rate(per_s))
}

#[cfg(test)]
mod tests;
