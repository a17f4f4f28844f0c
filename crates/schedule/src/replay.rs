//! Recorded instants as a schedule: the times in a log, at their own speed or another.
//!
//! Parses lines from any source. The form is detected from the first line: a bare time, a JSON object, a row of CSV, or
//! a line in the common log format of web servers.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;
use thiserror::Error;
use units::Nanos;

/// Instants in order, the first at zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    instants: Arc<[Nanos]>,
    length: Nanos,
}

/// How many times faster than recorded: 0.000001 to 1000000.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

/// Why recorded instants cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
    #[error("there are no times in it")]
    Empty,
    #[error("it has more than {MOST_INSTANTS} times; split it")]
    TooMany,
    #[error("its times span more than 100 years; check that all of them have the same unit")]
    TooLong,
}

/// A limit on memory: at eight bytes per instant, 400 MB.
const MOST_INSTANTS: usize = 50_000_000;

const SECOND: i64 = 1_000_000_000;

/// The fields and columns to look for in JSON and CSV when no column is named.
const COLUMNS: [&str; 6] = ["timestamp", "time", "@timestamp", "ts", "datetime", "date"];

impl Recorded {
    /// All instants, ascending, the first at zero.
    pub fn instants(&self) -> &[Nanos] {
        &self.instants
    }

    /// The time to the last instant plus one mean gap, so that count / length is the mean rate.
    pub fn length(&self) -> Nanos {
        self.length
    }

    /// Mean arrival rate, in requests per second.
    pub fn mean_per_s(&self) -> f64 {
        self.instants.len() as f64 / self.length.as_secs_f64()
    }

    #[inline]
    pub(crate) fn due(&self, n: u64) -> Nanos {
        let place = usize::try_from(n).unwrap_or(usize::MAX);
        self.instants.get(place).copied().unwrap_or(Nanos::MAX)
    }
}

/// Reads a recording line by line.
#[derive(Debug)]
pub struct Reader {
    column: Option<String>,
    form: Option<Form>,
    line: u64,
    /// Nanoseconds since the epoch, or since another zero of the recording.
    found: Vec<i64>,
}

/// The form of the lines.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Bare,
    Json(String),
    Csv(usize),
    CommonLog,
}

impl Reader {
    /// `column` names a field of JSON, or a column of CSV by its header or its number from 1.
    pub fn new(column: Option<String>) -> Reader {
        Reader { column, form: None, line: 0, found: Vec::new() }
    }

    /// Parses the next line. Empty lines, and lines that begin with `#`, are skipped.
    ///
    /// # Errors
    ///
    /// [`ReplayError`], with the number of the line.
    pub fn line(&mut self, text: &str) -> Result<(), ReplayError> {
        self.line += 1;
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        let taken = self.take(text).map_err(|why| ReplayError::Line { line: self.line, why })?;
        self.found.extend(taken);
        if self.found.len() > MOST_INSTANTS { Err(ReplayError::TooMany) } else { Ok(()) }
    }

    fn take(&mut self, text: &str) -> Result<Option<i64>, String> {
        let form = match &self.form {
            Some(form) => form,
            None => {
                let (form, is_header) = detect(text, self.column.as_deref())?;
                let form = self.form.insert(form);
                if is_header {
                    return Ok(None);
                }
                form
            }
        };
        let instant = match form {
            Form::Bare => instant(text),
            Form::CommonLog => common_log(text),
            Form::Json(name) => json_field(text, name).and_then(|value| instant(&value)),
            Form::Csv(column) => csv_row(text)?
                .get(*column)
                .ok_or_else(|| format!("there is no column {}", column + 1))
                .and_then(|value| instant(value)),
        };
        instant.map(Some)
    }

    /// Counts a line that is left out, so that errors name the lines of the file.
    pub fn skip(&mut self) {
        self.line += 1;
    }

    /// The recording, replayed at `speed`, and for each of its instants the index of its time in the input, from 0.
    ///
    /// # Errors
    ///
    /// Like [`Reader::finish`].
    pub fn finish_in_order(self, speed: Speed) -> Result<(Recorded, Vec<u32>), ReplayError> {
        let count = u32::try_from(self.found.len()).map_err(|_| ReplayError::TooMany)?;
        let mut order: Vec<u32> = (0..count).collect();
        // Stable: requests with the same time keep the order of the recording.
        order.sort_by_key(|&place| self.found[place as usize]);
        Ok((self.finish(speed)?, order))
    }

