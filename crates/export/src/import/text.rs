//! Lines of text and the numbers in them, with the line in every error.

use record::import::ImportedQuantile;
use serde_json::Value;

use super::ImportError;

/// A histogram holds an hour; a day is more than any request takes.
const LONGEST_S: f64 = 86_400.0;

/// A line and its number, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().map(|(i, text)| Line { number: i + 1, text: text.trim() })
}

impl<'a> Line<'a> {
    pub(super) fn wrong(self, what: impl Into<String>) -> ImportError {
        ImportError::Line { line: self.number, what: what.into() }
    }

    /// The text after `name:`.
    pub(super) fn after(self, name: &str) -> Option<&'a str> {
        Some(self.text.strip_prefix(name)?.strip_prefix(':')?.trim())
    }

    pub(super) fn float(self, text: &str) -> Result<f64, ImportError> {
        let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.wrong(format!("`{}` is not a number", shown(text))))
    }

    pub(super) fn count(self, text: &str) -> Result<u64, ImportError> {
        text.trim().parse().map_err(|_| self.wrong(format!("`{}` is not a count", shown(text))))
    }

    /// Seconds with a fraction.
    pub(super) fn seconds(self, text: &str) -> Result<u64, ImportError> {
        let number = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        scaled(self.float(number)?, 1e9).ok_or_else(|| self.wrong(format!("`{}` is not a time", shown(text))))
    }

    pub(super) fn milliseconds(self, text: &str) -> Result<u64, ImportError> {
        scaled(self.float(text)?, 1e6).ok_or_else(|| self.wrong(format!("`{}` is not a time", shown(text))))
    }

    /// `1.23ms`, `2.00m`.
    pub(super) fn duration(self, text: &str) -> Result<u64, ImportError> {
        let time = text.parse::<units::Nanos>().ok().filter(|time| time.as_secs_f64() <= LONGEST_S);
        time.map(|time| time.0).ok_or_else(|| self.wrong(format!("`{}` is not a time", shown(text))))
    }

    /// `99.9%` as a share between 0 and 1; hey writes `99%%`.
    pub(super) fn percent(self, text: &str) -> Result<f64, ImportError> {
        let share = exact_share(text.trim().trim_end_matches('%'));
        share.ok_or_else(|| self.wrong(format!("`{}` is not a percentage", shown(text))))
    }
}

/// `99.9` as exactly 0.999: dividing by a hundred would not give that.
pub(super) fn exact_share(percent: &str) -> Option<f64> {
    let (whole, fraction) = percent.split_once('.').unwrap_or((percent, "0"));
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(whole, 3) || !digits(fraction, 12) {
        return None;
    }
    let share: f64 = match whole.parse::<u64>().ok()? {
        100 => 1.0,
        whole @ 0..=99 => format!("0.{whole:02}{fraction}").parse().ok()?,
        _ => return None,
    };
    Some(share)
}

pub(super) fn stated(q: f64, ns: u64) -> ImportedQuantile {
    ImportedQuantile { q, ns, low_ns: None, high_ns: None }
}

/// A time in a unit of this many nanoseconds, if it is one that a request can take.
pub(super) fn scaled(value: f64, unit_ns: f64) -> Option<u64> {
    let ns = value * unit_ns;
    (ns.is_finite() && (0.0..=LONGEST_S * 1e9).contains(&ns)).then(|| ns.round() as u64)
}

/// For quoting in an error: not the whole of a hostile line; the printer handles control characters.
pub(super) fn shown(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 40 {
        text.to_owned()
    } else {
        format!("{}…", text.chars().take(40).collect::<String>())
    }
}

/// The whole text as one JSON value.
pub(super) fn json(text: &str) -> Result<Value, ImportError> {
    serde_json::from_str(text)
        .map_err(|error| ImportError::Line { line: error.line().max(1), what: json_error(&error) })
}

pub(super) fn json_error(error: &serde_json::Error) -> String {
    let text = error.to_string();
    format!("not JSON: {}", text.split(" at line ").next().unwrap_or(&text))
}

/// A number at a place of a JSON value: absent is fine, another type is not.
pub(super) fn number(value: &Value, pointer: &str) -> Result<Option<f64>, ImportError> {
    match value.pointer(pointer) {
        None | Some(Value::Null) => Ok(None),
        Some(found) => match found.as_f64().filter(|number| number.is_finite() && *number >= 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(ImportError::Whole { what: format!("`{pointer}` is not a number of at least 0") }),
        },
    }
}

pub(super) fn whole(value: &Value, pointer: &str) -> Result<Option<u64>, ImportError> {
    match number(value, pointer)? {
        None => Ok(None),
        // Counts in these files are also written by programs that keep them as floats.
        Some(number) if number.fract() == 0.0 && number < 9e15 => Ok(Some(number as u64)),
        Some(_) => Err(ImportError::Whole { what: format!("`{pointer}` is not a count") }),
    }
}

/// A time at a place of a JSON value, in a unit of this many nanoseconds.
pub(super) fn time(value: &Value, pointer: &str, unit_ns: f64) -> Result<Option<u64>, ImportError> {
    let Some(number) = number(value, pointer)? else { return Ok(None) };
    let ns = scaled(number, unit_ns);
    ns.map(Some).ok_or_else(|| ImportError::Whole {
        what: format!("`{pointer}` is not a time that a request can take"),
    })
}
