//! An explanation as people read it: the culprit first, then the figures, then what is not known.

use std::io::{self, Write};

use report::Style;
use units::Nanos;
use units::{count, percent};

use crate::explanation::{Explanation, Slow};
use crate::place::Segment;
use crate::runtime::Runtime;

const NAME: usize = 20;
const VALUE: usize = 10;

/// Cells of a waterfall.
const CELLS: usize = 48;

/// A segment with less of the time in every column stands with the rest.
const WORTH_A_ROW: f64 = 0.001;

/// A segment of a waterfall with less of it is left out.
const SHOWN: f64 = 0.005;

/// # Errors
///
/// Those of `out`.
pub fn text(explanation: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let blame = &explanation.blame;
    let head = format!("blame: {}", blame.place.name());
    let sentence = report::wrap("        ", &blame.sentence, style.width);
    writeln!(out, "{}\n{sentence}", style.strong(head))?;
    let others = explanation.sentences.iter().filter(|sentence| sentence.text != blame.sentence);
    for sentence in others {
        writeln!(out, "{}", report::wrap("  also  ", &sentence.text, style.width))?;
    }
    writeln!(out)?;
    table(explanation, out, style)?;
    if !explanation.slowest.is_empty() {
        writeln!(out, "\n{}", style.strong("The slowest requests"))?;
        let first = &explanation.slowest[0].digest;
        let differ = explanation.slowest.iter().any(|slow| slow.digest != *first);
        for slow in &explanation.slowest {
            waterfall(slow, out, style)?;
            if let Some(digest) = slow.digest.as_ref().filter(|_| differ) {
                let digest: String = digest.chars().take(100).collect();
                writeln!(out, "    {}", style.faint(format!("at the server: {digest}")))?;
            }
        }
    }
    writeln!(out)?;
    joined(explanation, out, style)?;
    surroundings(explanation, out, style)?;
    for note in &explanation.notes {
        writeln!(out, "{}", style.faint(report::wrap("  note  ", note, style.width)))?;
    }
    Ok(())
}

/// The mean of each band, segment by segment.
fn table(explanation: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let bands = &explanation.bands;
    let heads: String = bands.iter().map(|band| format!("{:>VALUE$}", band.name)).collect();
    writeln!(out, "{}", style.faint(format!("  {:NAME$}{heads}", "mean of a request")))?;
    let response = bands.iter().map(|band| cell(Nanos(band.sum_ns.checked_div(band.rows).unwrap_or(0))));
    writeln!(out, "  {}{}", style.strong(format!("{:NAME$}", "response")), response.collect::<String>())?;
    let mut rest = vec![0; bands.len()];
    let mut row = |name: &str, means: Vec<Nanos>, meaning: &str| {
        let cells: String = means.into_iter().map(cell).collect();
        let meaning = if style.width >= 100 { format!("  {meaning}") } else { String::new() };
        writeln!(out, "  {name:NAME$}{cells}{}", style.faint(meaning))
    };
    for segment in Segment::ALL {
        if bands.iter().all(|band| (band.sums.get(segment) as f64) < band.sum_ns as f64 * WORTH_A_ROW) {
            rest.iter_mut().zip(bands).for_each(|(rest, band)| *rest += band.mean(segment).0);
        } else {
            let means = bands.iter().map(|band| band.mean(segment)).collect();
            row(segment.name(), means, segment.meaning())?;
        }
    }
    if rest.iter().any(|&rest| rest > 0) {
        row("rest", rest.into_iter().map(Nanos).collect(), "less than 0.1 % each")?;
    }
    for band in bands {
        let found = if band.joined > 0 {
            format!(", {} found at the server", count(band.joined))
        } else {
            String::new()
        };
        let (from, to) = (Nanos(band.from_ns), Nanos(band.to_ns));
        let range = if band.to_ns > 0 { format!(", {from} to {to}") } else { String::new() };
        let line = format!("  {:<8}{}: {} requests{range}{found}", band.name, band.means, count(band.rows));
        writeln!(out, "{}", style.faint(line))?;
    }
    Ok(())
}

