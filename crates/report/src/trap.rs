//! The pool trap: what a timer around a pooled client says, beside what the request took.

use std::io::{self, Write};

use record::document::{Distribution, Document, Load, QuantileValue, Results};
use record::{Phase, escaped};
use units::Nanos;

use crate::style::{Style, aligned, wrap};
use crate::text::{Report, advice_lines, record_line, verdict};
use findings::{phase, typical, value_of};
use units::plural;

/// Three numbers for one request. Each is a median where the sample carries one, and a mean otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trap {
    /// What an interceptor around the pooled client says: from taken up to read.
    ///
    /// This is the response, which begins at the intended moment. In a closed loop the two moments are the
    /// same but for `schedule_lag`; [`Trap::lag`] tells by how much this number is too large at most.
    pub interceptor: Nanos,
    /// What the request itself took, from its first byte sent to the last byte of its answer.
    pub service: Nanos,
    /// How long it waited for a connection.
    pub pool_wait: Nanos,
    /// The mean time between intended and taken up, which no interceptor would see.
    pub lag: Nanos,
    /// All three are medians.
    pub is_median: bool,
}

/// The three numbers of a run, or `None` when no request ended ok.
pub fn trap(results: &Results) -> Option<Trap> {
    let of = |of: Phase| phase(results, of).and_then(|result| result.distribution.as_ref());
    let pool_wait = of(Phase::PoolWait);
    let has_median = |distribution: &Distribution| {
        matches!(value_of(distribution, 0.5), Some(QuantileValue::Known { .. }))
    };
    Some(Trap {
        interceptor: typical(&results.response)?,
        service: typical(&results.service)?,
        pool_wait: pool_wait.and_then(typical).unwrap_or_default(),
        lag: of(Phase::ScheduleLag).and_then(|lag| lag.mean_ns).map(Nanos).unwrap_or_default(),
        is_median: [Some(&results.response), Some(&results.service), pool_wait]
            .into_iter()
            .flatten()
            .all(has_median),
    })
}

/// Columns of the drawn request.
const DRAWN: usize = 48;

/// Writes the demonstration of the trap: the three numbers, one request drawn, what to do, where the record is.
///
/// # Errors
///
/// Those of `out`.
pub fn demo_text(report: &Report<'_>, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let document = &escaped(report.document.clone());
    let Document { results, load, .. } = document;
    verdict(document, out, style)?;
    writeln!(out)?;
    let Some((results, trap)) = results.as_ref().and_then(|results| Some((results, trap(results)?))) else {
        writeln!(out, "  No request ended ok, so there is nothing to show.")?;
        return record_line(report.folder, out, style);
    };
    let callers = plural(load.callers, "caller");
    writeln!(
        out,
        "  {callers} share {} to {}",
        plural(load.connections, "connection"),
        document.subject.url
    )?;
    writeln!(out)?;
    numbers(&trap, results, load, out, style)?;
    writeln!(out)?;
    timeline(&trap, out, style)?;
    advice_lines(results, load, report.seconds, out, style)?;
    writeln!(out)?;
    record_line(report.folder, out, style)
}

fn numbers(trap: &Trap, results: &Results, load: &Load, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let wait = format!("waiting for one of {}", plural(load.connections, "connection"));
    for (value, said) in [
        (trap.interceptor, "said by the interceptor: a timer around the pooled client"),
        (trap.service, "the request itself: first byte sent to last byte arrived"),
        (trap.pool_wait, wait.as_str()),
    ] {
        writeln!(out, "  {}  {said}", style.strong(format!("{:>9}", aligned(value))))?;
    }
    let basis = if trap.is_median { "medians" } else { "medians where the sample carries them, else means" };
    let text = format!(
        "{basis} of {}; the timer starts when a request is taken up, {} after it was due",
        plural(results.totals.ok, "ok request"),
        trap.lag
    );
    writeln!(out, "{}", style.faint(wrap(&" ".repeat(13), &text, style.width)))
}

/// One request from left to right: the wait for the pool, then the request.
fn timeline(trap: &Trap, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let total = trap.pool_wait.saturating_add(trap.service);
    let share = if total == Nanos::ZERO { 0.0 } else { trap.pool_wait.0 as f64 / total.0 as f64 };
    let waiting = (share * DRAWN as f64).round() as usize;
    let (light, full) = if style.unicode { ("▒", "█") } else { (".", "#") };
    let bar = format!("{}{}", style.faint(light.repeat(waiting)), full.repeat(DRAWN - waiting));
    let over = if waiting > 9 { "pool wait" } else { "" };
    writeln!(out, "  {:>11} {over:<waiting$}request", "")?;
    writeln!(out, "  {:>11} {bar}", "one request")?;
    let ends = format!("{:<waiting$}", "0");
    let middle = if waiting > 9 { trap.pool_wait.to_string() } else { String::new() };
    let rest = DRAWN.saturating_sub(ends.chars().count() + middle.len());
    writeln!(out, "  {:>11} {}", "", style.faint(format!("{ends}{middle}{:>rest$}", total.to_string())))
}
