//! The verdict with its reasons, and the results of the conditions.

use std::io::{self, Write};

use findings::escape_text;
use findings::view::{Cell, Headline, NotMade, Outcome, Reason, Subject, Threshold, Value, Verdict, Word};
use units::plural;

use super::line::plain;
use super::table::cut;
use crate::style::{Style, wrap};

/// Verdict, rate, response time and errors in three lines, then the reasons: one line each unless details are
/// requested.
pub(super) fn with_figures(
    verdict: &Verdict,
    headline: &Headline,
    out: &mut dyn Write,
    style: Style,
) -> io::Result<()> {
    let head = plain(&verdict.head, style);
    let mut rate = String::new();
    if let Cell::Figure(per_s) = &headline.rate {
        let asked = headline.asked.as_ref().map(|asked| format!(" of {asked} requested")).unwrap_or_default();
        rate = match &headline.journey_rate {
            Some(journeys) => format!(": journeys {}{asked}; requests {per_s} ok", style.strong(journeys)),
            None => format!(": {} ok{asked}", style.strong(per_s)),
        };
    }
    writeln!(out, "{}{rate}", style.verdict(verdict.word, head))?;
    let times = [
        ("p50", &headline.response_p50),
        ("p90", &headline.response_p90),
        ("p99", &headline.response_p99),
        ("max", &headline.response_max),
    ];
    let times = times.map(|(name, cell)| format!("{name} {}", style.strong(cell)));
    writeln!(out, "response  {}", times.join("   "))?;
    writeln!(out, "errors    {}", errors(headline, style))?;
    if style.details {
        writeln!(out, "checks    {}", plain(&verdict.summary, style))?;
    }
    for reason in &verdict.reasons {
        let text = reason_text(reason, verdict.word, style);
        if style.details {
            writeln!(out, "{}", wrap("  ", &with_limit(&text, reason), style.width))?;
            writeln!(out, "{}", wrap("    ", &plain(&reason.advice, style), style.width))?;
        } else {
            writeln!(out, "  {}", cut(&text, style.width - 2))?;
        }
    }
    if !verdict.not_made.is_empty() {
        let text = format!("checks not made: {}", with_reasons(&verdict.not_made));
        let text = if style.details {
            wrap("  ", &text, style.width)
        } else {
            format!("  {}", cut(&text, style.width - 2))
        };
        writeln!(out, "{text}")?;
    }
    Ok(())
}

/// `231 of 10000 requests (2.3 %)`.
fn errors(headline: &Headline, style: Style) -> String {
    let Cell::Figure(errors) = &headline.errors else { return style.absent().to_owned() };
    let is_zero = errors.magnitude() == Some(0.0);
    let mut text = if is_zero { errors.to_string() } else { style.bad(errors) };
    if let Some(requests) = &headline.requests {
        text.push_str(&format!(" of {requests} requests"));
    }
    if let (false, Cell::Figure(share)) = (is_zero, &headline.error_share) {
        text.push_str(&format!(" ({share})"));
    }
    text
}

/// Among reasons of different severity, each one that is less severe states its own.
fn reason_text(reason: &Reason, word: Word, style: Style) -> String {
    let makes = match reason.makes {
        Word::Valid => " (note)",
        makes if makes == word => "",
        Word::Degraded => " (degraded)",
        Word::Invalid => " (invalid)",
    };
    format!("{}{makes}: {}", escape_text(&reason.check), plain(&reason.finding, style))
}

fn with_limit(text: &str, reason: &Reason) -> String {
    format!("{text}; limit: {}", escape_text(&reason.limit))
}

