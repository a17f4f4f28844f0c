//! `requests.parquet`: one row per kept request, with its whole timeline.
//!
//! formats/record.md describes the columns.

use std::io::Write;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use record::{KeptRequest, Phase};
use units::Nanos;

use crate::columns::{Open, RowsWriter, begin, optional, required};

mod reader;

pub(crate) use reader::address;
pub use reader::{Row, Rows, read, read_all};

/// Few distinct texts, so each is written once per row group.
const TEXTS: [&str; 6] = ["target", "local", "server", "outcome", "failed_in", "blame"];

/// Facts about the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The start of the run, on the clock of the requests' timestamps.
    pub zero: Nanos,
    /// The same by the wall clock, RFC 3339.
    pub started: String,
    /// Which requests were kept, as requested: `all`, `slowest=100`, `sample=1%`.
    pub kept: String,
    /// The names of the kinds of requests, in order.
    pub targets: Vec<String>,
}

/// Writes the file to `W` as rows come.
pub struct Writer<W: Write + Send> {
    rows: RowsWriter<W, KeptRequest>,
    zero: Nanos,
    targets: Vec<ByteArray>,
}

impl<W: Write + Send> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, run: &Run) -> Result<Writer<W>, ParquetError> {
        let facts = [("started", run.started.as_str()), ("kept", &run.kept)];
        let rows = RowsWriter::new(begin(out, &schema(), &facts, &TEXTS)?);
        let targets = run.targets.iter().map(|name| ByteArray::from(name.as_str())).collect();
        Ok(Writer { rows, zero: run.zero, targets })
    }

    /// Adds rows; memory is bounded by one row group.
    ///
    /// # Errors
    ///
    /// Those of the underlying writer. The file cannot be finished after one.
    pub fn write(&mut self, requests: &[KeptRequest]) -> Result<(), ParquetError> {
        let (zero, targets) = (self.zero, &self.targets);
        self.rows.write(requests.iter().cloned(), |group, rows| columns(group, rows, zero, targets))
    }

    /// Writes the remaining rows and the footer, without which the file is unreadable. Returns the number of rows.
    ///
    /// # Errors
    ///
    /// Those of the underlying writer.
    pub fn finish(self) -> Result<u64, ParquetError> {
        let (zero, targets) = (self.zero, &self.targets);
        self.rows.finish(|group, rows| columns(group, rows, zero, targets))
    }
}

fn columns<W: Write + Send>(
    group: &mut Open<'_, W>,
    rows: &[KeptRequest],
    zero: Nanos,
    targets: &[ByteArray],
) -> Result<(), ParquetError> {
    let zero = zero.0;
    let text = |text: &'static str| ByteArray::from(text);
    required::<_, Int64Type, _>(group, rows, |row| row.n.cast_signed())?;
    required::<_, ByteArrayType, _>(group, rows, |row| target(targets, row.kind))?;
    optional::<_, Int32Type, _>(group, rows, |row| row.connection.map(u32::cast_signed))?;
    let address = |address: std::net::SocketAddr| ByteArray::from(address.to_string().as_str());
    optional::<_, ByteArrayType, _>(group, rows, |row| Some(address(row.carried?.local)))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| Some(address(row.carried?.server)))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.carried?.nth.cast_signed()))?;
    required::<_, ByteArrayType, _>(group, rows, |row| text(row.outcome().name()))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| Some(text(row.failure?.phase.name())))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| Some(text(row.failure?.blame.name())))?;
    optional::<_, Int32Type, _>(group, rows, |row| Some(i32::from(row.code?.as_status()?)))?;
    required::<_, Int64Type, _>(group, rows, |row| row.timeline.due_at().0.wrapping_sub(zero).cast_signed())?;
    required::<_, Int64Type, _>(group, rows, |row| row.age().0.cast_signed())?;
    optional::<_, Int64Type, _>(group, rows, |row| {
        row.timeline.is_complete().then(|| row.timeline.service().0.cast_signed())
    })?;
    for phase in Phase::ALL {
        optional::<_, Int64Type, _>(group, rows, |row| {
            row.phase(phase).map(|length| length.0.cast_signed())
        })?;
    }
    optional::<_, ByteArrayType, _>(group, rows, |row| {
        let code = row.code.filter(|code| code.as_status().is_none())?;
        Some(ByteArray::from(code.as_str()))
    })
}

fn target(targets: &[ByteArray], kind: u16) -> ByteArray {
    targets.get(usize::from(kind)).or(targets.first()).cloned().unwrap_or_else(|| ByteArray::from(""))
}

