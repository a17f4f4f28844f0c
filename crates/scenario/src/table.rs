//! Rows of data: read once, only the columns in use, one text for all of them.

use crate::escape::is_json_number;
use crate::format::{DataFormat, Order};
use crate::place::{Slip, did_you_mean};
use crate::random::{between, draw};
use crate::scope::{ColumnUse, Needs};

/// The used columns of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub name: String,
    pub order: Order,
    columns: usize,
    /// All cells, row by row, concatenated.
    text: String,
    /// End of each cell in `text`.
    ends: Vec<usize>,
    /// Distinguishes its draws from those of other tables.
    draw: u64,
}

/// A data file, and the columns in use.
pub(crate) struct TableSource<'a> {
    pub name: &'a str,
    /// The name that the scenario gives it.
    pub file: &'a str,
    pub bytes: &'a [u8],
    pub format: DataFormat,
    pub delimiter: u8,
    /// The column names of a CSV whose first line does not contain them.
    pub names: Option<&'a [String]>,
    pub wanted: &'a [ColumnUse],
    pub order: Order,
    pub draw: u64,
}

impl Table {
    /// # Errors
    ///
    /// For a missing column, a slip at the place that uses it; otherwise what is wrong with a row.
    pub(crate) fn read(source: &TableSource<'_>) -> Result<Table, Result<Slip, String>> {
        let mut table = Table {
            name: source.name.to_owned(),
            order: source.order,
            columns: source.wanted.len(),
            text: String::new(),
            ends: Vec::new(),
            draw: source.draw,
        };
        let rows = match source.format {
            DataFormat::Csv => table.read_csv(source)?,
            DataFormat::Ndjson => table.read_ndjson(source).map_err(Err)?,
        };
        if rows == 0 {
            return Err(Err(format!("{} has no rows; a run needs at least one", source.file)));
        }
        Ok(table)
    }

    pub(crate) fn rows(&self) -> u64 {
        (self.ends.len() / self.columns.max(1)) as u64
    }

    /// The row for unit `n` of a run, the `ordinal`th unit that uses this table.
    pub(crate) fn row(&self, seed: u64, n: u64, ordinal: u64) -> u64 {
        match self.order {
            Order::Sequential => ordinal % self.rows(),
            Order::Random => between(draw(seed, n, self.draw), 0, self.rows() - 1),
            // The run ends before this is exceeded.
            Order::Once => ordinal.min(self.rows() - 1),
        }
    }

    pub(crate) fn cell(&self, row: u64, column: u16) -> &str {
        let index = row as usize * self.columns + usize::from(column);
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    fn push(&mut self, cell: &str) {
        self.text.push_str(cell);
        self.ends.push(self.text.len());
    }

    fn read_csv(&mut self, source: &TableSource<'_>) -> Result<u64, Result<Slip, String>> {
        let wrong = |error: csv::Error| Err(format!("{}: {error}", source.file));
        let bytes = source.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(source.bytes);
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(source.delimiter)
            .has_headers(source.names.is_none())
            .from_reader(bytes);
        let names: Vec<String> = match source.names {
            Some(names) => names.to_vec(),
            None => reader.headers().map_err(wrong)?.iter().map(|name| name.trim().to_owned()).collect(),
        };
        let places = source.wanted.iter().map(|column| {
            names
                .iter()
                .position(|name| *name == column.name)
                .ok_or_else(|| Ok(missing(source, column, &names)))
        });
        let places: Vec<usize> = places.collect::<Result<_, _>>()?;
        let mut row = csv::StringRecord::new();
        let mut rows = 0;
        while reader.read_record(&mut row).map_err(wrong)? {
            let line = row.position().map_or(0, csv::Position::line);
            if row.len() < names.len() {
                let (file, has, named) = (source.file, row.len(), names.len());
                return Err(Err(format!(
                    "{file} line {line}: the row has {has} columns and `columns` names {named}; name those that are there"
                )));
            }
            for (place, column) in places.iter().zip(source.wanted) {
                let cell = &row[*place];
                check(cell, column, source.file, line).map_err(Err)?;
                self.push(cell);
            }
            rows += 1;
        }
        Ok(rows)
    }

    fn read_ndjson(&mut self, source: &TableSource<'_>) -> Result<u64, String> {
        let text = std::str::from_utf8(source.bytes).map_err(|_| format!("{} is not UTF-8", source.file))?;
        let mut rows = 0;
        for (line, text) in (1u64..).zip(text.trim_start_matches('\u{feff}').lines()) {
            if text.trim().is_empty() {
                continue;
            }
            let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)
                .map_err(|error| format!("{} line {line}: not a JSON object: {error}", source.file))?;
            for column in source.wanted {
                let cell = within(&object, &column.name).ok_or_else(|| {
                    let meant = did_you_mean(&column.name, object.keys().map(String::as_str));
                    format!("{} line {line}: no key `{}`{meant}", source.file, column.name)
                })?;
                check(&cell, column, source.file, line)?;
                self.push(&cell);
            }
            rows += 1;
        }
        Ok(rows)
    }
}

/// A key, or nested keys separated by dots.
fn within(object: &serde_json::Map<String, serde_json::Value>, name: &str) -> Option<String> {
    let value = match object.get(name) {
        Some(value) => value,
        None => {
            let (first, rest) = name.split_once('.')?;
            return within(object.get(first)?.as_object()?, rest);
        }
    };
    Some(match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        value => value.to_string(),
    })
}

fn missing(source: &TableSource<'_>, column: &ColumnUse, names: &[String]) -> Slip {
    let meant = did_you_mean(&column.name, names.iter().map(String::as_str));
    let advice = if meant.is_empty() { format!("; it has {}", names.join(", ")) } else { meant };
    Slip::new(&column.span, format!("{} has no column `{}`{advice}", source.file, column.name))
}

/// Whether a cell is valid where it is used.
fn check(cell: &str, column: &ColumnUse, file: &str, line: u64) -> Result<(), String> {
    if column.needs.hold(cell) {
        return Ok(());
    }
    let name = &column.name;
    if column.needs.number && !is_json_number(cell) {
        return Err(format!(
            "{file} line {line}: `{name}` is used as a number, but `{}` is not a number",
            cell.escape_debug()
        ));
    }
    debug_assert!(column.needs != Needs::default());
    Err(format!(
        "{file} line {line}: `{name}` is used in a header, and contains a line break or another control character"
    ))
}
