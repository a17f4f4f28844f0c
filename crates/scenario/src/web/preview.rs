//! The requests that would be sent, as text: for `--dry-run`, and for checking a file by eye.

use std::fmt::Write;

use crate::plan::{Scenario, Step};
use crate::template::Moment;

/// Shows values that only a run can know as placeholders.
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

    fn is_shown(&self) -> bool {
        true
    }
}

impl Scenario {
    /// The requests of the first `units` units of the run, with all their steps.
    ///
    /// Text from the environment appears as `~env.NAME~`; `shown` returns how a header line `Name: value` may be shown.
    pub fn preview(&self, units: u64, shown: &dyn Fn(&str) -> String) -> String {
        let mut out = String::new();
        let units = self.limit().map_or(units, |limit| limit.arrivals.min(units));
        for n in 0..units {
            if self.database_kind().is_some() {
                self.preview_statements(n, &mut out);
                continue;
            }
            let play = &self.plays[self.turns[(n % self.turns.len() as u64) as usize] as usize];
            // Unreserved characters, so that it looks the same in every place.
            let captured = play.slots.iter().map(|name| format!("~{name}~")).collect();
            let guess = Guess { scenario: self, n, captured };
            let first = usize::from(play.first);
            for step in &self.steps[first..first + usize::from(play.steps)] {
                let request = self.request(step, &guess, None);
                let _ = writeln!(out, "# {n}: {}", step.name);
                let _ = writeln!(out, "{} {}", request.method, self.shown_url(step, &guess));
                for header in &request.headers {
                    let _ = writeln!(out, "{}", shown(&format!("{}: {}", header.name, header.value)));
                }
                if !request.body.is_empty() {
                    let _ = writeln!(out, "\n{}", body(&request.body));
                }
                out.push('\n');
            }
        }
        out
    }

    fn shown_url(&self, step: &Step, guess: &Guess<'_>) -> String {
        let target = &self.targets[usize::from(step.target)];
        match &target.hidden {
            None => self.url(step, guess).to_string(),
            Some(written) => {
                format!(
                    "{written}{}",
                    target.url().with_path(&step.web().path.render(guess)).path_and_query()
                )
            }
        }
    }
}

fn body(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= BODY_SHOWN => text.to_owned(),
        _ => format!("({} bytes)", bytes.len()),
    }
}

/// Only the length of a longer body is shown.
const BODY_SHOWN: usize = 2_000;
