//! A row a second: JSON lines, which are those of the record's series, and CSV.

use std::io::{self, Write};

use record::Second;

/// The columns of the CSV form. Times are in nanoseconds; a figure that is absent leaves its cell empty.
const COLUMNS: [&str; 21] = [
    "index",
    "start_ns",
    "length_ns",
    "scheduled",
    "sent",
    "ok",
    "failed",
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
pub enum Form {
    /// The same object as a line of `series.ndjson`.
    Jsonl,
    /// With a line of column names before the first row.
    Csv,
}

/// What stands before the first row.
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

/// The row of one second, with its line end.
///
/// # Errors
///
/// Those of `out`.
pub fn row(form: Form, second: &Second, out: &mut dyn Write) -> io::Result<()> {
    match form {
        Form::Jsonl => {
            serde_json::to_writer(&mut *out, second)?;
            out.write_all(b"\n")
        }
        Form::Csv => record(cells(second), out),
    }
}

fn cells(second: &Second) -> [String; COLUMNS.len()] {
    let response = second.response_ns;
    let optional = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    [
        second.index.to_string(),
        second.start_ns.to_string(),
        second.length_ns.to_string(),
        second.scheduled.to_string(),
        second.sent.to_string(),
        second.ok.to_string(),
        second.failed.to_string(),
        second.outstanding.to_string(),
        optional(response.map(|response| response.p50)),
        optional(response.map(|response| response.p90)),
        optional(response.map(|response| response.p99)),
        optional(response.map(|response| response.p999)),
        optional(response.map(|response| response.max)),
        second.bytes_sent.to_string(),
        second.bytes_received.to_string(),
        second.body_bytes.to_string(),
        second.connections_opened.to_string(),
        second.idle_closes.to_string(),
        second.worker_cpu_ns.to_string(),
        second.worker_stall_max_ns.to_string(),
        optional(second.process_cpu_ns),
    ]
}

fn record<T: AsRef<[u8]>>(cells: impl IntoIterator<Item = T>, out: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(cells)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use record::{Interval, Series};
    use units::Nanos;

    use super::*;

    #[test]
    fn a_row_has_a_cell_a_column_and_absent_ones_are_empty() {
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

    #[test]
    fn a_json_line_is_a_line_of_the_series() {
        let second = Second::of(&Interval::default(), None);
        let mut out = Vec::new();
        row(Form::Jsonl, &second, &mut out).unwrap();
        assert_eq!(out.last(), Some(&b'\n'));
        assert_eq!(serde_json::from_slice::<Second>(&out).unwrap(), second);
    }
}
