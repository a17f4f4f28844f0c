//! Columns of a Parquet file: written from rows, and read back into rows. The modules of the files define the
//! columns.
//!
//! A file may be hostile: the rows of a group are bounded before memory is allocated for them, a column of an
//! unexpected type is refused, and a missing column is distinguished from an empty one.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::{Compression, Type};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use thiserror::Error;

use crate::pages;

/// Rows per row group: at about 200 bytes each, 13 megabytes.
pub(crate) const GROUP: usize = 65_536;

/// Files of this program have [`GROUP`] rows per group, and a decoded group takes about 500 bytes per row. Files that
/// other programs rewrote, such as DuckDB, may have somewhat larger groups.
const LONGEST_GROUP: i64 = 1 << 17;

/// Maximum size of a column of a group when unpacked: 64 bytes per row.
const LARGEST_COLUMN: i64 = 64 * LONGEST_GROUP;

/// Maximum size of a column of a group in the file: what hardly repeats becomes a little longer by compression.
const LARGEST_PACKED: u64 = 2 * LARGEST_COLUMN as u64;

/// Minimum bytes per row in a file: its four numbers that hardly repeat take four bytes each, after compression. A file
/// with more rows was made to fill a reader's memory.
const LEAST_ROW: u64 = 4;

/// Why a file of rows cannot be read. One line each: what, and what to do; the caller adds the name of the file.
#[derive(Debug, Error)]
pub enum RowsError {
    #[error("is not a readable Parquet file: {0}; copy it again from the machine that produced it")]
    Parquet(#[from] ParquetError),
    #[error("{what}; copy it again from the machine that produced it")]
    Damaged { what: String },
    /// More than the caller has room for. Nothing was decoded.
    #[error(
        "holds {} requests, and at most {} can be read; keep fewer, with --requests sample=1% or slowest=10000",
        units::count(*rows),
        units::count(*most)
    )]
    TooMany { rows: u64, most: u64 },
}

pub(crate) fn damaged(what: impl Into<String>) -> RowsError {
    RowsError::Damaged { what: what.into() }
}

