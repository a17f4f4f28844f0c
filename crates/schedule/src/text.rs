//! The text of a stage, as on a command line or in a file: `ramp 100/s..1k/s 30s poisson`.
//!
//! A stage is a shape with its rates, its length, and at the end the process that places requests:
//!
//! ```text
//! constant RATE TIME                               pause TIME
//! ramp RATE..RATE TIME                             sine RATE amplitude RATE period TIME TIME
//! steps RATE,RATE,... TIME        (TIME each)      spikes RATE peak RATE|xK width TIME period TIME TIME
//!                                          … then: nothing, or even | poisson | jitter TIME|PERCENT
//! ```
//!
//! In place of its last TIME a stage may have `weight N`: its share of a time that is given elsewhere.
//!
//! An error names the wrong word and shows a correct example.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use thiserror::Error;
use units::{Nanos, Rate};

use crate::shape::Shape;
use crate::shares::Written;
use crate::stage::{Jitter, Process, Stage};

/// The word of a stage that cannot be parsed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct StageError {
    /// Its position, from 1, and the word; `None` if a word is missing at the end.
    word: Option<(usize, String)>,
    why: String,
    example: &'static str,
}

impl fmt::Display for StageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.word {
            Some((place, word)) => write!(f, "at `{word}`, word {place}: ")?,
            None => f.write_str("at its end: ")?,
        }
        write!(f, "{}; as in `{}`", self.why, self.example)
    }
}

const CONSTANT: &str = "constant 500/s 30s";
const RAMP: &str = "ramp 100/s..1k/s 30s";
const STEPS: &str = "steps 100/s,200/s,400/s 10s";
const SINE: &str = "sine 500/s amplitude 200/s period 10s 60s";
const SPIKES: &str = "spikes 100/s peak x10 width 1s period 10s 60s";
const PAUSE: &str = "pause 5s";

/// Parses one stage with a length. `steps` gives several stages, one after another.
///
/// # Errors
///
/// [`StageError`], which names the word.
pub fn parse_stage(text: &str) -> Result<Vec<Stage>, StageError> {
    let (stages, _) = parse(text, |words| words.own_length())?;
    Ok(stages)
}

/// Parses one stage with a length or a weight.
///
/// # Errors
///
/// [`StageError`], which names the word.
pub fn parse_written(text: &str) -> Result<Vec<Written>, StageError> {
    let (stages, weight) = parse(text, |words| words.length_or_weight())?;
    Ok(stages.into_iter().map(|stage| Written { stage, weight }).collect())
}

/// How long a stage lasts: its length, or its weight among others.
type Extent = (Option<Nanos>, Option<NonZeroU32>);