    /// The recording, replayed at `speed`.
    ///
    /// # Errors
    ///
    /// [`ReplayError`] if there are no times, too many, or times that are more than 100 years apart.
    pub fn finish(mut self, speed: Speed) -> Result<Recorded, ReplayError> {
        // A server logs a request when it has responded, so logs are not exactly in order.
        self.found.sort_unstable();
        let first = *self.found.first().ok_or(ReplayError::Empty)?;
        if self.found.iter().all(|at| at % SECOND == 0) {
            spread_within_seconds(&mut self.found);
        }
        let instants: Arc<[Nanos]> =
            self.found.iter().map(|&at| speed.of(Nanos(at.abs_diff(first)))).collect();
        let last = instants.last().copied().unwrap_or(Nanos::ZERO);
        if last > Nanos::from_secs(100 * 366 * 86_400) {
            return Err(ReplayError::TooLong);
        }
        let gap = last.0 / (instants.len() as u64).saturating_sub(1).max(1);
        // All have the same time, or there is only one: a rate needs a length of time.
        let gap = if gap == 0 { Nanos::from_secs(1) } else { Nanos(gap) };
        Ok(Recorded { instants, length: last + gap })
    }
}

/// For a log with whole seconds only: spreads the times of each second evenly over it. Sent at once, they would be
/// bursts that never happened.
fn spread_within_seconds(sorted: &mut [i64]) {
    for second in sorted.chunk_by_mut(|a, b| a == b) {
        let count = second.len() as i128;
        for (k, at) in (0i128..).zip(second) {
            *at += i64::try_from(k * i128::from(SECOND) / count).expect("less than a second");
        }
    }
}

fn detect(text: &str, column: Option<&str>) -> Result<(Form, bool), String> {
    if text.starts_with('{') {
        let name = match column {
            Some(name) => name.to_owned(),
            None => COLUMNS
                .into_iter()
                .find(|name| json_field(text, name).is_ok())
                .ok_or_else(|| format!("it has none of {}; name the column", COLUMNS.join(", ")))?
                .to_owned(),
        };
        return Ok((Form::Json(name), false));
    }
    if common_log(text).is_ok() {
        return Ok((Form::CommonLog, false));
    }
    let row = csv_row(text)?;
    let place = |name: &str| row.iter().position(|cell| cell.trim().eq_ignore_ascii_case(name));
    match column.map(|name| (name, name.parse::<usize>())) {
        Some((_, Ok(number))) if (1..=row.len()).contains(&number) => {
            Ok((Form::Csv(number - 1), instant(&row[number - 1]).is_err()))
        }
        Some((name, _)) => {
            let place = place(name).ok_or_else(|| format!("there is no column `{name}`"))?;
            Ok((Form::Csv(place), true))
        }
        None if row.len() == 1 && instant(text).is_ok() => Ok((Form::Bare, false)),
        None if instant(&row[0]).is_ok() => Ok((Form::Csv(0), false)),
        None => match COLUMNS.into_iter().find_map(place) {
            Some(place) => Ok((Form::Csv(place), true)),
            // The first line is a header, but no known column: report the error of parsing it as a time.
            None => Err(instant(text).err().unwrap_or_default()),
        },
    }
}

fn csv_row(text: &str) -> Result<Vec<String>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let row = reader.records().next().ok_or("the row is empty")?.map_err(|error| error.to_string())?;
    Ok(row.iter().map(str::to_owned).collect())
}

fn json_field(text: &str, name: &str) -> Result<String, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    match value.get(name) {
        Some(serde_json::Value::String(text)) => Ok(text.clone()),
        Some(serde_json::Value::Number(number)) => Ok(number.to_string()),
        _ => Err(format!("it has no time in `{name}`")),
    }
}

fn common_log(text: &str) -> Result<i64, String> {
    let inner = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(inner, _)| inner);
    let inner = inner.ok_or("it has no time in brackets")?;
    let parsed = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", inner)
        .and_then(|parsed| parsed.to_timestamp())
        .map_err(|_| format!("`{inner}` is not a time of a common log"))?;
    nanos_of(parsed)
}

