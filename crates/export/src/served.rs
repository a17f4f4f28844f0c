//! `served.parquet`: one row per request that a server's observer kept, with where its time went.
//!
//! formats/record.md describes the columns. `watch` writes the file, `explain` reads it.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use record::{Culprit, Part, Protocol, Rows, Served, Sleep, escape_text};
use units::Nanos;

use crate::columns::{
    Group, Open, RowsError, RowsFile, RowsWriter, begin, damaged, optional, required, text, unsigned,
};
use crate::requests::address;
use crate::served_waits::{self, WaitColumns};

/// Few distinct texts, so each is written once per row group.
const TEXTS: [&str; 7] =
    ["peer", "local", "protocol", "culprit_comm", "stopped_by", "upstream", "owner_comm"];

/// The kernel's thread names have 15 bytes, each of which may be escaped.
pub(crate) const LONGEST_COMM: usize = 15 * 6;

/// Facts about the whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The start of the record, on the clock of the requests' timestamps.
    pub zero: Nanos,
    /// The same by the wall clock, RFC 3339.
    pub started: String,
    /// Which requests were kept: `all`, `slowest=100`, `sample=1%`.
    pub kept: String,
}

/// Writes the file to `W` as rows come.
pub struct Writer<W: Write + Send> {
    rows: RowsWriter<W, Served>,
    zero: Nanos,
}

impl<W: Write + Send> Writer<W> {
    /// Begins the file.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn new(out: W, record: &Record) -> Result<Writer<W>, ParquetError> {
        let facts = [("started", record.started.as_str()), ("kept", &record.kept)];
        let rows = RowsWriter::new(begin(out, &schema(), &facts, &TEXTS)?);
        Ok(Writer { rows, zero: record.zero })
    }

    /// Adds rows; memory is bounded by one row group.
    ///
    /// # Errors
    ///
    /// Those of the underlying writer. The file cannot be finished after one.
    pub fn write(&mut self, requests: impl IntoIterator<Item = Served>) -> Result<(), ParquetError> {
        let zero = self.zero;
        self.rows.write(requests, |group, rows| columns(group, rows, zero))
    }

    /// Writes the remaining rows and the footer, without which the file is unreadable. Returns the number of rows.
    ///
    /// # Errors
    ///
    /// Those of the underlying writer.
    pub fn finish(self) -> Result<u64, ParquetError> {
        let zero = self.zero;
        self.rows.finish(|group, rows| columns(group, rows, zero))
    }
}