fn cell(value: Nanos) -> String {
    format!("{:>VALUE$}", if value == Nanos::ZERO { "-".to_owned() } else { value.to_string() })
}

fn waterfall(slow: &Slow, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let total = slow.response_ns.max(1);
    let at = Nanos(slow.intended_ns);
    let mut head = format!("  request {} {} due at {at}: {}", slow.n, slow.target, Nanos(slow.response_ns));
    if slow.outcome != "ok" {
        head.push_str(&format!(", {}", slow.outcome));
    }
    if !slow.joined {
        head.push_str(", not found at a server");
    }
    writeln!(out, "{head}")?;
    // Told once, where it waited for a CPU longest.
    let contended =
        [Segment::RunQueue, Segment::QueueRunQueue].into_iter().max_by_key(|&one| slow.ledger.get(one));
    let contended = contended.unwrap_or(Segment::RunQueue);
    let (full, empty) = if style.unicode { ("█", "·") } else { ("#", ".") };
    let mut before = 0u64;
    for segment in Segment::ALL {
        let ns = slow.ledger.get(segment);
        let from = before;
        before += ns;
        if (ns as f64) < total as f64 * SHOWN {
            continue;
        }
        let place = |ns: u64| (u128::from(ns) * CELLS as u128 / u128::from(total)) as usize;
        let begin = place(from).min(CELLS - 1);
        let length = place(before).saturating_sub(begin).max(1);
        let bar =
            [empty.repeat(begin), full.repeat(length), empty.repeat(CELLS.saturating_sub(begin + length))]
                .concat();
        let who = slow.culprit.as_ref().filter(|_| segment == contended);
        let who = who.map_or_else(String::new, |culprit| format!("  {culprit}"));
        writeln!(out, "    {:NAME$}{bar} {}{who}", segment.name(), Nanos(ns))?;
    }
    Ok(())
}

fn joined(explanation: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let join = &explanation.join;
    if join.rows == 0 || explanation.servers.is_empty() {
        return Ok(());
    }
    let share = percent((join.by_ends + join.by_time) as f64 / join.rows as f64);
    let parts = [
        (join.by_ends, "by their connection"),
        (join.by_time, "by time alone"),
        (join.unanswered, "not answered"),
        (join.no_connection, "without a TCP connection that is known"),
        (join.connection_not_seen, "on connections that no observer saw"),
        (join.request_not_seen, "not seen on their connection"),
    ];
    let parts = parts.iter().filter(|(rows, _)| *rows > 0);
    let parts: Vec<_> = parts.map(|(rows, what)| format!("{} {what}", count(*rows))).collect();
    let mut text =
        format!("{share} of {} requests were found at the server: {}.", count(join.rows), parts.join(", "));
    if join.others_at_servers > 0 {
        text.push_str(&format!(" {} requests at the server are of others.", count(join.others_at_servers)));
    }
    writeln!(out, "{}", report::wrap("  join  ", &text, style.width))
}

fn surroundings(explanation: &Explanation, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let around = &explanation.surroundings;
    let mut said = Vec::new();
    if around.stalls > 0 {
        let longest = Nanos(around.longest_stall_ns);
        said.push(format!("the host stalled {} times, for up to {longest}", count(around.stalls)));
    }
    for planted in &around.planted {
        let length = Nanos(planted.in_effect_ns);
        let times =
            if planted.times == 1 { String::new() } else { format!(" in {} times", count(planted.times)) };
        said.push(format!("planted, for {length} of the run{times}: {} ({})", planted.what, planted.means));
    }
    said.extend(around.runtimes.iter().map(Runtime::said));
    let busy =
        around.busiest.iter().map(|busy| format!("{} (pid {}) {}", busy.name, busy.pid, Nanos(busy.cpu_ns)));
    let busy: Vec<_> = busy.collect();
    if !busy.is_empty() {
        said.push(format!("most CPU time: {}", busy.join(", ")));
    }
    if said.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", report::wrap("  host  ", &format!("{}.", said.join("; ")), style.width))
}