/// Parses a time in one of the forms found in logs, in nanoseconds from its zero.
///
/// The size of a bare number decides its unit, which is correct for times since the epoch from 1973 on: below 10^11
/// seconds, below 10^14 milliseconds, below 10^17 microseconds, otherwise nanoseconds.
fn instant(text: &str) -> Result<i64, String> {
    let text = text.trim().trim_matches('"');
    if let Some(ns) = number(text) {
        return ns;
    }
    if let Ok(length) = text.parse::<Nanos>() {
        return i64::try_from(length.0).map_err(|_| format!("`{text}` is too large"));
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return nanos_of(timestamp);
    }
    // Without a zone: only the distance between times matters.
    let civil = text.parse::<jiff::civil::DateTime>().ok().filter(|_| text.contains(':'));
    match civil.and_then(|civil| civil.to_zoned(jiff::tz::TimeZone::UTC).ok()) {
        Some(zoned) => nanos_of(zoned.timestamp()),
        None => {
            Err(format!("`{text}` is not a time; write 12.5, 1700000000.123, 250ms or 2026-01-31T12:00:00Z"))
        }
    }
}

/// `None` if it is not a bare number.
fn number(text: &str) -> Option<Result<i64, String>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return None;
    }
    let too_large = || format!("`{text}` is too large");
    let Ok(units) = whole.parse::<i128>() else { return Some(Err(too_large())) };
    let unit = match units {
        0..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    // Digits below a billionth of the unit are ignored.
    let fraction: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let fraction: i128 = fraction.parse().unwrap_or(0);
    Some(i64::try_from(units * unit + fraction * unit / 1_000_000_000).map_err(|_| too_large()))
}

fn nanos_of(timestamp: Timestamp) -> Result<i64, String> {
    i64::try_from(timestamp.as_nanosecond()).map_err(|_| format!("{timestamp} is out of range"))
}

impl Speed {
    /// As fast as recorded.
    pub const RECORDED: Speed = Speed(1.0);

    fn of(self, recorded: Nanos) -> Nanos {
        if self == Speed::RECORDED { recorded } else { Nanos((recorded.0 as f64 / self.0).round() as u64) }
    }
}