fn columns<W: Write + Send>(
    group: &mut Open<'_, W>,
    rows: &[Served],
    zero: Nanos,
) -> Result<(), ParquetError> {
    let zero = zero.0;
    let at = |at: Nanos| at.0.wrapping_sub(zero).cast_signed();
    let length = |length: Nanos| length.0.cast_signed();
    let end = |end: Option<SocketAddr>| Some(ByteArray::from(end?.to_string().as_str()));
    let culprit = |row: &Served, of: fn(&Culprit) -> u64| Some(of(row.culprit.as_ref()?).cast_signed());
    required::<_, Int64Type, _>(group, rows, |row| row.connection.cast_signed())?;
    optional::<_, ByteArrayType, _>(group, rows, |row| end(row.peer))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| end(row.local))?;
    required::<_, Int64Type, _>(group, rows, |row| row.n.cast_signed())?;
    required::<_, ByteArrayType, _>(group, rows, |row| ByteArray::from(row.protocol.name()))?;
    required::<_, Int32Type, _>(group, rows, |row| row.digest.cast_signed())?;
    optional::<_, Int32Type, _>(group, rows, |row| Some(row.session.cast_signed()))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.rows?.sent.cast_signed()))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.rows?.affected.cast_signed()))?;
    optional::<_, Int32Type, _>(group, rows, |row| row.status.map(i32::from))?;
    optional::<_, Int64Type, _>(group, rows, |row| row.class)?;
    optional::<_, Int64Type, _>(group, rows, |row| row.arrived.map(at))?;
    required::<_, Int64Type, _>(group, rows, |row| at(row.read))?;
    required::<_, Int64Type, _>(group, rows, |row| length(row.socket_run_queue))?;
    required::<_, Int64Type, _>(group, rows, |row| length(row.socket_throttled))?;
    required::<_, Int64Type, _>(group, rows, |row| at(row.first_sent))?;
    required::<_, Int64Type, _>(group, rows, |row| at(row.done))?;
    required::<_, Int64Type, _>(group, rows, |row| length(row.response()))?;
    for part in Part::ALL {
        required::<_, Int64Type, _>(group, rows, |row| length(row.part(part)))?;
    }
    required::<_, Int64Type, _>(group, rows, |row| length(row.preempted))?;
    required::<_, Int32Type, _>(group, rows, |row| row.preemptions.cast_signed())?;
    optional::<_, Int64Type, _>(group, rows, |row| culprit(row, |culprit| u64::from(culprit.pid)))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| {
        Some(ByteArray::from(row.culprit.as_ref()?.comm.as_str()))
    })?;
    optional::<_, Int64Type, _>(group, rows, |row| culprit(row, |culprit| culprit.time.0))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(i64::from(row.sleep?.call)))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(i64::from(row.sleep?.fd?)))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.sleep?.time.0.cast_signed()))?;
    required::<_, Int64Type, _>(group, rows, |row| i64::from(row.pid))?;
    required::<_, Int64Type, _>(group, rows, |row| i64::from(row.tid))?;
    required::<_, Int32Type, _>(group, rows, |row| i32::from(row.hand_offs))?;
    optional::<_, Int32Type, _>(group, rows, |row| Some(row.statements.cast_signed()))?;
    required::<_, Int64Type, _>(group, rows, |row| row.request_bytes.cast_signed())?;
    required::<_, Int64Type, _>(group, rows, |row| row.response_bytes.cast_signed())?;
    served_waits::write(group, rows)
}

fn schema() -> String {
    let parts = Part::ALL.map(|part| format!("required int64 {}_ns;", part.name())).join("\n");
    format!(
        "message served {{
            required int64 connection;
            optional binary peer (STRING);
            optional binary local (STRING);
            required int64 n;
            required binary protocol (STRING);
            required int32 digest;
            optional int32 session;
            optional int64 rows_sent;
            optional int64 rows_affected;
            optional int32 status;
            optional int64 class;
            optional int64 arrived_ns;
            required int64 read_ns;
            required int64 socket_run_queue_ns;
            required int64 socket_throttled_ns;
            required int64 first_sent_ns;
            required int64 done_ns;
            required int64 response_ns;
            {parts}
            required int64 preempted_ns;
            required int32 preemptions;
            optional int64 culprit_pid;
            optional binary culprit_comm (STRING);
            optional int64 culprit_ns;
            optional int64 sleep_call;
            optional int64 sleep_fd;
            optional int64 sleep_ns;
            required int64 pid;
            required int64 tid;
            required int32 hand_offs;
            optional int32 statements;
            required int64 request_bytes;
            required int64 response_bytes;
            {}
        }}",
        served_waits::SCHEMA
    )
}

/// Calls `take` with each request of `file`, in the file's order; `zero` is the record's start on the monotonic
/// clock.
///
/// # Errors
///
/// [`RowsError`] when it is not such a file, has over `most` rows, or a row breaks an invariant of [`Served`].
///
/// # Cost
///
/// One pass; the memory of one row group, about 30 MB.
pub fn read(file: File, most: u64, zero: Nanos, take: impl FnMut(Served)) -> Result<u64, RowsError> {
    each_row(&RowsFile::open(file, most)?, zero, take)
}

/// All requests of `file`, in the file's order, in as much memory as they need.
///
/// # Errors
///
/// As [`read`].
pub fn read_all(file: File, most: u64, zero: Nanos) -> Result<Vec<Served>, RowsError> {
    let file = RowsFile::open(file, most)?;
    let mut kept = Vec::with_capacity(usize::try_from(file.rows).unwrap_or(0));
    each_row(&file, zero, |request| kept.push(request))?;
    Ok(kept)
}

fn each_row(file: &RowsFile, zero: Nanos, mut take: impl FnMut(Served)) -> Result<u64, RowsError> {
    let mut rows = 0;
    file.each_group(|group| {
        let columns = Columns::of(group)?;
        for at in 0..group.rows {
            take(columns.row(at, zero)?);
        }
        rows += group.rows as u64;
        Ok(())
    })?;
    Ok(rows)
}