/// Begins a file with `schema`. The distinct texts of the columns `texts` are written once per group.
pub(crate) fn begin<W: Write + Send>(
    out: W,
    schema: &str,
    facts: &[(&str, &str)],
    texts: &[&'static str],
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let schema = Arc::new(parse_message_type(schema)?);
    let fact = |&(key, value): &(&str, &str)| KeyValue::new(format!("parallax.{key}"), value.to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // Times hardly repeat.
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_key_value_metadata(Some(facts.iter().map(fact).collect()));
    let properties = texts.iter().fold(properties, |properties: WriterPropertiesBuilder, column| {
        properties.set_column_dictionary_enabled(ColumnPath::from(*column), true)
    });
    SerializedFileWriter::new(out, schema, Arc::new(properties.build()))
}

/// An open row group: its columns are written in the order of the schema.
pub(crate) type Open<'a, W> = SerializedRowGroupWriter<'a, W>;

/// Writes rows to a file, one row group at a time: memory does not grow with their number.
pub(crate) struct RowsWriter<W: Write + Send, R> {
    file: SerializedFileWriter<W>,
    pending: Vec<R>,
    rows: u64,
}

impl<W: Write + Send, R> RowsWriter<W, R> {
    pub(crate) fn new(file: SerializedFileWriter<W>) -> RowsWriter<W, R> {
        RowsWriter { file, pending: Vec::with_capacity(GROUP), rows: 0 }
    }

    /// Adds `rows`; `columns` writes the columns of a full group.
    pub(crate) fn write(
        &mut self,
        rows: impl IntoIterator<Item = R>,
        columns: impl Fn(&mut Open<'_, W>, &[R]) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        for row in rows {
            self.pending.push(row);
            if self.pending.len() == GROUP {
                self.write_group(&columns)?;
            }
        }
        Ok(())
    }

    /// Writes the remaining rows and the footer, without which the file is unreadable. Returns the number of rows.
    pub(crate) fn finish(
        mut self,
        columns: impl Fn(&mut Open<'_, W>, &[R]) -> Result<(), ParquetError>,
    ) -> Result<u64, ParquetError> {
        if !self.pending.is_empty() {
            self.write_group(&columns)?;
        }
        self.file.finish()?;
        self.file.inner_mut().flush()?;
        Ok(self.rows)
    }

    fn write_group(
        &mut self,
        columns: &impl Fn(&mut Open<'_, W>, &[R]) -> Result<(), ParquetError>,
    ) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        columns(&mut group, &self.pending)?;
        group.close()?;
        self.rows += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// Writes the next column, in which every row has a value.
pub(crate) fn required<W: Write + Send, D: DataType, R>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[R],
    value: impl Fn(&R) -> D::T,
) -> Result<(), ParquetError> {
    let values: Vec<D::T> = rows.iter().map(value).collect();
    let mut column = next(group)?;
    column.typed::<D>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes the next column, in which some rows have no value.
pub(crate) fn optional<W: Write + Send, D: DataType, R>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[R],
    value: impl Fn(&R) -> Option<D::T>,
) -> Result<(), ParquetError> {
    let all: Vec<Option<D::T>> = rows.iter().map(value).collect();
    let there: Vec<i16> = all.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<D::T> = all.into_iter().flatten().collect();
    let mut column = next(group)?;
    column.typed::<D>().write_batch(&values, Some(&there), None)?;
    column.close()
}

fn next<'a, W: Write + Send>(
    group: &'a mut SerializedRowGroupWriter<'_, W>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))
}

/// A file open for reading.
pub(crate) struct RowsFile {
    reader: SerializedFileReader<File>,
    file: File,
    length: u64,
    /// As many as the footer announces.
    pub(crate) rows: u64,
}

impl RowsFile {
    /// Reads the footer, which has the number of rows: more than `most` are refused before one is decoded.
    pub(crate) fn open(file: File, most: u64) -> Result<RowsFile, RowsError> {
        let length = file.metadata().map_err(|error| ParquetError::External(error.into()))?.len();
        let own = file.try_clone().map_err(|error| ParquetError::External(error.into()))?;
        let reader = contained(|| Ok(SerializedFileReader::new(own)?))?;
        let groups = reader.metadata().row_groups().iter();
        let rows = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        let rows = rows.fold(0, u64::saturating_add);
        if rows > most {
            return Err(RowsError::TooMany { rows, most });
        }
        if rows.saturating_mul(LEAST_ROW) > length {
            return Err(damaged(format!("it announces {rows} rows in {length} bytes")));
        }
        Ok(RowsFile { reader, file, length, rows })
    }

    /// The value in the file's metadata under `parallax.<key>`.
    pub(crate) fn fact(&self, key: &str) -> Option<&str> {
        let facts = self.reader.metadata().file_metadata().key_value_metadata()?;
        let fact = facts.iter().find(|fact| fact.key.strip_prefix("parallax.") == Some(key))?;
        fact.value.as_deref()
    }

    /// Whether the column is within the file and its pages are no larger than columns of this program, neither of which
    /// the library checks.
    fn holds(&self, column: &ColumnChunkMetaData) -> bool {
        let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let begin = u64::try_from(begin.min(column.data_page_offset()));
        let (Ok(begin), Ok(length)) = (begin, u64::try_from(column.compressed_size())) else { return false };
        let is_within = begin.checked_add(length).is_some_and(|end| end <= self.length);
        if !is_within || length > LARGEST_PACKED {
            return false;
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact_at(&mut bytes, begin).is_ok()
            && pages::are_bounded(&bytes, LARGEST_COLUMN as u64)
    }

    /// Reads each row group in turn.
    pub(crate) fn each_group(
        &self,
        mut take: impl FnMut(&Group<'_>) -> Result<(), RowsError>,
    ) -> Result<(), RowsError> {
        for index in 0..self.reader.num_row_groups() {
            let metadata = self.reader.metadata().row_group(index);
            let rows = metadata.num_rows();
            if !(0..=LONGEST_GROUP).contains(&rows) {
                return Err(damaged(format!("a group of {rows} rows is not from this program")));
            }
            for column in metadata.columns() {
                let (values, bytes) = (column.num_values(), column.uncompressed_size());
                if values != rows || !(0..=LARGEST_COLUMN).contains(&bytes) || !self.holds(column) {
                    let name = column.column_path().string();
                    return Err(damaged(format!(
                        "{name} has {values} values in {bytes} bytes for {rows} rows"
                    )));
                }
            }
            let reader = contained(|| Ok(self.reader.get_row_group(index)?))?;
            let group = Group { reader, rows: rows as usize };
            take(&group)?;
        }
        Ok(())
    }
}

/// One row group of a file.
pub(crate) struct Group<'a> {
    reader: Box<dyn RowGroupReader + 'a>,
    pub(crate) rows: usize,
}

impl Group<'_> {
    /// The column `name`, one value per row; `None` if the file has no such column.
    pub(crate) fn column<D: DataType>(&self, name: &str) -> Result<Option<Vec<Option<D::T>>>, RowsError> {
        let metadata = self.reader.metadata();
        let schema = metadata.schema_descr();
        let Some(index) = schema.columns().iter().position(|column| column.path().string() == name) else {
            return Ok(None);
        };
        let column = schema.column(index);
        if column.physical_type() != D::get_physical_type()
            || column.max_rep_level() > 0
            || column.max_def_level() > 1
        {
            let found: Type = column.physical_type();
            return Err(damaged(format!("{name} is a column of {found}, which Parallax does not write")));
        }
        let is_optional = column.max_def_level() == 1;
        let (values, there) = contained(|| self.decode::<D>(index, name, is_optional))?;
        let held = if is_optional { there.iter().filter(|&&level| level == 1).count() } else { self.rows };
        if held != values.len() || (is_optional && there.len() != self.rows) {
            return Err(damaged(format!("{name} has {} values for {held}", values.len())));
        }
        let mut values = values.into_iter();
        if is_optional {
            return Ok(Some(
                there.iter().map(|&level| if level == 1 { values.next() } else { None }).collect(),
            ));
        }
        Ok(Some(values.map(Some).collect()))
    }

    /// The values, and for an optional column which rows have one.
    fn decode<D: DataType>(
        &self,
        index: usize,
        name: &str,
        is_optional: bool,
    ) -> Result<(Vec<D::T>, Vec<i16>), RowsError> {
        let mut reader = get_typed_column_reader::<D>(self.reader.get_column_reader(index)?);
        let (mut values, mut there) = (Vec::new(), Vec::new());
        let mut read = 0;
        while read < self.rows {
            let levels = is_optional.then_some(&mut there);
            let (rows, _, _) = reader.read_records(self.rows - read, levels, None, &mut values)?;
            if rows == 0 {
                return Err(damaged(format!("{name} ends before its rows do")));
            }
            read += rows;
        }
        Ok((values, there))
    }

    /// The column `name`; where the file does not have it, no row has a value.
    pub(crate) fn optional<D: DataType>(&self, name: &str) -> Result<Vec<Option<D::T>>, RowsError> {
        Ok(self.column::<D>(name)?.unwrap_or_else(|| vec![None; self.rows]))
    }

    /// The column `name`, in which every row has a value.
    pub(crate) fn required<D: DataType>(&self, name: &str) -> Result<Vec<D::T>, RowsError> {
        let values = self.column::<D>(name)?.ok_or_else(|| damaged(format!("it has no column {name}")))?;
        let all: Option<Vec<D::T>> = values.into_iter().collect();
        all.ok_or_else(|| damaged(format!("a row has no {name}")))
    }
}

/// The result of `read`; an error if the library panics on pages that no writer makes.
///
/// The library (parquet 60) asserts that a page's header is consistent with its bytes. Nothing that it leaves behind is
/// used again: the reader of a column is dropped with the panic.
fn contained<T>(read: impl FnOnce() -> Result<T, RowsError>) -> Result<T, RowsError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err(damaged("a page of it holds no page")))
}

