//! The live table of a watch: what is on the screen, and which parts of it fit a window. No terminal and no clock.

mod rows;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::widgets::Paragraph;
use record::Durations;
use record::observation::watch::{Digest, Inexact, Losses, PartsNs, Preemptor, ProtocolCount};
use stats::quantile_ranks;
use units::Nanos;
use watch::Sums;

use crate::TerminalStyle;
use crate::display::LiveView;
use crate::tally::Shown;
use crate::widgets::{Lines, rect, spread};

/// Maximum number of intervals in the sparkline.
const SPARKS: usize = 240;

pub struct LiveTable {
    /// `nginx (-p 4711)`.
    who: String,
    ports: Vec<u16>,
    start: Nanos,
    /// How long the watch lasts; `None` until it ends by itself.
    length: Option<Nanos>,
    now: Nanos,
    /// Set to end the watch.
    stop: Arc<AtomicBool>,
    per_s: VecDeque<f64>,
    seen: Option<TableSnapshot>,
}

/// The figures after an interval. Tables cover the whole watch, the most time first.
pub struct TableSnapshot {
    pub length: Nanos,
    /// How much of it was seen; `None` if all.
    pub seen: Option<Nanos>,
    pub lately: RequestSample,
    pub whole: RequestSample,
    pub protocols: Vec<ProtocolCount>,
    pub connections: u64,
    pub digests: Vec<Digest>,
    pub preemptors: Vec<Preemptor>,
    pub losses: Losses,
    pub inexact: Inexact,
}

/// A summary of some requests.
#[derive(Debug, Clone)]
pub struct RequestSample {
    requests: u64,
    preempted: u64,
    parts_ns: PartsNs,
    quantiles: [Shown; rows::QUANTILES.len()],
    max: Option<Nanos>,
}

impl RequestSample {
    /// The figures of these sums.
    pub fn of(sums: &Sums) -> RequestSample {
        let response = sums.response();
        RequestSample {
            requests: sums.requests,
            preempted: sums.preempted,
            parts_ns: sums.parts_ns,
            quantiles: rows::QUANTILES.map(|(_, q)| quantile(response, q)),
            max: response.max(),
        }
    }
}

fn quantile(durations: &Durations, q: f64) -> Shown {
    let ranks = quantile_ranks(durations.count(), q);
    ranks.and_then(|ranks| durations.at_rank(ranks.estimate)).map_or(Shown::TooFew, Shown::Known)
}

/// The server that the table is about, and how long the watch lasts.
pub struct TableSubject<'a> {
    pub who: &'a str,
    pub ports: &'a [u16],
    pub start: Nanos,
    pub length: Option<Nanos>,
}

impl LiveTable {
    /// A table without any interval; `stop` is set by the key that ends the watch.
    pub fn new(subject: &TableSubject<'_>, stop: Arc<AtomicBool>) -> LiveTable {
        LiveTable {
            who: record::escape_text(subject.who),
            ports: subject.ports.to_vec(),
            start: subject.start,
            length: subject.length,
            now: Nanos::ZERO,
            stop,
            per_s: VecDeque::new(),
            seen: None,
        }
    }

    /// Adds an interval that has ended.
    pub fn add(&mut self, seen: TableSnapshot) {
        if self.per_s.len() == SPARKS {
            self.per_s.pop_front();
        }
        let length = seen.seen.unwrap_or(seen.length);
        if length > Nanos::ZERO {
            self.per_s.push_back(seen.lately.requests as f64 * 1e9 / length.0 as f64);
        }
        self.seen = Some(seen);
    }

    /// If not everything fits, the tables are left out first, then the parts; the most important ones (header, response
    /// time and losses) are left out last.
    fn lines(&self, width: usize, height: usize, look: TerminalStyle) -> Lines {
        let mut header = rows::header(self, width, look);
        let Some(seen) = &self.seen else { return header };
        header.push(rows::throughput(self, width, look));
        let response = rows::response(seen, width, look);
        let losses = vec![rows::losses(seen, width, look)];
        let mut left = height.saturating_sub(header.len() + response.len() + losses.len());
        let mut fit = |lines: Lines| {
            let lines = if lines.len() <= left { lines } else { Lines::new() };
            left -= lines.len();
            lines
        };
        let parts = fit(rows::parts(seen, width, PARTS, look));
        let digests = fit(rows::digests(seen, width, FEWEST, look));
        let preemptors = fit(rows::preemptors(seen, width, FEWEST, look));
        // Remaining lines are used for space first, and then for more rows of the tables.
        let more = left.saturating_sub(AIR);
        let (digests, preemptors) = if digests.is_empty() || preemptors.is_empty() {
            (rows::digests(seen, width, digests.len() + more, look), preemptors)
        } else {
            let ran = rows::preemptors(seen, width, FEWEST + more / 3, look);
            (rows::digests(seen, width, FEWEST + more - (ran.len() - preemptors.len()), look), ran)
        };
        let used = [&header, &response, &parts, &digests, &preemptors, &losses];
        let spare = height.saturating_sub(used.iter().map(|lines| lines.len()).sum());
        spread([header, response, parts, digests, preemptors, losses], spare)
    }
}

/// Title, bar, and the four largest.
const PARTS: usize = 6;

/// Title and the two largest.
const FEWEST: usize = 3;

/// Maximum number of empty lines between the parts.
const AIR: usize = 5;

impl LiveView for LiveTable {
    fn draw(&mut self, frame: &mut Frame<'_>, now: Nanos, look: TerminalStyle) {
        self.now = now.saturating_sub(self.start);
        let area = frame.area();
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width == 0 || height == 0 {
            return;
        }
        let body = height - 1;
        let lines = self.lines(width, body, look);
        frame.render_widget(Paragraph::new(lines), rect(area, (0, 0), (width, body)));
        frame.render_widget(Paragraph::new(rows::keys(look)), rect(area, (0, body), (width, 1)));
    }

    fn press(&mut self, key: KeyEvent) {
        // If the terminal delivers Ctrl-C as a key instead of a signal.
        let interrupts = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
        if interrupts || matches!(key.code, KeyCode::Char('q' | 's')) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
