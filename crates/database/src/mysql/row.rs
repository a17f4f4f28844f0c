//! Reads the values of one row as texts, in the protocol of text and in that of prepared statements.

use super::reading::Reader;
use codec::DecodeError;

/// A column's type, by its number in the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnType {
    pub kind: u8,
    pub is_unsigned: bool,
}

mod kind {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
}

impl ColumnType {
    /// Whether its values are whole numbers.
    pub(super) fn is_integer(self) -> bool {
        use kind::{INT24, LONG, LONGLONG, SHORT, TINY, YEAR};
        matches!(self.kind, TINY | SHORT | LONG | LONGLONG | INT24 | YEAR)
    }
}

/// The values of a row: `None` is NULL.
pub(super) fn read(
    payload: &[u8],
    types: &[ColumnType],
    is_binary: bool,
) -> Result<Vec<Option<String>>, DecodeError> {
    let mut reader = Reader::new(payload, "row");
    if !is_binary {
        return types.iter().map(|_| Ok(reader.text_value()?.map(text))).collect();
    }
    if reader.u8()? != 0 {
        return Err(reader.malformed());
    }
    // Two bits are unused.
    let nulls = reader.take((types.len() + 2).div_ceil(8))?;
    let is_null = |index: usize| nulls[(index + 2) / 8] >> ((index + 2) % 8) & 1 == 1;
    let values = types.iter().enumerate().map(|(index, column)| match is_null(index) {
        true => Ok(None),
        false => binary(*column, &mut reader).map(Some),
    });
    values.collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn binary(column: ColumnType, reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let is_unsigned = column.is_unsigned;
    Ok(match column.kind {
        kind::NULL => String::new(),
        kind::TINY if is_unsigned => reader.u8()?.to_string(),
        kind::TINY => i8::from_le_bytes(reader.array()?).to_string(),
        kind::SHORT | kind::YEAR if is_unsigned => reader.u16()?.to_string(),
        kind::SHORT | kind::YEAR => i16::from_le_bytes(reader.array()?).to_string(),
        kind::LONG | kind::INT24 if is_unsigned => reader.u32()?.to_string(),
        kind::LONG | kind::INT24 => i32::from_le_bytes(reader.array()?).to_string(),
        kind::LONGLONG if is_unsigned => u64::from_le_bytes(reader.array()?).to_string(),
        kind::LONGLONG => i64::from_le_bytes(reader.array()?).to_string(),
        kind::FLOAT => f32::from_le_bytes(reader.array()?).to_string(),
        kind::DOUBLE => f64::from_le_bytes(reader.array()?).to_string(),
        kind::DATE | kind::DATETIME | kind::TIMESTAMP => date(column.kind == kind::DATE, reader)?,
        kind::TIME => time(reader)?,
        _ => text(reader.bytes()?),
    })
}

/// `2026-11-25 08:00:00.000001`, without the parts that the server left out because they are 0.
fn date(is_day: bool, reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let length = reader.u8()?;
    let mut rest = Reader::new(reader.take(usize::from(length))?, "date");
    let (year, month, day) = if length >= 4 { (rest.u16()?, rest.u8()?, rest.u8()?) } else { (0, 0, 0) };
    let day = format!("{year:04}-{month:02}-{day:02}");
    if is_day {
        return Ok(day);
    }
    let (hour, minute, second) = if length >= 7 { (rest.u8()?, rest.u8()?, rest.u8()?) } else { (0, 0, 0) };
    let micros = if length >= 11 { format!(".{:06}", rest.u32()?) } else { String::new() };
    Ok(format!("{day} {hour:02}:{minute:02}:{second:02}{micros}"))
}

/// `-838:59:59.000001`
fn time(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let length = reader.u8()?;
    let mut rest = Reader::new(reader.take(usize::from(length))?, "time");
    if length < 8 {
        return Ok("00:00:00".to_owned());
    }
    let sign = if rest.u8()? == 1 { "-" } else { "" };
    let hours = u64::from(rest.u32()?) * 24 + u64::from(rest.u8()?);
    let (minute, second) = (rest.u8()?, rest.u8()?);
    let micros = if length >= 12 { format!(".{:06}", rest.u32()?) } else { String::new() };
    Ok(format!("{sign}{hours:02}:{minute:02}:{second:02}{micros}"))
}
