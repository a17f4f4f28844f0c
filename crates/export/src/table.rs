//! Tables for other programs (DuckDB, pandas, R): the same rows as CSV and as Parquet.

use std::io::{self, Write};

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;

use crate::columns::{Open, RowsWriter, begin, optional};

/// A column and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Letters, digits, `-` and `_`.
    pub name: String,
    pub kind: CellKind,
}

/// What the cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellKind {
    Text,
    Whole,
    Number,
    Truth,
}

/// A cell, of the kind of its column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Absent,
    Text(String),
    Whole(u64),
    Number(f64),
    Truth(bool),
}

impl Cell {
    /// The cell of a count that may be unknown.
    pub fn whole(value: Option<u64>) -> Cell {
        value.map_or(Cell::Absent, Cell::Whole)
    }

    /// The cell of a text that may be unknown.
    pub fn text(value: Option<&str>) -> Cell {
        value.map_or(Cell::Absent, |text| Cell::Text(text.to_owned()))
    }
}

/// Writes both files as rows come.
pub struct TableWriter<C: Write, P: Write + Send> {
    columns: Vec<Column>,
    csv: csv::Writer<C>,
    parquet: RowsWriter<P, Vec<Cell>>,
}

impl<C: Write, P: Write + Send> TableWriter<C, P> {
    /// Begins both files.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn new(columns: Vec<Column>, csv: C, parquet: P) -> io::Result<TableWriter<C, P>> {
        let mut csv = csv::Writer::from_writer(csv);
        csv.write_record(columns.iter().map(|column| &column.name))?;
        let file = begin(parquet, &schema(&columns), &[], &[]).map_err(io::Error::other)?;
        Ok(TableWriter { columns, csv, parquet: RowsWriter::new(file) })
    }

    /// Adds a row with a cell per column.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn write(&mut self, row: Vec<Cell>) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a cell per column");
        self.csv.write_record(row.iter().map(csv_text))?;
        let columns = &self.columns;
        let written = self.parquet.write([row], |group, rows| write_columns(group, rows, columns));
        written.map_err(io::Error::other)
    }

    /// Ends both files; returns the number of rows.
    ///
    /// # Errors
    ///
    /// Those of the files.
    pub fn finish(mut self) -> io::Result<u64> {
        self.csv.flush()?;
        let columns = &self.columns;
        self.parquet.finish(|group, rows| write_columns(group, rows, columns)).map_err(io::Error::other)
    }
}

/// Any cell may be absent.
fn schema(columns: &[Column]) -> String {
    let field = |column: &Column| {
        let name = &column.name;
        match column.kind {
            CellKind::Text => format!("  optional binary {name} (UTF8);\n"),
            CellKind::Whole => format!("  optional int64 {name};\n"),
            CellKind::Number => format!("  optional double {name};\n"),
            CellKind::Truth => format!("  optional boolean {name};\n"),
        }
    };
    let fields: String = columns.iter().map(field).collect();
    format!("message table {{\n{fields}}}")
}

fn write_columns<W: Write + Send>(
    group: &mut Open<'_, W>,
    rows: &[Vec<Cell>],
    columns: &[Column],
) -> Result<(), ParquetError> {
    for (at, column) in columns.iter().enumerate() {
        match column.kind {
            CellKind::Text => optional::<_, ByteArrayType, _>(group, rows, |row| match &row[at] {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            })?,
            CellKind::Whole => optional::<_, Int64Type, _>(group, rows, |row| match row[at] {
                Cell::Whole(value) => i64::try_from(value).ok(),
                _ => None,
            })?,
            CellKind::Number => optional::<_, DoubleType, _>(group, rows, |row| match row[at] {
                Cell::Number(value) => Some(value),
                _ => None,
            })?,
            CellKind::Truth => optional::<_, BoolType, _>(group, rows, |row| match row[at] {
                Cell::Truth(value) => Some(value),
                _ => None,
            })?,
        }
    }
    Ok(())
}

fn csv_text(cell: &Cell) -> String {
    match cell {
        Cell::Absent => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Whole(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        Cell::Truth(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    /// If this fails, a table that is read back has other values than were written, or zero where nothing is known.
    #[test]
    fn both_files_have_the_rows_that_were_written() {
        let column = |name: &str, kind| Column { name: name.to_owned(), kind };
        let columns = vec![
            column("load-kind", CellKind::Text),
            column("run", CellKind::Whole),
            column("response_p50_ns", CellKind::Number),
            column("twin", CellKind::Truth),
        ];
        let rows = [
            vec![Cell::Text("a, \"b\"".to_owned()), Cell::Whole(7), Cell::Number(0.5), Cell::Truth(true)],
            vec![Cell::Absent, Cell::Absent, Cell::Absent, Cell::Absent],
        ];
        let (mut csv, folder) = (Vec::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("table.parquet");
        let mut table = TableWriter::new(columns, &mut csv, std::fs::File::create(&path).unwrap()).unwrap();
        rows.iter().for_each(|row| table.write(row.clone()).unwrap());
        assert_eq!(table.finish().unwrap(), 2);
        let text = String::from_utf8(csv).unwrap();
        assert_eq!(text, "load-kind,run,response_p50_ns,twin\n\"a, \"\"b\"\"\",7,0.5,true\n,,,\n");
        let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
        let read: Vec<Vec<Field>> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().get_column_iter().map(|(_, field)| field.clone()).collect())
            .collect();
        let first =
            [Field::Str("a, \"b\"".to_owned()), Field::Long(7), Field::Double(0.5), Field::Bool(true)];
        assert_eq!(read, [first.to_vec(), vec![Field::Null; 4]]);
    }
}