/// The numeric columns by name, and the text columns.
struct Columns {
    long: Vec<(&'static str, Vec<i64>)>,
    long_optional: Vec<(&'static str, Vec<Option<i64>>)>,
    short: Vec<(&'static str, Vec<i32>)>,
    status: Vec<Option<i32>>,
    session: Vec<Option<i32>>,
    parts: [Vec<i64>; Part::COUNT],
    peer: Vec<Option<ByteArray>>,
    local: Vec<Option<ByteArray>>,
    protocol: Vec<ByteArray>,
    culprit_comm: Vec<Option<ByteArray>>,
    waits: WaitColumns,
    /// `None` in a file of before there was such a column.
    statements: Option<Vec<Option<i32>>>,
}

const LONG: [&str; 12] = [
    "connection",
    "n",
    "read_ns",
    "socket_run_queue_ns",
    "socket_throttled_ns",
    "first_sent_ns",
    "done_ns",
    "preempted_ns",
    "pid",
    "tid",
    "request_bytes",
    "response_bytes",
];

const LONG_OPTIONAL: [&str; 9] = [
    "class",
    "arrived_ns",
    "culprit_pid",
    "culprit_ns",
    "rows_sent",
    "rows_affected",
    "sleep_call",
    "sleep_fd",
    "sleep_ns",
];

const SHORT: [&str; 3] = ["digest", "preemptions", "hand_offs"];

impl Columns {
    fn of(group: &Group<'_>) -> Result<Columns, RowsError> {
        let mut parts = [const { Vec::new() }; Part::COUNT];
        for (part, column) in Part::ALL.into_iter().zip(&mut parts) {
            *column = group.required::<Int64Type>(&format!("{}_ns", part.name()))?;
        }
        let long = LONG.into_iter().map(|name| Ok((name, group.required::<Int64Type>(name)?)));
        let long_optional =
            LONG_OPTIONAL.into_iter().map(|name| Ok((name, group.optional::<Int64Type>(name)?)));
        let short = SHORT.into_iter().map(|name| Ok((name, group.required::<Int32Type>(name)?)));
        Ok(Columns {
            long: long.collect::<Result<_, RowsError>>()?,
            long_optional: long_optional.collect::<Result<_, RowsError>>()?,
            short: short.collect::<Result<_, RowsError>>()?,
            status: group.optional::<Int32Type>("status")?,
            session: group.optional::<Int32Type>("session")?,
            parts,
            peer: group.optional::<ByteArrayType>("peer")?,
            local: group.optional::<ByteArrayType>("local")?,
            protocol: group.required::<ByteArrayType>("protocol")?,
            culprit_comm: group.optional::<ByteArrayType>("culprit_comm")?,
            waits: WaitColumns::of(group)?,
            statements: group.column::<Int32Type>("statements")?,
        })
    }

    fn row(&self, at: usize, zero: Nanos) -> Result<Served, RowsError> {
        let long = |name: &str| find(&self.long, name)[at];
        let short = |name: &str| find(&self.short, name)[at].cast_unsigned();
        let number = |name: &str| unsigned(long(name), name);
        let instant = |ns: i64| Nanos(zero.0.wrapping_add(ns.cast_unsigned()));
        let mut parts = [Nanos::ZERO; Part::COUNT];
        for (into, (part, column)) in parts.iter_mut().zip(Part::ALL.into_iter().zip(&self.parts)) {
            *into = Nanos(unsigned(column[at], part.name())?);
        }
        let end =
            |bytes: &Option<ByteArray>, name| bytes.as_ref().map(|bytes| address(bytes, name)).transpose();
        let protocol = text(&self.protocol[at], "protocol")?;
        let socket_run_queue = Nanos(number("socket_run_queue_ns")?);
        let [contended, socket_contended] =
            self.waits.contended(at, [parts[Part::RunQueue as usize], socket_run_queue])?;
        let statements = self.statements.as_ref().and_then(|statements| statements[at]);
        let served = Served {
            connection: number("connection")?,
            peer: end(&self.peer[at], "peer")?,
            local: end(&self.local[at], "local")?,
            n: number("n")?,
            arrived: find(&self.long_optional, "arrived_ns")[at].map(instant),
            read: instant(long("read_ns")),
            socket_run_queue,
            socket_throttled: Nanos(number("socket_throttled_ns")?),
            first_sent: instant(long("first_sent_ns")),
            done: instant(long("done_ns")),
            parts,
            preempted: Nanos(number("preempted_ns")?),
            preemptions: short("preemptions"),
            culprit: self.culprit(at)?,
            contended,
            socket_contended,
            waits: self.waits.row(at)?.map(Box::new),
            pid: narrow(long("pid"), "pid")?,
            tid: narrow(long("tid"), "tid")?,
            hand_offs: narrow(i64::from(short("hand_offs")), "hand_offs")?,
            protocol: Protocol::from_name(protocol)
                .ok_or_else(|| damaged(format!("`{}` is not known as a protocol", escape_text(protocol))))?,
            digest: short("digest"),
            // Files of earlier versions do not have it.
            session: self.session[at].map_or(0, i32::cast_unsigned),
            rows: self.rows(at)?,
            sleep: self.sleep(at)?,
            status: self.status[at].map(|status| narrow(i64::from(status), "status")).transpose()?,
            class: find(&self.long_optional, "class")[at],
            statements: statements.map_or(1, i32::cast_unsigned),
            request_bytes: number("request_bytes")?,
            response_bytes: number("response_bytes")?,
        };
        if !served.is_lawful() {
            let (connection, n) = (served.connection, served.n);
            return Err(damaged(format!(
                "the parts of request {n} of connection {connection} are not its time"
            )));
        }
        Ok(served)
    }

    fn rows(&self, at: usize) -> Result<Option<Rows>, RowsError> {
        let optional = |name: &str| find(&self.long_optional, name)[at];
        let (Some(sent), Some(affected)) = (optional("rows_sent"), optional("rows_affected")) else {
            return Ok(None);
        };
        Ok(Some(Rows { sent: unsigned(sent, "rows_sent")?, affected: unsigned(affected, "rows_affected")? }))
    }

    fn sleep(&self, at: usize) -> Result<Option<Sleep>, RowsError> {
        let optional = |name: &str| find(&self.long_optional, name)[at];
        let (Some(call), Some(time)) = (optional("sleep_call"), optional("sleep_ns")) else {
            return Ok(None);
        };
        let fd = optional("sleep_fd").map(|fd| narrow(fd, "sleep_fd")).transpose()?;
        Ok(Some(Sleep { call: narrow(call, "sleep_call")?, fd, time: Nanos(unsigned(time, "sleep_ns")?) }))
    }

    fn culprit(&self, at: usize) -> Result<Option<Culprit>, RowsError> {
        let optional = |name: &str| find(&self.long_optional, name)[at];
        let (Some(pid), Some(time), Some(comm)) =
            (optional("culprit_pid"), optional("culprit_ns"), &self.culprit_comm[at])
        else {
            return Ok(None);
        };
        let (pid, time) = (narrow(pid, "culprit_pid")?, Nanos(unsigned(time, "culprit_ns")?));
        let comm = text(comm, "culprit_comm")?;
        if comm.len() > LONGEST_COMM {
            return Err(damaged(format!("culprit_comm has {} bytes", comm.len())));
        }
        Ok(Some(Culprit { pid, comm: escape_text(comm), time }))
    }
}

fn find<'a, T>(columns: &'a [(&'static str, Vec<T>)], name: &str) -> &'a [T] {
    let column = columns.iter().find(|(of, _)| *of == name);
    &column.expect("every name asked for is in the lists above").1
}

pub(crate) fn narrow<T: TryFrom<i64>>(value: i64, name: &str) -> Result<T, RowsError> {
    T::try_from(value).map_err(|_| damaged(format!("{name} is {value}")))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom};

    use proptest::prelude::*;
    use record::{Owner, Stop, Waits};

    use super::*;
    use crate::columns::GROUP;

    fn served(n: u64) -> Served {
        let mut parts = [Nanos::ZERO; Part::COUNT];
        parts[Part::OnCpu as usize] = Nanos(600 + n);
        parts[Part::RunQueue as usize] = Nanos(400);
        Served {
            connection: 7,
            peer: Some("10.0.0.2:41000".parse().unwrap()),
            local: n.is_multiple_of(2).then(|| "[::1]:80".parse().unwrap()),
            n,
            arrived: n.is_multiple_of(3).then_some(Nanos(1_900)),
            read: Nanos(2_000),
            socket_run_queue: Nanos::ZERO,
            socket_throttled: Nanos::ZERO,
            first_sent: Nanos(2_500),
            done: Nanos(3_000 + n),
            parts,
            preempted: Nanos(400),
            preemptions: 3,
            culprit: n.is_multiple_of(5).then(|| Culprit {
                pid: u32::MAX,
                comm: "hog".to_owned(),
                time: Nanos(9),
            }),
            contended: Nanos(300),
            socket_contended: Nanos::ZERO,
            waits: n.is_multiple_of(4).then(|| Box::new(waits(n))),
            pid: 10,
            tid: 11,
            hand_offs: u16::MAX,
            protocol: Protocol::ALL[(n % 6) as usize],
            digest: u32::MAX,
            session: 9,
            rows: n.is_multiple_of(3).then_some(Rows { sent: 5, affected: n }),
            sleep: n.is_multiple_of(4).then(|| Sleep {
                call: 202,
                fd: n.is_multiple_of(8).then_some(17),
                time: Nanos(3),
            }),
            status: (n % 2 == 1).then_some(503),
            class: n.is_multiple_of(7).then_some(-1),
            request_bytes: 100,
            statements: 1,
            response_bytes: 200,
        }
    }

    fn waits(n: u64) -> Waits {
        let owner = Owner { tid: 12, comm: "owner".to_owned(), digest: Some(3), time: Nanos(30) };
        Waits {
            stopped_unread: Nanos(if n.is_multiple_of(3) { 5 } else { 0 }),
            stopped: Nanos(6),
            stop: Some(if n.is_multiple_of(8) { Stop::Freezer } else { Stop::Signal(19) }),
            timer: Nanos(7),
            upstream: Nanos(8),
            upstream_at: n.is_multiple_of(8).then(|| "10.0.0.9:3306".parse().unwrap()),
            owner: n.is_multiple_of(8).then_some(owner),
            held_back: n.is_multiple_of(16),
        }
    }

    fn file(requests: &[Served]) -> File {
        let started = "2026-11-22T00:00:00Z".to_owned();
        let record = Record { zero: Nanos(2_200), started, kept: "all".to_owned() };
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Writer::new(&mut file, &record).unwrap();
        writer.write(requests.iter().cloned()).unwrap();
        assert_eq!(writer.finish().unwrap(), requests.len() as u64);
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    /// Timestamps before the record's start are kept too: a request may be in flight when it begins.
    #[test]
    fn requests_read_back_as_they_were() {
        let requests: Vec<_> = (0..GROUP as u64 + 100).map(served).collect();
        let mut read_back = Vec::new();
        let rows = read(file(&requests), u64::MAX, Nanos(2_200), |request| read_back.push(request)).unwrap();
        assert_eq!((rows, read_back == requests), (requests.len() as u64, true));
    }

    /// If this fails, a wrong decomposition is shown as if it had been measured.
    #[test]
    fn a_row_whose_parts_are_not_its_time_is_refused() {
        let mut wrong = served(1);
        wrong.parts[0] += Nanos(1);
        let error = read(file(&[wrong]), u64::MAX, Nanos(2_200), drop).unwrap_err().to_string();
        assert!(error.starts_with("the parts of request 1 of connection 7 are not its time;"), "{error}");
    }

    proptest! {
        /// Any damage to a file gives an error or a consistent request, never a panic.
        #[test]
        fn a_damaged_file_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = Vec::new();
            file(&[served(1), served(10)]).read_to_end(&mut bytes).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let mut damaged = tempfile::tempfile().unwrap();
            damaged.write_all(&bytes).unwrap();
            damaged.seek(SeekFrom::Start(0)).unwrap();
            let _ = read(damaged, u64::MAX, Nanos(2_200), |request| assert!(request.is_lawful()));
        }
    }
}
