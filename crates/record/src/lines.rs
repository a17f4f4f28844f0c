//! Reads a file of a results directory line by line, as untrusted input: the length of a line is limited, and a last
//! line without a line feed counts as incomplete and is left out.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::error::{Damage, RecordError};
use crate::record_dir::open_file;

/// The complete lines of one file.
pub(crate) struct Lines {
    path: PathBuf,
    input: io::Take<BufReader<File>>,
    longest: u64,
    /// The maximum size of the whole file in bytes.
    limit: u64,
    used: u64,
    number: u64,
    line: Vec<u8>,
}

impl Lines {
    /// Opens the file; `None` if it does not exist. `longest` limits a line, `limit` the file, both in bytes.
    pub(crate) fn open(path: &Path, longest: u64, limit: u64) -> Result<Option<Lines>, RecordError> {
        let Some(file) = open_file(path)? else { return Ok(None) };
        let input = BufReader::new(file).take(0);
        Ok(Some(Lines { path: path.to_owned(), input, longest, limit, used: 0, number: 0, line: Vec::new() }))
    }

    /// The next complete line without its line feed, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, RecordError> {
        self.line.clear();
        self.input.set_limit(self.longest + 1);
        let read = self.input.read_until(b'\n', &mut self.line);
        let len = read.map_err(|source| RecordError::Read { path: self.path.clone(), source })? as u64;
        self.number += 1;
        self.used += len;
        if self.used > self.limit {
            return Err(RecordError::TooLarge { path: self.path.clone(), limit: self.limit });
        }
        if len > self.longest {
            return Err(self.damaged(Damage::LongLine { limit: self.longest }));
        }
        Ok(self.line.strip_suffix(b"\n"))
    }

    /// The error for the line read last.
    pub(crate) fn damaged(&self, damage: Damage) -> RecordError {
        RecordError::Damaged { path: self.path.clone(), line: self.number, damage }
    }
}
