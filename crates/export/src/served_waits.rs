//! The columns of `served.parquet` that say what ended the long waits of a request.
//!
//! Some files of version 1.0 and 1.1 do not have them. `served` alone uses this.

use std::io::Write;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use record::{Owner, Served, Stop, Waits, escape_text};
use units::Nanos;

use crate::columns::{Group, Open, RowsError, damaged, optional, text, unsigned};
use crate::requests::address;
use crate::served::{LONGEST_COMM, narrow};

/// The columns, in their order.
pub(crate) const SCHEMA: &str = "
            optional int64 contended_ns;
            optional int64 socket_contended_ns;
            optional int64 stopped_unread_ns;
            optional int64 stopped_ns;
            optional binary stopped_by (STRING);
            optional int64 timer_ns;
            optional int64 upstream_ns;
            optional binary upstream (STRING);
            optional int64 owner_tid;
            optional binary owner_comm (STRING);
            optional int32 owner_digest;
            optional int64 owner_ns;
            optional boolean held_back;";

/// What stands for the freezer where the number of a signal is expected.
const FREEZER: &str = "freezer";

/// Writes the columns of `rows`.
pub(crate) fn write<W: Write + Send>(group: &mut Open<'_, W>, rows: &[Served]) -> Result<(), ParquetError> {
    let length =
        |row: &Served, of: fn(&Waits) -> Nanos| row.waits.as_ref().map(|all| of(all).0.cast_signed());
    let bytes = |text: &str| ByteArray::from(text);
    let owner = |row: &Served, of: fn(&Owner) -> i64| row.waits.as_ref()?.owner.as_ref().map(of);
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.contended.0.cast_signed()))?;
    optional::<_, Int64Type, _>(group, rows, |row| Some(row.socket_contended.0.cast_signed()))?;
    optional::<_, Int64Type, _>(group, rows, |row| length(row, |waits| waits.stopped_unread))?;
    optional::<_, Int64Type, _>(group, rows, |row| length(row, |waits| waits.stopped))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| {
        Some(match row.waits.as_ref()?.stop? {
            Stop::Freezer => bytes(FREEZER),
            Stop::Signal(number) => bytes(&number.to_string()),
        })
    })?;
    optional::<_, Int64Type, _>(group, rows, |row| length(row, |waits| waits.timer))?;
    optional::<_, Int64Type, _>(group, rows, |row| length(row, |waits| waits.upstream))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| {
        Some(bytes(&row.waits.as_ref()?.upstream_at?.to_string()))
    })?;
    optional::<_, Int64Type, _>(group, rows, |row| owner(row, |owner| i64::from(owner.tid)))?;
    optional::<_, ByteArrayType, _>(group, rows, |row| {
        Some(bytes(&row.waits.as_ref()?.owner.as_ref()?.comm))
    })?;
    optional::<_, Int32Type, _>(group, rows, |row| {
        row.waits.as_ref()?.owner.as_ref()?.digest.map(u32::cast_signed)
    })?;
    optional::<_, Int64Type, _>(group, rows, |row| owner(row, |owner| owner.time.0.cast_signed()))?;
    optional::<_, BoolType, _>(group, rows, |row| row.waits.as_ref().map(|waits| waits.held_back))
}

/// The columns of one row group.
pub(crate) struct WaitColumns {
    contended: Vec<Option<i64>>,
    socket_contended: Vec<Option<i64>>,
    stopped_unread: Vec<Option<i64>>,
    stopped: Vec<Option<i64>>,
    stopped_by: Vec<Option<ByteArray>>,
    timer: Vec<Option<i64>>,
    upstream: Vec<Option<i64>>,
    upstream_at: Vec<Option<ByteArray>>,
    owner_tid: Vec<Option<i64>>,
    owner_comm: Vec<Option<ByteArray>>,
    owner_digest: Vec<Option<i32>>,
    owner_time: Vec<Option<i64>>,
    held_back: Vec<Option<bool>>,
}

