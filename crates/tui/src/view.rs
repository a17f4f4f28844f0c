//! Lays out the live view: which parts fit a window, and where. Pure, so that it can be tested.

use ratatui::Frame;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use record::document::Model as LoadModel;

use super::heat;
use super::model::Model;
use super::sections;
use super::terminal_style::TerminalStyle;
use super::widgets::{Lines, rect, shortened, spread};

/// What the key controls add to the view.
#[derive(Debug, Clone, Copy, Default)]
pub struct Footer<'a> {
    pub message: Option<&'a str>,
    pub help: bool,
}

/// From this width on phases and outcomes are next to rates and response time.
const TWO_COLUMNS: usize = 132;

/// Title, bar, and the two largest.
const FEWEST_PHASES: usize = 4;

/// More rows would only make the heat map sparser.
const TALLEST_STRIP: usize = 14;

/// Draws the live view into a frame of any size.
pub fn draw(frame: &mut Frame<'_>, model: &Model, foot: Footer<'_>, look: TerminalStyle) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    if width == 0 || height == 0 {
        return;
    }
    let body = height - 1;
    if width >= TWO_COLUMNS {
        wide(frame, model, (width, body), look);
    } else {
        let lines = narrow(model, width, body, look);
        frame.render_widget(Paragraph::new(lines), rect(area, (0, 0), (width, body)));
    }
    let keys = keys(model, foot, width, look);
    frame.render_widget(Paragraph::new(keys), rect(area, (0, body), (width, 1)));
    if foot.help {
        help(frame, model, look);
    }
}

/// One part below the other. If they do not fit, the heat map is left out first, then outcomes, phases and rates; the
/// most important ones (header, response time and lights) are left out last.
fn narrow(model: &Model, width: usize, height: usize, look: TerminalStyle) -> Lines {
    let header = sections::header(model, width, look);
    let response = sections::response(model, width, look);
    let audit = sections::audit(model, width, look);
    let mut left = height.saturating_sub(header.len() + response.len() + audit.len());
    let mut fit = |lines: Lines| {
        let lines = if lines.len() <= left { lines } else { Vec::new() };
        left -= lines.len();
        lines
    };
    let rates = fit(sections::rates(model, width, look));
    let outcomes = fit(sections::outcomes(model, width, 3, look));
    let phases = fit(sections::phases(model, width, FEWEST_PHASES, look));
    let more_phases = if phases.is_empty() { 0 } else { left.saturating_sub(7).min(5) };
    let phases = if more_phases == 0 {
        phases
    } else {
        let more = sections::phases(model, width, FEWEST_PHASES + more_phases, look);
        left -= more.len() - phases.len();
        more
    };
    let strip = heat::strip(model, width, left.min(TALLEST_STRIP), look);
    left -= strip.len();
    spread([header, rates, response, phases, outcomes, strip, audit], left)
}

/// Two columns above the heat map.
fn wide(frame: &mut Frame<'_>, model: &Model, (width, height): (usize, usize), look: TerminalStyle) {
    let area = frame.area();
    let header = sections::header(model, width, look);
    let audit = sections::audit(model, width, look);
    let (left_width, top) = (width / 2 - 1, header.len() + 1);
    let right_width = width - left_width - 2;
    let left =
        spread([sections::rates(model, left_width, look), sections::response(model, left_width, look)], 1);
    let room = height.saturating_sub(top + audit.len() + 1);
    let outcomes = sections::outcomes(model, right_width, 4, look);
    let phases = sections::phases(model, right_width, room.saturating_sub(outcomes.len() + 1).min(9), look);
    let right = spread([phases, outcomes], 1);
    let columns = left.len().max(right.len()).min(room);
    let strip_at = top + columns + 1;
    let strip_rows = height.saturating_sub(strip_at + audit.len() + 1).min(TALLEST_STRIP);
    let strip = heat::strip(model, width, strip_rows, look);
    let audit_at = if strip.is_empty() { strip_at } else { strip_at + strip.len() + 1 };
    let audit_at = audit_at.min(height.saturating_sub(audit.len()));
    for (lines, at, size) in [
        (header, (0, 0), (width, top)),
        (left, (0, top), (left_width, columns)),
        (right, (left_width + 2, top), (right_width, columns)),
        (strip, (0, strip_at), (width, strip_rows)),
        (audit, (0, audit_at), (width, height.saturating_sub(audit_at))),
    ] {
        frame.render_widget(Paragraph::new(lines), rect(area, at, size));
    }
}

fn keys(model: &Model, foot: Footer<'_>, width: usize, look: TerminalStyle) -> Line<'static> {
    if let Some(message) = foot.message {
        return Line::from(look.key(shortened(&format!(" {message}"), width, look)));
    }
    let pause = if model.steering.paused { "resume" } else { "pause" };
    let end = if model.steering.ended || model.is_draining() { "stop immediately" } else { "end gracefully" };
    let mut keys = vec![("p", pause), ("q", end), ("?", "help")];
    if model.load.model == LoadModel::Open {
        keys.insert(1, ("+ -", "rate by 10 %"));
    }
    let mut spans = Vec::new();
    for (key, does) in keys {
        spans.extend([Span::raw(" "), look.key(key), look.faint(format!(" {does} "))]);
    }
    Line::from(spans)
}

const HELP: [(&str, &str); 7] = [
    ("p p", "pause: nothing becomes due; then p: resume"),
    ("+ -, up down", "change the rate by 10 %; 0: back to the plan"),
    ("q q", "end gracefully: wait for outstanding requests"),
    ("q", "then: stop immediately"),
    ("Ctrl-C", "stop immediately, exit code 130; twice: kill"),
    ("?", "this help"),
    ("", "all changes are recorded"),
];

fn help(frame: &mut Frame<'_>, model: &Model, look: TerminalStyle) {
    let area = frame.area();
    let (width, height) = (62, HELP.len() + 5);
    let at = |room: u16, length: usize| usize::from(room).saturating_sub(length) / 2;
    let popup = rect(area, (at(area.width, width), at(area.height, height)), (width, height));
    let mut lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|(key, does)| Line::from(vec![look.key(format!(" {key:<13} ")), Span::raw(*does)]))
        .collect();
    lines.push(Line::default());
    let drain = model.drain.map_or("until their timeouts".to_owned(), |drain| format!("up to {drain}"));
    lines.push(Line::from(look.faint(format!("waits for the last responses {drain}; figures"))));
    lines.push(Line::from(look.faint(" update every second; percentiles include unanswered")));
    let border = if look.unicode {
        ratatui::symbols::border::PLAIN
    } else {
        ratatui::symbols::border::Set {
            top_left: "+",
            top_right: "+",
            bottom_left: "+",
            bottom_right: "+",
            vertical_left: "|",
            vertical_right: "|",
            horizontal_top: "-",
            horizontal_bottom: "-",
        }
    };
    frame.render_widget(Clear, popup);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().border_set(border).title(" keys ")),
        popup,
    );
}
