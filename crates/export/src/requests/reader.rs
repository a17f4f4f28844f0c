//! Reads `requests.parquet` back, row by row. The file may be hostile: inconsistent rows are an error.

use std::collections::HashSet;
use std::fs::File;
use std::net::SocketAddr;
use std::rc::Rc;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use record::{Blame, Carried, Failure, Outcome, Phase, escape_text};
use units::{Code, Nanos};

use crate::columns::{Group, RowsError, RowsFile, damaged, text, unsigned};

/// More than a list of targets or a scenario can name in a readable report.
const MOST_TARGETS: usize = 100_000;

/// One request of the file. Its times count from the start of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its number in the run, from 0.
    pub n: u64,
    /// The name of its target, escaped.
    pub target: Rc<str>,
    /// The connection that it used; `None` if it never got one.
    pub connection: Option<u32>,
    /// The ends of that connection.
    pub carried: Option<Carried>,
    /// `None`: it got a response, and every check passed.
    pub failure: Option<Failure>,
    /// The application's own code, such as the HTTP status.
    pub code: Option<Code>,
    /// When it was due; a request that was due before the start of the run is due at the start.
    pub intended: Nanos,
    /// Intended start → read, or until it was given up: the sum of `phases`.
    pub response: Nanos,
    /// First byte sent → last byte arrived; `None` without a whole response.
    pub service: Option<Nanos>,
    /// In the order of [`Phase::ALL`]; `None` for a phase that did not take place.
    pub phases: [Option<Nanos>; Phase::COUNT],
}

impl Row {
    /// The end of `phase`, which is the begin of the next one, from the start of the run.
    pub fn end_of(&self, phase: Phase) -> Nanos {
        let until: u64 = self.phases[..=phase as usize].iter().flatten().map(|length| length.0).sum();
        Nanos(self.intended.0.saturating_add(until))
    }

    /// The length of `phase`; `None` if it did not take place.
    pub fn phase(&self, phase: Phase) -> Option<Nanos> {
        self.phases[phase as usize]
    }
}

/// Facts about the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rows {
    /// Which requests were kept, as requested: `all`, `slowest=100`, `sample=1%`.
    pub kept: String,
    /// The number of rows.
    pub rows: u64,
}

/// Calls `take` with each row of `file`, in the file's order.
///
/// # Errors
///
/// [`RowsError`] when it is not such a file, has over `most` rows, or its rows are inconsistent.
///
/// # Cost
///
/// One pass; the memory of one row group, about 20 MB.
pub fn read(file: File, most: u64, take: impl FnMut(Row)) -> Result<Rows, RowsError> {
    each_row(&RowsFile::open(file, most)?, take)
}

/// All rows of `file`, in the file's order, in as much memory as they need.
///
/// # Errors
///
/// As [`read`].
pub fn read_all(file: File, most: u64) -> Result<(Rows, Vec<Row>), RowsError> {
    let file = RowsFile::open(file, most)?;
    let mut kept = Vec::with_capacity(usize::try_from(file.rows).unwrap_or(0));
    Ok((each_row(&file, |row| kept.push(row))?, kept))
}

fn each_row(file: &RowsFile, mut take: impl FnMut(Row)) -> Result<Rows, RowsError> {
    let mut targets = HashSet::new();
    let kept = file.fact("kept").unwrap_or_default();
    let mut rows = Rows { kept: escape_text(&kept.chars().take(100).collect::<String>()), rows: 0 };
    file.each_group(|group| {
        let columns = Columns::of(group, &mut targets)?;
        for at in 0..group.rows {
            take(columns.row(at)?);
        }
        rows.rows += group.rows as u64;
        Ok(())
    })?;
    Ok(rows)
}

struct Columns {
    n: Vec<i64>,
    target: Vec<Rc<str>>,
    connection: Vec<Option<i32>>,
    local: Vec<Option<ByteArray>>,
    server: Vec<Option<ByteArray>>,
    nth: Vec<Option<i64>>,
    outcome: Vec<ByteArray>,
    failed_in: Vec<Option<ByteArray>>,
    blame: Vec<Option<ByteArray>>,
    code: Vec<Option<i32>>,
    code_text: Vec<Option<ByteArray>>,
    intended: Vec<i64>,
    response: Vec<i64>,
    service: Vec<Option<i64>>,
    phases: [Vec<Option<i64>>; Phase::COUNT],
}

impl Columns {
    fn of(group: &Group<'_>, known: &mut HashSet<Rc<str>>) -> Result<Columns, RowsError> {
        let mut phases = [const { Vec::new() }; Phase::COUNT];
        for (phase, column) in Phase::ALL.into_iter().zip(&mut phases) {
            *column = group.optional::<Int64Type>(&format!("{}_ns", phase.name()))?;
        }
        let targets = group.required::<ByteArrayType>("target")?;
        let targets = targets.iter().map(|target| shared(escape_text(text(target, "target")?), known));
        Ok(Columns {
            target: targets.collect::<Result<_, RowsError>>()?,
            n: group.required::<Int64Type>("n")?,
            connection: group.optional::<Int32Type>("connection")?,
            local: group.optional::<ByteArrayType>("local")?,
            server: group.optional::<ByteArrayType>("server")?,
            nth: group.optional::<Int64Type>("nth")?,
            outcome: group.required::<ByteArrayType>("outcome")?,
            failed_in: group.optional::<ByteArrayType>("failed_in")?,
            blame: group.optional::<ByteArrayType>("blame")?,
            code: group.optional::<Int32Type>("code")?,
            code_text: group.optional::<ByteArrayType>("code_text")?,
            intended: group.required::<Int64Type>("intended_ns")?,
            response: group.required::<Int64Type>("response_ns")?,
            service: group.optional::<Int64Type>("service_ns")?,
            phases,
        })
    }