impl WaitColumns {
    pub(crate) fn of(group: &Group<'_>) -> Result<WaitColumns, RowsError> {
        Ok(WaitColumns {
            contended: group.optional::<Int64Type>("contended_ns")?,
            socket_contended: group.optional::<Int64Type>("socket_contended_ns")?,
            stopped_unread: group.optional::<Int64Type>("stopped_unread_ns")?,
            stopped: group.optional::<Int64Type>("stopped_ns")?,
            stopped_by: group.optional::<ByteArrayType>("stopped_by")?,
            timer: group.optional::<Int64Type>("timer_ns")?,
            upstream: group.optional::<Int64Type>("upstream_ns")?,
            upstream_at: group.optional::<ByteArrayType>("upstream")?,
            owner_tid: group.optional::<Int64Type>("owner_tid")?,
            owner_comm: group.optional::<ByteArrayType>("owner_comm")?,
            owner_digest: group.optional::<Int32Type>("owner_digest")?,
            owner_time: group.optional::<Int64Type>("owner_ns")?,
            held_back: group.optional::<BoolType>("held_back")?,
        })
    }

    /// How long others ran while it waited for a CPU and while its reader did: of these times, all of them where a
    /// record does not say.
    pub(crate) fn contended(&self, at: usize, waited: [Nanos; 2]) -> Result<[Nanos; 2], RowsError> {
        let of = |column: &[Option<i64>], waited: Nanos, name: &str| -> Result<Nanos, RowsError> {
            column[at].map_or(Ok(waited), |ns| Ok(Nanos(unsigned(ns, name)?)))
        };
        Ok([
            of(&self.contended, waited[0], "contended_ns")?,
            of(&self.socket_contended, waited[1], "socket_contended_ns")?,
        ])
    }

    /// The waits of one row; `None` if nothing is known of them.
    pub(crate) fn row(&self, at: usize) -> Result<Option<Waits>, RowsError> {
        let length = |column: &[Option<i64>], name: &str| -> Result<Nanos, RowsError> {
            column[at].map_or(Ok(Nanos::ZERO), |ns| Ok(Nanos(unsigned(ns, name)?)))
        };
        if self.held_back[at].is_none() {
            return Ok(None);
        }
        let upstream_at = self.upstream_at[at].as_ref();
        Ok(Some(Waits {
            stopped_unread: length(&self.stopped_unread, "stopped_unread_ns")?,
            stopped: length(&self.stopped, "stopped_ns")?,
            stop: self.stopped_by[at].as_ref().map(stop).transpose()?,
            timer: length(&self.timer, "timer_ns")?,
            upstream: length(&self.upstream, "upstream_ns")?,
            upstream_at: upstream_at.map(|bytes| address(bytes, "upstream")).transpose()?,
            owner: self.owner(at)?,
            held_back: self.held_back[at] == Some(true),
        }))
    }

    fn owner(&self, at: usize) -> Result<Option<Owner>, RowsError> {
        let (Some(tid), Some(time), Some(comm)) =
            (self.owner_tid[at], self.owner_time[at], &self.owner_comm[at])
        else {
            return Ok(None);
        };
        let (tid, time) = (narrow(tid, "owner_tid")?, Nanos(unsigned(time, "owner_ns")?));
        let comm = text(comm, "owner_comm")?;
        if comm.len() > LONGEST_COMM {
            return Err(damaged(format!("owner_comm has {} bytes", comm.len())));
        }
        let digest = self.owner_digest[at].map(i32::cast_unsigned);
        Ok(Some(Owner { tid, comm: escape_text(comm), digest, time }))
    }
}

fn stop(bytes: &ByteArray) -> Result<Stop, RowsError> {
    match text(bytes, "stopped_by")? {
        FREEZER => Ok(Stop::Freezer),
        signal => match signal.parse() {
            Ok(signal) => Ok(Stop::Signal(signal)),
            Err(_) => Err(damaged(format!("stopped_by is `{}`", escape_text(signal)))),
        },
    }
}