fn schema() -> String {
    let phases = Phase::ALL.map(|phase| format!("optional int64 {}_ns;", phase.name())).join("\n");
    format!(
        "message request {{
            required int64 n;
            required binary target (STRING);
            optional int32 connection;
            optional binary local (STRING);
            optional binary server (STRING);
            optional int64 nth;
            required binary outcome (STRING);
            optional binary failed_in (STRING);
            optional binary blame (STRING);
            optional int32 code;
            required int64 intended_ns;
            required int64 response_ns;
            optional int64 service_ns;
            {phases}
            optional binary code_text (STRING);
        }}"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Row;
    use record::{Carried, Failure, Outcome, Timeline};

    use super::*;
    use crate::columns::GROUP;

    pub(crate) fn answered(n: u64) -> KeptRequest {
        let mut timeline = Timeline::due(Nanos(1_000 + n));
        for (phase, at) in [
            (Phase::ScheduleLag, 1_010),
            (Phase::PoolWait, 1_015),
            (Phase::Send, 1_020),
            (Phase::Wait, 1_050),
            (Phase::Receive, 1_060),
            (Phase::ClientLag, 1_100),
        ] {
            timeline.end(phase, Nanos(at + n));
        }
        let ended = timeline.last();
        let carried = Carried {
            local: "127.0.0.1:41000".parse().unwrap(),
            server: "[::1]:80".parse().unwrap(),
            nth: n / 2,
        };
        KeptRequest {
            n,
            kind: 1,
            connection: Some(3),
            carried: Some(carried),
            timeline,
            ended,
            failure: None,
            code: Some(units::Code::status(200)),
        }
    }

    pub(crate) fn given_up(n: u64) -> KeptRequest {
        let mut timeline = Timeline::due(Nanos(1_000));
        timeline.end(Phase::ScheduleLag, Nanos(1_001));
        let failure = Some(Failure::new(Outcome::CheckoutTimeout, Phase::PoolWait));
        let ended = Nanos(1_500);
        KeptRequest { n, kind: 0, connection: None, carried: None, timeline, ended, failure, code: None }
    }

    pub(super) fn file(requests: &[KeptRequest]) -> std::fs::File {
        let targets = ["GET /a".to_owned(), "GET /b".to_owned()].to_vec();
        let started = "2026-11-22T00:00:00Z".to_owned();
        let run = Run { zero: Nanos(900), started, kept: "all".to_owned(), targets };
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Writer::new(&mut file, &run).unwrap();
        writer.write(requests).unwrap();
        assert_eq!(writer.finish().unwrap(), requests.len() as u64);
        file
    }

    fn rows(requests: &[KeptRequest]) -> Vec<Row> {
        let file = file(requests);
        let reader = SerializedFileReader::new(file).unwrap();
        let facts = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(facts.iter().any(|fact| fact.key == "parallax.kept" && fact.value.as_deref() == Some("all")));
        reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
    }

    /// If this fails, a column contains the values of another one.
    #[test]
    fn every_column_has_its_own_values() {
        let refused = KeptRequest { code: units::Code::new(b"40001/1213"), ..given_up(7) };
        let rows = rows(&[answered(5), given_up(6), refused]);
        let of = |row: &Row| -> Vec<String> {
            row.get_column_iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        let answered = "n=5 target=\"GET /b\" connection=3 local=\"127.0.0.1:41000\" \
            server=\"[::1]:80\" nth=2 outcome=\"ok\" failed_in=null blame=null code=200 \
            intended_ns=105 response_ns=100 service_ns=45 schedule_lag_ns=10 pool_wait_ns=5 resolve_ns=null \
            connect_ns=null tls_ns=null auth_ns=null send_ns=5 wait_ns=30 receive_ns=10 client_lag_ns=40 code_text=null";
        let given_up = "n=6 target=\"GET /a\" connection=null local=null server=null nth=null \
            outcome=\"checkout_timeout\" \
            failed_in=\"pool_wait\" blame=\"pool\" code=null intended_ns=100 response_ns=500 service_ns=null \
            schedule_lag_ns=1 pool_wait_ns=499 resolve_ns=null connect_ns=null tls_ns=null auth_ns=null \
            send_ns=null wait_ns=null receive_ns=null client_lag_ns=null code_text=null";
        assert_eq!(of(&rows[0]).join(" "), answered);
        assert_eq!(of(&rows[1]).join(" "), given_up);
        assert!(of(&rows[2]).ends_with(&["code_text=\"40001/1213\"".to_owned()]));
    }

    #[test]
    fn no_row_is_lost_between_two_groups() {
        let requests: Vec<KeptRequest> = (0..2 * GROUP as u64 + 7).map(answered).collect();
        let rows = rows(&requests);
        assert_eq!(rows.len(), requests.len());
        let numbers = rows.iter().map(|row| row.get_column_iter().next().unwrap().1.to_string());
        assert!(numbers.eq((0..requests.len()).map(|n| n.to_string())));
    }

    #[test]
    fn a_file_without_rows_can_be_read() {
        assert!(rows(&[]).is_empty());
    }
}