    fn row(&self, at: usize) -> Result<Row, RowsError> {
        let mut phases = [None; Phase::COUNT];
        let mut sum = 0u64;
        for (phase, (into, column)) in Phase::ALL.into_iter().zip(phases.iter_mut().zip(&self.phases)) {
            let Some(length) = column[at] else { continue };
            let length = unsigned(length, phase.name())?;
            sum = sum.checked_add(length).ok_or_else(|| damaged("the phases of a row overflow"))?;
            *into = Some(Nanos(length));
        }
        let response = unsigned(self.response[at], "response_ns")?;
        if sum != response {
            let n = self.n[at];
            return Err(damaged(format!(
                "the phases of request {n} are {sum} ns and its response {response} ns"
            )));
        }
        Ok(Row {
            n: self.n[at].cast_unsigned(),
            target: Rc::clone(&self.target[at]),
            connection: self.connection[at].map(i32::cast_unsigned),
            carried: self.carried(at)?,
            failure: self.failure(at)?,
            code: self.code(at),
            intended: Nanos(u64::try_from(self.intended[at]).unwrap_or(0)),
            response: Nanos(response),
            service: self.service[at].map(|service| unsigned(service, "service_ns")).transpose()?.map(Nanos),
            phases,
        })
    }

    fn code(&self, at: usize) -> Option<Code> {
        let status = self.code[at].and_then(|code| u16::try_from(code).ok()).map(Code::status);
        status.or_else(|| Code::new(self.code_text[at].as_ref()?.data()))
    }

    fn carried(&self, at: usize) -> Result<Option<Carried>, RowsError> {
        let (Some(local), Some(server), Some(nth)) = (&self.local[at], &self.server[at], self.nth[at]) else {
            return Ok(None);
        };
        Ok(Some(Carried {
            local: address(local, "local")?,
            server: address(server, "server")?,
            nth: unsigned(nth, "nth")?,
        }))
    }

    fn failure(&self, at: usize) -> Result<Option<Failure>, RowsError> {
        let outcome = known(&self.outcome[at], "outcome", Outcome::from_name)?;
        let (phase, blame) = (&self.failed_in[at], &self.blame[at]);
        match (outcome, phase, blame) {
            (Outcome::Ok, None, None) => Ok(None),
            (outcome, Some(phase), Some(blame)) if outcome != Outcome::Ok => Ok(Some(Failure {
                outcome,
                phase: known(phase, "failed_in", Phase::from_name)?,
                blame: known(blame, "blame", Blame::from_name)?,
            })),
            _ => Err(damaged(format!("request {} is half ok", self.n[at]))),
        }
    }
}

/// One text for all rows of a target.
fn shared(target: String, known: &mut HashSet<Rc<str>>) -> Result<Rc<str>, RowsError> {
    if let Some(target) = known.get(target.as_str()) {
        return Ok(Rc::clone(target));
    }
    if known.len() == MOST_TARGETS {
        return Err(damaged(format!("it has over {MOST_TARGETS} targets")));
    }
    let target: Rc<str> = target.into();
    known.insert(Rc::clone(&target));
    Ok(target)
}

fn known<T>(bytes: &ByteArray, name: &str, of: impl Fn(&str) -> Option<T>) -> Result<T, RowsError> {
    let text = text(bytes, name)?;
    of(text).ok_or_else(|| damaged(format!("`{}` is not known as {name}", escape_text(text))))
}

pub(crate) fn address(bytes: &ByteArray, name: &str) -> Result<SocketAddr, RowsError> {
    let text = text(bytes, name)?;
    text.parse().map_err(|_| damaged(format!("`{}` is no address for {name}", escape_text(text))))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, SeekFrom, Write};

    use proptest::prelude::*;

    use super::*;
    use crate::requests::tests::{answered, file, given_up};

    /// The rows of a file that the writer made, read from its start.
    fn rewound(mut file: File) -> File {
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    #[test]
    fn rows_read_back_as_they_were_written() {
        let requests: Vec<_> =
            (0..100_000).map(|n| if n % 3 == 0 { given_up(n) } else { answered(n) }).collect();
        let mut rows = Vec::new();
        let facts = read(rewound(file(&requests)), u64::MAX, |row| rows.push(row)).unwrap();
        assert_eq!((facts.kept.as_str(), facts.rows), ("all", 100_000));
        for (row, request) in rows.iter().zip(&requests) {
            assert_eq!((row.n, row.carried, row.failure), (request.n, request.carried, request.failure));
            assert_eq!(row.intended, request.timeline.due_at() - Nanos(900));
            assert_eq!(row.response, request.age());
            assert_eq!(row.phases, Phase::ALL.map(|phase| request.phase(phase)));
            assert_eq!(&*row.target, ["GET /a", "GET /b"][usize::from(request.kind)]);
            assert_eq!(row.end_of(Phase::ClientLag), row.intended + row.response);
        }
    }

    proptest! {
        /// Any damage to a file gives an error or a consistent row, never a panic.
        #[test]
        fn a_damaged_file_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
            let mut good = rewound(file(&[answered(1), given_up(2), answered(3)]));
            let mut bytes = Vec::new();
            good.read_to_end(&mut bytes).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if cut {
                bytes.truncate(at);
            }
            let mut damaged = tempfile::tempfile().unwrap();
            damaged.write_all(&bytes).unwrap();
            let _ = read(rewound(damaged), u64::MAX, |row| {
                assert_eq!(row.phases.iter().flatten().map(|length| length.0).sum::<u64>(), row.response.0);
            });
        }
    }
}