fn parse(
    text: &str,
    extent: impl Fn(&mut Words<'_>) -> Result<Extent, StageError>,
) -> Result<(Vec<Stage>, Option<NonZeroU32>), StageError> {
    let mut words = Words { words: text.split_whitespace().collect(), next: 0, example: CONSTANT };
    let name = words.take("a shape is missing: constant, ramp, steps, sine, spikes or pause")?;
    let shapes = match name {
        "constant" => vec![Shape::Constant(Some(words.positive()?))],
        "ramp" => vec![ramp(&mut words)?],
        "steps" => steps(&mut words)?,
        "sine" => vec![sine(&mut words)?],
        "spikes" => vec![spikes(&mut words)?],
        "pause" => {
            words.example = PAUSE;
            vec![Shape::Constant(None)]
        }
        _ => return Err(words.wrong("not a shape; write constant, ramp, steps, sine, spikes or pause")),
    };
    let (length, weight) = extent(&mut words)?;
    let process = process(&mut words)?;
    words.end()?;
    let stages = shapes.into_iter().map(|shape| Stage::Shaped { shape, process, length });
    Ok((stages.collect(), weight))
}

fn ramp(words: &mut Words<'_>) -> Result<Shape, StageError> {
    words.example = RAMP;
    let word = words.take("its two rates are missing")?;
    let (from, to) =
        word.split_once("..").ok_or_else(|| words.wrong("needs two rates with `..` between them"))?;
    let (from, to) = (words.read(level(from))?, words.read(level(to))?);
    if from.is_none() && to.is_none() {
        return Err(words.wrong("a ramp from 0 to 0 schedules nothing"));
    }
    Ok(Shape::Ramp { from, to })
}

fn steps(words: &mut Words<'_>) -> Result<Vec<Shape>, StageError> {
    words.example = STEPS;
    let mut shapes = Vec::new();
    loop {
        let word = words.take("its rates are missing")?;
        for part in word.split(',').filter(|part| !part.is_empty()) {
            shapes.push(Shape::Constant(words.read(level(part))?));
        }
        // A comma next to the space joins two words to one list.
        let goes_on = word.ends_with(',') || words.peek().is_some_and(|next| next.starts_with(','));
        if !goes_on {
            return Ok(shapes);
        }
    }
}

fn sine(words: &mut Words<'_>) -> Result<Shape, StageError> {
    words.example = SINE;
    let mean = words.positive()?;
    words.keyword("amplitude")?;
    let word = words.take("its amplitude is missing")?;
    let amplitude = words.read(level(word))?;
    if amplitude.is_some_and(|amplitude| amplitude.as_per_second_f64() > mean.as_per_second_f64()) {
        return Err(words.wrong("more than the mean, so the rate would fall below 0"));
    }
    words.keyword("period")?;
    Ok(Shape::Sine { mean, amplitude, period: words.time("its period is missing")? })
}

fn spikes(words: &mut Words<'_>) -> Result<Shape, StageError> {
    words.example = SPIKES;
    let word = words.take("its rate is missing")?;
    let base = words.read(level(word))?;
    words.keyword("peak")?;
    let word = words.take("its peak is missing")?;
    let peak = match word.strip_prefix('x') {
        None => words.read(word.parse::<Rate>())?,
        Some(times) => {
            times_of(base, times).ok_or_else(|| words.wrong("not a valid multiple of its rate"))?
        }
    };
    words.keyword("width")?;
    let width = words.time("the width of a spike is missing")?;
    words.keyword("period")?;
    let period = words.time("its period is missing")?;
    if width >= period {
        return Err(words.wrong("not longer than the spike in it"));
    }
    Ok(Shape::Spikes { base, peak, width, period })
}

/// `times` the rate, exactly.
fn times_of(base: Option<Rate>, times: &str) -> Option<Rate> {
    // Parsed as a rate, the factor is an exact fraction: `2.5` is 5 per 2.
    let factor: Rate =
        times.parse().ok().filter(|_| times.bytes().all(|b| b.is_ascii_digit() || b == b'.'))?;
    base?.times(factor)
}

fn process(words: &mut Words<'_>) -> Result<Process, StageError> {
    match words.peek() {
        None => Ok(Process::Even),
        Some(_) => match words.take("")? {
            "even" => Ok(Process::Even),
            "poisson" => Ok(Process::Poisson),
            "jitter" => {
                let word = words.take("its jitter is missing, a time or a percentage")?;
                words.read(word.parse::<Jitter>()).map(Process::Jittered)
            }
            _ => Err(words.wrong("not even, poisson or jitter, and nothing else may follow the time")),
        },
    }
}

/// A rate, or `None` for 0.
fn level(text: &str) -> Result<Option<Rate>, String> {
    if matches!(text, "0" | "0/s") {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|error: units::ParseError| error.to_string())
}

/// Parses `5ms` and `10%`.
impl FromStr for Jitter {
    type Err = String;

    fn from_str(text: &str) -> Result<Jitter, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return match text.parse() {
                Ok(Nanos::ZERO) => Err("a jitter must be longer than 0".to_owned()),
                Ok(time) => Ok(Jitter::Time(time)),
                Err(error) => Err(format!("{error}, or of the gap, 10%")),
            };
        };
        match percent.trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Jitter::Percent(percent)),
            _ => Err(format!("`{text}` is not a share of the gap; write more than 0%, at most 100%")),
        }
    }
}