/// The verdict first, then every reason with its figure, its limit and what to do.
pub(super) fn verdict(kind: Subject, verdict: &Verdict, out: &mut dyn Write, style: Style) -> io::Result<()> {
    let head = plain(&verdict.head, style);
    if kind == Subject::Search {
        return writeln!(out, "{}", style.verdict(verdict.word, head));
    }
    if matches!(kind, Subject::Compare | Subject::Lab) {
        // The word is about the arms; a colour that is about trust would be read as good or bad.
        let lines = wrap(&format!("{head}: "), &plain(&verdict.summary, style), style.width);
        return writeln!(out, "{}{}", style.strong(&head), &lines[head.len()..]);
    }
    let mut summary = plain(&verdict.summary, style);
    if !verdict.not_made.is_empty() {
        summary.push_str("; not made: ");
        let room = style.width.saturating_sub(head.len() + 2 + summary.len());
        let reasoned = with_reasons(&verdict.not_made);
        // If the reasons do not fit on this line, they are in the record.
        let is_short = reasoned.chars().count() <= room;
        summary.push_str(&if is_short { reasoned } else { names(&verdict.not_made) });
    }
    let lines = wrap(&format!("{head}: "), &summary, style.width);
    writeln!(out, "{}{}", style.verdict(verdict.word, &head), &lines[head.len()..])?;
    for reason in &verdict.reasons {
        let text = with_limit(&reason_text(reason, verdict.word, style), reason);
        writeln!(out, "{}", wrap("  ", &text, style.width))?;
        writeln!(out, "{}", wrap("    ", &plain(&reason.advice, style), style.width))?;
    }
    Ok(())
}

fn names(not_made: &[NotMade]) -> String {
    let all = not_made.iter().flat_map(|group| &group.checks);
    escape_text(&all.map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// `run_queue (not reported by this kernel), drift, independence (7 full seconds, needs 8)`.
fn with_reasons(not_made: &[NotMade]) -> String {
    let groups = not_made.iter().map(|group| format!("{} ({})", group.checks.join(", "), group.reason));
    escape_text(&groups.collect::<Vec<_>>().join(", "))
}

/// The thresholds, in the view's order.
pub(super) fn thresholds(thresholds: &[Threshold], out: &mut dyn Write, style: Style) -> io::Result<()> {
    let count = |result| thresholds.iter().filter(|threshold| threshold.result == result).count();
    match (thresholds.len(), count(Outcome::Missed), count(Outcome::Undecided)) {
        (0, ..) => return Ok(()),
        (all, 0, 0) => writeln!(out, "{all} of {all} thresholds passed")?,
        (all, failed, 0) => writeln!(out, "{failed} of {all} thresholds {}", style.bad("FAILED"))?,
        (all, 0, without) => writeln!(out, "{without} of {all} thresholds {}", style.bad("NO DATA"))?,
        (all, failed, without) => {
            let (bad, none) = (style.bad("FAILED"), style.bad("NO DATA"));
            writeln!(out, "{failed} of {all} thresholds {bad}, {without} {none}")?;
        }
    }
    for threshold in thresholds {
        let word = match threshold.result {
            Outcome::Missed => "FAIL",
            Outcome::Undecided => "NO DATA",
            Outcome::Met => "PASS",
        };
        let because = threshold.because.as_ref().map(|because| format!("; {because}")).unwrap_or_default();
        // The metric, and the limit.
        let (metric, limit) = threshold.fail_if.split_once(' ').unwrap_or((&threshold.fail_if, ""));
        let text = format!("{metric} {} (fail if {limit}){because}", measured(&threshold.measured));
        writeln!(out, "{}", wrap(&format!("  {word:<10}"), &escape_text(&text), style.width))?;
    }
    Ok(())
}

fn measured(cell: &Cell) -> String {
    match cell {
        Cell::Figure(value) | Cell::Interval { value, .. } | Cell::Doubtful(value) => exact(value),
        Cell::Above(value) => format!("> {}", exact(value)),
        Cell::TooFew { .. } | Cell::Absent { .. } => "no figure".to_owned(),
    }
}

/// A share keeps enough digits to differ visibly from a limit that it barely exceeds.
fn exact(value: &Value) -> String {
    match value {
        Value::Share(share) => format!("{} %", (share * 1e8).round() / 1e6),
        Value::Items { count, noun } => plural(*count, noun),
        value => value.to_string(),
    }
}