/// A text of a column, refused if it is longer than those of this program.
pub(crate) fn text<'a>(bytes: &'a ByteArray, name: &str) -> Result<&'a str, RowsError> {
    match bytes.as_utf8() {
        Ok(text) if text.len() <= 4_096 => Ok(text),
        _ => Err(damaged(format!("{name} has a text that is not from this program"))),
    }
}

/// A number that is never negative.
pub(crate) fn unsigned(value: i64, name: &str) -> Result<u64, RowsError> {
    u64::try_from(value).map_err(|_| damaged(format!("{name} is {value}")))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};

    use parquet::data_type::Int64Type;

    use super::*;

    /// Identical rows, which take next to nothing in a file.
    fn alike(groups: usize) -> File {
        let file = tempfile::tempfile().unwrap();
        let schema = Arc::new(parse_message_type("message rows { required int64 n; }").unwrap());
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer =
            SerializedFileWriter::new(file.try_clone().unwrap(), schema, Arc::new(properties)).unwrap();
        for _ in 0..groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(&vec![0; 1 << 19], None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
        (&file).seek(SeekFrom::Start(0)).unwrap();
        file
    }

    /// If this fails, the columns of one group of a few megabytes take a gigabyte when they are decoded.
    #[test]
    fn a_group_is_bounded() {
        let file = alike(1);
        let length = file.metadata().unwrap().len();
        let rows = RowsFile {
            reader: SerializedFileReader::new(file.try_clone().unwrap()).unwrap(),
            file,
            length,
            rows: 1,
        };
        let used = allocation_counter::measure(|| {
            let refused = rows.each_group(|group| group.required::<Int64Type>("n").map(drop)).unwrap_err();
            assert!(refused.to_string().starts_with("a group of 524288 rows is not from"), "{refused}");
        });
        assert!(used.bytes_max < 1 << 20, "{used:?}");
    }

    /// If this fails, a file of a few kilobytes uses gigabytes of memory when it is explained.
    #[test]
    fn rows_that_are_not_in_the_file_are_refused_before_they_are_decoded() {
        let file = alike(2);
        assert!(file.metadata().unwrap().len() < 20_000);
        let used = allocation_counter::measure(|| {
            let refused = RowsFile::open(file, u64::MAX).err().unwrap();
            assert!(refused.to_string().starts_with("it announces 1048576 rows in "), "{refused}");
        });
        assert!(used.bytes_max < 1 << 20, "{used:?}");
        let refused = RowsFile::open(alike(2), 1_000).err().unwrap();
        assert!(matches!(refused, RowsError::TooMany { rows: 1_048_576, most: 1_000 }), "{refused}");
    }
}