/// Parses `2x`, `x2`, `0.5x` and `2`.
impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Speed, String> {
        let number = text.strip_suffix('x').or_else(|| text.strip_prefix('x')).unwrap_or(text);
        match number.parse::<f64>() {
            Ok(times) if (1e-6..=1e6).contains(&times) => Ok(Speed(times)),
            Ok(_) => Err(format!("`{text}` is out of range; from 0.000001x to 1000000x")),
            Err(_) => Err(format!("`{text}` is not a speed; write for example 2x or 0.5x")),
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(column: Option<&str>, speed: &str, lines: &str) -> Result<Recorded, ReplayError> {
        let mut reader = Reader::new(column.map(str::to_owned));
        for line in lines.lines() {
            reader.line(line)?;
        }
        reader.finish(speed.parse().unwrap())
    }

    #[track_caller]
    fn check(column: Option<&str>, lines: &str, ms: &[u64]) {
        let recorded = read(column, "1x", lines).unwrap();
        let wanted: Vec<Nanos> = ms.iter().map(|&ms| Nanos::from_millis(ms)).collect();
        assert_eq!(recorded.instants(), wanted);
    }

    #[test]
    fn times_are_read_as_people_log_them() {
        check(None, "# seconds\n0\n0.25\n\n1.5\n", &[0, 250, 1_500]);
        check(None, "1700000000.100\n1700000000.350\n", &[0, 250]);
        check(None, "1700000000100\n1700000000350\n", &[0, 250]);
        check(None, "1700000000100000\n1700000000350000\n", &[0, 250]);
        check(None, "1700000000100000000\n1700000000350000000\n", &[0, 250]);
        check(None, "5ms\n7ms\n", &[0, 2]);
        check(None, "2026-01-31T12:00:00Z\n2026-01-31T13:00:00.25+01:00\n", &[0, 250]);
        check(None, "2026-01-31 12:00:00.5\n2026-01-31 12:00:01\n", &[0, 500]);
        check(None, "3\n1\n2\n", &[0, 1_000, 2_000]);
    }

    /// If this fails, a request is sent at the time of another.
    #[test]
    fn each_instant_knows_its_line() {
        let mut reader = Reader::new(None);
        for line in ["3", "1", "2", "1"] {
            reader.line(line).unwrap();
            reader.skip();
        }
        let bad = reader.line("x").unwrap_err().to_string();
        assert!(bad.starts_with("line 9: "), "{bad}");
        let (recorded, order) = reader.finish_in_order(Speed::RECORDED).unwrap();
        assert_eq!(order, [1, 3, 2, 0]);
        assert_eq!(recorded.instants().len(), 4);
    }

    #[test]
    fn a_column_of_json_or_csv_holds_the_times() {
        check(None, "{\"ts\": 1.5, \"a\": 1}\n{\"ts\": 2}\n", &[0, 500]);
        check(
            Some("at"),
            "{\"at\": \"2026-01-31T12:00:00Z\"}\n{\"at\": \"2026-01-31T12:00:01Z\"}\n",
            &[0, 1_000],
        );
        check(None, "path,time\n\"/a,b\",1\n/,2\n", &[0, 1_000]);
        check(Some("2"), "/,1\n/,2\n", &[0, 1_000]);
        check(Some("when"), "when,path\n1,/\n2,/\n", &[0, 1_000]);
        check(None, "1,/\n1.5,/\n", &[0, 500]);
    }

    #[test]
    fn a_common_log_is_spread_within_its_seconds() {
        let line = |second: u32| {
            format!("127.0.0.1 - - [10/Oct/2026:13:55:{second:02} -0700] \"GET / HTTP/1.1\" 200 2326\n")
        };
        let text = format!("{}{}{}{}{}", line(36), line(36), line(37), line(36), line(36));
        check(None, &text, &[0, 250, 500, 750, 1_000]);
    }

    /// If this fails, a log of whole seconds is replayed as bursts that never happened, unless it is a common log.
    #[test]
    fn whole_seconds_are_spread_in_every_form() {
        check(None, "1700000000\n1700000000\n1700000001\n", &[0, 500, 1_000]);
        check(None, "2026-01-31T12:00:00Z\n2026-01-31T12:00:00Z\n", &[0, 500]);
        check(None, "{\"ts\": 7}\n{\"ts\": 7}\n{\"ts\": 7}\n{\"ts\": 7}\n", &[0, 250, 500, 750]);
        check(Some("at"), "at,path\n3,/\n3,/\n4,/\n", &[0, 500, 1_000]);
        // A log with finer times is replayed as it is.
        check(None, "1\n1\n1.5\n", &[0, 0, 500]);
    }

    #[test]
    fn a_speed_divides_the_times_and_a_recording_lasts_one_mean_gap_more() {
        let recorded = read(None, "2x", "0\n1\n3\n4\n").unwrap();
        let ms: Vec<u64> = recorded.instants().iter().map(|instant| instant.0 / 1_000_000).collect();
        assert_eq!(ms, [0, 500, 1_500, 2_000]);
        assert_eq!(recorded.length(), Nanos(2_666_666_666));
        assert_eq!(read(None, "1x", "7\n").unwrap().length(), Nanos::from_secs(1));
    }

    #[test]
    fn a_line_without_a_time_is_refused_with_its_number() {
        for (text, error) in [
            (
                "1\n2\nthree\n",
                "line 3: `three` is not a time; write 12.5, 1700000000.123, 250ms or 2026-01-31T12:00:00Z",
            ),
            ("\n", "there are no times in it"),
            (
                "{\"a\": 1}\n",
                "line 1: it has none of timestamp, time, @timestamp, ts, datetime, date; name the column",
            ),
            ("{\"ts\": 1}\n{\"ts\": null}\n", "line 2: it has no time in `ts`"),
            (
                "99999999999999999999999999999999999999999\n",
                "line 1: `99999999999999999999999999999999999999999` is too large",
            ),
        ] {
            assert_eq!(read(None, "1x", text).unwrap_err().to_string(), error);
        }
        assert_eq!(read(Some("x"), "1x", "a,b\n").unwrap_err().to_string(), "line 1: there is no column `x`");
        for text in ["0x", "fast", "-1x", "infx"] {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }
}