/// The words of a stage, one after another.
struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
    /// A correct stage, for error messages.
    example: &'static str,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self, missing: &str) -> Result<&'a str, StageError> {
        let word = self.peek();
        self.next += usize::from(word.is_some());
        word.ok_or_else(|| StageError { word: None, why: missing.to_owned(), example: self.example })
    }

    /// An error about the word that was taken last.
    fn wrong(&self, why: &str) -> StageError {
        let place = self.next.max(1);
        let word = self.words.get(place - 1).map(|word| (place, (*word).to_owned()));
        StageError { word, why: why.to_owned(), example: self.example }
    }

    fn read<T, E: fmt::Display>(&self, value: Result<T, E>) -> Result<T, StageError> {
        value.map_err(|error| self.wrong(&error.to_string()))
    }

    fn positive(&mut self) -> Result<Rate, StageError> {
        let word = self.take("its rate is missing")?;
        self.read(word.parse())
    }

    fn time(&mut self, missing: &str) -> Result<Nanos, StageError> {
        let word = self.take(missing)?;
        match self.read(word.parse())? {
            Nanos::ZERO => Err(self.wrong("a time must be longer than 0")),
            time => Ok(time),
        }
    }

    fn own_length(&mut self) -> Result<Extent, StageError> {
        self.time("the time it takes is missing").map(|length| (Some(length), None))
    }

    fn length_or_weight(&mut self) -> Result<Extent, StageError> {
        if self.peek() != Some("weight") {
            return self.own_length();
        }
        self.next += 1;
        let word = self.take("its weight is missing, a whole number")?;
        let weight =
            word.parse().map_err(|_| self.wrong("not a weight; write a whole number of at least 1"))?;
        Ok((None, Some(weight)))
    }

    fn keyword(&mut self, wanted: &str) -> Result<(), StageError> {
        let word = self.take(&format!("`{wanted}` is missing"))?;
        if word == wanted { Ok(()) } else { Err(self.wrong(&format!("expected `{wanted}`"))) }
    }

    fn end(&mut self) -> Result<(), StageError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => {
                self.next += 1;
                Err(self.wrong("nothing may follow here"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, written: &[&str]) {
        let stages = parse_stage(text).unwrap();
        assert_eq!(stages.iter().map(Stage::to_string).collect::<Vec<_>>(), written);
        // What a record shows can be given as an option again.
        let again: Vec<Stage> = written.iter().flat_map(|text| parse_stage(text).unwrap()).collect();
        assert_eq!(again, stages);
    }

    #[test]
    fn stages_are_read_and_written_alike() {
        check("constant 500/s 30s", &["constant 500/s 30s"]);
        check("constant 30/m 2m poisson", &["constant 30/60s 120s poisson"]);
        check("constant 500/s 30s even", &["constant 500/s 30s"]);
        check("constant 500/s 30s jitter 10%", &["constant 500/s 30s jitter 10%"]);
        check("constant 500/s 30s jitter 2.5ms", &["constant 500/s 30s jitter 2500us"]);
        check("ramp 0/s..1k/s 30s poisson", &["ramp 0/s..1000/s 30s poisson"]);
        check(
            "steps 100/s, 0,200/s 10s poisson",
            &["constant 100/s 10s poisson", "pause 10s poisson", "constant 200/s 10s poisson"],
        );
        check("sine 500/s amplitude 200/s period 10s 60s", &["sine 500/s amplitude 200/s period 10s 60s"]);
        check(
            "spikes 100/s peak x2.5 width 1s period 10s 60s",
            &["spikes 100/s peak 250/s width 1s period 10s 60s"],
        );
        check(
            "spikes 0 peak 1k/s width 1s period 10s 60s",
            &["spikes 0/s peak 1000/s width 1s period 10s 60s"],
        );
        check("pause 5s", &["pause 5s"]);
    }

    #[track_caller]
    fn refused(text: &str, error: &str) {
        assert_eq!(parse_stage(text).unwrap_err().to_string(), error);
    }

    #[test]
    fn an_error_points_at_the_wrong_word() {
        refused(
            "",
            "at its end: a shape is missing: constant, ramp, steps, sine, spikes or pause; \
             as in `constant 500/s 30s`",
        );
        refused(
            "wave 3/s",
            "at `wave`, word 1: not a shape; write constant, ramp, steps, sine, spikes or pause; \
             as in `constant 500/s 30s`",
        );
        refused(
            "ramp 100/s..1x/s 30s",
            "at `100/s..1x/s`, word 2: `x/s` in `1x/s` is not a known unit; use /s, /m, /h or /100ms, with k or M \
             before it; as in `ramp 100/s..1k/s 30s`",
        );
        refused(
            "ramp 100/s 30s",
            "at `100/s`, word 2: needs two rates with `..` between them; as in `ramp 100/s..1k/s 30s`",
        );
        refused("constant 500/s", "at its end: the time it takes is missing; as in `constant 500/s 30s`");
        refused(
            "constant 500/s 30",
            "at `30`, word 3: `30` has no unit; write for example 2s, 500us or 1.5ms; as in `constant 500/s 30s`",
        );
        refused(
            "sine 500/s amplitude 600/s period 10s 60s",
            "at `600/s`, word 4: more than the mean, so the rate would fall below 0; \
             as in `sine 500/s amplitude 200/s period 10s 60s`",
        );
        refused(
            "spikes 100/s peak x10 width 10s period 1s 60s",
            "at `1s`, word 8: not longer than the spike in it; \
             as in `spikes 100/s peak x10 width 1s period 10s 60s`",
        );
        refused(
            "constant 500/s 30s uniform",
            "at `uniform`, word 4: not even, poisson or jitter, and nothing else may follow the time; \
             as in `constant 500/s 30s`",
        );
        refused("pause 5s even 3", "at `3`, word 4: nothing may follow here; as in `pause 5s`");
        refused(
            "constant 500/s 30s jitter 0%",
            "at `0%`, word 5: `0%` is not a share of the gap; write more than 0%, at most 100%; \
             as in `constant 500/s 30s`",
        );
    }

    #[test]
    fn a_weight_takes_the_place_of_the_length() {
        let read =
            |text: &str| parse_written(text).map(|written| (written.len(), written[0].weight.map(u32::from)));
        assert_eq!(read("constant 500/s weight 3 poisson"), Ok((1, Some(3))));
        assert_eq!(read("steps 1/s,2/s weight 2"), Ok((2, Some(2))));
        assert_eq!(read("sine 5/s amplitude 2/s period 10s weight 1"), Ok((1, Some(1))));
        assert_eq!(read("constant 500/s 30s"), Ok((1, None)));
        for (text, error) in [
            ("pause weight", "at its end: its weight is missing, a whole number; as in `pause 5s`"),
            (
                "pause weight 0",
                "at `0`, word 3: not a weight; write a whole number of at least 1; as in `pause 5s`",
            ),
            (
                "pause weight 1.5",
                "at `1.5`, word 3: not a weight; write a whole number of at least 1; as in `pause 5s`",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), error);
        }
        assert!(parse_stage("pause weight 1").is_err());
    }

    #[test]
    fn other_wrong_stages_are_refused_too() {
        for text in [
            "ramp 0..0 3s",
            "steps 10s",
            "steps , 10s",
            "spikes 0 peak x3 width 1s period 2s 3s",
            "spikes 1/s peak x1k width 1s period 2s 3s",
            "sine 0 amplitude 0 period 1s 1s",
            "pause 0s",
            "constant 0/s 3s",
        ] {
            assert!(parse_stage(text).is_err(), "{text}");
        }
    }
}
