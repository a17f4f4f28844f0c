//! Converts pgbench scripts to a scenario file: one journey per script, with its weight.
//!
//! Takes `\set` with numbers and random functions, `\sleep`, and statements that end with semicolons, as documented for
//! PostgreSQL 17. Everything else is an error that names its line; nothing is left out.

mod expression;
mod script;

use std::collections::BTreeMap;
use std::fmt::Write;

use thiserror::Error;

use expression::{Draw, Value};
use script::Part;

/// One script, and how often it is chosen in relation to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgbenchScript {
    /// The name of the journey.
    pub name: String,
    pub text: String,
    pub weight: u32,
}

/// A line of a script that cannot be converted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{script}:{line}: {what}")]
pub struct PgbenchError {
    pub script: String,
    pub line: usize,
    pub what: String,
}

/// A script's name and weight without its text: `FILE[@WEIGHT]`, as pgbench takes it.
///
/// # Errors
///
/// For a weight of 0.
pub fn weighted(text: &str) -> Result<PgbenchScript, String> {
    let script = |name: &str, weight| PgbenchScript { name: name.to_owned(), text: String::new(), weight };
    match text.rsplit_once('@').map(|(name, weight)| (name, weight.parse())) {
        Some((_, Ok(0))) => Err("a script of weight 0 is never chosen; leave it out".to_owned()),
        Some((name, Ok(weight))) => Ok(script(name, weight)),
        _ => Ok(script(text, 1)),
    }
}

/// A variable and its value: `NAME=NUMBER`.
///
/// # Errors
///
/// For anything else.
pub fn variable(text: &str) -> Result<(String, i64), String> {
    let parts = text.split_once('=').and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?)));
    parts.ok_or_else(|| "give NAME=NUMBER, with a whole number".to_owned())
}

/// The text of the scenario file that executes `scripts` in the database at `url`. `variables` have the values of `-D` and
/// `scale`.
///
/// # Errors
///
/// [`PgbenchError`] for the first line that cannot be converted.
pub fn scenario(
    scripts: &[PgbenchScript],
    url: &str,
    variables: &[(String, i64)],
    prepared: bool,
) -> Result<String, PgbenchError> {
    let mut draws = Vec::new();
    let mut journeys = String::new();
    for script in scripts {
        let known = variables.iter().map(|(name, value)| (name.clone(), Value::Int(*value))).collect();
        journey(&mut Converter { draws: &mut draws, known, script, steps: Vec::new() }, &mut journeys)?;
    }
    let mut text = format!("[targets.db]\nurl = {}\n\n[defaults]\nprepared = {prepared}\n", quoted(url));
    if !draws.is_empty() {
        text.push_str("\n# One value of each per transaction.\n[vars]\n");
    }
    for Draw { name, template } in &draws {
        let _ = writeln!(text, "{name} = {}", quoted(template));
    }
    Ok(text + &journeys)
}

fn journey(converter: &mut Converter<'_>, text: &mut String) -> Result<(), PgbenchError> {
    let script = converter.script;
    let mut last = 1;
    for (line, part) in script::parts(&script.text).map_err(|(line, what)| converter.error(line, what))? {
        converter.part(part).map_err(|what| converter.error(line, what))?;
        last = line;
    }
    if converter.steps.is_empty() {
        return Err(converter.error(last, "the script has no statement".to_owned()));
    }
    let _ = write!(text, "\n[[journey]]\nname = {}\n", quoted(&script.name));
    let _ = writeln!(text, "weight = {}", script.weight);
    for Step { sql, think_us } in &converter.steps {
        let _ = write!(text, "\n[[journey.step]]\nsql = {}\n", quoted(sql));
        if begins_or_ends(sql) {
            text.push_str("prepared = false\n");
        }
        if *think_us > 0 {
            let _ = writeln!(text, "think = \"{think_us}us\"");
        }
    }
    Ok(())
}

struct Step {
    sql: String,
    think_us: u64,
}

struct Converter<'a> {
    draws: &'a mut Vec<Draw>,
    known: BTreeMap<String, Value>,
    script: &'a PgbenchScript,
    steps: Vec<Step>,
}

impl Converter<'_> {
    fn part(&mut self, part: Part<'_>) -> Result<(), String> {
        match part {
            Part::Statement(sql) => {
                let sql = self.statement(sql)?;
                self.steps.push(Step { sql, think_us: 0 });
            }
            Part::Set { name, expression } => {
                let value = expression::value(expression, name, &self.known, self.draws)?;
                self.known.insert(name.to_owned(), value);
            }
            Part::Sleep(words) => {
                let time = self.sleep(words)?;
                let before =
                    self.steps.last_mut().ok_or("\\sleep before the first statement cannot be converted")?;
                before.think_us = before.think_us.saturating_add(time);
            }
        }
        Ok(())
    }

    /// The text with `{{…}}` for variables.
    fn statement(&self, sql: &str) -> Result<String, String> {
        let mut text = String::new();
        for piece in script::pieces(sql) {
            match piece {
                script::Piece::Text(plain) => text.push_str(&plain.replace("{{", "\\{{")),
                script::Piece::Variable { name, quoted } => match self.known.get(name) {
                    // A time such as '12:30:00', or the name of something else.
                    None if quoted => {
                        let _ = write!(text, ":{name}");
                    }
                    None => {
                        return Err(format!("`:{name}` has no value; give it by \\set or -D {name}=NUMBER"));
                    }
                    Some(Value::Drawn { .. }) if quoted => {
                        return Err(format!(
                            "`:{name}` within quotes has a different value in each transaction; write it outside the quotes, with ||"
                        ));
                    }
                    Some(value) => text.push_str(&value.template(self.draws)),
                },
            }
        }
        Ok(text)
    }

    /// `5 ms`, `:pause us`; seconds without a unit.
    fn sleep(&self, words: &str) -> Result<u64, String> {
        let mut words = words.split_ascii_whitespace();
        let (time, unit) = (words.next().unwrap_or_default(), words.next().unwrap_or("s"));
        let time = match time.strip_prefix(':') {
            None => time.parse().ok(),
            Some(name) => match self.known.get(name) {
                Some(Value::Int(time)) => Some(*time),
                _ => return Err(format!("`{time}` is not a fixed number; the time of \\sleep must be one")),
            },
        };
        let factor = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            _ => return Err(format!("`{unit}` is not us, ms or s")),
        };
        let time = time.and_then(|time| u64::try_from(time).ok()).and_then(|time| time.checked_mul(factor));
        time.ok_or_else(|| "\\sleep takes a number, then us, ms or s".to_owned())
    }

    fn error(&self, line: usize, what: String) -> PgbenchError {
        PgbenchError { script: self.script.name.clone(), line, what }
    }
}

/// Statements that many servers and poolers do not prepare.
fn begins_or_ends(sql: &str) -> bool {
    let first = sql.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"].contains(&first.as_str())
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
