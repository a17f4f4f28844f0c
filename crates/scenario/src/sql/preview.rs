//! The statements that would be sent, as text with their values.

use std::fmt::Write;

use database::sql::{Parameters, Value};

use crate::journey::{Filling, Repetition};
use crate::plan::Scenario;

/// How many repetitions of a step are shown.
const REPETITIONS_SHOWN: u32 = 3;

impl Scenario {
    /// Appends the statements of unit `n`; captured values appear as `~name~`.
    pub(crate) fn preview_statements(&self, n: u64, out: &mut String) {
        let at = self.position(n);
        let play = self.play(at);
        let captured: Vec<String> = play.slots.iter().map(|name| format!("~{name}~")).collect();
        let first = usize::from(play.first);
        for step in &self.steps[first..first + usize::from(play.steps)] {
            let sql = step.sql();
            for nth in 0..sql.repeat.min(REPETITIONS_SHOWN) {
                let repetition = Repetition { nth, own_draws: sql.own_draws };
                let filling = Filling { scenario: self, n, captured: &captured, repetition };
                let mut parameters = Parameters::default();
                sql.fill_in(&filling, &mut parameters);
                let _ = writeln!(out, "# {n}: {}", step.name);
                let mut values = parameters.values();
                for (index, piece) in
                    self.statements[usize::from(sql.statement(&filling))].pieces.iter().enumerate()
                {
                    if index > 0 {
                        push_value(values.next(), out);
                    }
                    out.push_str(piece);
                }
                out.push_str(";\n");
            }
            if sql.repeat > REPETITIONS_SHOWN {
                let _ = writeln!(out, "# … {} times", sql.repeat);
            }
        }
        out.push('\n');
    }
}

fn push_value(value: Option<Value<'_>>, out: &mut String) {
    let _ = match value {
        None | Some(Value::Null) => write!(out, "NULL"),
        Some(Value::Integer(number)) => write!(out, "{number}"),
        Some(Value::Text(text)) => write!(out, "'{}'", text.replace('\'', "''")),
    };
}
