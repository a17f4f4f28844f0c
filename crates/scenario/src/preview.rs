//! What would be sent, as text: for `--dry-run` and for checking a file by eye.

use std::fmt::Write;

use crate::plan::Scenario;
use crate::template::Moment;

/// Values that only a run can know stand as `<name>`.
struct Guess<'a> {
    scenario: &'a Scenario,
    n: u64,
    captured: Vec<String>,
}

impl Moment for Guess<'_> {
    fn captured(&self, slot: u16) -> &str {
        &self.captured[usize::from(slot)]
    }

    fn cell(&self, table: u16, column: u16) -> &str {
        let index = usize::from(table);
        let (table, ordinals) = (&self.scenario.tables[index], &self.scenario.ordinals[index]);
        table.cell(table.row(self.scenario.seed, self.n, ordinals.of(self.n)), column)
    }

    fn seed(&self) -> u64 {
        self.scenario.seed
    }

    fn n(&self) -> u64 {
        self.n
    }
}

impl Scenario {
    /// The requests of the first `units` units of the run, with all their steps.
    pub fn preview(&self, units: u64) -> String {
        let mut out = String::new();
        let units = self.limit().map_or(units, |limit| limit.arrivals.min(units));
        for n in 0..units {
            let play = &self.plays[self.turns[(n % self.turns.len() as u64) as usize] as usize];
            // Unreserved, so that it looks the same wherever it is put.
            let captured = play.slots.iter().map(|name| format!("~{name}~")).collect();
            let guess = Guess { scenario: self, n, captured };
            let first = usize::from(play.first);
            for step in &self.steps[first..first + usize::from(play.steps)] {
                let request = self.request(step, &guess, None);
                let _ = writeln!(out, "# {n}: {}", step.name);
                let _ = writeln!(out, "{} {}", request.method, request.url);
                for header in &request.headers {
                    let _ = writeln!(out, "{}: {}", header.name, shown(&header.name, &header.value));
                }
                if !request.body.is_empty() {
                    let _ = writeln!(out, "\n{}", body(&request.body));
                }
                out.push('\n');
            }
        }
        out
    }
}

/// As the record keeps them, credentials are not shown.
fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    let name = name.to_ascii_lowercase();
    if matches!(name.as_str(), "authorization" | "proxy-authorization") { "(redacted)" } else { value }
}

fn body(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= BODY_SHOWN => text.to_owned(),
        _ => format!("({} bytes)", bytes.len()),
    }
}

/// Longer bodies are told by their length.
const BODY_SHOWN: usize = 2_000;
