//! One row per second: JSON lines, which are those of the record's series with two differences, and CSV.
//!
//! Percentiles cover the second's `ok` responses; those that too few of them carry are absent. `unanswered` counts the
//! other requests that ended without a whole response; their response times would be above all of these.

use std::io::{self, Write};

use record::document::OutcomeCount;
use record::{Outcome, Second};
use serde_json::{Value, json};
use stats::needed_samples;

/// The columns of the CSV form. Times are in nanoseconds; the cell of an absent figure is empty.
pub const COLUMNS: [&str; 22] = [
    "index",
    "start_ns",
    "length_ns",
    "scheduled",
    "sent",
    "ok",
    "failed",
    "unanswered",
    "outstanding",
    "response_p50_ns",
    "response_p90_ns",
    "response_p99_ns",
    "response_p999_ns",
    "response_max_ns",
    "bytes_sent",
    "bytes_received",
    "body_bytes",
    "connections_opened",
    "idle_closes",
    "worker_cpu_ns",
    "worker_stall_max_ns",
    "process_cpu_ns",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// The two forms of the rows.
pub enum Form {
    /// The object of a line of `series.ndjson`, with `unanswered`, and `null` for percentiles that the second cannot
    /// carry.
    Jsonl,
    /// With a line of column names before the first row.
    Csv,
}

/// Writes what comes before the first row.
///
/// # Errors
///
/// Those of `out`.
pub fn head(form: Form, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Jsonl => Ok(()),
        Form::Csv => record(COLUMNS, out),
    }
}

/// Writes the row of one second, with its line end.
///
/// # Errors
///
/// Those of `out`.
pub fn row(form: Form, second: &Second, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Jsonl => {
            serde_json::to_writer(&mut *out, &object(second)?)?;
            out.write_all(b"\n")
        }
        Form::Csv => {
            let text = |cell: Option<u64>| cell.map(|value| value.to_string()).unwrap_or_default();
            record(cells(second).map(text), out)
        }
    }
}

/// The percentiles by their names in the series.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

fn carries(second: &Second, q: f64) -> bool {
    second.ok >= needed_samples(q)
}

fn unanswered(second: &Second) -> u64 {
    let is_unanswered =
        |entry: &&OutcomeCount| Outcome::from_name(&entry.outcome).is_some_and(Outcome::is_unanswered);
    second.failures.iter().filter(is_unanswered).map(|entry| entry.count).sum()
}

fn object(second: &Second) -> serde_json::Result<Value> {
    let mut object = serde_json::to_value(second)?;
    object["unanswered"] = json!(unanswered(second));
    for (name, q) in PERCENTILES {
        if second.response_ns.is_some() && !carries(second, q) {
            object["response_ns"][name] = Value::Null;
        }
    }
    Ok(object)
}

/// The figures of a second in the order of [`COLUMNS`]; those are absent that are not known, or that too few responses
/// carry.
pub fn cells(second: &Second) -> [Option<u64>; COLUMNS.len()] {
    let response = second.response_ns;
    let carried = |q: f64, value: Option<u64>| value.filter(|_| carries(second, q));
    [
        Some(second.index),
        Some(second.start_ns),
        Some(second.length_ns),
        Some(second.scheduled),
        Some(second.sent),
        Some(second.ok),
        Some(second.failed),
        Some(unanswered(second)),
        Some(second.outstanding),
        carried(0.5, response.map(|response| response.p50)),
        carried(0.9, response.map(|response| response.p90)),
        carried(0.99, response.map(|response| response.p99)),
        carried(0.999, response.map(|response| response.p999)),
        response.map(|response| response.max),
        Some(second.bytes_sent),
        Some(second.bytes_received),
        Some(second.body_bytes),
        Some(second.connections_opened),
        Some(second.idle_closes),
        Some(second.worker_cpu_ns),
        Some(second.worker_stall_max_ns),
        second.process_cpu_ns,
    ]
}

fn record<T: AsRef<[u8]>>(cells: impl IntoIterator<Item = T>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(cells)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use record::{Failure, Interval, Phase, Series};
    use units::Nanos;

    use super::*;

    #[test]
    fn a_row_has_one_cell_per_column_and_absent_figures_are_empty() {
        let mut interval = Interval::default();
        let mut out = Vec::new();
        head(Form::Csv, &mut out).unwrap();
        row(Form::Csv, &Second::of(&interval, None), &mut out).unwrap();
        interval.counts.ok = 1;
        interval.slot(Series::Response).record(Nanos(1_000));
        interval.slot(Series::Service).record(Nanos(1_000));
        row(Form::Csv, &Second::of(&interval, Some(Nanos(7))), &mut out).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let cell = |row: usize, name: &str| {
            rows[row][COLUMNS.iter().position(|column| *column == name).unwrap()].to_owned()
        };
        assert_eq!(
            (cell(0, "ok"), cell(0, "response_p50_ns"), cell(0, "process_cpu_ns")),
            ("0".into(), "".into(), "".into())
        );
        assert_eq!((cell(1, "response_max_ns"), cell(1, "process_cpu_ns")), ("1000".into(), "7".into()));
    }

    /// If this fails, the p99.9 of a dozen responses is plotted.
    #[test]
    fn what_a_second_cannot_carry_is_absent_in_either_form() {
        // The fewest for p50, p90, p99 and p99.9.
        for (ok, carried) in [(5, 0), (6, 1), (35, 1), (36, 2), (367, 2), (368, 3), (3_687, 3), (3_688, 4)] {
            let mut interval = Interval::default();
            interval.counts.ok = ok;
            (0..ok).for_each(|_| interval.slot(Series::Response).record(Nanos(1_000)));
            let second = Second::of(&interval, None);
            let cells = cells(&second);
            let places = ["p50", "p90", "p99", "p999"].map(|name| {
                COLUMNS.iter().position(|column| *column == format!("response_{name}_ns")).unwrap()
            });
            let object = object(&second).unwrap();
            for (at, (place, (name, _))) in places.into_iter().zip(PERCENTILES).enumerate() {
                assert_eq!(cells[place].is_none(), at >= carried, "{name} of {ok}");
                assert_eq!(object["response_ns"][name].is_null(), at >= carried, "{name} of {ok}");
            }
            assert_eq!(object["response_ns"]["max"], 1_000);
        }
    }

    #[test]
    fn requests_without_a_response_have_a_column() {
        let mut interval = Interval::default();
        interval.add_failures(Failure::new(Outcome::RequestTimeout, Phase::Wait), 3);
        interval.add_failures(Failure::new(Outcome::AppError, Phase::Receive), 4);
        let second = Second::of(&interval, None);
        let at = |name: &str| COLUMNS.iter().position(|column| *column == name).unwrap();
        assert_eq!((cells(&second)[at("failed")], cells(&second)[at("unanswered")]), (Some(7), Some(3)));
        assert_eq!(object(&second).unwrap()["unanswered"], 3);
    }

    #[test]
    fn a_json_line_is_a_line_of_the_series_and_more() {
        let second = Second::of(&Interval::default(), None);
        let mut out = Vec::new();
        row(Form::Jsonl, &second, &mut out).unwrap();
        assert_eq!(out.last(), Some(&b'\n'));
        let mut object: Value = serde_json::from_slice(&out).unwrap();
        object.as_object_mut().unwrap().remove("unanswered");
        assert_eq!(serde_json::from_value::<Second>(object).unwrap(), second);
    }
}
