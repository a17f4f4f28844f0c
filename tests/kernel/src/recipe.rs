//! What a request asks the planted server to do: `/burn=4ms,sleep=1ms,lock=3ms,fsync,yield=10`, in that order.

use std::fmt;
use std::str::FromStr;

use units::Nanos;

/// The steps of one request, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recipe {
    pub steps: Vec<Step>,
    /// Bytes of the response body.
    pub answer: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This much CPU time on the thread's own clock: known work, however long it takes to get it.
    Burn(Nanos),
    /// Blocked by choice.
    Sleep(Nanos),
    /// Blocked on a mutex that another thread of the server holds.
    Lock(Nanos),
    /// Blocked on a partner that replies late, over a pipe.
    Pipe(Nanos),
    /// Blocked on a partner that replies late, over a socket.
    Socket(Nanos),
    /// A page of a private file, written and synced; takes as long as the disk needs.
    Fsync,
    /// Yields the CPU this many times.
    Yield(u32),
    /// Touches this many fresh pages.
    Fault(u32),
}

/// More than any test plants, less than what would look like a hang.
const LONGEST: Nanos = Nanos::from_secs(10);
const MOST_STEPS: usize = 64;
const MOST_TIMES: u32 = 100_000;
const MOST_BYTES: usize = 64 << 20;
const USUAL_ANSWER: usize = 3;

impl FromStr for Recipe {
    type Err = String;

    /// Parses a path, with or without its slash, up to a `?`.
    fn from_str(path: &str) -> Result<Recipe, String> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.split('?').next().unwrap_or(path);
        let mut recipe = Recipe { steps: Vec::new(), answer: USUAL_ANSWER };
        for part in path.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name {
                "answer" => recipe.answer = bytes(value)?,
                _ => recipe.steps.push(step(name, value)?),
            }
        }
        match recipe.steps.len() > MOST_STEPS {
            true => Err(format!("{} steps, at most {MOST_STEPS} are taken", recipe.steps.len())),
            false => Ok(recipe),
        }
    }
}

fn step(name: &str, value: &str) -> Result<Step, String> {
    Ok(match name {
        "burn" => Step::Burn(length(value)?),
        "sleep" => Step::Sleep(length(value)?),
        "lock" => Step::Lock(length(value)?),
        "pipe" => Step::Pipe(length(value)?),
        "socket" => Step::Socket(length(value)?),
        "fsync" => Step::Fsync,
        "yield" => Step::Yield(times(value)?),
        "fault" => Step::Fault(times(value)?),
        _ => return Err(format!("no step `{name}`")),
    })
}

fn length(text: &str) -> Result<Nanos, String> {
    let length: Nanos = text.parse().map_err(|error| format!("{text}: {error}"))?;
    if length > LONGEST { Err(format!("{length} is more than {LONGEST}")) } else { Ok(length) }
}

fn times(text: &str) -> Result<u32, String> {
    let times: u32 = text.parse().map_err(|error| format!("{text}: {error}"))?;
    if times > MOST_TIMES { Err(format!("{times} is more than {MOST_TIMES}")) } else { Ok(times) }
}

fn bytes(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|error| format!("{text}: {error}"))?;
    if bytes > MOST_BYTES { Err(format!("{bytes} is more than {MOST_BYTES}")) } else { Ok(bytes) }
}

impl Step {
    pub fn name(self) -> &'static str {
        match self {
            Step::Burn(_) => "burn",
            Step::Sleep(_) => "sleep",
            Step::Lock(_) => "lock",
            Step::Pipe(_) => "pipe",
            Step::Socket(_) => "socket",
            Step::Fsync => "fsync",
            Step::Yield(_) => "yield",
            Step::Fault(_) => "fault",
        }
    }

    /// The planted length, if the step has one.
    pub fn planned(self) -> Option<Nanos> {
        match self {
            Step::Burn(length)
            | Step::Sleep(length)
            | Step::Lock(length)
            | Step::Pipe(length)
            | Step::Socket(length) => Some(length),
            Step::Fsync | Step::Yield(_) | Step::Fault(_) => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.planned(), self) {
            (Some(length), _) => write!(f, "{}={length}", self.name()),
            (None, Step::Yield(times) | Step::Fault(times)) => write!(f, "{}={times}", self.name()),
            (None, _) => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_list_of_steps() {
        let recipe: Recipe = "/burn=4ms,sleep=1ms,fsync,yield=10,answer=100,burn=500us".parse().unwrap();
        assert_eq!(
            recipe.steps,
            [
                Step::Burn(Nanos::from_millis(4)),
                Step::Sleep(Nanos::from_millis(1)),
                Step::Fsync,
                Step::Yield(10),
                Step::Burn(Nanos::from_micros(500)),
            ]
        );
        assert_eq!(recipe.answer, 100);
    }

    #[test]
    fn an_empty_path_asks_for_nothing() {
        for path in ["", "/", "/?burn=4ms"] {
            assert_eq!(path.parse::<Recipe>().unwrap(), Recipe { steps: Vec::new(), answer: 3 });
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        for path in ["/burn", "/burn=20s", "/rest=1ms", "/yield=1000000", "/answer=100000000000"] {
            assert!(path.parse::<Recipe>().is_err(), "{path}");
        }
    }
}
